//! The event queue: a ring of slots for timers that are due soon, a heap for the others.
//!
//! A slot covers half a microsecond and the ring a millisecond, which holds nearly all timers of a drive. The timers of a
//! slot are a list in the order of their times; equal times keep the order in which they were set. A new timer is mostly
//! appended, since a slot has few timers and a timer set later is mostly due later.
//!
//! The ring begins with the slot of the last event. When it advances, timers of the heap that it now reaches move to it at
//! once. No timer of the same time can be in the ring before them, so they keep their order. The ring never advances
//! beyond an event that was taken, so a clock that stops between two events can still set a timer for "now". The tests
//! compare with a binary heap.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::executor::TaskId;
use crate::time::Time;

/// Nanoseconds of a slot, as a power of two.
const WIDTH: u32 = 9;
/// Slots of the ring: one bit each in [`WORDS`] words, for which there is a bit each in one more.
const SLOTS: usize = 64 * WORDS;
const WORDS: usize = 32;
const NIL: u32 = u32::MAX;
/// The number in a node without a timer.
const NOT_SET: u64 = 0;

/// Names a timer that was set. Timers fire in the order of their times, and timers of one time in the order of their
/// numbers. The key therefore shows whether its timer has fired.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct TimerKey {
    /// When it fires.
    pub(crate) time: Time,
    /// Counts the timers that were set, from 1 on.
    pub(crate) number: u64,
    node: u32,
}

impl TimerKey {
    /// The key of no timer.
    pub(crate) const NONE: TimerKey = TimerKey { time: Time::ZERO, number: 0, node: NIL };
}

/// A timer that fires.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Timer {
    pub(crate) time: Time,
    pub(crate) number: u64,
    /// The task that it wakes.
    pub(crate) task: TaskId,
}

#[derive(Copy, Clone)]
struct Node {
    timer: Timer,
    next: u32,
    /// A cancelled timer stays until it is the first of its slot.
    cancelled: bool,
}

/// The timers of a slot.
#[derive(Copy, Clone)]
struct List {
    head: u32,
    tail: u32,
}

/// A timer of the heap: when, its number, its node.
type Far = Reverse<(u64, u64, u32)>;

/// A set of pending timers, each of which wakes one task.
pub(crate) struct EventQueue {
    /// The number of the first slot of the ring, counted from time zero; no timer is due before it.
    first: u64,
    /// One bit a word that has a slot with timers, and one bit a slot.
    words: u32,
    slots: [u64; WORDS],
    lists: Box<[List; SLOTS]>,
    nodes: Vec<Node>,
    free: u32,
    /// The slot of the first timer of the heap, or no number of a slot.
    far_first: u64,
    far: BinaryHeap<Far>,
    /// Timers set so far.
    count: u64,
}

impl EventQueue {
    pub(crate) fn new() -> EventQueue {
        EventQueue {
            first: 0,
            words: 0,
            slots: [0; WORDS],
            lists: Box::new([List { head: NIL, tail: NIL }; SLOTS]),
            nodes: Vec::new(),
            free: NIL,
            far_first: u64::MAX,
            far: BinaryHeap::new(),
            count: 0,
        }
    }

    /// Sets a timer that wakes `task` at `time`, which is not before the last event.
    #[inline(always)]
    pub(crate) fn set(&mut self, time: Time, task: TaskId) -> TimerKey {
        self.count += 1;
        let number = self.count;
        let node = self.allocate(Timer { time, number, task });
        let time_ns = time.ns();
        match (time_ns >> WIDTH).wrapping_sub(self.first) < SLOTS as u64 {
            true => self.link(node, time_ns),
            false => self.set_far(node, time_ns),
        }
        TimerKey { time, number, node }
    }

    /// Cancels a pending timer; the key of one that has fired has no effect.
    pub(crate) fn cancel(&mut self, key: TimerKey) {
        if let Some(node) = self.nodes.get_mut(key.node as usize)
            && node.timer.number == key.number
        {
            node.cancelled = true;
        }
    }

    /// How many timers are pending. Slow: it visits all of them.
    pub(crate) fn pending(&self) -> usize {
        self.nodes.iter().filter(|node| node.timer.number != NOT_SET && !node.cancelled).count()
    }

    /// The time of the next timer.
    pub(crate) fn peek(&mut self) -> Option<Time> {
        loop {
            let (near, far) = (self.first_slot(), self.far.peek());
            let node = match (near, far) {
                (Some(slot), _) => self.lists[slot].head,
                (None, Some(&Reverse((_, _, node)))) => node,
                (None, None) => return None,
            };
            let Node { timer, next, cancelled } = self.nodes[node as usize];
            if !cancelled {
                return Some(timer.time);
            }
            match near {
                Some(slot) => {
                    self.release(node);
                    self.set_head(slot, next);
                }
                None => self.drop_far(),
            }
        }
    }

