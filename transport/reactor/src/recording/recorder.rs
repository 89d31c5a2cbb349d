//! Writes a recording.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;

use nandscape_drive::mem::{DmaFault, Purpose};
use nandscape_drive::{HostMem, QueueId};
use nandscape_files::output;
use nandscape_sim::{Histogram, Time};
use nandscape_wire_nvme::io::is_only_stored;
use nandscape_wire_nvme::opcode::Transfer;
use nandscape_wire_nvme::{Status, SubmissionEntry};

use super::numbers::{Commands, put, put_signed};
use super::record::{
    ACCESS, ANSWER, ARRIVAL, ATTACH, BLOCK_BYTES, CLOSE, COMMAND, CONNECT_QUEUE, DONE, END, FAILED, FETCHED, HEADER,
    LEFT_OUT, NEW_CONTROLLER, NO_DATA, OPEN, ORDER, QUANTILES, RANGES, REFUSAL, REMOTE, TIMING, TURN, TURN_WITHIN,
};
use super::{Kept, MAGIC};
use crate::arrival::Arrival;
use crate::association::ConnectQueue;
use crate::chunks::ChunkWriter;
use crate::order::Order;
use crate::port::ConnectionId;
use crate::side_file::SideFile;
use crate::timing::Timing;

/// Waiting bytes above which records are written uncompressed, which is faster.
const MUCH: usize = 16 << 20;

/// Writes a recording. A failure to write ends the recording, not the run; `Port::end_recording` returns it.
///
/// A thread next to the loop does the writing.
pub struct Recorder {
    path: String,
    file: SideFile,
    /// Whether a failure was reported.
    told: bool,
    kept: Kept,
    /// The body of a record, and its length and kind before it.
    body: Vec<u8>,
    record: Vec<u8>,
    /// The last stamp.
    turn: Time,
    /// That of each timeline.
    turns: BTreeMap<u16, Time>,
    commands: Commands,
    /// Bytes of a logical block by drive and namespace, as last recorded.
    block_bytes: BTreeMap<(u16, u32), u32>,
}

