//! Credits: the slots of a write buffer, of a command table. They are granted strictly in the order of requests, or shared among
//! holders: a free credit goes to the request whose holder has the least. Requests of one holder keep their order.

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
    /// How many exist; all are free at times.
    total: usize,
    free: usize,
    /// Requests that were not granted, in the order in which they were made.
    queue: VecDeque<Key>,
    claims: Slots<Claim>,
    /// The credits of each holder; empty if no caller acquires as a holder.
    held: Vec<usize>,
    blame: Blame,
}

/// Who requests credits that are shared.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Holder {
    /// The number of the holder. Memory grows with the largest.
    pub number: u32,
    /// Credits that the holder may keep without limit of time. They do not count as its share.
    pub keeps: usize,
}

struct Claim {
    task: TaskId,
    holder: Option<Holder>,
    count: usize,
    wait: Waited,
}

/// A wait for credits, which is computed when it ends.
enum Waited {
    Since(Totals),
    Ended(Wait),
}

impl Credits {
    /// `count` free credits. Waits are blamed on `scarcity` until [`Credits::blame`] names another cause.
    pub fn new(sim: &Sim, count: usize, scarcity: Cause) -> Credits {
        let blame = Blame::new();
        blame.switch(sim.now(), Some(scarcity));
        let inner =
            Inner { total: count, free: count, queue: VecDeque::new(), claims: Slots::new(), held: Vec::new(), blame };
        Credits { sim: sim.clone(), inner: RefCell::new(inner) }
    }

    /// Waits for `count` credits; the time is added to `waited`. [`Credits::give`] returns them.
    #[inline]
    pub fn take<'a, 'w>(&'a self, count: usize, waited: &'w mut Wait) -> Take<'a, 'w> {
        Take { credits: self, holder: None, count, waited, claim: None }
    }

    /// Waits for `count` credits of a holder; the time is added to `waited`. [`Credits::give_back`] returns them.
    pub fn take_for<'a, 'w>(&'a self, holder: Holder, count: usize, waited: &'w mut Wait) -> Take<'a, 'w> {
        Take { credits: self, holder: Some(holder), count, waited, claim: None }
    }

    /// Takes `count` credits of a holder if they are free and there is no waiter.
    pub fn try_take_for(&self, holder: u32, count: usize) -> bool {
        let granted = self.try_take(count);
        if granted {
            self.inner.borrow_mut().hold(holder, count);
        }
        granted
    }

    /// Takes `count` credits if they are free and there is no waiter.
    pub fn try_take(&self, count: usize) -> bool {
        let mut inner = self.inner.borrow_mut();
        let granted = inner.queue.is_empty() && inner.free >= count;
        if granted {
            inner.free -= count;
        }
        granted
    }

    /// Gives back `count` credits.
    ///
    /// # Panics
    /// If more are given back than were taken.
    pub fn give(&self, count: usize) {
        let mut inner = self.inner.borrow_mut();
        inner.free += count;
        let Inner { free, total, .. } = *inner;
        assert!(free <= total, "{free} credits are free, and {total} exist: {count} come back twice");
        inner.pass_on(&self.sim);
    }

    /// Gives back `count` credits of a holder.
    ///
    /// # Panics
    /// If the holder has fewer.
    pub fn give_back(&self, holder: u32, count: usize) {
        self.inner.borrow_mut().release(holder, count);
        self.give(count);
    }

    /// Credits of one holder are another's from now on.
    pub fn pass(&self, from: u32, to: u32, count: usize) {
        let mut inner = self.inner.borrow_mut();
        inner.release(from, count);
        inner.hold(to, count);
    }

    /// What each holder has, by number; the last ones may be missing, and have nothing.
    pub fn held(&self) -> Vec<usize> {
        self.inner.borrow().held.clone()
    }

    /// Ends the scarcity: every request, waiting or later, is granted at once.
    pub fn give_up(&self) {
        let mut inner = self.inner.borrow_mut();
        inner.total = usize::MAX;
        inner.free = inner.free.max(usize::MAX / 2);
        inner.pass_on(&self.sim);
    }

    /// Number of free credits.
    pub fn free(&self) -> usize {
        self.inner.borrow().free
    }

