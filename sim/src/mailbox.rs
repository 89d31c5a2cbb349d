//! A queue from any number of tasks to one that receives.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::executor::{Sim, TaskId};

/// Messages in order; one task receives.
pub struct Mailbox<T> {
    sim: Sim,
    queue: RefCell<VecDeque<T>>,
    receiver: Cell<Option<TaskId>>,
}

impl<T> Mailbox<T> {
    /// An empty mailbox.
    pub fn new(sim: &Sim) -> Mailbox<T> {
        Mailbox { sim: sim.clone(), queue: RefCell::default(), receiver: Cell::new(None) }
    }

    /// Adds a message and wakes the receiver.
    pub fn send(&self, message: T) {
        self.queue.borrow_mut().push_back(message);
        if let Some(task) = self.receiver.take() {
            self.sim.wake(task);
        }
    }

    /// Waits for a message and takes it.
    pub fn receive(&self) -> Receive<'_, T> {
        Receive { mailbox: self }
    }
}

/// See [`Mailbox::receive`].
#[must_use = "a future does nothing until it is awaited"]
pub struct Receive<'a, T> {
    mailbox: &'a Mailbox<T>,
}

impl<T> Future for Receive<'_, T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<T> {
        let Mailbox { sim, queue, receiver } = self.mailbox;
        match queue.borrow_mut().pop_front() {
            Some(message) => Poll::Ready(message),
            None => {
                receiver.set(Some(sim.current_task()));
                Poll::Pending
            }
        }
    }
}
