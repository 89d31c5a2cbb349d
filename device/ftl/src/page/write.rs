//! From the host into the write cache, and from the cache to flash.

use std::convert::Infallible;
use std::rc::Rc;

use nandscape_device_media::{PageId, PageImage, UnitId};
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, HostMem};
use nandscape_sim::Wait;
use smallvec::SmallVec;

use super::cache::SlotState;
use super::state::State;
use super::{PageFtl, Plain};
use crate::address::{Extent, Location, Piece, SlotId};
use crate::component::{BlockMetadata, Components, Mapping};
use crate::ftl::Settling;

/// The tag of a unit that was programmed to fill a page and holds nothing.
pub(super) const NO_LPN: u32 = u32::MAX;

/// Cache slots set aside for a write, given back when dropped.
pub struct Room<'a> {
    ftl: &'a PageFtl,
    slots: u32,
}

/// A page to program, and the cache slots whose data it takes.
pub(super) struct ProgramJob {
    page: PageId,
    slots: SmallVec<[SlotId; 8]>,
}

/// A slot whose unit is to be completed from flash.
pub(super) struct FillJob {
    slot: SlotId,
    generation: u32,
    from: UnitId,
}

impl<'a> Room<'a> {
    pub(super) async fn reserve(ftl: &'a PageFtl, extent: Extent, waited: &mut Wait) -> Room<'a> {
        let slots = extent.units(ftl.state.borrow().unit);
        if !ftl.room.try_take(slots as usize) {
            ftl.push_out();
            ftl.room.take(slots as usize, waited).await;
        }
        Room { ftl, slots }
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        if self.slots > 0 {
            self.ftl.room.give(self.slots as usize);
        }
    }
}

impl<C: Components> State<C>
where
    C::Mapping: Mapping<Miss = Infallible>,
{
    /// The slot that a write to a unit goes to, and whether it is a new one.
    fn slot_for(&mut self, piece: &Piece) -> (SlotId, bool) {
        let location = self.location(piece.lpn);
        let like = match location {
            Location::Cached(slot) if self.cache.slot(slot).state == SlotState::Programming => Some(slot),
            Location::Cached(slot) => return (slot, false),
            _ => None,
        };
        let slot = self.cache.insert(piece.lpn, location, like);
        self.remap(piece.lpn, Location::Cached(slot));
        (slot, true)
    }

    /// Forgets a unit, wherever it is. Returns the slots that this frees, and who watched them.
    fn deallocate(&mut self, piece: &Piece) -> Option<Vec<Rc<Settling>>> {
        let Location::Cached(slot) = self.remap(piece.lpn, Location::Unmapped) else { return None };
        let durable = std::mem::replace(&mut self.cache.slot_mut(slot).durable, Location::Unmapped);
        match durable {
            Location::Cached(before) => {
                let older = std::mem::replace(&mut self.cache.slot_mut(before).durable, Location::Unmapped);
                self.drop_copy(older);
            }
            copy => self.drop_copy(copy),
        }
        (self.cache.slot(slot).state != SlotState::Programming).then(|| self.cache.remove(slot))
    }

    /// The next page to program, if there is enough to fill one, or somebody waits: for what is in the cache, or, if
    /// `pressed`, for its room.
    fn next_program(&mut self, fills: &mut Vec<FillJob>, pressed: bool) -> Option<ProgramJob> {
        let per_page = self.geometry.units_per_page();
        let urgent = pressed || self.cache.is_urgent();
        if self.cache.queued() < per_page && !urgent {
            return None;
        }
        let batch = self.cache.front(per_page);
        for slot in batch.partial {
            let Location::Flash(from) = self.cache.slot(slot).durable else {
                unreachable!("a slot over no copy on flash is whole")
            };
            self.cache.start(slot, SlotState::Filling);
            self.blocks.pin(self.geometry.block_of(self.geometry.page_of(from)));
            fills.push(FillJob { slot, generation: self.cache.slot(slot).generation, from });
        }
        let enough = batch.whole.len() as u32 == per_page || (urgent && !batch.whole.is_empty());
        if !enough {
            return None;
        }
        let page = self.next_host_page()?;
        batch.whole.iter().for_each(|slot| self.cache.start(*slot, SlotState::Programming));
        Some(ProgramJob { page, slots: batch.whole })
    }

    fn image(&mut self, job: &ProgramJob) -> PageImage {
        let mut image = PageImage::default();
        for slot in &job.slots {
            image.push(self.cache.slot(*slot).lpn.0, self.cache.share_data(*slot));
        }
        let padding = self.geometry.units_per_page() - job.slots.len() as u32;
        (0..padding).for_each(|_| image.push(NO_LPN, None));
        self.counters.host_units += job.slots.len() as u64;
        self.counters.padding_units += u64::from(padding);
        image
    }
}

impl PageFtl {
    pub(super) fn accept_write(
        &self,
        extent: Extent,
        data: Option<&HostMem>,
        mut room: Room<'_>,
        watch: bool,
    ) -> Option<Rc<Settling>> {
        let mut state = self.state.borrow_mut();
        let units = extent.units(state.unit);
        let settling = watch.then(|| Settling::new(&self.sim, units));
        for piece in extent.pieces(state.unit) {
            let (slot, is_new) = state.slot_for(&piece);
            state.cache.write(slot, &piece, |bytes| match data {
                Some(mem) => mem.read(piece.at, bytes),
                None => bytes.fill(0),
            });
            room.slots -= u32::from(is_new);
            state.counters.cache_merges += u64::from(!is_new);
            if let Some(settling) = &settling {
                state.cache.watch(slot, settling);
            }
        }
        state.counters.host_bytes += extent.bytes();
        drop(state);
        drop(room);
        self.pump();
        settling
    }

