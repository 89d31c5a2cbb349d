//! Zones as the specification has them, written without a look at the drive's own table (ZNS 2.1.1).

use nandscape_wire_nvme::Status;
use nandscape_wire_nvme::zns::send;

use crate::rig::{ACTIVE, CAPACITY, OPEN, SIZE, ZONES};

pub(crate) const EMPTY: u8 = 0x1;
pub(crate) const IMPLICIT: u8 = 0x2;
pub(crate) const EXPLICIT: u8 = 0x3;
pub(crate) const CLOSED: u8 = 0x4;
pub(crate) const FULL: u8 = 0xe;

#[derive(Clone, Default)]
pub(crate) struct Zone {
    pub(crate) state: u8,
    /// The stamps of the blocks written.
    pub(crate) data: Vec<u64>,
    opened: u64,
}

pub(crate) struct Model {
    pub(crate) zones: Vec<Zone>,
    clock: u64,
}

impl Model {
    pub(crate) fn new() -> Model {
        let zone = Zone { state: EMPTY, ..Zone::default() };
        Model { zones: vec![zone; ZONES as usize], clock: 0 }
    }

    fn count(&self, states: &[u8]) -> usize {
        self.zones.iter().filter(|zone| states.contains(&zone.state)).count()
    }

    /// Makes a zone open. Of those opened by writes, the oldest makes room.
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
        let written = self.zones[number].data.len() as u64;
        if self.zones[number].state == FULL {
            return Err(Status::ZONE_IS_FULL);
        }
        if !append && at != written {
            return Err(Status::ZONE_INVALID_WRITE);
        }
        if written + stamps.len() as u64 > CAPACITY {
            return Err(Status::ZONE_BOUNDARY_ERROR);
        }
        if self.zones[number].state != EXPLICIT {
            self.open(number, IMPLICIT)?;
        }
        let zone = &mut self.zones[number];
        zone.data.extend(stamps);
        if zone.data.len() as u64 == CAPACITY {
            zone.state = FULL;
        }
        Ok(number as u64 * SIZE + written)
    }

    pub(crate) fn read(&self, slba: u64, blocks: u64) -> Result<Vec<u64>, Status> {
        if slba + blocks > ZONES * SIZE {
            return Err(Status::LBA_OUT_OF_RANGE);
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
            send::CLOSE if [IMPLICIT, EXPLICIT, CLOSED].contains(&state) => self.zones[zone].state = CLOSED,
            send::FINISH => self.zones[zone].state = FULL,
            send::OPEN if state != FULL => self.open(zone, EXPLICIT)?,
            send::RESET => self.zones[zone] = Zone { state: EMPTY, ..Zone::default() },
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
