//! The output of the model: completions of commands, interrupts for hosts that find their completions in their own
//! memory, and transfers that those are asked for.

use std::cell::RefCell;

use nandscape_drive::io::Sink;
use nandscape_drive::mem::Ask;
use nandscape_drive::{Completion, QueueId};
use nandscape_sim::slots::{Key, Slots};
use nandscape_sim::{Sim, Time};
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

use crate::port::ConnectionId;

/// A command that has completed.
#[derive(Debug)]
pub struct Released {
    /// The connection that submitted it.
    pub connection: ConnectionId,
    /// The drive.
    pub export: u16,
    /// The connection's tag for it, or its command identifier in `queue`.
    pub tag: u64,
    /// The submission queue that the host put it into; it has its completion already. `None` where the connection is a
    /// drive.
    pub queue: Option<QueueId>,
    /// Its opcode.
    pub opcode: u8,
    /// Bytes that it moved or was to move.
    pub bytes: u64,
    /// When it arrived.
    pub arrived: Time,
    /// When the model completed it.
    pub at: Time,
    /// Its completion.
    pub completion: Completion,
}

/// Something that a host with queues of its own is told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ToHost {
    /// The host's connection.
    pub connection: ConnectionId,
    /// What.
    pub what: What,
}

/// See [`ToHost`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum What {
    /// An interrupt of this vector.
    Interrupt(u16),
    /// It is asked for a transfer, under this number.
    Ask(u64, Box<Ask>),
}

/// A command in the model.
pub(crate) struct Outstanding {
    pub(crate) connection: ConnectionId,
    pub(crate) export: u16,
    pub(crate) tag: u64,
    pub(crate) queue: Option<QueueId>,
    pub(crate) opcode: u8,
    pub(crate) bytes: u64,
    pub(crate) arrived: Time,
}

/// Where the model's completions go.
pub(crate) struct Outbox {
    pub(crate) sim: Sim,
    /// Commands of connections that are drives.
    pub(crate) outstanding: RefCell<Slots<Outstanding>>,
    pub(crate) released: RefCell<Vec<Released>>,
    /// In order: an interrupt comes behind what was to be written before it.
    pub(crate) to_hosts: RefCell<Vec<ToHost>>,
    /// Connections of queues that were deleted by others than their transport.
    pub(crate) ended: RefCell<Vec<ConnectionId>>,
}

impl Outbox {
    pub(crate) fn new(sim: &Sim) -> Outbox {
        let (released, to_hosts) = (RefCell::default(), RefCell::default());
        let ended = RefCell::default();
        Outbox { sim: sim.clone(), outstanding: RefCell::default(), released, to_hosts, ended }
    }

    pub(crate) fn release(&self, command: Outstanding, completion: Completion) {
        let Outstanding { connection, export, tag, queue, opcode, bytes, arrived } = command;
        let at = self.sim.now();
        let released = Released { connection, export, tag, queue, opcode, bytes, arrived, at, completion };
        self.released.borrow_mut().push(released);
    }
}

impl Sink for Outbox {
    fn complete(&self, tag: u64, completion: Completion) {
        let command = self.outstanding.borrow_mut().remove(Key::from_bits(tag));
        if let Some(command) = command {
            self.release(command, completion);
        }
    }

    fn is_stopped(&self) -> bool {
        self.sim.is_stopped()
    }
}

/// Bytes that a command names.
pub(crate) fn bytes_of(command: &SubmissionEntry, lba_bytes: u32) -> u64 {
    match IoOpcode(command.opcode) {
        IoOpcode::FLUSH | IoOpcode::DATASET_MANAGEMENT => 0,
        _ => (u64::from(command.cdw12.get() & 0xffff) + 1) * u64::from(lba_bytes),
    }
}
