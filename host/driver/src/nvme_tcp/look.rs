//! A check of a drive after reconnection, before waiting commands continue: whether it is still the drive that its
//! user expects. A restarted drive may have lost its contents, and another host may use it by now.
//!
//! Left out: a check at the first connection, when the user can send commands.

use std::sync::Arc;

use nandscape_wire_nvme::sgl::SglDescriptor;
use nandscape_wire_nvme::{Status, SubmissionEntry};

use super::establish::{ConnectError, Link};

/// Executes an I/O command of the check, with data for the drive and room for returned data, up to 4 KiB each.
/// Returns the status and the data.
pub type Execute<'a> = &'a mut dyn FnMut(SubmissionEntry, &[u8], usize) -> Result<(Status, Vec<u8>), String>;

/// The check. It runs on its own thread.
pub type Look = Arc<dyn Fn(Execute<'_>) -> Result<(), Refusal> + Send + Sync>;

/// Why a drive is not used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// It may be usable later: the connection is retried within the patience.
    ForNow(String),
    /// It is a different drive: waiting commands fail at once.
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
