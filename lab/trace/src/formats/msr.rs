//! MSR Cambridge CSV. Times are Windows file times: ticks of 100 ns since 1601. Sizes and offsets are bytes. The
//! response time is ignored.

use std::io::Write as _;

use nandscape_lab_workload::Direction;

use crate::devices::Devices;
use crate::fields::{Csv, LineError, Parsed, exactly, request, time, whole};
use crate::format::{Disks, Facts, Part, READS_WRITES};

pub(crate) const FACTS: Facts = Facts {
    name: "msr",
    layout: "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime with ticks of 100 ns, Read or Write, bytes",
    time_ns: 100,
    unit_bytes: 1,
    directions: READS_WRITES,
    hosts: true,
    disks: Disks::Words,
};

pub(crate) fn parse(line: &[u8], devices: &mut Devices) -> Parsed {
    let names = ["the time", "the host", "the disk", "the type", "the offset", "the size", "the response time"];
    let [at, host, disk, kind, offset, size, _] = exactly(Csv(Some(line)), names, FACTS.layout)?;
    let direction = match kind {
        _ if kind.eq_ignore_ascii_case(b"read") => Direction::Read,
        _ if kind.eq_ignore_ascii_case(b"write") => Direction::Write,
        _ => return Err(LineError::not("the type", kind, "Read or Write")),
    };
    let (at, offset, size) = (time("the time", at, 100)?, whole("the offset", offset)?, whole("the size", size)?);
    request(at, devices.of(host, disk)?, direction, offset, size)
}

pub(crate) fn write(part: Part<'_>, out: &mut Vec<u8>) {
    let Part::Row(row) = part else { return };
    let host = if row.device.host.is_empty() { "host" } else { &row.device.host };
    let kind = if row.direction == Direction::Read { "Read" } else { "Write" };
    let _ = writeln!(out, "{},{host},{},{kind},{},{},0", row.at, row.device.disk, row.offset, row.size);
}
