//! The head of a slot's copy. It records what the slot holds, and which writes to slots were known to be whole when it
//! was written.

use super::SlotRecord;
use crate::durable::superblock::{Reader, Writer};

/// Bytes of a head.
pub(super) const HEAD: usize = 64;

/// The flags of a copy in its head, a bit each.
pub(super) mod flags {
    /// It is a separate write: it counts without a commit.
    pub(crate) const ALONE: u32 = 1;
    /// It holds nothing.
    pub(crate) const VOID: u32 = 2;
}

/// See the file.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Head {
    pub(super) record: SlotRecord,
    /// Bytes of data.
    pub(super) len: u32,
    /// See [`flags`].
    pub(super) flags: u32,
    pub(super) data_sum: u32,
    /// Writes to slots are numbered; this is the number of the write that wrote this slot. A void slot has the number of the last
    /// write before it was made void.
    pub(super) number: u64,
    /// All writes up to this number were whole when this one began.
    pub(super) whole: u64,
}

/// The bytes in the place of a head.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// Nothing was ever written.
    Zeros,
    /// A head.
    Whole(Head),
    /// Something else, which a truncated write does not leave.
    Damaged,
}

impl Head {
    pub(super) fn is(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    pub(super) fn encode(&self) -> [u8; HEAD] {
        let SlotRecord { slot, lpn, sequence, mask, was_lost } = self.record;
        let mut out = Writer(Vec::with_capacity(HEAD));
        [0, lpn].into_iter().for_each(|field| out.u32(field));
        [sequence, mask, was_lost].into_iter().for_each(|field| out.u64(field));
        [slot, self.len, self.flags, self.data_sum].into_iter().for_each(|field| out.u32(field));
        [self.number, self.whole].into_iter().for_each(|field| out.u64(field));
        let sum = crc32fast::hash(&out.0[4..]);
        out.0[..4].copy_from_slice(&sum.to_le_bytes());
        out.0.try_into().expect("the fields are as long")
    }

    /// Reads the head of a slot.
    pub(super) fn decode(slot: u32, bytes: &[u8; HEAD]) -> Place {
        if *bytes == [0; HEAD] {
            return Place::Zeros;
        }
        let mut from = Reader(bytes);
        let [sum, lpn] = [(); 2].map(|()| from.u32());
        let [sequence, mask, was_lost] = [(); 3].map(|()| from.u64());
        let [of, len, flags, data_sum] = [(); 4].map(|()| from.u32());
        let [number, whole] = [(); 2].map(|()| from.u64());
        let record = SlotRecord { slot, lpn, sequence, mask, was_lost };
        match crc32fast::hash(&bytes[4..]) == sum && of == slot {
            true => Place::Whole(Head { record, len, flags, data_sum, number, whole }),
            false => Place::Damaged,
        }
    }
}
