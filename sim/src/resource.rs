//! A resource that one user at a time keeps busy: a channel, a link, the array of a plane.
//!
//! Waiters are served by class, and within a class first come, first served. Service is not preempted: a more urgent
//! waiter is served next. Busy time and waits are accounted by cause.
//!
//! Left out: several users at a time ([`Credits`](crate::credits::Credits) counts), and suspension. Whether an operation
//! of the flash can be suspended depends on its registers, so the media decides that and releases the array itself.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::account::{Blame, CLASSES, Totals, Wait, Who};
use crate::event_queue::TimerKey;
use crate::executor::{Sim, TaskId};
use crate::time::Span;

/// A resource for one user at a time.
pub struct Resource {
    sim: Sim,
    holder: Cell<Claim>,
    /// Ends the holder's use, if that was given a cost.
    timer: Cell<TimerKey>,
    last: Cell<Claim>,
    blame: Blame,
    waiting: Cell<u32>,
    /// Whether the holder has waited.
    has_waited: Cell<bool>,
    line: RefCell<Line>,
}

/// Numbers the claims of a resource, from 1 on; a number is never given twice.
type Claim = u64;
const NOBODY: Claim = 0;

#[derive(Default)]
struct Line {
    /// The wait of the holder, if it has waited and has not collected it.
    waited: Wait,
    /// Waiting claims by class.
    queues: [VecDeque<Waiting>; CLASSES],
}

/// A claim in line.
struct Waiting {
    claim: Claim,
    task: TaskId,
    who: Who,
    /// Its duration once it is served; `None` when the holder sets it later.
    cost: Option<Span>,
    /// The totals when it got in line; `None` for a user that does not ask for its wait.
    since: Option<Totals>,
}

impl Resource {
    /// An idle resource.
    pub fn new(sim: &Sim) -> Resource {
        Resource {
            sim: sim.clone(),
            holder: Cell::new(NOBODY),
            timer: Cell::new(TimerKey::NONE),
            last: Cell::new(NOBODY),
            blame: Blame::new(),
            waiting: Cell::new(0),
            has_waited: Cell::new(false),
            line: RefCell::default(),
        }
    }

    /// Waits for the resource, keeps it busy for `cost`, gives it back. Time spent waiting is added to `waited`: the
    /// await lasts exactly that and `cost`.
    #[inline]
    pub fn occupy<'a>(&'a self, cost: Span, who: Who, waited: &'a mut Wait) -> Occupy<'a> {
        Occupy { resource: self, cost, who, waited: Some(waited), claim: NOBODY }
    }

