//! A mark by which hosts of an open-channel drive see one another: that of any drive ([`nandscape_drive::mark`]).
//!
//! Left out: hosts that reach the drive by the same controller.

use nandscape_drive::mark;

use crate::drive::{Error, OpenChannel};

impl OpenChannel {
    /// Marks the drive as used by this host. It stays so until the host is unregistered or the drive is reset.
    ///
    /// # Errors
    /// Invalid Command Opcode of a drive without reservations, or Reservation Conflict where this host has another mark.
    pub async fn mark(&self, key: u64) -> Result<(), Error> {
        Ok(mark::mark(self.issuer(), self.drive(), key).await?)
    }

    /// How many controllers hosts with this mark have now, those of this host among them.
    ///
    /// # Errors
    /// The status of the command: Invalid Command Opcode of a drive without reservations.
    pub async fn marked(&self, key: u64) -> Result<usize, Error> {
        Ok(mark::marked(self.issuer(), self.drive(), key).await?)
    }
}
