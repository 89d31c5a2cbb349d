//! A drive as a set of queue pairs: what host drivers, completion strategies and guests see.

use std::rc::Rc;

use nandscape_wire_nvme::{Status, SubmissionEntry};

use crate::drive::DriveInfo;
use crate::queue_memory::{CompletionMemory, HostMemory, SubmissionMemory};
use crate::subsystem::IN_PROCESS_CONTROLLER;

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
    /// The properties of the drive.
    fn info(&self) -> DriveInfo;

    /// The same of another namespace; `None` when the controller has none of that number.
    fn info_of(&self, nsid: u32) -> Option<DriveInfo> {
        Some(self.info()).filter(|info| info.nsid == nsid)
    }

    /// Controller ID (CNTLID), unique in its subsystem while the controller exists.
    fn id(&self) -> u16 {
        IN_PROCESS_CONTROLLER
    }

    /// Begins to serve a submission queue and its completion queue, both of them number `id`.
    ///
    /// # Errors
    /// Invalid Queue Identifier when `id` is in use or beyond the controller's limit. Invalid Queue Size when a queue
    /// is too large. Command Sequence Error while the controller is reset or leaves its host, and for I/O queues
    /// while it is not ready.
    fn create_queue_pair(
        &self,
        id: QueueId,
        submissions: Rc<dyn SubmissionMemory>,
        completions: Rc<dyn CompletionMemory>,
    ) -> Result<(), Status>;

    /// Begins to serve submission queue `id`, which posts to the completion queue of pair `to`: completions name their submission
    /// queue (SQID). [`Controller::delete_queue_pair`] deletes it, after which [`SubmissionMemory::released`] is called. The completion
    /// queue is deleted with the last submission queue that posts to it.
    ///
    /// # Errors
    /// Those of [`Controller::create_queue_pair`]; Completion Queue Invalid when no completion queue `to` exists.
    fn create_submission_queue(
        &self,
        id: QueueId,
        to: QueueId,
        submissions: Rc<dyn SubmissionMemory>,
    ) -> Result<(), Status>;

    /// Begins to delete a pair: the controller fetches no more entries, and completes or stops its commands. After
    /// the last of them no memory of the host is touched, the number is free, and [`CompletionMemory::released`] is
    /// called. That may happen before this returns. A command without a completion by then never gets one (Base
    /// 5.2.4).
    ///
    /// # Errors
    /// Invalid Queue Identifier when the pair does not exist or is being deleted.
    fn delete_queue_pair(&self, id: QueueId) -> Result<(), Status>;

    /// Attaches the controller to a host that creates further queues by admin commands (Create I/O Submission Queue and
    /// the like).
    ///
    /// # Errors
    /// Command Sequence Error while queues exist, also queues that are being deleted.
    fn attach(&self, host: Rc<dyn HostMemory>) -> Result<(), Status>;

    /// Leaves the host, and begins to delete all queues as [`Controller::delete_queue_pair`] does.
    fn detach(&self);

    /// The submission queue's tail doorbell (Base 3.1.4.21, "SQ Tail Doorbell"): entries up to `tail` may be fetched.
    /// A value outside the queue is ignored.
    fn ring_submission(&self, id: QueueId, tail: u16);

    /// The completion queue's head doorbell: entries up to `head` were consumed. A value outside the queue is ignored.
    fn ring_completion(&self, id: QueueId, head: u16);

    /// The dword of the controller's properties at a byte offset (Base 3.1.4). A controller without properties reads as
    /// zeros.
    fn register(&self, _offset: u32) -> u32 {
        0
    }

    /// Writes a dword of the properties. A write of Controller Configuration begins an enable, a reset or a shutdown;
    /// Controller Status shows when it has ended. A reset deletes all pairs as [`Controller::delete_queue_pair`]
    /// does.
    fn set_register(&self, _offset: u32, _value: u32) {}

    /// Performs a Function Level Reset, or the transport's equivalent: clears CC.EN and returns all properties to
    /// their initial values (Base 3.7.2). It has ended when Controller Status reports that the controller is not
    /// ready.
    fn reset_function(&self) {}

    /// The Keep Alive Timeout of the host's Connect command, in milliseconds (Base 6.3, Connect). It is the value of
    /// the feature until the host sets another.
    fn set_keep_alive(&self, _timeout_ms: u32) {}

    /// The priority class of a queue pair that the host has connected: 0 is urgent, 3 is low (Base 6.3, CATTR). It matters to a
    /// weighted round robin.
    fn set_priority_class(&self, _id: QueueId, _class: u8) {}

    /// A transport rejects a command of a queue pair before the controller has seen it. Returns the
    /// status for the host, with the More bit if the controller has logged the error.
    fn refuse(&self, _id: QueueId, _command: &SubmissionEntry, status: Status) -> Status {
        status
    }

    /// Aborts a command of a queue pair that waits (Abort, Base 5.1.1): it completes with Command Abort Requested. Whether
    /// it was aborted.
    fn abort(&self, _id: QueueId, _cid: u16) -> bool {
        false
    }
}
