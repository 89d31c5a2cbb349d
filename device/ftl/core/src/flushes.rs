//! Flushes of a write buffer in progress, each with the number of slots that it still waits for. No slot is scanned when a
//! flush begins.
//!
//! Slots are numbered in the order of arrival. A flush waits for all slots in use when it begins: those with lower
//! numbers than the next slot.

use std::rc::Rc;

use crate::ftl::Settling;

/// A flush or a write that waits for a slot.
pub struct Watcher {
    /// Its place among the flushes and the writes that wait for the same slot: the number of flushes that began before.
    order: u64,
    /// What it notifies.
    pub settling: Rc<Settling>,
}

struct Flush {
    number: u64,
    /// It waits for slots with lower arrival numbers.
    before: u64,
    /// Slots that are not on flash yet.
    left: u32,
    settling: Rc<Settling>,
}

/// See the module.
#[derive(Default)]
pub struct Flushes {
    under_way: Vec<Flush>,
    begun: u64,
    /// The last flush waits for slots with lower arrival numbers.
    before: u64,
    /// Of these slots, those that are not being programmed.
    unstarted: u32,
}

impl Flushes {
    /// A flush begins that waits for `in_use` slots, of which `unstarted` are not being programmed.
    pub fn begin(&mut self, before: u64, in_use: u32, unstarted: u32, settling: &Rc<Settling>) {
        let flush = Flush { number: self.begun, before, left: in_use, settling: settling.clone() };
        self.under_way.push(flush);
        self.begun += 1;
        (self.before, self.unstarted) = (before, unstarted);
    }

    /// Whether a slot that is not being programmed is waited for.
    #[inline]
    pub fn is_urgent(&self) -> bool {
        self.unstarted > 0
    }

    /// The number of such slots.
    #[inline]
    pub fn unstarted(&self) -> u32 {
        self.unstarted
    }

    /// Whether the last flush waits, or has waited, for a slot.
    #[inline]
    pub fn covers(&self, arrival: u64) -> bool {
        arrival < self.before
    }

    /// The program of a slot has started.
    #[inline]
    pub fn started(&mut self, arrival: u64) {
        self.unstarted -= u32::from(self.covers(arrival));
    }

    /// The program of a slot has failed: it will be started again.
    #[inline]
    pub fn restarted(&mut self, arrival: u64) {
        self.unstarted += u32::from(self.covers(arrival));
    }

    /// A write that waits for a slot from now on.
    #[inline]
    pub fn watcher(&self, settling: &Rc<Settling>) -> Watcher {
        Watcher { order: self.begun, settling: settling.clone() }
    }

    /// A slot is on flash, or has been deallocated. Adds the flushes that have waited for it to its watchers, in the order in
    /// which they began to wait.
    #[inline]
    pub fn slot_done(&mut self, arrival: u64, watchers: &mut Vec<Watcher>) {
        if self.covers(arrival) {
            self.flushed(arrival, watchers);
        }
    }

    fn flushed(&mut self, arrival: u64, watchers: &mut Vec<Watcher>) {
        let mut flushes: Vec<Watcher> = Vec::new();
        for flush in self.under_way.iter_mut().filter(|flush| arrival < flush.before) {
            flush.left -= 1;
            flushes.push(Watcher { order: flush.number, settling: flush.settling.clone() });
        }
        self.under_way.retain(|flush| flush.left > 0);
        // A write that began to wait before a flush has the same number.
        watchers.append(&mut flushes);
        watchers.sort_by_key(|watcher| watcher.order);
    }

    /// A slot is on flash, or has been deallocated. Adds the flushes that wait for no other slot to `ended`.
    #[inline]
    pub fn end_with(&mut self, arrival: u64, ended: &mut Vec<Rc<Settling>>) {
        if self.covers(arrival) {
            self.under_way.iter_mut().filter(|flush| arrival < flush.before).for_each(|flush| flush.left -= 1);
            ended.extend(self.under_way.extract_if(.., |flush| flush.left == 0).map(|flush| flush.settling));
        }
    }

    /// Ends all flushes; each with the slots that it has waited for.
    pub fn give_up(&mut self) -> impl Iterator<Item = (Rc<Settling>, u32)> {
        (self.before, self.unstarted) = (0, 0);
        self.under_way.drain(..).map(|flush| (flush.settling, flush.left))
    }
}
