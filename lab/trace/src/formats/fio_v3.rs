//! fio's I/O log, version 3: a time before each action, in microseconds since the run began. There is no `wait`.

use std::io::Write as _;

use nandscape_lab_workload::Direction;

use crate::devices::Devices;
use crate::fields::{LineError, Parsed, Words, time};
use crate::format::{Disks, Facts, Part};
use crate::formats::fio;

pub(crate) const FACTS: Facts = Facts {
    name: "fio-v3",
    layout: "time file action offset length with microseconds, bytes, or time file add|open|close",
    time_ns: 1_000,
    unit_bytes: 1,
    directions: &Direction::DISTINCT,
    hosts: false,
    disks: Disks::Words,
};

const HEADER: &str = "fio version 3 iolog";

#[derive(Default)]
pub(crate) struct Parser {
    begun: bool,
}

impl crate::format::Parser for Parser {
    fn line(&mut self, line: &[u8], devices: &mut Devices) -> Parsed {
        if fio::header(&mut self.begun, line, HEADER)? {
            return Ok(None);
        }
        let mut words = Words(line);
        let mut word = |name: &str| words.next().ok_or_else(|| LineError::missing(name, FACTS.layout));
        let at = time("the time", word("the time")?, 1_000)?;
        let (file, action) = (word("the file")?, word("the action")?);
        fio::action(at, file, action, words, FACTS.layout, devices)
    }
}

pub(crate) fn write(part: Part<'_>, out: &mut Vec<u8>) {
    let _ = match part {
        Part::Head(devices) => {
            let _ = writeln!(out, "{HEADER}");
            devices.iter().try_for_each(|device| writeln!(out, "0 {0} add\n0 {0} open", device.disk))
        }
        Part::Row(row) => {
            let (file, word) = (&row.device.disk, fio::word(row.direction));
            writeln!(out, "{} {file} {word} {} {}", row.at, row.offset, row.size)
        }
        Part::End(_) => Ok(()),
    };
}
