//! A gate that lets everybody pass or nobody: what a blocking garbage collection does to a whole controller.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::account::{Blame, Cause, Totals, Wait};
use crate::executor::{Sim, TaskId};

/// Open unless somebody holds a [`Closed`].
pub struct Gate {
    sim: Sim,
    inner: RefCell<Inner>,
}

struct Inner {
    closed: usize,
    blame: Blame,
    waiting: Vec<TaskId>,
}

impl Gate {
    /// An open gate.
    pub fn new(sim: &Sim) -> Gate {
        Gate { sim: sim.clone(), inner: RefCell::new(Inner { closed: 0, blame: Blame::new(), waiting: Vec::new() }) }
    }

    /// Waits until the gate is open; returns how long that was.
    pub fn pass(&self) -> Pass<'_> {
        Pass { gate: self, begun: None }
    }

    /// Closes the gate on behalf of `cause` until the guard is dropped. Several may keep it closed; waits are put
    /// down to the one that closed it last.
    pub fn close(&self, cause: Cause) -> Closed<'_> {
        let mut inner = self.inner.borrow_mut();
        inner.closed += 1;
        inner.blame.switch(self.sim.now(), Some(cause));
        Closed { gate: self }
    }
}

/// Keeps a [`Gate`] closed until it is dropped.
pub struct Closed<'a> {
    gate: &'a Gate,
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        let Gate { sim, inner } = self.gate;
        let mut inner = inner.borrow_mut();
        inner.closed -= 1;
        if inner.closed == 0 {
            inner.blame.switch(sim.now(), None);
            inner.waiting.drain(..).for_each(|task| sim.wake(task));
        }
    }
}

/// See [`Gate::pass`].
#[must_use = "a future does nothing until it is awaited"]
pub struct Pass<'a> {
    gate: &'a Gate,
    begun: Option<Totals>,
}

impl Future for Pass<'_> {
    type Output = Wait;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Wait> {
        let Gate { sim, inner } = self.gate;
        let mut inner = inner.borrow_mut();
        if inner.closed == 0 {
            let waited = self.begun.map_or(Wait::ZERO, |begun| inner.blame.since(&begun, sim.now()));
            return Poll::Ready(waited);
        }
        let (now, task) = (sim.now(), sim.current_task());
        self.begun.get_or_insert_with(|| inner.blame.totals(now));
        if !inner.waiting.contains(&task) {
            inner.waiting.push(task);
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
    fn nobody_passes_while_it_is_closed_and_the_wait_is_blamed() {
        for mut executor in [Executor::new(), Executor::with_spurious_polls()] {
            let sim = executor.sim();
            let gate = Rc::new(Gate::new(&sim));
            let gc = Cause::new(2);
            let (closer, inner) = (gate.clone(), sim.clone());
            sim.spawn(async move {
                let _closed = closer.close(gc);
                inner.sleep(Span::from_us(54)).await;
            });
            let waited = executor.block_on(async {
                sim.sleep(Span::from_us(4)).await;
                gate.pass().await
            });
            assert_eq!(waited.unwrap(), Wait::behind(gc, Span::from_us(50)));
            assert_eq!(executor.block_on(gate.pass()).unwrap(), Wait::ZERO);
        }
    }
}
