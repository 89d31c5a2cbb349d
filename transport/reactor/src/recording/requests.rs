//! The I/O commands of a recording in the order of their arrival, over any transport, without the recorded drive: for
//! other drives, and for traces.
//!
//! A controller fetches the commands of a host with its own queues some time after they arrived, and reads the ranges
//! of a Dataset Management later still. A drive that is behind has earlier times than the others. Such commands are put in order
//! within [`HORIZON`], which keeps them in memory for that time; a later command gets the time of the last one before it.
//!
//! Left out: admin commands, and commands that their transport refused, which are counted; the flush with which a
//! server ends.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use nandscape_drive::{HostIdentity, QueueId, TransportModel};
use nandscape_sim::{Span, Time};
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

use super::{Data, Reader, Record, RecordingError, RunTiming};
use crate::access::Outcome;
use crate::order::Order;
use crate::port::ConnectionId;

/// How much later than its arrival a command may appear in a recording.
const HORIZON: Span = Span::from_s(1);
/// Bytes of a range to deallocate (NVM Command Set 3.2.3).
const RANGE: usize = 16;

/// The client of a connection, as rules for class and tenant see it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Issuer {
    /// Its name or PCI function.
    pub host: HostIdentity,
    /// How it reaches the drive.
    pub model: TransportModel,
}

/// An I/O command as it arrived.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// From which connection.
    pub connection: ConnectionId,
    /// From which client.
    pub issuer: Arc<Issuer>,
    /// Through which queue. A client without own queues has the lowest that was free when it connected.
    pub queue: QueueId,
    /// To which drive.
    pub export: u16,
    /// The command.
    pub entry: SubmissionEntry,
    /// Bytes of a logical block of its namespace; 0 if it names none.
    pub block_bytes: u32,
    /// Its data, if the drive reads some and it is recorded.
    pub data: Option<Vec<u8>>,
}

/// The requests of a drive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A command.
    Request(Box<Request>),
    /// An order.
    Order {
        /// To which drive.
        export: u16,
        /// The order.
        order: Order,
    },
}

/// Parts of a recording that its requests lack.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct LeftOut {
    /// Admin commands of message queues.
    pub admin: u64,
    /// Commands that their transport refused.
    pub refused: u64,
}

/// Reads them.
pub struct Requests {
    reader: Reader,
    connections: BTreeMap<ConnectionId, Connection>,
    /// The queues of clients without own queues, by drive.
    queues: BTreeMap<u16, Queues>,
    block_bytes: BTreeMap<(u16, u32), u32>,
    /// The latest stamp.
    now: Time,
    /// The last stamp of each timeline.
    turns: BTreeMap<u16, Time>,
    /// By arrival, then by place in the recording.
    waiting: BTreeMap<(Time, u64), Event>,
    number: u64,
    /// Records are not in the order of their times: hosts with their own queues were connected, or there are several timelines.
    is_mixed: bool,
    last: Time,
    ended: Option<bool>,
    timing: Option<RunTiming>,
    left_out: LeftOut,
}

struct Connection {
    export: u16,
    issuer: Arc<Issuer>,
    queue: QueueId,
    /// Commands whose ranges have not been read yet.
    incomplete: VecDeque<Incomplete>,
}

/// Queues in use: all up to a number but the free ones.
#[derive(Default)]
struct Queues {
    used: u16,
    free: BTreeSet<u16>,
}

impl Queues {
    /// The lowest that is free.
    fn take(&mut self) -> QueueId {
        let next = || {
            self.used = self.used.saturating_add(1);
            self.used
        };
        QueueId(self.free.pop_first().unwrap_or_else(next))
    }
}

struct Incomplete {
    queue: QueueId,
    at: Time,
    number: u64,
    entry: SubmissionEntry,
    ranges: Vec<u8>,
}

impl Requests {
    /// The requests of a recording, from the reader's position.
    pub fn new(reader: Reader) -> Requests {
        Requests {
            reader,
            connections: BTreeMap::new(),
            queues: BTreeMap::new(),
            block_bytes: BTreeMap::new(),
            now: Time::ZERO,
            turns: BTreeMap::new(),
            waiting: BTreeMap::new(),
            number: 0,
            is_mixed: false,
            last: Time::ZERO,
            ended: None,
            timing: None,
            left_out: LeftOut::default(),
        }
    }

    /// The next one and when it arrived; `None` at the end.
    ///
    /// # Errors
    /// When the recording is damaged.
    #[expect(clippy::should_implement_trait, reason = "an iterator of results would have to end after an error")]
    pub fn next(&mut self) -> Result<Option<(Time, Event)>, RecordingError> {
        self.read_on()?;
        let Some(((at, _), event)) = self.waiting.pop_first() else { return Ok(None) };
        self.last = self.last.max(at);
        Ok(Some((self.last, event)))
    }

    /// Bytes of the file before the chunk that was read last.
    pub fn position(&self) -> u64 {
        self.reader.position()
    }

    /// Whether the recording breaks off; it is known at the end.
    pub fn is_broken_off(&self) -> bool {
        self.ended == Some(false)
    }

    /// When the recorded run ended, or the last arrival if the recording breaks off; it is known at the end.
    pub fn now(&self) -> Time {
        self.now
    }

    /// How well the recorded run kept up with the clock; it is known at the end.
    pub fn timing(&self) -> Option<RunTiming> {
        self.timing
    }

    /// The parts left out; known at the end.
    pub fn left_out(&self) -> LeftOut {
        self.left_out
    }

