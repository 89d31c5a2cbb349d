//! Data at the end of a run.
//!
//! First the run gets zones with room for the data, then the data arrives and is put into the write buffer at once: the
//! run then has its earlier length or all of the data. An append that begins before the end replaces the tail, so a
//! host can repeat an append that a power cut has ended.

use std::collections::VecDeque;
use std::rc::Rc;

use nandscape_drive::HostMem;
use nandscape_sim::Wait;

use super::LsmFtl;
use super::table::{Piece, Run, RunError, RunState};
use crate::zone::table::{ZoneAction, ZoneError, ZoneState};
use crate::zone::{Reservation, Ticket};

/// Collections that empty nothing, after which an append waits for no more.
const VAIN: u64 = 3;

/// An append under way. It ends when this is dropped.
pub struct Append {
    ftl: Rc<LsmFtl>,
    run: u32,
    at: u32,
    units: u32,
}

impl Drop for Append {
    fn drop(&mut self) {
        if let Ok(run) = self.ftl.table.borrow_mut().run_mut(self.run) {
            run.is_busy = false;
        }
        self.ftl.give_unwritten(self.run);
        self.ftl.changed.notify();
    }
}

impl LsmFtl {
    /// Begins an append of units of a run from `at` on. The run has zones for them from then on.
    ///
    /// # Errors
    /// Why the run does not take it.
    pub async fn begin_append(self: &Rc<Self>, run: u32, at: u32, units: u32) -> Result<Append, RunError> {
        {
            let mut table = self.table.borrow_mut();
            let of = table.run_mut(run)?;
            if of.state == RunState::Sealed || of.is_closed {
                return Err(RunError::Sealed);
            }
            if at > of.units {
                return Err(RunError::NotAtEnd);
            }
            if units > self.config.most.saturating_sub(at) {
                return Err(RunError::TooLong);
            }
            if std::mem::replace(&mut of.is_busy, true) {
                return Err(RunError::Busy);
            }
        }
        let append = Append { ftl: self.clone(), run, at, units };
        let vain = self.vain.get();
        while !self.has_zones(run, units)? {
            self.tidy();
            if self.has_zones(run, units)? {
                break;
            }
            // Collections that have emptied nothing leave nothing to wait for.
            if !self.is_collecting.get() || self.vain.get() - vain > VAIN {
                return Err(RunError::Full);
            }
            self.changed.changed().await;
            if !self.zones.media_is_powered() {
                return Err(RunError::PowerLost);
            }
        }
        Ok(append)
    }

    /// Gives a run zones for more units, as far as zones are left. Returns whether they are enough.
    fn has_zones(&self, run: u32, units: u32) -> Result<bool, RunError> {
        let mut table = self.table.borrow_mut();
        loop {
            let of = table.run(run)?;
            let room: u32 = of.zones.iter().map(|zone| self.left(*zone)).sum();
            if room >= units {
                return Ok(true);
            }
            let level = of.level;
            let begun = if self.config.share { table.take_begun(level.into()) } else { None };
            let zone = begun.or_else(|| self.take_empty(&mut table, self.config.reserve / 2));
            let Some(zone) = zone else { return Ok(false) };
            // One that was begun comes first: an append that has to wait for its turn has no active zone that others wait for.
            let zones = &mut table.run_mut(run)?.zones;
            match self.zones.zone(zone).state.is_active() {
                true => zones.push_front(zone),
                false => zones.push_back(zone),
            }
        }
    }

    /// Waits until the zone of an append is active or may become so: other appends, and the collector, may hold all
    /// active zones. A waiting append holds no room in the write buffer, because those others may wait for room.
    ///
    /// # Errors
    /// If power is lost, or the run was dropped.
    pub async fn append_turn(&self, append: &Append) -> Result<(), RunError> {
        loop {
            if self.has_turn(append.run)? {
                return Ok(());
            }
            self.changed.changed().await;
            if !self.zones.media_is_powered() {
                return Err(RunError::PowerLost);
            }
        }
    }

    /// Whether the zone in which a run continues is active, or can become so now.
    fn has_turn(&self, run: u32) -> Result<bool, RunError> {
        self.table.borrow().run(run)?;
        Ok(self.zone_of(run).is_none_or(|zone| self.zones.zone(zone).state.is_active()) || self.frees_a_zone())
    }

    /// The zone in which a run continues.
    fn zone_of(&self, run: u32) -> Option<u32> {
        self.table.borrow().run(run).ok()?.zones.iter().copied().find(|zone| self.left(*zone) > 0)
    }

    /// Makes one more zone able to be active. Returns whether one is.
    fn frees_a_zone(&self) -> bool {
        while self.zones.zones_in_use().0 >= self.config.zones.max_active {
            if !self.close_one() && !self.steal_one() {
                return false;
            }
        }
        true
    }

