//! Replays a recorded run in simulated time: the loop of the reactor with the recorded stamps as its clock.

use std::collections::BTreeMap;
use std::rc::Rc;

use nandscape_drive::{HostMem, QueueId};
use nandscape_sim::{Executor, Time};
use nandscape_wire_nvme::opcode::Transfer;
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

use crate::access::{self, Outcome, Outcomes};
use crate::doorbells::Unwatched;
use crate::outbox::Released;
use crate::port::{ConnectionId, Port};
use crate::recording::{Data, Reader, Record, RecordingError, RunTiming};

/// How a replay ended.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Ending {
    /// At the end of the recorded run.
    Whole,
    /// Before that: the recording breaks off, as when its writer was killed.
    BrokenOff,
    /// Before that: the user ended it.
    Stopped,
}

/// A replay that has ended.
#[derive(Copy, Clone, Debug)]
pub struct Replayed {
    /// How.
    pub ending: Ending,
    /// How well the recorded run kept up with the clock, if its end is present.
    pub timing: Option<RunTiming>,
    /// Commands whose data is not recorded: they stored zeros.
    pub without_data: u64,
    /// Compares after such commands: they may fail where they succeeded.
    pub compares: u64,
}

/// Replays a recording through `port`, whose drives run on `timelines`: as many as the recorded run had. `on_release` is called with every
/// completion and the beginning of its command in bytes: 0 if it names no logical blocks.
///
/// # Errors
/// When the recording is damaged before its last record, or does not fit these drives.
pub fn replay(
    timelines: &mut [Executor],
    port: &mut Port,
    recording: &mut Reader,
    on_release: impl FnMut(Released, u64),
) -> Result<Replayed, RecordingError> {
    replay_while(timelines, port, recording, on_release, |_| true)
}

/// Records between two checks whether a replay continues.
const QUESTION: u64 = 4_096;

/// The same, while `goes_on` returns true. It is called now and then with the bytes of the recording that were read.
///
/// # Errors
/// As [`replay`].
pub fn replay_while(
    timelines: &mut [Executor],
    port: &mut Port,
    recording: &mut Reader,
    mut on_release: impl FnMut(Released, u64),
    mut goes_on: impl FnMut(&Reader) -> bool,
) -> Result<Replayed, RecordingError> {
    let mut played = 0_u64;
    let (mut released, mut to_hosts, mut ended) = (Vec::new(), Vec::new(), Vec::new());
    let mut deliver = |player: &mut Player, port: &mut Port| {
        port.take_released(&mut released);
        for released in released.drain(..) {
            let offset = player.offset_of(&released);
            on_release(released, offset);
        }
    };
    let mut player = Player {
        outcomes: Rc::default(),
        block_bytes: BTreeMap::new(),
        exports: BTreeMap::new(),
        offsets: BTreeMap::new(),
        reached: Time::ZERO,
        has_memory: false,
        timing: None,
        without_data: 0,
        compares: 0,
    };
    let mut next = player.read(recording)?;
    while let Some(record) = next {
        if played.is_multiple_of(QUESTION) && !goes_on(recording) {
            return Ok(player.ended(Ending::Stopped));
        }
        played += 1;
        // The accesses after an arrival are its consequences: they must be known before it happens.
        next = player.read(recording)?;
        while let Some(Record::Access { connection, outcome, .. }) = next {
            player.outcomes.push(connection, outcome);
            next = player.read(recording)?;
        }
        let is_last = matches!(record, Record::End(_));
        player.play(timelines, port, record).map_err(|problem| match problem {
            Problem::Damaged(problem) => recording.damaged(problem),
            Problem::Unfit(problem) => recording.unfit(problem),
        })?;
        deliver(&mut player, port);
        // There is no host to notify; its answers are in the recording.
        port.take_to_hosts(&mut to_hosts);
        to_hosts.clear();
        // Their transports closed them, by the recording.
        port.take_ended(&mut ended);
        ended.clear();
        if is_last {
            return Ok(player.ended(Ending::Whole));
        }
        if player.outcomes.differ() && next.is_some() {
            return Err(recording.damaged("the drive accesses memory of its host that the recording does not have"));
        }
    }
    player.run_on(timelines);
    deliver(&mut player, port);
    Ok(player.ended(Ending::BrokenOff))
}

