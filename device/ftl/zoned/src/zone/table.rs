//! The state of each zone: what the host may do with it, and its write pointer (ZNS 2.1.1.2 to 2.1.1.4). Blocks are counted from the start
//! of the zone.
//!
//! Active zones are open or closed; open zones are implicitly or explicitly open. Where too many would be open, the
//! implicitly opened zone that was opened first is closed.
//!
//! Left out: flash; the data of zones; zone random write areas, which are in `zrwa`.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::zrwa::Zrwa;

/// The state of a zone, by its number in zone descriptors (ZNS 3.4.2.2.3).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum ZoneState {
    /// Nothing is written.
    Empty = 0x1,
    /// Opened by a write.
    ImplicitlyOpened = 0x2,
    /// Opened by the host.
    ExplicitlyOpened = 0x3,
    /// Partly written, and not open.
    Closed = 0x4,
    /// Its data can only be read.
    ReadOnly = 0xd,
    /// Nothing more can be written.
    Full = 0xe,
    /// Out of use.
    Offline = 0xf,
}

impl ZoneState {
    /// Whether it counts as open.
    pub const fn is_open(self) -> bool {
        matches!(self, ZoneState::ImplicitlyOpened | ZoneState::ExplicitlyOpened)
    }

    /// Whether it counts as active.
    pub const fn is_active(self) -> bool {
        self.is_open() || matches!(self, ZoneState::Closed)
    }
}

/// Why a zone rejects a command.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ZoneError {
    /// Blocks beyond the capacity, or of several zones.
    Boundary,
    /// The zone is full.
    Full,
    /// The zone is read-only.
    ReadOnly,
    /// The zone is offline.
    Offline,
    /// The write does not begin at the write pointer.
    InvalidWrite,
    /// Too many zones would be active.
    TooManyActive,
    /// Too many zones would be open.
    TooManyOpen,
    /// The state does not allow the request.
    InvalidTransition,
    /// The request does not fit the random write area of the zone, or needs one.
    InvalidOperation,
    /// Too many zones would have a random write area.
    NoZrwa,
    /// A flush of a random write area that is no multiple of its granularity.
    Unaligned,
}

/// A host's request to a zone (Zone Send Action).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ZoneAction {
    /// Close Zone.
    Close,
    /// Finish Zone.
    Finish,
    /// Open Zone.
    Open,
    /// Reset Zone.
    Reset,
    /// Offline Zone.
    Offline,
}

impl ZoneAction {
    /// Whether the action is for a zone in this state when all zones are selected (ZNS 3.4.3.1).
    pub const fn selects(self, state: ZoneState) -> bool {
        match self {
            ZoneAction::Close => state.is_open(),
            ZoneAction::Finish => state.is_active(),
            ZoneAction::Open => matches!(state, ZoneState::Closed),
            ZoneAction::Reset => state.is_active() || matches!(state, ZoneState::Full),
            ZoneAction::Offline => matches!(state, ZoneState::ReadOnly),
        }
    }
}

/// The zones of a drive.
#[derive(Clone, Debug)]
pub struct ZoneTable {
    zones: Vec<Zone>,
    /// Blocks that a zone takes.
    capacity: u32,
    max_active: u32,
    max_open: u32,
    active: u32,
    open: u32,
    /// Counts openings, to determine which zone was opened first.
    openings: u64,
    pub(super) zrwa: Zrwa,
    /// Zones that have a random write area.
    with_zrwa: u32,
    /// The set descriptor extensions, by zone.
    pub(super) extensions: BTreeMap<u32, Rc<[u8]>>,
}

/// A zone.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Zone {
    /// Its state.
    pub state: ZoneState,
    /// Blocks written, which is the write pointer. In a full zone that was finished, it is where the host's data ends.
    pub written: u32,
    /// Whether it has a random write area, which begins at the write pointer.
    pub has_zrwa: bool,
    opened: u64,
}

impl ZoneTable {
    /// Empty zones of `capacity` blocks. No limit is larger than the number of zones.
    pub fn new(count: u32, capacity: u32, (max_active, max_open): (u32, u32), zrwa: Zrwa) -> ZoneTable {
        let zone = Zone { state: ZoneState::Empty, written: 0, has_zrwa: false, opened: 0 };
        let zones = vec![zone; count as usize];
        ZoneTable {
            zones,
            capacity,
            max_active,
            max_open,
            active: 0,
            open: 0,
            openings: 0,
            zrwa,
            with_zrwa: 0,
            extensions: BTreeMap::new(),
        }
    }

