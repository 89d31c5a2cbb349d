//! A resource that one user at a time keeps busy: a channel, a link, the array of a plane.
//!
//! Waiters are served by class, and within a class in the order of asking. Time on a resource passes only inside
//! [`Resource::occupy`] or [`Hold::occupy`]: there an occupant can be suspended for a more urgent one, keeps what
//! remains of its cost, and returns late from the same await. Busy time and waits are accounted by cause.
//!
//! Left out: several users at a time ([`Credits`](crate::credits::Credits) counts).

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::account::{Blame, CLASSES, Totals, Wait, Who};
use crate::executor::{Sim, TaskId};
use crate::time::{Span, Time};
use crate::wheel::TimerKey;

/// A resource for one user at a time.
pub struct Resource {
    sim: Sim,
    inner: RefCell<Inner>,
}

struct Inner {
    holder: Option<Claim>,
    blame: Blame,
    /// Numbers claims; a number is never given twice.
    last: u64,
    waiting: usize,
    /// Waiting and suspended claims by class.
    queues: [VecDeque<Waiting>; CLASSES],
    /// What the holder had waited when it was given the resource, until it is told.
    waited: Wait,
}

/// Somebody who has asked for the resource and has not given it back.
#[derive(Copy, Clone)]
struct Claim {
    number: u64,
    task: TaskId,
    who: Who,
    /// What it still costs once it is served; `None` when the holder says so later.
    cost: Option<Span>,
    /// While time passes: the timer that ends it, and when that is.
    running: Option<(TimerKey, Time)>,
}

/// A claim in line.
struct Waiting {
    claim: Claim,
    since: Totals,
    waited: Wait,
}

impl Resource {
    /// An idle resource.
    pub fn new(sim: &Sim) -> Resource {
        let inner = Inner {
            holder: None,
            blame: Blame::new(),
            last: 0,
            waiting: 0,
            queues: [const { VecDeque::new() }; CLASSES],
            waited: Wait::ZERO,
        };
        Resource { sim: sim.clone(), inner: RefCell::new(inner) }
    }

    /// Waits for the resource, keeps it busy for `cost`, gives it back. Time spent waiting, suspensions included, is
    /// added to `waited`: the await lasts exactly that and `cost`.
    #[inline]
    pub fn occupy<'a>(&'a self, cost: Span, who: Who, waited: &'a mut Wait) -> Occupy<'a> {
        Occupy { resource: self, cost, who, waited, claim: None }
    }

    /// Waits for the resource and holds it until the [`Hold`] is dropped. While no time is spent on it through
    /// [`Hold::occupy`], a holder cannot be suspended. Time spent waiting is added to `waited`.
    pub fn take<'a, 'w>(&'a self, who: Who, waited: &'w mut Wait) -> Take<'a, 'w> {
        Take { resource: self, who, waited, claim: None }
    }

    /// Whether nobody has the resource.
    pub fn is_idle(&self) -> bool {
        self.inner.borrow().holder.is_none()
    }

    /// Busy time so far by cause, up to now.
    pub fn usage(&self) -> Totals {
        self.inner.borrow().blame.totals(self.sim.now())
    }

    /// Asks for the resource: the number of the claim.
    fn ask(&self, who: Who, cost: Option<Span>) -> u64 {
        let inner = &mut *self.inner.borrow_mut();
        inner.last += 1;
        let claim = Claim { number: inner.last, task: self.sim.current_task(), who, cost, running: None };
        if inner.make_way(&self.sim, who) {
            inner.grant(&self.sim, claim);
        } else {
            let waiting = Waiting { claim, since: inner.blame.totals(self.sim.now()), waited: Wait::ZERO };
            inner.queues[who.class.index()].push_back(waiting);
            inner.waiting += 1;
        }
        inner.last
    }

