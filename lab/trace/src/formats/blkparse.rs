//! Text that blkparse prints by default. Of the many actions of a request one is kept: Q (queued) or D (issued to the
//! driver). Other actions, messages, requests without an address such as pass-through commands, and the summary at the
//! end are ignored. A write with a flush before it (`FW`) or forced unit access is read as the write alone.

use std::io::Write as _;

use nandscape_lab_workload::Direction;

use crate::devices::Devices;
use crate::fields::{LineError, Parsed, Words, request, sectors, time};
use crate::format::{Action, Disks, Facts, Part, Writer};

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
}

impl Parser {
    pub(crate) fn new(action: Action) -> Parser {
        Parser { action: [action.letter() as u8], summary: false }
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
        let direction = match kind.get(usize::from(flushes)) {
            _ if flushes && bytes == 0 => Direction::Flush,
            Some(b'R') => Direction::Read,
            Some(b'W') => Direction::Write,
            Some(b'D') => Direction::Trim,
            Some(b'N') => return Ok(None),
            _ => return Err(LineError::not("the type", kind, "one with R, W, D, F or N")),
        };
        let offset = if direction == Direction::Flush { 0 } else { offset };
        request(at, devices.of(b"", disk)?, direction, offset, bytes)
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
    Box::new(move |part, out| {
        let Part::Row(row) = part else { return };
        sequence += 1;
        let (s, ns) = (row.at / 1_000_000_000, row.at % 1_000_000_000);
        let kind = match row.direction {
            Direction::Read => "R",
            Direction::Write | Direction::Fua => "W",
            Direction::Trim => "D",
            Direction::Flush => "FN",
        };
        let place = match row.direction {
            Direction::Flush => String::new(),
            _ => format!("{} + {} ", row.offset, row.size),
        };
        let (disk, letter) = (&row.device.disk, action.letter());
        let _ =
            writeln!(out, "{disk:>6} {:>2} {sequence:>8} {s:>5}.{ns:09} {:>5}  {letter} {kind:>3} {place}[0]", 0, 0);
    })
}
