//! Writes from the host into the write buffer, and from the buffer to flash.

use std::rc::Rc;

use nandscape_device_ftl_core::address::{Extent, Location, Piece, SlotId, metadata_of};
use nandscape_device_ftl_core::component::BlockMetadata;
use nandscape_device_ftl_core::ftl::{Milestone, Settling, Unwritable};
use nandscape_device_ftl_core::policy::{BufferFill, BufferPolicy};
use nandscape_device_media::{Broken, MediaError, PageImage, UnitId};
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, HostMem};
use nandscape_sim::{Cause, Wait};
use smallvec::SmallVec;

use super::PageFtl;
use super::background::Work;
use super::buffer::SlotState;
use super::state::State;
use super::together::Pages;
use super::turns::Waiting;

/// The tag of a padding unit, which holds no data.
pub(super) const NO_LPN: u32 = u32::MAX;

/// Slots set aside for a write, given back when dropped.
pub struct Reservation<'a> {
    ftl: &'a PageFtl,
    slots: u32,
    /// The handle by which the data is placed.
    pub(super) handle: u8,
}

/// Pages that are programmed with one command, and the buffer slots of their data, in order.
pub(super) struct ProgramJob {
    pages: Pages,
    slots: SmallVec<[SlotId; 8]>,
    handle: u8,
}

/// A fill: a slot whose missing sectors are read from flash.
pub(super) struct FillJob {
    slot: SlotId,
    generation: u32,
    from: UnitId,
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        if self.slots > 0 {
            self.ftl.free_slots.give(self.slots as usize);
        }
    }
}

impl State {
    /// The slot for a write to a unit, and whether it is a new one.
    fn slot_for(&mut self, piece: &Piece) -> (SlotId, bool) {
        let location = self.tables.location(piece.lpn);
        let like = match location {
            Location::Buffered(slot) if self.buffer.slot(slot).state == SlotState::Programming => Some(slot),
            Location::Buffered(slot) => return (slot, false),
            _ => None,
        };
        let slot = self.buffer.insert(piece.lpn, location, like);
        if location == Location::Unmapped && self.is_absent(piece.lpn) {
            self.buffer.lack_all(slot);
        }
        self.tables.remap(piece.lpn, Location::Buffered(slot));
        (slot, true)
    }

    /// Starts the programs of the next allocation stripe, one per die, if the data is enough for all of them, or a command
    /// waits. Returns whether it did.
    fn next_stripe(&mut self, start: impl Fn(ProgramJob)) -> bool {
        if !self.is_time_to_write() || !self.programs.is_any_ready() {
            return false;
        }
        let most = self.stripe_units();
        let Some((handle, slots)) = self.next_slots(most) else { return false };
        let (stripe, mut rest) = (self.programs.allocation.next_for(handle), &slots[..]);
        let any = !stripe.is_empty();
        for plane in stripe {
            if rest.is_empty() {
                break;
            }
            let pages = self.host_pages(plane, handle, rest.len() as u32);
            let units = pages.len() * self.geometry.units_per_page() as usize;
            let (slots, others) = rest.split_at(units.min(rest.len()));
            slots.iter().for_each(|slot| self.buffer.start(*slot, SlotState::Programming));
            start(ProgramJob { pages, slots: slots.into(), handle });
            rest = others;
        }
        any
    }

    /// The slots of the next stripe, which are all of one handle: `most`, or fewer if a command waits.
    fn next_slots(&self, most: u32) -> Option<(u8, SmallVec<[SlotId; 8]>)> {
        let is_urgent = self.buffer.is_urgent();
        let of = |handle: u8| (handle, self.buffer.front(handle, most));
        let is_whole = |slots: &SmallVec<[SlotId; 8]>| slots.len() as u32 == most;
        if self.buffer.lines() == 1 {
            return Some(of(0)).filter(|(_, slots)| is_whole(slots) || (is_urgent && !slots.is_empty()));
        }
        let mut handles = self.buffer.handles_by_age();
        handles.retain(|handle| self.programs.allocation.is_ready_for(*handle));
        let whole = handles.iter().copied().map(of).find(|(_, slots)| is_whole(slots));
        whole.or_else(|| handles.iter().copied().filter(|_| is_urgent).map(of).find(|(_, slots)| !slots.is_empty()))
    }

    /// Whether the data is enough for an allocation stripe, including partial slots, or a command waits.
    fn is_time_to_write(&self) -> bool {
        (self.buffer.queued() >= self.stripe_units() || self.buffer.is_urgent()) && self.may_program()
    }