    /// Gives up a claim in whatever state it is. A granted one passes the resource on.
    fn withdraw(&self, number: u64) {
        let inner = &mut *self.inner.borrow_mut();
        match inner.held_by(number) {
            Some(claim) => {
                if let Some((timer, _)) = claim.running {
                    self.sim.cancel_timer(timer);
                }
                inner.waited = Wait::ZERO;
                inner.pass_on(&self.sim);
            }
            None => inner.leave_line(number),
        }
    }
}

impl Inner {
    /// The claim, if it is the holder's.
    #[inline]
    fn held_by(&mut self, number: u64) -> Option<&mut Claim> {
        self.holder.as_mut().filter(|claim| claim.number == number)
    }

    /// Whether the resource is free for a newcomer, after suspending the occupant if that is the newcomer's right.
    #[inline]
    fn make_way(&mut self, sim: &Sim, newcomer: Who) -> bool {
        match self.holder {
            None => true,
            Some(holder) => newcomer.preempts && self.suspend(sim, holder, newcomer),
        }
    }

    fn suspend(&mut self, sim: &Sim, mut claim: Claim, newcomer: Who) -> bool {
        let Some((timer, ends)) = claim.running.take() else { return false };
        if newcomer.class >= claim.who.class || !sim.timer_is_pending(timer) {
            return false;
        }
        sim.cancel_timer(timer);
        claim.cost = Some(ends - sim.now());
        let waited = std::mem::take(&mut self.waited);
        let since = self.blame.totals(sim.now());
        self.queues[claim.who.class.index()].push_front(Waiting { claim, since, waited });
        self.waiting += 1;
        self.holder = None;
        true
    }

    /// Makes a claim the holder's. Its time starts at once, if it says how long.
    #[inline]
    fn grant(&mut self, sim: &Sim, mut claim: Claim) {
        let now = sim.now();
        claim.running = claim.cost.map(|cost| (sim.set_timer(now + cost, claim.task), now + cost));
        self.blame.switch(now, Some(claim.who.cause));
        self.holder = Some(claim);
    }

    /// Gives the resource to the next in line.
    #[inline]
    fn pass_on(&mut self, sim: &Sim) {
        self.holder = None;
        match self.waiting {
            0 => self.blame.switch(sim.now(), None),
            _ => self.grant_next(sim),
        }
    }

    fn grant_next(&mut self, sim: &Sim) {
        let next = self.queues.iter_mut().find_map(VecDeque::pop_front).expect("somebody waits");
        let Waiting { claim, since, mut waited } = next;
        self.waiting -= 1;
        waited += self.blame.since(&since, sim.now());
        self.waited = waited;
        if claim.cost.is_none() {
            sim.wake(claim.task);
        }
        self.grant(sim, claim);
    }

    fn leave_line(&mut self, number: u64) {
        for queue in &mut self.queues {
            let before = queue.len();
            queue.retain(|waiting| waiting.claim.number != number);
            self.waiting -= before - queue.len();
        }
    }

    fn in_line(&mut self, number: u64) -> Option<&mut Waiting> {
        self.queues.iter_mut().flatten().find(|waiting| waiting.claim.number == number)
    }

    /// Hands the holder's wait to it.
    #[inline]
    fn tell_wait(&mut self, waited: &mut Wait) {
        if self.waited != Wait::ZERO {
            *waited += std::mem::take(&mut self.waited);
        }
    }
}

/// See [`Resource::occupy`].
#[must_use = "a future does nothing until it is awaited"]
pub struct Occupy<'a> {
    resource: &'a Resource,
    cost: Span,
    who: Who,
    waited: &'a mut Wait,
    claim: Option<u64>,
}

impl Future for Occupy<'_> {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let Resource { sim, inner } = self.resource;
        let Some(number) = self.claim else {
            if self.cost.is_zero() && self.resource.is_idle() {
                return Poll::Ready(());
            }
            self.claim = Some(self.resource.ask(self.who, Some(self.cost)));
            return Poll::Pending;
        };
        let inner = &mut *inner.borrow_mut();
        match inner.held_by(number).and_then(|claim| claim.running) {
            Some((timer, _)) if !sim.timer_is_pending(timer) => {}
            _ => return Poll::Pending,
        }
        inner.tell_wait(self.waited);
        inner.pass_on(sim);
        self.claim = None;
        Poll::Ready(())
    }
}

