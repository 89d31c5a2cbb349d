//! A submission queue: its progress, and its commands to abort.

use std::rc::Rc;

use nandscape_drive::{QueueId, SubmissionMemory};

use crate::arbiter::Priority;

/// A submission queue.
pub(super) struct Submissions {
    pub(super) memory: Rc<dyn SubmissionMemory>,
    pub(super) entries: u32,
    /// Distinguishes this queue from an earlier one with the same identifier.
    pub(super) generation: u32,
    pub(super) head: u16,
    pub(super) tail: u16,
    /// The completion queue.
    pub(super) to: QueueId,
    /// Whether completions wait for room there.
    pub(super) blocked: bool,
    /// Fetched commands that have not ended.
    pub(super) in_work: u32,
    /// Its priority class, if its host set one.
    pub(super) priority: Option<Priority>,
    /// Identifiers of commands that are to be aborted when they are fetched.
    pub(super) aborts: Vec<u16>,
    /// Set while the queue is being deleted: nothing is fetched, and it is deleted when its last command ends. `true` also
    /// deletes its completion queue, unless others post there.
    pub(super) deletion: Option<bool>,
}

impl Submissions {
    /// Whether an entry can be fetched.
    #[inline]
    pub(super) fn has_next(&self) -> bool {
        self.head != self.tail && !self.blocked && self.deletion.is_none()
    }

    /// Entries that were not fetched.
    pub(super) fn waiting(&self) -> u32 {
        let (head, tail) = (u32::from(self.head), u32::from(self.tail));
        if tail >= head { tail - head } else { tail + self.entries - head }
    }

    /// Whether an entry lies between head and tail.
    pub(super) fn holds(&self, index: u16) -> bool {
        match self.head <= self.tail {
            true => (self.head..self.tail).contains(&index),
            false => index >= self.head || index < self.tail,
        }
    }
}
