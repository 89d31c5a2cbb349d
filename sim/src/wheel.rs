//! The event queue: a hierarchical timing wheel with exact nanoseconds.
//!
//! Eleven levels of 64 slots cover all of `u64`. A timer stands at the level of the highest base-64 digit in
//! which its time differs from the cursor, and moves down as the cursor enters its slot. Timers of equal time
//! fire in the order in which they were set. The cursor never passes the limit it is given, so a wall clock
//! that stops between two events can still set a timer for "now". Checked against a binary heap in the tests.

use crate::executor::TaskId;
use crate::time::Time;

const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;
const LEVELS: usize = 11;
const NIL: u32 = u32::MAX;

/// Names a timer that was set. Once the timer has fired or was cancelled the key is stale, for good.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct TimerKey {
    node: u32,
    generation: u32,
}

struct Node {
    time: u64,
    next: u32,
    prev: u32,
    task: TaskId,
    generation: u32,
    /// Level * 64 + slot where the node is linked, `FREE` when it is on the free list.
    place: u32,
}

const FREE: u32 = u32::MAX;

#[derive(Copy, Clone)]
struct List {
    head: u32,
    tail: u32,
}

const EMPTY: List = List { head: NIL, tail: NIL };

/// A set of pending timers, each of which wakes one task.
pub(crate) struct Wheel {
    cursor: u64,
    occupied: [u64; LEVELS],
    lists: Box<[List]>,
    nodes: Vec<Node>,
    free: u32,
    len: usize,
}

impl Wheel {
    pub(crate) fn new() -> Wheel {
        Wheel {
            cursor: 0,
            occupied: [0; LEVELS],
            lists: vec![EMPTY; LEVELS * SLOTS].into(),
            nodes: Vec::new(),
            free: NIL,
            len: 0,
        }
    }

    /// Number of pending timers.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Sets a timer that wakes `task` at `time`; a time in the past fires at once.
    pub(crate) fn set(&mut self, time: Time, task: TaskId) -> TimerKey {
        let time = time.ns().max(self.cursor);
        let node = self.allocate(time, task);
        self.link(node);
        self.len += 1;
        TimerKey { node, generation: self.nodes[node as usize].generation }
    }

    /// Whether the timer is still to fire.
    pub(crate) fn is_pending(&self, key: TimerKey) -> bool {
        self.nodes[key.node as usize].generation == key.generation
    }

    /// Cancels a pending timer; a stale key is let pass.
    pub(crate) fn cancel(&mut self, key: TimerKey) {
        if self.is_pending(key) {
            self.unlink(key.node);
            self.release(key.node);
        }
    }

    /// The time of the next timer.
    #[cfg(test)]
    pub(crate) fn peek(&self) -> Option<Time> {
        let place = self.first_place()?;
        let mut node = self.lists[place].head;
        let mut earliest = u64::MAX;
        while node != NIL {
            earliest = earliest.min(self.nodes[node as usize].time);
            node = self.nodes[node as usize].next;
        }
        Some(Time::from_ns(earliest))
    }

    /// Removes the next timer at or before `limit`: its time and the task it wakes.
    pub(crate) fn pop(&mut self, limit: Time) -> Option<(Time, TaskId)> {
        loop {
            let place = self.first_place()?;
            let list = self.lists[place];
            // A slot of level 0 holds one time only, and a single node is the earliest wherever it stands.
            if place < SLOTS || list.head == list.tail {
                return self.fire(list.head, limit);
            }
            let start = self.slot_start(place);
            if start > limit.ns() {
                return None;
            }
            self.cursor = start;
            self.cascade(place);
        }
    }

    fn fire(&mut self, node: u32, limit: Time) -> Option<(Time, TaskId)> {
        let Node { time, task, .. } = self.nodes[node as usize];
        if time > limit.ns() {
            return None;
        }
        self.unlink(node);
        self.cursor = time;
        self.release(node);
        Some((Time::from_ns(time), task))
    }

    /// The first occupied slot in time order: lower levels come before higher ones.
    fn first_place(&self) -> Option<usize> {
        let level = self.occupied.iter().position(|&slots| slots != 0)?;
        Some(level * SLOTS + self.occupied[level].trailing_zeros() as usize)
    }

    /// The first instant of a slot, with all higher digits those of the cursor.
    fn slot_start(&self, place: usize) -> u64 {
        let (level, slot) = (place / SLOTS, (place % SLOTS) as u64);
        let shift = BITS * level as u32;
        let above = shift + BITS;
        let high = if above < u64::BITS { self.cursor >> above << above } else { 0 };
        high | slot << shift
    }

    /// Relinks every node of a slot that the cursor has just entered, in order, at lower levels.
    fn cascade(&mut self, place: usize) {
        let mut node = std::mem::replace(&mut self.lists[place], EMPTY).head;
        self.occupied[place / SLOTS] &= !(1 << (place % SLOTS));
        while node != NIL {
            let next = self.nodes[node as usize].next;
            self.link(node);
            node = next;
        }
    }

