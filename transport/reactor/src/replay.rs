//! A recorded run again, in virtual time: the loop of the reactor with the recorded stamps for a clock.

use nandscape_drive::HostMem;
use nandscape_sim::Executor;

use crate::port::{Port, Released};
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
    let mut released = Vec::new();
    let mut time = executor.sim().now();
    loop {
        let record = match recording.next() {
            Err(RecordingError::Torn { .. }) => None,
            record => record?,
        };
        let is_last = matches!(record, Some(Record::End(_)));
        match record {
            Some(Record::Turn(at) | Record::End(at)) if at < time => {
                return Err(recording.damaged("the record before it is stamped earlier than its predecessor"));
            }
            Some(Record::Turn(at) | Record::End(at)) => {
                time = at;
                executor.advance(at, u32::MAX);
                executor.arrive(at);
                port.begin_turn();
            }
            Some(Record::Open { connection, export }) => match port.open(export) {
                Ok(id) if id != connection => {
                    return Err(recording.damaged("a connection was opened that has another number now"));
                }
                // A refusal then is a refusal now.
                Ok(_) | Err(_) => {}
            },
            Some(Record::Command { connection, entry, len, data }) => {
                if !port.is_open(connection) {
                    return Err(recording.damaged("a command came from a connection that is not open"));
                }
                let mem = match (data, len) {
                    (_, 0) => HostMem::none(),
                    (Some(data), _) => HostMem::from_bytes(&data),
                    (None, len) => HostMem::zeroed(len as usize),
                };
                port.submit(connection, 0, *entry, mem);
            }
            Some(Record::Close { connection }) => port.close(connection),
            Some(Record::Order { export, order }) => {
                // As with connections.
                let _ = port.order(export, &order);
            }
            None => return Ok(Ending::BrokenOff),
        }
        port.take_released(&mut released);
        released.drain(..).for_each(&mut on_release);
        if is_last {
            return Ok(Ending::Whole);
        }
    }
}
