//! A mailbox for one message from one task to another. A worker receives its next job through it.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::event_queue::TimerKey;
use crate::executor::{Sim, TaskId};
use crate::time::{Span, Time};

/// Holds one message, for one receiving task.
pub(crate) struct Mailbox<T> {
    sim: Sim,
    message: RefCell<Option<T>>,
    due: Cell<Due>,
    receiver: Cell<Option<TaskId>>,
}

/// When a message may be taken.
#[derive(Copy, Clone)]
enum Due {
    Now,
    /// When the timer has fired.
    After(TimerKey),
    /// At this time. The receiver has not been polled yet; it sets the timer when it is.
    Later(Time),
}

impl<T> Mailbox<T> {
    /// An empty mailbox.
    pub(crate) fn new(sim: &Sim) -> Mailbox<T> {
        Mailbox { sim: sim.clone(), message: RefCell::new(None), due: Cell::new(Due::Now), receiver: Cell::new(None) }
    }

    /// Puts a message in and wakes the receiver.
    ///
    /// # Panics
    /// When there is one already.
    #[inline]
    pub(crate) fn send(&self, message: T) {
        self.leave(message, Due::Now);
        if let Some(task) = self.receiver.take() {
            self.sim.wake(task);
        }
    }

    /// Puts a message in that can be taken after `delay`, and wakes the receiver then.
    ///
    /// # Panics
    /// When there is one already.
    #[inline(always)]
    pub(crate) fn send_after(&self, delay: Span, message: T) {
        let at = self.sim.now() + delay;
        let due = match self.receiver.take() {
            Some(task) => Due::After(self.sim.set_timer(at, task)),
            None => Due::Later(at),
        };
        self.leave(message, due);
    }

    #[inline]
    fn leave(&self, message: T, due: Due) {
        let mut room = self.message.borrow_mut();
        assert!(room.is_none(), "a mailbox holds one message");
        *room = Some(message);
        self.due.set(due);
    }

    /// Whether a present message may be taken.
    #[inline]
    fn is_due(&self) -> bool {
        match self.due.get() {
            Due::Now => true,
            Due::After(timer) => !self.sim.timer_is_pending(timer),
            Due::Later(at) => {
                self.due.set(Due::After(self.sim.set_timer(at, self.sim.current_task())));
                false
            }
        }
    }

    /// Waits for a message and takes it.
    #[inline]
    pub(crate) fn receive(&self) -> Receive<'_, T> {
        Receive { mailbox: self }
    }
}

/// See [`Mailbox::receive`].
pub(crate) struct Receive<'a, T> {
    mailbox: &'a Mailbox<T>,
}

impl<T> Future for Receive<'_, T> {
    type Output = T;

    #[inline]
    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<T> {
        let Mailbox { sim, message, receiver, .. } = self.mailbox;
        let mut message = message.borrow_mut();
        if message.is_none() {
            receiver.set(Some(sim.current_task()));
            return Poll::Pending;
        }
        match self.mailbox.is_due() {
            true => Poll::Ready(message.take().expect("just seen")),
            false => Poll::Pending,
        }
    }
}
