//! MQSim's traces: DiskSim's five columns, but nanoseconds. Addresses and sizes are sectors of 512 bytes. 1 is a read,
//! 0 a write.

use std::io::Write as _;

use nandscape_lab_workload::Direction;

use crate::devices::Devices;
use crate::fields::{Parsed, Words, exactly, read_or_write, request, sectors, whole};
use crate::format::{Disks, Facts, Part, READS_WRITES};

pub(crate) const FACTS: Facts = Facts {
    name: "mqsim",
    layout: "time device lba size type with nanoseconds, sectors of 512 bytes, 1 for a read and 0 for a write",
    time_ns: 1,
    unit_bytes: 512,
    directions: READS_WRITES,
    hosts: false,
    disks: Disks::Numbers,
};

pub(crate) fn parse(line: &[u8], devices: &mut Devices) -> Parsed {
    let names = ["the time", "the device", "the lba", "the size", "the type"];
    let [at, disk, lba, size, kind] = exactly(Words(line), names, FACTS.layout)?;
    let direction = read_or_write("the type", kind, b'1', b'0', "1 for a read or 0 for a write")?;
    whole("the device", disk)?;
    let (at, offset, size) = (whole("the time", at)?, sectors("the lba", lba)?, sectors("the size", size)?);
    request(at, devices.of(b"", disk)?, direction, offset, size)
}

pub(crate) fn write(part: Part<'_>, out: &mut Vec<u8>) {
    let Part::Row(row) = part else { return };
    let read = u8::from(row.direction == Direction::Read);
    let _ = writeln!(out, "{} {} {} {} {read}", row.at, row.device.disk, row.offset, row.size);
}
