//! The state of a zone FTL at rest, saved and restored to a new one over the same flash.
//!
//! A drive is at rest when no command is under way, all whole strips are on flash and all blocks of zones that were reset are
//! erased. The remaining state is the table of zones, the blocks of each, and the data in the write buffer that waits
//! for the rest of its strip. The new drive starts as after a loss of power: open zones are closed.
//!
//! Left out: counters, which begin at zero, and zones that are out of blocks while they have data in the buffer.

use nandscape_device_ftl_core::SavedFtl;
use nandscape_device_media::BlockId;
use nandscape_device_media::plain::{Malformed, Reader, Writer};
use nandscape_sim::table::Table;
use smallvec::SmallVec;

use super::ZoneFtl;
use super::body::{Body, Column, Run, Slot};
use super::state::State;
use super::table::{Zone, ZoneState};

impl ZoneFtl {
    /// Brings the drive to rest. It must not be used meanwhile, nor afterwards except for [`ZoneFtl::take_saved`].
    pub async fn come_to_rest(&self) {
        while self.is_running() && !self.state.borrow().is_at_rest() {
            self.progress.changed().await;
        }
    }

    /// Whether anything was written to it.
    pub fn holds_data(&self) -> bool {
        self.state.borrow().table.zones().iter().any(|zone| zone.state != ZoneState::Empty)
    }

    /// Takes the state of a drive at rest.
    ///
    /// # Errors
    /// Why it cannot be taken.
    pub fn take_saved(&self) -> Result<SavedFtl, String> {
        let state = self.state.borrow();
        if let Some(zone) = state.bodies.iter().position(|body| body.is_stranded) {
            return Err(format!("zone {zone} is out of blocks, and holds data in the write buffer"));
        }
        if !state.is_at_rest() {
            return Err("its flash is not powered, and programs or erases are left".to_owned());
        }
        let map = Table::new(0).map_err(|error| error.to_string())?;
        Ok(SavedFtl { map, tables: state.save() })
    }

    /// Restores the state of another drive to this new drive over the same flash.
    ///
    /// # Errors
    /// If the state is not of such a drive.
    pub fn put_saved(&self, saved: SavedFtl) -> Result<(), String> {
        let state = &mut *self.state.borrow_mut();
        let mut from = Reader::new(&saved.tables);
        let restored = state.restore(&mut from, self.config.extension as usize, self.unit.bytes() as usize);
        let restored = restored.and_then(|()| from.finish());
        restored.map_err(|problem: Malformed| format!("tables: {problem}"))?;
        state.check(&self.config, &self.media)?;
        let of_zone = |body: &Body| body.waiting().filter(|slot| slot.takes_room).count();
        let rooms: Vec<usize> = state.bodies.iter().map(of_zone).collect();
        let (all, free) = (rooms.iter().sum::<usize>(), self.room.free());
        match rooms.into_iter().zip(0..).all(|(room, zone)| self.room.try_take_for(zone, room)) {
            true => Ok(()),
            false => Err(format!("{all} units are in its write buffer, and this one has {free}")),
        }
    }
}

impl State {
    fn is_at_rest(&self) -> bool {
        let is_settled = |body: &Body| {
            let waits = |column: &Column| column.is_busy || column.again.is_some() && !body.is_stranded;
            !body.columns.iter().any(waits) && (body.strips.is_empty() || body.is_stranded)
        };
        self.needy.is_empty() && self.blocks.stale().is_empty() && self.bodies.iter().all(is_settled)
    }

    fn save(&self) -> Vec<u8> {
        let mut to = Writer::default();
        self.blocks.save(&mut to);
        to.count(self.bodies.len());
        for ((zone, body), number) in self.table.zones().iter().zip(&self.bodies).zip(0..) {
            save_zone(zone, &mut to);
            match self.table.extensions.get(&number) {
                Some(extension) => to.bytes(extension),
                None => to.bytes(&[]),
            }
            save_body(body, &mut to);
        }
        to.finish()
    }

    fn restore(&mut self, from: &mut Reader<'_>, extension: usize, unit: usize) -> Result<(), Malformed> {
        self.blocks.restore(from)?;
        let count = from.count(1)?;
        if count != self.bodies.len() {
            return Err(from.malformed(format!("it has {count} zones, and the drive has {}", self.bodies.len())));
        }
        for zone in 0..count as u32 {
            self.restore_zone(zone, from)?;
            let noted = from.bytes()?;
            if !noted.is_empty() && noted.len() != extension {
                return Err(from.malformed(format!("zone {zone} has an extension of {} bytes", noted.len())));
            }
            if !noted.is_empty() {
                self.table.extensions.insert(zone, noted.into());
            }
            self.restore_body(zone, unit, from)?;
        }
        Ok(())
    }

