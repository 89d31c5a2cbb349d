//! Tables in flash: changed parts must be written, and missing parts loaded.

use super::Later;
use crate::address::Extent;

/// Parts of the map that stay in memory until this is dropped ([`StoredTables::hold_map`]).
pub struct Held {
    _parts: Box<dyn std::any::Any>,
}

impl Held {
    /// `parts` releases them when it is dropped.
    pub fn new(parts: impl std::any::Any) -> Held {
        Held { _parts: Box::new(parts) }
    }
}

/// An FTL whose tables are in flash.
pub trait StoredTables {
    /// Loads the map of the extents into memory, and keeps it there until the result is dropped. Reads of the extents
    /// that begin at one instant are looked up at that instant, so they see all of a transaction or nothing.
    fn hold_map<'a>(&'a self, extents: &'a [Extent]) -> Later<'a, Option<Held>>;

    /// Waits until a power cut does not undo the deallocations before it; a cut meanwhile may still do so.
    fn settle_deallocations<'a>(&'a self) -> Later<'a, ()>;

    /// The drive is about to be turned off, and everything accepted was flushed: writes the state that the next start would
    /// otherwise have to reconstruct. The drive may continue.
    fn shut_down<'a>(&'a self) -> Later<'a, ()>;
}
