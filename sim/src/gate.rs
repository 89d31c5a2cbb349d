//! A gate that lets everybody pass or nobody: what a blocking garbage collection does to a whole controller.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::account::{Blame, Cause, Totals, Wait};
use crate::executor::{Sim, TaskId};

/// Open unless somebody holds a [`Closed`].
pub struct Gate {
    sim: Sim,
    closed: Cell<usize>,
    inner: RefCell<Inner>,
}

struct Inner {
    blame: Blame,
    waiting: Vec<TaskId>,
}

impl Gate {
    /// An open gate.
    pub fn new(sim: &Sim) -> Gate {
        let inner = Inner { blame: Blame::new(), waiting: Vec::new() };
        Gate { sim: sim.clone(), closed: Cell::new(0), inner: RefCell::new(inner) }
    }

    /// Whether everybody passes.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.closed.get() == 0
    }

    /// Waits until the gate is open; the time is added to `waited`.
    pub async fn pass(&self, waited: &mut Wait) {
        *waited += Pass { gate: self, begun: None }.await;
    }

    /// Closes the gate on behalf of `cause` until the guard is dropped. Several may keep it closed; waits are put
    /// down to the one that closed it last.
    pub fn close(&self, cause: Cause) -> Closed<'_> {
        self.closed.set(self.closed.get() + 1);
        self.inner.borrow_mut().blame.switch(self.sim.now(), Some(cause));
        Closed { gate: self }
    }
}

/// Keeps a [`Gate`] closed until it is dropped.
pub struct Closed<'a> {
    gate: &'a Gate,
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        let Gate { sim, closed, inner } = self.gate;
        closed.set(closed.get() - 1);
        if closed.get() == 0 {
            let mut inner = inner.borrow_mut();
            inner.blame.switch(sim.now(), None);
            inner.waiting.drain(..).for_each(|task| sim.wake(task));
        }
    }
}

/// Waits until the gate is open; returns how long that was.
struct Pass<'a> {
    gate: &'a Gate,
    begun: Option<Totals>,
}

impl Future for Pass<'_> {
    type Output = Wait;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Wait> {
        let Gate { sim, closed, inner } = self.gate;
        let mut inner = inner.borrow_mut();
        if closed.get() == 0 {
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
    use crate::time::{Span, Time};
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
                let mut waited = Wait::ZERO;
                gate.pass(&mut waited).await;
                gate.pass(&mut waited).await;
                waited
            });
            assert_eq!(waited.unwrap(), Wait::behind(gc, Span::from_us(50)));
        }
    }

    /// Closed by one to 30, by another from 10 to 40, by a third from 40, before the second opens it, to 50.
    #[test]
    fn it_opens_when_the_last_of_several_opens_it() {
        for mut executor in [Executor::new(), Executor::with_spurious_polls()] {
            let sim = executor.sim();
            let gate = Rc::new(Gate::new(&sim));
            let (gc, wear) = (Cause::new(2), Cause::new(3));
            for (cause, from, to) in [(gc, 0, 30), (wear, 10, 40), (gc, 40, 50)] {
                let (closer, inner) = (gate.clone(), sim.clone());
                sim.spawn(async move {
                    inner.sleep_until(Time::from_ns(from)).await;
                    let _closed = closer.close(cause);
                    inner.sleep_until(Time::from_ns(to)).await;
                });
            }
            let waited = executor.block_on(async {
                sim.sleep(Span::from_ns(5)).await;
                assert!(!gate.is_open());
                let mut waited = Wait::ZERO;
                gate.pass(&mut waited).await;
                (sim.now().ns(), waited.by(gc).ns(), waited.by(wear).ns())
            });
            // From 10 on waits are put down to whoever closed it last.
            assert_eq!(waited.unwrap(), (50, 5 + 10, 30));
            assert!(gate.is_open());
        }
    }
}
