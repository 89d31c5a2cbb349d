//! FIU's traces of deduplication: nanoseconds, sectors of 512 bytes, R and W. A disk is its major and minor number. The
//! process may have blanks in its name, and the hash of the content may be missing: fields are counted from the type.

use std::io::Write as _;

use nandscape_lab_workload::Direction;

use crate::devices::Devices;
use crate::fields::{LineError, Parsed, Words, read_or_write, request, sectors, whole};
use crate::format::{Disks, Facts, Part, READS_WRITES};

pub(crate) const FACTS: Facts = Facts {
    name: "fiu",
    layout: "time pid process lba size type major minor hash with nanoseconds, sectors of 512 bytes, R or W",
    time_ns: 1,
    unit_bytes: 512,
    directions: READS_WRITES,
    hosts: false,
    disks: Disks::Pairs,
};

/// The most words in a line.
const MOST: usize = 32;

pub(crate) fn parse(line: &[u8], devices: &mut Devices) -> Parsed {
    let mut words = [&b""[..]; MOST];
    let mut count = 0;
    for word in Words(line) {
        *words.get_mut(count).ok_or_else(|| LineError(format!("has more than {MOST} words")))? = word;
        count += 1;
    }
    let words = &words[..count];
    let kind = words.iter().rposition(|word| matches!(word, [b'R' | b'W' | b'r' | b'w']));
    let Some(kind) = kind.filter(|kind| *kind >= 5) else {
        return match words.get(5) {
            Some(kind) => Err(LineError::not("the type", kind, "R or W")),
            None => Err(LineError::missing("the type", FACTS.layout)),
        };
    };
    let [major, minor] = [("the major number", kind + 1), ("the minor number", kind + 2)]
        .map(|(name, at)| words.get(at).copied().ok_or_else(|| LineError::missing(name, FACTS.layout)));
    let (major, minor) = (major?, minor?);
    if count > kind + 4 {
        return Err(LineError(format!("has more than one field behind the minor number; a line is {}", FACTS.layout)));
    }
    let direction = read_or_write("the type", words[kind], b'R', b'W', "R or W")?;
    whole("the pid", words[1])?;
    let at = whole("the time", words[0])?;
    let (offset, size) = (sectors("the lba", words[kind - 2])?, sectors("the size", words[kind - 1])?);
    let number = |name: &str, text| match whole(name, text)? {
        number if number < 1 << 32 => Ok(number),
        _ => Err(LineError::not(name, text, "below 2^32")),
    };
    let (major, minor) = (number("the major number", major)?, number("the minor number", minor)?);
    let mut pair = [0; 24];
    let name = pair_of(major, minor, &mut pair);
    request(at, devices.of(b"", name)?, direction, offset, size)
}

/// "8,32", without an allocation.
fn pair_of(major: u64, minor: u64, buffer: &mut [u8; 24]) -> &[u8] {
    let mut rest = &mut buffer[..];
    let _ = write!(rest, "{major},{minor}");
    let left = rest.len();
    &buffer[..24 - left]
}

pub(crate) fn write(part: Part<'_>, out: &mut Vec<u8>) {
    let Part::Row(row) = part else { return };
    let kind = if row.direction == Direction::Read { 'R' } else { 'W' };
    let (major, minor) = row.device.disk.split_once(',').unwrap_or(("0", "0"));
    let _ = writeln!(out, "{} 0 - {} {} {kind} {major} {minor} 0", row.at, row.offset, row.size);
}
