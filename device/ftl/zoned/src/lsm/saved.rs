//! The state of an FTL of runs at rest, saved and restored to a new one over the same flash: the state of its zones, the runs
//! with their pieces, and the use of each zone. The live data of a zone is counted again.
//!
//! Left out: counters, which begin at zero.

use nandscape_device_ftl_core::Ftl;
use nandscape_device_ftl_core::SavedFtl;
use nandscape_device_media::plain::{Malformed, Reader, Writer};
use nandscape_sim::table::Table as Map;

use super::table::{LOST, Piece, Run, RunState, Table, Use};
use super::{LEVELS, LsmFtl};

/// The kinds of use and the states of runs, as bytes.
const USES: [Use; 4] = [Use::Empty, Use::Taken, Use::Begun, Use::Closed];
const STATES: [RunState; 3] = [RunState::New, RunState::Published, RunState::Sealed];

impl LsmFtl {
    /// Brings the drive to rest. It must not be used meanwhile, nor afterwards except for [`LsmFtl::take_saved`].
    pub async fn come_to_rest(&self) {
        while self.is_collecting.get() {
            self.changed.changed().await;
        }
        self.zones.come_to_rest().await;
    }

    /// Whether anything was written to it.
    pub fn holds_data(&self) -> bool {
        self.zones.holds_data()
    }

    /// Takes the state of a drive at rest.
    ///
    /// # Errors
    /// Why it cannot be taken.
    pub fn take_saved(&self) -> Result<SavedFtl, String> {
        let SavedFtl { map, tables } = self.zones.take_saved()?;
        let mut to = Writer::default();
        to.bytes(&tables);
        self.table.borrow().save(&mut to);
        Ok(SavedFtl { map, tables: to.finish() })
    }

    /// Restores the state of another drive to this new drive over the same flash.
    ///
    /// # Errors
    /// If the state is not of such a drive.
    pub fn put_saved(&self, saved: SavedFtl) -> Result<(), String> {
        let mut from = Reader::new(&saved.tables);
        let of_runs = |problem: Malformed| format!("tables of runs: {problem}");
        let tables = from.bytes().map_err(of_runs)?.to_vec();
        let map = Map::new(0).map_err(|error| error.to_string())?;
        self.zones.put_saved(SavedFtl { map, tables })?;
        self.table.borrow_mut().restore(&mut from).and_then(|()| from.finish()).map_err(of_runs)?;
        self.check()
    }
}

impl Table {
    fn save(&self, to: &mut Writer) {
        to.long(self.order);
        to.count(self.runs.len());
        for run in &self.runs {
            to.byte(run.is_some().into());
            run.iter().for_each(|run| save_run(run, to));
        }
        to.count(self.zones.len());
        self.zones.iter().for_each(|zone| to.byte(zone.used as u8));
        for list in self.begun.iter().chain([&self.empty]) {
            save_list(list.iter().copied(), to);
        }
    }

    fn restore(&mut self, from: &mut Reader<'_>) -> Result<(), Malformed> {
        self.order = from.long()?;
        if from.count(1)? != self.runs.len() {
            return Err(from.malformed(format!("the drive has {} places for runs", self.runs.len())));
        }
        for place in 0..self.runs.len() {
            self.runs[place] = match from.byte()? {
                0 => None,
                _ => Some(self.restore_run(place, from)?),
            };
        }
        if from.count(1)? != self.zones.len() {
            return Err(from.malformed(format!("the drive has {} zones", self.zones.len())));
        }
        for zone in 0..self.zones.len() {
            let used = from.byte()?;
            let known = USES.into_iter().find(|known| *known as u8 == used);
            self.zones[zone].used = known.ok_or_else(|| from.malformed(format!("zone {zone} is for {used}")))?;
        }
        for level in 0..LEVELS {
            self.begun[level] = self.restore_list(from)?.into();
        }
        self.empty = self.restore_list(from)?.into();
        self.check_lists(from)
    }

    fn restore_run(&mut self, place: usize, from: &mut Reader<'_>) -> Result<Run, Malformed> {
        let (level, state, is_closed) = (from.byte()?, from.byte()?, from.byte()? != 0);
        let known = STATES.into_iter().find(|known| *known as u8 == state).filter(|_| usize::from(level) < LEVELS);
        let state = known.ok_or_else(|| from.malformed(format!("run {place} has level {level}, state {state}")))?;
        let (order, mut pieces, mut at) = (from.long()?, Vec::new(), 0u32);
        for _ in 0..from.count(12)? {
            let (zone, first, units) = (from.word()?, from.word()?, from.word()?);
            if zone != LOST {
                let of = self.zones.get_mut(zone as usize);
                of.ok_or_else(|| from.malformed(format!("run {place} lies in zone {zone}")))?.live += units;
            }
            pieces.push(Piece { at, zone, first, units });
            let end = at.checked_add(units).ok_or_else(|| from.malformed(format!("run {place} has no end")))?;
            at = end;
        }
        let zones = self.restore_list(from)?.into();
        Ok(Run { level, state, order, units: at, pieces, zones, is_busy: false, is_closed })
    }

    fn restore_list(&self, from: &mut Reader<'_>) -> Result<Vec<u32>, Malformed> {
        let count = from.count(4)?;
        let zones = from.words(count)?;
        match zones.iter().find(|zone| **zone as usize >= self.zones.len()) {
            Some(zone) => Err(from.malformed(format!("there is no zone {zone}"))),
            None => Ok(zones),
        }
    }

    /// Each zone is in the list of its use, and in no other.
    fn check_lists(&self, from: &Reader<'_>) -> Result<(), Malformed> {
        let mut uses = vec![Use::Closed; self.zones.len()];
        let taken = self.runs.iter().flatten().flat_map(|run| &run.zones).map(|zone| (zone, Use::Taken));
        let begun = self.begun.iter().flatten().map(|zone| (zone, Use::Begun));
        for (zone, used) in taken.chain(begun).chain(self.empty.iter().map(|zone| (zone, Use::Empty))) {
            if std::mem::replace(&mut uses[*zone as usize], used) != Use::Closed {
                return Err(from.malformed(format!("zone {zone} is in two lists")));
            }
        }
        match self.zones.iter().zip(&uses).position(|(zone, used)| zone.used != *used) {
            Some(zone) => Err(from.malformed(format!("zone {zone} is in another list than its use says"))),
            None => Ok(()),
        }
    }
}

fn save_run(run: &Run, to: &mut Writer) {
    to.byte(run.level);
    to.byte(run.state as u8);
    to.byte(run.is_closed.into());
    to.long(run.order);
    to.count(run.pieces.len());
    for piece in &run.pieces {
        [piece.zone, piece.first, piece.units].into_iter().for_each(|word| to.word(word));
    }
    save_list(run.zones.iter().copied(), to);
}

fn save_list(zones: impl Iterator<Item = u32>, to: &mut Writer) {
    let zones: Vec<u32> = zones.collect();
    to.count(zones.len());
    to.words(&zones);
}
