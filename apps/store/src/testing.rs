//! For tests: a drive in memory that serves one command at a time, reports its queue, and rejects reads whose
//! deadline the queue exceeds. Power cuts tear the write in service. A disk may have zones; its drive is its own admin queue.
//!
//! Left out: all other behaviour of a drive. The product's drive that rejects is in a host crate.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

use nandscape_drive::{CommandRef, Completion, Drive, DriveInfo, Io};
use nandscape_sim::signal::Signal;
use nandscape_sim::{Rng, Sim, Span, Time};
use nandscape_wire_nvme::vendor::BUSY;
use nandscape_wire_nvme::{AdminOpcode, IoOpcode, Status};

mod zones;

use zones::{Zones, bytes, is_send};

/// Bytes of a block.
const LBA: usize = 512;

/// The drive's contents, which outlast runs.
pub struct Disk {
    bytes: RefCell<Vec<u8>>,
    /// Blocks that are unreadable until they are written.
    damaged: RefCell<BTreeSet<usize>>,
    info: DriveInfo,
    zones: Option<Zones>,
}

impl Disk {
    /// A disk of zeros.
    pub fn new(bytes: usize) -> Rc<Disk> {
        Disk::of(bytes, None)
    }

    /// The same with zones: bytes from one to the next, and bytes that each takes.
    pub fn with_zones(bytes: usize, (size, capacity): (usize, usize)) -> Rc<Disk> {
        Disk::of(bytes, Some(Zones::new(bytes / LBA, (size / LBA, capacity / LBA))))
    }

    fn of(bytes: usize, zones: Option<Zones>) -> Rc<Disk> {
        let info = DriveInfo { blocks: bytes as u64 / 512, keeps_data: true, ..nandscape_drive::testing::INFO };
        Rc::new(Disk { bytes: RefCell::new(vec![0; bytes]), damaged: RefCell::default(), info, zones })
    }

    /// A disk with the present contents. It has no zones.
    pub fn copy(&self) -> Rc<Disk> {
        let (bytes, damaged) = (self.bytes.clone(), self.damaged.clone());
        Rc::new(Disk { bytes, damaged, info: self.info, zones: None })
    }

    /// Changes a byte.
    pub fn spoil(&self, place: usize) {
        self.bytes.borrow_mut()[place] ^= 0x55;
    }

    /// A block cannot be read until it is written.
    pub fn damage(&self, block: usize) {
        self.damaged.borrow_mut().insert(block);
    }

    /// What a command does to zones. Those that only do that end with a success.
    fn serve_zones(&self, io: &Io) -> Result<(), Status> {
        let Some(zones) = &self.zones else { return Ok(()) };
        match IoOpcode(io.command.opcode) {
            IoOpcode::WRITE => zones.write(io, self.range(io).len() / LBA),
            IoOpcode::ZONE_MANAGEMENT_SEND => {
                let emptied = bytes(zones.act(io)?);
                self.bytes.borrow_mut()[emptied.clone()].fill(0);
                self.damaged.borrow_mut().retain(|block| !emptied.contains(&(block * LBA)));
                Err(Status::SUCCESS)
            }
            IoOpcode::ZONE_MANAGEMENT_RECEIVE => {
                zones.report(io);
                Err(Status::SUCCESS)
            }
            _ => Ok(()),
        }
    }

    fn is_damaged(&self, range: &std::ops::Range<usize>) -> bool {
        self.damaged.borrow().range(range.start / 512..range.end / 512).next().is_some()
    }

    fn range(&self, io: &Io) -> std::ops::Range<usize> {
        let start = io.command.slba() as usize * 512;
        start..start + ((io.command.cdw12.get() & 0xffff) as usize + 1) * 512
    }
}

/// See the module.
pub struct QueueingDrive {
    sim: Sim,
    disk: Rc<Disk>,
    queue: RefCell<VecDeque<Io>>,
    in_service: RefCell<Option<Io>>,
    ends: Cell<Time>,
    came: Signal,
    times: Times,
    is_dead: Cell<bool>,
}

/// How long commands take.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Times {
    /// A read.
    pub read: Span,
    /// A write of up to 64 KiB; longer ones take a multiple.
    pub write: Span,
}

impl Times {
    /// 100 us and 1 ms.
    pub const FLASH: Times = Times { read: Span::from_us(100), write: Span::from_ms(1) };

    fn of(&self, io: &Io) -> Span {
        let blocks = u64::from(io.command.cdw12.get() & 0xffff) + 1;
        if is_write(io) { Span::from_ns(self.write.ns() * blocks.div_ceil(128)) } else { self.read }
    }
}

fn is_write(io: &Io) -> bool {
    io.command.opcode == IoOpcode::WRITE.0
}

