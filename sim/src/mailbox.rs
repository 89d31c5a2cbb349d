//! A mailbox for one message from one task to another. A worker receives its next job through it, and works on it there.

use std::cell::{Cell, RefCell, RefMut};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::event_queue::TimerKey;
use crate::executor::{Sim, TaskId};
use crate::time::{Span, Time};

/// Calls one receiving task, with a message or without.
pub(crate) struct Mailbox<T> {
    sim: Sim,
    message: RefCell<Option<T>>,
    due: Cell<Due>,
    receiver: Cell<Option<TaskId>>,
}

/// When the receiver is called.
#[derive(Copy, Clone)]
enum Due {
    Never,
    Now,
    /// When the timer has fired.
    After(TimerKey),
    /// At this time. The receiver has not been polled yet; it sets the timer when it is.
    Later(Time),
}

impl<T> Mailbox<T> {
    /// An empty mailbox.
    pub(crate) fn new(sim: &Sim) -> Mailbox<T> {
        Mailbox { sim: sim.clone(), message: RefCell::new(None), due: Cell::new(Due::Never), receiver: Cell::new(None) }
    }

    /// Calls the receiver now, without a message. It must not have been called since it was last received.
    #[inline]
    pub(crate) fn call(&self) {
        debug_assert!(matches!(self.due.get(), Due::Never), "a receiver is called once");
        self.due.set(Due::Now);
        if let Some(task) = self.receiver.take() {
            self.sim.wake(task);
        }
    }

    /// Puts a message in, and calls the receiver after `delay`.
    ///
    /// # Panics
    /// When there is a message already.
    #[inline(always)]
    pub(crate) fn send_after(&self, delay: Span, message: T) {
        let at = self.sim.now() + delay;
        let due = match self.receiver.take() {
            Some(task) => Due::After(self.sim.set_timer(at, task)),
            None => Due::Later(at),
        };
        self.due.set(due);
        let mut room = self.message.borrow_mut();
        assert!(room.is_none(), "a mailbox holds one message");
        *room = Some(message);
    }

    /// Waits for a call. A message stays in the mailbox until the [`Received`] is dropped.
    #[inline]
    pub(crate) fn receive(&self) -> Receive<'_, T> {
        Receive { mailbox: self }
    }
}

/// See [`Mailbox::receive`].
pub(crate) struct Receive<'a, T> {
    mailbox: &'a Mailbox<T>,
}

impl<'a, T> Future for Receive<'a, T> {
    type Output = Received<'a, T>;

    #[inline]
    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Received<'a, T>> {
        let Mailbox { sim, message, due, receiver } = self.mailbox;
        let is_called = match due.get() {
            Due::Never => {
                receiver.set(Some(sim.current_task()));
                false
            }
            Due::Now => true,
            Due::After(timer) => !sim.timer_is_pending(timer),
            Due::Later(at) => {
                due.set(Due::After(sim.set_timer(at, sim.current_task())));
                false
            }
        };
        if !is_called {
            return Poll::Pending;
        }
        due.set(Due::Never);
        Poll::Ready(Received { message: message.borrow_mut() })
    }
}

/// The message of a call, if it has one, in its mailbox, which is empty once this is dropped. A message is not moved: it is as large as a
/// command.
pub(crate) struct Received<'a, T> {
    message: RefMut<'a, Option<T>>,
}

impl<T> Received<'_, T> {
    /// The message.
    #[inline(always)]
    pub(crate) fn get(&mut self) -> &mut Option<T> {
        &mut self.message
    }
}

impl<T> Drop for Received<'_, T> {
    #[inline]
    fn drop(&mut self) {
        *self.message = None;
    }
}
