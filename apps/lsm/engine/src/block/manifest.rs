//! The manifest as bytes, little-endian: "LSMM" (3:0), a CRC-32 of the manifest (7:4), its bytes (11:8), the next
//! number of a run (15:12), the store's identifier (23:16), a sequence number (31:24), the next order (39:32), the
//! number of runs (43:40). For each run follow its number (4), level (4), order (8), blocks (4), the number of its
//! chunks (4), and each chunk (4). The rest of the last block is zeros. A change of the runs takes effect with the
//! manifest that contains it.

use std::collections::BTreeMap;

use nandscape_apps_store::bytes::{Put, Reader, is_sealed, seal};

use crate::storage::{BLOCK, RunInfo};

const MAGIC: u32 = u32::from_le_bytes(*b"LSMM");
const CRC: usize = 4;
const HEAD: u64 = 44;
const ENTRY: u64 = 24;

/// A run on the drive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    pub(super) level: u8,
    pub(super) order: u64,
    /// Its maximum blocks; of a sealed run, its actual blocks.
    pub(super) blocks: u32,
    /// Blocks that were written since the opening; not in the manifest.
    pub(super) written: u32,
    pub(super) chunks: Vec<u32>,
}

impl Entry {
    pub(super) fn info(&self, id: u32) -> RunInfo {
        RunInfo { id, level: self.level, order: self.order, blocks: self.blocks }
    }
}

/// See the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Manifest {
    pub(super) id: u64,
    pub(super) sequence: u64,
    pub(super) next_id: u32,
    pub(super) next_order: u64,
    pub(super) runs: BTreeMap<u32, Entry>,
}

impl Manifest {
    /// No runs.
    pub(super) fn new(id: u64) -> Manifest {
        Manifest { id, sequence: 0, next_id: 1, next_order: 1, runs: BTreeMap::new() }
    }

    /// The most bytes of a manifest for a number of chunks: each is in a separate run then.
    pub(super) fn most_bytes(chunks: u64) -> u64 {
        HEAD + chunks * (ENTRY + 4)
    }

    /// In whole blocks.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.u32(MAGIC);
        bytes.u64(0);
        bytes.u32(self.next_id);
        bytes.u64(self.id);
        bytes.u64(self.sequence);
        bytes.u64(self.next_order);
        bytes.u32(self.runs.len() as u32);
        for (id, entry) in &self.runs {
            bytes.u32(*id);
            bytes.u32(entry.level.into());
            bytes.u64(entry.order);
            bytes.u32(entry.blocks);
            bytes.u32(entry.chunks.len() as u32);
            entry.chunks.iter().for_each(|chunk| bytes.u32(*chunk));
        }
        let len = bytes.len() as u32;
        bytes[8..12].copy_from_slice(&len.to_le_bytes());
        seal(&mut bytes, CRC);
        bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
        bytes
    }

    /// The manifest in these bytes, if it is whole.
    pub(super) fn read(bytes: &[u8]) -> Option<Manifest> {
        let len = u32::from_le_bytes(*bytes.get(8..12)?.first_chunk()?);
        let bytes = bytes.get(..len as usize).filter(|bytes| bytes.len() as u64 >= HEAD)?;
        let mut reader = Reader(bytes);
        let is_right = reader.u32()? == MAGIC && is_sealed(bytes, CRC);
        let (_, next_id, id, sequence, next_order) =
            (reader.u64()?, reader.u32()?, reader.u64()?, reader.u64()?, reader.u64()?);
        let mut runs = BTreeMap::new();
        for _ in 0..reader.u32().filter(|_| is_right)? {
            let (run, level, order, blocks, count) =
                (reader.u32()?, reader.u32()?, reader.u64()?, reader.u32()?, reader.u32()?);
            let chunks = (0..count).map(|_| reader.u32()).collect::<Option<_>>()?;
            let level = u8::try_from(level).ok()?;
            runs.insert(run, Entry { level, order, blocks, written: blocks, chunks });
        }
        Some(Manifest { id, sequence, next_id, next_order, runs })
    }

    /// Whether bytes that are no manifest began to be one.
    pub(super) fn is_torn(bytes: &[u8]) -> bool {
        bytes.starts_with(&MAGIC.to_le_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_is_read_again_and_any_changed_byte_is_noticed() {
        let mut manifest = Manifest { sequence: 7, next_id: 12, next_order: 40, ..Manifest::new(5) };
        let entry = |chunks| Entry { level: 3, order: 8, blocks: 300, written: 300, chunks };
        manifest.runs = BTreeMap::from([(3, entry(vec![9, 8])), (11, entry(vec![]))]);
        let bytes = manifest.bytes();
        assert_eq!((bytes.len(), Manifest::read(&bytes)), (BLOCK, Some(manifest.clone())));
        let len = HEAD as usize + 2 * ENTRY as usize + 8;
        for at in 0..len {
            let mut torn = bytes.clone();
            torn[at] ^= 16;
            assert_eq!(Manifest::read(&torn), None, "byte {at}");
            assert_eq!(Manifest::read(&bytes[..at]), None);
        }
        assert_eq!(Manifest::read(&[0; BLOCK]), None);
    }
}
