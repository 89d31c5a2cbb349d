//! DiskSim's ASCII traces: milliseconds as a decimal, sectors of 512 bytes, and hexadecimal flags whose lowest bit
//! marks a read.

use std::io::Write as _;

use nandscape_lab_workload::Direction;

use crate::devices::Devices;
use crate::fields::{LineError, Parsed, Words, exactly, request, sectors, time, whole};
use crate::format::{Disks, Facts, Part, READS_WRITES};

pub(crate) const FACTS: Facts = Facts {
    name: "disksim",
    layout: "time device lba size flags with milliseconds, sectors of 512 bytes, and the lowest bit of the flags set for a read",
    time_ns: 1_000,
    unit_bytes: 512,
    directions: READS_WRITES,
    hosts: false,
    disks: Disks::Numbers,
};

pub(crate) fn parse(line: &[u8], devices: &mut Devices) -> Parsed {
    let names = ["the time", "the device", "the lba", "the size", "the flags"];
    let [at, disk, lba, size, flags] = exactly(Words(line), names, FACTS.layout)?;
    let bits = std::str::from_utf8(flags).ok().filter(|text| !text.starts_with('+'));
    let bits = bits.and_then(|text| u32::from_str_radix(text, 16).ok());
    let bits = bits.ok_or_else(|| LineError::not("the flags", flags, "a hexadecimal number"))?;
    let direction = if bits & 1 == 1 { Direction::Read } else { Direction::Write };
    whole("the device", disk)?;
    let (at, offset, size) = (time("the time", at, 1_000_000)?, sectors("the lba", lba)?, sectors("the size", size)?);
    request(at, devices.of(b"", disk)?, direction, offset, size)
}

pub(crate) fn write(part: Part<'_>, out: &mut Vec<u8>) {
    let Part::Row(row) = part else { return };
    let read = u8::from(row.direction == Direction::Read);
    let (ms, us) = (row.at / 1_000, row.at % 1_000);
    let _ = writeln!(out, "{ms}.{us:03} {} {} {} {read}", row.device.disk, row.offset, row.size);
}
