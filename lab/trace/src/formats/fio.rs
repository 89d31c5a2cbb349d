//! The common part of both versions of fio's I/O log: the header, files, and actions.

use nandscape_lab_workload::Direction;

use crate::devices::Devices;
use crate::fields::{LineError, Parsed, request, whole};

/// Checks the header in the first line; `Ok(true)` if this line is the header.
pub(crate) fn header(seen: &mut bool, line: &[u8], header: &str) -> Result<bool, LineError> {
    if std::mem::replace(seen, true) {
        return Ok(false);
    }
    match line.trim_ascii() == header.as_bytes() {
        true => Ok(true),
        false => Err(LineError::not("the first line", line, &format!("the header, \"{header}\""))),
    }
}

/// The request of `file action [offset length]` at this time; `None` for file actions such as `open`.
pub(crate) fn action<'a>(
    at: u64,
    file: &[u8],
    action: &[u8],
    mut rest: impl Iterator<Item = &'a [u8]>,
    layout: &str,
    devices: &mut Devices,
) -> Parsed {
    let direction = match action {
        b"read" => Direction::Read,
        b"write" => Direction::Write,
        b"trim" => Direction::Trim,
        b"sync" | b"datasync" => return request(at, devices.of(b"", file)?, Direction::Flush, 0, 0),
        b"add" | b"open" | b"close" | b"unlink" | b"sync_file_range" => return Ok(None),
        _ => {
            let expected = "add, open, close, read, write, sync, datasync, trim or, in version 2, wait";
            return Err(LineError::not("the action", action, expected));
        }
    };
    let mut number = |name| match rest.next() {
        Some(text) => whole(name, text),
        None => Err(LineError::missing(name, layout)),
    };
    let (offset, bytes) = (number("the offset")?, number("the length")?);
    if rest.next().is_some() {
        return Err(LineError(format!("has too many fields; a line is {layout}")));
    }
    request(at, devices.of(b"", file)?, direction, offset, bytes)
}

/// The word of a direction.
pub(crate) fn word(direction: Direction) -> &'static str {
    match direction {
        Direction::Read => "read",
        Direction::Write | Direction::Fua => "write",
        Direction::Trim => "trim",
        Direction::Flush => "sync",
    }
}
