//! Locks of stripes, granted in the order of requests. Writes of a stripe run one after the other. A read that must
//! reconstruct data from several chunks runs concurrently only with other readers.
//!
//! A plain read takes no lock. If it combines chunks, it checks afterwards whether they are of one moment. They are
//! unless writes to members began since, or earlier writes were not all in place on the members of these chunks. A
//! writer's reads, and writes that only another member delays, disturb no read.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};

use nandscape_sim::Sim;
use nandscape_sim::executor::TaskId;
use nandscape_sim::slots::{Key, Slots};

/// Groups of stripes whose versions are counted. A collision costs a second read, and no more.
const GROUPS: usize = 4_096;

/// See the file.
pub(crate) struct StripeLocks {
    sim: Sim,
    inner: RefCell<Inner>,
    /// Stripes whose parity or copies may not fit the data, as ranges from a first stripe to the one after the last.
    /// Their write ended before it was in place on all members, or a volatile cache may have lost a part of it.
    torn: RefCell<BTreeMap<u64, u64>>,
    /// How often writes to members have begun, by group of stripes.
    versions: Box<[Cell<u32>]>,
}

#[derive(Default)]
struct Inner {
    /// Stripes that are locked.
    stripes: BTreeMap<u64, Entry>,
    waiters: Slots<Waiter>,
}

#[derive(Default)]
struct Entry {
    is_exclusive: bool,
    /// Members whose part of the writes of the holder is not in place, a bit each.
    pending: u32,
    shared: u32,
    queue: VecDeque<Key>,
}

struct Waiter {
    task: TaskId,
    is_exclusive: bool,
    is_granted: bool,
}

/// A lock that is held.
pub(crate) struct Guard<'a> {
    locks: &'a StripeLocks,
    stripe: u64,
    is_exclusive: bool,
}

/// The state of a stripe that a plain read has seen before it was sent.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Seen {
    version: u32,
    pending: u32,
}

impl StripeLocks {
    pub(crate) fn new(sim: &Sim) -> StripeLocks {
        let versions = (0..GROUPS).map(|_| Cell::new(0)).collect();
        StripeLocks { sim: sim.clone(), inner: RefCell::default(), torn: RefCell::default(), versions }
    }

    fn version(&self, stripe: u64) -> &Cell<u32> {
        &self.versions[(stripe % GROUPS as u64) as usize]
    }

    /// Whether someone waits for the lock of a stripe.
    pub(crate) fn is_awaited(&self, stripe: u64) -> bool {
        self.inner.borrow().stripes.get(&stripe).is_some_and(|entry| !entry.queue.is_empty())
    }

    /// The present state of a stripe.
    pub(crate) fn seen(&self, stripe: u64) -> Seen {
        let pending = self.inner.borrow().stripes.get(&stripe).map_or(0, |entry| entry.pending);
        Seen { version: self.version(stripe).get(), pending }
    }

    /// Whether data read of `members` since is of one moment.
    pub(crate) fn is_of_one_moment(&self, stripe: u64, seen: Seen, members: u32) -> bool {
        seen.version == self.version(stripe).get() && seen.pending & members == 0 && !self.is_torn(stripe)
    }

    /// A write of a stripe was interrupted: nothing is reconstructed from the stripe until it is made consistent.
    pub(crate) fn tear(&self, stripe: u64) {
        if !self.is_torn(stripe) {
            self.torn.borrow_mut().insert(stripe, stripe + 1);
        }
    }

    /// The same of stripes in a row.
    pub(crate) fn tear_all(&self, stripes: Range<u64>) {
        let mut torn = self.torn.borrow_mut();
        let (mut start, mut end) = (stripes.start, stripes.end);
        // Ranges do not overlap: a range merges with those that it meets.
        while let Some((first, last)) =
            torn.range(..end).next_back().map(|(first, last)| (*first, *last)).filter(|(_, last)| *last > start)
        {
            torn.remove(&first);
            (start, end) = (start.min(first), end.max(last));
        }
        torn.insert(start, end);
    }

    /// A stripe is consistent again.
    pub(crate) fn mend(&self, stripe: u64) {
        let mut torn = self.torn.borrow_mut();
        let Some((first, last)) = torn.range(..=stripe).next_back().map(|(first, last)| (*first, *last)) else {
            return;
        };
        if stripe >= last {
            return;
        }
        torn.remove(&first);
        if first < stripe {
            torn.insert(first, stripe);
        }
        if stripe + 1 < last {
            torn.insert(stripe + 1, last);
        }
    }

