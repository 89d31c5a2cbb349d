//! Processors that share one line: work is begun by the first that is free, first come, first served, and is not interrupted.
//!
//! All work states its duration when it arrives, so its beginning and end are known at once, and nothing has to be
//! woken for it. Busy time is accounted by cause.
//!
//! Left out: priorities, time slices, and work that is abandoned: given work is done.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::account::{Cause, Totals};
use crate::executor::Sim;
use crate::time::{Span, Time};

/// See the module.
pub struct Processors {
    sim: Sim,
    count: usize,
    inner: RefCell<Inner>,
}

struct Inner {
    /// When each processor has done its given work, and the cause of the last of it.
    free: BinaryHeap<Reverse<(Time, Cause)>>,
    /// Work that had not ended at the last look, by its end.
    going: BinaryHeap<Reverse<(Time, Time, Cause)>>,
    /// Work that had.
    done: Totals,
}

/// When work that was given has its turn.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Turn {
    /// How long it waits for a processor.
    pub wait: Span,
    /// The processor's work until then, at the end.
    pub behind: Cause,
    /// When it is done.
    pub end: Time,
}

impl Processors {
    /// Idle ones, at least one.
    pub fn new(sim: &Sim, count: usize) -> Processors {
        let count = count.max(1);
        let free = std::iter::repeat_n(Reverse((sim.now(), Cause::new(0))), count).collect();
        let inner = RefCell::new(Inner { free, going: BinaryHeap::new(), done: Totals::default() });
        Processors { sim: sim.clone(), count, inner }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Gives them work, and does not wait until it is done.
    pub fn give(&self, work: Span, cause: Cause) -> Turn {
        let now = self.sim.now();
        let mut inner = self.inner.borrow_mut();
        inner.settle(now);
        let Reverse((free, behind)) = inner.free.pop().expect("there is one at the least");
        let start = free.max(now);
        let end = start + work;
        inner.free.push(Reverse((end, cause)));
        if !work.is_zero() {
            inner.going.push(Reverse((end, start, cause)));
        }
        Turn { wait: start - now, behind, end }
    }

    /// Gives them work, and waits until it is done.
    pub async fn work(&self, work: Span, cause: Cause) -> Turn {
        let turn = self.give(work, cause);
        self.sim.sleep_until(turn.end).await;
        turn
    }

    /// Busy time of all of them together so far, by cause.
    pub fn usage(&self) -> Totals {
        let now = self.sim.now();
        let mut inner = self.inner.borrow_mut();
        inner.settle(now);
        let mut totals = inner.done;
        for Reverse((_, start, cause)) in inner.going.iter().filter(|Reverse((_, start, _))| *start < now) {
            totals.add(*cause, now - *start);
        }
        totals
    }
}

impl Inner {
    /// Counts ended work.
    fn settle(&mut self, now: Time) {
        while let Some(Reverse((end, start, cause))) =
            self.going.peek().copied().filter(|Reverse((end, ..))| *end <= now)
        {
            self.done.add(cause, end - start);
            self.going.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::credits::Credits;
    use crate::rng::Seed;
    use crate::{Executor, Wait};

    const A: Cause = Cause::new(0);
    const B: Cause = Cause::new(1);

    #[test]
    fn work_waits_for_the_first_that_is_free() {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let processors = Processors::new(&sim, 2);
        let us = Span::from_us;
        let at = |time: u64| Time::ZERO + us(time);
        assert_eq!(processors.give(us(10), A), Turn { wait: Span::ZERO, behind: A, end: at(10) });
        assert_eq!(processors.give(us(4), B).end, at(4));
        assert_eq!(processors.give(us(3), A), Turn { wait: us(4), behind: B, end: at(7) });
        executor.block_on(sim.sleep(us(5))).unwrap();
        let usage = processors.usage();
        assert_eq!((usage.by(A), usage.by(B)), (us(6), us(4)), "five of ten and one of three; all of four");
        executor.block_on(sim.sleep(us(95))).unwrap();
        let usage = processors.usage();
        assert_eq!((usage.by(A), usage.by(B)), (us(13), us(4)));
        assert_eq!(processors.give(us(1), A).wait, Span::ZERO);
        assert_eq!(Processors::new(&sim, 0).count(), 1);
    }

    /// Random work ends when it would on processors that are taken and given back.
    #[test]
    fn it_is_as_with_credits() {
        for seed in 0..40 {
            let mut rng = Seed::new(seed).rng();
            let mut executor = Executor::new();
            let sim = executor.sim();
            let count = 1 + rng.below(4) as usize;
            let processors = Rc::new(Processors::new(&sim, count));
            let credits = Rc::new(Credits::new(&sim, count, A));
            let (mut sum, mut when) = (Span::ZERO, Span::ZERO);
            for _ in 0..60 {
                when += Span::from_ns(rng.below(50));
                let work = Span::from_ns(1 + rng.below(100));
                sum += work;
                let (sim, processors, credits) = (sim.clone(), processors.clone(), credits.clone());
                executor.sim().spawn(async move {
                    sim.sleep(when).await;
                    let turn = processors.give(work, A);
                    credits.take(1, &mut Wait::default()).await;
                    sim.sleep(work).await;
                    credits.give(1);
                    assert_eq!(turn.end, sim.now(), "seed {seed}");
                });
            }
            executor.block_on(sim.sleep(Span::from_ms(1))).unwrap();
            assert_eq!(processors.usage().by(A), sum, "seed {seed}");
        }
    }
}
