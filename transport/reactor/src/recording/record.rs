//! A record, and what the bytes of its body mean.

use nandscape_drive::{HostIdentity, QueueId};
use nandscape_sim::Time;
use nandscape_wire_nvme::{Status, SubmissionEntry};
use zerocopy::FromBytes;

use super::MAX_BODY;
use crate::access::Outcome;
use crate::arrival::Arrival;
use crate::association::ConnectQueue;
use crate::order::Order;
use crate::port::ConnectionId;

pub(super) const HEADER: u8 = 0;
pub(super) const TURN: u8 = 1;
pub(super) const OPEN: u8 = 2;
pub(super) const COMMAND: u8 = 3;
pub(super) const CLOSE: u8 = 4;
pub(super) const END: u8 = 5;
pub(super) const ORDER: u8 = 6;
pub(super) const ATTACH: u8 = 7;
pub(super) const ARRIVAL: u8 = 8;
pub(super) const ACCESS: u8 = 9;
pub(super) const CONNECT_QUEUE: u8 = 10;
pub(super) const ANSWER: u8 = 11;
pub(super) const REFUSAL: u8 = 12;

/// How an access ended, as it stands in a record.
pub(super) const FAILED: u8 = 0;
pub(super) const DONE: u8 = 1;
pub(super) const REMOTE: u8 = 2;

/// In place of a controller's identifier: a new one (Base 6.3).
pub(super) const NEW_CONTROLLER: u16 = nandscape_wire_nvme::fabrics::DYNAMIC;

/// One record after the header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Record {
    /// The following records arrived at this time.
    Turn(Time),
    /// A client connected.
    Open {
        /// As which connection.
        connection: ConnectionId,
        /// To which drive.
        export: u16,
    },
    /// A command.
    Command {
        /// Whose.
        connection: ConnectionId,
        /// The command.
        entry: Box<SubmissionEntry>,
        /// Length of its memory in bytes.
        len: u32,
        /// Its contents, if the drive reads them.
        data: Option<Vec<u8>>,
    },
    /// A client has gone.
    Close {
        /// Which one.
        connection: ConnectionId,
    },
    /// A host with queues of its own connected.
    Attach {
        /// As which connection.
        connection: ConnectionId,
        /// To which drive.
        export: u16,
        /// Its interrupt vectors.
        vectors: u16,
        /// The PCI function that it uses.
        function: u16,
    },
    /// A queue of a host whose commands pass as messages connected.
    ConnectQueue {
        /// As which connection.
        connection: ConnectionId,
        /// What it asked for.
        ask: Box<ConnectQueue>,
    },
    /// A host did something to its controller.
    Arrival {
        /// Which host.
        connection: ConnectionId,
        /// What.
        arrival: Arrival,
    },
    /// The transport refused a command of a message queue.
    Refusal {
        /// Of which connection.
        connection: ConnectionId,
        /// The command.
        entry: Box<SubmissionEntry>,
        /// With this status.
        status: Status,
    },
    /// The controller accessed its memory. Accesses stand after the arrival that they follow, and before the next one.
    Access {
        /// Whose memory.
        connection: ConnectionId,
        /// How it ended.
        outcome: Outcome,
    },
    /// A host has answered what it was asked for.
    Answer {
        /// Which host.
        connection: ConnectionId,
        /// Under which number it was asked.
        number: u64,
        /// The data read, nothing for a write, or `None` for a failure.
        answer: Option<Vec<u8>>,
    },
    /// A drive was given an order.
    Order {
        /// Which drive.
        export: u16,
        /// What.
        order: Order,
    },
    /// The run was ended in order.
    End(Time),
}

