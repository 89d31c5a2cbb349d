//! The format of FEMU's trace replayer: five columns, milliseconds and bytes. 1 is a read, 0 a write.

use std::io::Write as _;

use nandscape_lab_workload::Direction;

use crate::devices::Devices;
use crate::fields::{Parsed, Words, exactly, read_or_write, request, time, whole};
use crate::format::{Disks, Facts, Part, READS_WRITES};

pub(crate) const FACTS: Facts = Facts {
    name: "replay",
    layout: "time disk offset size type with milliseconds, bytes, 1 for a read and 0 for a write",
    time_ns: 1_000,
    unit_bytes: 1,
    directions: READS_WRITES,
    hosts: false,
    disks: Disks::Numbers,
};

pub(crate) fn parse(line: &[u8], devices: &mut Devices) -> Parsed {
    let names = ["the time", "the disk", "the offset", "the size", "the type"];
    let [at, disk, offset, size, kind] = exactly(Words(line), names, FACTS.layout)?;
    let direction = read_or_write("the type", kind, b'1', b'0', "1 for a read or 0 for a write")?;
    whole("the disk", disk)?;
    let (at, offset, size) = (time("the time", at, 1_000_000)?, whole("the offset", offset)?, whole("the size", size)?);
    request(at, devices.of(b"", disk)?, direction, offset, size)
}

/// Milliseconds with three decimals, as in published traces of this format.
pub(crate) fn write(part: Part<'_>, out: &mut Vec<u8>) {
    let Part::Row(row) = part else { return };
    let read = u8::from(row.direction == Direction::Read);
    let (ms, us) = (row.at / 1_000, row.at % 1_000);
    let _ = writeln!(out, "{ms}.{us:03} {} {} {} {read}", row.device.disk, row.offset, row.size);
}
