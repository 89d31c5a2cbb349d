//! Records as bytes, and their places: the last blocks of each member, in this order.
//!
//! | what | bytes |
//! |---|---|
//! | the record of members, twice: generations alternate | 2 x page |
//! | the bitmap of regions, twice: numbers alternate | 2 x page |
//! | slots of the journal of data: a page that identifies its contents, and a chunk | 32 x (page + chunk) |
//!
//! A page is a mapping unit of the drives, at least 4 KiB. Each record ends with a checksum over itself. A record
//! torn by a crash does not count, and the other of its pair does.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Slots of the journal of data.
pub(crate) const SLOTS: u64 = 32;
/// The most regions: the capacity of a bitmap of 512 bytes after its head.
pub(crate) const REGIONS: u64 = 3_072;
const MAGIC: [u8; 8] = *b"NANDARRY";

/// The place of records on a member.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Form {
    /// The first block of the records.
    pub(crate) first: u64,
    /// Blocks of a page.
    pub(crate) page: u32,
    /// Blocks of a chunk.
    pub(crate) chunk: u32,
    pub(crate) lba_bytes: u32,
    /// Stripes of a region.
    pub(crate) region: u64,
}

/// Who belongs to an array.
#[derive(Copy, Clone, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct Record {
    pub(crate) magic: [u8; 8],
    pub(crate) version: U16,
    /// Number of the level: 0, 1, 5, 6 or 10.
    pub(crate) level: U16,
    pub(crate) members: U16,
    /// The number of this member; all ones for a spare.
    pub(crate) member: U16,
    pub(crate) uuid: [u8; 16],
    pub(crate) generation: U64,
    pub(crate) chunk: U64,
    /// Members that have failed or are not rebuilt, a bit each.
    pub(crate) missing: U32,
    pub(crate) crc: U32,
}

/// Regions that are being written.
#[derive(Copy, Clone, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct Bitmap {
    pub(crate) magic: [u8; 8],
    pub(crate) uuid: [u8; 16],
    pub(crate) number: U64,
    pub(crate) bits: [u8; REGIONS as usize / 8],
    pub(crate) reserved: [u8; 92],
    pub(crate) crc: U32,
}

const _: () = assert!(size_of::<Bitmap>() == 512);

/// The content of a journal slot of a stripe write.
#[derive(Copy, Clone, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct Slot {
    pub(crate) magic: [u8; 8],
    pub(crate) uuid: [u8; 16],
    pub(crate) number: U64,
    /// All numbers below this one are in place.
    pub(crate) tail: U64,
    pub(crate) stripe: U64,
    pub(crate) start: U32,
    pub(crate) blocks: U32,
    /// Members of the write, a bit each.
    pub(crate) mask: U32,
    /// 1: zeros, without data.
    pub(crate) zeros: U32,
    /// Of the data behind the page.
    pub(crate) data_crc: U32,
    pub(crate) crc: U32,
}

/// A record with its checksum as its last four bytes.
pub(crate) fn sealed<T: IntoBytes + Immutable>(record: &T, page_bytes: usize) -> Vec<u8> {
    let mut bytes = record.as_bytes().to_vec();
    let end = bytes.len() - 4;
    let crc = crc32fast::hash(&bytes[..end]);
    bytes[end..].copy_from_slice(&crc.to_le_bytes());
    bytes.resize(page_bytes, 0);
    bytes
}

/// The record that is sealed in bytes, if it is whole.
pub(crate) fn unsealed<T: FromBytes + Immutable + KnownLayout + Unaligned>(bytes: &[u8]) -> Option<T> {
    let (head, crc) = bytes.get(..size_of::<T>())?.split_at(size_of::<T>() - 4);
    if crc32fast::hash(head).to_le_bytes() != crc || head[..8] != MAGIC {
        return None;
    }
    T::read_from_prefix(bytes).ok().map(|(record, _)| record)
}

pub(crate) const fn magic() -> [u8; 8] {
    MAGIC
}

impl Record {
    /// Whether the creation of its array was completed: the first record is written before all members have one, and
    /// before any data.
    pub(crate) fn is_made(&self) -> bool {
        self.generation.get() > 1
    }

    /// Whether it is of a member that has taken part in the writes since: no spare, and none that is being rebuilt.
    pub(crate) fn has_gone_on(&self) -> bool {
        let member = self.member.get();
        member < self.members.get() && self.missing.get() & 1 << member == 0
    }
}

impl Form {
    /// The form on members of `blocks` blocks, and the blocks that are left for stripes.
    pub(crate) fn new(blocks: u64, lba_bytes: u32, unit_blocks: u32, chunk: u32) -> Option<Form> {
        let page = (4_096 / lba_bytes).max(unit_blocks).max(1);
        let page = page.next_multiple_of(unit_blocks);
        let size = 4 * u64::from(page) + SLOTS * u64::from(page + chunk);
        let first = blocks.checked_sub(size)? / u64::from(unit_blocks) * u64::from(unit_blocks);
        let stripes = first / u64::from(chunk);
        let region = stripes.div_ceil(REGIONS).max(1);
        (stripes > 0).then_some(Form { first, page, chunk, lba_bytes, region })
    }

    pub(crate) fn record(&self, generation: u64) -> u64 {
        self.first + generation % 2 * u64::from(self.page)
    }

    pub(crate) fn bitmap(&self, number: u64) -> u64 {
        self.first + (2 + number % 2) * u64::from(self.page)
    }

    pub(crate) fn slot(&self, number: u64) -> u64 {
        self.first + 4 * u64::from(self.page) + number % SLOTS * u64::from(self.page + self.chunk)
    }

    pub(crate) fn page_bytes(&self) -> usize {
        (self.page * self.lba_bytes) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_do_not_overlap_and_a_damaged_record_does_not_count() {
        let form = Form::new(10_000, 512, 8, 16).unwrap();
        let mut places: Vec<(u64, u64)> = vec![(0, form.first)];
        (0..2).for_each(|number| places.push((form.record(number), form.page.into())));
        (0..2).for_each(|number| places.push((form.bitmap(number), form.page.into())));
        (0..SLOTS).for_each(|number| places.push((form.slot(number), u64::from(form.page + form.chunk))));
        places.sort_unstable();
        assert!(places.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0));
        assert!(places.last().is_some_and(|(first, blocks)| first + blocks <= 10_000));
        assert_eq!(Form::new(100, 512, 8, 16), None);
        let slot = Slot { number: 7.into(), magic: MAGIC, ..Slot::read_from_bytes(&[0; size_of::<Slot>()]).unwrap() };
        let mut bytes = sealed(&slot, 4_096);
        assert_eq!(unsealed::<Slot>(&bytes).map(|slot| slot.number.get()), Some(7));
        bytes[30] ^= 1;
        assert_eq!(unsealed::<Slot>(&bytes), None);
    }
}
