//! Counted room, handed out strictly in the order of asking: the slots of a write buffer, of a command table.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::account::{Blame, Cause, Totals, Wait};
use crate::executor::{Sim, TaskId};
use crate::slots::{Key, Slots};

/// A number of credits, taken and given back.
pub struct Credits {
    sim: Sim,
    inner: RefCell<Inner>,
}

struct Inner {
    free: usize,
    queue: VecDeque<Key>,
    claims: Slots<Claim>,
    blame: Blame,
}

struct Claim {
    task: TaskId,
    count: usize,
    begun: Totals,
    granted: Option<Wait>,
}

impl Credits {
    /// `count` free credits. Waits are put down to `scarcity` until [`Credits::blame`] names another cause.
    pub fn new(sim: &Sim, count: usize, scarcity: Cause) -> Credits {
        let mut blame = Blame::new();
        blame.switch(sim.now(), Some(scarcity));
        let inner = Inner { free: count, queue: VecDeque::new(), claims: Slots::new(), blame };
        Credits { sim: sim.clone(), inner: RefCell::new(inner) }
    }

    /// Waits for `count` credits; the time is added to `waited`. They come back through [`Credits::give`].
    pub async fn take(&self, count: usize, waited: &mut Wait) {
        if !self.try_take(count) {
            *waited += Take { credits: self, count, claim: None }.await;
        }
    }

    /// Takes `count` credits if they are free and nobody waits.
    pub fn try_take(&self, count: usize) -> bool {
        let mut inner = self.inner.borrow_mut();
        let granted = inner.queue.is_empty() && inner.free >= count;
        if granted {
            inner.free -= count;
        }
        granted
    }

    /// Gives back `count` credits.
    pub fn give(&self, count: usize) {
        let mut inner = self.inner.borrow_mut();
        inner.free += count;
        inner.pass_on(&self.sim);
    }

    /// Number of free credits.
    pub fn free(&self) -> usize {
        self.inner.borrow().free
    }

    /// Whether anybody waits.
    pub fn contended(&self) -> bool {
        !self.inner.borrow().claims.is_empty()
    }

    /// From now on waits are put down to `cause`.
    pub fn blame(&self, cause: Cause) {
        let mut inner = self.inner.borrow_mut();
        if inner.blame.current() != Some(cause) {
            inner.blame.switch(self.sim.now(), Some(cause));
        }
    }
}

impl Inner {
    fn pass_on(&mut self, sim: &Sim) {
        while let Some(&key) = self.queue.front() {
            if let Some(claim) = self.claims.get_mut(key) {
                if claim.count > self.free {
                    return;
                }
                self.free -= claim.count;
                claim.granted = Some(self.blame.since(&claim.begun, sim.now()));
                sim.wake(claim.task);
            }
            self.queue.pop_front();
        }
    }
}

/// Waits for credits; returns how long that was.
struct Take<'a> {
    credits: &'a Credits,
    count: usize,
    claim: Option<Key>,
}

impl Future for Take<'_> {
    type Output = Wait;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Wait> {
        let credits = self.credits;
        let Some(key) = self.claim else {
            let mut inner = credits.inner.borrow_mut();
            let begun = inner.blame.totals(credits.sim.now());
            let task = credits.sim.current_task();
            let key = inner.claims.insert(Claim { task, count: self.count, begun, granted: None });
            inner.queue.push_back(key);
            self.claim = Some(key);
            return Poll::Pending;
        };
        let mut inner = credits.inner.borrow_mut();
        let Some(waited) = inner.claims.get(key).expect("the claim of a live future").granted else {
            return Poll::Pending;
        };
        inner.claims.remove(key);
        drop(inner);
        self.claim = None;
        Poll::Ready(waited)
    }
}

impl Drop for Take<'_> {
    fn drop(&mut self) {
        let Some(key) = self.claim else { return };
        let mut inner = self.credits.inner.borrow_mut();
        let claim = inner.claims.remove(key).expect("the claim of a live future");
        if claim.granted.is_some() {
            inner.free += claim.count;
        }
        inner.pass_on(&self.credits.sim);
    }
}
