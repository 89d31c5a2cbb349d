//! A recording: everything that arrived at a port, in order, with its stamp and its data.
//!
//! A file begins with [`MAGIC`]; then come chunks (see `chunks`), and in them records: length of the body (u32,
//! little-endian), kind (u8), body. The first record is a header in JSON, which says how to build the drives again; the
//! last one says when the run ended. A file that was cut short ends early, and says so.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use nandscape_drive::mem::DmaFault;
use nandscape_drive::{HostIdentity, HostMem, QueueId};
use nandscape_sim::Time;
use nandscape_wire_nvme::opcode::Transfer;
use nandscape_wire_nvme::{Status, SubmissionEntry};
use zerocopy::{FromBytes, IntoBytes};

use crate::access::Outcome;
use crate::arrival::Arrival;
use crate::association::ConnectQueue;
use crate::chunks::{ChunkError, ChunkReader, ChunkWriter};
use crate::order::Order;
use crate::port::ConnectionId;
use crate::side_file::SideFile;

/// The first bytes of every recording; the last but one is the version.
pub const MAGIC: [u8; 8] = *b"NSCREC4\n";
/// The place of the version in them.
const VERSION: usize = 6;
/// The largest body that is read: larger than a command with the largest transfer.
const MAX_BODY: usize = 1 << 28;

/// Waiting bytes above which records are written uncompressed, which is faster.
const MUCH: usize = 16 << 20;

const HEADER: u8 = 0;
const TURN: u8 = 1;
const OPEN: u8 = 2;
const COMMAND: u8 = 3;
const CLOSE: u8 = 4;
const END: u8 = 5;
const ORDER: u8 = 6;
const ATTACH: u8 = 7;
const ARRIVAL: u8 = 8;
const ACCESS: u8 = 9;
const CONNECT_QUEUE: u8 = 10;
const ANSWER: u8 = 11;
const REFUSAL: u8 = 12;

/// How an access ended, as it stands in a record.
const FAILED: u8 = 0;
const DONE: u8 = 1;
const REMOTE: u8 = 2;

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

