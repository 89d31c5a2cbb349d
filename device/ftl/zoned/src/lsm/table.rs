//! The runs, the places of their pieces, and the live data of each zone. Everything is synchronous.

use std::collections::VecDeque;

use super::LEVELS;

/// A change of a run.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Edit {
    /// It counts from now on, and may still be written.
    Publish(u32),
    /// It is no longer written, and does not count yet.
    Close(u32),
    /// It is complete, and counts.
    Seal(u32),
    /// It moves to another level.
    Relevel(u32, u8),
    /// It is dropped.
    Drop(u32),
}

/// Why a run rejects a request.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum RunError {
    /// No place is left for a run.
    NoPlace,
    /// The level does not exist.
    NoLevel,
    /// The run does not exist.
    NoRun,
    /// The run is complete.
    Sealed,
    /// An append begins where the run does not end.
    NotAtEnd,
    /// The run would be too long.
    TooLong,
    /// Another append to the run is under way.
    Busy,
    /// The drive has no room, not even after collections.
    Full,
    /// Power is off.
    PowerLost,
}

/// The state of a run.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum RunState {
    /// It was opened.
    New,
    /// It counts, and may still be written.
    Published,
    /// It is complete.
    Sealed,
}

/// A run, as reported.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct RunInfo {
    /// Its place.
    pub run: u32,
    /// Its level.
    pub level: u8,
    /// Its state.
    pub state: RunState,
    /// Units that were written.
    pub units: u32,
    /// Its order: runs published or sealed later have higher values.
    pub order: u64,
}

/// Where a unit of a run is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// In a zone, and where there.
    Zone(u32, u32),
    /// Nowhere: its page was unreadable when it had to be moved.
    Lost,
}

/// The zone of a piece that was lost.
pub(super) const LOST: u32 = u32::MAX;

/// Units of a run that lie one after the other in a zone.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Piece {
    /// The first of them in the run.
    pub(super) at: u32,
    pub(super) zone: u32,
    /// The first of them in the zone.
    pub(super) first: u32,
    pub(super) units: u32,
}

#[derive(Debug)]
pub(super) struct Run {
    pub(super) level: u8,
    pub(super) state: RunState,
    pub(super) order: u64,
    pub(super) units: u32,
    pub(super) pieces: Vec<Piece>,
    /// Zones in which it continues, the first one first.
    pub(super) zones: VecDeque<u32>,
    pub(super) is_busy: bool,
    /// It is not written any more.
    pub(super) is_closed: bool,
}

/// The use of a zone.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Use {
    Empty,
    /// A run, or the collector, continues in it.
    Taken,
    /// A run of its level may continue in it.
    Begun,
    /// Nothing is written to it any more.
    Closed,
}

#[derive(Copy, Clone, Debug)]
pub(super) struct ZoneUse {
    pub(super) used: Use,
    pub(super) live: u32,
}

/// See the file.
pub(super) struct Table {
    pub(super) runs: Vec<Option<Run>>,
    pub(super) zones: Vec<ZoneUse>,
    /// Zones that are empty, in the order in which they became so.
    pub(super) empty: VecDeque<u32>,
    /// Begun zones by level, in the order of their begin.
    pub(super) begun: [VecDeque<u32>; LEVELS],
    pub(super) order: u64,
}

impl Table {
    pub(super) fn new(runs: u32, zones: u32) -> Table {
        Table {
            runs: (0..runs).map(|_| None).collect(),
            zones: vec![ZoneUse { used: Use::Empty, live: 0 }; zones as usize],
            empty: (0..zones).collect(),
            begun: Default::default(),
            order: 1,
        }
    }

    /// A run begins at the first place that is free.
    pub(super) fn open(&mut self, level: u8) -> Result<u32, RunError> {
        if usize::from(level) >= LEVELS {
            return Err(RunError::NoLevel);
        }
        let place = self.runs.iter().position(Option::is_none).ok_or(RunError::NoPlace)?;
        self.runs[place] = Some(Run {
            level,
            state: RunState::New,
            order: 0,
            units: 0,
            pieces: Vec::new(),
            zones: VecDeque::new(),
            is_busy: false,
            is_closed: false,
        });
        Ok(place as u32)
    }

