//! The drive: commands one at a time, in order of arrival.
//!
//! In a command's [`Breakdown`], `queue` is the time behind other commands, `firmware` the overhead of the controller, `array` the time until
//! the first sector is under the head, and `transfer` the time in which its sectors pass. Written data is on the
//! platters.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use nandscape_drive::breakdown::cause;
use nandscape_drive::command::{Command, Extent};
use nandscape_drive::{Breakdown, CommandRef, Completion, Drive, DriveInfo, HostMem, Io, Stage};
use nandscape_sim::signal::Signal;
use nandscape_sim::{Cause, Sim, Span, Time};
use nandscape_wire_nvme::Status;

use crate::data::Data;
use crate::mechanics::Mechanics;
use crate::spec::{DiskSpec, SECTOR, SpecError};

/// Maximum of sectors that one command moves.
const MOST: u32 = 2_048;

/// Counters of a disk.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Counters {
    /// Commands that moved the arm or passed sectors.
    pub accesses: u64,
    /// Time that the arm moved.
    pub seek: Span,
    /// Rotational latency: time that it waited for sectors.
    pub rotation: Span,
    /// Time in which sectors passed.
    pub transfer: Span,
}

/// See the file.
pub struct Disk {
    sim: Sim,
    spec: DiskSpec,
    mechanics: RefCell<Mechanics>,
    data: RefCell<Data>,
    queue: RefCell<VecDeque<Waiting>>,
    came: Signal,
    /// The cause of the last command.
    last: Cell<Cause>,
    counters: Cell<Counters>,
}

struct Waiting {
    io: Io,
    arrived: Time,
}

impl Disk {
    /// An empty disk, which serves from now on.
    ///
    /// # Errors
    /// If the data sheet is invalid.
    pub fn new(sim: &Sim, spec: &DiskSpec) -> Result<Rc<Disk>, SpecError> {
        spec.check()?;
        let disk = Rc::new(Disk {
            sim: sim.clone(),
            mechanics: RefCell::new(Mechanics::new(spec.clone())),
            spec: spec.clone(),
            data: RefCell::default(),
            queue: RefCell::default(),
            came: Signal::new(sim),
            last: Cell::new(cause::HOST_READ),
            counters: Cell::default(),
        });
        sim.spawn(disk.clone().serve_in_turn());
        Ok(disk)
    }

    /// Its data sheet.
    pub fn spec(&self) -> &DiskSpec {
        &self.spec
    }

    /// Its counters.
    pub fn counters(&self) -> Counters {
        self.counters.get()
    }

    async fn serve_in_turn(self: Rc<Self>) {
        loop {
            let next = self.queue.borrow_mut().pop_front();
            match next {
                Some(waiting) => self.serve(waiting).await,
                None => self.came.changed().await,
            }
        }
    }

    async fn serve(&self, Waiting { io, arrived }: Waiting) {
        let mut breakdown = Breakdown::new();
        let waited = self.sim.now() - arrived;
        if !waited.is_zero() {
            breakdown.waits(Stage::Queue).add(self.last.get(), waited);
        }
        breakdown.spend(Stage::Firmware, self.spec.overhead);
        self.sim.sleep(self.spec.overhead).await;
        let mut status = match Command::parse(&io, &self.info()) {
            Ok(command) => self.execute(command, &io.mem, &mut breakdown).await,
            Err(status) => status,
        };
        if io.mem.has_failed() && status.is_success() {
            status = Status::DATA_TRANSFER_ERROR;
        }
        io.token.complete(Completion { breakdown, ..Completion::of(status) });
    }

    async fn execute(&self, command: Command, mem: &HostMem, breakdown: &mut Breakdown) -> Status {
        match command {
            Command::Read(extent) => {
                self.access(extent, false, breakdown).await;
                if self.spec.keeps_data && !mem.is_none() {
                    self.data.borrow().read(extent, mem);
                }
            }
            Command::Verify(extent) => self.access(extent, false, breakdown).await,
            Command::Compare(extent) => {
                self.access(extent, false, breakdown).await;
                if !self.data.borrow().is_same(extent, mem) {
                    return Status::COMPARE_FAILURE;
                }
            }
            Command::Write(extent) => self.write(extent, mem, breakdown).await,
            Command::Zeroes(extent) => self.write(extent, &HostMem::none(), breakdown).await,
            Command::Deallocate(_) | Command::Hints | Command::Flush => {}
        }
        Status::SUCCESS
    }

    async fn write(&self, extent: Extent, mem: &HostMem, breakdown: &mut Breakdown) {
        self.access(extent, true, breakdown).await;
        if self.spec.keeps_data {
            self.data.borrow_mut().write(extent, mem);
        }
    }

    async fn access(&self, extent: Extent, is_write: bool, breakdown: &mut Breakdown) {
        let access = self.mechanics.borrow_mut().access(extent, is_write, self.sim.now());
        breakdown.spend(Stage::Array, access.seek + access.rotation);
        breakdown.spend(Stage::Transfer, access.transfer);
        let mut counters = self.counters.get();
        counters.accesses += 1;
        counters.seek += access.seek;
        counters.rotation += access.rotation;
        counters.transfer += access.transfer;
        self.counters.set(counters);
        self.last.set(if is_write { cause::HOST_WRITE } else { cause::HOST_READ });
        self.sim.sleep(access.seek + access.rotation + access.transfer).await;
    }
}

impl Drive for Disk {
    fn info(&self) -> DriveInfo {
        DriveInfo {
            nsid: 1,
            blocks: self.spec.blocks(),
            lba_bytes: SECTOR,
            metadata_bytes: 0,
            max_blocks: MOST,
            unit_bytes: 4_096,
            volatile_cache: false,
            keeps_data: self.spec.keeps_data,
        }
    }

    fn submit(&self, io: Io) {
        self.queue.borrow_mut().push_back(Waiting { io, arrived: self.sim.now() });
        self.came.notify();
    }

    fn cancel(&self, command: CommandRef) -> bool {
        let mut queue = self.queue.borrow_mut();
        let found = queue.iter().position(|waiting| waiting.io.token.is_of(command));
        let Some(Waiting { io, arrived }) = found.and_then(|at| queue.remove(at)) else { return false };
        drop(queue);
        let mut completion = Completion::of(Status::ABORT_REQUESTED);
        let waited = self.sim.now() - arrived;
        if !waited.is_zero() {
            completion.breakdown.waits(Stage::Queue).add(self.last.get(), waited);
        }
        io.token.complete(completion);
        true
    }
}