    /// Whether there are waiters.
    pub fn contended(&self) -> bool {
        !self.inner.borrow().claims.is_empty()
    }

    /// Whether there is a waiter that was not granted its credits.
    pub fn is_short(&self) -> bool {
        !self.inner.borrow().queue.is_empty()
    }

    /// How long each cause has made the credits scarce so far: the difference between two of them is a wait.
    pub fn totals(&self) -> Totals {
        self.inner.borrow().blame.totals(self.sim.now())
    }

    /// From now on waits are blamed on `cause`.
    pub fn blame(&self, cause: Cause) {
        let inner = self.inner.borrow_mut();
        if inner.blame.current() != Some(cause) {
            inner.blame.switch(self.sim.now(), Some(cause));
        }
    }
}

impl Inner {
    fn pass_on(&mut self, sim: &Sim) {
        while let Some(index) = self.next() {
            let claim = self.claims.get_mut(self.queue[index]).expect("a request that waits");
            if claim.count > self.free {
                return;
            }
            self.free -= claim.count;
            if let Waited::Since(begun) = &claim.wait {
                claim.wait = Waited::Ended(self.blame.since(begun, sim.now()));
            }
            sim.wake(claim.task);
            let (holder, count) = (claim.holder, claim.count);
            if let Some(holder) = holder {
                self.hold(holder.number, count);
            }
            match index {
                0 => _ = self.queue.pop_front(),
                _ => _ = self.queue.remove(index),
            }
        }
    }

    /// The request to be granted next: no request overtakes it.
    fn next(&self) -> Option<usize> {
        if self.held.is_empty() {
            return (!self.queue.is_empty()).then_some(0);
        }
        let has =
            |key: &Key| self.claims.get(*key).and_then(|claim| claim.holder).map_or(0, |holder| self.share(holder));
        self.queue.iter().map(has).enumerate().min_by_key(|(_, has)| *has).map(|(index, _)| index)
    }

    fn share(&self, holder: Holder) -> usize {
        self.held.get(holder.number as usize).map_or(0, |held| held.saturating_sub(holder.keeps))
    }

    fn hold(&mut self, holder: u32, count: usize) {
        let index = holder as usize;
        if self.held.len() <= index {
            self.held.resize(index + 1, 0);
        }
        self.held[index] += count;
    }

    fn release(&mut self, holder: u32, count: usize) {
        let held = self.held.get(holder as usize).copied().unwrap_or(0);
        assert!(held >= count, "holder {holder} has {held} credits, and gives back {count}");
        self.held[holder as usize] = held - count;
    }
}

/// Waits for credits.
#[must_use = "a future does nothing until it is awaited"]
pub struct Take<'a, 'w> {
    credits: &'a Credits,
    holder: Option<Holder>,
    count: usize,
    waited: &'w mut Wait,
    claim: Option<Key>,
}

impl Take<'_, '_> {
    /// Takes the credits if they are free and there is no waiter.
    #[inline]
    fn try_take(&self) -> bool {
        match self.holder {
            None => self.credits.try_take(self.count),
            Some(holder) => self.credits.try_take_for(holder.number, self.count),
        }
    }

    fn get_in_line(&mut self) {
        let credits = self.credits;
        let mut inner = credits.inner.borrow_mut();
        let begun = inner.blame.totals(credits.sim.now());
        let task = credits.sim.current_task();
        let key =
            inner.claims.insert(Claim { task, holder: self.holder, count: self.count, wait: Waited::Since(begun) });
        inner.queue.push_back(key);
        self.claim = Some(key);
        if self.holder.is_some() {
            // The next request may fit although the previous one did not.
            inner.pass_on(&credits.sim);
        }
    }

    /// Whether a claim was granted; then its wait is told.
    fn take_granted(&mut self, key: Key) -> bool {
        let mut inner = self.credits.inner.borrow_mut();
        let claim = inner.claims.get(key).expect("the claim of a live future");
        let Waited::Ended(waited) = &claim.wait else { return false };
        *self.waited += waited;
        inner.claims.remove(key);
        self.claim = None;
        true
    }
}

