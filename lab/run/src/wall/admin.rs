//! The admin queue of a drive of this process, as one more drive of its reactor: commands to it are admin commands. Its clients
//! share it.
//!
//! Left out: recordings, which know no admin commands of such connections.

use std::rc::Rc;

use nandscape_drive::{Drive, DriveInfo, QueueDrive};
use nandscape_transport_reactor::{Connect, Export};
use nandscape_wire_nvme::Status;

/// See the file.
pub(super) struct Admin(pub(super) Rc<QueueDrive>);

impl Connect for Admin {
    fn info(&self) -> DriveInfo {
        // Admin commands transfer no blocks with metadata.
        DriveInfo { metadata_bytes: 0, ..self.0.info() }
    }

    /// Nothing is flushed at the end.
    fn namespaces(&self) -> Vec<DriveInfo> {
        Vec::new()
    }

    fn connect(&self) -> Result<Rc<dyn Drive>, Status> {
        Ok(self.0.clone())
    }
}

impl Export for Admin {}
