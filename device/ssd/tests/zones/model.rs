//! Zones by the specification, independent of the drive's own table (ZNS 2.1.1).

use nandscape_wire_nvme::Status;
use nandscape_wire_nvme::zns::send;

use crate::rig::{ACTIVE, AREA, AREAS, CAPACITY, GRANULARITY, OPEN, SIZE, ZONES};

pub(crate) const EMPTY: u8 = 0x1;
pub(crate) const IMPLICIT: u8 = 0x2;
pub(crate) const EXPLICIT: u8 = 0x3;
pub(crate) const CLOSED: u8 = 0x4;
pub(crate) const READ_ONLY: u8 = 0xd;
pub(crate) const FULL: u8 = 0xe;
pub(crate) const OFFLINE: u8 = 0xf;

#[derive(Clone)]
pub(crate) struct Zone {
    pub(crate) state: u8,
    /// The stamps of all blocks, 0 where nothing was written.
    pub(crate) data: Vec<u64>,
    pub(crate) pointer: u64,
    /// Whether it has a random write area.
    pub(crate) is_random: bool,
    /// The byte of its descriptor extension, if it was set.
    pub(crate) extension: Option<u8>,
    opened: u64,
}

impl Zone {
    fn new() -> Zone {
        let data = vec![0; CAPACITY as usize];
        Zone { state: EMPTY, data, pointer: 0, is_random: false, extension: None, opened: 0 }
    }

    /// The write pointer has moved.
    fn advance(&mut self, to: u64) {
        self.pointer = to;
        if to == CAPACITY {
            self.fill();
        }
    }

    fn fill(&mut self) {
        (self.state, self.is_random) = (FULL, false);
    }
}

#[derive(Clone)]
pub(crate) struct Model {
    pub(crate) zones: Vec<Zone>,
    clock: u64,
}

impl Model {
    pub(crate) fn new() -> Model {
        Model { zones: vec![Zone::new(); ZONES as usize], clock: 0 }
    }

    /// The states of all zones.
    pub(crate) fn states(&self) -> Vec<u8> {
        self.zones.iter().map(|zone| zone.state).collect()
    }

    /// The drive has no blocks left for a zone, which only happens to one that is being written.
    pub(crate) fn make_read_only(&mut self, zone: usize) -> Option<()> {
        let zone = &mut self.zones[zone];
        [IMPLICIT, EXPLICIT, CLOSED].contains(&zone.state).then(|| (zone.state, zone.is_random) = (READ_ONLY, false))
    }

    fn count(&self, states: &[u8]) -> usize {
        self.zones.iter().filter(|zone| states.contains(&zone.state)).count()
    }

    /// Opens a zone. If needed, the oldest zone opened by a write is closed.
    fn open(&mut self, zone: usize, state: u8) -> Result<(), Status> {
        self.clock += 1;
        if ![IMPLICIT, EXPLICIT].contains(&self.zones[zone].state) {
            if self.zones[zone].state == EMPTY && self.count(&[IMPLICIT, EXPLICIT, CLOSED]) == ACTIVE {
                return Err(Status::TOO_MANY_ACTIVE_ZONES);
            }
            if self.count(&[IMPLICIT, EXPLICIT]) == OPEN {
                let implicit = (0..self.zones.len()).filter(|zone| self.zones[*zone].state == IMPLICIT);
                let oldest = implicit.min_by_key(|zone| self.zones[*zone].opened).ok_or(Status::TOO_MANY_OPEN_ZONES)?;
                self.zones[oldest].state = CLOSED;
            }
            self.zones[zone].opened = self.clock;
        }
        self.zones[zone].state = state;
        Ok(())
    }

    /// Writes at a block; `append` writes where the zone ends. Returns the first block written.
    pub(crate) fn write(&mut self, slba: u64, stamps: &[u64], append: bool) -> Result<u64, Status> {
        if slba + stamps.len() as u64 > ZONES * SIZE {
            return Err(Status::LBA_OUT_OF_RANGE);
        }
        let (number, at) = ((slba / SIZE) as usize, slba % SIZE);
        if append && at != 0 {
            return Err(Status::INVALID_FIELD);
        }
        let (pointer, is_random) = (self.zones[number].pointer, self.zones[number].is_random);
        match self.zones[number].state {
            FULL => return Err(Status::ZONE_IS_FULL),
            READ_ONLY => return Err(Status::ZONE_IS_READ_ONLY),
            OFFLINE => return Err(Status::ZONE_IS_OFFLINE),
            _ => {}
        }
        let at = if append { pointer } else { at };
        let end = at + stamps.len() as u64;
        let is_wrong = if is_random { at < pointer || end > pointer + 2 * AREA } else { at != pointer };
        match (is_random && append, is_wrong) {
            (true, _) => return Err(Status::INVALID_ZONE_OPERATION),
            (_, true) => return Err(Status::ZONE_INVALID_WRITE),
            _ if end > CAPACITY => return Err(Status::ZONE_BOUNDARY_ERROR),
            _ => {}
        }
        if self.zones[number].state != EXPLICIT {
            self.open(number, IMPLICIT)?;
        }
        let zone = &mut self.zones[number];
        zone.data[at as usize..end as usize].copy_from_slice(stamps);
        zone.advance(match is_random {
            // By as many whole granules as the write goes beyond the area.
            true => (pointer..).step_by(GRANULARITY as usize).find(|begin| end <= begin + AREA).expect("some do"),
            false => end,
        });
        Ok(number as u64 * SIZE + at)
    }

