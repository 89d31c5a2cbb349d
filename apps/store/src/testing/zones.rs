//! The zones of a disk: each is written in order, and a power cut tears what was written last.

use std::cell::RefCell;

use nandscape_drive::{HostMem, Io};
use nandscape_sim::Rng;
use nandscape_wire_nvme::zns::{
    IdentifyNamespace, REPORT_HEAD, SEQUENTIAL_WRITE_REQUIRED, SendCdw13, ZoneDescriptor, send,
};
use nandscape_wire_nvme::{IoOpcode, Status};
use zerocopy::{FromZeros, IntoBytes};

use super::LBA;

/// Zones that may be active at a time.
const MOST_ACTIVE: usize = 5;
/// Blocks of which a power cut leaves all or none in a zone.
const UNIT: usize = 8;
/// States of a zone in the high bits of their byte.
const EMPTY: u8 = 0x10;
const CLOSED: u8 = 0x40;
const FULL: u8 = 0xe0;

/// See the file.
pub(super) struct Zones {
    /// Blocks from one to the next, and blocks that each takes.
    size: usize,
    capacity: usize,
    /// Blocks that are written in each.
    written: RefCell<Vec<usize>>,
}

impl Zones {
    /// Of a disk with a number of blocks.
    pub(super) fn new(blocks: usize, (size, capacity): (usize, usize)) -> Zones {
        Zones { size, capacity, written: RefCell::new(vec![0; blocks / size]) }
    }

    fn zone(&self, io: &Io) -> (usize, usize) {
        let slba = io.command.slba() as usize;
        (slba / self.size, slba % self.size)
    }

    fn is_active(&self, written: usize) -> bool {
        (1..self.capacity).contains(&written)
    }

    /// Moves the write pointer for a write.
    pub(super) fn write(&self, io: &Io, blocks: usize) -> Result<(), Status> {
        let ((zone, at), mut all) = (self.zone(io), self.written.borrow_mut());
        if all[zone] == self.capacity {
            return Err(Status::ZONE_IS_FULL);
        }
        if at != all[zone] {
            return Err(Status::ZONE_INVALID_WRITE);
        }
        if at + blocks > self.capacity {
            return Err(Status::ZONE_BOUNDARY_ERROR);
        }
        if at == 0 && all.iter().filter(|written| self.is_active(**written)).count() == MOST_ACTIVE {
            return Err(Status::TOO_MANY_ACTIVE_ZONES);
        }
        all[zone] += blocks;
        Ok(())
    }

    /// The write pointer moves for a part of a write that power is cut in. Blocks of the write before it.
    pub(super) fn tear(&self, io: &Io, blocks: usize, rng: &mut Rng) -> usize {
        let units = blocks.div_ceil(UNIT) as u64;
        let there = (rng.below(units + 1) as usize * UNIT).min(blocks);
        if there > 0 && self.write(io, there).is_ok() { there } else { 0 }
    }

    /// Carries out an action on a zone. The blocks that are empty from now on.
    pub(super) fn act(&self, io: &Io) -> Result<std::ops::Range<usize>, Status> {
        let ((zone, at), mut all) = (self.zone(io), self.written.borrow_mut());
        match (SendCdw13::of(&io.command).action(), at) {
            (send::RESET, 0) => all[zone] = 0,
            (send::FINISH, 0) => {
                all[zone] = self.capacity;
                return Ok(0..0);
            }
            _ => return Err(Status::INVALID_FIELD),
        }
        Ok(zone * self.size..(zone + 1) * self.size)
    }

    /// Writes a report.
    pub(super) fn report(&self, io: &Io) {
        let (all, first) = (self.written.borrow(), self.zone(io).0);
        for (place, (zone, written)) in all.iter().copied().enumerate().skip(first).enumerate() {
            let at = REPORT_HEAD + place * size_of::<ZoneDescriptor>();
            if at + size_of::<ZoneDescriptor>() > io.mem.len() {
                return;
            }
            let start = (zone * self.size) as u64;
            let is_full = written == self.capacity;
            let descriptor = ZoneDescriptor {
                zt: SEQUENTIAL_WRITE_REQUIRED,
                zs: if is_full {
                    FULL
                } else if written == 0 {
                    EMPTY
                } else {
                    CLOSED
                },
                zcap: (self.capacity as u64).into(),
                zslba: start.into(),
                wp: if is_full { u64::MAX } else { start + written as u64 }.into(),
                ..ZoneDescriptor::default()
            };
            io.mem.write(at, descriptor.as_bytes());
        }
    }

    /// Writes Identify Namespace of the command set.
    pub(super) fn identify(&self, mem: &HostMem) {
        let mut data = IdentifyNamespace::new_zeroed();
        data.mar_z = (MOST_ACTIVE as u32 - 1).into();
        data.lbafe[0].zsze = (self.size as u64).into();
        mem.write(0, data.as_bytes());
    }
}

/// Whether a command is about zones.
pub(super) fn is_send(io: &Io) -> bool {
    io.command.opcode == IoOpcode::ZONE_MANAGEMENT_SEND.0
}

/// Bytes of a range of blocks.
pub(super) fn bytes(blocks: std::ops::Range<usize>) -> std::ops::Range<usize> {
    blocks.start * LBA..blocks.end * LBA
}
