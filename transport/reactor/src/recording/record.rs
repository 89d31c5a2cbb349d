//! A record, and the meaning of the bytes of its body.

use std::collections::BTreeMap;

use nandscape_drive::{HostIdentity, QueueId};
use nandscape_sim::{Span, Time};
use nandscape_wire_nvme::{Status, SubmissionEntry};

use super::MAX_BODY;
use super::numbers::{Commands, take, take_as, take_signed};
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
pub(super) const FETCHED: u8 = 13;
pub(super) const BLOCK_BYTES: u8 = 14;
pub(super) const TIMING: u8 = 15;
pub(super) const TURN_WITHIN: u8 = 16;

/// How an access ended, or the recorded part of a command's data.
pub(super) const FAILED: u8 = 0;
pub(super) const DONE: u8 = 1;
pub(super) const REMOTE: u8 = 2;
/// Done, and the data is not recorded.
pub(super) const LEFT_OUT: u8 = 3;
/// Done: the data is ranges to deallocate.
pub(super) const RANGES: u8 = 4;
/// A command that the drive reads no data of.
pub(super) const NO_DATA: u8 = 5;
/// The quantiles of times that are recorded, between their number and the largest.
pub(super) const QUANTILES: [f64; 3] = [0.5, 0.99, 0.999];

/// In place of a controller's identifier: a new one (Base 6.3).
pub(super) const NEW_CONTROLLER: u16 = nandscape_wire_nvme::fabrics::DYNAMIC;

/// The recorded part of a command's data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Data {
    /// The drive reads none.
    None,
    /// This.
    Kept(Vec<u8>),
    /// It was not recorded: only the results of later reads depend on it.
    LeftOut,
}

/// Times of a run, of which there were some.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Times {
    /// How many.
    pub count: u64,
    /// The median.
    pub p50: Span,
    /// 99%.
    pub p99: Span,
    /// 99.9%.
    pub p99_9: Span,
    /// The longest.
    pub max: Span,
}

/// How well a run kept up with the clock: see [`Timing`](crate::Timing).
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct RunTiming {
    /// Release lag.
    pub release_lag: Times,
    /// Poll gap.
    pub poll_gap: Times,
    /// The longest time by which the model was behind.
    pub behind_max: Span,
}

/// State from earlier records that later records depend on.
#[derive(Default)]
pub(super) struct Context {
    turn: Time,
    turns: BTreeMap<u16, Time>,
    commands: Commands,
}

impl Context {
    /// A timeline and its next stamp.
    fn turn(&mut self, rest: &mut &[u8]) -> Option<(u16, Time)> {
        let timeline = take_as(rest)?;
        let last = self.turns.entry(timeline).or_insert(Time::ZERO);
        *last = later(*last, take(rest)?)?;
        self.turn = *last;
        Some((timeline, *last))
    }
}

/// One record after the header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Record {
    /// The following records of drives of a timeline arrived at this time, when all that was due there had run.
    Turn(u16, Time),
    /// The same, while tasks were still due there. The last number counts the polls of its tasks at this time.
    TurnWithin(u16, Time, u64),
    /// A client connected.
    Open {
        /// As which connection.
        connection: ConnectionId,
        /// To which drive.
        export: u16,
    },
    /// A command.
    Command {
        /// The connection of the host.
        connection: ConnectionId,
        /// The command.
        entry: Box<SubmissionEntry>,
        /// Length of its memory in bytes.
        len: u32,
        /// Its contents.
        data: Data,
    },
    /// A host's controller has fetched an I/O command. Its accesses contain the whole command, too.
    Fetched {
        /// Of which host.
        connection: ConnectionId,
        /// The submission queue.
        queue: QueueId,
        /// When the host rang its doorbell.
        submitted: Time,
        /// The command.
        entry: Box<SubmissionEntry>,
    },
    /// From now on a logical block of a namespace has this many bytes.
    BlockBytes {
        /// The drive.
        export: u16,
        /// The namespace.
        nsid: u32,
        /// How many.
        bytes: u32,
    },
    /// How well the run kept up with the clock. It is recorded when all clients have disconnected: later records are
    /// the server's own.
    Timing(RunTiming),
    /// A client has disconnected.
    Close {
        /// Which one.
        connection: ConnectionId,
    },
    /// A host with its own queues connected.
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
        /// The request.
        ask: Box<ConnectQueue>,
    },
    /// A host did something to its controller.
    Arrival {
        /// Which host.
        connection: ConnectionId,
        /// The arrival.
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
    /// The controller accessed its memory. Accesses follow the arrival that caused them, and precede the next one.
    Access {
        /// The connection of the memory.
        connection: ConnectionId,
        /// How it ended.
        outcome: Outcome,
        /// The data is ranges to deallocate.
        is_ranges: bool,
    },
    /// A host has answered a request.
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
        /// The order.
        order: Order,
    },
    /// The run was ended in order.
    End(Time),
}

