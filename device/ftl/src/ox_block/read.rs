//! Reads: only the map is asked (OX fig. 5.1). A page's block is pinned from the lookup until its data was copied.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::Poll;

use nandscape_device_media::{MediaError, PageId, UnitId};
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, HostMem, Stage};
use nandscape_sim::Sim;
use nandscape_sim::executor::TaskId;
use nandscape_sim::workers::Workers;
use smallvec::SmallVec;

use super::OxBlock;
use super::core::{Core, Phase};
use super::state::State;
use crate::address::{Extent, Piece, SECTOR};
use crate::component::{BlockMetadata, CachedMapping, FragmentMiss, Mapping};
use crate::ftl::{Destination, ReadError, Reader, Unreadable};
use crate::parts::Entry;

/// A page to read, and what the host gets of it.
struct PageRead {
    page: PageId,
    /// The first sector that the host gets of it.
    sector: u64,
    flash_bytes: u32,
    host_bytes: u32,
    copies: SmallVec<[CopyOut; 1]>,
}

/// A part of a unit to copy to the host.
struct CopyOut {
    unit: UnitId,
    offset: usize,
    len: usize,
    at: usize,
    /// Newer bytes of the unit that were in the write cache: those of the sectors in the mask.
    overlay: Option<(u64, Rc<[u8]>)>,
}

type Pages = SmallVec<[PageRead; 1]>;

/// Reads to destinations of type `D`.
pub struct OxReader<D: Destination> {
    ftl: Rc<OxBlock>,
    parts: Workers<PartJob<D>>,
}

/// A part of a read that is served beside the others: a page, or bytes that needed no flash.
struct PartJob<D: Destination> {
    page: Option<PageRead>,
    ready: u64,
    read: Rc<Gather<D>>,
}

/// A read whose parts are under way.
struct Gather<D: Destination> {
    sim: Sim,
    core: Rc<Core>,
    to: D,
    task: TaskId,
    left: Cell<usize>,
    /// Where the time of the part went that ended last.
    last: RefCell<Breakdown>,
    /// The failure with the lowest sector so far.
    failed: Cell<Option<ReadError>>,
}

impl State {
    /// Looks an extent up, all at one instant: clears and copies to memory what needs no flash, and pins the blocks of the other
    /// pages.
    fn look_up(
        &mut self,
        extent: Extent,
        to: &impl Destination,
        pages: &mut Pages,
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
        pages: &mut Pages,
    ) -> Result<Result<(), ReadError>, FragmentMiss> {
        let (held, lost) = match self.cache.newest(piece.lpn.0) {
            Some(slot) => (self.cache.slot(slot).mask, self.cache.slot(slot).lost),
            None => (0, self.spoiled.get(&piece.lpn.0).copied().unwrap_or(0)),
        };
        let is_held = held & piece.mask() == piece.mask();
        let entry = if is_held { Entry::UNMAPPED } else { self.map.lookup(piece.lpn)? };
        let lost = (lost | u64::from(entry.lost()) & !held) & piece.mask();
        let first = u64::from(piece.lpn.0) * u64::from(self.unit.sectors());
        if lost != 0 {
            let sector = first + u64::from(lost.trailing_zeros());
            return Ok(Err(ReadError { sector, why: Unreadable::Lost }));
        }
        let overlay =
            self.cache.newest(piece.lpn.0).and_then(|slot| self.cache.data(slot)).map(|data| (held, data.clone()));
        match entry.unit() {
            Some(unit) => self.push_page(pages, unit, piece, overlay),
            None if held & piece.mask() == 0 && to.rejects_unmapped() => {
                let sector = first + u64::from(piece.skip);
                return Ok(Err(ReadError { sector, why: Unreadable::Unmapped }));
            }
            None => {
                if !is_held {
                    to.mem().clear(piece.at, piece.bytes());
                }
                overlay
                    .into_iter()
                    .for_each(|newer| lay_over(&newer, piece.offset(), piece.bytes(), piece.at, to.mem()));
            }
        }
        Ok(Ok(()))
    }

    fn push_page(&mut self, pages: &mut Pages, unit: UnitId, piece: &Piece, overlay: Option<(u64, Rc<[u8]>)>) {
        let page = self.geometry.page_of(unit);
        let (offset, len, at) = (piece.offset(), piece.bytes(), piece.at);
        let copy = self.cache.keeps_data().then_some(CopyOut { unit, offset, len, at, overlay });
        let (flash_bytes, host_bytes) = (self.geometry.unit_size(), piece.bytes() as u32);
        match pages.last_mut() {
            Some(last) if last.page == page => {
                last.flash_bytes += flash_bytes;
                last.host_bytes += host_bytes;
                last.copies.extend(copy);
            }
            _ => {
                self.chunks.pin(self.geometry.block_of(page));
                let sector = u64::from(piece.lpn.0) * u64::from(self.unit.sectors()) + u64::from(piece.skip);
                pages.push(PageRead { page, sector, flash_bytes, host_bytes, copies: copy.into_iter().collect() });
            }
        }
    }
}

