//! From the host into the write cache, from there to flash, and into the map.

use std::rc::Rc;

use nandscape_device_media::{MediaError, PageId, PageImage};
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, HostMem};
use nandscape_sim::Wait;
use smallvec::SmallVec;

use super::OxBlock;
use super::cache::{SlotState, Transaction, WriteCache};
use super::chores::Chore;
use super::core::{Core, Phase, Stopped};
use super::lines::{Layout, Stamp};
use super::mistakes::{self, Mistake};
use super::pages::NO_LPN;
use super::program::{ProgramJob, Then};
use super::state::{Mover, State};
use super::streams::HOT;
use crate::address::{Extent, Lpn, Piece, SlotId, UnitSize};
use crate::component::{BlockMetadata, CacheFill, CachedMapping, FragmentMiss, Log, LogPosition, Mapping};
use crate::ftl::{Milestone, Refusal, Settling};
use crate::parts::{Entry, Record};

/// Slots set aside for a write, given back when dropped.
pub struct Reservation<'a> {
    ftl: &'a OxBlock,
    slots: u32,
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        if self.slots > 0 {
            self.ftl.shared.free_slots.give(self.slots as usize);
        }
    }
}

/// Waits until the drive is in service and has a number of slots.
pub(super) async fn reserve<'a>(ftl: &'a OxBlock, slots: u32, waited: &mut Wait) -> Reservation<'a> {
    let begun = ftl.sim.now();
    ftl.in_service().await;
    let start = ftl.sim.now() - begun;
    if !ftl.shared.free_slots.try_take(slots as usize) {
        let core = ftl.core();
        core.flags.starved.set(true);
        core.pump();
        drop(core);
        ftl.shared.free_slots.take(slots as usize, waited).await;
    }
    // At the end: a command that is stopped meanwhile counts all of the time itself.
    waited.add(cause::METADATA, start);
    Reservation { ftl, slots }
}

/// Takes a write into the cache: extents whose data is one after the other, as a transaction or not.
pub(super) fn accept(
    ftl: &OxBlock,
    extents: &[Extent],
    data: Option<&HostMem>,
    mut reservation: Reservation<'_>,
    watch: Option<Milestone>,
    is_transaction: bool,
) -> Option<Rc<Settling>> {
    let core = ftl.core();
    let mut state = core.state.borrow_mut();
    let units = extents.iter().map(|extent| extent.units(state.unit)).sum();
    let settling = watch.map(|milestone| Settling::new(&core.sim, 1, milestone, core.shared.free_slots.totals()));
    let group = settling.as_ref().map(|settling| WriteCache::group(settling, units));
    let transaction = state.begin_transaction(is_transaction);
    // All slots, for the file, and those of a transaction, each once.
    let (is_kept, mut slots, mut own) = (core.shared.kept_cache.is_some(), Vec::new(), Vec::new());
    for (first, piece) in pieces(extents, state.unit) {
        let (slot, is_new) = state.cache.slot_for(piece.lpn.0, transaction);
        if let Some(spoiled) = state.spoiled.remove(&piece.lpn.0) {
            state.cache.spoil(slot, spoiled);
        }
        state.cache.write(slot, &piece, |bytes| match data {
            Some(mem) => mem.read(first + piece.at, bytes),
            None => bytes.fill(0),
        });
        reservation.slots -= u32::from(is_new);
        state.counters.buffer_merges += u64::from(!is_new);
        if let Some(group) = &group {
            state.cache.watch(slot, group);
        }
        if is_kept {
            slots.push(slot);
        }
        if is_transaction && is_new {
            own.push(slot);
        }
    }
    let kept = core.shared.kept_cache.as_ref().map_or(Ok(()), |kept| kept.write(&state.cache, &slots));
    if is_transaction {
        let left = own.len();
        state.cache.transactions.push_back(Transaction { id: transaction, slots: own, left });
    }
    state.counters.host_bytes += extents.iter().map(|extent| extent.bytes()).sum::<u64>();
    drop(state);
    drop(reservation);
    core.pump();
    match kept {
        Ok(()) => settling,
        Err(_) => Some(not_kept(&core)),
    }
}

/// A write that the drive's durable memory could not take.
#[cold]
fn not_kept(core: &Core) -> Rc<Settling> {
    core.give_up_writing();
    let settling = Settling::new(&core.sim, 1, Milestone::Flash, core.shared.free_slots.totals());
    settling.give_up(1, Refusal::ReadOnly);
    settling
}