    /// Whether a stripe may be inconsistent.
    pub(crate) fn is_torn(&self, stripe: u64) -> bool {
        self.next_torn(stripe) == Some(stripe)
    }

    /// The first stripe from one on that may be inconsistent.
    pub(crate) fn next_torn(&self, from: u64) -> Option<u64> {
        let torn = self.torn.borrow();
        let before = torn.range(..=from).next_back().filter(|(_, last)| **last > from);
        before.map(|_| from).or_else(|| torn.range(from..).next().map(|(first, _)| *first))
    }

    /// Whether a writer holds a stripe, or waits for it.
    pub(crate) fn is_written(&self, stripe: u64) -> bool {
        self.inner.borrow().stripes.get(&stripe).is_some_and(|entry| entry.is_exclusive || !entry.queue.is_empty())
    }

    /// Writes to members begin, by the holder of the lock.
    pub(crate) fn writes_begin(&self, stripe: u64, members: u32) {
        self.version(stripe).set(self.version(stripe).get().wrapping_add(1));
        if let Some(entry) = self.inner.borrow_mut().stripes.get_mut(&stripe) {
            entry.pending |= members;
        }
    }

    /// The write to a member is in place. One that ended otherwise is pending until the lock is given back.
    pub(crate) fn is_in_place(&self, stripe: u64, member: usize) {
        if let Some(entry) = self.inner.borrow_mut().stripes.get_mut(&stripe) {
            entry.pending &= !(1 << member);
        }
    }

    /// Locks a stripe against writers.
    pub(crate) fn shared(&self, stripe: u64) -> Acquire<'_> {
        Acquire { locks: self, stripe, is_exclusive: false, key: None, is_done: false }
    }

    /// Locks a stripe exclusively.
    pub(crate) fn exclusive(&self, stripe: u64) -> Acquire<'_> {
        Acquire { locks: self, stripe, is_exclusive: true, key: None, is_done: false }
    }

    fn release(&self, stripe: u64, is_exclusive: bool) {
        let mut inner = self.inner.borrow_mut();
        let entry = inner.stripes.get_mut(&stripe).expect("a lock that is held has an entry");
        let is_held = if is_exclusive { entry.is_exclusive } else { !entry.is_exclusive && entry.shared > 0 };
        assert!(is_held, "stripe {stripe} is unlocked by another than its holder");
        match is_exclusive {
            true => (entry.is_exclusive, entry.pending) = (false, 0),
            false => entry.shared -= 1,
        }
        self.grant(&mut inner, stripe);
    }

    fn grant(&self, inner: &mut Inner, stripe: u64) {
        let Inner { stripes, waiters } = inner;
        let Some(entry) = stripes.get_mut(&stripe) else { return };
        while let Some(key) = entry.queue.front() {
            let Some(waiter) = waiters.get_mut(*key) else {
                entry.queue.pop_front();
                continue;
            };
            if !entry.admits(waiter.is_exclusive) {
                return;
            }
            entry.take(waiter.is_exclusive);
            waiter.is_granted = true;
            self.sim.wake(waiter.task);
            entry.queue.pop_front();
        }
        if !entry.is_exclusive && entry.shared == 0 {
            stripes.remove(&stripe);
        }
    }
}

impl Entry {
    fn admits(&self, is_exclusive: bool) -> bool {
        !self.is_exclusive && (!is_exclusive || self.shared == 0)
    }

    fn take(&mut self, is_exclusive: bool) {
        match is_exclusive {
            true => self.is_exclusive = true,
            false => self.shared += 1,
        }
    }
}

/// Waits for a lock.
#[must_use = "a future does nothing until it is awaited"]
pub(crate) struct Acquire<'a> {
    locks: &'a StripeLocks,
    stripe: u64,
    is_exclusive: bool,
    key: Option<Key>,
    is_done: bool,
}

impl<'a> Future for Acquire<'a> {
    type Output = Guard<'a>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Guard<'a>> {
        let Acquire { locks, stripe, is_exclusive, key, .. } = *self;
        let mut inner = locks.inner.borrow_mut();
        let granted = match key {
            None => {
                let entry = inner.stripes.entry(stripe).or_default();
                let at_once = entry.queue.is_empty() && entry.admits(is_exclusive);
                if at_once {
                    entry.take(is_exclusive);
                } else {
                    let task = locks.sim.current_task();
                    let key = inner.waiters.insert(Waiter { task, is_exclusive, is_granted: false });
                    inner.stripes.entry(stripe).or_default().queue.push_back(key);
                    self.key = Some(key);
                }
                at_once
            }
            Some(key) => {
                let waiter = inner.waiters.get_mut(key).expect("the waiter of a live future");
                waiter.task = locks.sim.current_task();
                let granted = waiter.is_granted;
                if granted {
                    inner.waiters.remove(key);
                    self.key = None;
                }
                granted
            }
        };
        drop(inner);
        if !granted {
            return Poll::Pending;
        }
        self.is_done = true;
        Poll::Ready(Guard { locks, stripe, is_exclusive })
    }
}

