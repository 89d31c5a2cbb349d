//! The device's side of queue pairs: how far each submission queue is fetched, each completion queue filled.

use std::collections::VecDeque;
use std::rc::Rc;

use nandscape_drive::QueueId;
use nandscape_drive::ring::{MIN_ENTRIES, Posted, Ring, Submission};
use nandscape_wire_nvme::Status;

/// All queue pairs of a controller.
pub(crate) struct Queues {
    pairs: Vec<Option<Pair>>,
    max_entries: u32,
    /// Queues with entries to fetch, in ascending order.
    waiting: Vec<QueueId>,
}

struct Pair {
    ring: Rc<Ring>,
    /// Tells this pair from an earlier one of the same identifier.
    generation: u32,
    sq_head: u16,
    sq_tail: u16,
    cq_head: u16,
    cq_tail: u16,
    phase: bool,
    /// Completions for which the queue has no room.
    overflow: VecDeque<Posted>,
}

/// Names a queue pair for as long as it exists.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct PairKey {
    pub(crate) id: QueueId,
    generation: u32,
}

impl Queues {
    /// Room for `pairs` I/O queue pairs beside the admin queue.
    pub(crate) fn new(pairs: u16, max_entries: u32) -> Queues {
        Queues { pairs: (0..=pairs).map(|_| None).collect(), max_entries, waiting: Vec::new() }
    }

    pub(crate) fn create(&mut self, id: QueueId, ring: Rc<Ring>, generation: u32) -> Result<(), Status> {
        if !(MIN_ENTRIES..=self.max_entries).contains(&ring.entries()) {
            return Err(Status::INVALID_QUEUE_SIZE.final_());
        }
        match self.pairs.get_mut(usize::from(id.0)) {
            Some(slot @ None) => {
                let overflow = VecDeque::new();
                let (sq_head, sq_tail, cq_head, cq_tail) = (0, 0, 0, 0);
                *slot = Some(Pair { ring, generation, sq_head, sq_tail, cq_head, cq_tail, phase: true, overflow });
                Ok(())
            }
            _ => Err(Status::INVALID_QUEUE_ID.final_()),
        }
    }

    pub(crate) fn delete(&mut self, id: QueueId) -> Result<(), Status> {
        let pair = self.pairs.get_mut(usize::from(id.0)).and_then(Option::take);
        self.waiting.retain(|waiting| *waiting != id);
        pair.map(|_| ()).ok_or(Status::INVALID_QUEUE_ID.final_())
    }

    /// The host moved the submission tail. A value outside the queue is ignored.
    pub(crate) fn set_sq_tail(&mut self, id: QueueId, tail: u16) {
        let Some(pair) = self.pairs.get_mut(usize::from(id.0)).and_then(Option::as_mut) else { return };
        if u32::from(tail) >= pair.ring.entries() {
            return;
        }
        pair.sq_tail = tail;
        self.update_waiting(id);
    }

    /// The host moved the completion head. If that made room for what had overflowed, the ring is to be notified by
    /// the caller. A value outside the queue, or beyond what was posted, is ignored.
    pub(crate) fn set_cq_head(&mut self, id: QueueId, head: u16) -> Option<Rc<Ring>> {
        let pair = self.pairs.get_mut(usize::from(id.0))?.as_mut()?;
        let entries = pair.ring.entries();
        let distance = |from: u16, to: u16| (u32::from(to) + entries - u32::from(from)) % entries;
        if u32::from(head) >= entries || distance(pair.cq_head, head) > distance(pair.cq_head, pair.cq_tail) {
            return None;
        }
        pair.cq_head = head;
        pair.flush_overflow().then(|| pair.ring.clone())
    }

    /// Queues with entries to fetch.
    pub(crate) fn waiting(&self) -> &[QueueId] {
        &self.waiting
    }

    /// Fetches the next entry of a queue that has some.
    pub(crate) fn fetch(&mut self, id: QueueId) -> (PairKey, Submission) {
        let pair = self.pairs[usize::from(id.0)].as_mut().expect("a waiting queue exists");
        let submission = pair.ring.fetch(pair.sq_head);
        pair.sq_head = pair.ring.next(pair.sq_head);
        let key = PairKey { id, generation: pair.generation };
        self.update_waiting(id);
        (key, submission)
    }

    /// Posts a completion; the ring is to be notified by the caller. `None` when the pair is gone, or the queue full.
    pub(crate) fn post(&mut self, key: PairKey, mut posted: Posted) -> Option<Rc<Ring>> {
        let pair = self.pairs[usize::from(key.id.0)].as_mut().filter(|pair| pair.generation == key.generation)?;
        posted.entry.sq_id = key.id.0.into();
        pair.overflow.push_back(posted);
        pair.flush_overflow().then(|| pair.ring.clone())
    }

    fn update_waiting(&mut self, id: QueueId) {
        let pair = self.pairs[usize::from(id.0)].as_ref().expect("the queue exists");
        match (self.waiting.binary_search(&id), pair.sq_head != pair.sq_tail) {
            (Err(at), true) => self.waiting.insert(at, id),
            (Ok(at), false) => {
                self.waiting.remove(at);
            }
            _ => {}
        }
    }
}

impl Pair {
    /// Moves completions to the ring while it has room; whether any was.
    fn flush_overflow(&mut self) -> bool {
        let mut moved = false;
        while self.ring.next(self.cq_tail) != self.cq_head {
            let Some(mut posted) = self.overflow.pop_front() else { break };
            posted.entry.sq_head = self.sq_head.into();
            let status = posted.entry.status();
            posted.entry.set_status(status, self.phase);
            self.ring.post(self.cq_tail, posted);
            self.cq_tail = self.ring.next(self.cq_tail);
            if self.cq_tail == 0 {
                self.phase = !self.phase;
            }
            moved = true;
        }
        moved
    }
}
