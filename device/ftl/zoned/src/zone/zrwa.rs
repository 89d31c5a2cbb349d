//! Zone random write areas (ZNS 2.1.1.5): from the write pointer on, blocks of a zone may be written in any order and again, in the write
//! buffer. The write pointer moves when the host flushes a range (explicit), and when a write goes beyond the area (implicit). Blocks
//! that it passes are committed: they are programmed, and those that were not written read as zeros.
//!
//! A strip is programmed once all of it is committed and no write into it is under way, so that the completed data is
//! the data kept.
//!
//! The area of a closed zone stays. A zone that is full, empty, read-only or offline has none.

use super::ZoneFtl;
use super::state::State;
use super::table::{ZoneError, ZoneState, ZoneTable};

/// The random write areas of a drive.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Zrwa {
    /// Blocks of an area; 0 without areas.
    pub size: u32,
    /// Blocks of which a flush is a multiple. It divides the size, and the capacity of a zone.
    pub granularity: u32,
    /// Zones that may have one at a time.
    pub zones: u32,
}

impl ZoneTable {
    /// Opens an empty zone explicitly and gives it a random write area. One that has an area is opened.
    ///
    /// # Errors
    /// Why not. Then nothing changes.
    pub fn open_with_zrwa(&mut self, zone: u32) -> Result<(), ZoneError> {
        let of_zone = *self.zone(zone);
        let is_new = match (of_zone.state, of_zone.has_zrwa) {
            (_, true) => false,
            (ZoneState::Empty, false) => true,
            (state, false) if state.is_active() => return Err(ZoneError::InvalidOperation),
            _ => return Err(ZoneError::InvalidTransition),
        };
        if is_new && self.with_zrwa() == self.zrwa.zones {
            return Err(ZoneError::NoZrwa);
        }
        if !of_zone.state.is_open() {
            self.make_room_for(zone)?;
        }
        self.enter(zone, ZoneState::ExplicitlyOpened);
        if is_new {
            self.give_zrwa(zone);
        }
        Ok(())
    }

    /// Checks a write into the area, or into as much again behind it: its first block, and the write pointer afterwards.
    pub(super) fn check_random_write(
        &self,
        written: u32,
        at: Option<u32>,
        blocks: u32,
    ) -> Result<(u32, u32), ZoneError> {
        let at = at.ok_or(ZoneError::InvalidOperation)?;
        let Zrwa { size, granularity, .. } = self.zrwa;
        let end = at + blocks;
        if at < written || end > written + 2 * size {
            return Err(ZoneError::InvalidWrite);
        }
        if end > self.capacity() {
            return Err(ZoneError::Boundary);
        }
        let beyond = end.saturating_sub(written + size).next_multiple_of(granularity);
        Ok((at, (written + beyond).min(self.capacity())))
    }

    /// Moves the write pointer behind `last`, a block of the area (Flush Explicit ZRWA Range).
    ///
    /// # Errors
    /// Why not. Then nothing changes.
    pub fn flush_zrwa(&mut self, zone: u32, last: u32) -> Result<(), ZoneError> {
        let of_zone = *self.zone(zone);
        let end = self.capacity().min(of_zone.written + self.zrwa.size);
        if !of_zone.has_zrwa || last < of_zone.written || last >= end {
            return Err(ZoneError::InvalidOperation);
        }
        if !(last + 1 - of_zone.written).is_multiple_of(self.zrwa.granularity) {
            return Err(ZoneError::Unaligned);
        }
        self.open_for_write(zone)?;
        self.advance(zone, last + 1);
        Ok(())
    }
}

impl State {
    /// Up to where strips of a zone may be programmed.
    pub(super) fn committed(&self, zone: u32) -> u32 {
        let of_zone = self.table.zone(zone);
        if of_zone.has_zrwa { of_zone.written } else { u32::MAX }
    }

    /// Fills unwritten blocks, up to the write pointer.
    pub(super) fn commit(&mut self, zone: u32) {
        let written = self.table.zone(zone).written;
        self.bodies[zone as usize].fill_holes(written, &self.layout);
    }

