//! Units that read as zeros from now on, and sectors that cannot be read. Both change the map alone, with a record of a user
//! write that names no new data: the thesis has no kind of record for them.

use std::rc::Rc;

use nandscape_device_ftl_core::address::{Extent, Lpn, Piece, SlotId};
use nandscape_device_ftl_core::component::{CachedMapping, ChainedLog, Entry, Log, Mapping, Stopped};
use nandscape_device_ftl_core::ftl::{
    LEAST_STEP_TIME, MARKED, Milestone, SPOIL_STEP, SPOIL_STEP_TIME, Settling, UNMAPPED,
};
use nandscape_device_media::MediaError;
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, Stage};
use nandscape_sim::{Class, Span, Who};

use super::OxBlock;
use super::cache::Group;
use super::core::{Core, Phase};
use super::mistakes::{self, Mistake};
use super::state::Mover;

/// Sectors that are dealt with in one step.
const STEP: u32 = 1 << 15;
/// Pages of records in memory at which a deallocation waits for the log.
const BACKLOG: usize = 8;

/// See [`RandomWrites::deallocate`](nandscape_device_ftl_core::RandomWrites::deallocate).
pub(super) async fn deallocate(ftl: &OxBlock, extent: Extent, breakdown: &mut Breakdown) -> Result<(), MediaError> {
    let begun = ftl.sim.now();
    ftl.in_service().await;
    breakdown.waits(Stage::Queue).add(cause::METADATA, ftl.sim.now() - begun);
    let who = Who::new(cause::HOST_WRITE, Class::new(0));
    for step in extent.steps(STEP) {
        let core = ftl.core();
        if !core.is_alive() {
            // Power may have returned, but the tables are not recovered: the deallocation is done after the recovery.
            ftl.postponed.borrow_mut().push(step);
        } else if core.phase.get() == Phase::Failed {
            return Err(MediaError::Uncorrectable);
        } else {
            let begun = ftl.sim.now();
            let done = core.deallocate_units(step).await;
            breakdown.waits(Stage::Queue).add(cause::METADATA, ftl.sim.now() - begun);
            done.map_err(|Stopped| MediaError::PowerLost)?;
        }
        let units = u64::from(step.units(ftl.unit));
        ftl.sim.note_work(units / UNMAPPED);
        let time = ftl.config.firmware.deallocate_unit * units;
        let time = if step.end() < extent.end() { time.max(LEAST_STEP_TIME) } else { time };
        ftl.deallocating.occupy(time, who, breakdown.waits(Stage::Queue)).await;
        breakdown.spend(Stage::Firmware, time);
    }
    let core = ftl.core();
    if ftl.config.waits_for_log && core.is_writing() {
        let begun = ftl.sim.now();
        let done = core.log_durable().await;
        breakdown.waits(Stage::Queue).add(cause::METADATA, ftl.sim.now() - begun);
        done.map_err(|Stopped| MediaError::PowerLost)?;
    }
    // A file that failed meanwhile does not hold the records.
    let is_promised = ftl.config.keeps_log || ftl.config.waits_for_log;
    match !is_promised || core.sync() {
        true => Ok(()),
        false => Err(MediaError::Store),
    }
}

/// See [`StoredTables::settle_deallocations`](nandscape_device_ftl_core::offers::StoredTables::settle_deallocations): their records reach the flash.
pub(super) async fn settle(ftl: &OxBlock) {
    let core = ftl.core();
    if core.is_writing() {
        // It ends early when power is cut, which the caller sees.
        let _ = core.log_durable().await;
    }
}

/// See [`RandomWrites::spoil`](nandscape_device_ftl_core::RandomWrites::spoil).
pub(super) async fn spoil(ftl: &OxBlock, extent: Extent, breakdown: &mut Breakdown) {
    let mut begun = ftl.sim.now();
    ftl.in_service().await;
    let core = ftl.core();
    let who = Who::new(cause::HOST_WRITE, Class::new(0));
    let mut last = Span::ZERO;
    for step in extent.steps(SPOIL_STEP * ftl.unit.sectors()) {
        core.spoil_step(step).await;
        let units = u64::from(step.units(ftl.unit));
        ftl.sim.note_work(units / MARKED);
        last = ftl.config.firmware.deallocate_unit * units;
        if step.end() < extent.end() {
            let time = last.max(SPOIL_STEP_TIME);
            breakdown.waits(Stage::Queue).add(cause::METADATA, ftl.sim.now() - begun);
            ftl.deallocating.occupy(time, who, breakdown.waits(Stage::Queue)).await;
            breakdown.spend(Stage::Firmware, time);
            begun = ftl.sim.now();
        }
    }
    if ftl.config.waits_for_log && core.is_writing() {
        // After a power cut the command has no result.
        let pieces: Vec<Piece> = extent.pieces(ftl.unit).collect();
        if let Some(settling) = core.watch_versions(&pieces) {
            let _ = settling.settled().await;
        }
        if core.is_writing() {
            let _ = core.log_durable().await;
        }
    }
    if ftl.config.keeps_log {
        core.sync();
    }
    breakdown.waits(Stage::Queue).add(cause::METADATA, ftl.sim.now() - begun);
    ftl.deallocating.occupy(last, who, breakdown.waits(Stage::Queue)).await;
    breakdown.spend(Stage::Firmware, last);
}