    fn place_of(&self, time: u64) -> usize {
        let digits = (time ^ self.cursor) | (SLOTS as u64 - 1);
        let level = (u64::BITS - 1 - digits.leading_zeros()) / BITS;
        let slot = (time >> (BITS * level)) as usize % SLOTS;
        level as usize * SLOTS + slot
    }

    fn link(&mut self, node: u32) {
        let place = self.place_of(self.nodes[node as usize].time);
        let tail = self.lists[place].tail;
        let entry = &mut self.nodes[node as usize];
        (entry.place, entry.prev, entry.next) = (place as u32, tail, NIL);
        match tail {
            NIL => self.lists[place].head = node,
            tail => self.nodes[tail as usize].next = node,
        }
        self.lists[place].tail = node;
        self.occupied[place / SLOTS] |= 1 << (place % SLOTS);
    }

    fn unlink(&mut self, node: u32) {
        let Node { prev, next, place, .. } = self.nodes[node as usize];
        let place = place as usize;
        match prev {
            NIL => self.lists[place].head = next,
            prev => self.nodes[prev as usize].next = next,
        }
        match next {
            NIL => self.lists[place].tail = prev,
            next => self.nodes[next as usize].prev = prev,
        }
        if self.lists[place].head == NIL {
            self.occupied[place / SLOTS] &= !(1 << (place % SLOTS));
        }
    }

    fn allocate(&mut self, time: u64, task: TaskId) -> u32 {
        match self.free {
            NIL => {
                self.nodes.push(Node { time, next: NIL, prev: NIL, task, generation: 0, place: FREE });
                u32::try_from(self.nodes.len() - 1).expect("more than 2^32 timers are pending")
            }
            node => {
                let entry = &mut self.nodes[node as usize];
                self.free = entry.next;
                (entry.time, entry.task) = (time, task);
                node
            }
        }
    }

    fn release(&mut self, node: u32) {
        let entry = &mut self.nodes[node as usize];
        entry.generation = entry.generation.wrapping_add(1);
        (entry.next, entry.place) = (self.free, FREE);
        self.free = node;
        self.len -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    /// What a test does to the wheel and to the heap alike.
    #[derive(Clone, Debug)]
    enum Step {
        Set { after: u64 },
        Cancel { nth: usize },
        Pop { within: u64 },
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        // Delays of every magnitude: each level of the wheel is reached, ties are common.
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
            let mut wheel = Wheel::new();
            let mut heap: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
            let mut keys = Vec::new();
            let mut now = 0u64;
            for step in steps {
                match step {
                    Step::Set { after } => {
                        let at = now.saturating_add(after);
                        let id = keys.len();
                        keys.push(wheel.set(Time::from_ns(at), TaskId::new(id as u32)));
                        heap.push(Reverse((at, id)));
                    }
                    Step::Cancel { nth } if !keys.is_empty() => {
                        let id = nth % keys.len();
                        prop_assert_eq!(wheel.is_pending(keys[id]), heap.iter().any(|entry| entry.0.1 == id));
                        wheel.cancel(keys[id]);
                        heap.retain(|entry| entry.0.1 != id);
                    }
                    Step::Cancel { .. } => {}
                    Step::Pop { within } => {
                        let limit = now.saturating_add(within);
                        let expected = heap.peek().map(|entry| entry.0).filter(|&(at, _)| at <= limit);
                        if expected.is_some() {
                            heap.pop();
                        }
                        let popped = wheel.pop(Time::from_ns(limit)).map(|(at, task)| (at.ns(), task.index()));
                        prop_assert_eq!(popped, expected);
                        now = popped.map_or(limit, |(at, _)| at);
                    }
                }
                prop_assert_eq!(wheel.len(), heap.len());
                prop_assert_eq!(wheel.peek().map(Time::ns), heap.peek().map(|entry| entry.0.0));
            }
        }
    }

    #[test]
    fn equal_times_fire_in_the_order_they_were_set() {
        let mut wheel = Wheel::new();
        let at = Time::from_ns(70_000);
        wheel.set(at, TaskId::new(0));
        wheel.set(Time::from_ns(65_000), TaskId::new(9));
        assert_eq!(wheel.pop(Time::MAX), Some((Time::from_ns(65_000), TaskId::new(9))));
        // Set from nearer by, hence at a lower level than the first.
        wheel.set(at, TaskId::new(1));
        assert_eq!(wheel.pop(Time::MAX), Some((at, TaskId::new(0))));
        assert_eq!(wheel.pop(Time::MAX), Some((at, TaskId::new(1))));
    }

    #[test]
    fn a_limit_short_of_the_next_timer_leaves_room_for_an_earlier_one() {
        let mut wheel = Wheel::new();
        wheel.set(Time::from_ns(5_000), TaskId::new(0));
        wheel.set(Time::from_ns(5_001), TaskId::new(1));
        assert_eq!(wheel.pop(Time::from_ns(100)), None);
        wheel.set(Time::from_ns(200), TaskId::new(2));
        assert_eq!(wheel.pop(Time::MAX), Some((Time::from_ns(200), TaskId::new(2))));
    }
}
