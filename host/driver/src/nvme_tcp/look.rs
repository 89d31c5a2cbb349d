//! A look at a drive when it is connected to again, before the commands that wait go on: whether it is still what its user takes it for. A drive
//! that was started anew may have lost what it held, and another host may be on it by now.
//!
//! Left out: a look when the drive is connected to first, where its user can send commands of its own.

use std::sync::Arc;

use nandscape_wire_nvme::sgl::SglDescriptor;
use nandscape_wire_nvme::{Status, SubmissionEntry};

use super::establish::{ConnectError, Link};

/// Executes an I/O command of the look, with data for the drive and room in bytes for data of it, up to 4 KiB each: its status, and what it
/// returns.
pub type Execute<'a> = &'a mut dyn FnMut(SubmissionEntry, &[u8], usize) -> Result<(Status, Vec<u8>), String>;

/// The look. It runs on a thread of its own.
pub type Look = Arc<dyn Fn(Execute<'_>) -> Result<(), Refusal> + Send + Sync>;

/// Why a drive is not used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// It may be used later: the connection is tried again while there is patience.
    ForNow(String),
    /// It is not what it was: commands that wait fail at once.
    ForGood(String),
}

impl From<String> for Refusal {
    fn from(problem: String) -> Refusal {
        Refusal::ForNow(problem)
    }
}

/// Takes the look by a connection of an I/O queue that is not in use yet.
pub(super) fn take(link: &mut Link, look: &Look) -> Result<(), ConnectError> {
    link.stream.set_nonblocking(false)?;
    let result = look(&mut |entry, data, room| {
        let sgl = match data.len() {
            0 => SglDescriptor::transport(room as u32),
            bytes if bytes <= link.in_capsule as usize => SglDescriptor::in_capsule(bytes as u32),
            _ => return Err("its capsules hold no data".to_owned()),
        };
        let (completion, returned) =
            link.execute(entry.with_sgl(sgl), data, room).map_err(|error| error.to_string())?;
        Ok((completion.status(), returned))
    });
    link.stream.set_nonblocking(true)?;
    result.map_err(|refusal| match refusal {
        Refusal::ForNow(problem) => ConnectError::Unusable(problem),
        Refusal::ForGood(problem) => ConnectError::NotItself(problem),
    })
}
