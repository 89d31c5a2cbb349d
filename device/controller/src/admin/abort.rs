//! Abort (Base 5.1.1): ends a command that has not been fetched, or that waits inside the controller: for room in the write
//! buffer, for its data to reach the flash, for an event. A command that uses the flash or the link is not aborted, since it
//! ends soon.

use nandscape_drive::{Breakdown, QueueId};
use nandscape_wire_nvme::{Status, SubmissionEntry};

use crate::command_set::CommandSet;
use crate::engine::NvmeController;

impl<C: CommandSet> NvmeController<C> {
    /// Aborts the command that an entry names; whether it was.
    pub(super) fn abort_named(&self, entry: &SubmissionEntry) -> bool {
        let (id, cid) = (QueueId(entry.cdw10.get() as u16), (entry.cdw10.get() >> 16) as u16);
        self.abort_command(id, cid)
    }

    /// Aborts a command of a queue; whether it was.
    pub(crate) fn abort_command(&self, id: QueueId, cid: u16) -> bool {
        let Some(queue) = self.queues.borrow().key(id) else { return false };
        if id == QueueId::ADMIN && self.admin.events.abort(queue, cid) {
            self.complete(queue, cid, Err(Status::ABORT_REQUESTED).into(), Breakdown::new());
            return true;
        }
        self.waiters.stop(Status::ABORT_REQUESTED, |waiting, each| (waiting, each) == (queue, cid))
            || self.queues.borrow_mut().abort_unfetched(queue, cid)
    }
}