    /// Removes the next timer at or before `limit`.
    #[inline]
    pub(crate) fn pop(&mut self, limit: Time) -> Option<Timer> {
        loop {
            let Some(slot) = self.first_slot() else {
                if self.turn_to_far(limit.ns()) {
                    continue;
                }
                return None;
            };
            let head = self.lists[slot].head;
            let node = &mut self.nodes[head as usize];
            let Node { timer, next, cancelled } = *node;
            if timer.time > limit && !cancelled {
                return None;
            }
            node.timer.number = NOT_SET;
            node.next = std::mem::replace(&mut self.free, head);
            self.set_head(slot, next);
            if cancelled {
                continue;
            }
            self.turn_to(timer.time.ns() >> WIDTH);
            return Some(timer);
        }
    }

    /// The first slot with timers, from the ring's first on.
    #[inline]
    fn first_slot(&self) -> Option<usize> {
        let first = self.first as usize % SLOTS;
        match self.slots[first / 64] & u64::MAX << (first % 64) {
            0 => self.slot_after(first),
            here => Some((first & !63 | here.trailing_zeros() as usize) % SLOTS),
        }
    }

    /// The first slot with timers in the words after that of `first`, round the ring and back to it.
    #[inline]
    fn slot_after(&self, first: usize) -> Option<usize> {
        if self.words == 0 {
            return None;
        }
        let turn = first as u32 / 64 + 1;
        let word = (self.words.rotate_right(turn).trailing_zeros() + turn) as usize % WORDS;
        Some((word * 64 + self.slots[word].trailing_zeros() as usize) % SLOTS)
    }

    /// Makes a node the first of a slot, or the slot empty.
    #[inline]
    fn set_head(&mut self, slot: usize, head: u32) {
        self.lists[slot].head = head;
        if head == NIL {
            let word = &mut self.slots[slot / 64];
            *word &= !(1 << (slot % 64));
            if *word == 0 {
                self.words &= !(1 << (slot / 64));
            }
        }
    }

    /// Makes a node free.
    fn release(&mut self, node: u32) {
        let next = std::mem::replace(&mut self.free, node);
        let node = &mut self.nodes[node as usize];
        (node.timer.number, node.next) = (NOT_SET, next);
    }

    /// Makes a slot the first of the ring.
    #[inline]
    fn turn_to(&mut self, first: u64) {
        self.first = first;
        if self.far_first.wrapping_sub(first) < SLOTS as u64 {
            self.reach_far();
        }
    }

    /// With an empty ring: makes it begin with the first timer of the heap, unless that is due after `limit`. Returns
    /// whether it did, or removed a cancelled timer.
    #[cold]
    fn turn_to_far(&mut self, limit: u64) -> bool {
        let Some(&Reverse((time, _, node))) = self.far.peek() else { return false };
        if self.nodes[node as usize].cancelled {
            self.drop_far();
            return true;
        }
        let is_due = time <= limit;
        if is_due {
            self.turn_to(time >> WIDTH);
        }
        is_due
    }

    /// Moves the timers of the heap that the ring reaches.
    #[inline(never)]
    fn reach_far(&mut self) {
        while self.far_first.wrapping_sub(self.first) < SLOTS as u64
            && let Some(Reverse((time, _, node))) = self.far.pop()
        {
            self.link(node, time);
            self.note_far();
        }
    }

    /// Removes the first timer of the heap, which was cancelled.
    fn drop_far(&mut self) {
        if let Some(Reverse((_, _, node))) = self.far.pop() {
            self.release(node);
        }
        self.note_far();
    }

    fn note_far(&mut self) {
        self.far_first = self.far.peek().map_or(u64::MAX, |Reverse((time, _, _))| time >> WIDTH);
    }

    #[inline(never)]
    fn set_far(&mut self, node: u32, time: u64) {
        assert!(time >> WIDTH >= self.first, "a timer is set for {time} ns, before the last event");
        self.far.push(Reverse((time, self.count, node)));
        self.note_far();
    }

    /// Adds a node, the `next` of which is none, to its slot of the ring.
    #[inline]
    fn link(&mut self, node: u32, time: u64) {
        let slot = (time >> WIDTH) as usize % SLOTS;
        let List { head, tail } = self.lists[slot];
        if head == NIL {
            self.lists[slot] = List { head: node, tail: node };
            self.slots[slot / 64] |= 1 << (slot % 64);
            self.words |= 1 << (slot / 64);
        } else if self.nodes[tail as usize].timer.time.ns() <= time {
            self.nodes[tail as usize].next = node;
            self.lists[slot].tail = node;
        } else {
            self.put_in_order(slot, node, time);
        }
    }

