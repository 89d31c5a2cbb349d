//! The leaf that waits for an instant.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::executor::Sim;
use crate::time::Time;
use crate::wheel::TimerKey;

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
