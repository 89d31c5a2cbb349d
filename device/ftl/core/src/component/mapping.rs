//! P5-MAP (OX table 5.6): from logical units to where their data is.
//!
//! A table answers at once: with a location, or with a [`Miss`] that names what must be read from flash first. The FTL
//! reads it, hands it to [`Mapping::loaded`], and asks again.
//!
//! | OX | here |
//! |---|---|
//! | INIT | the construction of the component |
//! | EXIT | a checkpoint, then the drop of it |
//! | READ, UPSERT | [`Mapping::lookup`], [`Mapping::upsert`] |
//! | CLEAR | [`CachedMapping::unwritten`], and `begin_write` and `end_write` of each fragment that it names |
//!
//! A map larger than memory is a [`CachedMapping`] as well: it names what must leave memory, and what must be written
//! first.

use std::convert::Infallible;

use nandscape_device_media::PageId;

use super::Fragments;
use crate::address::Lpn;

/// Maps logical units.
pub trait Mapping {
    /// A part of the table that is not in memory; `Infallible` for a table that always is, which then costs nothing to
    /// ask.
    type Miss: Miss;

    /// The table's entry of a unit: at least the place of its data.
    type Value: Copy;

    /// READ.
    ///
    /// # Errors
    /// The part that must be loaded first.
    fn lookup(&self, lpn: Lpn) -> Result<Self::Value, Self::Miss>;

    /// A unit will soon be looked up.
    fn prefetch(&self, lpn: Lpn);

    /// UPSERT: moves a unit, and returns where it was.
    ///
    /// # Errors
    /// The part that must be loaded first.
    fn upsert(&mut self, lpn: Lpn, to: Self::Value) -> Result<Self::Value, Self::Miss>;

    /// A missing part was read from flash. It stays in memory at least until the next one is loaded.
    fn loaded(&mut self, miss: Self::Miss, bytes: &[u8]);

    /// Number of logical units.
    fn units(&self) -> u32;
}

/// A part of a table that must be read from flash.
pub trait Miss: Copy {
    /// The page that holds it.
    fn page(&self) -> PageId;

    /// Its length in bytes.
    fn bytes(&self) -> u32;
}

impl Miss for Infallible {
    fn page(&self) -> PageId {
        match *self {}
    }

    fn bytes(&self) -> u32 {
        match *self {}
    }
}

/// A fragment of a map that is not in memory.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct FragmentMiss {
    /// Its number.
    pub index: u32,
    /// The page that holds it.
    pub page: PageId,
    /// Its length in bytes.
    pub bytes: u32,
}

impl Miss for FragmentMiss {
    fn page(&self) -> PageId {
        self.page
    }

    fn bytes(&self) -> u32 {
        self.bytes
    }
}

/// The next step to make room for a fragment.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Eviction {
    /// Nothing: there is room.
    Room,
    /// This fragment must be written first.
    Write(u32),
    /// No fragment can be evicted: all are in use. The new one is added on top.
    Stuck,
}

/// A map in fragments of a page each, of which some are in memory.
pub trait CachedMapping: Mapping<Miss = FragmentMiss> {
    /// The fragment that a unit is in.
    fn fragment_of(&self, lpn: Lpn) -> u32;

    /// Makes room for a fragment, as far as that can be done at once.
    fn evict(&mut self, index: u32) -> Eviction;

    /// Keeps a fragment in memory: an existing one, or one that was never written.
    fn pin(&mut self, index: u32);

    /// Ends a call of [`CachedMapping::pin`].
    fn unpin(&mut self, index: u32);

    /// Whether a fragment is in memory.
    fn is_cached(&self, index: u32) -> bool;

    /// Whether a fragment is being written.
    fn is_writing(&self, index: u32) -> bool;

    /// CLEAR: the fragments in memory that were changed since they were written, or are being written. The FTL writes them
    /// ([`CachedMapping::begin_write`]); they stay in memory.
    fn unwritten(&self) -> Vec<u32>;

    /// The bytes of a fragment to be written, if it was changed.
    fn begin_write(&mut self, index: u32) -> Option<Vec<u8>>;

    /// The write of a fragment has ended.
    fn end_write(&mut self, index: u32);

    /// The write of a fragment has failed: it is as before.
    fn write_failed(&mut self, index: u32);

    /// A fragment cannot be read: all of its units are lost.
    fn lose(&mut self, index: u32);

    /// P4: where the fragments are (map_S).
    fn small(&self) -> &dyn Fragments;

    /// The same, for updating.
    fn small_mut(&mut self) -> &mut dyn Fragments;

    /// P4: where the fragments of that table are (map_T).
    fn tiny(&self) -> &dyn Fragments;

    /// The same, for updating.
    fn tiny_mut(&mut self) -> &mut dyn Fragments;

    /// Bytes of memory for fragments.
    fn cache_memory(&self) -> usize;

    /// Bytes of memory for all else.
    fn table_memory(&self) -> usize;
}