impl Drop for Occupy<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(number) = self.claim {
            self.resource.withdraw(number);
        }
    }
}

/// See [`Resource::take`].
#[must_use = "a future does nothing until it is awaited"]
pub struct Take<'a, 'w> {
    resource: &'a Resource,
    who: Who,
    waited: &'w mut Wait,
    claim: Option<u64>,
}

impl<'a> Future for Take<'a, '_> {
    type Output = Hold<'a>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Hold<'a>> {
        let resource = self.resource;
        let number = match self.claim {
            Some(number) => number,
            None => {
                let number = resource.ask(self.who, None);
                self.claim = Some(number);
                number
            }
        };
        let inner = &mut *resource.inner.borrow_mut();
        if inner.held_by(number).is_none() {
            return Poll::Pending;
        }
        inner.tell_wait(self.waited);
        self.claim = None;
        Poll::Ready(Hold { resource, number })
    }
}

impl Drop for Take<'_, '_> {
    fn drop(&mut self) {
        if let Some(number) = self.claim {
            self.resource.withdraw(number);
        }
    }
}

/// The right to a resource, given back when dropped.
pub struct Hold<'a> {
    resource: &'a Resource,
    number: u64,
}

impl Hold<'_> {
    /// Spends `cost` on the resource held. The time for which it was suspended is added to `waited`.
    pub fn occupy<'a>(&'a mut self, cost: Span, waited: &'a mut Wait) -> HoldOccupy<'a> {
        HoldOccupy { resource: self.resource, number: self.number, cost, waited, started: false }
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.resource.withdraw(self.number);
    }
}

/// See [`Hold::occupy`].
#[must_use = "a future does nothing until it is awaited"]
pub struct HoldOccupy<'a> {
    resource: &'a Resource,
    number: u64,
    cost: Span,
    waited: &'a mut Wait,
    started: bool,
}

impl HoldOccupy<'_> {
    fn start(&mut self) {
        let Resource { sim, inner } = self.resource;
        let inner = &mut *inner.borrow_mut();
        let totals = inner.blame.totals(sim.now());
        let (task, cost) = (sim.current_task(), self.cost);
        if let Some(claim) = inner.held_by(self.number) {
            let ends = sim.now() + cost;
            (claim.task, claim.cost, claim.running) = (task, Some(cost), Some((sim.set_timer(ends, task), ends)));
            inner.waited = Wait::ZERO;
        } else if let Some(waiting) = inner.in_line(self.number) {
            // An earlier occupy was dropped while suspended, and the resource is not back yet.
            (waiting.claim.task, waiting.claim.cost) = (task, Some(cost));
            (waiting.since, waiting.waited) = (totals, Wait::ZERO);
        }
        self.started = true;
    }
}

impl Future for HoldOccupy<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if !self.started {
            self.start();
            return Poll::Pending;
        }
        let Resource { sim, inner } = self.resource;
        let inner = &mut *inner.borrow_mut();
        let Some(claim) = inner.held_by(self.number) else { return Poll::Pending };
        match claim.running {
            Some((timer, _)) if !sim.timer_is_pending(timer) => (claim.running, claim.cost) = (None, None),
            _ => return Poll::Pending,
        }
        inner.tell_wait(self.waited);
        self.started = false;
        Poll::Ready(())
    }
}

impl Drop for HoldOccupy<'_> {
    /// Given up half way: the hold stays, the rest of the cost is not spent.
    fn drop(&mut self) {
        if !self.started {
            return;
        }
        let Resource { sim, inner } = self.resource;
        let inner = &mut *inner.borrow_mut();
        if let Some(claim) = inner.held_by(self.number) {
            if let Some((timer, _)) = claim.running.take() {
                sim.cancel_timer(timer);
            }
            claim.cost = None;
        } else if let Some(waiting) = inner.in_line(self.number) {
            waiting.claim.cost = None;
        }
    }
}