impl QueueingDrive {
    /// A drive over a disk that serves from now on.
    pub fn new(sim: &Sim, disk: &Rc<Disk>, times: Times) -> Rc<QueueingDrive> {
        let drive = Rc::new(QueueingDrive {
            sim: sim.clone(),
            disk: disk.clone(),
            queue: RefCell::default(),
            in_service: RefCell::default(),
            ends: Cell::new(Time::ZERO),
            came: Signal::new(sim),
            times,
            is_dead: Cell::new(false),
        });
        sim.spawn(drive.clone().serve());
        drive
    }

    async fn serve(self: Rc<Self>) {
        loop {
            let Some(io) = self.queue.borrow_mut().pop_front() else {
                self.came.changed().await;
                continue;
            };
            let span = self.times.of(&io);
            self.ends.set(self.sim.now() + span);
            self.in_service.replace(Some(io));
            self.sim.sleep(span).await;
            let Some(io) = self.in_service.take() else { continue };
            if let Err(status) = self.disk.serve_zones(&io) {
                io.token.complete(Completion::of(status));
                continue;
            }
            let range = self.disk.range(&io);
            if is_write(&io) {
                self.disk.damaged.borrow_mut().retain(|block| !range.contains(&(block * 512)));
                io.mem.read(0, &mut self.disk.bytes.borrow_mut()[range]);
            } else if self.disk.is_damaged(&range) {
                io.token.complete(Completion::of(Status::UNRECOVERED_READ_ERROR));
                continue;
            } else {
                io.mem.write(0, &self.disk.bytes.borrow()[range]);
            }
            io.token.complete(Completion::of(Status::SUCCESS));
        }
    }

    /// The wait of a command that arrives now.
    pub fn wait(&self) -> Span {
        let queued: Span = self.queue.borrow().iter().map(|io| self.times.of(io)).sum();
        let begun = if self.in_service.borrow().is_some() { self.ends.get().since(self.sim.now()) } else { Span::ZERO };
        begun + queued
    }

    /// Power is cut for good: each block of the write in service is stored or not, the other writes do not begin. All
    /// further commands fail; another drive may use the same disk.
    pub fn tear(&self, rng: &mut Rng) {
        self.is_dead.set(true);
        drop(self.queue.take());
        let Some(io) = self.in_service.take() else { return };
        if is_send(&io) && rng.chance(0.5) {
            let _ = self.disk.serve_zones(&io);
        }
        if !is_write(&io) {
            return;
        }
        let mut range = self.disk.range(&io);
        if let Some(zones) = &self.disk.zones {
            range.end = range.start + LBA * zones.tear(&io, range.len() / LBA, rng);
        }
        let mut bytes = self.disk.bytes.borrow_mut();
        for (number, block) in bytes[range].chunks_exact_mut(512).enumerate() {
            if rng.chance(0.5) {
                io.mem.read(number * 512, block);
            }
        }
        drop(bytes);
        drop(io);
    }
}

impl Drive for QueueingDrive {
    fn info(&self) -> DriveInfo {
        self.disk.info
    }

    fn submit(&self, io: Io) {
        if self.disk.zones.is_some() && io.command.opcode == AdminOpcode::IDENTIFY.0 {
            self.disk.zones.iter().for_each(|zones| zones.identify(&io.mem));
            return io.token.complete(Completion::of(Status::SUCCESS));
        }
        let is_report = io.command.opcode == IoOpcode::ZONE_MANAGEMENT_RECEIVE.0;
        let blocks = if is_report { 0 } else { io.command.cdw12.get() & 0xffff };
        let end = io.command.slba() + u64::from(blocks) + 1;
        if self.is_dead.get() {
            return io.token.complete(Completion::of(Status::INTERNAL_ERROR));
        }
        if end > self.disk.info.blocks {
            return io.token.complete(Completion::of(Status::LBA_OUT_OF_RANGE));
        }
        let (deadline, wait) = (io.command.cdw3.get(), self.wait());
        if !is_write(&io) && deadline > 0 && wait > Span::from_us(deadline.into()) {
            let dw0 = wait.ns().div_ceil(1_000) as u32;
            return io.token.complete(Completion { dw0, ..Completion::of(BUSY) });
        }
        self.queue.borrow_mut().push_back(io);
        self.came.notify();
    }

    fn cancel(&self, command: CommandRef) -> bool {
        let mut queue = self.queue.borrow_mut();
        let place = queue.iter().position(|io| io.token.is_of(command));
        let Some(io) = place.and_then(|place| queue.remove(place)) else { return false };
        drop(queue);
        io.token.complete(Completion::of(Status::ABORT_REQUESTED));
        true
    }
}
