//! A port: commands in slots, others in line, and data that crosses the uplink.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};

use nandscape_drive::breakdown::cause;
use nandscape_drive::io::Sink;
use nandscape_drive::{CommandRef, Completion, Drive, DriveInfo, HostMem, Io, Token};
use nandscape_sim::slots::{Key, Slots};
use nandscape_sim::{Cause, Class, Resource, Span, Time, Who};
use nandscape_wire_nvme::blocks::BlockWork;
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

use crate::controller::Uplink;

/// See the file.
pub struct Port {
    uplink: Rc<Uplink>,
    drive: Rc<dyn Drive>,
    lba_bytes: u64,
    /// Commands in slots.
    slots: RefCell<Slots<Command>>,
    line: RefCell<VecDeque<(Io, Time)>>,
    /// Commands that waited.
    waited: Cell<u64>,
    me: Weak<Port>,
}

/// A command in a slot.
struct Command {
    token: Token,
    /// How long it waited for the slot.
    waited: Span,
    /// How long its data took to reach the drive.
    crossed: Span,
    /// Bytes that it reads.
    reads: u64,
}

/// The causes of a port's time.
const SLOT: &str = "slot";
const UPLINK: &str = "uplink";

impl Port {
    pub(crate) fn new(uplink: &Rc<Uplink>, drive: Rc<dyn Drive>) -> Rc<Port> {
        Rc::new_cyclic(|me| Port {
            uplink: uplink.clone(),
            lba_bytes: drive.info().lba_bytes.into(),
            drive,
            slots: RefCell::default(),
            line: RefCell::default(),
            waited: Cell::new(0),
            me: me.clone(),
        })
    }

    /// Commands that have waited for a slot.
    pub(crate) fn waited(&self) -> u64 {
        self.waited.get()
    }

    fn has_slot(&self) -> bool {
        self.slots.borrow().len() < self.uplink.config.slots as usize
    }

    fn me(&self) -> Rc<Port> {
        self.me.upgrade().expect("a port in use is alive")
    }

    /// Puts a command into a slot. The data of a write crosses the uplink first.
    fn begin(&self, Io { command, mem, token }: Io, came: Time) {
        let (work, bytes) = self.data_of(&command);
        let [reads, writes] = [BlockWork::Read, BlockWork::Write].map(|of| if work == Some(of) { bytes } else { 0 });
        let waited = self.uplink.sim.now() - came;
        let key = self.slots.borrow_mut().insert(Command { token, waited, crossed: Span::ZERO, reads });
        if self.time_of(writes).is_zero() {
            return self.send(key, command, mem);
        }
        let port = self.me();
        self.uplink.sim.spawn(async move {
            let crossed = port.cross(&port.uplink.to_drives, writes, cause::HOST_WRITE).await;
            if let Some(slot) = port.slots.borrow_mut().get_mut(key) {
                slot.crossed = crossed;
            }
            port.send(key, command, mem);
        });
    }

    fn send(&self, key: Key, command: SubmissionEntry, mem: HostMem) {
        self.drive.submit(Io { command, mem, token: Token::new(self.me(), key.to_bits()) });
    }

    /// The work of a command, and its bytes.
    fn data_of(&self, command: &SubmissionEntry) -> (Option<BlockWork>, u64) {
        let work = IoOpcode(command.opcode).block_work();
        (work, u64::from(command.blocks_named()) * self.lba_bytes)
    }

    fn time_of(&self, bytes: u64) -> Span {
        self.uplink.config.uplink.time_for(bytes)
    }

    /// Moves data over the uplink, and returns how long that took.
    async fn cross(&self, lane: &Resource, bytes: u64, cause: Cause) -> Span {
        let begun = self.uplink.sim.now();
        lane.keep_busy(self.time_of(bytes), Who::new(cause, Class::new(0))).await;
        self.uplink.sim.now() - begun
    }

    /// Ends a command, and begins the next one in line.
    fn end(&self, key: Key, mut completion: Completion, crossed: Span) {
        let command = self.slots.borrow_mut().remove(key).expect("a command completes once");
        let layer = self.uplink.config.layer;
        completion.breakdown.charge(layer, SLOT, command.waited);
        completion.breakdown.charge(layer, UPLINK, command.crossed + crossed);
        command.token.complete(completion);
        while self.has_slot() {
            let next = self.line.borrow_mut().pop_front();
            let Some((io, came)) = next else { break };
            self.begin(io, came);
        }
    }
}

impl Drive for Port {
    fn info(&self) -> DriveInfo {
        self.drive.info()
    }

    fn submit(&self, io: Io) {
        let now = self.uplink.sim.now();
        // A command submitted from within a completion must not overtake those in line.
        if self.line.borrow().is_empty() && self.has_slot() {
            self.begin(io, now);
        } else {
            self.waited.set(self.waited.get() + 1);
            self.line.borrow_mut().push_back((io, now));
        }
    }

    fn cancel(&self, command: CommandRef) -> bool {
        let mut line = self.line.borrow_mut();
        let at = line.iter().position(|(io, _)| io.token.is_of(command));
        let waiting = at.and_then(|at| line.remove(at));
        drop(line);
        if let Some((io, came)) = waiting {
            let mut completion = Completion::of(Status::ABORT_REQUESTED);
            completion.breakdown.charge(self.uplink.config.layer, SLOT, self.uplink.sim.now() - came);
            io.token.complete(completion);
            return true;
        }
        let found = self.slots.borrow().find(|slot| slot.token.is_of(command));
        let me: Rc<dyn Sink> = self.me();
        found.is_some_and(|key| self.drive.cancel(CommandRef::new(&me, key.to_bits())))
    }
}

impl Sink for Port {
    /// The drive has ended a command. The data of a read crosses the uplink.
    fn complete(&self, tag: u64, completion: Completion) {
        let key = Key::from_bits(tag);
        let reads = self.slots.borrow().get(key).map_or(0, |slot| slot.reads);
        if completion.status != Status::SUCCESS || self.time_of(reads).is_zero() {
            return self.end(key, completion, Span::ZERO);
        }
        let port = self.me();
        self.uplink.sim.spawn(async move {
            let crossed = port.cross(&port.uplink.to_host, reads, cause::HOST_READ).await;
            port.end(key, completion, crossed);
        });
    }

    fn is_stopped(&self) -> bool {
        self.uplink.sim.is_stopped()
    }
}