    /// The next slot to fill, if one is due. A partial slot is filled when it is the oldest in line, or earlier when
    /// the dies would otherwise run out of whole slots to program; until then its neighbours may still be written.
    /// Fills under way are limited to what the dies program in two rounds, so that programs wait for few of them. Fills
    /// that a collector keeps out of their plane do not count, so that the others continue.
    fn next_fill(&mut self) -> Option<FillJob> {
        let (slot, is_oldest) = self.buffer.next_partial()?;
        let (most, ready) = (2 * self.programs.units_per_round(), self.buffer.ready());
        let fills = self.programs.holdups.free_fills();
        let is_due = fills < most && (is_oldest || ready + fills < most);
        if !is_due || !self.is_time_to_write() {
            return None;
        }
        let Location::Flash(from) = self.buffer.slot(slot).previous else {
            unreachable!("a slot over no copy on flash is whole")
        };
        self.buffer.start(slot, SlotState::Filling);
        let block = self.geometry.block_of(self.geometry.page_of(from));
        self.tables.blocks.pin(block);
        self.programs.holdups.fill_begins(self.geometry.plane_of(block));
        Some(FillJob { slot, generation: self.buffer.slot(slot).generation, from })
    }

    /// Whether every slot in line has a predecessor that is still being programmed.
    fn is_all_behind(&self) -> bool {
        !(0..self.buffer.lines() as u8).any(|handle| self.buffer.has_front(handle))
    }

    /// The cause of the wait of the host's data: collectors, fills where too few slots are whole for a program, or other
    /// writes.
    fn culprit(&self) -> Cause {
        match self.programs.holdups.culprit() {
            cause::HOST_WRITE if self.buffer.ready() > 0 && self.is_all_behind() => self.programs.culprit(),
            cause::HOST_WRITE if self.buffer.ready() < self.stripe_units() => self.programs.holdups.fill_culprit(),
            culprit => culprit,
        }
    }

    /// The image of a job's pages, padded at the end.
    fn image(&mut self, job: &ProgramJob) -> PageImage {
        let mut image = PageImage::default();
        for slot in &job.slots {
            let data = self.buffer.share_data(*slot);
            match self.oob_for(*slot) {
                None => image.push(self.buffer.slot(*slot).lpn.0, data),
                Some(oob) => image.push_with_oob(oob, data),
            }
        }
        image.pad(job.pages.len() * self.geometry.units_per_page() as usize, NO_LPN);
        self.program_begins();
        self.counters.host_units += job.slots.len() as u64;
        self.counters.padding_units += (image.len() - job.slots.len()) as u64;
        if let Some(placed) = &mut self.placed {
            let unit = u64::from(self.geometry.unit_size());
            let (data, all) = (job.slots.len() as u64 * unit, image.len() as u64 * unit);
            placed.programmed(job.handle, data, all - data);
        }
        image
    }
}

/// Waits for slots for the units of an extent.
pub(super) async fn reserve<'a>(ftl: &'a PageFtl, extent: Extent, waited: &mut Wait) -> Reservation<'a> {
    let (slots, holds, has_windows) = {
        let state = ftl.state.borrow();
        (extent.units(state.unit), state.orders.hold(), state.turns.is_in_force())
    };
    if holds {
        ftl.end_hold();
    }
    let is_full = ftl.config.rain.is_some() && (ftl.free_slots.free() < slots as usize || ftl.free_slots.contended());
    let _waits = is_full.then(|| ftl.flush_in_foreground());
    let spare = ftl.buffer_policy.as_deref().map_or(0, |policy| spare(ftl, policy, slots));
    if has_windows {
        return Box::pin(reserve_in_window(ftl, (slots, spare), waited)).await;
    }
    ftl.free_slots.take((slots + spare) as usize, waited).await;
    if spare > 0 {
        ftl.free_slots.give(spare as usize);
    }
    Reservation { ftl, slots, handle: 0 }
}

/// The same while there are windows: the buffer is written for a write that finds no room.
async fn reserve_in_window<'a>(ftl: &'a PageFtl, (slots, spare): (u32, u32), waited: &mut Wait) -> Reservation<'a> {
    if !ftl.free_slots.try_take((slots + spare) as usize) {
        let _waiting = Waiting::new(ftl.state.borrow().writes_waiting());
        ftl.pump();
        ftl.free_slots.take((slots + spare) as usize, waited).await;
    }
    if spare > 0 {
        ftl.free_slots.give(spare as usize);
    }
    Reservation { ftl, slots, handle: 0 }
}

/// The slots that must be free in addition to those of a write. At most this is all slots that are sure to become free:
/// less than a stripe may stay in the buffer.
#[cold]
fn spare(ftl: &PageFtl, policy: &dyn BufferPolicy, wanted: u32) -> u32 {
    let slots = ftl.config.buffer_units;
    let free = u32::try_from(ftl.free_slots.free()).map_or(slots, |free| free.min(slots));
    let sure = slots - ftl.state.borrow().stuck_units();
    policy.spare(&BufferFill { slots, free, wanted }).min(sure.saturating_sub(wanted))
}

