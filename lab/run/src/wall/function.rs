//! A drive behind a vfio-user socket. Its completions are in shared memory: they are polled for, or signal an event descriptor.

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

    fn sockets(&self) -> Option<Vec<(BorrowedFd<'_>, PollFlags)>> {
        let (event, connection) = self.0.signal()?;
        // The end of the connection shows without being asked for.
        Some(vec![(event, PollFlags::IN), (connection, PollFlags::empty())])
    }

    fn woken(&self) {
        if self.0.signal().is_some() {
            self.0.take_signal();
        }
    }
}
