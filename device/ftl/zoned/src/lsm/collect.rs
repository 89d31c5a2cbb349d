//! Zones whose data is dead are erased at once. When few are empty, live data moves out of the zone with the least live
//! data, into a zone of its level. With runs that have separate zones nothing ever has to move.

use std::collections::BTreeSet;
use std::rc::Rc;

use nandscape_device_ftl_core::address::Extent;
use nandscape_device_ftl_core::ftl::{Inside, Reader, Unreadable};
use nandscape_device_media::MediaError;
use nandscape_drive::{Breakdown, HostMem};
use nandscape_sim::Wait;

use super::LsmFtl;
use super::table::{LOST, Piece, Table, Use};
use crate::zone::table::{ZoneAction, ZoneState};

/// A zone is collected if this share of it is gained.
const LEAST_GAIN: u64 = 16;

/// Why a zone was not emptied.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Stuck {
    /// Its flash does not answer; others may be emptied.
    There,
    /// No room, or no power.
    Everywhere,
}

/// Why data was not moved.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Unmoved {
    /// It cannot be read.
    Unreadable,
    /// Its flash does not answer.
    Silent,
    /// No room for it, or no power.
    NoRoom,
}

impl LsmFtl {
    /// Erases zones that have no live data, and begins to collect when few are empty.
    pub(super) fn tidy(&self) {
        let dead = {
            let mut table = self.table.borrow_mut();
            let is_dead = |zone: &u32| {
                let of = &table.zones[*zone as usize];
                of.live == 0 && matches!(of.used, Use::Begun | Use::Closed)
            };
            let dead: Vec<u32> = (0..self.config.zones.zones).filter(is_dead).collect();
            for zone in &dead {
                table.begun.iter_mut().for_each(|begun| begun.retain(|other| other != zone));
                table.zones[*zone as usize].used = Use::Taken;
            }
            dead
        };
        for zone in dead {
            // Reads of it that are under way end first.
            if self.zones.act(zone, ZoneAction::Reset).is_err() {
                // It is out of blocks. Its blocks go to other zones, and it is used again when blocks are available for it.
                self.zones.relinquish(zone);
            }
            let mut table = self.table.borrow_mut();
            table.zones[zone as usize].used = Use::Empty;
            table.empty.push_back(zone);
            drop(table);
            self.changed.notify();
        }
        if self.is_short() && self.victim(&BTreeSet::new()).is_some() && !self.is_collecting.replace(true) {
            self.collections.start(());
        }
    }

    fn is_short(&self) -> bool {
        self.usable(&self.table.borrow()) < self.config.reserve
    }

    /// The number of zones of each set for which blocks are available.
    fn left_for(&self, table: &Table) -> Vec<u32> {
        let zones = table.zones.iter().zip(0..).filter(|(of, _)| of.used == Use::Taken);
        self.zones
            .zones_left(zones.map(|(_, zone)| zone).filter(|zone| self.zones.zone(*zone).state == ZoneState::Empty))
    }

    /// Empty zones for which blocks are available.
    fn usable(&self, table: &Table) -> u32 {
        let mut left = self.left_for(table);
        let sets = left.len();
        let mut takes = |zone: &&u32| {
            let left = &mut left[**zone as usize % sets];
            *left > 0 && {
                *left -= 1;
                true
            }
        };
        table.empty.iter().filter(|zone| takes(zone)).count() as u32
    }

    /// Takes an empty zone with available blocks, but leaves `leaves` of them.
    pub(super) fn take_empty(&self, table: &mut Table, leaves: u32) -> Option<u32> {
        if self.usable(table) <= leaves {
            return None;
        }
        let left = self.left_for(table);
        let at = table.empty.iter().position(|zone| left[*zone as usize % left.len()] > 0)?;
        let zone = table.empty.remove(at)?;
        table.zones[zone as usize].used = Use::Taken;
        Some(zone)
    }

    /// The zone with the least live data, among zones without a user whose collection gains room; no zone that was
    /// passed over.
    fn victim(&self, passed: &BTreeSet<u32>) -> Option<u32> {
        let (table, capacity) = (self.table.borrow(), u64::from(self.zones.capacity()));
        let zones = table.zones.iter().zip(0u32..);
        let worth = zones.filter(|(of, zone)| {
            let gains =
                u64::from(of.live) * LEAST_GAIN <= capacity * (LEAST_GAIN - 1) || self.zones.wastes_blocks(*zone);
            // A zone that was begun and has no dead data would only become another one like it.
            let is_free = of.used == Use::Closed || of.used == Use::Begun && of.live < self.zones.zone(*zone).written;
            of.live > 0 && gains && is_free && !passed.contains(zone)
        });
        worth.min_by_key(|(of, zone)| (of.live, *zone)).map(|(_, zone)| zone)
    }

    /// No run continues in a zone any more.
    fn close(&self, zone: u32) {
        let mut table = self.table.borrow_mut();
        if table.zones[zone as usize].used == Use::Begun {
            table.begun.iter_mut().for_each(|begun| begun.retain(|other| *other != zone));
            table.zones[zone as usize].used = Use::Closed;
            drop(table);
            _ = self.zones.act(zone, ZoneAction::Finish);
        }
    }

