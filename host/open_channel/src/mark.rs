//! A mark that hosts of an open-channel drive set to find one another, as on any drive ([`nandscape_drive::mark`]).
//!
//! Left out: several hosts on the same controller.

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

    /// The number of controllers of hosts with this mark now, including this host's.
    ///
    /// # Errors
    /// The status of the command: Invalid Command Opcode from a drive without reservations.
    pub async fn marked(&self, key: u64) -> Result<usize, Error> {
        Ok(mark::marked(self.issuer(), self.drive(), key).await?)
    }
}