/// The record of a kind with a body; `None` when the body is malformed.
pub(super) fn parse(kind: u8, body: &[u8]) -> Option<Record> {
    let mut rest = body;
    let record = match kind {
        TURN => Record::Turn(Time::from_ns(take_u64(&mut rest)?)),
        OPEN => Record::Open { connection: ConnectionId(take_u32(&mut rest)?), export: take_u16(&mut rest)? },
        COMMAND => {
            let connection = ConnectionId(take_u32(&mut rest)?);
            let (entry, after) = SubmissionEntry::read_from_prefix(rest).ok()?;
            rest = after;
            let len = take_u32(&mut rest)?;
            let (&[has_data], data) = rest.split_first_chunk::<1>()?;
            let data = (has_data != 0).then(|| data.to_vec());
            if data.as_ref().map_or(len as usize > MAX_BODY, |data| data.len() != len as usize) {
                return None;
            }
            rest = &[];
            Record::Command { connection, entry: Box::new(entry), len, data }
        }
        CLOSE => Record::Close { connection: ConnectionId(take_u32(&mut rest)?) },
        ATTACH => {
            let connection = ConnectionId(take_u32(&mut rest)?);
            let (export, vectors, function) = (take_u16(&mut rest)?, take_u16(&mut rest)?, take_u16(&mut rest)?);
            Record::Attach { connection, export, vectors, function }
        }
        CONNECT_QUEUE => {
            let connection = ConnectionId(take_u32(&mut rest)?);
            let ask = parse_connect_queue(rest)?;
            rest = &[];
            Record::ConnectQueue { connection, ask: Box::new(ask) }
        }
        ARRIVAL => {
            let connection = ConnectionId(take_u32(&mut rest)?);
            Record::Arrival { connection, arrival: Arrival::of_bytes(take(&mut rest)?)? }
        }
        REFUSAL => {
            let connection = ConnectionId(take_u32(&mut rest)?);
            let entry = SubmissionEntry::read_from_bytes(&take::<64>(&mut rest)?).ok()?;
            Record::Refusal { connection, entry: Box::new(entry), status: Status::from_bits(take_u16(&mut rest)?) }
        }
        ACCESS => {
            let connection = ConnectionId(take_u32(&mut rest)?);
            let (&[how], data) = rest.split_first_chunk::<1>()?;
            let outcome = match how {
                FAILED => Outcome::Failed,
                REMOTE => Outcome::Remote,
                _ => Outcome::Done(data.to_vec()),
            };
            rest = if how == DONE { &[] } else { data };
            Record::Access { connection, outcome }
        }
        ANSWER => {
            let (connection, number) = (ConnectionId(take_u32(&mut rest)?), take_u64(&mut rest)?);
            let (&[how], data) = rest.split_first_chunk::<1>()?;
            let answer = (how == DONE).then(|| data.to_vec());
            rest = if how == DONE { &[] } else { data };
            Record::Answer { connection, number, answer }
        }
        ORDER => {
            let export = take_u16(&mut rest)?;
            let (&[kind], text) = rest.split_first_chunk::<1>()?;
            rest = &[];
            Record::Order { export, order: Order::of_parts(kind, text)? }
        }
        END => Record::End(Time::from_ns(take_u64(&mut rest)?)),
        _ => return None,
    };
    rest.is_empty().then_some(record)
}

fn parse_connect_queue(mut rest: &[u8]) -> Option<ConnectQueue> {
    let (export, controller) = (take_u16(&mut rest)?, take_u16(&mut rest)?);
    let (queue, entries) = (QueueId(take_u16(&mut rest)?), take_u32(&mut rest)?);
    let (keep_alive_ms, [priority], hostid) = (take_u32(&mut rest)?, take(&mut rest)?, take(&mut rest)?);
    let hostnqn = String::from_utf8(rest.to_vec()).ok()?;
    let host = HostIdentity { hostid, hostnqn, ..HostIdentity::default() };
    let controller = (controller != NEW_CONTROLLER).then_some(controller);
    Some(ConnectQueue { export, controller, host, queue, entries, keep_alive_ms, priority })
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (bytes, after) = rest.split_first_chunk::<N>()?;
    *rest = after;
    Some(*bytes)
}

fn take_u64(rest: &mut &[u8]) -> Option<u64> {
    take(rest).map(u64::from_le_bytes)
}

fn take_u32(rest: &mut &[u8]) -> Option<u32> {
    take(rest).map(u32::from_le_bytes)
}

fn take_u16(rest: &mut &[u8]) -> Option<u16> {
    take(rest).map(u16::from_le_bytes)
}
