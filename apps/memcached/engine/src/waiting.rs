//! What waits to be packed, and chunks that wait for their drives.

use std::cell::Cell;
use std::rc::Rc;

use crate::record::record_bytes;

/// Bytes of the counts of a shared key.
const COUNTS: usize = 2 * size_of::<usize>();

/// What is an item for the log.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Name {
    /// The item of a key.
    Key(Rc<[u8]>),
    /// A bucket of small items.
    Bucket(u32),
}

/// What is packed again before a segment is given up.
#[derive(Clone, Debug)]
pub(crate) enum Move {
    /// An item.
    Item(Name),
    /// That items of a key are void that are older than a version, while its bucket may have one: the record that said so is given up.
    Void(Rc<[u8]>, u64),
}

/// What waits to be packed. What is packed of a key is its state then: later changes are packed in the place of the first. If it has no item
/// then, items of older versions than the given one are void.
#[derive(Clone, Debug)]
pub(crate) enum Queued {
    /// The item of a key, or its removal.
    Key(Rc<[u8]>, u64),
    /// The time at which the item of a key expires.
    Touch(Rc<[u8]>, u64),
    /// The bucket of a key, and that its items outside of buckets are void, if that is to be written.
    Small(Rc<[u8]>),
    /// The removal of all items. It replaces this many waiting changes.
    Clear(u64),
}

impl Queued {
    /// Bytes of memory of its place: what is queued of one key many times is in the index once.
    pub(crate) fn bytes(&self) -> u64 {
        let key = match self {
            Queued::Key(key, _) | Queued::Touch(key, _) | Queued::Small(key) => key.len(),
            Queued::Clear(_) => 0,
        };
        (size_of::<Queued>() + COUNTS + key) as u64
    }
}

impl Move {
    /// Bytes of its record, if that says that others are void.
    pub(crate) fn void_bytes(&self) -> usize {
        match self {
            Move::Item(_) => 0,
            Move::Void(key, _) => record_bytes(key.len(), 0),
        }
    }
}

/// A chunk on its way to the drives.
pub(crate) struct Chunk {
    pub(crate) segment: u64,
    /// Its place on each drive of the pair, in bytes.
    pub(crate) start: u64,
    /// Whether it is the first of its segment.
    pub(crate) is_first: bool,
    /// What each drive gets; one, if all get the same.
    pub(crate) images: Vec<Vec<u8>>,
    /// Items in it with their versions, which stay in memory until it is on all replicas. Buckets have a number in place of a version.
    pub(crate) items: Vec<(Name, u64)>,
    /// Changes and moves that were packed before it.
    pub(crate) changes_before: u64,
    pub(crate) moves_before: u64,
    pub(crate) tail: u64,
    /// Replicas that do not have it.
    pub(crate) missing: Cell<usize>,
}

impl Chunk {
    /// What a drive of the group gets.
    pub(crate) fn image(&self, drive: usize) -> &[u8] {
        self.images.get(drive).or(self.images.first()).map_or(&[], Vec::as_slice)
    }

    /// Bytes of memory of its images.
    pub(crate) fn bytes(&self) -> u64 {
        self.images.iter().map(|image| image.len() as u64).sum()
    }

    /// Bytes of memory of the names of its items.
    pub(crate) fn name_bytes(&self) -> u64 {
        size_of_val(&*self.items) as u64
    }
}
