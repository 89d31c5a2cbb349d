//! SPC traces, in the variant of the UMass repository: addresses in blocks of 512 bytes, sizes in bytes, seconds as a
//! decimal. Fields after the fifth are optional in the format, and are ignored.

use std::io::Write as _;

use nandscape_lab_workload::Direction;

use crate::devices::Devices;
use crate::fields::{Csv, LineError, Parsed, read_or_write, request, sectors, time, whole};
use crate::format::{Disks, Facts, Part, READS_WRITES};

pub(crate) const FACTS: Facts = Facts {
    name: "spc",
    layout: "ASU,LBA,Size,Opcode,Timestamp with blocks of 512 bytes, bytes, R or W, seconds",
    time_ns: 1_000,
    // Of the LBA; sizes are bytes.
    unit_bytes: 512,
    directions: READS_WRITES,
    hosts: false,
    disks: Disks::Numbers,
};

pub(crate) fn parse(line: &[u8], devices: &mut Devices) -> Parsed {
    let mut fields = Csv(Some(line));
    let mut field = |name: &str| fields.next().ok_or_else(|| LineError::missing(name, FACTS.layout));
    let (disk, lba) = (field("the ASU")?, field("the LBA")?);
    let (size, kind, at) = (field("the size")?, field("the opcode")?, field("the time")?);
    let direction = read_or_write("the opcode", kind, b'R', b'W', "R or W")?;
    whole("the ASU", disk)?;
    let (at, offset, size) = (time("the time", at, 1_000_000_000)?, sectors("the LBA", lba)?, whole("the size", size)?);
    request(at, devices.of(b"", disk)?, direction, offset, size)
}

pub(crate) fn write(part: Part<'_>, out: &mut Vec<u8>) {
    let Part::Row(row) = part else { return };
    let kind = if row.direction == Direction::Read { 'R' } else { 'W' };
    let (s, us) = (row.at / 1_000_000, row.at % 1_000_000);
    let _ = writeln!(out, "{},{},{},{kind},{s}.{us:06}", row.device.disk, row.offset, row.size * 512);
}