impl Recorder {
    /// Begins a recording with a header. All data is recorded.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn create(path: &Path, header: &str) -> io::Result<Recorder> {
        Recorder::on(output::create(path)?, path, header)
    }

    /// The same in a file that is open and empty, or in a pipe; messages name the path.
    ///
    /// # Errors
    /// As [`Recorder::create`].
    pub fn on(file: File, path: &Path, header: &str) -> io::Result<Recorder> {
        // Fails now, not at the end, if the file cannot be written.
        let mut record = Vec::new();
        frame(&mut record, HEADER, &[header.as_bytes()]);
        let mut chunks = ChunkWriter::new(file, &MAGIC)?;
        chunks.write(&record, false)?;
        let file = SideFile::start(move |bytes| chunks.write(bytes, bytes.len() > MUCH))?;
        Ok(Recorder {
            path: path.display().to_string(),
            file,
            told: false,
            kept: Kept::All,
            body: Vec::new(),
            record,
            turn: Time::ZERO,
            turns: BTreeMap::new(),
            commands: Commands::default(),
            block_bytes: BTreeMap::new(),
        })
    }

    /// Sets which data is recorded from now on.
    #[must_use]
    pub fn keeping(self, kept: Kept) -> Recorder {
        Recorder { kept, ..self }
    }

    /// The stamp of the next arrivals at a timeline; `polls` as in [`Port::begin_turn`](crate::Port::begin_turn).
    pub(crate) fn turn(&mut self, timeline: u16, at: Time, polls: Option<u64>) {
        let since = at.since(self.turns.insert(timeline, at).unwrap_or(Time::ZERO)).ns();
        self.turn = at;
        match polls {
            None => self.put(TURN, &[timeline.into(), since], &[]),
            Some(polls) => self.put(TURN_WITHIN, &[timeline.into(), since, polls], &[]),
        }
    }

    pub(crate) fn open(&mut self, connection: ConnectionId, export: u16) {
        self.put(OPEN, &[connection.0.into(), export.into()], &[]);
    }

    /// A command. A logical block of its namespace has `block_bytes` bytes, or 0 where that does not matter.
    pub(crate) fn command(
        &mut self,
        (connection, export, block_bytes): (ConnectionId, u16, u32),
        entry: &SubmissionEntry,
        mem: &HostMem,
    ) {
        self.block_bytes(export, entry.nsid.get(), block_bytes);
        let is_read = matches!(Transfer::of(entry.opcode), Transfer::ToController | Transfer::Both);
        let leaves_out = self.kept == Kept::Timing && block_bytes > 0 && is_only_stored(entry);
        let data = (is_read && !leaves_out && !mem.is_none()).then(|| mem.to_vec());
        let how = match &data {
            Some(_) => DONE,
            None if is_read && !mem.is_empty() => LEFT_OUT,
            None => NO_DATA,
        };
        self.body.clear();
        put(&mut self.body, connection.0.into());
        self.commands.put(&mut self.body, entry);
        put(&mut self.body, mem.len() as u64);
        self.body.push(how);
        self.finish(COMMAND, data.as_deref().unwrap_or_default());
    }

    /// A host's controller has fetched an I/O command, which the host submitted at a time. It repeats the data of an
    /// access, for readers without a controller.
    pub(crate) fn fetched(
        &mut self,
        (connection, export, block_bytes): (ConnectionId, u16, u32),
        queue: QueueId,
        submitted: Time,
        entry: &SubmissionEntry,
    ) {
        self.block_bytes(export, entry.nsid.get(), block_bytes);
        self.body.clear();
        put(&mut self.body, connection.0.into());
        put(&mut self.body, queue.0.into());
        put_signed(&mut self.body, submitted.ns() as i64 - self.turn.ns() as i64);
        self.commands.put(&mut self.body, entry);
        self.finish(FETCHED, &[]);
    }

    fn block_bytes(&mut self, export: u16, nsid: u32, bytes: u32) {
        if bytes > 0 && self.block_bytes.get(&(export, nsid)) != Some(&bytes) {
            self.block_bytes.insert((export, nsid), bytes);
            self.put(BLOCK_BYTES, &[export.into(), nsid.into(), bytes.into()], &[]);
        }
    }

    pub(crate) fn close(&mut self, connection: ConnectionId) {
        self.put(CLOSE, &[connection.0.into()], &[]);
    }

    pub(crate) fn attach(&mut self, connection: ConnectionId, export: u16, vectors: u16, function: u16) {
        self.put(ATTACH, &[connection.0.into(), export.into(), vectors.into(), function.into()], &[]);
    }

    pub(crate) fn connect_queue(&mut self, connection: ConnectionId, ask: &ConnectQueue) {
        let ConnectQueue { export, controller, host, queue, entries, keep_alive_ms, priority } = ask;
        let numbers = [
            connection.0.into(),
            (*export).into(),
            controller.unwrap_or(NEW_CONTROLLER).into(),
            queue.0.into(),
            (*entries).into(),
            (*keep_alive_ms).into(),
            (*priority).into(),
        ];
        self.put(CONNECT_QUEUE, &numbers, &[&host.hostid[..], host.hostnqn.as_bytes()].concat());
    }

    pub(crate) fn arrival(&mut self, connection: ConnectionId, arrival: Arrival) {
        self.put(ARRIVAL, &[connection.0.into()], &arrival.to_bytes());
    }

    pub(crate) fn refusal(&mut self, connection: ConnectionId, entry: &SubmissionEntry, status: Status) {
        self.body.clear();
        put(&mut self.body, connection.0.into());
        put(&mut self.body, status.bits().into());
        self.commands.put(&mut self.body, entry);
        self.finish(REFUSAL, &[]);
    }

    /// An access to a host's memory; data that was read for a purpose.
    pub(crate) fn access(&mut self, connection: ConnectionId, outcome: Result<&[u8], DmaFault>, purpose: Purpose) {
        let (how, data) = match outcome {
            Ok(data) if purpose == Purpose::Stored && self.kept == Kept::Timing => {
                let numbers = [connection.0.into(), LEFT_OUT.into(), data.len() as u64];
                return self.put(ACCESS, &numbers, &[]);
            }
            Ok(data) if purpose == Purpose::Ranges => (RANGES, data),
            Ok(data) => (DONE, data),
            Err(fault) if fault.is_remote => (REMOTE, &[][..]),
            Err(_) => (FAILED, &[][..]),
        };
        self.put(ACCESS, &[connection.0.into(), how.into()], data);
    }

    pub(crate) fn answer(&mut self, connection: ConnectionId, number: u64, answer: Option<&[u8]>) {
        let (how, data) = answer.map_or((FAILED, &[][..]), |data| (DONE, data));
        self.put(ANSWER, &[connection.0.into(), number, how.into()], data);
    }

    pub(crate) fn order(&mut self, export: u16, order: &Order) {
        let (kind, text) = order.to_parts();
        self.put(ORDER, &[export.into(), kind.into()], text.as_bytes());
    }

    /// How well the run kept up with the clock.
    pub(crate) fn timing(&mut self, timing: &Timing) {
        let of = |lag: &Histogram| {
            let quantiles = QUANTILES.map(|quantile| lag.quantile(quantile).ns());
            [[lag.count()].as_slice(), &quantiles, &[lag.max().ns()]].concat()
        };
        let numbers = [of(&timing.release_lag), of(&timing.poll_gap), vec![timing.behind_max.ns()]].concat();
        self.put(TIMING, &numbers, &[]);
    }

    pub(crate) fn end(mut self, at: Time) -> io::Result<()> {
        let since = at.since(self.turn).ns();
        self.put(END, &[since], &[]);
        let Recorder { path, file, .. } = self;
        file.end().map_err(|error| io::Error::new(error.kind(), problem(&path, &error)))
    }

    /// A failure that was not reported yet.
    pub(crate) fn news(&mut self) -> Option<String> {
        if self.told || !self.file.has_failed() {
            return None;
        }
        self.told = true;
        self.file.failure().map(|error| problem(&self.path, &error))
    }

    fn put(&mut self, kind: u8, numbers: &[u64], bytes: &[u8]) {
        self.body.clear();
        numbers.iter().for_each(|number| put(&mut self.body, *number));
        self.finish(kind, bytes);
    }

    /// Queues the record with this body and these bytes after it for writing.
    fn finish(&mut self, kind: u8, bytes: &[u8]) {
        if !self.file.has_failed() {
            frame(&mut self.record, kind, &[&self.body, bytes]);
            self.file.write(&self.record);
        }
    }
}

fn problem(path: &str, error: &impl std::fmt::Display) -> String {
    format!("the recording {path} is not whole: {error}")
}

/// Makes a record.
fn frame(record: &mut Vec<u8>, kind: u8, parts: &[&[u8]]) {
    let len: usize = parts.iter().map(|part| part.len()).sum();
    record.clear();
    record.push(kind);
    put(record, len as u64);
    parts.iter().for_each(|part| record.extend_from_slice(part));
}
