//! From the host into the write cache, and flushes.

use std::rc::Rc;

use nandscape_device_ftl_core::address::{Extent, Piece, UnitSize};
use nandscape_device_ftl_core::component::Log;
use nandscape_device_ftl_core::ftl::{Milestone, ReadOnly, Settling, Unwritable};
use nandscape_drive::HostMem;
use nandscape_drive::breakdown::cause;
use nandscape_sim::{Span, Wait};

use super::OxBlock;
use super::cache::{Group, Transaction};
use super::core::{Core, Phase};
use super::state::State;

/// Slots set aside for a write, given back when dropped.
pub struct Reservation<'a> {
    ftl: &'a OxBlock,
    slots: u32,
    /// Whether the write has been accepted.
    is_accepted: bool,
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        if self.slots > 0 {
            self.ftl.shared.free_slots.give(self.slots as usize);
        }
        if !self.is_accepted && !self.ftl.sim.is_stopped() {
            // Padding was deferred while this write was expected; others may have waited for it.
            self.ftl.core().pump();
        }
    }
}

/// Waits until the drive is in service and has a number of slots.
pub(super) async fn reserve<'a>(ftl: &'a OxBlock, slots: u32, waited: &mut Wait) -> Reservation<'a> {
    let mut start = Span::ZERO;
    if !ftl.core.borrow().is_running() {
        let begun = ftl.sim.now();
        Box::pin(ftl.in_service()).await;
        start = ftl.sim.now() - begun;
    }
    let mut reservation = Reservation { ftl, slots: 0, is_accepted: false };
    if !ftl.shared.free_slots.try_take(slots as usize) {
        ftl.core().pump_for(true);
        ftl.shared.free_slots.take(slots as usize, waited).await;
    }
    reservation.slots = slots;
    // At the end: a command that is stopped meanwhile counts the whole time itself.
    waited.add(cause::METADATA, start);
    reservation
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
    let watch = state.milestone_of(extents, watch, is_transaction);
    let settling = watch.map(|milestone| Settling::new(&core.sim, 1, milestone, core.shared.free_slots.totals()));
    let group = settling.as_ref().map(|settling| Group::new(settling, units));
    let transaction = state.begin_transaction(is_transaction);
    // All slots, for the file, and those of a transaction, each once.
    let (is_kept, mut slots, mut own) = (core.shared.kept_cache.is_some(), Vec::new(), Vec::new());
    for (first, piece) in pieces(extents, state.unit) {
        let (slot, is_new) = state.cache.slot_for(piece.lpn.0, transaction);
        if !state.spoiled.is_empty()
            && let Some(spoiled) = state.spoiled.remove(&piece.lpn.0)
        {
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
        if watch == Some(Milestone::Flash) {
            state.conceal(&own);
        }
        state.cache.transactions.push_back(Transaction::new(transaction, own));
    }
    state.counters.host_bytes += extents.iter().map(|extent| extent.bytes()).sum::<u64>();
    drop(state);
    reservation.is_accepted = true;
    drop(reservation);
    core.pump_data();
    match kept {
        Ok(()) => settling,
        Err(_) => Some(not_kept(&core)),
    }
}

/// A write that the drive's durable memory could not take.
#[cold]
fn not_kept(core: &Core) -> Rc<Settling> {
    core.give_up_writing(ReadOnly::Store);
    let settling = Settling::new(&core.sim, 1, Milestone::Flash, core.shared.free_slots.totals());
    settling.give_up(1, Unwritable::ReadOnly);
    settling
}

/// The pieces of extents, each with the bytes of the extents before its own.
fn pieces(extents: &[Extent], unit: UnitSize) -> impl Iterator<Item = (usize, Piece)> {
    let before =
        extents.iter().scan(0, |before, extent| Some(std::mem::replace(before, *before + extent.bytes() as usize)));
    before.zip(extents).flat_map(move |(before, extent)| extent.pieces(unit).map(move |piece| (before, piece)))
}

/// Programs everything in the cache, and the log.
pub(super) fn flush(ftl: &OxBlock) -> Option<Rc<Settling>> {
    let core = ftl.core();
    let settling = Settling::new(&core.sim, 1, Milestone::Flash, core.shared.free_slots.totals());
    if core.is_alive() && core.phase.get() == Phase::Starting {
        // Nothing was written since the last power cut.
        return None;
    }
    if !core.is_writing() {
        let why = if core.is_alive() { Unwritable::ReadOnly } else { Unwritable::PowerLost };
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
            settling.give_up(1, Unwritable::ReadOnly);
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

impl State {
    fn begin_transaction(&mut self, transactions: bool) -> u64 {
        if !transactions {
            return 0;
        }
        self.next_transaction += 1;
        self.next_transaction - 1
    }
}