    /// Releases zones that a run has not begun, while no append to it is in progress.
    fn give_unwritten(&self, run: u32) {
        let is_empty = |zone: &u32| self.zones.zone(*zone).state == ZoneState::Empty;
        let mut table = self.table.borrow_mut();
        let Ok(of) = table.run_mut(run) else { return };
        let (empty, kept): (VecDeque<u32>, VecDeque<u32>) = of.zones.iter().partition(|zone| is_empty(zone));
        of.zones = kept;
        let level = of.level;
        empty.into_iter().for_each(|zone| table.give(zone, level, 0, true));
    }

    /// Units that a zone still takes.
    pub(super) fn left(&self, zone: u32) -> u32 {
        let of_zone = self.zones.zone(zone);
        if of_zone.state.is_active() || of_zone.state == ZoneState::Empty {
            self.zones.capacity() - of_zone.written
        } else {
            0
        }
    }

    /// Room in the write buffer for an append, within the share of its zone.
    pub async fn append_room(&self, append: &Append, waited: &mut Wait) -> Reservation<'_> {
        let zone = self.zone_of(append.run).unwrap_or(0);
        self.zones.reserve_units(zone, append.units, waited).await
    }

    /// Puts the data of an append into the write buffer: it is present from now on.
    ///
    /// # Errors
    /// Why the run no longer takes it; [`RunError::Busy`] if it has to wait for its turn again, without any change.
    pub fn append(&self, append: &Append, data: Option<&HostMem>, room: Reservation<'_>) -> Result<(), RunError> {
        if !self.has_turn(append.run)? {
            return Err(RunError::Busy);
        }
        let put = self.put(append, data, room);
        if put.is_err() {
            self.table.borrow_mut().cut(append.run, append.at);
        }
        put
    }

    fn put(&self, append: &Append, data: Option<&HostMem>, mut room: Reservation<'_>) -> Result<(), RunError> {
        let Append { run, at, units, .. } = *append;
        if self.table.borrow().run(run)?.units > at {
            self.table.borrow_mut().cut(run, at);
        }
        let (mut done, unit) = (0, self.zones.unit_bytes() as usize);
        while done < units {
            let next = self.table.borrow().run(run)?.zones.front().copied();
            let Some(zone) = next else {
                // One of its zones takes no more data: it is out of blocks.
                match self.has_zones(run, units - done)? {
                    true => continue,
                    false => return Err(RunError::Full),
                }
            };
            let now = self.left(zone).min(units - done);
            let ticket = if now == 0 { None } else { Some(self.ticket(zone, now)?) };
            if let Some(ticket) = ticket {
                let first = ticket.first;
                let part = data.map(|mem| mem.part(done as usize * unit, now as usize * unit));
                self.zones.deliver(ticket, part.as_ref(), room.split(now));
                self.table.borrow_mut().push(run, Piece { at: at + done, zone, first, units: now });
                done += now;
            }
            if self.left(zone) == 0 {
                let mut table = self.table.borrow_mut();
                let of: &mut Run = table.run_mut(run)?;
                of.zones.pop_front();
                let level = of.level;
                table.give(zone, level, 1, false);
            }
        }
        Ok(())
    }

    /// Units of a zone. Where too many zones are begun, the oldest one without a user ends.
    pub(super) fn ticket(&self, zone: u32, units: u32) -> Result<Ticket, RunError> {
        loop {
            match self.zones.begin_write(zone, None, units) {
                Ok(ticket) => return Ok(ticket),
                Err(ZoneError::TooManyActive | ZoneError::TooManyOpen) if self.close_one() || self.steal_one() => {}
                Err(ZoneError::TooManyActive | ZoneError::TooManyOpen) => return Err(RunError::Busy),
                Err(_) => return Err(RunError::Full),
            }
        }
    }

    /// Closes the active zone of a run to which nothing is appended now. The run continues in another zone. Returns
    /// whether such a zone existed.
    fn steal_one(&self) -> bool {
        let mut table = self.table.borrow_mut();
        let is_active = |zone: &u32| self.zones.zone(*zone).state.is_active();
        let idle = table.runs.iter_mut().flatten().filter(|run| !run.is_busy && run.zones.iter().any(is_active));
        let stolen = idle.min_by_key(|run| run.units).and_then(|run| {
            let at = run.zones.iter().position(is_active)?;
            run.zones.remove(at)
        });
        let Some(zone) = stolen else { return false };
        table.zones[zone as usize].used = super::table::Use::Closed;
        drop(table);
        self.zones.act(zone, ZoneAction::Finish).is_ok()
    }

    /// Closes a begun zone without a user. Returns whether one existed.
    fn close_one(&self) -> bool {
        let mut table = self.table.borrow_mut();
        let fullest = (0..super::LEVELS).max_by_key(|level| table.begun[*level].len());
        let Some(zone) = fullest.and_then(|level| table.begun[level].pop_front()) else { return false };
        table.zones[zone as usize].used = super::table::Use::Closed;
        drop(table);
        self.zones.act(zone, ZoneAction::Finish).is_ok()
    }
}