/// The pieces of extents, each with the bytes of the extents before its own.
fn pieces(extents: &[Extent], unit: UnitSize) -> impl Iterator<Item = (usize, Piece)> {
    let before =
        extents.iter().scan(0, |before, extent| Some(std::mem::replace(before, *before + extent.bytes() as usize)));
    before.zip(extents).flat_map(move |(before, extent)| extent.pieces(unit).map(move |piece| (before, piece)))
}

/// Has everything in the cache programmed, and the log.
pub(super) fn flush(ftl: &OxBlock) -> Option<Rc<Settling>> {
    let core = ftl.core();
    let settling = Settling::new(&core.sim, 1, Milestone::Flash, core.shared.free_slots.totals());
    if core.is_alive() && core.phase.get() == Phase::Starting {
        // Nothing was written since the last power cut.
        return None;
    }
    if !core.is_writing() {
        let why = if core.is_alive() { Refusal::ReadOnly } else { Refusal::PowerLost };
        settling.give_up(1, why);
        return Some(settling);
    }
    let mut state = core.state.borrow_mut();
    let last = state.log.last();
    let is_durable = state.log.is_durable(last);
    match state.cache.flush(&settling) {
        true => {}
        false if is_durable => {
            drop(state);
            if core.sync() {
                return None;
            }
            settling.give_up(1, Refusal::ReadOnly);
            return Some(settling);
        }
        false => state.waiting.push_back((last, settling.clone())),
    }
    state.log.persist(last);
    drop(state);
    core.pump();
    core.kick_log();
    Some(settling)
}

/// What the cache is to do next.
enum Step {
    Program(ProgramJob),
    Fill(SlotId),
    Nothing,
}

impl State {
    fn begin_transaction(&mut self, transactions: bool) -> u64 {
        if !transactions {
            return 0;
        }
        self.next_transaction += 1;
        self.next_transaction - 1
    }

    /// The next fill or program, if one is due.
    fn next_step(&mut self, is_urgent: bool, layout: Layout) -> Step {
        let want = self.geometry.units_per_page() as usize;
        if self.cache.queued() == 0 || (!is_urgent && (self.cache.queued() < want || !self.is_due(want))) {
            return Step::Nothing;
        }
        let mut whole: SmallVec<[SlotId; 8]> = SmallVec::new();
        for number in 0..self.cache.queued() {
            let slot = self.cache.in_line(number).expect("it is in line");
            // A version becomes current after the one before it.
            if !self.cache.is_oldest(slot) && self.cache.slot(slot).transaction == 0 {
                continue;
            }
            if self.cache.is_whole(slot) {
                whole.push(slot);
            } else if self.cache.fills < 2 * self.geometry.planes() {
                return Step::Fill(slot);
            }
            if whole.len() == want {
                break;
            }
        }
        if whole.is_empty() || (whole.len() < want && !is_urgent) {
            return Step::Nothing;
        }
        match self.host_page() {
            Some(page) => Step::Program(self.host_program(page, whole, layout)),
            None => Step::Nothing,
        }
    }

    /// Whether P9 wants a page of data programmed now; no command waits for it.
    fn is_due(&self, page: usize) -> bool {
        self.caching.is_due(&CacheFill {
            queued: self.cache.queued() as u32,
            used: self.cache.used(),
            slots: self.cache.slots(),
            page: page as u32,
        })
    }

    fn host_program(&mut self, page: PageId, slots: SmallVec<[SlotId; 8]>, layout: Layout) -> ProgramJob {
        let units = self.geometry.units_per_page() as usize;
        let mut image = PageImage::default();
        for slot in &slots {
            self.cache.start(*slot, SlotState::Programming);
            let (lpn, data) = (self.cache.slot(*slot).lpn, self.cache.data(*slot).cloned());
            match layout {
                Layout::Log => image.push(lpn, data),
                Layout::Lines(_) => {
                    let stamp =
                        Stamp { sequence: self.next_sequence, lost: self.cache.slot(*slot).lost as u32, stream: HOT };
                    self.next_sequence += 1;
                    image.push_with_oob(stamp.area(lpn), data);
                }
            }
        }
        self.counters.host_units += slots.len() as u64;
        self.counters.padding_units += (units - slots.len()) as u64;
        image.pad(units, NO_LPN);
        self.begin_pending(self.geometry.block_of(page), slots.len());
        ProgramJob { page, image, cause: cause::HOST_WRITE, then: Then::Slots(slots) }
    }