/// Takes a write into the buffer. Inlined, so that writes without metadata do not test for metadata.
#[inline(always)]
pub(super) fn accept(
    ftl: &PageFtl,
    extent: Extent,
    data: Option<&HostMem>,
    metadata: Option<&HostMem>,
    mut reservation: Reservation<'_>,
    watch: Option<Milestone>,
) -> Option<Rc<Settling>> {
    let mut state = ftl.state.borrow_mut();
    let units = extent.units(state.unit);
    let settling = watch.map(|milestone| Settling::new(&ftl.sim, units, milestone, ftl.free_slots.totals()));
    let mut remembered = Ok(());
    for piece in extent.pieces(state.unit) {
        let (slot, is_new) = state.slot_for(&piece);
        if state.placed.is_some() {
            let handle = state.handle_of(piece.lpn, reservation.handle);
            state.buffer.place(slot, handle);
            state.placed.as_mut().expect("it is there").written(piece.lpn);
        }
        let found = state.find_again(&piece);
        state.buffer.slot_mut(slot).was_lost |= found;
        if let Some(mem) = metadata {
            state.buffer.write_metadata(slot, &piece, |bytes| mem.read(metadata_of(piece.at), bytes));
        }
        match data {
            Some(mem) => state.buffer.write(slot, &piece, |bytes| mem.read(piece.at, bytes)),
            None => state.buffer.write_zeros(slot, &piece),
        }
        if is_new && state.rain.is_some() {
            state.stripe_waits(slot);
        }
        reservation.slots -= u32::from(is_new);
        state.counters.buffer_merges += u64::from(!is_new);
        if state.memory.is_some() {
            remembered = remembered.and(state.remember_write(slot, units == 1));
        }
        if let Some(settling) = &settling {
            state.buffer.watch(slot, settling);
        }
    }
    if state.memory.is_some() {
        remembered = remembered.and(state.remember_whole_write(units));
    }
    state.counters.host_bytes += extent.bytes();
    if let Some(placed) = &mut state.placed {
        placed.accepted(reservation.handle, extent.bytes());
    }
    drop(state);
    drop(reservation);
    ftl.pump();
    match remembered {
        Ok(()) => settling,
        Err(_) => Some(not_kept(ftl)),
    }
}

/// Takes a write of zeros to a whole unit, metadata too.
pub(super) fn accept_zeros(ftl: &PageFtl, extent: Extent, mut reservation: Reservation<'_>) {
    let mut state = ftl.state.borrow_mut();
    for piece in extent.pieces(state.unit) {
        let (slot, is_new) = state.slot_for(&piece);
        let found = state.find_again(&piece);
        state.buffer.slot_mut(slot).was_lost |= found;
        state.buffer.write(slot, &piece, |_| ());
        state.buffer.clear(slot);
        if is_new {
            state.stripe_waits(slot);
        }
        reservation.slots -= u32::from(is_new);
    }
    drop(state);
    drop(reservation);
    ftl.pump();
}

/// A write that the drive's durable memory could not take.
#[cold]
fn not_kept(ftl: &PageFtl) -> Rc<Settling> {
    let settling = Settling::new(&ftl.sim, 1, Milestone::Flash, ftl.free_slots.totals());
    settling.give_up(1, Unwritable::ReadOnly);
    settling
}

/// Programs everything in the buffer, padding the last page.
pub(super) fn flush(ftl: &PageFtl) -> Option<Rc<Settling>> {
    let mut state = ftl.state.borrow_mut();
    let slots = state.buffer.in_use();
    if slots == 0 {
        // Earlier programs may not be safe from a loss of the host's power yet.
        let is_safe = state.sync();
        return if !is_safe || ftl.media.store_has_failed() { Some(not_kept(ftl)) } else { None };
    }
    let settling = Settling::new(&ftl.sim, slots, Milestone::Flash, ftl.free_slots.totals());
    if ftl.read_only.get().is_some() {
        settling.give_up(slots, Unwritable::ReadOnly);
        return Some(settling);
    }
    state.buffer.flush(&settling);
    drop(state);
    ftl.end_hold();
    ftl.pump();
    Some(settling)
}

impl PageFtl {
    /// Starts programs while data is available and planes are ready, and due fills. Called whenever either changes.
    pub(super) fn pump(&self) {
        self.check_read_only();
        if !self.is_running() {
            return;
        }
        if self.config.rain.is_some() {
            self.pump_stripes();
            return self.start_collectors();
        }
        let mut state = self.state.borrow_mut();
        while state.next_stripe(|job| self.programs.start(job)) {}
        while let Some(job) = state.next_fill() {
            self.fills.start(job);
        }
        let behind = state.culprit();
        self.start_admitted(&mut state);
        drop(state);
        self.free_slots.blame(behind);
    }

