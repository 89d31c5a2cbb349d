//! P4-MPE (OX table 5.5): where the fragments of a table are in flash, for a table too large for memory.
//!
//! PERSIST and LOAD wait for flash: the FTL does them, with what [`Fragments::dirty`] and [`Fragments::get`] say.

use nandscape_device_media::PageId;

/// The locations of a table's fragments, one page each.
pub trait Fragments {
    /// GET: where a fragment is; `None` if it was never written.
    fn get(&self, index: u32) -> Option<PageId>;

    /// UPDATE: a fragment has been written elsewhere. Returns where it was.
    fn update(&mut self, index: u32, to: Option<PageId>) -> Option<PageId>;

    /// Number of fragments.
    fn len(&self) -> u32;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