    /// A zone is about to lose its random write area: all that was written there is kept.
    pub(super) fn commit_all(&mut self, zone: u32) {
        let of_zone = *self.table.zone(zone);
        if of_zone.has_zrwa {
            let end = self.bodies[zone as usize].end(&self.layout);
            self.table.end_at(zone, end.max(of_zone.written));
            self.commit(zone);
        }
    }
}

impl ZoneFtl {
    /// Opens a zone with a random write area.
    ///
    /// # Errors
    /// Why the zone gets none.
    pub fn open_with_zrwa(&self, zone: u32) -> Result<(), ZoneError> {
        self.state.borrow_mut().table.open_with_zrwa(zone)
    }

    /// Commits the blocks of a random write area up to `last`, counted from the start of the zone. They are in the write
    /// buffer, which survives a power cut, so this returns at once.
    ///
    /// # Errors
    /// Why they are not committed.
    pub fn flush_zrwa(&self, zone: u32, last: u32) -> Result<(), ZoneError> {
        {
            let mut state = self.state.borrow_mut();
            state.table.flush_zrwa(zone, last)?;
            state.commit(zone);
        }
        self.pump(zone);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> ZoneTable {
        ZoneTable::new(4, 64, (3, 2), Zrwa { size: 16, granularity: 4, zones: 2 })
    }

    #[test]
    fn a_write_beyond_the_area_moves_it_by_whole_granules() {
        let mut table = table();
        table.open_with_zrwa(0).unwrap();
        assert_eq!(table.write(0, Some(5), 11), Ok(5));
        assert_eq!(table.zone(0).written, 0);
        assert_eq!(table.write(0, Some(16), 1), Ok(16));
        assert_eq!(table.zone(0).written, 4);
        assert_eq!(table.write(0, Some(4 + 31), 1), Ok(35));
        assert_eq!(table.zone(0).written, 20);
        assert_eq!(table.write(0, Some(19), 1), Err(ZoneError::InvalidWrite));
        assert_eq!(table.write(0, Some(20 + 32), 1), Err(ZoneError::InvalidWrite));
        assert_eq!(table.write(0, None, 1), Err(ZoneError::InvalidOperation));
    }

    #[test]
    fn at_the_end_of_a_zone_a_flush_fills_it() {
        let mut table = table();
        table.open_with_zrwa(0).unwrap();
        for last in [15, 31, 47] {
            assert_eq!(table.flush_zrwa(0, last), Ok(()));
        }
        assert_eq!(table.write(0, Some(60), 5), Err(ZoneError::Boundary));
        assert_eq!(table.write(0, Some(60), 4), Ok(60));
        assert_eq!((table.zone(0).written, table.zone(0).state), (48, ZoneState::ExplicitlyOpened));
        assert_eq!(table.flush_zrwa(0, 64), Err(ZoneError::InvalidOperation));
        assert_eq!(table.flush_zrwa(0, 62), Err(ZoneError::Unaligned));
        assert_eq!(table.flush_zrwa(0, 63), Ok(()));
        assert_eq!((table.zone(0).state, table.with_zrwa()), (ZoneState::Full, 0));
        assert_eq!(table.flush_zrwa(0, 63), Err(ZoneError::InvalidOperation));
    }

    #[test]
    fn there_are_as_many_areas_as_the_drive_has() {
        let mut table = table();
        assert_eq!(table.write(3, None, 1), Ok(0));
        assert_eq!(table.open_with_zrwa(3), Err(ZoneError::InvalidOperation));
        assert_eq!(table.open_with_zrwa(0), Ok(()));
        assert_eq!(table.open_with_zrwa(0), Ok(()));
        // The zone that a write has opened is closed to make room.
        assert_eq!(table.open_with_zrwa(1), Ok(()));
        assert_eq!((table.with_zrwa(), table.counts()), (2, (3, 2)));
        assert_eq!(table.open_with_zrwa(2), Err(ZoneError::NoZrwa));
    }
}
