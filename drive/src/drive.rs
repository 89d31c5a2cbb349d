//! The trait that everything stackable implements: one command in, one completion out.

use crate::io::{CommandRef, Io};

/// A block device with the NVM command set: an emulated SSD, an array, a service over one.
pub trait Drive {
    /// The properties of the drive.
    fn info(&self) -> DriveInfo;

    /// Takes a command; it completes through its token, now or later. Commands may complete in any order.
    fn submit(&self, io: Io);

    /// Cancels a command that waits, in the host or in the drive: it completes with Command Abort Requested, now or
    /// later. Returns whether the command waited. Any other command completes as usual; a drive without cancellation
    /// cancels none.
    fn cancel(&self, _command: CommandRef) -> bool {
        false
    }
}

/// The properties of a drive that its users need. Identify has more.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct DriveInfo {
    /// The namespace that commands name.
    pub nsid: u32,
    /// Size in logical blocks.
    pub blocks: u64,
    /// Bytes of a logical block's data.
    pub lba_bytes: u32,
    /// Bytes of metadata of a logical block; 0 for none. Most users ignore it.
    pub metadata_bytes: u32,
    /// The most logical blocks that one command may move.
    pub max_blocks: u32,
    /// Bytes of the unit in which the drive maps and prefers to be written.
    pub unit_bytes: u32,
    /// Whether a power cut may lose completed writes that were not flushed.
    pub volatile_cache: bool,
    /// Whether data written is kept. A drive without a store models timing only: reads return any data.
    pub keeps_data: bool,
}

impl DriveInfo {
    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        self.blocks * u64::from(self.lba_bytes)
    }
}
