//! Notices to the transport of a host with its own queues, about doorbells. The transport watches them: registers, a
//! page that the host maps, or buffers in the host's memory.
//!
//! Left out: the doorbells themselves, which reach the controller as [`Arrival`](crate::Arrival)s.

use nandscape_drive::QueueId;
use nandscape_drive::queue_memory::DoorbellBuffers;

/// Which of the two doorbells of a queue pair.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum QueueKind {
    /// The tail of the submission queue.
    Submission,
    /// The head of the completion queue.
    Completion,
}

/// The watcher of a host's doorbells. It is notified on the reactor's thread, while the controller executes the
/// command: before the host sees its completion.
pub trait Doorbells {
    /// The controller is about to create a queue of `entries` entries, whose doorbell is zero from now on. Creating it may
    /// still fail.
    fn created(&self, kind: QueueKind, queue: QueueId, entries: u32);

    /// The doorbells of I/O queues are in these buffers too from now on, or no longer.
    fn set_buffers(&self, buffers: Option<DoorbellBuffers>);
}

/// For a host whose doorbells need no watching: each ring is passed on, as in a replay.
pub struct Unwatched;

impl Doorbells for Unwatched {
    fn created(&self, _: QueueKind, _: QueueId, _: u32) {}

    fn set_buffers(&self, _: Option<DoorbellBuffers>) {}
}