    pub(super) fn run(&self, run: u32) -> Result<&Run, RunError> {
        self.runs.get(run as usize).and_then(Option::as_ref).ok_or(RunError::NoRun)
    }

    pub(super) fn run_mut(&mut self, run: u32) -> Result<&mut Run, RunError> {
        self.runs.get_mut(run as usize).and_then(Option::as_mut).ok_or(RunError::NoRun)
    }

    pub(super) fn infos(&self, from: u32) -> Vec<RunInfo> {
        let there = self.runs.iter().zip(0..).skip(from as usize);
        let infos = there.filter_map(|(run, number)| {
            let Run { level, state, units, order, .. } = *run.as_ref()?;
            Some(RunInfo { run: number, level, state, units, order })
        });
        infos.collect()
    }

    /// The place of a unit of a run.
    pub(super) fn find(&self, run: u32, unit: u32) -> Option<Place> {
        let pieces = &self.run(run).ok()?.pieces;
        let piece = pieces[..pieces.partition_point(|piece| piece.at <= unit)].last()?;
        let place = match piece.zone {
            LOST => Place::Lost,
            zone => Place::Zone(zone, piece.first + unit - piece.at),
        };
        (unit < piece.at + piece.units).then_some(place)
    }

    /// A piece is appended to a run.
    pub(super) fn push(&mut self, run: u32, piece: Piece) {
        self.zones[piece.zone as usize].live += piece.units;
        let Ok(run) = self.run_mut(run) else { return };
        run.units = piece.at + piece.units;
        match run.pieces.last_mut() {
            Some(last) if last.zone == piece.zone && last.first + last.units == piece.first => {
                last.units += piece.units
            }
            _ => run.pieces.push(piece),
        }
    }

    /// A run ends earlier: an append is repeated from there.
    pub(super) fn cut(&mut self, run: u32, units: u32) {
        let mut dead = Vec::new();
        let Ok(of) = self.run_mut(run) else { return };
        while let Some(last) = of.pieces.last_mut().filter(|last| last.at + last.units > units) {
            let kept = units.saturating_sub(last.at);
            dead.push((last.zone, last.units - kept));
            last.units = kept;
            if kept == 0 {
                of.pieces.pop();
            }
        }
        of.units = units;
        dead.into_iter().for_each(|(zone, units)| self.bury(zone, units));
    }

    /// Units of a zone live no more.
    fn bury(&mut self, zone: u32, units: u32) {
        if zone != LOST {
            self.zones[zone as usize].live -= units;
        }
    }

    /// The first units of a piece were written elsewhere, or were lost. If they are not those of the run any more,
    /// nothing changes. Returns whether anything has changed.
    pub(super) fn moved(&mut self, run: u32, part: Piece, zone: u32, first: u32) -> bool {
        let Ok(of) = self.run_mut(run) else { return false };
        let is_it = |piece: &Piece| (piece.at, piece.zone, piece.first) == (part.at, part.zone, part.first);
        let Some(index) = of.pieces.iter().position(|piece| is_it(piece) && piece.units >= part.units) else {
            return false;
        };
        let old = of.pieces[index];
        of.pieces[index] = Piece { zone, first, ..part };
        let rest = old.units - part.units;
        if rest > 0 {
            let rest = Piece { at: old.at + part.units, zone: old.zone, first: old.first + part.units, units: rest };
            of.pieces.insert(index + 1, rest);
        }
        self.bury(part.zone, part.units);
        if zone != LOST {
            self.zones[zone as usize].live += part.units;
        }
        true
    }

    /// Takes a zone that was begun for a level.
    pub(super) fn take_begun(&mut self, level: usize) -> Option<u32> {
        let zone = self.begun[level].pop_front()?;
        self.zones[zone as usize].used = Use::Taken;
        Some(zone)
    }

    /// Takes a begun zone: of a level, or the nearest one.
    pub(super) fn take_near(&mut self, level: u8) -> Option<u32> {
        let there = (0..LEVELS).filter(|other| !self.begun[*other].is_empty());
        let nearest = there.min_by_key(|other| other.abs_diff(level.into()))?;
        self.take_begun(nearest)
    }