    /// Blocks that a zone takes.
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// All zones.
    pub fn zones(&self) -> &[Zone] {
        &self.zones
    }

    /// A zone.
    pub fn zone(&self, zone: u32) -> &Zone {
        &self.zones[zone as usize]
    }

    /// Active zones, and open ones.
    pub fn counts(&self) -> (u32, u32) {
        (self.active, self.open)
    }

    /// Zones that have a random write area.
    pub fn with_zrwa(&self) -> u32 {
        self.with_zrwa
    }

    /// Takes blocks of a zone for a write. Where `at` is not given, they are those at the write pointer, and the first of
    /// them is returned.
    ///
    /// # Errors
    /// Why the zone rejects the write. Then nothing changes.
    pub fn write(&mut self, zone: u32, at: Option<u32>, blocks: u32) -> Result<u32, ZoneError> {
        let (first, written) = self.check_write(zone, at, blocks)?;
        self.open_for_write(zone)?;
        self.advance(zone, written);
        Ok(first)
    }

    /// The effect of [`ZoneTable::write`], without opening the zone: the first block, and the write pointer afterwards.
    ///
    /// # Errors
    /// Why the zone rejects the write.
    pub fn check_write(&self, zone: u32, at: Option<u32>, blocks: u32) -> Result<(u32, u32), ZoneError> {
        let Zone { state, written, has_zrwa, .. } = *self.zone(zone);
        match state {
            ZoneState::Full => return Err(ZoneError::Full),
            ZoneState::ReadOnly => return Err(ZoneError::ReadOnly),
            ZoneState::Offline => return Err(ZoneError::Offline),
            _ => {}
        }
        if has_zrwa {
            return self.check_random_write(written, at, blocks);
        }
        if at.is_some_and(|at| at != written) {
            return Err(ZoneError::InvalidWrite);
        }
        match blocks > self.capacity - written {
            true => Err(ZoneError::Boundary),
            false => Ok((written, written + blocks)),
        }
    }

    /// Opens a zone that is written, unless it is open.
    pub(super) fn open_for_write(&mut self, zone: u32) -> Result<(), ZoneError> {
        if !self.zone(zone).state.is_open() {
            self.make_room_for(zone)?;
            self.enter(zone, ZoneState::ImplicitlyOpened);
        }
        Ok(())
    }

    /// Moves the write pointer of an open zone, which is full at its capacity.
    ///
    /// # Panics
    /// If it leaves the zone or moves back.
    pub(super) fn advance(&mut self, zone: u32, written: u32) {
        let (before, capacity) = (self.zones[zone as usize].written, self.capacity);
        let is_ahead = before <= written && written <= capacity;
        assert!(is_ahead, "the write pointer of zone {zone} goes from {before} to {written}, of {capacity}");
        self.zones[zone as usize].written = written;
        if written == self.capacity {
            self.enter(zone, ZoneState::Full);
        }
    }

    /// Moves the write pointer of a zone that is about to become full, or read-only.
    pub(super) fn end_at(&mut self, zone: u32, written: u32) {
        self.zones[zone as usize].written = written;
    }

    /// Carries out a host's request to one zone. Returns whether the state has changed.
    ///
    /// # Errors
    /// Why not. Then nothing changes.
    pub fn act(&mut self, zone: u32, action: ZoneAction) -> Result<bool, ZoneError> {
        let state = self.zone(zone).state;
        let to = match (action, state) {
            (ZoneAction::Open, state) if state.is_open() || state == ZoneState::Closed || state == ZoneState::Empty => {
                ZoneState::ExplicitlyOpened
            }
            (ZoneAction::Close, state) if state.is_active() => ZoneState::Closed,
            (ZoneAction::Finish, state)
                if state.is_active() || state == ZoneState::Empty || state == ZoneState::Full =>
            {
                ZoneState::Full
            }
            (ZoneAction::Reset, state)
                if state.is_active() || state == ZoneState::Empty || state == ZoneState::Full =>
            {
                ZoneState::Empty
            }
            (ZoneAction::Offline, ZoneState::ReadOnly | ZoneState::Offline) => ZoneState::Offline,
            _ => return Err(ZoneError::InvalidTransition),
        };
        if to == state {
            return Ok(false);
        }
        if to == ZoneState::ExplicitlyOpened && !state.is_open() {
            self.make_room_for(zone)?;
        }
        self.enter(zone, to);
        Ok(true)
    }