    fn restore_zone(&mut self, zone: u32, from: &mut Reader<'_>) -> Result<(), Malformed> {
        let (state, written, has_zrwa) = (from.byte()?, from.word()?, from.byte()? != 0);
        let known = [ZoneState::Empty, ZoneState::Closed, ZoneState::ReadOnly, ZoneState::Full, ZoneState::Offline];
        let known = known.into_iter().find(|known| *known as u8 == state);
        let of_zone = known.filter(|_| written <= self.table.capacity());
        let of_zone = of_zone.ok_or_else(|| from.malformed(format!("zone {zone} has state {state}, {written}")))?;
        if of_zone == ZoneState::Closed && self.table.check_active(zone).is_err() {
            return Err(from.malformed("more zones are active than can be"));
        }
        self.table.put(zone, of_zone, written, has_zrwa && of_zone == ZoneState::Closed);
        Ok(())
    }

    fn restore_body(&mut self, zone: u32, unit: usize, from: &mut Reader<'_>) -> Result<(), Malformed> {
        let begun = from.word()?;
        if begun > self.layout.rows() * self.layout.columns() {
            return Err(from.malformed(format!("zone {zone} has {begun} strips")));
        }
        for number in 0..self.layout.columns() as usize {
            let column = self.restore_column(zone, number, from)?;
            // The written rows: those before the row of the next strip.
            let rows = begun / self.layout.columns() + u32::from((number as u32) < begun % self.layout.columns());
            if !self.has_rows(&column, rows) {
                return Err(from.malformed(format!("zone {zone} lacks blocks for {rows} rows of column {number}")));
            }
            self.bodies[zone as usize].columns[number] = column;
        }
        let room = self.layout.zone_units() as u32 - begun * self.layout.strip_units();
        let count = from.count(1)?;
        if count > room as usize {
            return Err(from.malformed(format!("zone {zone} has {count} units in the buffer, and room for {room}")));
        }
        let slots = (0..count).map(|_| restore_slot(unit, from)).collect::<Result<Vec<_>, Malformed>>()?;
        self.bodies[zone as usize].put_waiting(begun, slots);
        Ok(())
    }

    fn restore_column(&self, zone: u32, number: usize, from: &mut Reader<'_>) -> Result<Column, Malformed> {
        let needs_run = from.byte()? != 0;
        let planes: Vec<_> = self.layout.planes_of(self.layout.groups(zone)[number]).collect();
        let mut runs = SmallVec::new();
        for _ in 0..from.count(4)? {
            let first_row = from.word()?;
            let blocks = from.words(planes.len())?.into_iter().map(BlockId).collect::<SmallVec<[BlockId; 2]>>();
            let is_there = |block: &BlockId| block.0 < self.geometry.blocks();
            if !blocks.iter().all(is_there)
                || !blocks.iter().map(|block| self.geometry.plane_of(*block)).eq(planes.iter().copied())
            {
                return Err(from.malformed(format!("column {number} of zone {zone} has blocks of other planes")));
            }
            runs.push(Run { first_row, blocks });
        }
        Ok(Column { runs, needs_run, ..Column::default() })
    }

    /// Whether the first rows of a column have a place.
    fn has_rows(&self, column: &Column, rows: u32) -> bool {
        let ends = column.runs.iter().map(|run| run.first_row).skip(1).chain([rows]);
        let mut reached = 0;
        column.runs.iter().zip(ends).all(|(run, end)| {
            let follows = run.first_row == reached && end <= run.first_row + self.layout.rows_per_block;
            reached = end;
            follows && end >= run.first_row
        }) && reached == rows
    }
}

/// An open zone is closed when the drive starts again.
fn save_zone(zone: &Zone, to: &mut Writer) {
    let state = if zone.state.is_open() { ZoneState::Closed } else { zone.state };
    to.byte(state as u8);
    to.word(zone.written);
    to.byte(zone.has_zrwa.into());
}

fn save_body(body: &Body, to: &mut Writer) {
    to.word(body.begun);
    for column in &body.columns {
        to.byte(column.needs_run.into());
        to.count(column.runs.len());
        for run in &column.runs {
            to.word(run.first_row);
            to.words(&run.blocks.iter().map(|block| block.0).collect::<Vec<_>>());
        }
    }
    let slots: Vec<_> = body.slots().collect();
    to.count(slots.len());
    slots.into_iter().for_each(|slot| save_slot(slot, to));
}

/// A byte shows whether the unit is present, takes room, is padding, and has data.
fn save_slot(slot: Option<&Slot>, to: &mut Writer) {
    let Some(Slot { data, takes_room, is_padding }) = slot else { return to.byte(0) };
    to.byte(1 | u8::from(*takes_room) << 1 | u8::from(*is_padding) << 2 | u8::from(data.is_some()) << 3);
    if let Some(data) = data {
        to.bytes(data);
    }
}

fn restore_slot(unit: usize, from: &mut Reader<'_>) -> Result<Option<Slot>, Malformed> {
    let marks = from.byte()?;
    let has = |bit: u8| marks & 1 << bit != 0;
    let data = if has(3) { Some(from.bytes()?) } else { None };
    if marks > 15 || data.is_some_and(|data| data.len() != unit) {
        return Err(from.malformed("a unit of the write buffer is none"));
    }
    Ok(has(0).then(|| Slot { data: data.map(Into::into), takes_room: has(1), is_padding: has(2) }))
}
