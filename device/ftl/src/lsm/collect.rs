//! Zones whose data is dead are erased at once. When few are empty, live data moves out of the zone that has the least of it, into a zone
//! of its level. With runs that have zones of their own nothing ever has to move.

use std::rc::Rc;

use nandscape_drive::{Breakdown, HostMem};
use nandscape_sim::Wait;

use super::LsmFtl;
use super::table::{Piece, Use};
use crate::address::Extent;
use crate::ftl::{Destination, Reader};
use crate::zone::table::ZoneAction;

/// A zone is collected where this part of it is gained.
const LEAST_GAIN: u64 = 16;

/// Memory of the collector.
#[derive(Clone)]
struct Inside(HostMem);

impl Destination for Inside {
    fn mem(&self) -> &HostMem {
        &self.0
    }

    fn rejects_unmapped(&self) -> bool {
        false
    }

    async fn deliver(&self, _: u64, _: &mut Breakdown) {}
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
            let used = match self.zones.act(zone, ZoneAction::Reset) {
                Ok(_) => Use::Empty,
                // It is read-only: blocks have gone bad.
                Err(_) => Use::Closed,
            };
            let mut table = self.table.borrow_mut();
            table.zones[zone as usize].used = used;
            if used == Use::Empty {
                table.empty.push_back(zone);
            }
            drop(table);
            self.changed.notify();
        }
        if self.is_short() && self.victim().is_some() && !self.is_collecting.replace(true) {
            self.collections.start(());
        }
    }

    fn is_short(&self) -> bool {
        self.table.borrow().empty.len() < self.config.reserve as usize
    }

    /// Whether waiting for room makes sense.
    pub(super) fn may_find_room(&self) -> bool {
        self.is_collecting.get()
    }

    /// The zone with the least live data, of those in which nobody goes on and of which a part is gained.
    fn victim(&self) -> Option<u32> {
        let (table, capacity) = (self.table.borrow(), u64::from(self.zones.capacity()));
        let zones = table.zones.iter().zip(0u32..);
        let worth = zones.filter(|(of, zone)| {
            let gains = u64::from(of.live) * LEAST_GAIN <= capacity * (LEAST_GAIN - 1);
            // A zone that was begun and has no dead data would only become another one like it.
            let is_free = of.used == Use::Closed || of.used == Use::Begun && of.live < self.zones.zone(*zone).written;
            of.live > 0 && gains && is_free
        });
        worth.min_by_key(|(of, zone)| (of.live, *zone)).map(|(_, zone)| zone)
    }

    /// Nobody goes on in a zone any more.
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
        while let Some(victim) = self.victim().filter(|_| self.is_short() && self.zones.media_is_powered()) {
            if !self.empty_zone(victim).await {
                break;
            }
            self.gc_zones.set(self.gc_zones.get() + 1);
            self.tidy();
        }
        self.is_collecting.set(false);
        self.changed.notify();
    }

    /// Moves all live data out of a zone. Whether that was possible.
    async fn empty_zone(self: &Rc<Self>, victim: u32) -> bool {
        let reader = super::LsmReader::<Inside>::new(self);
        self.close(victim);
        while let Some((run, piece)) = self.piece_in(victim) {
            if !self.move_piece(&reader, run, piece).await {
                return false;
            }
        }
        true
    }

    /// A piece that lies in a zone, and its run.
    fn piece_in(&self, zone: u32) -> Option<(u32, Piece)> {
        let table = self.table.borrow();
        let runs = table.runs.iter().zip(0..);
        let mut pieces = runs.filter_map(|(run, number)| Some((run.as_ref()?, number)));
        pieces
            .find_map(|(run, number)| run.pieces.iter().find(|piece| piece.zone == zone).map(|piece| (number, *piece)))
    }

    /// Moves a part of a piece, no more than a command may write.
    async fn move_piece(self: &Rc<Self>, reader: &super::LsmReader<Inside>, run: u32, piece: Piece) -> bool {
        let unit = self.zones.unit_bytes();
        let Ok(level) = self.table.borrow().run(run).map(|run| run.level) else { return true };
        let Some(zone) = self.table.borrow_mut().take(level, 0, true) else { return false };
        let most = (self.zones.max_move()).min(piece.units).min(self.left(zone).max(1));
        let part = Piece { units: most, ..piece };
        let mem =
            if self.zones.keeps_data() { HostMem::zeroed(most as usize * unit as usize) } else { HostMem::none() };
        let lpn = run * self.config.span + part.at;
        let extent = self.extent(lpn, most);
        let read = reader.read::<()>(extent, &Inside(mem.clone()), &mut Breakdown::new()).await;
        let moved = read.is_ok() && self.write_moved(run, part, zone, &mem).await;
        // The collector goes on in it, whether runs share zones or not.
        let (written, has_room) = (self.zones.zone(zone).written, self.left(zone) > 0);
        self.table.borrow_mut().give(zone, level, written, has_room);
        moved
    }

    fn extent(&self, lpn: u32, units: u32) -> Extent {
        let sectors = self.zones.unit_size().sectors();
        Extent { start: u64::from(lpn) * u64::from(sectors), sectors: units * sectors }
    }

    async fn write_moved(&self, run: u32, part: Piece, zone: u32, mem: &HostMem) -> bool {
        let mut waited = Wait::ZERO;
        let mut room = self.zones.reserve_units(part.units, &mut waited).await;
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
        self.table.borrow_mut().moved(run, part, zone, first);
        true
    }
}