    /// Whether Open of all closed zones stays within the limit.
    pub fn can_open_all(&self) -> bool {
        let closed = self.zones.iter().filter(|zone| zone.state == ZoneState::Closed).count() as u32;
        self.explicitly_open() + closed <= self.max_open
    }

    fn explicitly_open(&self) -> u32 {
        self.zones.iter().filter(|zone| zone.state == ZoneState::ExplicitlyOpened).count() as u32
    }

    /// Power was lost: open zones are closed.
    pub fn close_all(&mut self) {
        for zone in 0..self.zones.len() as u32 {
            if self.zone(zone).state.is_open() {
                self.enter(zone, ZoneState::Closed);
            }
        }
    }

    /// The drive can no longer write the zone.
    pub fn make_read_only(&mut self, zone: u32) {
        self.enter(zone, ZoneState::ReadOnly);
    }

    /// Sets a zone full, as when its data was planted.
    pub fn plant_full(&mut self, zone: u32) {
        self.zones[zone as usize].written = self.capacity;
        self.enter(zone, ZoneState::Full);
    }

    /// Puts an empty zone into a state that is not open.
    pub(super) fn put(&mut self, zone: u32, state: ZoneState, written: u32, has_zrwa: bool) {
        self.zones[zone as usize].written = written;
        self.enter(zone, state);
        if has_zrwa {
            self.give_zrwa(zone);
        }
    }

    /// Whether one more zone may be open, and active if this one is not. Closes an implicitly opened zone if needed.
    pub(super) fn make_room_for(&mut self, zone: u32) -> Result<(), ZoneError> {
        self.check_active(zone)?;
        if self.open < self.max_open {
            return Ok(());
        }
        let implicit = self.zones.iter().zip(0..).filter(|(zone, _)| zone.state == ZoneState::ImplicitlyOpened);
        let (_, oldest) = implicit.min_by_key(|(zone, _)| zone.opened).ok_or(ZoneError::TooManyOpen)?;
        self.enter(oldest, ZoneState::Closed);
        Ok(())
    }

    /// Whether the zone may be active.
    pub(super) fn check_active(&self, zone: u32) -> Result<(), ZoneError> {
        match !self.zone(zone).state.is_active() && self.active == self.max_active {
            true => Err(ZoneError::TooManyActive),
            false => Ok(()),
        }
    }

    /// Gives a zone a random write area.
    pub(super) fn give_zrwa(&mut self, zone: u32) {
        self.zones[zone as usize].has_zrwa = true;
        self.with_zrwa += 1;
    }

    pub(super) fn enter(&mut self, number: u32, to: ZoneState) {
        let zone = &mut self.zones[number as usize];
        if zone.has_zrwa && !to.is_active() {
            zone.has_zrwa = false;
            self.with_zrwa -= 1;
        }
        self.active = self.active - u32::from(zone.state.is_active()) + u32::from(to.is_active());
        self.open = self.open - u32::from(zone.state.is_open()) + u32::from(to.is_open());
        if to.is_open() && !zone.state.is_open() {
            self.openings += 1;
            zone.opened = self.openings;
        }
        if to == ZoneState::Empty {
            zone.written = 0;
            self.extensions.remove(&number);
        }
        zone.state = to;
        assert!(self.active <= self.max_active && self.open <= self.max_open, "zones are within their limits");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> ZoneTable {
        ZoneTable::new(3, 10, (2, 1), Zrwa::default())
    }

    // Deliberate mistakes: of a caller that does not ask first, and of a write pointer.

    #[test]
    #[should_panic(expected = "zones are within their limits")]
    fn more_open_zones_than_there_may_be_are_noticed() {
        let mut table = table();
        (0..2).for_each(|zone| table.enter(zone, ZoneState::ImplicitlyOpened));
    }

    #[test]
    #[should_panic(expected = "the write pointer of zone 1 goes from 7 to 6, of 10")]
    fn a_write_pointer_that_moves_back_is_noticed() {
        let mut table = table();
        table.enter(1, ZoneState::ImplicitlyOpened);
        [7, 6].into_iter().for_each(|written| table.advance(1, written));
    }
}