    /// Copies blocks: all are read before any is written.
    pub(crate) fn copy(&mut self, sources: &[(u64, u64)], to: u64) -> Result<(), Status> {
        let mut stamps = Vec::new();
        for (slba, blocks) in sources {
            stamps.extend(self.read(*slba, *blocks)?);
        }
        self.write(to, &stamps, false).map(drop)
    }

    /// Commits a range of a random write area up to a block.
    pub(crate) fn flush(&mut self, last: u64) -> Result<(), Status> {
        if last >= ZONES * SIZE {
            return Err(Status::LBA_OUT_OF_RANGE);
        }
        let (number, last) = ((last / SIZE) as usize, last % SIZE);
        let (pointer, is_random) = (self.zones[number].pointer, self.zones[number].is_random);
        if !is_random || !(pointer..CAPACITY.min(pointer + AREA)).contains(&last) {
            return Err(Status::INVALID_ZONE_OPERATION);
        }
        if !(last + 1 - pointer).is_multiple_of(GRANULARITY) {
            return Err(Status::INVALID_FIELD);
        }
        if self.zones[number].state == CLOSED {
            self.open(number, IMPLICIT)?;
        }
        self.zones[number].advance(last + 1);
        Ok(())
    }

    /// Opens a zone with a random write area.
    pub(crate) fn open_random(&mut self, zone: u64) -> Result<(), Status> {
        let number = zone as usize;
        let of_zone = &self.zones[number];
        match (of_zone.state, of_zone.is_random) {
            (FULL | READ_ONLY | OFFLINE, _) => return Err(Status::INVALID_ZONE_STATE_TRANSITION),
            (EMPTY, _) | (_, true) => {}
            _ => return Err(Status::INVALID_ZONE_OPERATION),
        }
        let areas = self.zones.iter().filter(|zone| zone.is_random).count();
        if !of_zone.is_random && areas == AREAS {
            return Err(Status::ZRWA_RESOURCES_UNAVAILABLE);
        }
        self.open(number, EXPLICIT)?;
        self.zones[number].is_random = true;
        Ok(())
    }

    /// Sets the descriptor extension of a zone.
    pub(crate) fn set_extension(&mut self, zone: u64, byte: u8) -> Result<(), Status> {
        if self.zones[zone as usize].state != EMPTY {
            return Err(Status::INVALID_ZONE_STATE_TRANSITION);
        }
        if self.count(&[IMPLICIT, EXPLICIT, CLOSED]) == ACTIVE {
            return Err(Status::TOO_MANY_ACTIVE_ZONES);
        }
        let zone = &mut self.zones[zone as usize];
        (zone.state, zone.extension) = (CLOSED, Some(byte));
        Ok(())
    }

    pub(crate) fn read(&self, slba: u64, blocks: u64) -> Result<Vec<u64>, Status> {
        if slba + blocks > ZONES * SIZE {
            return Err(Status::LBA_OUT_OF_RANGE);
        }
        let of_blocks = slba / SIZE..=(slba + blocks - 1) / SIZE;
        if of_blocks.into_iter().any(|zone| self.zones[zone as usize].state == OFFLINE) {
            return Err(Status::ZONE_IS_OFFLINE);
        }
        let stamp = |lba: u64| self.zones[(lba / SIZE) as usize].data.get((lba % SIZE) as usize).copied().unwrap_or(0);
        Ok((slba..slba + blocks).map(stamp).collect())
    }

    pub(crate) fn send(&mut self, slba: u64, action: u8, all: bool) -> Result<(), Status> {
        if !all {
            return match slba {
                slba if slba >= ZONES * SIZE => Err(Status::LBA_OUT_OF_RANGE),
                slba if !slba.is_multiple_of(SIZE) => Err(Status::INVALID_FIELD),
                slba => self.act((slba / SIZE) as usize, action),
            };
        }
        let states: &[u8] = match action {
            send::CLOSE => &[IMPLICIT, EXPLICIT],
            send::FINISH => &[IMPLICIT, EXPLICIT, CLOSED],
            send::OPEN => &[CLOSED],
            send::RESET => &[IMPLICIT, EXPLICIT, CLOSED, FULL],
            send::OFFLINE => &[READ_ONLY],
            _ => &[],
        };
        if action == send::OPEN && self.count(&[CLOSED]) + self.count(&[EXPLICIT]) > OPEN {
            return Err(Status::TOO_MANY_OPEN_ZONES);
        }
        let zones: Vec<usize> =
            (0..self.zones.len()).filter(|zone| states.contains(&self.zones[*zone].state)).collect();
        zones.into_iter().try_for_each(|zone| self.act(zone, action))
    }

    fn act(&mut self, zone: usize, action: u8) -> Result<(), Status> {
        let state = self.zones[zone].state;
        match action {
            send::OFFLINE if [READ_ONLY, OFFLINE].contains(&state) => {
                self.zones[zone] = Zone { state: OFFLINE, extension: self.zones[zone].extension, ..Zone::new() };
            }
            _ if [READ_ONLY, OFFLINE].contains(&state) => return Err(Status::INVALID_ZONE_STATE_TRANSITION),
            send::CLOSE if [IMPLICIT, EXPLICIT, CLOSED].contains(&state) => self.zones[zone].state = CLOSED,
            send::FINISH => self.zones[zone].fill(),
            send::OPEN if state != FULL => self.open(zone, EXPLICIT)?,
            send::RESET => self.zones[zone] = Zone::new(),
            _ => return Err(Status::INVALID_ZONE_STATE_TRANSITION),
        }
        Ok(())
    }

    /// Power was lost.
    pub(crate) fn close_open(&mut self) {
        self.zones
            .iter_mut()
            .filter(|zone| [IMPLICIT, EXPLICIT].contains(&zone.state))
            .for_each(|zone| zone.state = CLOSED);
    }
}