impl Drop for Acquire<'_> {
    fn drop(&mut self) {
        let Some(key) = self.key.filter(|_| !self.is_done) else { return };
        let waiter = self.locks.inner.borrow_mut().waiters.remove(key);
        if waiter.is_some_and(|waiter| waiter.is_granted) {
            self.locks.release(self.stripe, self.is_exclusive);
        } else {
            let mut inner = self.locks.inner.borrow_mut();
            self.locks.grant(&mut inner, self.stripe);
        }
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.locks.release(self.stripe, self.is_exclusive);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_sim::{Executor, Span};
    use std::rc::Rc;

    /// A deliberate mistake: a reader that unlocks what a writer holds.
    #[test]
    #[should_panic(expected = "stripe 3 is unlocked by another than its holder")]
    fn a_lock_of_another_holder_is_not_given_back() {
        let mut executor = Executor::new();
        let locks = StripeLocks::new(&executor.sim());
        executor
            .block_on(async {
                let guard = locks.exclusive(3).await;
                locks.release(3, false);
                drop(guard);
            })
            .unwrap();
    }

    #[test]
    fn torn_stripes_are_those_of_a_plain_set() {
        let locks = StripeLocks::new(&Executor::new().sim());
        let mut plain = std::collections::BTreeSet::new();
        let mut rng = nandscape_sim::Seed::new(7).rng();
        for _ in 0..4_000 {
            let (stripe, more) = (rng.below(60), rng.below(9));
            match rng.below(3) {
                0 => {
                    locks.tear(stripe);
                    plain.insert(stripe);
                }
                1 if more > 0 => {
                    locks.tear_all(stripe..stripe + more);
                    plain.extend(stripe..stripe + more);
                }
                _ => {
                    locks.mend(stripe);
                    plain.remove(&stripe);
                }
            }
            let from = rng.below(70);
            assert_eq!(locks.next_torn(from), plain.range(from..).next().copied());
            assert_eq!(locks.is_torn(from), plain.contains(&from));
        }
    }

    #[test]
    fn writers_are_alone_readers_are_not_and_the_order_is_kept() {
        for mut executor in [Executor::new(), Executor::with_spurious_polls()] {
            let sim = executor.sim();
            let (locks, log) = (Rc::new(StripeLocks::new(&sim)), Rc::new(RefCell::new(Vec::new())));
            for (number, is_exclusive) in [false, false, true, false, true].into_iter().enumerate() {
                let (sim, locks, log) = (sim.clone(), locks.clone(), log.clone());
                executor.sim().spawn(async move {
                    let guard = if is_exclusive { locks.exclusive(3).await } else { locks.shared(3).await };
                    log.borrow_mut().push((number, sim.now().ns()));
                    sim.sleep(Span::from_ns(10)).await;
                    drop(guard);
                });
            }
            executor
                .block_on(async {
                    sim.sleep(Span::from_ns(1)).await;
                    let seen = locks.seen(3);
                    assert!(locks.is_of_one_moment(3, seen, !0), "readers change nothing");
                    sim.sleep(Span::from_ns(10)).await;
                    assert!(locks.is_of_one_moment(3, seen, !0) && locks.is_written(3), "a writer may read");
                    locks.writes_begin(3, 0b101);
                    assert!(!locks.is_of_one_moment(3, seen, 0b010), "writes have begun since");
                    let seen = locks.seen(3);
                    assert!(!locks.is_of_one_moment(3, seen, 0b110) && locks.is_of_one_moment(3, seen, 0b010));
                    locks.is_in_place(3, 2);
                    assert!(!locks.is_of_one_moment(3, seen, 0b110), "it was not when the read was sent");
                    assert!(locks.is_of_one_moment(3, locks.seen(3), 0b110), "only another member is waited for");
                    // A waiter that gives up does not delay the others.
                    let gave_up = locks.exclusive(3);
                    drop(gave_up);
                    sim.sleep(Span::from_ns(100)).await;
                })
                .unwrap();
            assert_eq!(*log.borrow(), [(0, 0), (1, 0), (2, 10), (3, 20), (4, 30)]);
            assert!(locks.inner.borrow().stripes.is_empty());
        }
    }
}