    /// Reads until an event is due or the recording ends.
    fn read_on(&mut self) -> Result<(), RecordingError> {
        while self.ended.is_none() && !self.is_due() {
            match self.reader.next() {
                Ok(Some(record)) => self.take(record)?,
                Ok(None) | Err(RecordingError::Torn { .. }) => self.ended = Some(false),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Whether no record to come has an earlier event than the first that waits.
    fn is_due(&self) -> bool {
        let horizon = if self.is_mixed { HORIZON } else { Span::ZERO };
        self.waiting.keys().next().is_some_and(|(at, _)| *at <= self.now && self.now.since(*at) >= horizon)
    }

    /// The stamp of a drive's arrivals. A single timeline is that of all drives.
    fn stamp(&self, export: u16) -> Time {
        self.turns.range(..=export).next_back().map_or(Time::ZERO, |(_, at)| *at)
    }

    fn take(&mut self, record: Record) -> Result<(), RecordingError> {
        match record {
            Record::Turn(timeline, at) | Record::TurnWithin(timeline, at, _) => {
                self.turns.insert(timeline, at);
                self.now = self.now.max(at);
                self.is_mixed |= timeline > 0;
            }
            Record::End(at) => (self.now, self.ended) = (at, Some(true)),
            Record::Timing(timing) => self.timing = Some(timing),
            // All clients have disconnected: the server flushes its drives.
            _ if self.timing.is_some() => {}
            Record::Open { connection, export } => {
                let queue = self.queues.entry(export).or_default().take();
                self.open(connection, export, queue, (HostIdentity::default(), TransportModel::InProcess));
            }
            Record::Attach { connection, export, function, .. } => {
                self.is_mixed = true;
                let host = HostIdentity { function: Some(function), ..HostIdentity::default() };
                // Its commands have their queues.
                self.open(connection, export, QueueId(1), (host, TransportModel::Memory));
            }
            Record::ConnectQueue { connection, ask } => {
                self.open(connection, ask.export, ask.queue, (ask.host, TransportModel::Message));
            }
            Record::Close { connection } => self.close(connection),
            Record::BlockBytes { export, nsid, bytes } => drop(self.block_bytes.insert((export, nsid), bytes)),
            Record::Order { export, order } => self.put(self.stamp(export), Event::Order { export, order }),
            Record::Refusal { .. } => self.left_out.refused += 1,
            Record::Command { connection, entry, data, .. } => {
                let Some(of) = self.connections.get(&connection) else {
                    return Err(self.reader.damaged("a command came from a connection that is not open"));
                };
                if of.queue == QueueId::ADMIN {
                    self.left_out.admin += 1;
                } else {
                    let data = if let Data::Kept(data) = data { Some(data) } else { None };
                    let (at, request) = (self.stamp(of.export), self.request((connection, of, of.queue), *entry, data));
                    self.put(at, request);
                }
            }
            Record::Fetched { connection, queue, submitted, entry } => {
                self.fetched((connection, queue), submitted, *entry);
            }
            Record::Access { connection, outcome: Outcome::Done(data), is_ranges: true } => {
                self.ranges(connection, &data);
            }
            Record::Access { .. } | Record::Arrival { .. } | Record::Answer { .. } => {}
        }
        Ok(())
    }

    fn open(
        &mut self,
        connection: ConnectionId,
        export: u16,
        queue: QueueId,
        (host, model): (HostIdentity, TransportModel),
    ) {
        let issuer = Arc::new(Issuer { host, model });
        self.connections.insert(connection, Connection { export, issuer, queue, incomplete: VecDeque::new() });
    }

    fn close(&mut self, connection: ConnectionId) {
        let Some(Connection { export, issuer, queue, .. }) = self.connections.remove(&connection) else { return };
        if issuer.model == TransportModel::InProcess {
            self.queues.entry(export).or_default().free.insert(queue.0);
        }
    }

    fn request(
        &self,
        (connection, of, queue): (ConnectionId, &Connection, QueueId),
        entry: SubmissionEntry,
        data: Option<Vec<u8>>,
    ) -> Event {
        let (export, issuer) = (of.export, of.issuer.clone());
        let block_bytes = self.block_bytes.get(&(export, entry.nsid.get())).copied().unwrap_or_default();
        Event::Request(Box::new(Request { connection, issuer, queue, export, entry, block_bytes, data }))
    }

    fn put(&mut self, at: Time, event: Event) {
        self.number += 1;
        self.waiting.insert((at, self.number), event);
    }

    /// A host's command: one with ranges is complete when they have been read.
    fn fetched(&mut self, (connection, queue): (ConnectionId, QueueId), submitted: Time, entry: SubmissionEntry) {
        let Some(of) = self.connections.get_mut(&connection) else { return };
        self.number += 1;
        let (at, number) = (submitted, self.number);
        if IoOpcode(entry.opcode) == IoOpcode::DATASET_MANAGEMENT {
            let incomplete = Incomplete { queue, at, number, entry, ranges: Vec::new() };
            return of.incomplete.push_back(incomplete);
        }
        let of = &self.connections[&connection];
        let request = self.request((connection, of, queue), entry, None);
        self.waiting.insert((at, number), request);
    }

    fn ranges(&mut self, connection: ConnectionId, data: &[u8]) {
        let Some(of) = self.connections.get_mut(&connection) else { return };
        let Some(first) = of.incomplete.front_mut() else { return };
        first.ranges.extend_from_slice(data);
        if first.ranges.len() < RANGE * (1 + (first.entry.cdw10.get() & 0xff) as usize) {
            return;
        }
        let Some(Incomplete { queue, at, number, entry, ranges }) = of.incomplete.pop_front() else { return };
        let of = &self.connections[&connection];
        let request = self.request((connection, of, queue), entry, Some(ranges));
        self.waiting.insert((at, number), request);
    }
}