    /// Puts a node before the timers of a slot that are due later, of which there are some.
    #[inline(never)]
    fn put_in_order(&mut self, slot: usize, node: u32, time: u64) {
        let (mut before, mut next) = (NIL, self.lists[slot].head);
        while self.nodes[next as usize].timer.time.ns() <= time {
            (before, next) = (next, self.nodes[next as usize].next);
        }
        self.nodes[node as usize].next = next;
        match self.nodes.get_mut(before as usize) {
            Some(before) => before.next = node,
            None => self.lists[slot].head = node,
        }
    }

    #[inline]
    fn allocate(&mut self, timer: Timer) -> u32 {
        let node = self.free;
        match self.nodes.get_mut(node as usize) {
            Some(entry) => {
                self.free = entry.next;
                *entry = Node { timer, next: NIL, cancelled: false };
                node
            }
            None => self.add_node(timer),
        }
    }

    #[cold]
    fn add_node(&mut self, timer: Timer) -> u32 {
        self.nodes.push(Node { timer, next: NIL, cancelled: false });
        u32::try_from(self.nodes.len() - 1).expect("more than 2^32 timers are pending")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    /// An operation of a test on the queue and on the heap.
    #[derive(Clone, Debug)]
    enum Step {
        Set { after: u64 },
        Cancel { nth: usize },
        Pop { within: u64 },
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        // Delays of every magnitude, so that timers fall into the ring and the heap; ties are common.
        let delay = (0u32..64, any::<u64>()).prop_map(|(bits, raw)| raw >> (63 - bits));
        let step = prop_oneof![
            5 => prop_oneof![delay.clone(), 0u64..4].prop_map(|after| Step::Set { after }),
            1 => any::<usize>().prop_map(|nth| Step::Cancel { nth }),
            5 => prop_oneof![delay, Just(u64::MAX)].prop_map(|within| Step::Pop { within }),
        ];
        prop::collection::vec(step, 0..400)
    }

    proptest! {
        #[test]
        fn agrees_with_a_binary_heap(steps in steps()) {
            let mut queue = EventQueue::new();
            let mut heap: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
            let mut keys = Vec::new();
            let mut now = 0u64;
            for step in steps {
                match step {
                    Step::Set { after } => {
                        let at = now.saturating_add(after);
                        let id = keys.len();
                        keys.push(queue.set(Time::from_ns(at), TaskId::new(id as u32)));
                        heap.push(Reverse((at, id)));
                    }
                    Step::Cancel { nth } if !keys.is_empty() => {
                        let id = nth % keys.len();
                        queue.cancel(keys[id]);
                        heap.retain(|entry| entry.0.1 != id);
                    }
                    Step::Cancel { .. } => {}
                    Step::Pop { within } => {
                        let limit = now.saturating_add(within);
                        let expected = heap.peek().map(|entry| entry.0).filter(|&(at, _)| at <= limit);
                        if expected.is_some() {
                            heap.pop();
                        }
                        let popped = queue.pop(Time::from_ns(limit)).map(|timer| (timer.time.ns(), timer.task.index()));
                        prop_assert_eq!(popped, expected);
                        now = popped.map_or(limit, |(at, _)| at);
                    }
                }
                prop_assert_eq!(queue.peek().map(Time::ns), heap.peek().map(|entry| entry.0.0));
            }
        }
    }

    #[test]
    fn equal_times_fire_in_the_order_they_were_set() {
        let mut queue = EventQueue::new();
        let fires = |queue: &mut EventQueue| queue.pop(Time::MAX).map(|timer| (timer.time.ns(), timer.task.index()));
        let at = Time::from_ns(7_000_000);
        queue.set(at, TaskId::new(0));
        queue.set(Time::from_ns(6_500_000), TaskId::new(9));
        assert_eq!(fires(&mut queue), Some((6_500_000, 9)));
        // Set from nearer by, hence in the ring at once.
        queue.set(at, TaskId::new(1));
        assert_eq!(fires(&mut queue), Some((7_000_000, 0)));
        assert_eq!(fires(&mut queue), Some((7_000_000, 1)));
    }

    #[test]
    fn a_limit_short_of_the_next_timer_leaves_room_for_an_earlier_one() {
        let mut queue = EventQueue::new();
        queue.set(Time::from_ns(5_000), TaskId::new(0));
        queue.set(Time::from_ns(5_001), TaskId::new(1));
        assert_eq!(queue.pop(Time::from_ns(100)), None);
        queue.set(Time::from_ns(200), TaskId::new(2));
        assert_eq!(queue.pop(Time::MAX).map(|timer| timer.time.ns()), Some(200));
    }
}
