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
    waiting: Waiting,
}

/// Queues with entries to fetch: a bit each.
pub struct Waiting {
    words: Vec<u64>,
    count: u32,
}

impl Waiting {
    fn none(queues: usize) -> Waiting {
        Waiting { words: vec![0; queues.div_ceil(64)], count: 0 }
    }

    /// Given ones.
    #[cfg(test)]
    pub(crate) fn of(queues: &[u16]) -> Waiting {
        let mut waiting = Waiting::none(256);
        queues.iter().for_each(|id| waiting.set(QueueId(*id), true));
        waiting
    }

    #[inline]
    fn set(&mut self, id: QueueId, waits: bool) {
        let (word, bit) = (&mut self.words[usize::from(id.0) / 64], 1 << (id.0 % 64));
        let before = *word & bit != 0;
        *word = if waits { *word | bit } else { *word & !bit };
        self.count = self.count + u32::from(waits) - u32::from(before);
    }

    /// Whether there is none.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether a queue has entries to fetch.
    pub fn contains(&self, id: QueueId) -> bool {
        self.words[usize::from(id.0) / 64] & 1 << (id.0 % 64) != 0
    }

    /// The first queue from `from` on, in ascending order.
    pub fn first_from(&self, from: u16) -> Option<QueueId> {
        let start = usize::from(from) / 64;
        let word = |index: usize| self.words[index] & if index == start { u64::MAX << (from % 64) } else { u64::MAX };
        let index = (start..self.words.len()).find(|index| word(*index) != 0)?;
        Some(QueueId(index as u16 * 64 + word(index).trailing_zeros() as u16))
    }
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
        let waiting = Waiting::none(usize::from(pairs) + 1);
        Queues { pairs: (0..=pairs).map(|_| None).collect(), max_entries, waiting }
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
        pair.map(|_| self.waiting.set(id, false)).ok_or(Status::INVALID_QUEUE_ID.final_())
    }

    /// Whether a pair is still there, and not another of the same identifier.
    pub(crate) fn exists(&self, key: PairKey) -> bool {
        self.pairs[usize::from(key.id.0)].as_ref().is_some_and(|pair| pair.generation == key.generation)
    }

    /// The host moved the submission tail. A value outside the queue is ignored.
    pub(crate) fn set_sq_tail(&mut self, id: QueueId, tail: u16) {
        let Some(pair) = self.pairs.get_mut(usize::from(id.0)).and_then(Option::as_mut) else { return };
        if u32::from(tail) >= pair.ring.entries() {
            return;
        }
        pair.sq_tail = tail;
        let waits = pair.sq_head != tail;
        self.waiting.set(id, waits);
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
        (!pair.overflow.is_empty() && pair.flush_overflow()).then(|| pair.ring.clone())
    }

    /// Queues with entries to fetch.
    pub(crate) fn waiting(&self) -> &Waiting {
        &self.waiting
    }

    /// Fetches the next entry of a queue that has some.
    pub(crate) fn fetch(&mut self, id: QueueId) -> (PairKey, Submission) {
        let pair = self.pairs[usize::from(id.0)].as_mut().expect("a waiting queue exists");
        let submission = pair.ring.fetch(pair.sq_head);
        pair.sq_head = pair.ring.next(pair.sq_head);
        let key = PairKey { id, generation: pair.generation };
        let waits = pair.sq_head != pair.sq_tail;
        self.waiting.set(id, waits);
        (key, submission)
    }

    /// Posts a completion; the ring is to be notified by the caller. `None` when the pair is gone, or the queue full.
    pub(crate) fn post(&mut self, key: PairKey, mut posted: Posted) -> Option<Rc<Ring>> {
        let pair = self.pairs[usize::from(key.id.0)].as_mut().filter(|pair| pair.generation == key.generation)?;
        posted.entry.sq_id = key.id.0.into();
        if pair.overflow.is_empty() && pair.has_room() {
            pair.put(posted);
            return Some(pair.ring.clone());
        }
        pair.overflow.push_back(posted);
        None
    }
}

impl Pair {
    /// Whether the completion queue takes another entry.
    #[inline]
    fn has_room(&self) -> bool {
        self.ring.next(self.cq_tail) != self.cq_head
    }

    #[inline]
    fn put(&mut self, mut posted: Posted) {
        posted.entry.sq_head = self.sq_head.into();
        let status = posted.entry.status();
        posted.entry.set_status(status, self.phase);
        self.ring.post(self.cq_tail, posted);
        self.cq_tail = self.ring.next(self.cq_tail);
        if self.cq_tail == 0 {
            self.phase = !self.phase;
        }
    }

    /// Moves completions to the ring while it has room; whether any was.
    fn flush_overflow(&mut self) -> bool {
        let mut moved = false;
        while self.has_room() {
            let Some(posted) = self.overflow.pop_front() else { break };
            self.put(posted);
            moved = true;
        }
        moved
    }
}
