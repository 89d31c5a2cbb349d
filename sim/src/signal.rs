//! A signal that something has changed: it wakes every task that waits for it.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::executor::{Sim, TaskId};

/// Wakes waiting tasks to check again. Used in a loop: `while !condition() { signal.changed().await }`.
pub struct Signal {
    sim: Sim,
    epoch: Cell<u64>,
    waiting: RefCell<Vec<TaskId>>,
    is_awaited: Cell<bool>,
}

impl Signal {
    /// A signal without waiters.
    pub fn new(sim: &Sim) -> Signal {
        Signal {
            sim: sim.clone(),
            epoch: Cell::new(0),
            waiting: RefCell::new(Vec::new()),
            is_awaited: Cell::new(false),
        }
    }

    /// Wakes all waiters.
    #[inline]
    pub fn notify(&self) {
        self.epoch.set(self.epoch.get() + 1);
        if self.is_awaited.get() {
            self.wake_all();
        }
    }

    #[inline(never)]
    fn wake_all(&self) {
        self.is_awaited.set(false);
        self.waiting.borrow_mut().drain(..).for_each(|task| self.sim.wake(task));
    }

    /// Waits for the next [`Signal::notify`] after this call.
    pub fn changed(&self) -> Changed<'_> {
        Changed { signal: self, epoch: self.epoch.get() }
    }
}

/// See [`Signal::changed`].
#[must_use = "a future does nothing until it is awaited"]
pub struct Changed<'a> {
    signal: &'a Signal,
    epoch: u64,
}

impl Future for Changed<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let Signal { sim, epoch, waiting, is_awaited } = self.signal;
        if epoch.get() != self.epoch {
            return Poll::Ready(());
        }
        let (task, mut waiting) = (sim.current_task(), waiting.borrow_mut());
        if !waiting.contains(&task) {
            waiting.push(task);
            is_awaited.set(true);
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executor::Executor;
    use crate::time::Span;
    use std::rc::Rc;

    #[test]
    fn a_waiter_sees_the_change_and_not_an_earlier_one() {
        let mut executor = Executor::with_spurious_polls();
        let sim = executor.sim();
        let signal = Rc::new(Signal::new(&sim));
        signal.notify();
        let (inner, other) = (sim.clone(), signal.clone());
        sim.spawn(async move {
            inner.sleep(Span::from_ns(7)).await;
            other.notify();
        });
        executor.block_on(signal.changed()).unwrap();
        assert_eq!(sim.now().ns(), 7);
    }
}
