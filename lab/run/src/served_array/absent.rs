//! A member that is unreachable when its array is opened: each command fails, so that the array continues without it.

use nandscape_drive::{Completion, Drive, DriveInfo, Io};
use nandscape_wire_nvme::Status;

/// See the file.
pub(super) struct Absent(pub(super) DriveInfo);

impl Drive for Absent {
    fn info(&self) -> DriveInfo {
        self.0
    }

    fn submit(&self, io: Io) {
        io.token.complete(Completion::of(Status::HOST_PATHING_ERROR));
    }
}
