//! The records of a page and of a block. A record's checksum covers its place as well, so no record is mistaken for
//! another. A page's record names the erase of its block after which it was written: older ones are void.

use smallvec::SmallVec;

use super::superblock::{Reader, Writer};
use crate::geometry::{BlockId, PageId};
use crate::image::OobBytes;

const PAGE_HEAD: usize = 16;
const UNIT: usize = 24;
/// Bytes of a block's record.
pub(crate) const BLOCK: usize = 16;

/// The state of a page that was programmed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum PageStatus {
    /// It holds the programmed data.
    Programmed,
    /// Its program failed or was torn: it cannot be read.
    Unreadable,
}

/// The record of a page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PageRecord {
    /// Its state.
    pub status: PageStatus,
    /// Erases of its block before it was programmed.
    pub generation: u32,
    /// Its units.
    pub units: SmallVec<[UnitRecord; 4]>,
}

/// The record of a unit.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct UnitRecord {
    /// The tag of its out-of-band area.
    pub tag: u32,
    /// The rest of that area.
    pub oob: OobBytes,
    /// Bytes of its data; 0 where it has none.
    pub len: u32,
    /// Checksum of its data.
    pub sum: u32,
}

/// Bytes of a page's record: a power of two, so that few of them lie across a boundary of 4 KiB.
pub(crate) fn page_stride(units: u32) -> u64 {
    (PAGE_HEAD + units as usize * UNIT).next_power_of_two() as u64
}

impl PageRecord {
    pub(crate) fn encode(&self, page: PageId) -> SmallVec<[u8; 128]> {
        let mut out = Writer(Vec::with_capacity(128));
        let status = match self.status {
            PageStatus::Programmed => 1,
            PageStatus::Unreadable => 2,
        };
        [0, status, self.generation, self.units.len() as u32].into_iter().for_each(|field| out.u32(field));
        for unit in &self.units {
            out.u32(unit.tag);
            out.0.extend(unit.oob);
            out.u32(unit.len);
            out.u32(unit.sum);
        }
        let sum = checksum(page.0, &out.0[4..]);
        out.0[..4].copy_from_slice(&sum.to_le_bytes());
        SmallVec::from_vec(out.0)
    }

    /// `None` without a whole record.
    pub(crate) fn decode(page: PageId, bytes: &[u8]) -> Option<PageRecord> {
        let mut from = Reader(bytes);
        let [sum, status, generation, units] = [(); 4].map(|()| from.u32());
        let status = match status {
            1 => PageStatus::Programmed,
            2 => PageStatus::Unreadable,
            _ => return None,
        };
        let end = PAGE_HEAD.checked_add((units as usize).checked_mul(UNIT)?)?;
        if checksum(page.0, bytes.get(4..end)?) != sum {
            return None;
        }
        let units = bytes[PAGE_HEAD..end].chunks_exact(UNIT).map(|unit| {
            let mut from = Reader(unit);
            let tag = from.u32();
            let (oob, rest) = from.0.split_first_chunk().expect("a chunk is as long");
            let mut from = Reader(rest);
            UnitRecord { tag, oob: *oob, len: from.u32(), sum: from.u32() }
        });
        Some(PageRecord { status, generation, units: units.collect() })
    }
}

/// The record of a block.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct BlockRecord {
    pub(crate) erases: u32,
    /// The epoch in which it changed last.
    pub(crate) epoch: u32,
    /// See [`marks`].
    pub(crate) marks: u32,
}

/// Marks of blocks, set by an FTL or by the flash itself.
pub(crate) mod marks {
    /// It has gone bad.
    pub(crate) const BAD: u32 = 1;
    /// A program in it failed: it will be emptied, and is bad then.
    pub(crate) const RETIRING: u32 = 2;
    /// It went bad in the life that the drive had before its first start.
    pub(crate) const GROWN_BAD: u32 = 4;
}

impl BlockRecord {
    pub(crate) fn encode(self, block: BlockId) -> [u8; BLOCK] {
        let mut out = [0; BLOCK];
        for (field, place) in [self.erases, self.epoch, self.marks].into_iter().zip(out[4..].chunks_exact_mut(4)) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        let sum = checksum(block.0, &out[4..]);
        out[..4].copy_from_slice(&sum.to_le_bytes());
        out
    }

    /// Zeros are the record of a block that was never used.
    ///
    /// # Errors
    /// When it is damaged.
    pub(crate) fn decode(block: BlockId, bytes: &[u8]) -> Result<BlockRecord, ()> {
        if bytes.iter().all(|byte| *byte == 0) {
            return Ok(BlockRecord::default());
        }
        let mut from = Reader(bytes);
        let sum = from.u32();
        match checksum(block.0, &bytes[4..BLOCK]) == sum {
            true => Ok(BlockRecord { erases: from.u32(), epoch: from.u32(), marks: from.u32() }),
            false => Err(()),
        }
    }
}

fn checksum(place: u32, bytes: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&place.to_le_bytes());
    sum.update(bytes);
    sum.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_they_were_written_and_nowhere_else() {
        let unit = |tag| UnitRecord { tag, oob: [tag as u8; 12], len: 4_096, sum: !tag };
        let record = PageRecord { status: PageStatus::Programmed, generation: 3, units: (5..9).map(unit).collect() };
        let bytes = record.encode(PageId(7));
        assert!(bytes.len() as u64 <= page_stride(4) && page_stride(4) == 128);
        assert_eq!(PageRecord::decode(PageId(7), &bytes), Some(record));
        assert_eq!(PageRecord::decode(PageId(8), &bytes), None);
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            assert_eq!(PageRecord::decode(PageId(7), &flipped), None, "byte {at}");
        }
        assert_eq!(PageRecord::decode(PageId(0), &[0; 128]), None);
        let block = BlockRecord { erases: 1, epoch: 2, marks: marks::BAD };
        assert_eq!(BlockRecord::decode(BlockId(3), &block.encode(BlockId(3))), Ok(block));
        assert_eq!(BlockRecord::decode(BlockId(4), &block.encode(BlockId(3))), Err(()));
        assert_eq!(BlockRecord::decode(BlockId(4), &[0; BLOCK]), Ok(BlockRecord::default()));
    }
}
