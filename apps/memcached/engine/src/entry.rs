//! An item in the index.

use std::rc::Rc;

use crate::item::{Access, Item, Marks};
use crate::log::Spot;

/// An item in the index.
pub(crate) struct Entry {
    pub(crate) version: u64,
    pub(crate) flags: u32,
    /// Seconds since 1970; 0 is never.
    pub(crate) expiry: u64,
    pub(crate) len: u32,
    pub(crate) value: Option<Rc<[u8]>>,
    /// Where it is; `None` before it was packed.
    pub(crate) spot: Option<Spot>,
    /// Whether its present version waits to be packed.
    pub(crate) is_unpacked: bool,
    /// Whether it goes to a bucket. Then it is here while its change waits, and as a copy while memory has room.
    pub(crate) is_small: bool,
    /// Chunks on their way that contain it: of a version few.
    pub(crate) pins: u8,
    pub(crate) marks: Marks,
    /// When it was last asked for, in seconds since 1970.
    pub(crate) accessed: u64,
    pub(crate) is_fetched: bool,
    /// Asked for since the cache last looked at it, and since its segment was written.
    pub(crate) is_recent: bool,
    pub(crate) is_hot: bool,
}

impl Entry {
    /// It with its value, as it was before this access.
    pub(crate) fn item(&self, value: Rc<[u8]>) -> Item {
        let Entry { flags, expiry, version, accessed, is_fetched, marks, .. } = *self;
        Item { flags, expiry, version, value, accessed, is_fetched, marks }
    }

    /// Notes an access.
    pub(crate) fn count(&mut self, access: Access, now_s: u64) {
        if access == Access::Counts {
            (self.accessed, self.is_fetched, self.is_recent, self.is_hot) = (now_s, true, true, true);
        }
    }
}

/// Bytes of memory of an item in the index without its key: the entry, the hash, pointer and counts of its key, and the room that a tree leaves
/// between entries, a third (nodes are between half full and full).
pub(crate) const ENTRY_BYTES: u64 = (size_of::<Entry>() + size_of::<(u64, Rc<[u8]>)>()) as u64 * 4 / 3 + 16;
