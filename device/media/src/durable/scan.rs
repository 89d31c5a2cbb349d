//! How far each block was written, determined when a file is opened. Unchanged blocks since the snapshot are as the
//! snapshot records. For the others, the records of the pages are read: the last existing record decides. A page before
//! it without a record in either copy is damage, and its content is unknown: the file cannot be used then.

use std::io;
use std::ops::Range;

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

/// Scans all blocks.
///
/// After a stop, both copies of everything are equal; after a kill, one `may_be_torn`.
pub(crate) fn scan(
    disk: &Disk,
    geometry: &Geometry,
    snapshot: Option<&Snapshot>,
    may_be_torn: bool,
) -> io::Result<Found> {
    let blocks = block_records(disk, geometry, may_be_torn)?;
    let epoch = snapshot.map_or(0, |snapshot| snapshot.epoch);
    let mut programmed = Vec::with_capacity(blocks.len());
    let mut search = Search { disk, geometry, records: Vec::new() };
    for (number, block) in (0..).zip(&blocks) {
        if snapshot.is_some_and(|snapshot| snapshot.erases[number as usize] > block.erases) {
            return Err(damaged(format!("the record of block {number} is older than the snapshot")));
        }
        if *block == BlockRecord::default() && snapshot.is_some_and(|snapshot| snapshot.programmed[number as usize] > 0)
        {
            let at = disk.layout.blocks.map(|region| region.at + u64::from(number) * BLOCK as u64);
            let what = format!("block {number} has no record at bytes {} and {}", at[0], at[1]);
            return Err(damaged(format!("{what}, and the snapshot knows pages of it")));
        }
        programmed.push(match snapshot {
            _ if block.epoch > epoch => search.pages_of(BlockId(number), block.erases)?,
            Some(snapshot) => snapshot.programmed[number as usize],
            None => 0,
        });
    }
    let most = geometry.pages_per_block();
    match programmed.iter().all(|pages| *pages <= most) {
        true => Ok(Found { blocks, programmed }),
        false => Err(damaged("the snapshot is damaged: a block has too many pages".to_owned())),
    }
}

fn damaged(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// The records of all blocks. Where two copies differ, the later copy counts: a kill may have come between their
/// writes.
fn block_records(disk: &Disk, geometry: &Geometry, may_be_torn: bool) -> io::Result<Vec<BlockRecord>> {
    let mut copies = [(); 2].map(|()| vec![0; geometry.blocks() as usize * BLOCK]);
    for (bytes, region) in copies.iter_mut().zip(disk.layout.blocks) {
        disk.read(region.at, bytes)?;
    }
    let [first, second] = copies.each_ref().map(|bytes| bytes.chunks_exact(BLOCK));
    let pairs = (0..).map(BlockId).zip(first.zip(second));
    let newest = pairs.map(|(block, (first, second))| {
        let copies = [first, second].map(|bytes| BlockRecord::decode(block, bytes));
        let place = |copy: usize| disk.layout.blocks[copy].at + u64::from(block.0) * BLOCK as u64;
        for copy in (0..2).filter(|copy| copies[*copy].is_err()) {
            disk.note_damage(format!("the record of block {} at byte {}", block.0, place(copy)));
        }
        let newest = copies.into_iter().flatten().max_by_key(|record| (record.erases, record.epoch, record.marks));
        for copy in (0..2).filter(|copy| !may_be_torn && copies[*copy].is_ok_and(|record| Some(record) != newest)) {
            disk.note_damage(format!(
                "the record of block {} at byte {} is older than its other copy",
                block.0,
                place(copy)
            ));
        }
        let what = || format!("both records of block {} are damaged, at bytes {} and {}", block.0, place(0), place(1));
        newest.ok_or_else(|| damaged(what()))
    });
    newest.collect()
}

/// Pages of the second copy read beyond the end of the first: more than a sector holds.
const BEHIND: u32 = 16;

struct Search<'a> {
    disk: &'a Disk,
    geometry: &'a Geometry,
    records: Vec<u8>,
}

impl Search<'_> {
    /// The pages of a block up to the last one that has a record. Pages are programmed in order, and all of them have one.
    fn pages_of(&mut self, block: BlockId, erases: u32) -> io::Result<u32> {
        let pages = self.geometry.pages_per_block();
        let first = self.which_are_there(0, block, 0..pages, erases)?;
        let mut end = first.iter().rposition(|is_there| *is_there).map_or(0, |last| last as u32 + 1);
        let behind = end..pages.min(end + BEHIND);
        if !behind.is_empty() {
            let second = self.which_are_there(1, block, behind, erases)?;
            end += second.iter().rposition(|is_there| *is_there).map_or(0, |last| last as u32 + 1);
        }
        let holes = (0..end).filter(|page| !first[*page as usize]);
        let holes: Vec<u32> = holes.collect();
        if !holes.is_empty() {
            let second = self.which_are_there(1, block, 0..end, erases)?;
            if let Some(page) = holes.iter().find(|page| !second[**page as usize]) {
                return Err(self.lost(block, *page));
            }
        }
        // A kill cuts off at most one copy.
        if end < pages && self.is_damaged(0, block, end)? && self.is_damaged(1, block, end)? {
            return Err(self.lost(block, end));
        }
        Ok(end)
    }

    /// Both records of a page are damaged.
    fn lost(&self, block: BlockId, page: u32) -> io::Error {
        let at = |copy| self.at(copy, block, page);
        let what = format!("both records of page {page} of block {} are damaged", block.0);
        damaged(format!("{what}, at bytes {} and {}", at(0), at(1)))
    }

    /// Whether the place of a record has bytes that are no record of this or an earlier erase.
    fn is_damaged(&mut self, copy: usize, block: BlockId, page: u32) -> io::Result<bool> {
        self.records.resize(self.disk.layout.page_stride as usize, 0);
        self.disk.read(self.at(copy, block, page), &mut self.records)?;
        let is_record = PageRecord::decode(self.geometry.page_at(block, page), &self.records).is_some();
        Ok(!is_record && self.records.iter().any(|byte| *byte != 0))
    }

    fn at(&self, copy: usize, block: BlockId, page: u32) -> u64 {
        let page = self.geometry.page_at(block, page);
        self.disk.layout.pages[copy].at + u64::from(page.0) * self.disk.layout.page_stride
    }

    /// The pages of a range with a record in a copy.
    fn which_are_there(
        &mut self,
        copy: usize,
        block: BlockId,
        pages: Range<u32>,
        erases: u32,
    ) -> io::Result<Vec<bool>> {
        let stride = self.disk.layout.page_stride as usize;
        let at = self.at(copy, block, pages.start);
        self.records.resize(pages.len() * stride, 0);
        self.disk.read(at, &mut self.records)?;
        let records = pages.zip(self.records.chunks_exact(stride)).map(|(page, bytes)| {
            let record = PageRecord::decode(self.geometry.page_at(block, page), bytes);
            record.is_some_and(|record| record.generation == erases)
        });
        Ok(records.collect())
    }
}
