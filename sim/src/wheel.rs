//! The event queue: a hierarchical timing wheel with exact nanoseconds.
//!
//! Eight levels of 256 slots cover all of `u64`. A timer stands at the level of the highest base-256 digit in
//! which its time differs from the cursor. The next timer is in the first occupied slot of the lowest occupied level;
//! a slot of few timers is searched, one of many is spread over the level below, its timers in the order in which they
//! were set, so that timers of equal time fire in that order. The cursor never passes the limit it is given, so a
//! clock that stops between two events can still set a timer for "now". Checked against a binary heap in the tests.

use crate::executor::TaskId;
use crate::time::Time;

const BITS: u32 = 8;
const SLOTS: usize = 1 << BITS;
const LEVELS: usize = 8;
const WORDS: usize = SLOTS / 64;
const PLACES: usize = LEVELS * SLOTS;
/// How many timers of a slot are searched for the earliest, before they are spread over the level below.
const SEARCHED: usize = 8;
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
    task: TaskId,
    generation: u32,
    /// Cancelled, and removed when it is come across.
    cancelled: bool,
}

/// The timers of a slot, in the order in which they were set.
#[derive(Copy, Clone)]
struct List {
    head: u32,
    tail: u32,
}

const EMPTY: List = List { head: NIL, tail: NIL };

/// A set of pending timers, each of which wakes one task.
pub(crate) struct Wheel {
    cursor: u64,
    /// One bit a level, a bit a word of its slots, a bit a slot: what is occupied.
    levels: u8,
    words: [u8; LEVELS],
    slots: [[u64; WORDS]; LEVELS],
    lists: Box<[List; PLACES]>,
    nodes: Vec<Node>,
    free: u32,
}

impl Wheel {
    pub(crate) fn new() -> Wheel {
        Wheel {
            cursor: 0,
            levels: 0,
            words: [0; LEVELS],
            slots: [[0; WORDS]; LEVELS],
            lists: Box::new([EMPTY; PLACES]),
            nodes: Vec::new(),
            free: NIL,
        }
    }

    /// Sets a timer that wakes `task` at `time`; a time in the past fires at once.
    #[inline]
    pub(crate) fn set(&mut self, time: Time, task: TaskId) -> TimerKey {
        let time = time.ns().max(self.cursor);
        let key = self.allocate(time, task);
        self.link(key.node, time);
        key
    }

    /// Whether the timer is still to fire.
    #[inline]
    pub(crate) fn is_pending(&self, key: TimerKey) -> bool {
        self.nodes[key.node as usize].generation == key.generation
    }

    /// Cancels a pending timer; a stale key is let pass.
    pub(crate) fn cancel(&mut self, key: TimerKey) {
        let node = &mut self.nodes[key.node as usize];
        if node.generation == key.generation {
            node.generation = node.generation.wrapping_add(1);
            node.cancelled = true;
        }
    }

    /// The time of the next timer.
    pub(crate) fn peek(&mut self) -> Option<Time> {
        loop {
            let place = self.first_place()?;
            match self.search(place, usize::MAX) {
                Search::Found { time, .. } => return Some(Time::from_ns(time)),
                Search::Nothing => {}
                Search::TooMany => unreachable!("all are searched"),
            }
        }
    }

    /// Removes the next timer at or before `limit`: its time and the task it wakes.
    pub(crate) fn pop(&mut self, limit: Time) -> Option<(Time, TaskId)> {
        loop {
            let place = self.first_place()?;
            let List { head, tail } = self.lists[place];
            // A single timer is the earliest, and a slot of level 0 holds one time only.
            if (head == tail || place < SLOTS) && !self.nodes[head as usize].cancelled {
                let time = self.nodes[head as usize].time;
                return (time <= limit.ns()).then(|| self.fire(place, head, NIL, time));
            }
            match self.search(place, SEARCHED) {
                Search::Found { time, .. } if time > limit.ns() => return None,
                Search::Found { node, before, time } => return Some(self.fire(place, node, before, time)),
                Search::Nothing => {}
                Search::TooMany => {
                    let start = self.slot_start(place);
                    if start > limit.ns() {
                        return None;
                    }
                    self.cursor = start;
                    self.cascade(place);
                }
            }
        }
    }