/// The record of a kind with a body; `None` when the body is malformed.
pub(super) fn parse(kind: u8, body: Vec<u8>, context: &mut Context) -> Option<Record> {
    let rest = &mut &body[..];
    let record = match kind {
        TURN => {
            let (timeline, at) = context.turn(rest)?;
            Record::Turn(timeline, at)
        }
        TURN_WITHIN => {
            let (timeline, at) = context.turn(rest)?;
            Record::TurnWithin(timeline, at, take(rest)?)
        }
        OPEN => Record::Open { connection: connection(rest)?, export: take_as(rest)? },
        COMMAND => {
            let (connection, entry) = (connection(rest)?, Box::new(context.commands.take(rest)?));
            let (len, how) = (take_as::<u32>(rest)?, take_as::<u8>(rest)?);
            let data = match how {
                DONE => Data::Kept(std::mem::take(rest).to_vec()),
                LEFT_OUT => Data::LeftOut,
                NO_DATA => Data::None,
                _ => return None,
            };
            let kept = if let Data::Kept(data) = &data { data.len() } else { len as usize };
            if kept != len as usize || kept > MAX_BODY {
                return None;
            }
            Record::Command { connection, entry, len, data }
        }
        FETCHED => {
            let (connection, queue) = (connection(rest)?, QueueId(take_as(rest)?));
            let submitted = Time::from_ns(context.turn.ns().checked_add_signed(take_signed(rest)?)?);
            Record::Fetched { connection, queue, submitted, entry: Box::new(context.commands.take(rest)?) }
        }
        BLOCK_BYTES => Record::BlockBytes { export: take_as(rest)?, nsid: take_as(rest)?, bytes: take_as(rest)? },
        CLOSE => Record::Close { connection: connection(rest)? },
        ATTACH => {
            let (connection, export) = (connection(rest)?, take_as(rest)?);
            Record::Attach { connection, export, vectors: take_as(rest)?, function: take_as(rest)? }
        }
        CONNECT_QUEUE => {
            let connection = connection(rest)?;
            Record::ConnectQueue { connection, ask: Box::new(connect_queue(rest)?) }
        }
        ARRIVAL => {
            let connection = connection(rest)?;
            let bytes = rest.split_off(..crate::arrival::BYTES)?.first_chunk()?;
            Record::Arrival { connection, arrival: Arrival::of_bytes(*bytes)? }
        }
        REFUSAL => {
            let (connection, status) = (connection(rest)?, Status::from_bits(take_as(rest)?));
            Record::Refusal { connection, entry: Box::new(context.commands.take(rest)?), status }
        }
        ACCESS => access(connection(rest)?, rest)?,
        ANSWER => {
            let (connection, number) = (connection(rest)?, take(rest)?);
            let is_done = take_as::<u8>(rest)? == DONE;
            Record::Answer { connection, number, answer: is_done.then(|| std::mem::take(rest).to_vec()) }
        }
        ORDER => {
            let (export, kind) = (take_as(rest)?, take_as(rest)?);
            Record::Order { export, order: Order::of_parts(kind, std::mem::take(rest))? }
        }
        TIMING => Record::Timing(RunTiming {
            release_lag: times(rest)?,
            poll_gap: times(rest)?,
            behind_max: Span::from_ns(take(rest)?),
        }),
        END => Record::End(later(context.turn, take(rest)?)?),
        _ => return None,
    };
    rest.is_empty().then_some(record)
}

fn connection(rest: &mut &[u8]) -> Option<ConnectionId> {
    take_as(rest).map(ConnectionId)
}

fn later(than: Time, ns: u64) -> Option<Time> {
    than.ns().checked_add(ns).map(Time::from_ns)
}

fn access(connection: ConnectionId, rest: &mut &[u8]) -> Option<Record> {
    let how: u8 = take_as(rest)?;
    let outcome = match how {
        FAILED => Outcome::Failed,
        REMOTE => Outcome::Remote,
        DONE | RANGES => Outcome::Done(std::mem::take(rest).to_vec()),
        LEFT_OUT => Outcome::LeftOut(take_as(rest)?),
        _ => return None,
    };
    Some(Record::Access { connection, outcome, is_ranges: how == RANGES })
}