/// Copies the sectors that a slot of the cache holds over what was read.
fn lay_over((held, newer): &(u64, Rc<[u8]>), offset: usize, len: usize, at: usize, mem: &HostMem) {
    let sector = SECTOR as usize;
    for place in (offset..offset + len).step_by(sector).filter(|place| held & 1 << (place / sector) != 0) {
        mem.write(at + place - offset, &newer[place..place + sector]);
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

    /// Reads a page, and copies what was asked of it. Returns the bytes to deliver.
    async fn sense<Caller>(&self, read: &PageRead, mem: &HostMem, breakdown: &mut Breakdown) -> Result<u64, ReadError> {
        let who = self.config.priority.who(cause::HOST_READ);
        let sensed = self.media.read_for::<Caller>(read.page, read.flash_bytes, who, breakdown).await;
        if sensed.is_ok() {
            for copy in &read.copies {
                match self.media.data(copy.unit) {
                    Some(data) => mem.write(copy.at, &data[copy.offset..copy.offset + copy.len]),
                    None => mem.clear(copy.at, copy.len),
                }
                if let Some(newer) = &copy.overlay {
                    lay_over(newer, copy.offset, copy.len, copy.at, mem);
                }
            }
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
        OxReader { ftl: ftl.clone(), parts: Workers::new(&ftl.sim, PartJob::run) }
    }

    async fn look_up(
        &self,
        core: &Core,
        extent: Extent,
        to: &D,
        breakdown: &mut Breakdown,
    ) -> Result<Pages, ReadError> {
        let mut pages = Pages::new();
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

    /// Loads fragments of the map, keeps them, and looks the extent up when all of them are there: at one instant, so that a
    /// read never sees a part of a write.
    async fn look_up_loading(
        &self,
        core: &Core,
        extent: Extent,
        to: &D,
        mut miss: FragmentMiss,
    ) -> Result<Pages, ReadError> {
        let mut kept: SmallVec<[u32; 2]> = SmallVec::new();
        let ended = loop {
            if core.load(miss, &mut Breakdown::new()).await.is_err() {
                // The map has gone with the power.
                return Err(ReadError { sector: extent.start, why: Unreadable::Media(MediaError::PowerLost) });
            }
            let (mut state, mut pages) = (core.state.borrow_mut(), Pages::new());
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

    /// Several pages, or none.
    async fn read_parts(
        &self,
        core: Rc<Core>,
        pages: Pages,
        extent: Extent,
        to: &D,
        breakdown: &mut Breakdown,
    ) -> Result<(), ReadError> {
        let from_flash: u64 = pages.iter().map(|page| u64::from(page.host_bytes)).sum();
        let ready = extent.bytes() - from_flash;
        let read = Rc::new(Gather {
            sim: self.ftl.sim.clone(),
            core,
            to: to.clone(),
            task: self.ftl.sim.current_task(),
            left: Cell::new(pages.len() + usize::from(ready > 0)),
            last: RefCell::default(),
            failed: Cell::new(None),
        });
        let ready = (ready > 0).then_some((None, ready));
        for (page, ready) in pages.into_iter().map(|page| (Some(page), 0)).chain(ready) {
            self.parts.start(PartJob { page, ready, read: read.clone() });
        }
        std::future::poll_fn(|_| if read.left.get() == 0 { Poll::Ready(()) } else { Poll::Pending }).await;
        *breakdown += &*read.last.borrow();
        read.failed.get().map_or(Ok(()), Err)
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
            // The ordinary small read: all of it is in one page.
            [page] if u64::from(page.host_bytes) == extent.bytes() => {
                let bytes = core.sense::<(Caller, D)>(page, to.mem(), breakdown).await?;
                to.deliver(bytes, breakdown).await;
                Ok(())
            }
            _ => Box::pin(self.read_parts(core, pages, extent, to, breakdown)).await,
        }
    }
}

impl<D: Destination> PartJob<D> {
    /// Serves the part. The read goes on when it was the last.
    async fn run(&mut self) {
        let PartJob { page, ready, read } = &*self;
        let mut breakdown = Breakdown::new();
        let bytes = match page {
            Some(page) => read.core.sense::<PartJob<D>>(page, read.to.mem(), &mut breakdown).await,
            None => Ok(*ready),
        };
        let ended = match bytes {
            Ok(bytes) => {
                read.to.deliver(bytes, &mut breakdown).await;
                Ok(())
            }
            Err(error) => Err(error),
        };
        let failed = read.failed.get().into_iter().chain(ended.err());
        read.failed.set(failed.min_by_key(|failed| failed.sector));
        read.left.set(read.left.get() - 1);
        if read.left.get() == 0 {
            *read.last.borrow_mut() = breakdown;
            read.sim.wake(read.task);
        }
    }
}