    pub(super) fn deallocate_units(&self, extent: Extent) {
        let mut state = self.state.borrow_mut();
        let (mut freed, mut watchers) = (0, Vec::new());
        let unit = state.unit;
        for piece in extent.pieces(unit).filter(|piece| piece.sectors == unit.sectors()) {
            match state.location(piece.lpn) {
                Location::Unmapped => {}
                Location::Cached(_) => {
                    if let Some(watching) = state.deallocate(&piece) {
                        freed += 1;
                        watchers.extend(watching);
                    }
                }
                copy => {
                    state.remap(piece.lpn, Location::Unmapped);
                    state.drop_copy(copy);
                }
            }
        }
        drop(state);
        watchers.iter().for_each(|settling| settling.one_settled(None));
        self.room.give(freed);
        self.start_collectors();
    }

    pub(super) fn flush_cache(&self) -> Option<Rc<Settling>> {
        let mut state = self.state.borrow_mut();
        if state.cache.is_empty() {
            return None;
        }
        let slots: Vec<SlotId> = state.cache.occupied().collect();
        let settling = Settling::new(&self.sim, slots.len() as u32);
        slots.iter().for_each(|slot| state.cache.watch(*slot, &settling));
        drop(state);
        self.pump();
        Some(settling)
    }

    /// Starts as many programs as there is data for and planes are ready to take. Called whenever either changes.
    pub(super) fn pump(&self) {
        let mut fills = Vec::new();
        let mut state = self.state.borrow_mut();
        loop {
            let pressed = self.room.contended() && self.is_stuck(&state);
            let Some(job) = state.next_program(&mut fills, pressed) else { break };
            self.programs.start(job);
        }
        let short = self.room.contended() && state.is_short_of_space();
        drop(state);
        self.room.blame(if short { cause::GC } else { cause::HOST_WRITE });
        fills.into_iter().for_each(|job| self.fills.start(job));
        self.start_collectors();
    }

    /// Whether everything in the cache is in line and no write is on its way to it: without more, no page would fill.
    fn is_stuck(&self, state: &State<Plain>) -> bool {
        self.room.free() + state.cache.queued() as usize == self.config.cache_units as usize
    }

    /// Called by a write that is about to wait for room: programs what waits for company to fill a page, if that is all
    /// that stands in the way.
    fn push_out(&self) {
        let mut fills = Vec::new();
        let mut state = self.state.borrow_mut();
        let job = if self.is_stuck(&state) { state.next_program(&mut fills, true) } else { None };
        drop(state);
        job.into_iter().for_each(|job| self.programs.start(job));
        fills.into_iter().for_each(|job| self.fills.start(job));
        self.start_collectors();
    }

    /// Programs a page: the cache's data becomes the flash's.
    pub(super) async fn program(&self, job: ProgramJob) {
        let issued = self.sim.now();
        let mut log = Breakdown::new();
        let image = self.state.borrow_mut().image(&job);
        let who = self.config.priority.who(cause::HOST_WRITE);
        self.media.program(job.page, image, who, &mut log).await;

        let mut state = self.state.borrow_mut();
        let mut watchers = Vec::new();
        for (slot, number) in job.slots.iter().zip(0..) {
            let unit = state.geometry.unit_at(job.page, number);
            state.slot_programmed(*slot, unit);
            watchers.extend(state.cache.remove(*slot));
        }
        state.host_page_programmed(job.page);
        drop(state);
        watchers.iter().for_each(|settling| settling.one_settled(Some((issued, &log))));
        self.room.give(job.slots.len());
        self.pump();
    }

    /// Reads what a slot lacks of its unit: the "read" of a read-modify-write.
    pub(super) async fn fill(&self, job: FillJob) {
        let (page, bytes) = {
            let state = self.state.borrow();
            (state.geometry.page_of(job.from), state.geometry.unit_size())
        };
        let who = self.config.priority.who(cause::HOST_WRITE);
        self.media.read(page, bytes, who, &mut Breakdown::new()).await;

        let mut state = self.state.borrow_mut();
        state.counters.read_modify_writes += 1;
        // The slot may have been deallocated, and even be in use again, since.
        if state.cache.slot(job.slot).generation == job.generation {
            state.cache.fill(job.slot, self.media.data(job.from).as_deref());
            state.cache.requeue(job.slot);
        }
        let block = state.geometry.block_of(page);
        state.blocks.unpin(block);
        drop(state);
        self.unpinned.notify();
        self.pump();
    }
}
