//! A recording of live drives (`nandscape serve --record`) as a trace: lines of text, a request each, which the parser of the
//! format `recording` reads.
//!
//! Each namespace of a drive is a disk: `NAME`, or `NAME.n2` where it is not the first. Reads, Compares and Verifies are
//! reads; writes and Write Zeroes are writes, with Force Unit Access where they have it; each range of a deallocation is a trim. Left out: all other commands.

use std::io::{self, Read, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nandscape_lab_workload::Direction;
use nandscape_transport_reactor::recording::{Event, MAGIC, Reader, RecordingError, Request, Requests};
use nandscape_wire_nvme::IoOpcode;
use nandscape_wire_nvme::io::{Cdw12, DSM_DEALLOCATE, DsmRange};
use serde::Deserialize;
use zerocopy::FromBytes;

use crate::devices::Devices;
use crate::fields::{LineError, Parsed, Words, request, whole};
use crate::format::{Disks, Facts};

/// The line before all others.
pub(crate) const MARK: &[u8] = b"# a recording of nandscape serve";

pub(crate) const FACTS: Facts = Facts {
    name: "recording",
    layout: "binary, as nandscape serve --record writes it",
    time_ns: 1,
    unit_bytes: 1,
    // No trace is written in this format.
    directions: &[],
    hosts: false,
    disks: Disks::Words,
};

/// Whether a file that begins so is a recording, of any version.
pub(crate) fn is_one(head: &[u8]) -> bool {
    head.starts_with(&MAGIC[..MAGIC.len() - 2]) && head.get(MAGIC.len() - 1) == MAGIC.last()
}

/// The text of a recording.
pub(crate) struct Text {
    requests: Requests,
    /// Names of the drives.
    drives: Vec<String>,
    text: Vec<u8>,
    /// Bytes of it that were read.
    given: usize,
    ended: bool,
    breaks_off: Arc<AtomicBool>,
}

/// The needed part of a header.
#[derive(Deserialize)]
struct Header {
    drives: Vec<Named>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

impl Text {
    /// Of a recording's bytes; messages call it by this name. `breaks_off` is set when its end is missing.
    pub(crate) fn of(name: &str, bytes: Box<dyn Read + Send>, breaks_off: Arc<AtomicBool>) -> io::Result<Text> {
        let reader = Reader::of(name.to_owned(), bytes).map_err(failed)?;
        let header: Header = serde_json::from_str(reader.header())
            .map_err(|error| io::Error::other(format!("the header of the recording cannot be read: {error}")))?;
        let drives = header.drives.into_iter().map(|drive| drive.name).collect();
        let text = [MARK, b"\n"].concat();
        Ok(Text { requests: Requests::new(reader), drives, text, given: 0, ended: false, breaks_off })
    }

    /// Appends the lines of the next event.
    fn read_on(&mut self) -> io::Result<()> {
        self.text.clear();
        self.given = 0;
        match self.requests.next().map_err(failed)? {
            Some((at, Event::Request(request))) => self.lines(at.ns(), &request),
            Some((_, Event::Order { .. })) => {}
            None => {
                self.ended = true;
                self.breaks_off.store(self.requests.is_broken_off(), Ordering::Relaxed);
            }
        }
        Ok(())
    }

    fn lines(&mut self, at: u64, request: &Request) {
        let entry = &request.entry;
        let block = u64::from(request.block_bytes);
        let blocks = u64::from(Cdw12::of(entry).nlb_z()) + 1;
        let whole = (entry.slba().saturating_mul(block), blocks * block);
        let write = if Cdw12::of(entry).fua() { "WF" } else { "W" };
        match IoOpcode(entry.opcode) {
            _ if block == 0 && IoOpcode(entry.opcode) != IoOpcode::FLUSH => {}
            IoOpcode::READ | IoOpcode::COMPARE | IoOpcode::VERIFY => self.line(at, "R", whole, request),
            IoOpcode::WRITE | IoOpcode::WRITE_ZEROES => self.line(at, write, whole, request),
            IoOpcode::FLUSH => self.line(at, "F", (0, 0), request),
            IoOpcode::DATASET_MANAGEMENT if entry.cdw11.get() & DSM_DEALLOCATE != 0 => {
                let wanted = 1 + (entry.cdw10.get() & 0xff) as usize;
                let data = request.data.as_deref().unwrap_or_default();
                for bytes in data.chunks_exact(size_of::<DsmRange>()).take(wanted) {
                    let Ok(range) = DsmRange::read_from_bytes(bytes) else { continue };
                    let (slba, blocks) = (range.slba.get(), u64::from(range.blocks.get()));
                    if blocks > 0 {
                        self.line(at, "D", (slba.saturating_mul(block), blocks * block), request);
                    }
                }
            }
            _ => {}
        }
    }

    fn line(&mut self, at: u64, kind: &str, (offset, bytes): (u64, u64), request: &Request) {
        let (export, nsid) = (request.export, request.entry.nsid.get());
        let name = self.drives.get(usize::from(export)).map_or("?", |name| name);
        // A flush may be of all namespaces.
        let disk = match nsid {
            0 | 1 | u32::MAX => String::new(),
            nsid => format!(".n{nsid}"),
        };
        let name = name.replace(|c: char| c.is_whitespace() || c.is_control(), "_");
        let _ = writeln!(self.text, "{at} {kind} {offset} {bytes} {name}{disk}");
    }
}

fn failed(error: RecordingError) -> io::Error {
    match error {
        RecordingError::File { error, .. } => error,
        error => io::Error::other(error),
    }
}

impl Read for Text {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.given == self.text.len() && !self.ended {
            self.read_on()?;
        }
        let rest = &self.text[self.given..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.given += count;
        Ok(count)
    }
}

/// Parses a line.
pub(crate) fn parse(line: &[u8], devices: &mut Devices) -> Parsed {
    let mut words = Words(line);
    let mut word = |name: &str| words.next().ok_or_else(|| LineError::missing(name, FACTS.layout));
    let (at, direction) = (whole("the time", word("the time")?)?, word("the direction")?);
    let direction = match direction {
        b"R" => Direction::Read,
        b"W" => Direction::Write,
        b"WF" => Direction::Fua,
        b"D" => Direction::Trim,
        b"F" => Direction::Flush,
        other => return Err(LineError::not("the direction", other, "R, W, WF, D or F")),
    };
    let (offset, bytes) = (whole("the offset", word("the offset")?)?, whole("the size", word("the size")?)?);
    request(at, devices.of(b"", word("the disk")?)?, direction, offset, bytes)
}