/// Why a record cannot be repeated.
enum Problem {
    /// No run has such a record.
    Damaged(&'static str),
    /// No run of these drives has it.
    Unfit(String),
}

impl From<&'static str> for Problem {
    fn from(problem: &'static str) -> Problem {
        Problem::Damaged(problem)
    }
}

/// The progress of a replay.
struct Player {
    /// The outcomes of the controllers' accesses to the memory of their hosts.
    outcomes: Rc<Outcomes>,
    /// Bytes of a logical block by drive and namespace.
    block_bytes: BTreeMap<(u16, u32), u32>,
    /// The drive of each connection.
    exports: BTreeMap<ConnectionId, u16>,
    /// The beginnings of commands of hosts with their own queues, by queue and command identifier.
    offsets: BTreeMap<(ConnectionId, QueueId, u16), u64>,
    /// The latest stamp.
    reached: Time,
    /// A host with its own queues was connected.
    has_memory: bool,
    timing: Option<RunTiming>,
    without_data: u64,
    compares: u64,
}

impl Player {
    fn ended(self, ending: Ending) -> Replayed {
        let Player { timing, without_data, compares, .. } = self;
        Replayed { ending, timing, without_data, compares }
    }

    /// The recording breaks off: drives without recent arrivals run up to the latest stamp. What the memory of hosts contains is known
    /// up to their own last stamps only.
    fn run_on(&self, timelines: &mut [Executor]) {
        let earlier = timelines.iter_mut().filter(|executor| !self.has_memory && executor.sim().now() < self.reached);
        earlier.for_each(|executor| _ = executor.advance(self.reached, u32::MAX));
    }

    /// The beginning of a command. Commands submitted one by one carry it as their tag.
    fn offset_of(&mut self, released: &Released) -> u64 {
        let Released { connection, queue, tag, .. } = released;
        let place = queue.map(|queue| (*connection, queue, *tag as u16));
        match place.filter(|place| self.offsets.contains_key(place)) {
            Some(place) => self.offsets.remove(&place).unwrap_or_default(),
            None => *tag,
        }
    }

    fn place(&mut self, connection: ConnectionId, entry: &SubmissionEntry) -> u64 {
        if self.without_data > 0 && IoOpcode(entry.opcode) == IoOpcode::COMPARE {
            self.compares += 1;
        }
        let export = self.exports.get(&connection).copied().unwrap_or_default();
        let bytes = self.block_bytes.get(&(export, entry.nsid.get())).copied().unwrap_or_default();
        match entry.blocks_in_a_row() {
            0 => 0,
            _ => entry.slba().saturating_mul(bytes.into()),
        }
    }

    /// The next record; `None` where the recording is truncated.
    fn read(&mut self, recording: &mut Reader) -> Result<Option<Record>, RecordingError> {
        loop {
            match recording.next() {
                Err(RecordingError::Torn { .. }) => return Ok(None),
                // The drive learns of these from other records.
                Ok(Some(Record::Fetched { connection, queue, entry, .. })) => {
                    let offset = self.place(connection, &entry);
                    self.offsets.insert((connection, queue, entry.cid.get()), offset);
                }
                Ok(Some(Record::BlockBytes { export, nsid, bytes })) => {
                    self.block_bytes.insert((export, nsid), bytes);
                }
                Ok(Some(Record::Timing(timing))) => self.timing = Some(timing),
                Ok(Some(Record::Access { connection, outcome: outcome @ Outcome::LeftOut(_), is_ranges })) => {
                    self.without_data += 1;
                    return Ok(Some(Record::Access { connection, outcome, is_ranges }));
                }
                record => return record,
            }
        }
    }

