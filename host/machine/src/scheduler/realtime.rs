//! Real-time threads that wait for a processor: by priority, and within a priority first come, first served (`SCHED_FIFO`).
//!
//! One queue serves all processors, so that the most urgent threads have them. Linux approximates that by moving such
//! threads between its run queues.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use nandscape_sim::slots::Key;

/// Where a thread waits.
pub(crate) type Ticket = (Reverse<u8>, i64);

/// See the file.
#[derive(Default)]
pub(crate) struct Realtime {
    waiting: BTreeMap<Ticket, Key>,
    joined: i64,
    returned: i64,
}

impl Realtime {
    /// A thread waits behind those of its priority.
    pub(crate) fn join(&mut self, thread: Key, priority: u8) -> Ticket {
        self.joined += 1;
        self.insert(thread, (Reverse(priority), self.joined))
    }

    /// A thread that lost its processor waits before those of its priority.
    pub(crate) fn put_back(&mut self, thread: Key, priority: u8) -> Ticket {
        self.returned -= 1;
        self.insert(thread, (Reverse(priority), self.returned))
    }

    fn insert(&mut self, thread: Key, ticket: Ticket) -> Ticket {
        self.waiting.insert(ticket, thread);
        ticket
    }

    /// A thread leaves.
    pub(crate) fn leave(&mut self, ticket: Ticket) {
        self.waiting.remove(&ticket);
    }

    /// Takes the first thread that may run.
    pub(crate) fn next(&mut self, may_run: impl Fn(Key) -> bool) -> Option<Key> {
        let ticket = *self.waiting.iter().find(|(_, thread)| may_run(**thread))?.0;
        self.waiting.remove(&ticket)
    }
}