    /// Looks for the earliest timer of a slot, the first set of equal ones, unless there are more than `most`. Cancelled
    /// ones that are come across are removed.
    fn search(&mut self, place: usize, most: usize) -> Search {
        let mut best = Search::Nothing;
        let mut best_time = u64::MAX;
        let (mut before, mut node) = (NIL, self.lists[place].head);
        let mut searched = 0;
        while node != NIL {
            let Node { time, next, cancelled, .. } = self.nodes[node as usize];
            if cancelled {
                self.remove(place, node, before);
                node = next;
                continue;
            }
            if time < best_time || searched == 0 {
                (best, best_time) = (Search::Found { node, before, time }, time);
            }
            searched += 1;
            if searched > most && place >= SLOTS {
                return Search::TooMany;
            }
            (before, node) = (node, next);
        }
        best
    }

    #[inline]
    fn fire(&mut self, place: usize, node: u32, before: u32, time: u64) -> (Time, TaskId) {
        let entry = &mut self.nodes[node as usize];
        entry.generation = entry.generation.wrapping_add(1);
        let task = entry.task;
        self.remove(place, node, before);
        // While a slot above level 0 has timers, the cursor stays before it: they are found from there.
        if self.lists[place].head == NIL {
            self.cursor = time;
        }
        (Time::from_ns(time), task)
    }

    /// Takes a node out of its list and frees it.
    #[inline]
    fn remove(&mut self, place: usize, node: u32, before: u32) {
        let next = std::mem::replace(&mut self.nodes[node as usize].next, self.free);
        self.free = node;
        match before {
            NIL => self.lists[place].head = next,
            before => self.nodes[before as usize].next = next,
        }
        if next == NIL {
            self.lists[place].tail = before;
            if before == NIL {
                self.vacate(place);
            }
        }
    }

    /// The first occupied slot in time order: lower levels come before higher ones.
    #[inline]
    fn first_place(&self) -> Option<usize> {
        if self.levels == 0 {
            return None;
        }
        let level = self.levels.trailing_zeros() as usize % LEVELS;
        let word = self.words[level].trailing_zeros() as usize % WORDS;
        let bit = self.slots[level][word].trailing_zeros() as usize;
        Some((level * SLOTS + word * 64 + bit) % PLACES)
    }

    #[inline]
    fn occupy(&mut self, place: usize) {
        let (level, word) = (place / SLOTS % LEVELS, place / 64 % WORDS);
        self.slots[level][word] |= 1 << (place % 64);
        self.words[level] |= 1 << word;
        self.levels |= 1 << level;
    }

    #[inline]
    fn vacate(&mut self, place: usize) {
        let (level, word) = (place / SLOTS % LEVELS, place / 64 % WORDS);
        self.slots[level][word] &= !(1 << (place % 64));
        if self.slots[level][word] == 0 {
            self.words[level] &= !(1 << word);
            if self.words[level] == 0 {
                self.levels &= !(1 << level);
            }
        }
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
        self.vacate(place);
        while node != NIL {
            let Node { time, next, .. } = self.nodes[node as usize];
            self.link(node, time);
            node = next;
        }
    }

    #[inline]
    fn place_of(&self, time: u64) -> usize {
        let digits = (time ^ self.cursor) | (SLOTS as u64 - 1);
        let level = (u64::BITS - 1 - digits.leading_zeros()) / BITS;
        let slot = (time >> (BITS * level)) as usize % SLOTS;
        (level as usize * SLOTS + slot) % PLACES
    }

    #[inline]
    fn link(&mut self, node: u32, time: u64) {
        let place = self.place_of(time);
        self.nodes[node as usize].next = NIL;
        let list = &mut self.lists[place];
        let tail = std::mem::replace(&mut list.tail, node);
        match tail {
            NIL => {
                list.head = node;
                self.occupy(place);
            }
            tail => self.nodes[tail as usize].next = node,
        }
    }

    #[inline]
    fn allocate(&mut self, time: u64, task: TaskId) -> TimerKey {
        match self.free {
            NIL => {
                self.nodes.push(Node { time, next: NIL, task, generation: 0, cancelled: false });
                let node = u32::try_from(self.nodes.len() - 1).expect("more than 2^32 timers are pending");
                TimerKey { node, generation: 0 }
            }
            node => {
                let entry = &mut self.nodes[node as usize];
                self.free = entry.next;
                (entry.time, entry.task, entry.cancelled) = (time, task, false);
                TimerKey { node, generation: entry.generation }
            }
        }
    }
}

/// What a search of a slot has found.
enum Search {
    Nothing,
    TooMany,
    Found {
        node: u32,
        /// The node before it in its list.
        before: u32,
        time: u64,
    },
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
