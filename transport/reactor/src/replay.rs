//! A recorded run again, in virtual time: the loop of the reactor with the recorded stamps for a clock.

use std::rc::Rc;

use nandscape_drive::HostMem;
use nandscape_sim::{Executor, Time};

use crate::access::{Outcomes, Replayed};
use crate::doorbells::Unwatched;
use crate::outbox::Released;
use crate::port::Port;
use crate::recording::{Reader, Record, RecordingError};

/// How a replay ended.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Ending {
    /// Where the recorded run ended.
    Whole,
    /// Before that: the recording breaks off, as when its writer was killed.
    BrokenOff,
}

/// Replays a recording through `port`. `on_release` is given every completion.
///
/// # Errors
/// When the recording is damaged before its last record, or does not fit these drives.
pub fn replay(
    executor: &mut Executor,
    port: &mut Port,
    recording: &mut Reader,
    mut on_release: impl FnMut(Released),
) -> Result<Ending, RecordingError> {
    let (mut released, mut to_hosts, mut ended) = (Vec::new(), Vec::new(), Vec::new());
    let mut player = Player { time: executor.sim().now(), outcomes: Rc::default() };
    let mut next = player.read(recording)?;
    while let Some(record) = next {
        // The accesses that follow an arrival are its consequences: they have to be known before it happens.
        next = player.read(recording)?;
        while let Some(Record::Access { connection, outcome }) = next {
            player.outcomes.push(connection, outcome);
            next = player.read(recording)?;
        }
        let is_last = matches!(record, Record::End(_));
        player.play(executor, port, record).map_err(|problem| recording.damaged(problem))?;
        port.take_released(&mut released);
        released.drain(..).for_each(&mut on_release);
        // There is no host to be told; its answers are in the recording.
        port.take_to_hosts(&mut to_hosts);
        to_hosts.clear();
        // Their transports closed them, as the recording says.
        port.take_ended(&mut ended);
        ended.clear();
        if is_last {
            return Ok(Ending::Whole);
        }
        if player.outcomes.differ() && next.is_some() {
            return Err(recording.damaged("the drive accesses memory of its host that the recording does not have"));
        }
    }
    Ok(Ending::BrokenOff)
}

/// How far a replay has come.
struct Player {
    time: Time,
    /// The outcomes of the controllers' accesses to the memory of their hosts.
    outcomes: Rc<Outcomes>,
}

impl Player {
    /// The next record; `None` where the recording breaks off.
    fn read(&self, recording: &mut Reader) -> Result<Option<Record>, RecordingError> {
        match recording.next() {
            Err(RecordingError::Torn { .. }) => Ok(None),
            record => record,
        }
    }

    /// Repeats a record. A refusal repeats too.
    ///
    /// # Errors
    /// The problem with the record.
    fn play(&mut self, executor: &mut Executor, port: &mut Port, record: Record) -> Result<(), &'static str> {
        const OTHER_NUMBER: &str = "a connection was opened that has another number now";
        match record {
            Record::Turn(at) | Record::End(at) if at < self.time => {
                return Err("the record before it is stamped earlier than its predecessor");
            }
            Record::Turn(at) | Record::End(at) => {
                self.time = at;
                executor.advance(at, u32::MAX);
                executor.arrive(at);
                port.begin_turn();
            }
            Record::Open { connection, export } => {
                if port.open(export).is_ok_and(|id| id != connection) {
                    return Err(OTHER_NUMBER);
                }
            }
            Record::Attach { connection, export, vectors, function } => {
                let memory = Rc::new(Replayed { outcomes: self.outcomes.clone(), connection });
                let attached = port.attach((export, function), memory, vectors, Rc::new(Unwatched));
                if attached.is_ok_and(|id| id != connection) {
                    return Err(OTHER_NUMBER);
                }
            }
            Record::ConnectQueue { connection, ask } => {
                if port.connect_queue(&ask).is_ok_and(|(id, _)| id != connection) {
                    return Err(OTHER_NUMBER);
                }
            }
            Record::Command { connection, entry, len, data } => {
                if !port.is_drive(connection) {
                    return Err("a command came from a connection that is not open");
                }
                let data = data.unwrap_or_else(|| vec![0; len as usize]);
                let mem = match port.is_message_queue(connection) {
                    _ if len == 0 => HostMem::none(),
                    true => HostMem::of_message(data),
                    false => HostMem::from_bytes(&data),
                };
                port.submit(connection, 0, *entry, mem);
            }
            Record::Arrival { connection, arrival } => {
                if !port.is_host(connection) {
                    return Err("an arrival came from a host that is not connected");
                }
                port.arrive(connection, arrival);
            }
            Record::Answer { connection, number, answer } => {
                if !port.is_asked(connection) {
                    return Err("an answer came from a host that is not connected");
                }
                port.answer(connection, number, answer);
            }
            Record::Refusal { connection, entry, status } => {
                if !port.is_message_queue(connection) {
                    return Err("a refused command came from a connection that is no message queue");
                }
                port.refuse(connection, &entry, status);
            }
            Record::Access { connection, outcome } => self.outcomes.push(connection, outcome),
            Record::Close { connection } => port.close(connection),
            Record::Order { export, order } => {
                let _ = port.order(export, &order);
            }
        }
        Ok(())
    }
}
