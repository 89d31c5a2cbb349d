//! Writes a recording.

use std::fs::File;
use std::io;
use std::path::Path;

use nandscape_drive::HostMem;
use nandscape_drive::mem::DmaFault;
use nandscape_sim::Time;
use nandscape_wire_nvme::opcode::Transfer;
use nandscape_wire_nvme::{Status, SubmissionEntry};
use zerocopy::IntoBytes;

use super::MAGIC;
use super::record::{
    ACCESS, ANSWER, ARRIVAL, ATTACH, CLOSE, COMMAND, CONNECT_QUEUE, DONE, END, FAILED, HEADER, NEW_CONTROLLER, OPEN,
    ORDER, REFUSAL, REMOTE, TURN,
};
use crate::arrival::Arrival;
use crate::association::ConnectQueue;
use crate::chunks::ChunkWriter;
use crate::order::Order;
use crate::port::ConnectionId;
use crate::side_file::SideFile;

/// Waiting bytes above which records are written uncompressed, which is faster.
const MUCH: usize = 16 << 20;

/// Writes a recording. A failure to write ends the recording, not the run; `Port::end_recording` returns it.
///
/// A thread beside the loop does the writing.
pub struct Recorder {
    path: String,
    file: SideFile,
    /// Whether a failure was reported.
    told: bool,
    body: Vec<u8>,
}

impl Recorder {
    /// Begins a recording with a header.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn create(path: &Path, header: &str) -> io::Result<Recorder> {
        let file = File::create(path)?;
        // Fails now, not at the end, if the file cannot be written.
        let mut body = Vec::new();
        frame(&mut body, HEADER, &[header.as_bytes()]);
        let mut chunks = ChunkWriter::new(file, &MAGIC)?;
        chunks.write(&body, false)?;
        let file = SideFile::start(move |bytes| chunks.write(bytes, bytes.len() > MUCH))?;
        Ok(Recorder { path: path.display().to_string(), file, told: false, body })
    }

    pub(crate) fn turn(&mut self, at: Time) {
        self.put(TURN, &[&at.ns().to_le_bytes()]);
    }

    pub(crate) fn open(&mut self, connection: ConnectionId, export: u16) {
        self.put(OPEN, &[&connection.0.to_le_bytes(), &export.to_le_bytes()]);
    }

    pub(crate) fn command(&mut self, connection: ConnectionId, entry: &SubmissionEntry, mem: &HostMem) {
        let (number, len) = (connection.0.to_le_bytes(), (mem.len() as u32).to_le_bytes());
        match Transfer::of(entry.opcode) {
            Transfer::ToController | Transfer::Both => {
                let data = mem.to_vec();
                self.put(COMMAND, &[&number, entry.as_bytes(), &len, &[1], &data]);
            }
            _ => self.put(COMMAND, &[&number, entry.as_bytes(), &len, &[0]]),
        }
    }

    pub(crate) fn close(&mut self, connection: ConnectionId) {
        self.put(CLOSE, &[&connection.0.to_le_bytes()]);
    }

    pub(crate) fn attach(&mut self, connection: ConnectionId, export: u16, vectors: u16, function: u16) {
        let numbers = [export, vectors, function].map(u16::to_le_bytes);
        self.put(ATTACH, &[&connection.0.to_le_bytes(), numbers.as_flattened()]);
    }

    pub(crate) fn connect_queue(&mut self, connection: ConnectionId, ask: &ConnectQueue) {
        let ConnectQueue { export, controller, host, queue, entries, keep_alive_ms, priority } = ask;
        let fixed = [
            &connection.0.to_le_bytes()[..],
            &export.to_le_bytes(),
            &controller.unwrap_or(NEW_CONTROLLER).to_le_bytes(),
            &queue.0.to_le_bytes(),
            &entries.to_le_bytes(),
            &keep_alive_ms.to_le_bytes(),
            &[*priority],
            &host.hostid,
            host.hostnqn.as_bytes(),
        ];
        self.put(CONNECT_QUEUE, &fixed);
    }

    pub(crate) fn arrival(&mut self, connection: ConnectionId, arrival: Arrival) {
        self.put(ARRIVAL, &[&connection.0.to_le_bytes(), &arrival.to_bytes()]);
    }

    pub(crate) fn refusal(&mut self, connection: ConnectionId, entry: &SubmissionEntry, status: Status) {
        self.put(REFUSAL, &[&connection.0.to_le_bytes(), entry.as_bytes(), &status.bits().to_le_bytes()]);
    }

    pub(crate) fn access(&mut self, connection: ConnectionId, outcome: Result<&[u8], DmaFault>) {
        let (how, data) = match outcome {
            Ok(data) => (DONE, data),
            Err(fault) if fault.is_remote => (REMOTE, &[][..]),
            Err(_) => (FAILED, &[][..]),
        };
        self.put(ACCESS, &[&connection.0.to_le_bytes(), &[how], data]);
    }

    pub(crate) fn answer(&mut self, connection: ConnectionId, number: u64, answer: Option<&[u8]>) {
        let (how, data) = answer.map_or((FAILED, &[][..]), |data| (DONE, data));
        self.put(ANSWER, &[&connection.0.to_le_bytes(), &number.to_le_bytes(), &[how], data]);
    }

    pub(crate) fn order(&mut self, export: u16, order: &Order) {
        let (kind, text) = order.to_parts();
        self.put(ORDER, &[&export.to_le_bytes(), &[kind], text.as_bytes()]);
    }

    pub(crate) fn end(mut self, at: Time) -> io::Result<()> {
        self.put(END, &[&at.ns().to_le_bytes()]);
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

    fn put(&mut self, kind: u8, parts: &[&[u8]]) {
        if !self.file.has_failed() {
            frame(&mut self.body, kind, parts);
            self.file.write(&self.body);
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
    record.extend_from_slice(&(len as u32).to_le_bytes());
    record.push(kind);
    parts.iter().for_each(|part| record.extend_from_slice(part));
}