    /// Moves live data until enough zones are empty, or none has dead data.
    pub(super) async fn collect(self: &Rc<Self>) {
        let (mut passed, mut has_emptied, cuts) = (BTreeSet::new(), false, self.zones.power_cuts());
        while let Some(victim) = self.victim(&passed).filter(|_| self.is_short() && self.zones.media_is_powered()) {
            match self.empty_zone(victim).await {
                Ok(()) => {
                    self.gc_zones.set(self.gc_zones.get() + 1);
                    self.tidy();
                    has_emptied = true;
                }
                Err(Stuck::There) => _ = passed.insert(victim),
                Err(Stuck::Everywhere) => break,
            }
        }
        // A collection that a power cut ended is repeated.
        if !has_emptied && self.zones.power_cuts() == cuts {
            self.vain.set(self.vain.get() + 1);
        }
        self.is_collecting.set(false);
        self.changed.notify();
    }

    /// Moves all live data out of a zone.
    async fn empty_zone(self: &Rc<Self>, victim: u32) -> Result<(), Stuck> {
        let reader = super::LsmReader::<Inside>::new(self);
        self.close(victim);
        while let Some((run, piece)) = self.piece_in(victim) {
            self.move_piece(&reader, run, piece).await?;
        }
        Ok(())
    }

    /// A piece that lies in a zone, and its run.
    fn piece_in(&self, zone: u32) -> Option<(u32, Piece)> {
        let table = self.table.borrow();
        let runs = table.runs.iter().zip(0..);
        let mut pieces = runs.filter_map(|(run, number)| Some((run.as_ref()?, number)));
        pieces
            .find_map(|(run, number)| run.pieces.iter().find(|piece| piece.zone == zone).map(|piece| (number, *piece)))
    }

    /// Moves a part of a piece, no more than a command may write. A unit that cannot be read by itself is lost.
    async fn move_piece(
        self: &Rc<Self>,
        reader: &super::LsmReader<Inside>,
        run: u32,
        piece: Piece,
    ) -> Result<(), Stuck> {
        let Ok(level) = self.table.borrow().run(run).map(|run| run.level) else { return Ok(()) };
        let zone = self.zone_for(level).ok_or(Stuck::Everywhere)?;
        let part = Piece { units: self.zones.max_move().min(piece.units).min(self.left(zone)), ..piece };
        let mut ended = self.copy(reader, run, part, zone).await;
        if ended == Err(Unmoved::Unreadable) {
            let one = Piece { units: 1, ..piece };
            ended = self.copy(reader, run, one, zone).await;
            if ended == Err(Unmoved::Unreadable) {
                ended = Ok(());
                if self.table.borrow_mut().moved(run, one, LOST, 0) {
                    self.lost_units.set(self.lost_units.get() + 1);
                }
            }
        }
        // The collector continues in it, whether runs share zones or not.
        let (written, has_room) = (self.zones.zone(zone).written, self.left(zone) > 0);
        self.table.borrow_mut().give(zone, level, written, has_room);
        self.changed.notify();
        ended.map_err(|why| match why {
            Unmoved::Silent | Unmoved::Unreadable => Stuck::There,
            Unmoved::NoRoom => Stuck::Everywhere,
        })
    }

    /// A zone with room for moved data: one begun for its level, or an empty one. Where no more zones can be active, it
    /// is a zone begun for another level: to end that zone would leave one that is as full as the zone under
    /// collection.
    fn zone_for(&self, level: u8) -> Option<u32> {
        loop {
            let (mut table, (active, _)) = (self.table.borrow_mut(), self.zones.zones_in_use());
            let begun = table.take_begun(level.into());
            let may_begin = active < self.config.zones.max_active;
            let own = begun.or_else(|| if may_begin { self.take_empty(&mut table, 0) } else { None });
            let zone = own.or_else(|| table.take_near(level)).or_else(|| self.take_empty(&mut table, 0))?;
            if self.left(zone) > 0 {
                return Some(zone);
            }
            // It is out of blocks.
            table.give(zone, level, 1, false);
        }
    }

    /// Copies a part of a piece to a zone.
    async fn copy(
        self: &Rc<Self>,
        reader: &super::LsmReader<Inside>,
        run: u32,
        part: Piece,
        zone: u32,
    ) -> Result<(), Unmoved> {
        let bytes = part.units as usize * self.zones.unit_bytes() as usize;
        let mem = if self.zones.keeps_data() { HostMem::zeroed(bytes) } else { HostMem::none() };
        let extent = self.extent(run * self.config.span + part.at, part.units);
        let read = reader.read::<()>(extent, &Inside(mem.clone()), &mut Breakdown::new()).await;
        match read.map_err(|error| error.why) {
            Ok(()) => {}
            Err(Unreadable::Media(MediaError::PowerLost)) => return Err(Unmoved::NoRoom),
            Err(Unreadable::Media(MediaError::NoAnswer)) => return Err(Unmoved::Silent),
            Err(_) => return Err(Unmoved::Unreadable),
        }
        match self.write_moved(run, part, zone, &mem).await {
            true => Ok(()),
            false => Err(Unmoved::NoRoom),
        }
    }

    fn extent(&self, lpn: u32, units: u32) -> Extent {
        let sectors = self.zones.unit_size().sectors();
        Extent { start: u64::from(lpn) * u64::from(sectors), sectors: units * sectors }
    }

    async fn write_moved(&self, run: u32, part: Piece, zone: u32, mem: &HostMem) -> bool {
        let mut waited = Wait::ZERO;
        let mut room = self.zones.reserve_units(zone, part.units, &mut waited).await;
        if self.left(zone) < part.units {
            return false;
        }
        let Ok(ticket) = self.ticket(zone, part.units) else { return false };
        let first = ticket.first;
        let data = (!mem.is_none()).then_some(mem);
        if !self.zones.deliver(ticket, data, room.split(part.units)) {
            return false;
        }
        self.moved_units.set(self.moved_units.get() + u64::from(part.units));
        _ = self.table.borrow_mut().moved(run, part, zone, first);
        true
    }
}
