//! Telemetry (Base 8.1.28): snapshots of the drive log, taken at a host's request, and by the drive itself after a restart
//! from a power cut. All data areas hold the same data.

use std::cell::{Cell, RefCell};

use nandscape_wire_nvme::log::{self, TELEMETRY_BLOCK, TELEMETRY_SUBSYSTEM, Telemetry as Header};
use nandscape_wire_nvme::vendor::DriveLog;
use zerocopy::IntoBytes;

/// Blocks of a snapshot.
const BLOCKS: usize = size_of::<DriveLog>() / TELEMETRY_BLOCK;
/// Bytes of a log page with a snapshot.
pub(super) const BYTES: usize = TELEMETRY_BLOCK + size_of::<DriveLog>();
const _: () = assert!(size_of::<DriveLog>().is_multiple_of(TELEMETRY_BLOCK));

/// The snapshots of a subsystem.
#[derive(Default)]
pub(crate) struct Telemetry {
    host: Snapshot,
    controller: Snapshot,
    /// No host has read the drive's own snapshot yet.
    available: Cell<bool>,
}

#[derive(Default)]
struct Snapshot {
    log: RefCell<Option<Box<DriveLog>>>,
    /// Number of snapshots taken.
    generation: Cell<u8>,
}

impl Snapshot {
    fn take(&self, log: DriveLog) {
        self.log.replace(Some(Box::new(log)));
        self.generation.set(self.generation.get().wrapping_add(1));
    }
}

impl Telemetry {
    /// Takes a snapshot at a host's request.
    pub(crate) fn take_for_host(&self, log: DriveLog) {
        self.host.take(log);
    }

    /// Takes a snapshot for the drive, unless a host has not read the previous one yet (Base 5.1.12.1.9, Telemetry
    /// Controller-Initiated Data Available). Returns whether it was taken.
    pub(crate) fn take_for_drive(&self, log: DriveLog) -> bool {
        let takes = !self.available.replace(true);
        if takes {
            self.controller.take(log);
        }
        takes
    }

    /// A host has read the drive's own snapshot.
    pub(crate) fn was_read(&self) {
        self.available.set(false);
    }

    /// The log `lid`, one of the two.
    pub(crate) fn page(&self, lid: u8) -> Vec<u8> {
        let snapshot = if lid == log::TELEMETRY_HOST { &self.host } else { &self.controller };
        let data = snapshot.log.borrow();
        let mut header = Header::zeroed();
        header.lid = lid;
        match lid {
            log::TELEMETRY_HOST => {
                (header.host_scope, header.host_generation) = (TELEMETRY_SUBSYSTEM, self.host.generation.get());
            }
            // Base 5.1.12.1.9: the scope is byte 381 here, and byte 380 of the other log (5.1.12.1.8).
            _ => header.host_generation = TELEMETRY_SUBSYSTEM,
        }
        header.controller_generation = self.controller.generation.get();
        header.controller_available = self.available.get().into();
        if data.is_some() {
            header.last_blocks = [(BLOCKS as u16).into(); 3];
        }
        [header.as_bytes(), data.as_deref().map_or(&[], IntoBytes::as_bytes)].concat()
    }
}
