//! Recovery: the lists of full blocks are read, and the pages of the others. Of each unit, the copy with the highest number counts.
//!
//! | block | what is done |
//! |---|---|
//! | erased | free |
//! | without current data | erased |
//! | written to its end, or of a line that is not the last of its stream | full |
//! | of the last line | written on |

use nandscape_device_ftl_core::address::Lpn;
use nandscape_device_ftl_core::component::{
    BadBlocks, BlockMetadata, BlockState, Entry, LineProvisioning, Mapping, Stopped, StoredBlocks, Stream,
};
use nandscape_device_media::{BlockId, MediaError, Misuse, Oob, PageId, PlaneId, UnitId};

use super::{LineLayout, Stamp};
use crate::ox_block::core::Core;
use crate::ox_block::state::State;
use crate::ox_block::streams::{COLD, HOT};
use crate::parts::FIXED;

/// The results of a recovery so far.
#[derive(Default)]
pub(in crate::ox_block) struct Scan {
    /// By logical unit: the number of its newest copy, 0 without one.
    newest: Vec<u64>,
    /// The content of each block.
    blocks: Vec<Found>,
    /// Pages that cannot be read.
    unreadable: Vec<PageId>,
    pages: u64,
    records: u64,
}

/// The content of a block.
#[derive(Copy, Clone, Debug)]
struct Found {
    /// Pages that are not erased.
    pages: u32,
    /// The highest number in it.
    last: u64,
    /// The stream that has written it.
    stream: Stream,
}

impl Core {
    /// RECOVER of a drive whose tables are in its lines.
    pub(in crate::ox_block) async fn recover_lines(
        &self,
        bad: Box<dyn BadBlocks>,
        layout: LineLayout,
    ) -> Result<bool, Stopped> {
        self.begin_state(bad, 0);
        {
            let empty = Found { pages: 0, last: 0, stream: HOT };
            let mut scan = self.scan.borrow_mut();
            *scan = Scan {
                newest: vec![0; self.config.logical_units as usize],
                blocks: vec![empty; self.media.geometry().blocks() as usize],
                ..Scan::default()
            };
        }
        self.probe().await?;
        let scan = std::mem::take(&mut *self.scan.borrow_mut());
        self.count_scan(scan.pages, scan.records);
        let mut state = self.state.borrow_mut();
        state.find_current();
        state.learn_erases(&self.media);
        state.settle_blocks(&scan, layout);
        drop(state);
        self.release_held();
        Ok(true)
    }

    /// Scans all blocks of a plane.
    pub(in crate::ox_block) async fn scan_plane(&self, plane: PlaneId) -> Result<(), Stopped> {
        for block in self.media.geometry().blocks_of(plane) {
            let state = self.state.borrow().chunks.get(block).state;
            if matches!(state, BlockState::Bad | BlockState::Open(FIXED)) {
                continue;
            }
            match self.read_tail(block).await? {
                Some(areas) => self.found(block, self.media.geometry().pages_per_block(), 0, &areas),
                None => self.scan_pages(block).await?,
            }
        }
        Ok(())
    }

    /// Reads the pages of a block up to the first that is erased.
    async fn scan_pages(&self, block: BlockId) -> Result<(), Stopped> {
        let geometry = *self.media.geometry();
        let data_pages = self.config.layout.data_pages(&geometry);
        for number in 0..geometry.pages_per_block() {
            let page = geometry.page_at(block, number);
            match self.read_page(page).await? {
                Err(MediaError::Misuse(Misuse::NotProgrammed)) => break,
                Err(_) => {
                    self.found(block, number + 1, 0, &[]);
                    self.scan.borrow_mut().unreadable.push(page);
                }
                Ok(()) if number >= data_pages => self.found(block, number + 1, 0, &[]),
                Ok(()) => {
                    let units = (0..geometry.units_per_page()).map(|unit| geometry.unit_at(page, unit));
                    let areas: Vec<Oob> = units.map(|unit| self.media.oob(unit)).collect();
                    self.found(block, number + 1, number * geometry.units_per_page(), &areas);
                }
            }
        }
        Ok(())
    }

    /// Records the units of a block from `first` on; `pages` of its pages are known not to be erased.
    fn found(&self, block: BlockId, pages: u32, first: u32, areas: &[Oob]) {
        let mut scan = self.scan.borrow_mut();
        let mut state = self.state.borrow_mut();
        let scan = &mut *scan;
        scan.pages += 1;
        let found = &mut scan.blocks[block.0 as usize];
        found.pages = found.pages.max(pages);
        let begin = block.0 * self.media.geometry().units_per_block() + first;
        for (unit, area) in (begin..).map(UnitId).zip(areas) {
            let Some(stamp) = Stamp::of(area) else { continue };
            (found.last, found.stream) = (found.last.max(stamp.sequence), stamp.stream);
            scan.records += 1;
            let newest = scan.newest.get_mut(area.tag as usize);
            if let Some(newest) = newest.filter(|newest| **newest < stamp.sequence) {
                *newest = stamp.sequence;
                let entry = Entry::new(Some(unit), stamp.lost);
                let entered = state.map.upsert(Lpn(area.tag), entry);
                entered.unwrap_or_else(|miss| unreachable!("all of the map is in memory: {miss:?}"));
            }
            state.next_sequence = state.next_sequence.max(stamp.sequence + 1);
        }
    }
}

impl State {
    /// Marks the units that the map names as current.
    fn find_current(&mut self) {
        for lpn in (0..self.map.units()).map(Lpn) {
            let entry =
                self.map.lookup(lpn).unwrap_or_else(|miss| unreachable!("all of the map is in memory: {miss:?}"));
            entry.unit().into_iter().for_each(|unit| self.chunks.set_valid(unit, true));
        }
    }

    /// Gives each block its state, and lists the free lines.
    fn settle_blocks(&mut self, scan: &Scan, layout: LineLayout) {
        let data_pages = self.data_pages;
        let per_plane = self.geometry.blocks_per_plane();
        let is_part = |found: &Found| (1..data_pages).contains(&found.pages);
        let last_line = |stream: Stream| {
            let of_stream = (0..).zip(&scan.blocks).filter(|(_, found)| is_part(found) && found.stream == stream);
            of_stream.max_by_key(|(_, found)| found.last).map(|(block, _): (u32, _)| block % per_plane)
        };
        let streams: &[Stream] = if layout.shared { &[HOT] } else { &[HOT, COLD] };
        let open: Vec<(Stream, u32)> =
            streams.iter().filter_map(|stream| Some((*stream, last_line(*stream)?))).collect();
        for (number, found) in (0..).zip(&scan.blocks).filter(|(_, found)| found.pages > 0) {
            let block = BlockId(number);
            let goes_on = is_part(found) && open.contains(&(found.stream, number % per_plane));
            let pages = if goes_on { found.pages } else { self.geometry.pages_per_block() };
            let state = if goes_on { BlockState::Open(found.stream) } else { BlockState::Full };
            self.chunks.handed_out(block, found.stream);
            self.chunks.set_state(block, state);
            let info = self.chunks.get_mut(block);
            (info.allocated, info.programmed, info.sealed_at) = (pages, pages, found.last);
            if info.valid == 0 {
                self.hold_again(block);
            }
        }
        let is_open =
            |page: &PageId| matches!(self.chunks.get(self.geometry.block_of(*page)).state, BlockState::Open(_));
        self.unreadable = scan.unreadable.iter().copied().filter(is_open).collect();
        self.provisioning.relist(&self.chunks);
    }
}
