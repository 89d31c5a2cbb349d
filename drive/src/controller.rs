//! A drive as a set of queue pairs: what host drivers, completion strategies and guests see.

use std::rc::Rc;

use nandscape_wire_nvme::Status;

use crate::drive::DriveInfo;
use crate::queue_memory::{CompletionMemory, HostMemory, SubmissionMemory};

/// Names a queue pair. 0 is the admin queue.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct QueueId(pub u16);

impl QueueId {
    /// The queue of admin commands.
    pub const ADMIN: QueueId = QueueId(0);
}

/// The queue pairs of one NVMe controller (Base 3.3). A host creates a pair over memory such as a
/// [`Ring`](crate::ring::Ring), puts entries into it, and rings doorbells; the controller posts completions there and
/// notifies.
pub trait Controller {
    /// What the drive is.
    fn info(&self) -> DriveInfo;

    /// Begins to serve a submission queue and the completion queue that it posts to, both of them number `id`.
    ///
    /// # Errors
    /// Invalid Queue Identifier when `id` is in use or beyond the controller's limit; Invalid Queue Size when a queue is
    /// too large.
    fn create_queue_pair(
        &self,
        id: QueueId,
        submissions: Rc<dyn SubmissionMemory>,
        completions: Rc<dyn CompletionMemory>,
    ) -> Result<(), Status>;

    /// Ends the service of a pair. Commands not yet completed never will be.
    ///
    /// # Errors
    /// Invalid Queue Identifier when there is no such pair.
    fn delete_queue_pair(&self, id: QueueId) -> Result<(), Status>;

    /// Attaches the controller to a host that creates further queues by admin commands (Create I/O Submission Queue and
    /// the like).
    ///
    /// # Errors
    /// Command Sequence Error while there are queues.
    fn attach(&self, host: Rc<dyn HostMemory>) -> Result<(), Status>;

    /// Deletes all queues, and leaves the host.
    fn detach(&self);

    /// The submission queue's tail doorbell (Base 3.1.4.21, "SQ Tail Doorbell"): entries up to `tail` are there to
    /// be fetched. A value outside the queue is ignored.
    fn ring_submission(&self, id: QueueId, tail: u16);

    /// The completion queue's head doorbell: entries up to `head` were consumed. A value outside the queue is ignored.
    fn ring_completion(&self, id: QueueId, head: u16);
}
