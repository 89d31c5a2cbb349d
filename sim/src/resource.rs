//! A resource that one user at a time keeps busy: a channel, a link, the array of a plane.
//!
//! Waiters are served by class, and within a class in the order of asking. Time on a resource passes only inside
//! [`Resource::occupy`] or [`Hold::occupy`]: there an occupant can be suspended for a more urgent one, keeps what
//! remains of its cost, and returns late from the same await. Busy time and waits are accounted by cause.
//!
//! Left out: several users at a time ([`Credits`](crate::credits::Credits) counts, [`Gate`](crate::gate::Gate) lets
//! everybody pass or nobody).

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::account::{Blame, CLASSES, Totals, Wait, Who};
use crate::executor::{Sim, TaskId};
use crate::slots::{Key, Slots};
use crate::time::{Span, Time};
use crate::wheel::TimerKey;

/// A resource for one user at a time.
pub struct Resource {
    sim: Sim,
    inner: RefCell<Inner>,
}

struct Inner {
    holder: Option<Key>,
    /// Waiting and suspended claims by class. A key goes stale when its claim is withdrawn.
    queues: [VecDeque<Key>; CLASSES],
    claims: Slots<Claim>,
    blame: Blame,
}

/// Somebody who has asked for the resource and has not given it back.
struct Claim {
    task: TaskId,
    who: Who,
    state: State,
    /// What the claim still costs once it is served; `None` when the holder says so later.
    cost: Option<Span>,
    waited: Wait,
}

enum State {
    Queued {
        since: Totals,
    },
    /// Time passes until the timer fires.
    Occupied {
        timer: TimerKey,
        ends: Time,
    },
    /// The resource is held and no time is being spent on it.
    Held,
}

impl Resource {
    /// An idle resource.
    pub fn new(sim: &Sim) -> Resource {
        let inner = Inner {
            holder: None,
            queues: [const { VecDeque::new() }; CLASSES],
            claims: Slots::new(),
            blame: Blame::new(),
        };
        Resource { sim: sim.clone(), inner: RefCell::new(inner) }
    }

    /// Waits for the resource, keeps it busy for `cost`, gives it back. Returns the time spent waiting,
    /// suspensions included: the await lasts exactly that and `cost`.
    pub fn occupy(&self, cost: Span, who: Who) -> Occupy<'_> {
        Occupy { resource: self, cost, who, claim: None }
    }

    /// Waits for the resource and holds it until the [`Hold`] is dropped. While no time is spent on it through
    /// [`Hold::occupy`], a holder cannot be suspended.
    pub fn take(&self, who: Who) -> Take<'_> {
        Take { resource: self, who, claim: None }
    }

    /// Whether nobody has the resource.
    pub fn is_idle(&self) -> bool {
        self.inner.borrow().holder.is_none()
    }

    /// Busy time so far by cause, up to now.
    pub fn usage(&self) -> Totals {
        self.inner.borrow().blame.totals(self.sim.now())
    }

    fn ask(&self, who: Who, cost: Option<Span>) -> Key {
        let mut inner = self.inner.borrow_mut();
        let claim = Claim { task: self.sim.current_task(), who, state: State::Held, cost, waited: Wait::ZERO };
        let key = inner.claims.insert(claim);
        if inner.make_way(&self.sim, who) {
            inner.grant(&self.sim, key);
        } else {
            inner.enqueue(self.sim.now(), key);
        }
        key
    }

    /// Gives up a claim in whatever state it is. A granted one passes the resource on.
    fn withdraw(&self, key: Key) {
        self.inner.borrow_mut().withdraw(&self.sim, key);
    }
}

impl Inner {
    /// Whether the resource is free for a newcomer, after suspending the occupant if that is the newcomer's right.
    fn make_way(&mut self, sim: &Sim, newcomer: Who) -> bool {
        let Some(holder) = self.holder else { return true };
        let claim = self.claims.get_mut(holder).expect("the holder has a claim");
        let State::Occupied { timer, ends } = claim.state else { return false };
        if !newcomer.preempts || newcomer.class >= claim.who.class || !sim.timer_is_pending(timer) {
            return false;
        }
        sim.cancel_timer(timer);
        claim.cost = Some(ends - sim.now());
        claim.state = State::Queued { since: self.blame.totals(sim.now()) };
        self.queues[claim.who.class.index()].push_front(holder);
        self.holder = None;
        true
    }

    fn enqueue(&mut self, now: Time, key: Key) {
        let since = self.blame.totals(now);
        let claim = self.claims.get_mut(key).expect("a new claim");
        claim.state = State::Queued { since };
        self.queues[claim.who.class.index()].push_back(key);
    }

    /// Makes `key` the holder: its time starts at once, or its task is told.
    fn grant(&mut self, sim: &Sim, key: Key) {
        let now = sim.now();
        let claim = self.claims.get_mut(key).expect("a granted claim exists");
        if let State::Queued { since } = claim.state {
            claim.waited += self.blame.since(&since, now);
            if claim.cost.is_none() {
                sim.wake(claim.task);
            }
        }
        claim.state = match claim.cost {
            Some(cost) => State::Occupied { timer: sim.set_timer(now + cost, claim.task), ends: now + cost },
            None => State::Held,
        };
        self.holder = Some(key);
        self.blame.switch(now, Some(claim.who.cause));
    }