fn times(rest: &mut &[u8]) -> Option<Times> {
    let count = take(rest)?;
    let mut span = || take(rest).map(Span::from_ns);
    Some(Times { count, p50: span()?, p99: span()?, p99_9: span()?, max: span()? })
}

fn connect_queue(rest: &mut &[u8]) -> Option<ConnectQueue> {
    let (export, controller): (u16, u16) = (take_as(rest)?, take_as(rest)?);
    let (queue, entries) = (QueueId(take_as(rest)?), take_as(rest)?);
    let (keep_alive_ms, priority) = (take_as(rest)?, take_as(rest)?);
    let hostid = *rest.split_off(..16)?.first_chunk()?;
    let hostnqn = String::from_utf8(std::mem::take(rest).to_vec()).ok()?;
    let host = HostIdentity { hostid, hostnqn, ..HostIdentity::default() };
    let controller = (controller != NEW_CONTROLLER).then_some(controller);
    Some(ConnectQueue { export, controller, host, queue, entries, keep_alive_ms, priority })
}

#[cfg(test)]
mod tests {
    use nandscape_sim::Seed;
    use nandscape_wire_nvme::IoOpcode;

    use super::super::numbers::{put, put_signed};
    use super::*;

    /// Bodies of records that are well formed, by kind.
    fn samples() -> Vec<(u8, Vec<u8>)> {
        let numbers = |numbers: &[u64]| {
            let mut body = Vec::new();
            numbers.iter().for_each(|number| put(&mut body, *number));
            body
        };
        let command = |before: &[u64], after: &[u64], data: &[u8]| {
            let mut body = numbers(before);
            Commands::default().put(&mut body, &SubmissionEntry::blocks(IoOpcode::WRITE, 1, 77, 1));
            after.iter().for_each(|number| put(&mut body, *number));
            [&body, data].concat()
        };
        let fetched = {
            let mut body = numbers(&[3, 1]);
            put_signed(&mut body, -5);
            [body, command(&[], &[], &[])].concat()
        };
        let connect = [&numbers(&[3, 0, 0xffff, 1, 32, 0, 2])[..], &[7; 16], b"nqn.host"].concat();
        vec![
            (TURN, numbers(&[0, 1_000])),
            (TURN_WITHIN, numbers(&[1, 1_000, 7])),
            (OPEN, numbers(&[3, 0])),
            (COMMAND, command(&[3], &[4, DONE.into()], b"data")),
            (COMMAND, command(&[3], &[4_096, LEFT_OUT.into()], &[])),
            (FETCHED, fetched),
            (BLOCK_BYTES, numbers(&[0, 1, 512])),
            (ATTACH, numbers(&[3, 0, 8, 0])),
            (CONNECT_QUEUE, connect),
            (ARRIVAL, [&numbers(&[3])[..], &Arrival::Reset.to_bytes()].concat()),
            (REFUSAL, command(&[3, 2], &[], &[])),
            (ACCESS, [&numbers(&[3, DONE.into()])[..], b"data"].concat()),
            (ACCESS, numbers(&[3, LEFT_OUT.into(), 512])),
            (ANSWER, [&numbers(&[3, 1, DONE.into()])[..], b"data"].concat()),
            (TIMING, numbers(&[1; 11])),
            (CLOSE, numbers(&[3])),
            (END, numbers(&[9])),
        ]
    }

    #[test]
    fn well_formed_bodies_are_records_and_shorter_ones_without_data_are_not() {
        let mut context = Context { turn: Time::from_ns(50), ..Context::default() };
        for (kind, body) in samples() {
            assert!(
                parse(kind, body.clone(), &mut Context { turn: context.turn, ..Context::default() }).is_some(),
                "{kind}"
            );
            assert_eq!(parse(kind, Vec::new(), &mut context), None, "{kind}");
            assert_eq!(parse(100, body, &mut context), None, "there is no such kind");
        }
    }

    /// Any bytes are a record or an error, without a panic.
    #[test]
    fn any_body_is_a_record_or_none() {
        let mut rng = Seed::new(14).rng();
        let samples = samples();
        let (mut context, mut records) = (Context::default(), 0);
        for _ in 0..100_000 {
            let (kind, mut body) = samples[rng.below(samples.len() as u64) as usize].clone();
            for _ in 0..rng.below(4) {
                let at = rng.below(body.len() as u64) as usize;
                body[at] = rng.below(256) as u8;
            }
            body.truncate(rng.below(2 * body.len() as u64) as usize);
            records += u32::from(parse(kind, body, &mut context).is_some());
        }
        assert!(records > 1_000, "{records} records");
    }
}
