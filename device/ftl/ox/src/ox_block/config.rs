//! The configuration of an OX-Block.

use nandscape_device_ftl_core::FirmwareTimes;
use nandscape_device_media::{Geometry, Priority};
use nandscape_sim::Span;

use super::lines::Layout;
use crate::parts::{ChunkTable, FixedRecord};
use crate::registry::Components;

/// The configuration of an OX-Block.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct OxBlockConfig {
    /// Size of the host's address space in mapping units.
    pub logical_units: u32,
    /// Size of the write cache in mapping units.
    pub buffer_units: u32,
    /// Who is served first by planes and channels.
    pub priority: Priority,
    /// Firmware times for work on tables.
    pub firmware: FirmwareTimes,
    /// Whether each write is a transaction: after a power cut all of it is present, or nothing.
    pub transactions: bool,
    /// Whether the log's records survive a power cut in memory until they are in flash.
    pub keeps_log: bool,
    /// Whether a deallocation ends only when its records are in flash, as on a drive that reports no volatile cache.
    pub waits_for_log: bool,
    /// Whether a transaction whose command waits for its program waits for its Commit to be durable, too.
    pub waits_for_commit: bool,
    /// Bytes of memory for fragments of the map.
    pub map_memory: u64,
    /// Checkpoints, until [`OxBlock::change`](super::OxBlock::change).
    pub checkpoint: CheckpointConfig,
    /// Garbage collection, until [`OxBlock::change`](super::OxBlock::change).
    pub gc: OxGcConfig,
    /// Where the tables are kept.
    pub layout: Layout,
    /// The components that it is assembled from.
    pub components: Components,
}

/// When checkpoints are taken.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct CheckpointConfig {
    /// The time from one to the next, while the tables change.
    pub interval: Span,
    /// Pages of the log after which one is taken, whenever the last was.
    pub log_pages: u64,
}

/// How garbage is collected (OX 6.1.8). Rates are in thousandths.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct OxGcConfig {
    /// Channels that are collected at a time, as long as there is room for the host's data.
    pub slots: u32,
    /// The share of a channel's blocks in use from which it is collected.
    pub threshold: u32,
    /// The share of garbage from which a block is always collected, once the channel is.
    pub target: u32,
    /// Blocks of a channel that are collected before it is open to the host's data again.
    pub batch: u32,
}

/// Blocks of each plane that [`OxBlockConfig`] needs beyond those for data, on a drive of `channels` and `planes`.
/// These are the open blocks of the four streams, those left to collectors, and a share of the fixed places and of the
/// log.
pub fn reserve_per_plane(channels: u64, planes: u64) -> u64 {
    let shared = 2 * channels + 2 + LOG_BLOCKS + channels;
    6 + shared.div_ceil(planes)
}

/// Blocks of the log: those open, those since the last checkpoint, and those that wait to be erased.
const LOG_BLOCKS: u64 = 8;

/// Lines beyond those for data: two that the host leaves to collections, two that are being written, and one for the blocks at
/// fixed places.
const LINES_APART: u64 = 5;

impl OxBlockConfig {
    /// Checks a geometry.
    ///
    /// # Errors
    /// The fault, and what would be valid.
    pub fn check(&self, geometry: &Geometry) -> Result<(), String> {
        if !ChunkTable::fits(geometry) {
            let units = geometry.units_per_block();
            return Err(format!("blocks of {units} mapping units have more metadata than a page holds"));
        }
        self.check_layout(geometry)?;
        if geometry.unit_size() > 16 << 10 {
            return Err(
                "mapping units are 16KiB at most: an entry of the map has a bit for each of 32 sectors".to_owned()
            );
        }
        let entries = u64::from(geometry.page_size()) / 8;
        let fragments = u64::from(self.logical_units).div_ceil(entries);
        let bytes = 8 * (fragments.div_ceil(entries) + u64::from(geometry.blocks()) + 64);
        let pages = FixedRecord::pages_for(bytes as usize, geometry.page_size() as usize);
        if pages > geometry.pages_per_block() {
            return Err(format!(
                "a checkpoint takes {pages} pages, more than the {} of a block",
                geometry.pages_per_block()
            ));
        }
        Ok(())
    }

    /// Checks a geometry for a layout in lines.
    fn check_layout(&self, geometry: &Geometry) -> Result<(), String> {
        if self.layout == Layout::Log {
            return Ok(());
        }
        if self.transactions {
            return Err("transactions need a log: ftl.ox_block.transactions = false is valid".to_owned());
        }
        let data_pages = self.layout.data_pages(geometry);
        let line = u64::from(data_pages * geometry.units_per_page()) * u64::from(geometry.planes());
        let lines = u64::from(self.logical_units).div_ceil(line.max(1)) + LINES_APART;
        if data_pages == 0 || lines > geometry.blocks_per_plane().into() {
            let there = geometry.blocks_per_plane();
            return Err(format!("{lines} blocks of each plane are needed, and there are {there}; over-provision more"));
        }
        Ok(())
    }
}
