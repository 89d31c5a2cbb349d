//! fio's I/O log, version 2: files by name, bytes, and time only through `wait`, in microseconds after the previous
//! wait. A file needs no `add` or `open`.

use std::io::Write as _;

use nandscape_lab_workload::Direction;

use crate::devices::Devices;
use crate::fields::{LineError, Parsed, Words, whole};
use crate::format::{Disks, Facts, Part, Writer};
use crate::formats::fio;

pub(crate) const FACTS: Facts = Facts {
    name: "fio-v2",
    layout: "file action offset length with bytes, or file wait microseconds, or file add|open|close",
    time_ns: 1_000,
    unit_bytes: 1,
    directions: &Direction::DISTINCT,
    hosts: false,
    disks: Disks::Words,
};

const HEADER: &str = "fio version 2 iolog";

#[derive(Default)]
pub(crate) struct Parser {
    begun: bool,
    /// The waits so far, in nanoseconds.
    at: u64,
}

impl crate::format::Parser for Parser {
    fn line(&mut self, line: &[u8], devices: &mut Devices) -> Parsed {
        if fio::header(&mut self.begun, line, HEADER)? {
            return Ok(None);
        }
        let mut words = Words(line);
        let mut word = |name: &str| words.next().ok_or_else(|| LineError::missing(name, FACTS.layout));
        let (file, action) = (word("the file")?, word("the action")?);
        if action == b"wait" {
            let us = whole("the wait", word("the wait")?)?;
            let at = us.checked_mul(1_000).and_then(|ns| ns.checked_add(self.at));
            self.at = at.ok_or_else(|| LineError(format!("a wait of {us} us exceeds 584 years")))?;
            return Ok(None);
        }
        fio::action(self.at, file, action, words, FACTS.layout, devices)
    }
}

pub(crate) fn writer() -> Writer {
    let mut now = 0;
    Box::new(move |part, out| match part {
        Part::Head(devices) => {
            let _ = writeln!(out, "{HEADER}");
            for device in devices {
                let _ = writeln!(out, "{0} add\n{0} open", device.disk);
            }
        }
        Part::Row(row) => {
            let file = &row.device.disk;
            if row.at > now {
                let _ = writeln!(out, "{file} wait {} 0", row.at - now);
                now = row.at;
            }
            let _ = writeln!(out, "{file} {} {} {}", fio::word(row.direction), row.offset, row.size);
        }
        Part::End(devices) => devices.iter().for_each(|device| {
            let _ = writeln!(out, "{} close", device.disk);
        }),
    })
}
