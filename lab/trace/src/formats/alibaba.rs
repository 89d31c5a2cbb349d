//! Alibaba's block traces: bytes and microseconds, R and W.

use std::io::Write as _;

use nandscape_lab_workload::Direction;

use crate::devices::Devices;
use crate::fields::{Csv, Parsed, exactly, read_or_write, request, time, whole};
use crate::format::{Disks, Facts, Part, READS_WRITES};

pub(crate) const FACTS: Facts = Facts {
    name: "alibaba",
    layout: "device_id,opcode,offset,length,timestamp with R or W, bytes, microseconds",
    time_ns: 1_000,
    unit_bytes: 1,
    directions: READS_WRITES,
    hosts: false,
    disks: Disks::Words,
};

pub(crate) fn parse(line: &[u8], devices: &mut Devices) -> Parsed {
    let names = ["the device", "the opcode", "the offset", "the length", "the time"];
    let [disk, kind, offset, size, at] = exactly(Csv(Some(line)), names, FACTS.layout)?;
    let direction = read_or_write("the opcode", kind, b'R', b'W', "R or W")?;
    let (at, offset, size) = (time("the time", at, 1_000)?, whole("the offset", offset)?, whole("the length", size)?);
    request(at, devices.of(b"", disk)?, direction, offset, size)
}

pub(crate) fn write(part: Part<'_>, out: &mut Vec<u8>) {
    let Part::Row(row) = part else { return };
    let kind = if row.direction == Direction::Read { 'R' } else { 'W' };
    let _ = writeln!(out, "{},{kind},{},{},{}", row.device.disk, row.offset, row.size, row.at);
}
