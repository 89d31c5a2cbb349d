//! Commands that end early: because their queue is deleted, the controller is reset, power was cut, or the host aborts
//! them.
//!
//! A command checks its [`Stop`] before each step that touches data. Long waits (for room in a write buffer, for a program to
//! end) go through [`Stop::or_stopped`], which can be interrupted. A flash operation in progress is never dropped, and ends
//! soon.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use nandscape_drive::QueueId;
use nandscape_sim::Sim;
use nandscape_sim::executor::TaskId;
use nandscape_sim::slots::{Key, Slots};
use nandscape_wire_nvme::Status;

use super::queues::{QueueKey, Queues};

/// Commands that wait and can be interrupted.
pub(crate) struct Waiters {
    sim: Sim,
    waiting: RefCell<Slots<Waiter>>,
}

struct Waiter {
    queue: QueueKey,
    cid: u16,
    nsid: u32,
    task: TaskId,
    /// The status with which it was interrupted.
    stopped: Option<Status>,
}

impl Waiters {
    pub(super) fn new(sim: &Sim) -> Waiters {
        Waiters { sim: sim.clone(), waiting: RefCell::new(Slots::new()) }
    }

    /// Interrupts the commands for which `which(queue, command identifier)` holds. Returns whether any was.
    pub(crate) fn stop(&self, status: Status, which: impl Fn(QueueKey, u16) -> bool) -> bool {
        self.stop_those(status, |waiter| which(waiter.queue, waiter.cid))
    }

    /// Interrupts the commands of I/O queues that name a namespace.
    pub(crate) fn stop_on(&self, nsid: u32, status: Status) {
        self.stop_those(status, |waiter| waiter.nsid == nsid && waiter.queue.id != QueueId::ADMIN);
    }

    fn stop_those(&self, status: Status, which: impl Fn(&Waiter) -> bool) -> bool {
        let mut found = false;
        for waiter in self.waiting.borrow_mut().values_mut().filter(|waiter| which(waiter)) {
            found |= waiter.stopped.is_none();
            waiter.stopped.get_or_insert(status);
            self.sim.wake(waiter.task);
        }
        found
    }
}

/// Signals a command to end early.
#[derive(Copy, Clone)]
pub struct Stop<'a> {
    pub(super) waiters: &'a Waiters,
    pub(super) queues: &'a RefCell<Queues>,
    pub(super) queue: QueueKey,
    pub(super) cid: u16,
    pub(super) nsid: u32,
    /// Power cuts at the fetch of the command, and so far.
    pub(super) cuts: u32,
    pub(super) cuts_now: &'a Cell<u32>,
}

impl Stop<'_> {
    /// The queue of the command, and its identifier.
    pub(crate) fn names(&self) -> (QueueId, u16) {
        (self.queue.id, self.cid)
    }

    /// Checks that the command may continue.
    ///
    /// # Errors
    /// The status with which it is to end.
    #[inline]
    pub fn check(&self) -> Result<(), Status> {
        if self.cuts != self.cuts_now.get() {
            return Err(Status::ABORTED_POWER_LOSS);
        }
        match self.queues.borrow().serves(self.queue) {
            true => Ok(()),
            false => Err(Status::ABORTED_SQ_DELETION),
        }
    }

    /// Checks that a newly fetched command may begin.
    ///
    /// # Errors
    /// The status with which it is to end.
    #[inline]
    pub(super) fn check_begin(&self) -> Result<(), Status> {
        // Called in any case, because it removes the abort mark: a later command may have the same identifier.
        let begun = self.queues.borrow_mut().begin(self.queue, self.cid);
        if self.cuts != self.cuts_now.get() {
            return Err(Status::ABORTED_POWER_LOSS);
        }
        begun
    }

    /// Awaits `work`, unless the command is stopped first. Then `work` is dropped.
    ///
    /// # Errors
    /// The status with which the command is to end.
    pub async fn or_stopped<T>(&self, work: impl Future<Output = T>) -> Result<T, Status> {
        let mut work = pin!(work);
        let mut entry = Entry { waiters: self.waiters, key: None };
        poll_fn(|context| {
            if let Some(status) = entry.stopped() {
                return Poll::Ready(Err(status));
            }
            match work.as_mut().poll(context) {
                Poll::Ready(result) => Poll::Ready(Ok(result)),
                Poll::Pending => match entry.insert(self) {
                    Ok(()) => Poll::Pending,
                    Err(status) => Poll::Ready(Err(status)),
                },
            }
        })
        .await
    }
}

/// A command's entry among the waiting ones; removed on drop.
struct Entry<'a> {
    waiters: &'a Waiters,
    key: Option<Key>,
}

impl Entry<'_> {
    fn stopped(&self) -> Option<Status> {
        self.waiters.waiting.borrow().get(self.key?)?.stopped
    }

    /// Makes the command interruptible. [`Waiters::stop`] reaches only waiting commands, so an earlier stop is checked here.
    fn insert(&mut self, stop: &Stop<'_>) -> Result<(), Status> {
        if self.key.is_none() {
            stop.check()?;
            let task = self.waiters.sim.current_task();
            let waiter = Waiter { queue: stop.queue, cid: stop.cid, nsid: stop.nsid, task, stopped: None };
            self.key = Some(self.waiters.waiting.borrow_mut().insert(waiter));
        }
        Ok(())
    }
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.waiters.waiting.borrow_mut().remove(key);
        }
    }
}
