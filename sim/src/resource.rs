//! A resource that one user at a time keeps busy: a channel, a link, the array of a plane.
//!
//! Waiters are served by class, and within a class in the order of asking. Nobody is preempted: a more urgent waiter is
//! served next. Busy time and waits are accounted by cause.
//!
//! Left out: several users at a time ([`Credits`](crate::credits::Credits) counts), and suspension. Whether an operation
//! of the flash can be suspended depends on its registers, so the media decides that and gives the array up by itself.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::account::{Blame, CLASSES, Totals, Wait, Who};
use crate::executor::{Sim, TaskId};
use crate::time::Span;
use crate::wheel::TimerKey;

/// A resource for one user at a time.
pub struct Resource {
    sim: Sim,
    inner: RefCell<Inner>,
}

struct Inner {
    holder: Option<Holder>,
    blame: Blame,
    /// Numbers claims; a number is never given twice.
    last: u64,
    waiting: usize,
    /// Waiting claims by class.
    queues: [VecDeque<Waiting>; CLASSES],
    /// The time that the holder waited, until the holder collects it.
    waited: Wait,
}

/// A request for the resource.
#[derive(Copy, Clone)]
struct Claim {
    number: u64,
    task: TaskId,
    who: Who,
    /// How long the resource is kept busy; `None` when the holder gives it back itself.
    cost: Option<Span>,
}

/// The claim that has the resource.
#[derive(Copy, Clone)]
struct Holder {
    number: u64,
    /// The timer that ends its cost, if it has one.
    timer: Option<TimerKey>,
}

/// A claim in line.
struct Waiting {
    claim: Claim,
    /// What had kept the resource busy when it began to wait.
    since: Totals,
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

    /// Waits for the resource, keeps it busy for `cost`, gives it back. Time spent waiting is added to `waited`: the await
    /// lasts exactly that and `cost`.
    #[inline]
    pub fn occupy<'a>(&'a self, cost: Span, who: Who, waited: &'a mut Wait) -> Occupy<'a> {
        Occupy { resource: self, cost, who, waited, claim: None }
    }

    /// Waits for the resource and keeps it busy until the [`Hold`] is dropped. Time spent waiting is added to `waited`.
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
        let claim = Claim { number: inner.last, task: self.sim.current_task(), who, cost };
        if inner.holder.is_none() {
            inner.grant(&self.sim, claim);
        } else {
            let since = inner.blame.totals(self.sim.now());
            inner.queues[who.class.index()].push_back(Waiting { claim, since });
            inner.waiting += 1;
        }
        inner.last
    }

    /// Gives up a claim in whatever state it is. A granted one passes the resource on.
    fn withdraw(&self, number: u64) {
        let inner = &mut *self.inner.borrow_mut();
        match inner.held_by(number) {
            Some(holder) => {
                if let Some(timer) = holder.timer {
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
    /// The holder, if it is the claim of this number.
    #[inline]
    fn held_by(&self, number: u64) -> Option<Holder> {
        self.holder.filter(|holder| holder.number == number)
    }

    /// Gives the resource to a claim. Its time starts at once, if it says how long.
    #[inline]
    fn grant(&mut self, sim: &Sim, claim: Claim) {
        let now = sim.now();
        let timer = claim.cost.map(|cost| sim.set_timer(now + cost, claim.task));
        self.blame.switch(now, Some(claim.who.cause));
        self.holder = Some(Holder { number: claim.number, timer });
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
        let Waiting { claim, since } = next;
        self.waiting -= 1;
        self.waited = self.blame.since(&since, sim.now());
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
        match inner.held_by(number).and_then(|holder| holder.timer) {
            Some(timer) if !sim.timer_is_pending(timer) => {}
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

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.resource.withdraw(self.number);
    }
}
