//! Snapshots: the tables of an FTL, and the programmed pages of each block. A snapshot begins at one instant and counts once
//! its header is written. It closes the epoch in which it began. For blocks whose record names a later epoch the snapshot is
//! outdated, and opening the file scans them. Entries of the journal count from the snapshot's beginning on.
//!
//! The FTL's part is in chunks, each with a checksum. There is room for two of each chunk. A snapshot reuses the
//! unchanged chunks of the previous snapshot, and writes the others to the room that the previous snapshot does not
//! use. Its cost therefore depends on what has changed. Chunks of zeros are not written. Chunks may be written at
//! different moments between the snapshot's beginning and its end: for the FTL a chunk may be newer than the snapshot,
//! but not older.
//!
//! Header, checksums of the chunks, and blocks are written to two regions in turn. The header is stored twice, in
//! different pieces of 4 KiB, and both copies are written at once. A kill may leave only the first of them, so the
//! newer one counts.

use std::io;

use super::disk::Disk;
use super::layout::Region;
use super::superblock::{Reader, Writer};
use crate::fault::MediaError;

/// Bytes of a chunk.
pub const CHUNK: u64 = 256 << 10;
const ALIGN: u64 = 4_096;
/// Bytes of the headers.
const HEAD: u64 = 2 * ALIGN;
/// Where the copies of a header lie.
const COPIES: [usize; 2] = [0, ALIGN as usize];
const MAGIC: [u8; 8] = *b"SNAPSHOT";
/// Bytes of a header that its checksum covers.
const SUMMED: usize = 36;
/// Bytes of a chunk in the index: the region where it lies plus one, or 0; and its checksum.
const INDEXED: u64 = 8;
/// Bytes of a block: its erases, and its pages that were programmed.
const BLOCK: u64 = 8;

/// A chunk that was written: the region where it lies, and its checksum.
type Chunk = Option<(u8, u32)>;

/// A whole snapshot.
pub(crate) struct Snapshot {
    pub(crate) epoch: u32,
    /// The first entry of the journal that counts.
    pub(crate) journal_from: u64,
    /// The region of its header.
    region: u8,
    chunks: Vec<Chunk>,
    /// Erases of each block.
    pub(crate) erases: Vec<u32>,
    /// Pages of each block that were programmed.
    pub(crate) programmed: Vec<u32>,
}

/// A snapshot that is being written.
pub(crate) struct Draft(Snapshot);

/// Where the parts of a region lie.
#[derive(Copy, Clone)]
struct Places {
    blocks: u64,
    chunks: u64,
}

impl Places {
    fn new(region: Region, blocks: u32, payload: u64) -> Places {
        let at = region.at + HEAD + index_bytes(payload);
        Places { blocks: at, chunks: at + block_bytes(blocks) }
    }
}

fn index_bytes(payload: u64) -> u64 {
    (payload / CHUNK * INDEXED).next_multiple_of(ALIGN)
}

fn block_bytes(blocks: u32) -> u64 {
    (u64::from(blocks) * BLOCK).next_multiple_of(ALIGN)
}

/// Bytes of a snapshot's region, for `payload` bytes of the FTL, whole chunks.
pub(crate) fn region_bytes(blocks: u32, payload: u64) -> u64 {
    HEAD + index_bytes(payload) + block_bytes(blocks) + payload
}

impl Draft {
    /// Begins a snapshot that takes over all chunks of the previous one.
    pub(crate) fn begin(
        before: Option<&Snapshot>,
        (epoch, journal_from): (u32, u64),
        (erases, programmed): (Vec<u32>, Vec<u32>),
        payload: u64,
    ) -> Draft {
        let none = || vec![None; (payload / CHUNK) as usize];
        let (region, chunks) = before.map_or_else(|| (0, none()), |before| (1 - before.region, before.chunks.clone()));
        Draft(Snapshot { epoch, journal_from, region, chunks, erases, programmed })
    }

