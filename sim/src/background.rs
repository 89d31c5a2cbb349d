//! Timers that do not keep a run alive: for work that a model does forever next to everything else, such as scrubbing
//! its store.
//!
//! A main future that only such timers could wake waits in vain, because their work continues forever.
//! [`Executor::block_on`] reports this like a run without events. Between turns of a clock from outside
//! ([`Executor::advance`]) they are ordinary timers, because an arrival may still come.
//!
//! [`Executor::block_on`]: crate::Executor::block_on
//! [`Executor::advance`]: crate::Executor::advance

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::executor::Sim;
use crate::timer::Sleep;

/// The numbers of the timers that are pending.
#[derive(Default)]
pub(crate) struct Background {
    pending: RefCell<Vec<u64>>,
    count: Cell<usize>,
}

impl Background {
    /// How many are pending, if a timer is one of them.
    pub(crate) fn count_with(&self, number: u64) -> Option<usize> {
        self.pending.borrow().contains(&number).then_some(self.count.get())
    }

    /// Whether no timer is pending. A run without them pays for this alone.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count.get() == 0
    }

    fn add(&self, number: u64) {
        self.pending.borrow_mut().push(number);
        self.count.set(self.count.get() + 1);
    }

    fn remove(&self, number: u64) {
        self.pending.borrow_mut().retain(|other| *other != number);
        self.count.set(self.count.get() - 1);
    }
}

/// Waits for an instant without keeping a run going; see [`Sim::sleep_in_background`]. Dropping it cancels the timer.
#[must_use = "a future does nothing until it is awaited"]
pub struct BackgroundSleep<'a> {
    sim: &'a Sim,
    sleep: Sleep<'a>,
    number: Option<u64>,
}

impl<'a> BackgroundSleep<'a> {
    pub(crate) fn new(sim: &'a Sim, sleep: Sleep<'a>) -> BackgroundSleep<'a> {
        BackgroundSleep { sim, sleep, number: None }
    }

    fn forget(&mut self) {
        if let Some(number) = self.number.take() {
            self.sim.background().remove(number);
        }
    }
}

impl Future for BackgroundSleep<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let polled = Pin::new(&mut self.sleep).poll(context);
        match (polled, self.number) {
            (Poll::Ready(()), _) => self.forget(),
            (Poll::Pending, None) => {
                self.number = self.sleep.number();
                self.number.iter().for_each(|number| self.sim.background().add(*number));
            }
            (Poll::Pending, Some(_)) => {}
        }
        polled
    }
}

impl Drop for BackgroundSleep<'_> {
    fn drop(&mut self) {
        self.forget();
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::executor::{Executor, Stalled};
    use crate::time::{Span, Time};

    /// Two tasks that work forever, each after a time.
    fn working(executor: &Executor) -> Rc<Cell<u32>> {
        let count = Rc::new(Cell::new(0));
        for every in [100, 70] {
            let (sim, count) = (executor.sim(), count.clone());
            executor.sim().spawn(async move {
                loop {
                    sim.sleep_in_background(Span::from_ns(every)).await;
                    count.set(count.get() + 1);
                    // The work takes time, which is no background.
                    sim.sleep(Span::from_ns(10)).await;
                }
            });
        }
        count
    }

    #[test]
    fn they_go_on_while_the_main_future_waits_for_a_time() {
        for mut executor in [Executor::new(), Executor::with_spurious_polls()] {
            let (sim, count) = (executor.sim(), working(&executor));
            executor.block_on(sim.sleep(Span::from_us(1))).unwrap();
            // At 100, 210, .. 980 and 70, 150, .. 950.
            assert_eq!((count.get(), sim.now()), (9 + 12, Time::from_ns(1_000)));
        }
    }

    #[test]
    fn a_main_future_that_nothing_else_could_wake_is_reported() {
        for mut executor in [Executor::new(), Executor::with_spurious_polls()] {
            let (sim, count) = (executor.sim(), working(&executor));
            let result = executor.block_on(async {
                sim.sleep(Span::from_ns(500)).await;
                std::future::pending::<()>().await;
            });
            let Err(Stalled { at }) = result else { panic!("it did not stall") };
            assert!((500..600).contains(&at.ns()), "{at:?}");
            // The run may continue, and the timers with it.
            let before = count.get();
            executor.block_on(sim.sleep(Span::from_ns(300))).unwrap();
            assert!(count.get() > before + 4, "{} and {before}", count.get());
        }
    }

    #[test]
    fn they_are_events_for_a_clock_from_outside() {
        let mut executor = Executor::new();
        let count = working(&executor);
        assert!(executor.advance(Time::from_ns(1_000), u32::MAX));
        assert_eq!(count.get(), 21);
        assert!(executor.next_due().is_some());
    }
}
