//! The contents of an OX-Block, for a person who inspects it. Takes no time of the drive: pages of tables are read past
//! the clock.

use std::ops::Range;

use nandscape_device_ftl_core::address::Lpn;
use nandscape_device_ftl_core::component::{
    BlockMetadata, BlockState, CachedMapping, ChainedLog, Entry, Mapping, StoredBlocks,
};
use nandscape_device_ftl_core::ftl::TableSummary;
use nandscape_device_media::{BlockId, Media, PageId};

use super::OxBlock;
use super::pages::{self, Kind};
use super::recovery::Recovered;
use super::state::State;
use super::streams::{COLD, HOT, LOG, META};
use crate::parts::{FIXED, FixedPage, LogPage, numbers_of_bytes};

/// The tables, the log and the checkpoint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OxSummary {
    /// The results of the start's replay of the log.
    pub recovered: Recovered,
    /// The epoch of the log's chain; each start begins a new chain.
    pub log_epoch: u64,
    /// The number of the log's next page.
    pub log_next: u64,
    /// Pages of the log since the last checkpoint.
    pub log_pages: u64,
    /// The version of the checkpoint.
    pub checkpoint: u64,
    /// The blocks that hold it and its copies.
    pub checkpoint_blocks: Vec<BlockId>,
    /// Fragments of the map: on flash, in memory, and all.
    pub map_fragments: (u64, u64, u64),
    /// Fragments of the table of blocks: on flash, and all.
    pub block_fragments: (u64, u64),
    /// Blocks that are not free, by their content.
    pub blocks: [(&'static str, u64); 5],
    /// Blocks that are erased after the next checkpoint.
    pub held: u64,
}

impl OxBlock {
    /// The content of a block, or of an open block its intended content; `None` if the block is free or bad.
    pub fn content_of(&self, block: BlockId) -> Option<&'static str> {
        self.core().state.borrow().content_of(block)
    }

    /// The contents of the map, counted.
    pub(super) fn count_tables(&self) -> TableSummary {
        let core = self.core();
        let state = core.state.borrow();
        let mut summary = TableSummary { in_buffer: state.cache.used().into(), ..TableSummary::default() };
        let units = self.config.logical_units;
        let each = self.media.geometry().page_size() / Entry::SIZE as u32;
        for index in 0..units.div_ceil(each) {
            let lpns = index * each..units.min((index + 1).saturating_mul(each));
            state.each_entry(&self.media, index, lpns, &mut |entry| {
                summary.on_flash += u64::from(entry.unit().is_some());
                summary.lost_sectors += u64::from(entry.lost().count_ones());
            });
        }
        summary
    }

    /// Tables, log and checkpoint.
    pub fn summary(&self) -> OxSummary {
        let core = self.core();
        let state = core.state.borrow();
        let on_flash = |kind, len: u32| (0..len).filter(|index| state.fragment(kind, *index).is_some()).count() as u64;
        let (map, chunks) = (state.map.small().len(), state.chunk_small.len());
        let cached = (0..map).filter(|index| state.map.is_cached(*index)).count() as u64;
        let (checkpoint, checkpoint_blocks) = state.places.checkpoint_version();
        let mut blocks = CONTENTS.map(|name| (name, 0));
        for block in (0..state.geometry.blocks()).map(BlockId) {
            let content = state.content_of(block);
            blocks.iter_mut().filter(|(name, _)| Some(*name) == content).for_each(|(_, count)| *count += 1);
        }
        OxSummary {
            recovered: core.recovered.get(),
            log_epoch: state.log.epoch(),
            log_next: state.log.number(),
            log_pages: state.log.pages(),
            checkpoint,
            checkpoint_blocks,
            map_fragments: (on_flash(Kind::MapLarge, map), cached, map.into()),
            block_fragments: (on_flash(Kind::Chunks, chunks), chunks.into()),
            blocks,
            held: state.held.len() as u64,
        }
    }

    /// The content of a page of a table or of the log, in words; `None` if it holds data of the host, or cannot be
    /// read. `media` is its flash, now or before it was started.
    pub fn describe(&self, media: &Media, page: PageId) -> Option<String> {
        let (kind, index, bytes) = pages::contents(media, page)?;
        let core = self.core();
        let is_current = if core.state.borrow().fragment(kind, index) == Some(page) { "" } else { ", out of date" };
        Some(match kind {
            Kind::MapLarge => format!("fragment {index} of the map{is_current}"),
            Kind::MapSmall => format!("fragment {index} of the table of fragments{is_current}"),
            Kind::Chunks => format!("fragment {index} of the table of blocks{is_current}"),
            Kind::Log => {
                let log = LogPage::decode(&bytes)?;
                let (first, last) = (log.records.first()?.0, log.records.last()?.0);
                format!("page {} of the log, epoch {}: records {first} to {last}", log.number, log.epoch)
            }
            Kind::Tail => format!("part {index} of the list of its block"),
            Kind::Fixed => {
                let part = FixedPage::decode(&bytes)?;
                let what = match part.kind {
                    super::fixed::CHECKPOINT => "checkpoint".to_owned(),
                    channel => format!("bad blocks of channel {}", channel - super::fixed::CHECKPOINT - 1),
                };
                format!("{what}, version {}, part {} of {}", part.version, part.part + 1, part.parts)
            }
        })
    }
}

const CONTENTS: [&str; 5] = ["data", "moved data", "log", "tables", "fixed places"];

impl State {
    /// The entries of a fragment of the map; none if the fragment does not exist or is unreadable. Each is read once.
    fn each_entry(&self, media: &Media, index: u32, lpns: Range<u32>, each: &mut dyn FnMut(Entry)) {
        if self.map.is_cached(index) {
            lpns.map(Lpn).filter_map(|lpn| self.map.lookup(lpn).ok()).for_each(each);
        } else if let Some(page) = self.fragment(Kind::MapLarge, index)
            && let Some((_, _, bytes)) = pages::contents(media, page)
        {
            numbers_of_bytes(&bytes).take(lpns.len()).map(Entry::from_raw).for_each(each);
        }
    }

    fn content_of(&self, block: BlockId) -> Option<&'static str> {
        if let BlockState::Free | BlockState::Bad = self.chunks.get(block).state {
            return None;
        }
        let streams = [HOT, COLD, LOG, META, FIXED];
        streams.iter().position(|stream| *stream == self.chunks.stream(block)).map(|index| CONTENTS[index])
    }
}