impl Core {
    /// Makes the sectors of a part of an extent unreadable, and enters them into the map as long as this start of the
    /// drive lasts.
    async fn spoil_step(&self, step: Extent) {
        let unit = self.state.borrow().unit;
        let open: Vec<Lpn> = step.pieces(unit).filter(|piece| self.spoil_now(piece)).map(|piece| piece.lpn).collect();
        for lpn in open {
            if self.spoil_in_map(lpn).await.is_err() {
                break;
            }
        }
    }

    /// Deallocates the whole units of an extent.
    pub(super) async fn deallocate_units(&self, extent: Extent) -> Result<(), Stopped> {
        let _visit = self.visitors.begin();
        let unit = self.state.borrow().unit;
        for piece in extent.pieces(unit).filter(|piece| piece.sectors == unit.sectors()) {
            self.look_up(piece.lpn).await?;
            self.deallocate_unit(piece.lpn);
            while self.is_writing() && self.state.borrow().log.backlog() > BACKLOG {
                self.kick_log();
                self.wait(&self.log_changed).await?;
            }
        }
        if self.is_writing() {
            // A transaction may have waited for older data of a unit.
            self.commit_complete().await;
            self.log_grew();
            self.pump();
        }
        Ok(())
    }

    /// Deallocates a unit, whose fragment was just looked up. No version of it in the cache becomes current. The record
    /// comes first: a kill before it leaves the content of the cache.
    fn deallocate_unit(&self, lpn: Lpn) {
        let mut state = self.state.borrow_mut();
        state.spoiled.remove(&lpn.0);
        let old = state.map.lookup(lpn).unwrap_or_else(|_| panic!("the fragment is in memory"));
        if old != Entry::UNMAPPED && mistakes::is_made(Mistake::TrimNotLogged) {
            let old = state.map.upsert(lpn, Entry::UNMAPPED).ok().and_then(Entry::unit);
            state.move_validity(old, None);
        } else if old != Entry::UNMAPPED {
            let remapped = state.remap(lpn, Entry::UNMAPPED, Mover::Host, 0);
            remapped.unwrap_or_else(|_| panic!("the fragment is in memory"));
        }
        let versions = state.cache.deallocate(lpn.0);
        self.forget_slots(&versions);
        let idle: Vec<SlotId> = versions.into_iter().filter(|slot| state.cache.is_idle(*slot)).collect();
        let mut told = Vec::new();
        idle.iter().for_each(|slot| state.cache.remove(*slot, &mut told));
        let position = state.log.last();
        drop(state);
        self.forget_before(lpn);
        self.shared.free_slots.give(idle.len());
        self.settle_when_durable(told, position);
    }

    /// Makes sectors unreadable at once. Returns whether the map still has to be changed.
    fn spoil_now(&self, piece: &Piece) -> bool {
        let mut state = self.state.borrow_mut();
        match state.cache.newest(piece.lpn.0) {
            Some(slot) => {
                state.cache.spoil(slot, piece.mask());
                if let Some(kept) = &self.shared.kept_cache {
                    // A file that cannot be written any more reports this when asked.
                    let _ = kept.write(&state.cache, &[slot]);
                }
                false
            }
            None => {
                *state.spoiled.entry(piece.lpn.0).or_default() |= piece.mask();
                true
            }
        }
    }

    /// Ends when the newest versions of units in the cache are on flash, with their records; `None` if the cache has none.
    /// Sectors made unreadable in a version enter the map together with it.
    fn watch_versions(&self, pieces: &[Piece]) -> Option<Rc<Settling>> {
        let mut state = self.state.borrow_mut();
        let slots: Vec<SlotId> = pieces.iter().filter_map(|piece| state.cache.newest(piece.lpn.0)).collect();
        if slots.is_empty() || mistakes::is_made(Mistake::SpoilNotAwaited) {
            return None;
        }
        let settling = Settling::new(&self.sim, 1, Milestone::Flash, self.shared.free_slots.totals());
        let group = Group::new(&settling, slots.len() as u32);
        slots.iter().for_each(|slot| state.cache.watch(*slot, &group));
        drop(state);
        self.pump();
        Some(settling)
    }

    /// Enters the unreadable sectors of a unit into the map, unless the unit was written or deallocated since.
    async fn spoil_in_map(&self, lpn: Lpn) -> Result<(), Stopped> {
        let index = self.pin_fragment(lpn).await?;
        let mut state = self.state.borrow_mut();
        if let Some(spoiled) = state.spoiled.remove(&lpn.0) {
            let entry = state.map.lookup(lpn).unwrap_or_else(|_| panic!("the fragment was pinned"));
            let entry = Entry::new(entry.unit(), entry.lost() | spoiled as u32);
            state.remap(lpn, entry, Mover::Host, 0).unwrap_or_else(|_| panic!("the fragment was pinned"));
        }
        state.map.unpin(index);
        drop(state);
        self.log_grew();
        Ok(())
    }
}
