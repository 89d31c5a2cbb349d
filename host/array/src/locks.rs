//! Locks of stripes, granted in the order of asking: writes of a stripe go one after the other, and what puts data together
//! from several chunks goes beside other readers only. A plain read takes no lock; it asks afterwards whether a writer was
//! there meanwhile, if it needs to know.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
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
    /// Writers that have begun and ended, by group of stripes.
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

/// What a plain read has seen of a stripe; `None` if a writer was there.
pub(crate) type Seen = Option<u32>;

impl StripeLocks {
    pub(crate) fn new(sim: &Sim) -> StripeLocks {
        let versions = (0..GROUPS).map(|_| Cell::new(0)).collect();
        StripeLocks { sim: sim.clone(), inner: RefCell::default(), versions }
    }

    fn version(&self, stripe: u64) -> &Cell<u32> {
        &self.versions[(stripe % GROUPS as u64) as usize]
    }

    /// The version of a stripe that nobody writes.
    pub(crate) fn seen(&self, stripe: u64) -> Seen {
        let inner = self.inner.borrow();
        let is_written = inner.stripes.get(&stripe).is_some_and(|entry| entry.is_exclusive);
        (!is_written).then(|| self.version(stripe).get())
    }

    /// Whether nobody has written a stripe since.
    pub(crate) fn is_unchanged(&self, stripe: u64, seen: Seen) -> bool {
        seen == Some(self.version(stripe).get())
    }

    /// Locks a stripe against writers.
    pub(crate) fn shared(&self, stripe: u64) -> Acquire<'_> {
        Acquire { locks: self, stripe, is_exclusive: false, key: None, is_done: false }
    }

    /// Locks a stripe against all others.
    pub(crate) fn exclusive(&self, stripe: u64) -> Acquire<'_> {
        Acquire { locks: self, stripe, is_exclusive: true, key: None, is_done: false }
    }

    fn release(&self, stripe: u64, is_exclusive: bool) {
        let mut inner = self.inner.borrow_mut();
        let entry = inner.stripes.get_mut(&stripe).expect("a lock that is held has an entry");
        match is_exclusive {
            true => entry.is_exclusive = false,
            false => entry.shared -= 1,
        }
        if is_exclusive {
            self.version(stripe).set(self.version(stripe).get().wrapping_add(1));
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
            self.count_writer(stripe, entry.is_exclusive);
        }
        if !entry.is_exclusive && entry.shared == 0 {
            stripes.remove(&stripe);
        }
    }

    fn count_writer(&self, stripe: u64, is_exclusive: bool) {
        if is_exclusive {
            self.version(stripe).set(self.version(stripe).get().wrapping_add(1));
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
                    locks.count_writer(stripe, is_exclusive);
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
                    assert!(locks.is_unchanged(3, seen), "readers change nothing");
                    sim.sleep(Span::from_ns(10)).await;
                    assert!(!locks.is_unchanged(3, seen) && locks.seen(3).is_none());
                    // One that gives up does not hold the others up.
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
