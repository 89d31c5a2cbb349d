//! A queue of waiting threads. Who notifies makes a thread ready at once; it goes on when it has a processor.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{self, Poll};

use nandscape_sim::slots::Key;

use crate::context::Context;
use crate::machine::Machine;
use crate::running::Work;
use crate::state::{Request, Shared, Waker};

/// See the file. A notification while no thread waits is lost, so a thread waits in a loop: `while !condition() {
/// event.wait(&thread).await }`.
pub struct Event {
    shared: Rc<Shared>,
    waiting: RefCell<VecDeque<Key>>,
}

impl Event {
    /// An event of a machine, on which no thread waits.
    pub fn new(machine: &Machine) -> Event {
        Event { shared: machine.shared.clone(), waiting: RefCell::default() }
    }

    /// Leaves the processor until the event is notified; ends when the thread has a processor again.
    pub fn wait<'a>(&'a self, thread: &'a Context) -> Wait<'a> {
        Wait { event: self, thread, work: Work::resumed(thread, Waker::Outside), stage: Stage::New }
    }

    /// Wakes the thread that has waited for longest, from outside the machine. Returns whether one waited.
    pub fn notify(&self) -> bool {
        self.wake(Waker::Outside)
    }

    /// The same, from a context: a thread that gets another processor costs that one an interrupt.
    pub fn notify_from(&self, context: &Context) -> bool {
        self.wake(Waker::On(context.cpu()))
    }

    /// Wakes all threads that wait now.
    pub fn notify_all(&self) {
        while self.notify() {}
    }

    /// Threads that wait.
    pub fn waiting(&self) -> usize {
        self.waiting.borrow().len()
    }

    fn wake(&self, waker: Waker) -> bool {
        let Some(key) = self.waiting.borrow_mut().pop_front() else { return false };
        self.shared.state.borrow_mut().ask(key, Request::NOTHING, waker, None);
        true
    }
}

/// See [`Event::wait`]. If it is dropped after its notification, another thread gets that.
#[must_use = "a future does nothing until it is awaited"]
pub struct Wait<'a> {
    event: &'a Event,
    thread: &'a Context,
    work: Work<'a>,
    stage: Stage,
}

#[derive(Copy, Clone, PartialEq, Eq)]
enum Stage {
    New,
    Waits,
    Notified,
    Ended,
}

impl Future for Wait<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let Context { shared, key } = this.thread;
        if this.stage == Stage::New {
            this.thread.leave();
            this.event.waiting.borrow_mut().push_back(*key);
            this.stage = Stage::Waits;
        }
        if this.stage == Stage::Waits {
            let mut state = shared.state.borrow_mut();
            let entity = state.entity_mut(*key);
            entity.task = shared.sim.current_task();
            if !entity.asks {
                return Poll::Pending;
            }
            this.work.was_asked();
            this.stage = Stage::Notified;
        }
        let polled = Pin::new(&mut this.work).poll(context);
        if polled.is_ready() {
            this.stage = Stage::Ended;
        }
        polled
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        let Context { shared, key } = self.thread;
        if !matches!(self.stage, Stage::Waits | Stage::Notified) || shared.sim.is_stopped() {
            return;
        }
        let mut waiting = self.event.waiting.borrow_mut();
        let before = waiting.len();
        waiting.retain(|other| other != key);
        let was_notified = waiting.len() == before;
        drop(waiting);
        if was_notified {
            shared.state.borrow_mut().withdraw(*key);
            shared.wake_sweeper();
            self.event.notify();
        }
    }
}
