//! Commands to a drive, and the reason where one is rejected.

use std::rc::Rc;

use nandscape_drive::{Completion, Drive, HostMem, Issuer};
use nandscape_sim::Sim;
use nandscape_wire_nvme::SubmissionEntry;
use nandscape_wire_nvme::identify::{self, cns};
use zerocopy::FromBytes;

use crate::Error;

/// A queue of a drive.
pub(crate) struct Admin {
    issuer: Issuer,
    queue: Rc<dyn Drive>,
}

impl Admin {
    pub(crate) fn new(sim: &Sim, queue: Rc<dyn Drive>) -> Admin {
        Admin { issuer: Issuer::new(sim), queue }
    }

    pub(crate) async fn execute(&self, entry: SubmissionEntry, mem: &HostMem) -> Result<Completion, Error> {
        let ended = self.issuer.execute(&*self.queue, entry, mem.clone()).await;
        if ended.status.is_success() { Ok(ended) } else { Err(Error::Rejected(ended.status.meaning())) }
    }

    /// Identify Controller.
    pub(crate) async fn identify(&self) -> Result<Option<identify::Controller>, Error> {
        let mem = HostMem::zeroed(size_of::<identify::Controller>());
        self.execute(SubmissionEntry::identify(cns::CONTROLLER, 0), &mem).await?;
        Ok(identify::Controller::read_from_bytes(&mem.to_vec()).ok())
    }
}
