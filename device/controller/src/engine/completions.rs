//! A completion queue: its tail, and the completions that do not fit.

use std::collections::VecDeque;
use std::rc::Rc;

use nandscape_drive::CompletionMemory;
use nandscape_drive::ring::Posted;

/// A completion queue.
pub(super) struct Completions {
    pub(super) memory: Rc<dyn CompletionMemory>,
    pub(super) entries: u32,
    /// The interrupt vector; a host in this process has one for each queue.
    pub(super) vector: Option<u16>,
    pub(super) head: u16,
    pub(super) tail: u16,
    pub(super) phase: bool,
    /// Completions that could not be posted: the queue is full, or its memory could not be reached. Meanwhile, submission
    /// queues that post here are not fetched from, so the overflow never exceeds the command slots.
    pub(super) overflow: VecDeque<Posted>,
    /// Submission queues that post here.
    pub(super) users: u32,
}

impl Completions {
    /// Whether the queue takes another entry.
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        !self.is_full() && self.memory.is_reachable(self.tail)
    }

    #[inline]
    pub(super) fn is_full(&self) -> bool {
        after(self.tail, self.entries) == self.head
    }

    /// Posts a completion at the tail.
    ///
    /// # Panics
    /// If the queue is full: the entry would overwrite one that the host has not read.
    #[inline]
    pub(super) fn put(&mut self, mut posted: Posted) {
        assert!(!self.is_full(), "a completion is posted to a full queue of {} entries", self.entries);
        let status = posted.entry.status();
        posted.entry.set_status(status, self.phase);
        self.memory.post(self.tail, posted);
        self.tail = after(self.tail, self.entries);
        self.phase ^= self.tail == 0;
    }

    /// Moves overflowed completions to the queue while it has room.
    pub(super) fn flush_overflow(&mut self) {
        while self.has_room() {
            let Some(posted) = self.overflow.pop_front() else { break };
            self.put(posted);
        }
    }
}

/// The index after `index`.
#[inline]
pub(super) fn after(index: u16, entries: u32) -> u16 {
    if u32::from(index) + 1 == entries { 0 } else { index + 1 }
}

#[cfg(test)]
mod tests {
    use nandscape_drive::ring::Ring;

    use super::*;

    /// A deliberate mistake: a completion without a check of the queue's room.
    #[test]
    #[should_panic(expected = "a completion is posted to a full queue of 3 entries")]
    fn an_overrun_completion_queue_is_noticed() {
        let memory = Rc::new(Ring::new(3, None));
        let mut queue = Completions {
            memory,
            entries: 3,
            vector: None,
            head: 0,
            tail: 0,
            phase: true,
            overflow: VecDeque::new(),
            users: 1,
        };
        (0..3).for_each(|_| queue.put(Posted::default()));
    }
}
