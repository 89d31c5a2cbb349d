//! The content of the flash of an OX-Block, whether or not it was started: pages of the log, and contents of blocks.
//! Takes no time of the drive.

use std::collections::BTreeMap;

use nandscape_device_ftl_core::address::Lpn;
use nandscape_device_ftl_core::ftl::Located;
use nandscape_device_media::{BlockId, Media, PageId};

use super::OxBlock;
use super::check::entry;
use super::pages::{self, Kind};
use crate::parts::LogPage;

/// A page of the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShownLogPage {
    /// Where it is.
    pub page: PageId,
    /// Its place in the chain.
    pub number: u64,
    /// The epoch of the chain.
    pub epoch: u64,
    /// The timestamps of its first and its last record.
    pub records: (u64, u64),
    /// Its records, counted by kind.
    pub kinds: BTreeMap<&'static str, u64>,
}

/// All pages of the log that can be read, in the order in which they were written.
pub fn log_pages(media: &Media) -> Vec<ShownLogPage> {
    let geometry = media.geometry();
    let blocks = (0..geometry.blocks()).map(BlockId).filter(|block| content(media, *block) == Some("log"));
    let pages = blocks.flat_map(|block| (0..media.pages_programmed(block)).map(move |number| (block, number)));
    let shown = pages.filter_map(|(block, number)| log_page(media, geometry.page_at(block, number)));
    let mut shown: Vec<ShownLogPage> = shown.collect();
    shown.sort_by_key(|page| (page.epoch, page.number));
    shown
}

fn log_page(media: &Media, page: PageId) -> Option<ShownLogPage> {
    let (Kind::Log, _, bytes) = pages::contents(media, page)? else { return None };
    let LogPage { number, epoch, records, .. } = LogPage::decode(&bytes)?;
    let mut kinds = BTreeMap::new();
    records.iter().for_each(|(_, record)| *kinds.entry(record.name()).or_default() += 1);
    Some(ShownLogPage { page, number, epoch, records: (records.first()?.0, records.last()?.0), kinds })
}

/// The content of a block by its first page; `None` where the block is erased.
pub fn content(media: &Media, block: BlockId) -> Option<&'static str> {
    if media.pages_programmed(block) == 0 {
        return None;
    }
    let geometry = media.geometry();
    Some(match pages::kind(media, geometry.page_at(block, 0)) {
        None | Some(Kind::Tail) => "data",
        Some(Kind::Log) => "log",
        Some(Kind::Fixed) => "fixed places",
        Some(Kind::MapLarge | Kind::MapSmall | Kind::Chunks) => "tables",
    })
}

impl OxBlock {
    /// Where a logical unit is.
    pub fn locate(&self, lpn: u32) -> Located {
        let core = self.core();
        let state = core.state.borrow();
        let entry = entry(&state.map, &self.media, Lpn(lpn)).ok();
        Located {
            flash: entry.and_then(|entry| entry.unit()),
            is_buffered: state.cache.newest(lpn).is_some(),
            lost_sectors: entry.map_or(0, |entry| entry.lost().count_ones()),
        }
    }
}
