//! Removal of all data from the flash.

use nandscape_device_media::MediaError;

use super::Later;

/// How data is removed from the flash.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Sanitization {
    /// Blocks are erased.
    Erase,
    /// Blocks are overwritten, and then erased.
    Overwrite(Overwrite),
}

/// How blocks are overwritten.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Overwrite {
    /// How often, each time after an erase.
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

    /// Removes all data from the flash: blocks that are out of date or have gone bad are no exception. Nothing is mapped
    /// afterwards. No read or write is under way, and none begins before the end. `progress` is given the blocks that are
    /// done, and all.
    ///
    /// # Errors
    /// `PowerLost` after a power cut: once the FTL has started again, repeat the call, which then continues. Any other
    /// error is that of a block that still holds data, after all others are done.
    fn sanitize<'a>(&'a self, how: Sanitization, progress: &'a dyn Fn(u64, u64)) -> Later<'a, Result<(), MediaError>>;
}
