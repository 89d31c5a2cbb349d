//! How far each block was written, found out when a file is opened. Blocks that have not changed since the snapshot are as it
//! says. Of the others the records of the pages are read: the last one that is there tells.

use std::io;

use super::disk::Disk;
use super::record::{BLOCK, BlockRecord, PageRecord};
use super::snapshot::Snapshot;
use crate::geometry::{BlockId, Geometry};

/// The state of the blocks of a file.
pub(crate) struct Found {
    pub(crate) blocks: Vec<BlockRecord>,
    /// Pages of each block that were programmed since its erase.
    pub(crate) programmed: Vec<u32>,
}

/// Looks at all blocks.
pub(crate) fn scan(disk: &Disk, geometry: &Geometry, snapshot: Option<&Snapshot>) -> io::Result<Found> {
    let mut bytes = vec![0; geometry.blocks() as usize * BLOCK];
    disk.read(disk.layout.blocks.at, &mut bytes)?;
    let blocks = (0..).map(BlockId).zip(bytes.chunks_exact(BLOCK)).map(|(block, bytes)| {
        let damaged =
            |()| io::Error::new(io::ErrorKind::InvalidData, format!("the record of block {} is damaged", block.0));
        BlockRecord::decode(block, bytes).map_err(damaged)
    });
    let blocks: Vec<BlockRecord> = blocks.collect::<io::Result<_>>()?;
    let epoch = snapshot.map_or(0, |snapshot| snapshot.epoch);
    let mut programmed = Vec::with_capacity(blocks.len());
    let mut records = Vec::new();
    for (number, block) in (0..).zip(&blocks) {
        programmed.push(match snapshot {
            _ if block.epoch > epoch => last_page(disk, geometry, BlockId(number), block.erases, &mut records)?,
            Some(snapshot) => snapshot.programmed[number as usize],
            None => 0,
        });
    }
    let most = geometry.pages_per_block();
    match programmed.iter().all(|pages| *pages <= most) {
        true => Ok(Found { blocks, programmed }),
        false => Err(io::Error::new(io::ErrorKind::InvalidData, "the snapshot is damaged: a block has too many pages")),
    }
}

/// The pages of a block up to the last one that has a record.
fn last_page(disk: &Disk, geometry: &Geometry, block: BlockId, erases: u32, records: &mut Vec<u8>) -> io::Result<u32> {
    let stride = disk.layout.page_stride;
    let (first, pages) = (geometry.page_at(block, 0), geometry.pages_per_block());
    records.resize((stride * u64::from(pages)) as usize, 0);
    disk.read(disk.layout.pages.at + u64::from(first.0) * stride, records)?;
    let is_there = |number: &u32| {
        let bytes = &records[*number as usize * stride as usize..][..stride as usize];
        let record = PageRecord::decode(geometry.page_at(block, *number), bytes);
        record.is_some_and(|record| record.generation == erases)
    };
    Ok((0..pages).rev().find(is_there).map_or(0, |last| last + 1))
}