    /// Slots were programmed, or their program has failed: they are in line again then. Whether they were.
    fn placed(&mut self, page: PageId, slots: &[SlotId], is_programmed: bool) -> bool {
        let geometry = self.geometry;
        if !is_programmed {
            self.end_pending(geometry.block_of(page), slots.len());
            slots.iter().rev().for_each(|slot| self.cache.requeue(*slot));
            return false;
        }
        for (slot, number) in slots.iter().zip(0..) {
            self.cache.placed(*slot, geometry.unit_at(page, number));
        }
        true
    }

    /// A programmed slot becomes current.
    fn apply(&mut self, id: SlotId) -> Result<Vec<Rc<Settling>>, FragmentMiss> {
        let slot = self.cache.slot(id);
        let unit = slot.at.expect("the slot was programmed");
        let (lpn, lost, transaction, dropped) = (Lpn(slot.lpn), slot.lost as u32, slot.transaction, slot.dropped);
        if !dropped {
            self.remap(lpn, Entry::new(Some(unit), lost), Mover::Host, transaction)?;
        }
        self.end_pending(self.block_of(unit), 1);
        Ok(self.cache.remove(id))
    }
}

impl Core {
    /// Starts programs while there is data and room, and fills that are due. Called whenever either changes.
    pub(super) fn pump(&self) {
        if !self.is_writing() {
            return;
        }
        let waits = self.flags.starved.get() || self.shared.free_slots.contended();
        loop {
            let mut state = self.state.borrow_mut();
            let is_urgent = waits || state.cache.is_urgent();
            match state.next_step(is_urgent, self.config.layout) {
                Step::Nothing => break,
                Step::Program(job) => {
                    drop(state);
                    self.programs.start(job);
                }
                Step::Fill(slot) => {
                    state.cache.start(slot, SlotState::Filling);
                    state.cache.fills += 1;
                    drop(state);
                    self.chores.start(Chore::Fill(slot));
                }
            }
        }
        let has_room = self.state.borrow().has_room_for_host();
        self.shared.free_slots.blame(if has_room { cause::HOST_WRITE } else { cause::GC });
        self.look_for_garbage();
    }

    /// A program of slots has ended.
    pub(super) async fn slots_programmed(&self, page: PageId, slots: &[SlotId], ended: Result<(), MediaError>) {
        let is_placed = self.state.borrow_mut().placed(page, slots, ended.is_ok());
        if !is_placed {
            self.check_read_only();
            return self.pump();
        }
        for slot in slots {
            let is_alone = self.state.borrow().cache.slot(*slot).transaction == 0;
            if is_alone && self.make_current(&[*slot], None).await.is_err() {
                return;
            }
        }
        self.commit_complete().await;
        self.pump();
    }

    /// Complete transactions become current, in the order in which they came. Called whenever one may have become complete.
    pub(super) async fn commit_complete(&self) {
        if self.state.borrow().cache.transactions.is_empty() || self.flags.committing.replace(true) {
            return;
        }
        loop {
            let Some((id, slots)) = self.state.borrow().cache.complete() else { break };
            if self.make_current(&slots, Some(id)).await.is_err() {
                return;
            }
            self.state.borrow_mut().cache.transactions.retain(|transaction| transaction.id != id);
        }
        self.flags.committing.set(false);
    }

    /// Slots that were programmed become current at the same time, with the records of that.
    async fn make_current(&self, slots: &[SlotId], transaction: Option<u64>) -> Result<(), Stopped> {
        let mut pinned = Vec::new();
        for slot in slots {
            let lpn = Lpn(self.state.borrow().cache.slot(*slot).lpn);
            pinned.push(self.pin_fragment(lpn).await?);
        }
        let mut told = Vec::new();
        let position = {
            let mut state = self.state.borrow_mut();
            let before = state.log.last();
            for slot in slots {
                told.extend(state.apply(*slot).unwrap_or_else(|_| panic!("the fragment was pinned")));
            }
            let records = state.log.last().0 - before.0;
            if let Some(transaction) = transaction.filter(|_| records > 0) {
                state.log.append(Record::Commit { transaction, records });
            }
            pinned.iter().for_each(|index| state.map.unpin(*index));
            state.log.last()
        };
        self.forget_slots(slots);
        self.save_if_due();
        self.map_changed.notify();
        self.settle_when_durable(told, position);
        self.shared.free_slots.give(slots.len());
        self.flags.starved.set(self.shared.free_slots.contended());
        self.log_grew();
        Ok(())
    }

