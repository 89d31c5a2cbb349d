//! P4-MPE (OX table 5.5): the places of a table's fragments in flash, for a table too large for memory.
//!
//! | OX | here |
//! |---|---|
//! | CREATE | the construction of the component |
//! | GET, UPDATE | [`Fragments::get`], [`Fragments::update`] |
//! | PERSIST | [`Fragments::take_dirty`] and [`Fragments::fragment`], or [`Fragments::encode`]; the FTL writes the bytes |
//! | LOAD | [`Fragments::load`], or [`Fragments::decode`]; the FTL reads the bytes |

use nandscape_device_media::PageId;

/// The locations of a table's fragments, one page each. This table is itself written in fragments.
pub trait Fragments {
    /// GET: where a fragment is; `None` if it was never written.
    fn get(&self, index: u32) -> Option<PageId>;

    /// UPDATE: a fragment has been written elsewhere. Returns where it was.
    fn update(&mut self, index: u32, to: Option<PageId>) -> Option<PageId>;

    /// Number of locations.
    fn len(&self) -> u32;

    /// Whether the table is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of fragments that this table is written in.
    fn fragments(&self) -> u32;

    /// The fragments of this table that were changed since the last call.
    fn take_dirty(&mut self) -> Vec<u32>;

    /// PERSIST: a fragment of this table in bytes.
    fn fragment(&self, index: u32) -> Vec<u8>;

    /// LOAD: takes over a fragment of this table that was read from flash.
    fn load(&mut self, index: u32, bytes: &[u8]);

    /// PERSIST: all locations in bytes.
    fn encode(&self) -> Vec<u8>;

    /// LOAD: takes over all locations from bytes. Returns whether the number of locations was right.
    fn decode(&mut self, bytes: &[u8]) -> bool;

    /// Bytes of memory.
    fn memory(&self) -> usize;
}