    /// Writes a chunk, unless it is unchanged since the previous snapshot.
    pub(crate) fn put(
        &mut self,
        disk: &Disk,
        before: Option<&Snapshot>,
        at: u64,
        chunk: &[u8],
    ) -> Result<(), MediaError> {
        let index = (at / CHUNK) as usize;
        let old = before.and_then(|before| before.chunks[index]);
        let is_empty = chunk.iter().all(|byte| *byte == 0);
        let sum = crc32fast::hash(chunk);
        let is_as_before = || {
            let mut bytes = vec![0; chunk.len()];
            let has_same_sum = old.is_some_and(|(_, old)| old == sum);
            has_same_sum
                && before.is_some_and(|before| matches!(before.read(disk, at, &mut bytes), Ok(true)) && bytes == chunk)
        };
        if is_empty || is_as_before() {
            self.0.chunks[index] = old.filter(|_| !is_empty);
            return Ok(());
        }
        let region = old.map_or(0, |(region, _)| 1 - region);
        self.0.chunks[index] = Some((region, sum));
        disk.write(self.0.chunk_at(disk, region, at), chunk)
    }

    /// Makes the snapshot count.
    pub(crate) fn end(self, disk: &Disk) -> Result<Snapshot, MediaError> {
        let Draft(snapshot) = self;
        let (mut index, mut blocks) = (Writer(Vec::new()), Writer(Vec::new()));
        for chunk in &snapshot.chunks {
            let (region, sum) = chunk.unwrap_or_default();
            index.u32(if chunk.is_some() { u32::from(region) + 1 } else { 0 });
            index.u32(sum);
        }
        for (erases, programmed) in snapshot.erases.iter().zip(&snapshot.programmed) {
            blocks.u32(*erases);
            blocks.u32(*programmed);
        }
        let (region, payload) = (disk.layout.snapshots[usize::from(snapshot.region)], snapshot.payload());
        disk.write(region.at + HEAD, &index.0)?;
        disk.write(Places::new(region, snapshot.erases.len() as u32, payload).blocks, &blocks.0)?;
        let head = head((snapshot.epoch, snapshot.journal_from), payload, &index.0, &blocks.0);
        let mut pages = vec![0; HEAD as usize];
        COPIES.iter().for_each(|at| pages[*at..*at + head.len()].copy_from_slice(&head));
        disk.write(region.at, &pages)?;
        disk.sync()?;
        Ok(snapshot)
    }
}

impl Snapshot {
    /// The latest snapshot. A snapshot whose parts do not fit its header is damage. Where a header `may_be_torn`, a
    /// copy of it may be missing. `missing` then lists what a region's headers lack, with the place.
    pub(crate) fn open(
        disk: &Disk,
        (blocks, payload): (u32, u64),
        may_be_torn: bool,
        missing: &mut Vec<(u64, Vec<u8>)>,
    ) -> io::Result<Option<Snapshot>> {
        let mut latest: Option<(u32, u8, Vec<u8>)> = None;
        for (number, region) in (0..).zip(disk.layout.snapshots) {
            let Some((epoch, head)) = newest_head(disk, region, may_be_torn, missing)? else { continue };
            if latest.as_ref().is_none_or(|(other, ..)| epoch > *other) {
                latest = Some((epoch, number, head));
            }
        }
        let Some((epoch, number, header)) = latest else { return Ok(None) };
        let region = disk.layout.snapshots[usize::from(number)];
        let journal_from = Reader(&header[20..]).u64();
        let mut index = vec![0; (payload / CHUNK * INDEXED) as usize];
        disk.read(region.at + HEAD, &mut index)?;
        let mut counts = vec![0; blocks as usize * BLOCK as usize];
        disk.read(Places::new(region, blocks, payload).blocks, &mut counts)?;
        if head((epoch, journal_from), payload, &index, &counts) != header {
            return Err(damaged(region.at, "its header does not fit its parts"));
        }
        let pair = |bytes: &[u8]| {
            let mut from = Reader(bytes);
            (from.u32(), from.u32())
        };
        let chunks = index.chunks_exact(INDEXED as usize).map(pair);
        let chunks = chunks.map(|(region, sum)| Some(((region.checked_sub(1)? & 1) as u8, sum))).collect();
        let (erases, programmed) = counts.chunks_exact(BLOCK as usize).map(pair).unzip();
        Ok(Some(Snapshot { epoch, journal_from, region: number, chunks, erases, programmed }))
    }