impl Future for Take<'_, '_> {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let is_granted = match self.claim {
            None => {
                let is_granted = self.try_take();
                if !is_granted {
                    self.get_in_line();
                }
                is_granted
            }
            Some(key) => self.take_granted(key),
        };
        if is_granted { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for Take<'_, '_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(key) = self.claim {
            self.withdraw(key);
        }
    }
}

impl Take<'_, '_> {
    /// Abandons a claim, waiting or granted.
    #[cold]
    fn withdraw(&self, key: Key) {
        let mut inner = self.credits.inner.borrow_mut();
        let claim = inner.claims.remove(key).expect("the claim of a live future");
        match (claim.wait, claim.holder) {
            (Waited::Since(_), _) => inner.queue.retain(|waiting| *waiting != key),
            (Waited::Ended(_), holder) => {
                inner.free += claim.count;
                holder.into_iter().for_each(|holder| inner.held[holder.number as usize] -= claim.count);
            }
        }
        inner.pass_on(&self.credits.sim);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executor::Executor;
    use crate::time::{Span, Time};
    use proptest::prelude::*;
    use std::cell::Cell;
    use std::pin::pin;
    use std::rc::Rc;

    const SCARCE: Cause = Cause::new(1);

    const HOLDERS: u32 = 3;

    /// Takes `count` credits at its arrival and returns them `held` later; gives up waiting after `patience`.
    #[derive(Clone, Debug)]
    struct Customer {
        holder: Option<Holder>,
        count: usize,
        held: u64,
        patience: Option<u64>,
    }

    /// When each customer was served and how long it waited; `None` for one that gave up.
    type Outcome = Vec<Option<(u64, u64)>>;

    /// Customers arrive 10 ns apart and hold credits for multiples of 10 ns and a distinct bit more, so that no two
    /// things happen at once.
    fn arrival(index: usize) -> u64 {
        10_000 * index as u64
    }

    fn held(index: usize, customer: &Customer) -> u64 {
        10_000 * customer.held + 2 * index as u64 + 1
    }

    fn patience(index: usize, customer: &Customer) -> Option<u64> {
        customer.patience.map(|patience| 10_000 * patience + 5_000 + 2 * index as u64)
    }

    fn run(mut executor: Executor, total: usize, customers: &[Customer]) -> Outcome {
        let sim = executor.sim();
        let credits = Rc::new(Credits::new(&sim, total, SCARCE));
        let outcome = Rc::new(RefCell::new(vec![None; customers.len()]));
        for (index, customer) in customers.iter().cloned().enumerate() {
            let (sim, credits, outcome) = (sim.clone(), credits.clone(), outcome.clone());
            executor.sim().spawn(async move {
                sim.sleep_until(Time::from_ns(arrival(index))).await;
                let mut waited = Wait::ZERO;
                let mut take: Pin<Box<dyn Future<Output = ()>>> = match customer.holder {
                    Some(holder) => Box::pin(credits.take_for(holder, customer.count, &mut waited)),
                    None => Box::pin(credits.take(customer.count, &mut waited)),
                };
                let patience = patience(index, &customer).map_or(Time::MAX, |span| sim.now() + Span::from_ns(span));
                let mut patience = pin!(sim.sleep_until(patience));
                let served = std::future::poll_fn(|context| match take.as_mut().poll(context) {
                    Poll::Ready(()) => Poll::Ready(true),
                    Poll::Pending => patience.as_mut().poll(context).map(|()| false),
                });
                let served = served.await;
                drop(take);
                if served {
                    outcome.borrow_mut()[index] = Some((sim.now().ns(), waited.by(SCARCE).ns()));
                    sim.sleep(Span::from_ns(held(index, &customer))).await;
                    match customer.holder {
                        Some(holder) => credits.give_back(holder.number, customer.count),
                        None => credits.give(customer.count),
                    }
                }
            });
        }
        executor.block_on(sim.sleep(Span::from_s(1))).unwrap();
        assert_eq!((credits.free(), credits.contended()), (total, false));
        assert!(credits.held().iter().all(|held| *held == 0));
        outcome.take()
    }

    /// A customer's holder's part of its share. A customer without a holder is always first, in the order of arrival.
    fn share(held: &[usize], customer: &Customer) -> usize {
        customer.holder.map_or(0, |holder| held[holder.number as usize].saturating_sub(holder.keeps))
    }

    /// The same line, worked out one happening after the other.
    fn oracle(total: usize, customers: &[Customer]) -> Outcome {
        let mut outcome = vec![None; customers.len()];
        let (mut free, mut line, mut has) = (total, Vec::new(), [0; HOLDERS as usize]);
        let held_by = |customer: &Customer| customer.holder.map_or(0, |holder| holder.number as usize);
        let mut happenings: std::collections::BTreeSet<(u64, usize, &str)> =
            (0..customers.len()).map(|index| (arrival(index), index, "arrives")).collect();
        while let Some((now, index, what)) = happenings.pop_first() {
            match what {
                "arrives" => {
                    line.push(index);
                    happenings.extend(patience(index, &customers[index]).map(|span| (now + span, index, "gives up")));
                }
                "gives up" => line.retain(|waiting| *waiting != index),
                _ => {
                    free += customers[index].count;
                    has[held_by(&customers[index])] -= customers[index].count;
                }
            }
            while let Some(first) = line.iter().copied().min_by_key(|index| (share(&has, &customers[*index]), *index)) {
                let count = customers[first].count;
                if count > free {
                    break;
                }
                line.retain(|waiting| *waiting != first);
                free -= count;
                has[held_by(&customers[first])] += count;
                outcome[first] = Some((now, now - arrival(first)));
                happenings.insert((now + held(first, &customers[first]), first, "leaves"));
            }
        }
        outcome
    }

    proptest! {
        #[test]
        fn are_handed_out_in_the_order_of_asking_or_to_the_holder_that_has_the_least(
            total in 1usize..6,
            keeps in 0usize..3,
            shared in any::<bool>(),
            customers in prop::collection::vec((0..HOLDERS, 1usize..6, 0u64..12, prop::option::of(0u64..6)), 1..30),
            spurious in any::<bool>(),
        ) {
            // The first holder may keep some; all of its requests set this.
            let holder = |number: u32| Holder { number, keeps: if number == 0 { keeps } else { 0 } };
            let customer = |(number, count, held, patience)| Customer {
                holder: shared.then(|| holder(number)),
                count: usize::min(count, total),
                held,
                patience,
            };
            let customers: Vec<Customer> = customers.into_iter().map(customer).collect();
            let executor = if spurious { Executor::with_spurious_polls() } else { Executor::new() };
            prop_assert_eq!(run(executor, total, &customers), oracle(total, &customers));
        }
    }

    /// Deliberate mistakes of a user.
    #[test]
    #[should_panic(expected = "4 credits are free, and 3 exist: 1 come back twice")]
    fn credits_that_come_back_twice_are_noticed() {
        let credits = Credits::new(&Executor::new().sim(), 3, SCARCE);
        assert!(credits.try_take(1));
        credits.give(1);
        credits.give(1);
    }

    #[test]
    #[should_panic(expected = "holder 1 has 1 credits, and gives back 2")]
    fn credits_that_come_back_from_another_holder_are_noticed() {
        let credits = Credits::new(&Executor::new().sim(), 3, SCARCE);
        assert!(credits.try_take_for(0, 2) && credits.try_take_for(1, 1));
        credits.give_back(1, 2);
    }

    #[test]
    fn nobody_takes_past_those_who_wait_and_a_wait_has_its_cause() {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let credits = Rc::new(Credits::new(&sim, 3, SCARCE));
        assert!(credits.try_take(2));
        let waiter = credits.clone();
        let waited = Rc::new(Cell::new(Wait::ZERO));
        let told = waited.clone();
        sim.spawn(async move {
            let mut waited = Wait::ZERO;
            waiter.take(3, &mut waited).await;
            told.set(waited);
        });
        let (gc, us) = (Cause::new(2), Span::from_us(1));
        executor
            .block_on(async {
                sim.sleep(us).await;
                assert!(!credits.try_take(1), "the one free credit is for whoever asked first");
                credits.blame(gc);
                sim.sleep(us + us).await;
                credits.give(2);
                sim.sleep(us).await;
            })
            .unwrap();
        assert_eq!((waited.get().by(SCARCE), waited.get().by(gc)), (us, us + us));
        assert_eq!(credits.free(), 0);
    }
}