/// Why a recording cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The file cannot be read.
    #[error("{path}: {error}")]
    File {
        /// The file.
        path: String,
        /// Why.
        error: io::Error,
    },
    /// The file is not a recording.
    #[error("{path}: not a recording: it does not begin as one does")]
    NotOne {
        /// The file.
        path: String,
    },
    /// The file is a recording of another version of the program.
    #[error(
        "{path}: a recording of format {found}; this program reads format {}. Replay it with the version that wrote it",
        char::from(MAGIC[VERSION])
    )]
    OtherFormat {
        /// The file.
        path: String,
        /// Its format.
        found: char,
    },
    /// The file ends inside a record, as when its writer was killed.
    #[error("{path}: record {number}, in the chunk at byte {offset}, is torn: the file ends inside it")]
    Torn {
        /// The file.
        path: String,
        /// Records before it.
        number: u64,
        /// Where its chunk begins.
        offset: u64,
    },
    /// A record is damaged.
    #[error("{path}: damaged at record {number}, in the chunk at byte {offset}: {problem}")]
    Damaged {
        /// The file.
        path: String,
        /// Records before it.
        number: u64,
        /// Where its chunk begins.
        offset: u64,
        /// The problem.
        problem: String,
    },
}

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

    pub(crate) fn attach(&mut self, connection: ConnectionId, export: u16, vectors: u16) {
        self.put(ATTACH, &[&connection.0.to_le_bytes(), &export.to_le_bytes(), &vectors.to_le_bytes()]);
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

/// In place of a controller's identifier: a new one (Base 6.3).
const NEW_CONTROLLER: u16 = nandscape_wire_nvme::fabrics::DYNAMIC;

/// Makes a record.
fn frame(record: &mut Vec<u8>, kind: u8, parts: &[&[u8]]) {
    let len: usize = parts.iter().map(|part| part.len()).sum();
    record.clear();
    record.extend_from_slice(&(len as u32).to_le_bytes());
    record.push(kind);
    parts.iter().for_each(|part| record.extend_from_slice(part));
}

/// Reads a recording.
pub struct Reader {
    path: String,
    chunks: ChunkReader<BufReader<File>>,
    header: String,
    number: u64,
}

impl Reader {
    /// Opens a recording.
    ///
    /// # Errors
    /// When it cannot be read or is not one.
    pub fn open(path: &Path) -> Result<Reader, RecordingError> {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|error| RecordingError::File { path: name.clone(), error })?;
        let mut file = BufReader::new(file);
        let mut magic = [0; MAGIC.len()];
        match file.read_exact(&mut magic) {
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
                return Err(RecordingError::File { path: name, error });
            }
            Ok(()) if magic == MAGIC => {}
            Ok(()) if [&magic[..VERSION], &magic[VERSION + 1..]] == [&MAGIC[..VERSION], &MAGIC[VERSION + 1..]] => {
                return Err(RecordingError::OtherFormat { path: name, found: magic[VERSION].into() });
            }
            _ => return Err(RecordingError::NotOne { path: name }),
        }
        let chunks = ChunkReader::new(file, MAGIC.len() as u64);
        let chunks = chunks.map_err(|error| RecordingError::File { path: name.clone(), error })?;
        let mut reader = Reader { path: name, chunks, header: String::new(), number: 0 };
        match reader.next_body()? {
            Some((HEADER, body)) => {
                reader.header = String::from_utf8(body).map_err(|_| reader.damaged("the header is not text"))?;
                Ok(reader)
            }
            _ => Err(reader.damaged("the header is missing")),
        }
    }

    /// The header.
    pub fn header(&self) -> &str {
        &self.header
    }

    /// The next record; `None` at the end of the file.
    ///
    /// # Errors
    /// When the record is damaged or torn.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator could not say that the file was torn and then go on"
    )]
    pub fn next(&mut self) -> Result<Option<Record>, RecordingError> {
        let Some((kind, body)) = self.next_body()? else { return Ok(None) };
        let record = parse(kind, &body).ok_or_else(|| self.damaged("its body is malformed"))?;
        Ok(Some(record))
    }

    fn next_body(&mut self) -> Result<Option<(u8, Vec<u8>)>, RecordingError> {
        if self.chunks.is_at_end().map_err(|error| self.failed(error))? {
            return Ok(None);
        }
        let mut head = [0; 5];
        self.fill(&mut head)?;
        let [a, b, c, d, kind] = head;
        let len = u32::from_le_bytes([a, b, c, d]) as usize;
        if len > MAX_BODY {
            return Err(self.damaged("its length is beyond any record's"));
        }
        let mut body = vec![0; len];
        self.fill(&mut body)?;
        self.number += 1;
        Ok(Some((kind, body)))
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), RecordingError> {
        self.chunks.fill(bytes).map_err(|error| self.failed(error))
    }

    fn failed(&self, error: ChunkError) -> RecordingError {
        let (path, number, offset) = (self.path.clone(), self.number, self.chunks.offset());
        match error {
            ChunkError::Torn => RecordingError::Torn { path, number, offset },
            ChunkError::Damaged(problem) => {
                RecordingError::Damaged { path, number, offset, problem: problem.to_owned() }
            }
            ChunkError::File(error) => RecordingError::File { path, error },
        }
    }

    /// An error about the record that comes next.
    pub(crate) fn damaged(&self, problem: &str) -> RecordingError {
        let (path, number, offset) = (self.path.clone(), self.number, self.chunks.offset());
        RecordingError::Damaged { path, number, offset, problem: problem.to_owned() }
    }
}

fn parse(kind: u8, body: &[u8]) -> Option<Record> {
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
            Record::Attach { connection, export: take_u16(&mut rest)?, vectors: take_u16(&mut rest)? }
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
    let host = HostIdentity { hostid, hostnqn: String::from_utf8(rest.to_vec()).ok()? };
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
