//! The records of the log: the twelve kinds of OX table 6.2, in 64 bytes each.
//!
//! | bytes | what |
//! |---|---|
//! | 0..8 | timestamp: the number of the record, which grows by one from record to record |
//! | 8 | kind |
//! | 9..16 | zero |
//! | 16..48 | four numbers; which they are depends on the kind |
//! | 48..64 | zero |
//!
//! A record is appended when the tables are changed in memory, with the old and the new location, so that the log is the exact
//! history of the tables. The thesis appends it before the data is written, and removes it where that fails.

use nandscape_device_media::{BlockId, PageId};

use super::entry::{Entry, page_from_raw, page_to_raw};

/// A change of the tables.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Record {
    /// Fills a page up.
    Padding,
    /// The host has written, deallocated or spoilt a unit; transaction 0 is none.
    UserWrite(Remap),
    /// A fragment of the map was written.
    MapLarge(Moved),
    /// A fragment of the table of fragments of the map was written.
    MapSmall(Moved),
    /// The collector has moved a unit.
    GcWrite(Remap),
    /// The collector has moved a fragment of the map.
    GcMapping(Moved),
    /// A program has failed: the page's block is closed.
    Amendment(PageId),
    /// A transaction is complete.
    Commit {
        /// Its number.
        transaction: u64,
        /// Its records.
        records: u64,
    },
    /// A fragment of the table of blocks was written.
    ChunkMetadata(Moved),
    /// Pages that were handed out are not used: `pages` of them from the first on.
    AbortWrite {
        /// The first.
        page: PageId,
        /// How many.
        pages: u32,
    },
    /// A block was collected.
    RecycleChunk(BlockId),
}

/// A unit whose entry in the map has changed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Remap {
    /// The unit.
    pub lpn: u32,
    /// Its entry before.
    pub old: Entry,
    /// Its entry from now on.
    pub new: Entry,
    /// The transaction that it is part of; 0 is none.
    pub transaction: u64,
}

/// A fragment of a table that is somewhere else in flash from now on.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Moved {
    /// Its number.
    pub index: u32,
    /// Where it was.
    pub old: Option<PageId>,
    /// Where it is.
    pub new: Option<PageId>,
}

/// Bytes of a record.
pub const RECORD: usize = 64;

/// The number of the kind that is not a record: the first 64 bytes of a page of the log.
pub const CHAIN_POINTER: u8 = 2;

impl Record {
    /// The record in its bytes.
    pub fn encode(&self, timestamp: u64) -> [u8; RECORD] {
        let (kind, numbers) = self.numbers();
        let mut bytes = [0; RECORD];
        bytes[..8].copy_from_slice(&timestamp.to_le_bytes());
        bytes[8] = kind;
        for (place, number) in bytes[16..48].chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    /// Timestamp and record of bytes; `None` if they are no record.
    pub fn decode(bytes: &[u8]) -> Option<(u64, Record)> {
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        let [a, b, c, d] = [16, 24, 32, 40].map(number);
        let remap = Remap { lpn: a as u32, old: Entry::from_raw(b), new: Entry::from_raw(c), transaction: d };
        let moved = Moved { index: a as u32, old: page_from_raw(b), new: page_from_raw(c) };
        let record = match bytes[8] {
            1 => Record::Padding,
            3 => Record::UserWrite(remap),
            4 => Record::MapLarge(moved),
            5 => Record::MapSmall(moved),
            6 => Record::GcWrite(remap),
            7 => Record::GcMapping(moved),
            8 => Record::Amendment(page_from_raw(a)?),
            9 => Record::Commit { transaction: a, records: b },
            10 => Record::ChunkMetadata(moved),
            11 => Record::AbortWrite { page: page_from_raw(a)?, pages: b as u32 },
            12 => Record::RecycleChunk(BlockId(a as u32)),
            _ => return None,
        };
        Some((number(0), record))
    }

    /// The name of its kind, as the thesis has it.
    pub fn name(&self) -> &'static str {
        match self {
            Record::Padding => "padding",
            Record::UserWrite(_) => "user write",
            Record::MapLarge(_) => "map_L",
            Record::MapSmall(_) => "map_S",
            Record::GcWrite(_) => "GC write",
            Record::GcMapping(_) => "GC mapping",
            Record::Amendment(_) => "amendment",
            Record::Commit { .. } => "commit",
            Record::ChunkMetadata(_) => "chunk metadata",
            Record::AbortWrite { .. } => "abort write",
            Record::RecycleChunk(_) => "recycle chunk",
        }
    }

    fn numbers(&self) -> (u8, [u64; 4]) {
        let remap = |of: &Remap| [of.lpn.into(), of.old.to_raw(), of.new.to_raw(), of.transaction];
        let moved = |of: &Moved| [of.index.into(), page_to_raw(of.old), page_to_raw(of.new), 0];
        match self {
            Record::Padding => (1, [0; 4]),
            Record::UserWrite(of) => (3, remap(of)),
            Record::MapLarge(of) => (4, moved(of)),
            Record::MapSmall(of) => (5, moved(of)),
            Record::GcWrite(of) => (6, remap(of)),
            Record::GcMapping(of) => (7, moved(of)),
            Record::Amendment(page) => (8, [page_to_raw(Some(*page)), 0, 0, 0]),
            Record::Commit { transaction, records } => (9, [*transaction, *records, 0, 0]),
            Record::ChunkMetadata(of) => (10, moved(of)),
            Record::AbortWrite { page, pages } => (11, [page_to_raw(Some(*page)), u64::from(*pages), 0, 0]),
            Record::RecycleChunk(block) => (12, [block.0.into(), 0, 0, 0]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_device_media::UnitId;

    #[test]
    fn every_kind_is_read_as_it_was_written() {
        let remap = Remap { lpn: 7, old: Entry::new(Some(UnitId(3)), 5), new: Entry::LOST, transaction: 1 << 40 };
        let moved = Moved { index: 9, old: None, new: Some(PageId(0)) };
        let all = [
            Record::Padding,
            Record::UserWrite(remap),
            Record::MapLarge(moved),
            Record::MapSmall(moved),
            Record::GcWrite(remap),
            Record::GcMapping(moved),
            Record::Amendment(PageId(8)),
            Record::Commit { transaction: 77, records: 3 },
            Record::ChunkMetadata(moved),
            Record::AbortWrite { page: PageId(4), pages: 2 },
            Record::RecycleChunk(BlockId(6)),
        ];
        let mut kinds: Vec<u8> = all.iter().map(|record| record.encode(0)[8]).collect();
        for record in all {
            assert_eq!(Record::decode(&record.encode(u64::MAX)), Some((u64::MAX, record)));
        }
        kinds.push(CHAIN_POINTER);
        kinds.sort_unstable();
        assert_eq!(kinds, (1..=12).collect::<Vec<_>>());
        assert_eq!(Record::decode(&[0; RECORD]), None);
        assert_eq!(Record::decode(&[0xff; RECORD]), None);
    }
}
