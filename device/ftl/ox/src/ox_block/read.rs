//! Reads: only the map is looked up (OX fig. 5.1), and the [before-images](super::uncommitted) if any. A page's block is
//! pinned from the lookup until its data was copied.

use std::convert::Infallible;
use std::rc::Rc;

use nandscape_device_ftl_core::address::{Extent, Piece};
use nandscape_device_ftl_core::component::{BlockMetadata, CachedMapping, Entry, FragmentMiss, Mapping};
use nandscape_device_ftl_core::ftl::{Destination, ReadError, Reader, Unreadable};
use nandscape_device_ftl_core::reading::{self, CopyOut, PageRead, PageReads, Parts, SensePage};
use nandscape_device_media::{MediaError, PageId, UnitId};
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, Stage};
use smallvec::SmallVec;

use super::OxBlock;
use super::core::{Core, Phase};
use super::state::State;
use super::uncommitted::Seen;

/// Reads to destinations of type `D`.
pub struct OxReader<D: Destination> {
    ftl: Rc<OxBlock>,
    parts: Parts<Core, D>,
}

impl State {
    /// Looks an extent up, all at one instant: clears and copies to memory the units that need no flash, and pins the
    /// blocks of the other pages.
    fn look_up(
        &mut self,
        extent: Extent,
        to: &impl Destination,
        pages: &mut PageReads,
    ) -> Result<Result<(), ReadError>, FragmentMiss> {
        for piece in extent.pieces(self.unit) {
            if let Err(error) = self.look_up_piece(&piece, to, pages)? {
                return Ok(Err(error));
            }
        }
        Ok(Ok(()))
    }

    fn look_up_piece(
        &mut self,
        piece: &Piece,
        to: &impl Destination,
        pages: &mut PageReads,
    ) -> Result<Result<(), ReadError>, FragmentMiss> {
        let Seen { slot, before } = match self.has_uncommitted() {
            false => Seen { slot: self.cache.newest(piece.lpn.0), before: None },
            true => self.committed(piece.lpn),
        };
        let (held, lost) = match slot {
            Some(slot) => (self.cache.slot(slot).mask, self.cache.slot(slot).lost),
            None if self.spoiled.is_empty() => (0, 0),
            None => (0, self.spoiled.get(&piece.lpn.0).copied().unwrap_or(0)),
        };
        let is_held = held & piece.mask() == piece.mask();
        let entry = match before {
            Some(before) => before,
            None if is_held => Entry::UNMAPPED,
            None => self.map.lookup(piece.lpn)?,
        };
        let lost = (lost | u64::from(entry.lost()) & !held) & piece.mask();
        if lost != 0 {
            let unit = u64::from(piece.lpn.0) * u64::from(self.unit.sectors());
            return Ok(Err(ReadError { sector: unit + u64::from(lost.trailing_zeros()), why: Unreadable::Lost }));
        }
        let overlay = slot.and_then(|slot| self.cache.data(slot)).map(|data| (held, data.clone()));
        match entry.unit() {
            Some(unit) => self.push_page(pages, unit, piece, overlay),
            None if held & piece.mask() == 0 && to.rejects_unmapped() => {
                return Ok(Err(ReadError { sector: piece.sector(self.unit), why: Unreadable::Unmapped }));
            }
            None => {
                if !is_held {
                    self.counters.unwritten_units += 1;
                    to.mem().clear(piece.at, piece.bytes());
                }
                if let Some(newer) = &overlay {
                    let put = |offset: usize, sector: &[u8]| to.mem().write(piece.at + offset - piece.offset(), sector);
                    reading::lay_over(newer, (piece.offset(), piece.bytes()), put);
                }
            }
        }
        Ok(Ok(()))
    }

    fn push_page(&mut self, pages: &mut PageReads, unit: UnitId, piece: &Piece, overlay: Option<(u64, Rc<[u8]>)>) {
        let page = self.geometry.page_of(unit);
        let copy = self.cache.keeps_data().then(|| CopyOut::new(unit, piece, overlay));
        if reading::add(pages, page, piece, self.unit, copy) {
            self.chunks.pin(self.geometry.block_of(page));
        }
    }
}

impl Core {
    fn unpin(&self, page: PageId) {
        let mut state = self.state.borrow_mut();
        let block = state.geometry.block_of(page);
        let is_last = state.chunks.unpin(block) == 0;
        drop(state);
        if is_last {
            self.unpinned.notify();
        }
    }
}

impl SensePage for Core {
    type Round = Infallible;

