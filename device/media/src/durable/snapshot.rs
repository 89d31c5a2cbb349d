//! Snapshots: the tables of an FTL, and how far each block was written, as of one instant. There is room for two, which are
//! written in turn; a snapshot counts once its header is written. It closes an epoch: of blocks whose record names a later one
//! it tells nothing new, and those are looked at when the file is opened.
//!
//! The FTL's part is in chunks, each with a checksum. Chunks of zeros are not written.

use std::io;

use super::disk::Disk;
use super::layout::Region;
use super::superblock::{Reader, Writer};
use crate::fault::MediaError;

/// Bytes of a chunk.
pub const CHUNK: u64 = 256 << 10;
const HEAD: u64 = 4_096;
const MAGIC: [u8; 8] = *b"SNAPSHOT";
/// Bytes of a chunk in the index: whether it was written, and its checksum.
const INDEXED: u64 = 8;
/// Bytes of a block: its erases, and its pages that were programmed.
const BLOCK: u64 = 8;

/// A whole snapshot.
pub(crate) struct Snapshot {
    pub(crate) epoch: u32,
    /// Tells the journal that follows it from that of an attempt that failed.
    pub(crate) nonce: u64,
    region: Region,
    /// Checksums of the chunks that were written.
    chunks: Vec<Option<u32>>,
    payload: u64,
    /// Erases of each block.
    pub(crate) erases: Vec<u32>,
    /// Pages of each block that were programmed.
    pub(crate) programmed: Vec<u32>,
}

fn index_bytes(payload: u64) -> u64 {
    (payload / CHUNK * INDEXED).next_multiple_of(HEAD)
}

fn block_bytes(blocks: u32) -> u64 {
    (u64::from(blocks) * BLOCK).next_multiple_of(HEAD)
}

/// Bytes of a snapshot's region, for `payload` bytes of the FTL, whole chunks.
pub(crate) fn region_bytes(blocks: u32, payload: u64) -> u64 {
    HEAD + index_bytes(payload) + block_bytes(blocks) + payload
}

impl Snapshot {
    /// Writes a snapshot; `fill` gives the chunk at an offset, whose bytes are zeros before. `last` writes what must be there
    /// before the snapshot counts.
    pub(crate) fn write(
        disk: &Disk,
        (epoch, nonce): (u32, u64),
        (erases, programmed): (Vec<u32>, Vec<u32>),
        payload: u64,
        fill: &mut dyn FnMut(u64, &mut [u8]),
        last: impl FnOnce() -> Result<(), MediaError>,
    ) -> Result<Snapshot, MediaError> {
        let region = disk.layout.snapshots[epoch as usize % 2];
        let blocks_at = region.at + HEAD + index_bytes(payload);
        let payload_at = blocks_at + block_bytes(erases.len() as u32);
        let (mut chunk, mut chunks, mut index) = (vec![0; CHUNK as usize], Vec::new(), Writer(Vec::new()));
        for at in (0..payload).step_by(CHUNK as usize) {
            chunk.fill(0);
            fill(at, &mut chunk);
            let sum = chunk.iter().any(|byte| *byte != 0).then(|| crc32fast::hash(&chunk));
            if sum.is_some() {
                disk.write(payload_at + at, &chunk)?;
            }
            index.u32(sum.is_some().into());
            index.u32(sum.unwrap_or_default());
            chunks.push(sum);
        }
        disk.write(region.at + HEAD, &index.0)?;
        let mut blocks = Writer(Vec::with_capacity(erases.len() * BLOCK as usize));
        for (erases, programmed) in erases.iter().zip(&programmed) {
            blocks.u32(*erases);
            blocks.u32(*programmed);
        }
        disk.write(blocks_at, &blocks.0)?;
        last()?;
        disk.sync()?;
        disk.write(region.at, &head((epoch, nonce), payload, &index.0, &blocks.0))?;
        disk.sync()?;
        Ok(Snapshot { epoch, nonce, region, chunks, payload, erases, programmed })
    }

    /// The latest whole snapshot. One whose parts do not fit its header is damage.
    pub(crate) fn open(disk: &Disk, blocks: u32, payload: u64) -> io::Result<Option<Snapshot>> {
        let mut latest: Option<(u32, Region, Vec<u8>)> = None;
        for region in disk.layout.snapshots {
            let mut bytes = vec![0; HEAD as usize];
            disk.read(region.at, &mut bytes)?;
            if let Some(epoch) = epoch_of(&bytes)
                && latest.as_ref().is_none_or(|(other, ..)| epoch > *other)
            {
                latest = Some((epoch, region, bytes));
            }
        }
        let Some((epoch, region, header)) = latest else { return Ok(None) };
        let nonce = Reader(&header[20..]).u64();
        let mut index = vec![0; (payload / CHUNK * INDEXED) as usize];
        disk.read(region.at + HEAD, &mut index)?;
        let mut counts = vec![0; blocks as usize * BLOCK as usize];
        disk.read(region.at + HEAD + index_bytes(payload), &mut counts)?;
        if head((epoch, nonce), payload, &index, &counts) != header {
            return Err(damaged("its header does not fit its parts"));
        }
        let pair = |bytes: &[u8]| {
            let mut from = Reader(bytes);
            (from.u32(), from.u32())
        };
        let chunks =
            index.chunks_exact(INDEXED as usize).map(pair).map(|(is_there, sum)| (is_there != 0).then_some(sum));
        let (erases, programmed) = counts.chunks_exact(BLOCK as usize).map(pair).unzip();
        Ok(Some(Snapshot { epoch, nonce, region, chunks: chunks.collect(), payload, erases, programmed }))
    }

    /// Reads the chunk at an offset; `false` where it is all zeros, and `bytes` is left as it is.
    pub(crate) fn read(&self, disk: &Disk, at: u64, bytes: &mut [u8]) -> io::Result<bool> {
        let Some(sum) = self.chunks[(at / CHUNK) as usize] else { return Ok(false) };
        let blocks = self.erases.len() as u32;
        let payload_at = self.region.at + HEAD + index_bytes(self.payload) + block_bytes(blocks);
        disk.read(payload_at + at, bytes)?;
        match crc32fast::hash(bytes) == sum {
            true => Ok(true),
            false => Err(damaged("a chunk's checksum is wrong")),
        }
    }

    /// Chunks that were written, and all of them.
    pub(crate) fn chunks(&self) -> (u64, u64) {
        (self.chunks.iter().flatten().count() as u64, self.chunks.len() as u64)
    }
}

/// The header of a snapshot with these parts.
fn head((epoch, nonce): (u32, u64), payload: u64, index: &[u8], blocks: &[u8]) -> Vec<u8> {
    let mut out = Writer(MAGIC.to_vec());
    out.u32(epoch);
    out.u32(crc32fast::hash(index));
    out.u32(crc32fast::hash(blocks));
    out.u64(nonce);
    out.u64(payload);
    let sum = crc32fast::hash(&out.0);
    out.u32(sum);
    out.0.resize(HEAD as usize, 0);
    out.0
}

/// The epoch that a header names, if it is one.
fn epoch_of(header: &[u8]) -> Option<u32> {
    let mut sum = Reader(&header[36..]);
    let is_one = header.starts_with(&MAGIC) && crc32fast::hash(&header[..36]) == sum.u32();
    is_one.then(|| Reader(&header[8..]).u32())
}

fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the snapshot is damaged: {what}"))
}
