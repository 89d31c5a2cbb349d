//! The output of the model: completions of commands and notices ahead of them, interrupts for hosts that find their
//! completions in their own memory, and transfers requested of those hosts.

use std::cell::{Cell, RefCell};

use nandscape_drive::io::Sink;
use nandscape_drive::mem::Ask;
use nandscape_drive::{BlockSizes, Completion, QueueId};
use nandscape_sim::slots::{Key, Slots};
use nandscape_sim::{Sim, Span, Time};
use nandscape_wire_nvme::SubmissionEntry;

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
    /// The submission queue of a host whose completion is already posted. `None` if the connection is a drive.
    pub queue: Option<QueueId>,
    /// Its opcode.
    pub opcode: u8,
    /// It is an admin command.
    pub is_admin: bool,
    /// It writes with Force Unit Access.
    pub is_forced_write: bool,
    /// Bytes of its logical blocks; 0 if the command does not contain their number.
    pub bytes: u64,
    /// The beginning in bytes; 0 if the command does not contain it.
    pub offset: u64,
    /// When it arrived.
    pub arrived: Time,
    /// When the model completed it.
    pub at: Time,
    /// Its completion.
    pub completion: Completion,
}

/// Something other than a completion of which a connection is notified.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ToHost {
    /// The connection.
    pub connection: ConnectionId,
    /// The output.
    pub what: What,
}

/// See [`ToHost`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum What {
    /// Of a host with its own queues: an interrupt of this vector.
    Interrupt(u16),
    /// Of such a host: a transfer is requested, under this number.
    Ask(u64, Box<Ask>),
    /// Of a connection that is a drive: the command with this tag is predicted to end so long after its announcement.
    Notice(u64, Span),
}

/// A command in the model.
pub(crate) struct Outstanding {
    pub(crate) connection: ConnectionId,
    pub(crate) export: u16,
    pub(crate) tag: u64,
    pub(crate) queue: Option<QueueId>,
    pub(crate) opcode: u8,
    pub(crate) is_admin: bool,
    pub(crate) is_forced_write: bool,
    pub(crate) bytes: u64,
    pub(crate) offset: u64,
    pub(crate) arrived: Time,
}

impl Outstanding {
    /// An I/O command of a connection, without a tag and a queue.
    #[inline]
    pub(crate) fn of(
        (connection, export): (ConnectionId, u16),
        command: &SubmissionEntry,
        sizes: &BlockSizes,
        arrived: Time,
    ) -> Outstanding {
        Outstanding {
            connection,
            export,
            tag: 0,
            queue: None,
            opcode: command.opcode,
            is_admin: false,
            is_forced_write: command.is_forced_write(),
            bytes: bytes_of(command, sizes),
            offset: offset_of(command, sizes),
            arrived,
        }
    }
}

/// The destination of the model's output.
pub(crate) struct Outbox {
    pub(crate) sim: Sim,
    /// Commands of connections that are drives.
    pub(crate) outstanding: RefCell<Slots<Outstanding>>,
    pub(crate) released: RefCell<Vec<Released>>,
    /// In order: an interrupt follows the entries that must be written before it.
    pub(crate) to_hosts: RefCell<Vec<ToHost>>,
    /// Connections of queues that were deleted by others than their transport.
    pub(crate) ended: RefCell<Vec<ConnectionId>>,
    /// Whether the times of commands that do not pass the port are of interest: they would be copied.
    pub(crate) is_watched: Cell<bool>,
}

impl Outbox {
    pub(crate) fn new(sim: &Sim) -> Outbox {
        let (released, to_hosts) = (RefCell::default(), RefCell::default());
        let (ended, is_watched) = (RefCell::default(), Cell::default());
        Outbox { sim: sim.clone(), outstanding: RefCell::default(), released, to_hosts, ended, is_watched }
    }

    pub(crate) fn release(&self, command: Outstanding, completion: Completion) {
        let Outstanding { connection, export, tag, queue, opcode, is_admin, is_forced_write, .. } = command;
        let Outstanding { bytes, offset, arrived, .. } = command;
        let at = self.sim.now();
        let released = Released {
            connection,
            export,
            tag,
            queue,
            opcode,
            is_admin,
            is_forced_write,
            bytes,
            offset,
            arrived,
            at,
            completion,
        };
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

    fn announced(&self, tag: u64, remaining: Span) {
        let outstanding = self.outstanding.borrow();
        if let Some(&Outstanding { connection, tag, .. }) = outstanding.get(Key::from_bits(tag)) {
            self.to_hosts.borrow_mut().push(ToHost { connection, what: What::Notice(tag, remaining) });
        }
    }

    fn is_stopped(&self) -> bool {
        self.sim.is_stopped()
    }
}

/// Where an I/O command begins, in bytes; 0 of one that is in several places.
#[inline]
pub(crate) fn offset_of(command: &SubmissionEntry, sizes: &BlockSizes) -> u64 {
    match command.blocks_in_a_row() {
        0 => 0,
        _ => command.slba().saturating_mul(u64::from(sizes.get(command.nsid.get()))),
    }
}

/// Bytes of the logical blocks that an I/O command names by their number.
#[inline]
pub(crate) fn bytes_of(command: &SubmissionEntry, sizes: &BlockSizes) -> u64 {
    match command.blocks_named() {
        0 => 0,
        blocks => u64::from(blocks) * u64::from(sizes.get(command.nsid.get())),
    }
}

#[cfg(test)]
mod tests {
    use nandscape_wire_nvme::IoOpcode;

    use super::*;

    #[test]
    fn bytes_are_those_of_the_namespace_and_of_commands_that_name_blocks() {
        let sizes = BlockSizes::new(2);
        sizes.set(1, 512);
        let bytes = |opcode, nsid| bytes_of(&SubmissionEntry::blocks(opcode, nsid, 0, 8), &sizes);
        assert_eq!((bytes(IoOpcode::READ, 1), bytes(IoOpcode::READ, 2)), (4_096, 0));
        sizes.set(2, 4_096);
        assert_eq!((bytes(IoOpcode::WRITE, 1), bytes(IoOpcode::WRITE, 2)), (4_096, 32_768));
        assert_eq!((bytes(IoOpcode::READ, 3), bytes(IoOpcode::READ, u32::MAX)), (0, 0));
        for opcode in [IoOpcode::COPY, IoOpcode::FLUSH, IoOpcode::RESERVATION_ACQUIRE, IoOpcode(0x7f), IoOpcode(0xff)] {
            assert_eq!(bytes(opcode, 1), 0, "{opcode:?}");
        }
    }
}