    /// As [`Resource::occupy`], for a user that does not distinguish waiting from being served.
    #[inline]
    pub fn keep_busy(&self, cost: Span, who: Who) -> Occupy<'_> {
        Occupy { resource: self, cost, who, waited: None, claim: NOBODY }
    }

    /// Waits for the resource and keeps it busy until the [`Hold`] is dropped. Time spent waiting is added to `waited`.
    pub fn take<'a, 'w>(&'a self, who: Who, waited: &'w mut Wait) -> Take<'a, 'w> {
        Take { resource: self, who, waited, claim: NOBODY }
    }

    /// Whether the resource is free.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.holder.get() == NOBODY
    }

    /// Busy time so far by cause, up to now.
    pub fn usage(&self) -> Totals {
        self.blame.totals(self.sim.now())
    }

    /// Requests the resource, which is granted at once if it is free.
    #[inline(always)]
    fn ask(&self, who: Who, cost: Option<Span>, wants_wait: bool) -> Claim {
        let claim = self.last.get() + 1;
        self.last.set(claim);
        match self.is_idle() {
            true => {
                self.hold(claim, self.sim.current_task(), cost);
                self.blame.begin(self.sim.now(), who.cause);
            }
            false => self.get_in_line(claim, who, cost, wants_wait),
        }
        claim
    }

    #[inline(never)]
    fn get_in_line(&self, claim: Claim, who: Who, cost: Option<Span>, wants_wait: bool) {
        let (task, since) = (self.sim.current_task(), wants_wait.then(|| self.usage()));
        self.line.borrow_mut().queues[who.class.index()].push_back(Waiting { claim, task, who, cost, since });
        self.waiting.set(self.waiting.get() + 1);
    }

    /// Makes a claim the holder's. Its time starts at once, if it has a duration.
    #[inline(always)]
    fn hold(&self, claim: Claim, task: TaskId, cost: Option<Span>) {
        self.holder.set(claim);
        if let Some(cost) = cost {
            self.timer.set(self.sim.set_timer(self.sim.now() + cost, task));
        }
    }

    /// Whether the time of a claim has passed.
    #[inline]
    fn is_served(&self, claim: Claim) -> bool {
        self.holder.get() == claim && !self.sim.timer_is_pending(self.timer.get())
    }

    /// Takes the resource from its holder and grants it to the next waiter.
    #[inline(always)]
    fn pass_on(&self) {
        match self.waiting.get() {
            0 => {
                self.holder.set(NOBODY);
                self.blame.end(self.sim.now());
            }
            _ => self.grant_next(),
        }
    }

    #[inline(never)]
    fn grant_next(&self) {
        let line = &mut *self.line.borrow_mut();
        let next = line.queues.iter_mut().find_map(VecDeque::pop_front).expect("somebody waits");
        let Waiting { claim, task, who, cost, since } = next;
        self.waiting.set(self.waiting.get() - 1);
        let now = self.sim.now();
        let has_waited = since.is_some_and(|since| {
            line.waited = self.blame.since(&since, now);
            !line.waited.is_zero()
        });
        self.has_waited.set(has_waited);
        if cost.is_none() {
            self.sim.wake(task);
        }
        self.hold(claim, task, cost);
        self.blame.switch(now, Some(who.cause));
    }

    /// Adds the holder's wait to its own account.
    #[inline(always)]
    fn tell_wait(&self, waited: &mut Wait) {
        if self.has_waited.get() {
            self.has_waited.set(false);
            *waited += &self.line.borrow().waited;
        }
    }

    /// Abandons a claim, waiting or granted. A granted claim passes the resource on.
    #[cold]
    fn withdraw(&self, claim: Claim) {
        match self.holder.get() == claim {
            true => self.end(),
            false => self.leave_line(claim),
        }
    }

    /// The holder abandons its claim. If the timer is not its own, it has fired and the cancellation has no effect.
    fn end(&self) {
        self.sim.cancel_timer(self.timer.get());
        self.has_waited.set(false);
        self.pass_on();
    }

    fn leave_line(&self, claim: Claim) {
        for queue in &mut self.line.borrow_mut().queues {
            let before = queue.len();
            queue.retain(|waiting| waiting.claim != claim);
            self.waiting.set(self.waiting.get() - (before - queue.len()) as u32);
        }
    }
}

/// See [`Resource::occupy`].
#[must_use = "a future does nothing until it is awaited"]
pub struct Occupy<'a> {
    resource: &'a Resource,
    cost: Span,
    who: Who,
    waited: Option<&'a mut Wait>,
    /// [`NOBODY`] before the first poll and after the last.
    claim: Claim,
}

impl Future for Occupy<'_> {
    type Output = ();

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let resource = self.resource;
        if self.claim == NOBODY {
            if self.cost.is_zero() && resource.is_idle() {
                return Poll::Ready(());
            }
            self.claim = resource.ask(self.who, Some(self.cost), self.waited.is_some());
            return Poll::Pending;
        }
        if !resource.is_served(self.claim) {
            return Poll::Pending;
        }
        match &mut self.waited {
            Some(waited) => resource.tell_wait(waited),
            None => resource.has_waited.set(false),
        }
        resource.pass_on();
        self.claim = NOBODY;
        Poll::Ready(())
    }
}

impl Drop for Occupy<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.claim != NOBODY {
            self.resource.withdraw(self.claim);
        }
    }
}

/// See [`Resource::take`].
#[must_use = "a future does nothing until it is awaited"]
pub struct Take<'a, 'w> {
    resource: &'a Resource,
    who: Who,
    waited: &'w mut Wait,
    claim: Claim,
}

impl<'a> Future for Take<'a, '_> {
    type Output = Hold<'a>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Hold<'a>> {
        let resource = self.resource;
        if self.claim == NOBODY {
            self.claim = resource.ask(self.who, None, true);
        }
        if resource.holder.get() != self.claim {
            return Poll::Pending;
        }
        resource.tell_wait(self.waited);
        self.claim = NOBODY;
        Poll::Ready(Hold { resource })
    }
}

impl Drop for Take<'_, '_> {
    fn drop(&mut self) {
        if self.claim != NOBODY {
            self.resource.withdraw(self.claim);
        }
    }
}

/// The right to a resource, given back when dropped.
pub struct Hold<'a> {
    resource: &'a Resource,
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.resource.end();
    }
}