    /// Writes and flushes end when the log is durable up to a position.
    pub(super) fn settle_when_durable(&self, told: Vec<Rc<Settling>>, position: LogPosition) {
        if told.is_empty() {
            return;
        }
        let mut state = self.state.borrow_mut();
        state.waiting.extend(told.into_iter().map(|settling| (position, settling)));
        state.log.persist(position);
        drop(state);
        if mistakes::is_made(Mistake::FlushOfData) {
            self.state.borrow_mut().waiting.drain(..).for_each(|(_, settling)| settling.one_settled(None));
        }
        self.tell_durable(None);
    }

    /// Tells those who wait for the log and need not any more. `program` wrote it.
    pub(super) fn tell_durable(&self, program: Option<(&nandscape_sim::account::Totals, &Breakdown)>) {
        loop {
            let is_due = {
                let state = self.state.borrow();
                state.waiting.front().is_some_and(|(position, _)| state.log.is_durable(*position))
            };
            if is_due && !self.sync() {
                break;
            }
            let mut state = self.state.borrow_mut();
            let Some((_, settling)) = state.waiting.pop_front_if(|_| is_due) else { break };
            drop(state);
            settling.one_settled(program);
        }
    }

    /// Reads the sectors that a slot lacks.
    pub(super) async fn fill(&self, id: SlotId) -> Result<(), Stopped> {
        let lpn = Lpn(self.state.borrow().cache.slot(id).lpn);
        let entry = self.look_up(lpn).await?;
        let mut lost = u64::from(entry.lost());
        let mut base = None;
        if let Some(unit) = entry.unit() {
            let (page, block) = {
                let mut state = self.state.borrow_mut();
                let page = state.geometry.page_of(unit);
                let block = state.geometry.block_of(page);
                state.chunks.pin(block);
                (page, block)
            };
            let who = self.config.priority.who(cause::READ_MODIFY_WRITE);
            let read = self.media.read(page, self.media.geometry().unit_size(), who, &mut Breakdown::new()).await;
            self.still_running()?;
            match read {
                Ok(()) => base = self.media.data(unit),
                Err(_) => lost = u64::MAX,
            }
            if self.media.take_read_failure() {
                lost = u64::MAX;
            }
            self.state.borrow_mut().chunks.unpin(block);
            self.unpinned.notify();
        }
        if self.filled(id, &entry, base.as_deref(), lost) {
            // A transaction may have waited for it.
            self.commit_complete().await;
        }
        self.pump();
        Ok(())
    }

    /// The sectors that a slot lacked were read. Whether the slot was dropped meanwhile, and is free.
    fn filled(&self, id: SlotId, entry: &Entry, base: Option<&[u8]>, lost: u64) -> bool {
        let mut state = self.state.borrow_mut();
        state.counters.read_modify_writes += 1;
        let missing = !state.cache.slot(id).mask & state.unit.mask();
        state.counters.lost_units += u64::from(base.is_none() && entry.unit().is_some() && lost & missing != 0);
        let lost = lost & state.unit.mask();
        state.cache.fill(id, base, lost);
        state.cache.fills -= 1;
        let is_idle_and_dropped = state.cache.slot(id).dropped && state.cache.slot(id).transaction == 0;
        let told = if is_idle_and_dropped { state.cache.remove(id) } else { Vec::new() };
        if !is_idle_and_dropped {
            state.cache.requeue(id);
        }
        let position = state.log.last();
        drop(state);
        if is_idle_and_dropped {
            self.shared.free_slots.give(1);
            self.settle_when_durable(told, position);
        }
        is_idle_and_dropped
    }

    /// A unit's entry, loaded if it must be.
    pub(super) async fn look_up(&self, lpn: Lpn) -> Result<Entry, Stopped> {
        loop {
            let found = self.state.borrow().map.lookup(lpn);
            match found {
                Ok(entry) => return Ok(entry),
                Err(miss) => self.load(miss, &mut Breakdown::new()).await?,
            }
        }
    }
}