    fn withdraw(&mut self, sim: &Sim, key: Key) -> Option<Claim> {
        let claim = self.claims.remove(key)?;
        if self.holder == Some(key) {
            if let State::Occupied { timer, .. } = claim.state {
                sim.cancel_timer(timer);
            }
            self.holder = None;
            self.pass_on(sim);
        }
        Some(claim)
    }

    fn pass_on(&mut self, sim: &Sim) {
        for class in 0..CLASSES {
            while let Some(key) = self.queues[class].pop_front() {
                if self.claims.get(key).is_some() {
                    return self.grant(sim, key);
                }
            }
        }
        self.blame.switch(sim.now(), None);
    }
}

/// See [`Resource::occupy`].
#[must_use = "a future does nothing until it is awaited"]
pub struct Occupy<'a> {
    resource: &'a Resource,
    cost: Span,
    who: Who,
    claim: Option<Key>,
}

impl Future for Occupy<'_> {
    type Output = Wait;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Wait> {
        let Resource { sim, inner } = self.resource;
        let Some(key) = self.claim else {
            if self.cost.is_zero() && self.resource.is_idle() {
                return Poll::Ready(Wait::ZERO);
            }
            self.claim = Some(self.resource.ask(self.who, Some(self.cost)));
            return Poll::Pending;
        };
        let mut inner = inner.borrow_mut();
        match inner.claims.get(key).expect("the claim of a live future").state {
            State::Occupied { timer, .. } if !sim.timer_is_pending(timer) => {
                let claim = inner.withdraw(sim, key).expect("just seen");
                drop(inner);
                self.claim = None;
                Poll::Ready(claim.waited)
            }
            _ => Poll::Pending,
        }
    }
}

impl Drop for Occupy<'_> {
    fn drop(&mut self) {
        if let Some(key) = self.claim {
            self.resource.withdraw(key);
        }
    }
}

/// See [`Resource::take`].
#[must_use = "a future does nothing until it is awaited"]
pub struct Take<'a> {
    resource: &'a Resource,
    who: Who,
    claim: Option<Key>,
}

impl<'a> Future for Take<'a> {
    type Output = (Hold<'a>, Wait);

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<(Hold<'a>, Wait)> {
        let key = match self.claim {
            Some(key) => key,
            None => {
                let key = self.resource.ask(self.who, None);
                self.claim = Some(key);
                key
            }
        };
        let inner = self.resource.inner.borrow();
        let claim = inner.claims.get(key).expect("the claim of a live future");
        if !matches!(claim.state, State::Held) {
            return Poll::Pending;
        }
        let waited = claim.waited;
        drop(inner);
        self.claim = None;
        Poll::Ready((Hold { resource: self.resource, claim: key }, waited))
    }
}

impl Drop for Take<'_> {
    fn drop(&mut self) {
        if let Some(key) = self.claim {
            self.resource.withdraw(key);
        }
    }
}

/// The right to a resource, given back when dropped.
pub struct Hold<'a> {
    resource: &'a Resource,
    claim: Key,
}

impl Hold<'_> {
    /// Spends `cost` on the resource held. Returns the time for which it was suspended.
    pub fn occupy(&mut self, cost: Span) -> HoldOccupy<'_> {
        HoldOccupy { resource: self.resource, key: self.claim, cost, started: false }
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.resource.withdraw(self.claim);
    }
}

/// See [`Hold::occupy`].
#[must_use = "a future does nothing until it is awaited"]
pub struct HoldOccupy<'a> {
    resource: &'a Resource,
    key: Key,
    cost: Span,
    started: bool,
}

impl Future for HoldOccupy<'_> {
    type Output = Wait;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Wait> {
        let Resource { sim, inner } = self.resource;
        let mut inner = inner.borrow_mut();
        let totals = inner.blame.totals(sim.now());
        let claim = inner.claims.get_mut(self.key).expect("a hold has a claim");
        if !self.started {
            let ends = sim.now() + self.cost;
            claim.task = sim.current_task();
            claim.cost = Some(self.cost);
            claim.waited = Wait::ZERO;
            claim.state = match claim.state {
                // An earlier occupy was dropped while suspended, and the resource is not back yet.
                State::Queued { .. } => State::Queued { since: totals },
                _ => State::Occupied { timer: sim.set_timer(ends, claim.task), ends },
            };
            drop(inner);
            self.started = true;
            return Poll::Pending;
        }
        match claim.state {
            State::Occupied { timer, .. } if !sim.timer_is_pending(timer) => {
                claim.state = State::Held;
                claim.cost = None;
                let waited = claim.waited;
                drop(inner);
                self.started = false;
                Poll::Ready(waited)
            }
            _ => Poll::Pending,
        }
    }
}

impl Drop for HoldOccupy<'_> {
    /// Given up half way: the hold stays, the rest of the cost is not spent.
    fn drop(&mut self) {
        if !self.started {
            return;
        }
        let Resource { sim, inner } = self.resource;
        let mut inner = inner.borrow_mut();
        let holds = inner.holder == Some(self.key);
        let Some(claim) = inner.claims.get_mut(self.key) else { return };
        if let State::Occupied { timer, .. } = claim.state {
            sim.cancel_timer(timer);
        }
        claim.cost = None;
        if holds {
            claim.state = State::Held;
        }
    }
}
