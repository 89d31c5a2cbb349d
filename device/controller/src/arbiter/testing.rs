//! Queues with entries, for tests of arbiters: real ones over rings.

use std::rc::Rc;

use nandscape_drive::ring::{Ring, Submission};
use nandscape_drive::{HostMem, QueueId};
use nandscape_sim::{Executor, Sim, Time};
use nandscape_wire_nvme::SubmissionEntry;
use nandscape_wire_nvme::vendor::Attributes;

use super::Queues;

const ENTRIES: u32 = 64;

/// Queues of a host that fills them.
pub(super) struct Filled {
    pub(super) queues: Queues,
    rings: Vec<(Rc<Ring>, u16)>,
    pub(super) sim: Sim,
    pub(super) executor: Executor,
}

impl Filled {
    /// Queues 0 to `count - 1`, all empty.
    pub(super) fn new(count: u16) -> Filled {
        let executor = Executor::new();
        let sim = executor.sim();
        let mut queues = Queues::new(&sim, count, ENTRIES);
        let rings: Vec<(Rc<Ring>, u16)> = (0..count).map(|_| (Rc::new(Ring::new(ENTRIES, None)), 0)).collect();
        for (id, (ring, _)) in (0..).zip(&rings) {
            queues.create_pair(QueueId(id), ring.clone(), ring.clone()).expect("the pair is free");
        }
        Filled { queues, rings, sim, executor }
    }

    /// Submits a command of a class at a time. Returns whether its queue had room.
    pub(super) fn put(&mut self, id: u16, class: u8, submitted: Time) -> bool {
        self.put_due(id, (class, 0), submitted)
    }

    /// The same with a deadline in microseconds; 0 is none.
    pub(super) fn put_due(&mut self, id: u16, (class, deadline_us): (u8, u32), submitted: Time) -> bool {
        if self.queues.depth(QueueId(id)) == ENTRIES - 1 {
            return false;
        }
        let (ring, tail) = &mut self.rings[usize::from(id)];
        let cdw2 = Attributes::of(class, 0).0.into();
        let entry = SubmissionEntry { cdw2, cdw3: deadline_us.into(), ..SubmissionEntry::default() };
        ring.put(*tail, Submission { entry, mem: HostMem::none(), submitted });
        *tail = ring.next(*tail);
        let rung = self.queues.set_sq_tail(QueueId(id), *tail);
        assert!(rung.is_ok(), "the tail is in the ring");
        true
    }

    /// Fetches the next command of a queue; its class and when it was submitted.
    pub(super) fn fetch(&mut self, id: QueueId) -> (u8, Time) {
        let (_, submission) = self.queues.fetch(id).expect("the queue waits");
        (Attributes(submission.entry.cdw2.get()).class(), submission.submitted)
    }
}

/// Queues of which these have an entry.
pub(super) fn waiting(queues: &[u16]) -> Queues {
    let mut filled = Filled::new(queues.iter().max().map_or(0, |last| last + 1));
    queues.iter().for_each(|id| assert!(filled.put(*id, 0, Time::ZERO), "there is room"));
    filled.queues
}