    /// Programs pages: the buffer's data becomes the flash's.
    pub(super) async fn program(&self, job: &ProgramJob) {
        let issued = self.free_slots.totals();
        let mut breakdown = Breakdown::new();
        let image = self.state.borrow_mut().image(job);
        let who = self.config.priority.who(cause::HOST_WRITE);
        let plane = self.media.geometry().plane_of(self.media.geometry().block_of(job.pages[0]));
        let work = self.background.program(plane, &job.pages);
        let loaded = |breakdown: &Breakdown| {
            work.iter().for_each(Work::is_loaded);
            let watchers = self.state.borrow_mut().buffer.loaded(&job.slots);
            watchers.iter().for_each(|settling| settling.one_settled(Some((&issued, breakdown))));
        };
        let counted = match self.gate.is_closed() {
            true => Some(self.gate.pass(&self.media, who, &mut breakdown).await),
            false => None,
        };
        let ended = self.media.program_together(&job.pages, &image, who, &mut breakdown, loaded).await;
        drop(counted);
        drop(work);
        if let Err(broken) = ended {
            return self.not_programmed(job, broken);
        }

        let mut state = self.state.borrow_mut();
        let mut watchers = Vec::new();
        let (geometry, per_page) = (state.geometry, state.geometry.units_per_page() as usize);
        for (page, slots) in job.pages.iter().zip(job.slots.chunks(per_page)) {
            for (slot, number) in slots.iter().zip(0..) {
                state.slot_programmed(*slot, geometry.unit_at(*page, number));
                watchers.extend(state.buffer.remove(*slot));
            }
        }
        for page in &job.pages {
            state.programs.holdups.programmed(geometry.plane_of(geometry.block_of(*page)), &breakdown);
        }
        state.host_program_ended(&job.pages);
        let is_safe = watchers.is_empty() || state.sync();
        let is_awaited = state.pace.is_suspended;
        drop(state);
        if is_awaited {
            self.came_to_rest.notify();
        }
        watchers.iter().for_each(|settling| match is_safe {
            true => settling.one_settled(Some((&issued, &breakdown))),
            false => settling.give_up(1, Unwritable::ReadOnly),
        });
        self.free_slots.give(job.slots.len());
        self.pump();
    }

    /// A program has failed: its data is still in the buffer, and is programmed elsewhere.
    fn not_programmed(&self, job: &ProgramJob, broken: Broken) {
        let mut state = self.state.borrow_mut();
        job.slots.iter().rev().for_each(|slot| state.buffer.take_back(*slot));
        state.take_note(broken);
        if let Some(placed) = state.placed.as_ref().filter(|_| broken.error != MediaError::PowerLost) {
            placed.left(job.handle);
        }
        state.host_program_ended(&job.pages);
        let is_awaited = state.pace.is_suspended;
        drop(state);
        if is_awaited {
            self.came_to_rest.notify();
        }
        self.pump();
    }

    /// Reads the sectors that a slot lacks: the "read" of a read-modify-write.
    pub(super) async fn fill(&self, job: &FillJob) {
        let (page, bytes) = {
            let state = self.state.borrow();
            (state.geometry.page_of(job.from), state.geometry.unit_size())
        };
        let who = self.config.priority.who(cause::READ_MODIFY_WRITE);
        let _counted = match self.gate.is_closed() {
            true => Some(self.gate.pass(&self.media, who, &mut Breakdown::new()).await),
            false => None,
        };
        // Other readers' units of the page must not be the only ones read.
        if self.media.is_remote() {
            self.media.want([job.from].into_iter());
        }
        let read = self.media.read(page, bytes, who, &mut Breakdown::new()).await;
        let data = read.is_ok().then(|| self.media.data(job.from)).flatten();
        let read = if self.media.take_read_failure() { Err(MediaError::Uncorrectable) } else { read };

        let mut state = self.state.borrow_mut();
        state.counters.read_modify_writes += 1;
        // The slot may have been deallocated, and even be in use again, since.
        if state.buffer.slot(job.slot).generation == job.generation {
            match read {
                Ok(()) => state.buffer.fill(job.slot, data.as_deref()),
                // It is filled after power has returned.
                Err(MediaError::PowerLost) => {}
                Err(error) => {
                    state.take_note(Broken { error, page });
                    state.lose_rest(job.slot);
                }
            }
            state.buffer.requeue(job.slot);
        }
        let block = state.geometry.block_of(page);
        let plane = state.geometry.plane_of(block);
        state.tables.blocks.unpin(block);
        state.programs.holdups.fill_ended(plane);
        drop(state);
        self.unpinned.notify();
        self.pump();
    }
}