    async fn sense_page<Caller, D: Destination>(
        &self,
        read: &PageRead,
        to: &D,
        breakdown: &mut Breakdown,
    ) -> Result<u64, ReadError> {
        let who = self.config.priority.who(cause::HOST_READ);
        let sensed = self.media.read_for::<Caller>(read.page, read.flash_bytes, who, breakdown).await;
        if sensed.is_ok() {
            read.copies.iter().for_each(|copy| copy.copy(self.media.data(copy.unit).as_deref(), to.mem()));
        }
        let sensed = if self.media.take_read_failure() { Err(MediaError::Uncorrectable) } else { sensed };
        self.unpin(read.page);
        match sensed {
            Ok(()) => Ok(u64::from(read.host_bytes)),
            Err(error) => Err(ReadError { sector: read.sector, why: Unreadable::Media(error) }),
        }
    }
}

impl<D: Destination> OxReader<D> {
    pub(super) fn new(ftl: &Rc<OxBlock>) -> OxReader<D> {
        OxReader { ftl: ftl.clone(), parts: Parts::new(&ftl.sim) }
    }

    async fn look_up(
        &self,
        core: &Core,
        extent: Extent,
        to: &D,
        breakdown: &mut Breakdown,
    ) -> Result<PageReads, ReadError> {
        let mut pages = PageReads::new();
        let looked_up = core.state.borrow_mut().look_up(extent, to, &mut pages);
        let failed = match looked_up {
            Ok(Ok(())) => return Ok(pages),
            Ok(Err(error)) => error,
            Err(miss) => {
                pages.drain(..).for_each(|read| core.unpin(read.page));
                let begun = self.ftl.sim.now();
                let looked_up = Box::pin(self.look_up_loading(core, extent, to, miss)).await;
                breakdown.waits(Stage::Queue).add(cause::METADATA, self.ftl.sim.now() - begun);
                return looked_up;
            }
        };
        pages.iter().for_each(|read| core.unpin(read.page));
        Err(failed)
    }

    /// Loads fragments of the map and keeps them. Looks the extent up when all of them are in memory: at one instant,
    /// so that a read never sees a part of a write.
    async fn look_up_loading(
        &self,
        core: &Core,
        extent: Extent,
        to: &D,
        mut miss: FragmentMiss,
    ) -> Result<PageReads, ReadError> {
        let mut kept: SmallVec<[u32; 2]> = SmallVec::new();
        let ended = loop {
            if core.load(miss, &mut Breakdown::new()).await.is_err() {
                // The power cut ended the map.
                return Err(ReadError { sector: extent.start, why: Unreadable::Media(MediaError::PowerLost) });
            }
            let (mut state, mut pages) = (core.state.borrow_mut(), PageReads::new());
            if state.map.is_cached(miss.index) && !kept.contains(&miss.index) {
                state.map.pin(miss.index);
                kept.push(miss.index);
            }
            let looked_up = state.look_up(extent, to, &mut pages);
            drop(state);
            if !matches!(looked_up, Ok(Ok(()))) {
                pages.iter().for_each(|read| core.unpin(read.page));
            }
            match looked_up {
                Ok(Ok(())) => break Ok(pages),
                Ok(Err(error)) => break Err(error),
                Err(next) => miss = next,
            }
        };
        kept.iter().for_each(|index| core.state.borrow_mut().map.unpin(*index));
        ended
    }
}

impl<D: Destination> Reader<D> for OxReader<D> {
    async fn read<Caller>(&self, extent: Extent, to: &D, breakdown: &mut Breakdown) -> Result<(), ReadError> {
        let mut core = self.ftl.core();
        if core.phase.get() == Phase::Starting {
            let begun = self.ftl.sim.now();
            self.ftl.in_service().await;
            breakdown.waits(Stage::Queue).add(cause::METADATA, self.ftl.sim.now() - begun);
            core = self.ftl.core();
        }
        let out_of_service = match core.phase.get() {
            Phase::Failed => Some(Unreadable::Lost),
            _ if !core.is_alive() => Some(Unreadable::Media(MediaError::PowerLost)),
            _ => None,
        };
        if let Some(why) = out_of_service {
            return Err(ReadError { sector: extent.start, why });
        }
        let pages = self.look_up(&core, extent, to, breakdown).await?;
        match &pages[..] {
            // The ordinary small read, within one page.
            [page] if u64::from(page.host_bytes) == extent.bytes() => {
                let bytes = core.sense_page::<(Caller, D), D>(page, to, breakdown).await?;
                to.deliver(bytes, breakdown).await;
                Ok(())
            }
            _ => Box::pin(self.parts.read(core, pages, extent, to, breakdown)).await,
        }
    }
}
