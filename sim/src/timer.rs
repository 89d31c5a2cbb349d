//! The future that waits for an instant.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::event_queue::TimerKey;
use crate::executor::Sim;
use crate::time::Time;

/// Waits for an instant; see [`Sim::sleep`]. Dropping it cancels the timer. It is not to be polled after it is ready.
#[must_use = "a future does nothing until it is awaited"]
pub struct Sleep<'a> {
    sim: &'a Sim,
    until: Time,
    timer: Option<TimerKey>,
}

impl<'a> Sleep<'a> {
    pub(crate) fn new(sim: &'a Sim, until: Time) -> Sleep<'a> {
        Sleep { sim, until, timer: None }
    }

    /// The number of its timer, if that is set.
    pub(crate) fn number(&self) -> Option<u64> {
        self.timer.map(|key| key.number)
    }

    /// With its timer set at once, even if it is due now.
    pub(crate) fn begun(sim: &'a Sim, until: Time) -> Sleep<'a> {
        Sleep { sim, until, timer: Some(sim.set_timer(until, sim.current_task())) }
    }
}

impl Future for Sleep<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        match self.timer {
            Some(key) if self.sim.timer_is_pending(key) => Poll::Pending,
            Some(_) => {
                self.timer = None;
                Poll::Ready(())
            }
            None if self.until <= self.sim.now() => Poll::Ready(()),
            None => {
                self.timer = Some(self.sim.set_timer(self.until, self.sim.current_task()));
                Poll::Pending
            }
        }
    }
}

impl Drop for Sleep<'_> {
    fn drop(&mut self) {
        if let Some(key) = self.timer {
            self.sim.cancel_timer(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executor::{Executor, Stalled};
    use crate::time::Span;

    #[test]
    fn it_is_ready_at_its_instant_and_at_once_when_that_has_passed() {
        for mut executor in [Executor::new(), Executor::with_spurious_polls()] {
            let sim = executor.sim();
            let seen = executor.block_on(async {
                let mut seen = Vec::new();
                for until in [7, 7, 3, 0, 9] {
                    sim.sleep_until(Time::from_ns(until)).await;
                    seen.push(sim.now().ns());
                }
                seen
            });
            assert_eq!(seen.unwrap(), [7, 7, 7, 7, 9]);
        }
    }

    #[test]
    fn a_dropped_one_leaves_no_event_behind() {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let result = executor.block_on(async {
            let mut long = Box::pin(sim.sleep(Span::from_s(1)));
            std::future::poll_fn(|context| {
                assert!(long.as_mut().poll(context).is_pending());
                Poll::Ready(())
            })
            .await;
            sim.sleep(Span::from_ns(5)).await;
            drop(long);
            std::future::pending::<()>().await;
        });
        assert_eq!(result, Err(Stalled { at: Time::from_ns(5) }));
    }
}
