//! Abort (Base 5.1.1): ends a command that is not fetched yet, or that waits inside the controller for room in the write
//! buffer, for its data to reach the flash, or for an event. A command that uses the flash or the link ends soon, so Abort
//! leaves it alone.

use nandscape_drive::breakdown::Stage;
use nandscape_drive::{Breakdown, QueueId};
use nandscape_sim::Span;
use nandscape_wire_nvme::{Status, SubmissionEntry};

use super::{ABORTS, Answer};
use crate::engine::{NvmeController, QueueKey, Search};
use crate::refusal::Refusal;

/// Entries of a submission queue that the firmware searches in one step, and the time of each further step. An unbroken
/// search of tens of thousands of entries would delay all hosts of a live drive.
const STEP: u32 = 64;
const STEP_TIME: Span = Span::from_us(1);

impl NvmeController {
    /// Serves Abort. DW0 reports whether the command was aborted.
    pub(super) async fn serve_abort(
        &self,
        entry: &SubmissionEntry,
        breakdown: &mut Breakdown,
    ) -> Result<Answer, Refusal> {
        let (id, cid) = (QueueId(entry.cdw10.get() as u16), (entry.cdw10.get() >> 16) as u16);
        let under_way = &self.admin.aborts;
        if under_way.get() == ABORTS {
            return Err(Status::ABORT_LIMIT_EXCEEDED.into());
        }
        under_way.set(under_way.get() + 1);
        let begun = self.sim.now();
        let aborted = self.search_and_abort(id, cid).await;
        under_way.set(under_way.get() - 1);
        breakdown.spend(Stage::Firmware, self.sim.now() - begun);
        Ok(Answer::value(u32::from(!aborted)))
    }

    async fn search_and_abort(&self, id: QueueId, cid: u16) -> bool {
        let Some(queue) = self.queues.borrow().key(id) else { return false };
        if self.abort_waiting(queue, cid) {
            return true;
        }
        let (mut from, mut left) = (None, self.subsystem.config.max_queue_entries);
        loop {
            match self.queues.borrow_mut().abort_unfetched(queue, cid, from, STEP) {
                Search::Unfinished(next) if left > STEP => (from, left) = (Some(next), left - STEP),
                // The command may have been fetched meanwhile.
                found => return found == Search::Found || self.abort_waiting(queue, cid),
            }
            self.sim.sleep(STEP_TIME).await;
        }
    }

    /// Aborts a command of a queue in memory of this process. Returns whether it was aborted.
    pub(crate) fn abort_at_once(&self, id: QueueId, cid: u16) -> bool {
        let Some(queue) = self.queues.borrow().key(id) else { return false };
        self.abort_waiting(queue, cid)
            || self.queues.borrow_mut().abort_unfetched(queue, cid, None, u32::MAX) == Search::Found
    }

    /// Aborts a command that waits in the controller. Returns whether it was aborted.
    fn abort_waiting(&self, queue: QueueKey, cid: u16) -> bool {
        if queue.id == QueueId::ADMIN && self.admin.events.abort(queue, cid) {
            self.complete(queue, cid, Err(Status::ABORT_REQUESTED).into(), Breakdown::new());
            return true;
        }
        self.waiters.stop(Status::ABORT_REQUESTED, |waiting, each| (waiting, each) == (queue, cid))
    }
}
