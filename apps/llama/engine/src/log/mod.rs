//! The conventional form: a log on any drive, with all bookkeeping in the host.
//!
//! A flush is a frame of the log with a checksum over the whole frame: it is present as a whole or not at all. The
//! mapping table has the place of each piece of a page. From time to time it is written as a checkpoint, to two
//! places in turn. After a crash the frames since the last checkpoint are applied to it, in the order of their
//! numbers.
//!
//! The log consists of segments. When few are free, the segment with the least current data is read, and its current
//! data is written to the end of the log. That segment is reused only after the next checkpoint, because a crash
//! before it needs all data of the last checkpoint.
//!
//! | file | what |
//! |---|---|
//! | `form` | the form on the drive |
//! | `state` | the mapping table and the segments |
//! | `append` | frames, and room for them |
//! | `clean` | emptying segments |
//! | `checkpoint` | checkpoints |
//! | `recover` | making and opening a log |
//!
//! Left out: checkpoints and cleaning during flushes, which wait for them; consolidation of pages whose pieces are
//! moved.

mod append;
mod checkpoint;
mod clean;
mod form;
mod recover;
mod state;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_apps_store::{Disk, Host, Range, StoreError};
use nandscape_drive::Drive;
use nandscape_sim::Span;

use crate::error::OpenError;
use crate::pages::{PageStats, PageStore, Piece, Shape};
use form::Layout;
use state::{Item, Place, State};

/// How a log is made and kept.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct LogConfig {
    /// The most bytes of a page, 1 to 64 KiB. An existing log keeps its own.
    pub page_bytes: u32,
    /// Bytes of a segment, 256 KiB and more. A flush takes up to an eighth. An existing log keeps its own.
    pub segment_bytes: u32,
    /// The most pieces of a page; with 1 there are no deltas.
    pub pieces: u32,
    /// The time between checkpoints; without one they are written only when segments are needed.
    pub checkpoint: Option<Span>,
    /// Whether empty segments are deallocated on the drive.
    pub trim: bool,
    /// Bytes of the drive that a new log may use, from the beginning; all of it unless set.
    pub space: Option<u64>,
    /// The identity of a new log: it differs from that of any earlier log.
    pub id: u64,
}

impl Default for LogConfig {
    /// Pages of 4 KiB in up to 5 pieces, segments of 8 MiB, a checkpoint every 10 seconds as in the thesis (OX 7.4.2).
    fn default() -> LogConfig {
        LogConfig {
            page_bytes: 4_096,
            segment_bytes: 8 << 20,
            pieces: 5,
            checkpoint: Some(Span::from_s(10)),
            trim: true,
            space: None,
            id: 1,
        }
    }
}

/// Pieces of a page that the form has room for.
const MOST_PIECES: u32 = 5;
/// Segments that are free, below which the log is cleaned.
const LOW: usize = 3;
/// The share of the segments that current pieces may take, in percent. Even with the unused ends of segments, cleaning
/// any segment then frees more than it takes.
const LIVE_PERCENT: u64 = 60;

/// See the module.
pub struct LogStore {
    disk: Disk,
    config: LogConfig,
    layout: Layout,
    state: RefCell<State>,
    counts: RefCell<PageStats>,
    /// When the last checkpoint was written.
    checked: Cell<nandscape_sim::Time>,
}

impl LogStore {
    /// Opens the log on a drive, or creates one on an empty drive.
    ///
    /// # Errors
    /// Why not.
    pub async fn open(host: &Host, drive: Rc<dyn Drive>, config: LogConfig) -> Result<LogStore, OpenError> {
        recover::open(host, drive, config).await
    }

    /// The blocks of the drive that hold a place, and the place's offset in them.
    fn range(&self, segment: u32, offset: u64, bytes: u64) -> (Range, usize) {
        let lba = u64::from(self.disk.info.lba_bytes);
        let start = self.layout.segment_start(segment) + offset;
        let (first, end) = (start / lba, (start + bytes).div_ceil(lba));
        (Range { slba: first, blocks: end - first }, (start - first * lba) as usize)
    }

    /// Reads pieces of the log.
    async fn read_places(&self, places: &[Place]) -> Result<Vec<Vec<u8>>, StoreError> {
        let ranges: Vec<(Range, usize)> =
            places.iter().map(|place| self.range(place.segment, place.offset.into(), place.bytes.into())).collect();
        let blocks: Vec<Range> = ranges.iter().map(|(range, _)| *range).collect();
        let read = self.disk.read(&blocks).await?;
        let cut = |((bytes, (_, skip)), place): ((Vec<u8>, &(Range, usize)), &Place)| {
            bytes[*skip..*skip + place.bytes as usize].to_vec()
        };
        Ok(read.into_iter().zip(&ranges).zip(places).map(cut).collect())
    }

    fn count(&self, count: impl FnOnce(&mut PageStats)) {
        count(&mut self.counts.borrow_mut());
    }
}

impl PageStore for LogStore {
    fn shape(&self) -> Shape {
        let page_bytes = self.layout.page_bytes as usize;
        let frame = self.layout.segment_bytes as usize / 8 - form::FRAME;
        Shape {
            page_bytes,
            pieces: self.config.pieces,
            flush_pieces: frame / (page_bytes + form::ENTRY),
            pages: self.layout.pages(),
        }
    }

    fn room(&self) -> u64 {
        let live = self.state.borrow().live_bytes();
        self.layout.live_limit().saturating_sub(live) / (2 * u64::from(self.layout.page_bytes))
    }

    async fn flush(&self, pieces: Vec<Piece>) -> Result<(), StoreError> {
        let items: Vec<Item> = {
            let mut state = self.state.borrow_mut();
            pieces.into_iter().map(|piece| state.item(piece)).collect()
        };
        self.disk.host.entries(items.len()).await;
        self.append(&items).await?;
        self.count(|stats| {
            stats.flushes += 1;
            stats.piece_bytes += items.iter().map(|item| item.bytes.len() as u64).sum::<u64>();
        });
        let now = self.disk.host.sim().now();
        if self.config.checkpoint.is_some_and(|every| now - self.checked.get() >= every) {
            self.checkpoint().await?;
        }
        Ok(())
    }

    async fn read(&self, lpids: &[u64]) -> Result<Vec<Vec<Vec<u8>>>, StoreError> {
        loop {
            let chains: Vec<Vec<Place>> = lpids.iter().map(|lpid| self.state.borrow().chain(*lpid).to_vec()).collect();
            self.disk.host.entries(lpids.len()).await;
            let places: Vec<Place> = chains.iter().flatten().copied().collect();
            let mut read = self.read_places(&places).await?.into_iter();
            // Pieces that were moved meanwhile may have been overwritten: they are read again.
            let is_current = lpids.iter().zip(&chains).all(|(lpid, chain)| self.state.borrow().chain(*lpid) == chain);
            if is_current {
                return Ok(chains.iter().map(|chain| read.by_ref().take(chain.len()).collect()).collect());
            }
        }
    }

    fn stats(&self) -> PageStats {
        let PageStats { written_bytes, read_bytes, commands, .. } = PageStats::of(&self.disk);
        PageStats { written_bytes, read_bytes, commands, memory: self.state.borrow().memory(), ..*self.counts.borrow() }
    }
}
