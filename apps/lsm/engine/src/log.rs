//! The log of changes. Records are put into chunks of whole blocks, each with all records since the last chunk: a chunk
//! is present after a crash or not. Chunks continue from one log to the next.
//!
//! A chunk begins with "LSML" (3:0), a CRC-32 of all of it (7:4), the number of its log (11:8), its blocks (15:12) and the number of its
//! records (19:16). All numbers are little-endian.

use nandscape_apps_store::StoreError;
use nandscape_apps_store::bytes::{Put, Reader, is_sealed, seal};

use crate::record::{self, Record};
use crate::storage::{BLOCK, RunInfo, Storage};

const MAGIC: u32 = u32::from_le_bytes(*b"LSML");
const CRC: usize = 4;
/// Bytes of a chunk before its records.
pub(crate) const HEAD: usize = 20;
/// Blocks that are read at a time.
const AHEAD: u32 = 64;

/// Records that are in no chunk yet.
#[derive(Default)]
pub(crate) struct Pending {
    bytes: Vec<u8>,
    records: u32,
}

impl Pending {
    pub(crate) fn put(&mut self, key: &[u8], value: Option<&[u8]>) {
        record::put(&mut self.bytes, key, value);
        self.records += 1;
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Blocks of the chunk that these make.
    pub(crate) fn blocks(&self) -> u32 {
        (HEAD + self.bytes.len()).div_ceil(BLOCK) as u32
    }

    /// Takes them as a chunk of a log.
    pub(crate) fn take(&mut self, log: u32) -> Vec<u8> {
        let Pending { bytes, records } = std::mem::take(self);
        let blocks = (HEAD + bytes.len()).div_ceil(BLOCK);
        let mut chunk = Vec::with_capacity(blocks * BLOCK);
        for number in [MAGIC, 0, log, blocks as u32, records] {
            chunk.u32(number);
        }
        chunk.extend_from_slice(&bytes);
        chunk.resize(blocks * BLOCK, 0);
        seal(&mut chunk, CRC);
        chunk
    }
}

/// The records at the beginning of some bytes, and the blocks that they take; `None` if they hold no chunk of the log.
/// If the chunk extends beyond the bytes, returns how many blocks it has.
fn open(log: u32, bytes: &[u8]) -> Result<(Vec<Record>, u32), Option<u32>> {
    let parse = || -> Option<Result<(Vec<Record>, u32), u32>> {
        let mut reader = Reader(bytes);
        let is_magic = reader.u32()? == MAGIC;
        let (_, there, blocks, count) = (reader.u32()?, reader.u32()?, reader.u32()?, reader.u32()?);
        if !is_magic || there != log || blocks == 0 {
            return None;
        }
        let Some(chunk) = bytes.get(..(blocks as usize).checked_mul(BLOCK)?) else { return Some(Err(blocks)) };
        let mut reader = Reader(&chunk[HEAD..]);
        let records: Option<Vec<Record>> = (0..count).map(|_| record::take(&mut reader)).collect();
        Some(Ok((records.filter(|_| is_sealed(chunk, CRC))?, blocks)))
    };
    parse().ok_or(None)?.map_err(Some)
}

/// All records of a log, in their order.
pub(crate) async fn replay(storage: &impl Storage, info: RunInfo) -> Result<Vec<Record>, StoreError> {
    let (mut records, mut at) = (Vec::new(), 0);
    let (mut bytes, mut read) = (Vec::new(), 0);
    loop {
        match open(info.id, &bytes) {
            Ok((some, blocks)) => {
                records.extend(some);
                at += blocks;
                bytes.drain(..blocks as usize * BLOCK);
            }
            Err(needs) => {
                let there = (bytes.len() / BLOCK) as u32;
                let is_short = needs.map_or(there == 0, |blocks| blocks <= info.blocks - at);
                let count = AHEAD.max(needs.map_or(0, |blocks| blocks.saturating_sub(there))).min(info.blocks - read);
                if !is_short || count == 0 {
                    return Ok(records);
                }
                bytes.extend(storage.read(info.id, read, count).await?);
                read += count;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_is_whole_or_not_there() {
        let mut pending = Pending::default();
        (0..40u8).for_each(|number| pending.put(&[number], Some(&[number; 200])));
        pending.put(b"gone", None);
        let blocks = pending.blocks();
        let chunk = pending.take(9);
        assert_eq!((chunk.len(), pending.len()), (blocks as usize * BLOCK, 0));
        let (records, took) = open(9, &chunk).unwrap();
        assert_eq!((records.len(), took), (41, blocks));
        assert_eq!(open(8, &chunk), Err(None), "a chunk of another log");
        assert_eq!(open(9, &chunk[..BLOCK]), Err(Some(blocks)), "more of it lies behind");
        for at in (0..chunk.len()).step_by(97) {
            let mut torn = chunk.clone();
            torn[at] ^= 1;
            assert!(open(9, &torn).is_err(), "byte {at}");
        }
    }
}