    fn payload(&self) -> u64 {
        self.chunks.len() as u64 * CHUNK
    }

    fn chunk_at(&self, disk: &Disk, region: u8, at: u64) -> u64 {
        let region = disk.layout.snapshots[usize::from(region)];
        Places::new(region, self.erases.len() as u32, self.payload()).chunks + at
    }

    /// Reads the chunk at an offset; `false` where it is all zeros, and `bytes` is unchanged.
    pub(crate) fn read(&self, disk: &Disk, at: u64, bytes: &mut [u8]) -> io::Result<bool> {
        let Some((region, sum)) = self.chunks[(at / CHUNK) as usize] else { return Ok(false) };
        let place = self.chunk_at(disk, region, at);
        disk.read(place, bytes)?;
        match crc32fast::hash(bytes) == sum {
            true => Ok(true),
            false => Err(damaged(place, "a chunk's checksum is wrong")),
        }
    }

    /// The offsets of the chunks that were written.
    pub(crate) fn written(&self) -> impl Iterator<Item = u64> {
        (0..).step_by(CHUNK as usize).zip(&self.chunks).filter(|(_, chunk)| chunk.is_some()).map(|(at, _)| at)
    }

    /// Chunks that were written, and all of them.
    pub(crate) fn chunks(&self) -> (u64, u64) {
        (self.chunks.iter().flatten().count() as u64, self.chunks.len() as u64)
    }
}

/// The newest header in a region, and its epoch.
fn newest_head(
    disk: &Disk,
    region: Region,
    may_be_torn: bool,
    missing: &mut Vec<(u64, Vec<u8>)>,
) -> io::Result<Option<(u32, Vec<u8>)>> {
    let mut pages = vec![0; HEAD as usize];
    disk.read(region.at, &mut pages)?;
    let copies = pages.chunks_exact(ALIGN as usize);
    let heads: Vec<_> = copies.clone().map(whole_head).collect();
    let newest = heads.iter().flatten().max_by_key(|head| epoch_of(head)).map(|head| (epoch_of(head), head.to_vec()));
    for ((page, head), at) in copies.zip(&heads).zip(COPIES) {
        let (at, is_empty) = (region.at + at as u64, page.iter().all(|byte| *byte == 0));
        let Some((_, newest)) = &newest else {
            if is_empty {
                continue;
            }
            return Err(damaged(region.at, "both copies of its header are wrong"));
        };
        if head.is_none() && !(is_empty && may_be_torn) {
            disk.note_damage(format!("a header of a snapshot at byte {at}: its other copy is whole"));
        }
        if *head != Some(newest) {
            missing.push((at, newest.clone()));
        }
    }
    Ok(newest)
}

fn epoch_of(head: &[u8]) -> u32 {
    Reader(&head[MAGIC.len()..]).u32()
}

/// The header of a snapshot with these parts.
fn head((epoch, journal_from): (u32, u64), payload: u64, index: &[u8], blocks: &[u8]) -> Vec<u8> {
    let mut out = Writer(MAGIC.to_vec());
    out.u32(epoch);
    out.u32(crc32fast::hash(index));
    out.u32(crc32fast::hash(blocks));
    out.u64(journal_from);
    out.u64(payload);
    assert_eq!(out.0.len(), SUMMED);
    let sum = crc32fast::hash(&out.0);
    out.u32(sum);
    out.0
}

/// A header that is whole.
fn whole_head(bytes: &[u8]) -> Option<&[u8]> {
    let mut sum = Reader(&bytes[SUMMED..]);
    let is_one = bytes.starts_with(&MAGIC) && crc32fast::hash(&bytes[..SUMMED]) == sum.u32();
    is_one.then(|| &bytes[..SUMMED + 4])
}

fn damaged(at: u64, what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the snapshot at byte {at} is damaged: {what}"))
}
