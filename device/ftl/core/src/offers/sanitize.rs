//! Removal of all data from the flash.

use nandscape_device_media::MediaError;

use super::Later;

/// The method of removing data from the flash.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Sanitization {
    /// Erase blocks.
    Erase,
    /// Overwrite blocks, and then erase them.
    Overwrite(Overwrite),
}

/// How blocks are overwritten.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Overwrite {
    /// Number of passes, each after an erase.
    pub passes: u8,
    /// The written data.
    pub pattern: u32,
    /// Whether every second pass writes the pattern inverted.
    pub inverts: bool,
}

impl Overwrite {
    /// The pattern of a pass, counted from zero.
    pub fn pattern_of(&self, pass: u8) -> u32 {
        if self.inverts && pass % 2 == 1 { !self.pattern } else { self.pattern }
    }
}

/// An FTL that removes data.
pub trait Sanitize {
    /// Whether data of hosts may be in the flash or in the write buffer, be it current or stale, or planted.
    fn may_hold_data(&self) -> bool;

    /// Removes all data from the flash, including stale and bad blocks. Nothing is mapped afterwards. No read or write is in
    /// progress, and none begins before the end. `progress` receives the blocks done and the total.
    ///
    /// # Errors
    /// `PowerLost` after a power cut: repeat the call after the restart of the FTL, and it continues. Any other error is that
    /// of a block that still holds data, after all others are done.
    fn sanitize<'a>(&'a self, how: Sanitization, progress: &'a dyn Fn(u64, u64)) -> Later<'a, Result<(), MediaError>>;
}
