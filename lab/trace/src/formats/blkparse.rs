//! Text that blkparse prints by default. Of the many actions of a request one is kept: Q (queued) or D (issued to the
//! driver). Other actions, messages, requests without an address such as pass-through commands, and the summary at the
//! end are ignored. An F before the letter of the operation is a flush, which the operation waits for: two requests. An F after it
//! is Force Unit Access.

use std::io::Write as _;

use nandscape_lab_workload::Direction;

use crate::devices::Devices;
use crate::fields::{LineError, Parsed, Words, request, sectors, time};
use crate::format::{Action, Disks, Facts, Part, Row, Writer};
use crate::record::Record;

pub(crate) const FACTS: Facts = Facts {
    name: "blkparse",
    layout: "major,minor cpu sequence time pid action type sector + count [process] with seconds, sectors of 512 bytes",
    time_ns: 1,
    unit_bytes: 512,
    directions: &Direction::ALL,
    hosts: false,
    disks: Disks::Pairs,
};

pub(crate) struct Parser {
    action: [u8; 1],
    /// Whether the summary has begun.
    summary: bool,
    /// What follows the flush of the last line.
    second: Option<Record>,
}

impl Parser {
    pub(crate) fn new(action: Action) -> Parser {
        Parser { action: [action.letter() as u8], summary: false, second: None }
    }
}

impl crate::format::Parser for Parser {
    fn line(&mut self, line: &[u8], devices: &mut Devices) -> Parsed {
        let mut words = Words(line);
        let disk = words.next().unwrap_or_default();
        if !is_pair(disk) {
            self.summary |= (disk.starts_with(b"CPU") || disk == b"Total") && line.trim_ascii_end().ends_with(b"):");
            // blkparse's description of its input, before the events.
            let preamble = disk == b"Input";
            return match self.summary || preamble {
                true => Ok(None),
                false => Err(LineError::not("the device", disk, "two numbers such as 8,32")),
            };
        }
        let mut word = |name: &str| words.next().ok_or_else(|| LineError::missing(name, FACTS.layout));
        let (_cpu, _sequence, at, _pid) =
            (word("the cpu")?, word("the sequence")?, word("the time")?, word("the pid")?);
        let action = word("the action")?;
        if action != self.action {
            return Ok(None);
        }
        let at = time("the time", at, 1_000_000_000)?;
        let kind = word("the type")?;
        let flushes = kind.first() == Some(&b'F');
        let (place, plus, count) = (words.next(), words.next(), words.next());
        let (Some(place), Some(b"+"), Some(count)) = (place, plus, count) else {
            return match flushes {
                true => request(at, devices.of(b"", disk)?, Direction::Flush, 0, 0),
                false => Ok(None),
            };
        };
        let (offset, bytes) = (sectors("the sector", place)?, sectors("the count", count)?);
        if flushes && bytes == 0 {
            return request(at, devices.of(b"", disk)?, Direction::Flush, 0, 0);
        }
        let direction = match &kind[usize::from(flushes)..] {
            [b'R', ..] => Direction::Read,
            [b'W', b'F', ..] => Direction::Fua,
            [b'W', ..] => Direction::Write,
            [b'D', ..] => Direction::Trim,
            [b'N', ..] => return Ok(None),
            _ => return Err(LineError::not("the type", kind, "one with R, W, D, F or N")),
        };
        let device = devices.of(b"", disk)?;
        let parsed = request(at, device, direction, offset, bytes)?;
        if !flushes {
            return Ok(parsed);
        }
        self.second = parsed.map(|record| Record { after_flush: true, ..record });
        request(at, device, Direction::Flush, 0, 0)
    }

    fn second(&mut self) -> Option<Record> {
        self.second.take()
    }
}

/// Whether this is "8,32".
pub(crate) fn is_pair(text: &[u8]) -> bool {
    let number = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    let comma = text.iter().position(|byte| *byte == b',');
    comma.is_some_and(|comma| number(&text[..comma]) && number(&text[comma + 1..]))
}

pub(crate) fn writer(action: Action) -> Writer {
    let mut sequence = 0u64;
    // A flush, until the next request shows whether it waits for the flush and both are one line.
    let mut flush = None;
    Box::new(move |part, out| {
        let mut line = |text: String| {
            sequence += 1;
            let _ = writeln!(out, "{}", text.replacen('#', &format!("{sequence:>8}"), 1));
        };
        let row = match part {
            Part::Row(row) => row,
            Part::Head(_) | Part::End(_) => return flush.take().into_iter().for_each(line),
        };
        match flush.take() {
            Some(flush) if !row.after_flush => line(flush),
            _ => {}
        }
        match row.direction {
            Direction::Flush => flush = Some(event(&row, action)),
            _ => line(event(&row, action)),
        }
    })
}

/// The event of a request, with `#` for its sequence number.
fn event(row: &Row<'_>, action: Action) -> String {
    let (s, ns) = (row.at / 1_000_000_000, row.at % 1_000_000_000);
    let kind = match row.direction {
        Direction::Read => "R",
        Direction::Write => "W",
        Direction::Fua => "WF",
        Direction::Trim => "D",
        Direction::Flush => "FN",
    };
    let kind = format!("{}{kind}", if row.after_flush { "F" } else { "" });
    let place = match row.direction {
        Direction::Flush => String::new(),
        _ => format!("{} + {} ", row.offset, row.size),
    };
    let (disk, letter) = (&row.device.disk, action.letter());
    format!("{disk:>6} {:>2} # {s:>5}.{ns:09} {:>5}  {letter} {kind:>3} {place}[0]", 0, 0)
}
