//! A drive behind a vfio-user socket. The host polls: the server posts completions to shared memory, without interrupts.

use std::os::fd::BorrowedFd;

use nandscape_drive::{Drive, DriveInfo, Io};
use nandscape_host_driver::vfio_user::FunctionDrive;
use nandscape_host_driver::{Lost, Pending};
use rustix::event::PollFlags;

use super::pacer::Source;

/// See the module.
pub(super) struct Polled(pub(super) FunctionDrive);

impl Drive for Polled {
    fn info(&self) -> DriveInfo {
        self.0.info()
    }

    fn submit(&self, io: Io) {
        self.0.submit(io);
    }
}

impl Source for Polled {
    fn poll(&self) -> Result<bool, Lost> {
        self.0.poll()
    }

    fn pending(&self) -> Pending {
        self.0.pending()
    }

    fn socket(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        None
    }
}