    /// Releases a taken zone. With room left, the next run of the level may continue in it.
    pub(super) fn give(&mut self, zone: u32, level: u8, written: u32, room: bool) {
        let used = match (written, room) {
            (0, _) => Use::Empty,
            (_, true) => Use::Begun,
            (_, false) => Use::Closed,
        };
        self.zones[zone as usize].used = used;
        match used {
            Use::Empty => self.empty.push_front(zone),
            Use::Begun => self.begun[usize::from(level)].push_back(zone),
            _ => {}
        }
    }

    /// The next number of the order.
    pub(super) fn next_order(&mut self) -> u64 {
        self.order += 1;
        self.order - 1
    }

    /// A power cut has ended all appends.
    pub(super) fn end_appends(&mut self) {
        self.runs.iter_mut().flatten().for_each(|run| run.is_busy = false);
    }

    /// Bytes of memory, which would have to be in flash if capacitors did not keep it.
    pub(super) fn memory(&self) -> u64 {
        let pieces: usize = self.runs.iter().flatten().map(|run| run.pieces.len() * size_of::<Piece>()).sum();
        (self.runs.len() * size_of::<Option<Run>>() + pieces + self.zones.len() * size_of::<ZoneUse>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_found_cut_and_moved_and_what_is_live_is_counted() {
        let mut table = Table::new(2, 4);
        let run = table.open(3).unwrap();
        for (at, zone, first, units) in [(0, 1, 4, 10), (10, 1, 14, 6), (16, 2, 0, 20)] {
            table.push(run, Piece { at, zone, first, units });
        }
        assert_eq!(table.run(run).unwrap().pieces.len(), 2, "pieces that follow each other are one");
        let found = |table: &Table, unit| table.find(run, unit);
        let at = |zone, unit| Some(Place::Zone(zone, unit));
        assert_eq!((found(&table, 0), found(&table, 15)), (at(1, 4), at(1, 19)));
        assert_eq!((found(&table, 16), found(&table, 35), found(&table, 36)), (at(2, 0), at(2, 19), None));
        table.moved(run, Piece { at: 0, zone: 1, first: 4, units: 5 }, 3, 7);
        assert_eq!((found(&table, 4), found(&table, 5)), (at(3, 11), at(1, 9)));
        table.moved(run, Piece { at: 0, zone: 1, first: 4, units: 5 }, 0, 0);
        assert_eq!(found(&table, 4), at(3, 11), "it lies there no more");
        let live: Vec<u32> = table.zones.iter().map(|zone| zone.live).collect();
        assert_eq!(live, [0, 11, 20, 5]);
        table.cut(run, 9);
        let live: Vec<u32> = table.zones.iter().map(|zone| zone.live).collect();
        assert_eq!((live, found(&table, 8), found(&table, 9)), (vec![0, 4, 0, 5], at(1, 12), None));
        assert!(table.moved(run, Piece { at: 5, zone: 1, first: 9, units: 1 }, LOST, 0));
        assert_eq!((found(&table, 5), found(&table, 6)), (Some(Place::Lost), at(1, 10)));
        table.cut(run, 3);
        let live: Vec<u32> = table.zones.iter().map(|zone| zone.live).collect();
        assert_eq!(live, [0, 0, 0, 3], "what was lost counts nowhere");
        assert_eq!(
            (table.open(0), table.open(0), table.open(16)),
            (Ok(1), Err(RunError::NoPlace), Err(RunError::NoLevel))
        );
    }

    #[test]
    fn a_zone_that_was_begun_goes_to_the_next_run_of_its_level() {
        let mut table = Table::new(4, 3);
        for (zone, level) in [(0, 1), (1, 4)] {
            table.empty.retain(|empty| *empty != zone);
            table.give(zone, level, 5, true);
        }
        assert_eq!((table.take_begun(2), table.take_begun(1), table.take_begun(1)), (None, Some(0), None));
        table.give(0, 1, 5, true);
        assert_eq!((table.take_near(3), table.take_near(3), table.take_near(3)), (Some(1), Some(0), None));
        table.give(0, 2, 0, true);
        assert_eq!(table.empty, [0, 2], "nothing was written to it");
    }
}