    /// Moves a timeline to its next stamp; `polls` as in [`Port::begin_turn`].
    fn turn(
        &mut self,
        timelines: &mut [Executor],
        port: &mut Port,
        (timeline, at): (u16, Time),
        polls: Option<u64>,
    ) -> Result<(), Problem> {
        let (place, count) = (usize::from(timeline), timelines.len());
        let Some(executor) = timelines.get_mut(place) else {
            return Err(Problem::Unfit(format!("it is of timeline {place}; from 0 to {} are valid", count - 1)));
        };
        let now = executor.sim().now();
        if at < now {
            let (at, now) = (at.since(Time::ZERO), now.since(Time::ZERO));
            return Err(Problem::Unfit(format!("its time, {at}, is before that of its drives, {now}")));
        }
        match polls {
            None if !executor.advance(at, u32::MAX) => {
                let (at, most) = (at.since(Time::ZERO), u32::MAX);
                return Err(Problem::Unfit(format!("its drives do not reach its time, {at}, in {most} steps")));
            }
            Some(polls) if !executor.advance_to(at, polls) => {
                let problem = "the drives have less to do at this time than those of the recorded run";
                return Err(Problem::Unfit(problem.to_owned()));
            }
            _ => {}
        }
        executor.arrive(at);
        port.begin_turn(place, polls);
        self.reached = self.reached.max(at);
        Ok(())
    }

    /// Repeats a record. A refusal repeats too.
    ///
    /// # Errors
    /// The problem with the record.
    fn play(&mut self, timelines: &mut [Executor], port: &mut Port, record: Record) -> Result<(), Problem> {
        const OTHER_NUMBER: &str = "a connection was opened that has another number now";
        match record {
            Record::Turn(timeline, at) => self.turn(timelines, port, (timeline, at), None)?,
            Record::TurnWithin(timeline, at, polls) => self.turn(timelines, port, (timeline, at), Some(polls))?,
            // Each timeline has a last turn before it.
            Record::End(_) => {}
            Record::Open { connection, export } => {
                self.exports.insert(connection, export);
                if port.open(export).is_ok_and(|id| id != connection) {
                    return Err(OTHER_NUMBER.into());
                }
            }
            Record::Attach { connection, export, vectors, function } => {
                self.exports.insert(connection, export);
                self.has_memory = true;
                let memory = Rc::new(access::Replayed { outcomes: self.outcomes.clone(), connection });
                let attached = port.attach((export, function), memory, vectors, Rc::new(Unwatched));
                if attached.is_ok_and(|id| id != connection) {
                    return Err(OTHER_NUMBER.into());
                }
            }
            Record::ConnectQueue { connection, ask } => {
                self.exports.insert(connection, ask.export);
                if port.connect_queue(&ask).is_ok_and(|(id, _)| id != connection) {
                    return Err(OTHER_NUMBER.into());
                }
            }
            Record::Command { connection, entry, len, data } => {
                if !port.is_drive(connection) {
                    return Err("a command came from a connection that is not open".into());
                }
                let offset = self.place(connection, &entry);
                self.without_data += u64::from(data == Data::LeftOut);
                let data = if let Data::Kept(data) = data { data } else { vec![0; len as usize] };
                let mem = match port.is_message_queue(connection) {
                    // A command that moves data has memory, be it of no length.
                    true if Transfer::of(entry.opcode) != Transfer::None => HostMem::of_message(data),
                    _ if len == 0 => HostMem::none(),
                    true => HostMem::of_message(data),
                    false => HostMem::from_bytes(&data),
                };
                port.submit(connection, offset, *entry, mem);
            }
            Record::Arrival { connection, arrival } => {
                if !port.is_host(connection) {
                    return Err("an arrival came from a host that is not connected".into());
                }
                port.arrive(connection, arrival);
            }
            Record::Answer { connection, number, answer } => {
                if !port.is_asked(connection) {
                    return Err("an answer came from a host that is not connected".into());
                }
                port.answer(connection, number, answer);
            }
            Record::Refusal { connection, entry, status } => {
                if !port.is_message_queue(connection) {
                    return Err("a refused command came from a connection that is no message queue".into());
                }
                port.refuse(connection, &entry, status);
            }
            Record::Access { connection, outcome, .. } => self.outcomes.push(connection, outcome),
            Record::Fetched { .. } | Record::BlockBytes { .. } | Record::Timing(_) => {}
            Record::Close { connection } => {
                self.exports.remove(&connection);
                port.close(connection);
            }
            Record::Order { export, order } => {
                let _ = port.order(export, &order);
            }
        }
        Ok(())
    }
}
