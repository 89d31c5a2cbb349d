//! Tencent's CBS traces: whole seconds and sectors of 512 bytes. 0 is a read, 1 a write. The requests of a second are
//! spread evenly over it ([`spread`](crate::spread)), since all have its start as their time.

use std::io::Write as _;

use nandscape_lab_workload::Direction;

use crate::devices::Devices;
use crate::fields::{Csv, Parsed, exactly, read_or_write, request, sectors, time, whole};
use crate::format::{Disks, Facts, Part, READS_WRITES};

pub(crate) const FACTS: Facts = Facts {
    name: "tencent",
    layout: "Timestamp,Offset,Size,IOType,VolumeID with seconds, sectors of 512 bytes, 0 for a read and 1 for a write",
    time_ns: 1_000_000_000,
    unit_bytes: 512,
    directions: READS_WRITES,
    hosts: false,
    disks: Disks::Words,
};

pub(crate) fn parse(line: &[u8], devices: &mut Devices) -> Parsed {
    let names = ["the time", "the offset", "the size", "the type", "the volume"];
    let [at, lba, size, kind, disk] = exactly(Csv(Some(line)), names, FACTS.layout)?;
    let direction = read_or_write("the type", kind, b'0', b'1', "0 for a read or 1 for a write")?;
    // A whole number: a time with a fraction would be another format, and would not need spreading.
    whole("the time", at)?;
    let at = time("the time", at, 1_000_000_000)?;
    request(at, devices.of(b"", disk)?, direction, sectors("the offset", lba)?, sectors("the size", size)?)
}

pub(crate) fn write(part: Part<'_>, out: &mut Vec<u8>) {
    let Part::Row(row) = part else { return };
    let kind = u8::from(row.direction != Direction::Read);
    let _ = writeln!(out, "{},{},{},{kind},{}", row.at, row.offset, row.size, row.device.disk);
}
