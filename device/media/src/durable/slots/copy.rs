//! The form of a slot's copy: head, data, and the same head once more in the copy's last sector.
//!
//! A kill leaves the first part of the new content, followed by the copy's earlier content. It leaves no incomplete
//! head.
//!
//! | head before | head behind | data | the copy |
//! |---|---|---|---|
//! | void | any | any | is void |
//! | whole | any | whole | is whole |
//! | whole | the same | damaged | is damaged |
//! | whole | damaged | damaged | is damaged |
//! | whole | another, or none | damaged | may have been cut off |
//! | none | whole | any | is damaged |
//! | none | none, or damaged | any | is void |
//! | damaged | whole | any | is damaged, and may have been void |
//! | damaged | none | any | is void: it was never written |
//! | damaged | damaged | any | may be anything: the file is rejected |
//!
//! A write that may have been cut off was complete if a later head records it as whole: then the copy is damaged.

use super::head::{HEAD, Head, Place, flags};
use super::{FoundSlot, SECTOR};

/// See the file.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Found {
    Void,
    /// It is whole.
    Whole(Head, Vec<u8>),
    /// Its data is lost.
    Damaged(Head),
    /// It was cut off, or is damaged.
    CutOff(Head),
    /// Both heads are damaged.
    Unknown,
}

/// The records of all writes to slots in the heads of a copy.
#[derive(Copy, Clone, Default)]
pub(super) struct Numbers {
    /// The last write that is known.
    pub(super) last: u64,
    /// All writes up to this one were whole.
    pub(super) whole: u64,
}

impl Numbers {
    pub(super) fn see(&mut self, number: u64, whole: u64) {
        self.last = self.last.max(number).max(whole);
        self.whole = self.whole.max(whole);
    }
}

/// Reads a copy of a slot.
pub(super) fn look(slot: u32, bytes: &[u8], numbers: &mut Numbers) -> Found {
    let behind = bytes.len() - SECTOR as usize;
    let place = |at: usize| Head::decode(slot, bytes[at..].first_chunk::<HEAD>().expect("a copy has both heads"));
    let (before, behind) = (place(0), place(behind));
    for place in [before, behind] {
        if let Place::Whole(head) = place {
            numbers.see(head.number, head.whole);
        }
    }
    let data = |head: Head| {
        let data = bytes[HEAD..bytes.len() - SECTOR as usize].get(..head.len as usize);
        data.filter(|data| crc32fast::hash(data) == head.data_sum).map(<[u8]>::to_vec)
    };
    match (before, behind) {
        (Place::Whole(head), _) if head.is(flags::VOID) => Found::Void,
        (Place::Whole(head), behind) => match (data(head), behind) {
            (Some(data), _) => Found::Whole(head, data),
            (None, Place::Damaged) => Found::Damaged(head),
            (None, Place::Zeros) => Found::CutOff(head),
            (None, Place::Whole(same)) if same == head => Found::Damaged(head),
            (None, Place::Whole(other)) if other.number > head.number => Found::CutOff(other),
            (None, Place::Whole(_)) => Found::CutOff(head),
        },
        (Place::Zeros | Place::Damaged, Place::Whole(head)) => Found::Damaged(head),
        (Place::Damaged, Place::Damaged) => Found::Unknown,
        (Place::Zeros, Place::Zeros | Place::Damaged) | (Place::Damaged, Place::Zeros) => Found::Void,
    }
}

impl Found {
    /// Decides whether the copy was cut off. If it was, it is void.
    pub(super) fn settle(self, whole: u64) -> Found {
        match self {
            Found::CutOff(head) if head.number <= whole => Found::Damaged(head),
            Found::CutOff(_) => Found::Void,
            other => other,
        }
    }

    /// The slot as this copy has it.
    pub(super) fn slot(self) -> Option<(Head, FoundSlot)> {
        match self {
            Found::Whole(head, data) => Some((head, FoundSlot { record: head.record, data: Some(data) })),
            Found::Damaged(head) => Some((head, FoundSlot { record: head.record, data: None })),
            Found::Void | Found::CutOff(_) | Found::Unknown => None,
        }
    }
}
