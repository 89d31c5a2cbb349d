//! Threads that stop during a collection, which prolongs their work.

use std::cell::Cell;

use nandscape_sim::race::race;
use nandscape_sim::signal::Signal;
use nandscape_sim::{Sim, Span, Time};

/// See the file.
pub(super) struct World {
    sim: Sim,
    /// When the world was stopped, while it is.
    since: Cell<Option<Time>>,
    stops: Signal,
    goes_on: Signal,
}

impl World {
    pub(super) fn new(sim: &Sim) -> World {
        World { sim: sim.clone(), since: Cell::new(None), stops: Signal::new(sim), goes_on: Signal::new(sim) }
    }

    /// When the world was stopped, if it is.
    pub(super) fn stands_since(&self) -> Option<Time> {
        self.since.get()
    }

    /// All threads stop.
    pub(super) fn stop(&self) {
        self.since.set(Some(self.sim.now()));
        self.stops.notify();
    }

    /// The threads continue.
    pub(super) fn go_on(&self) {
        self.since.set(None);
        self.goes_on.notify();
    }

    /// Waits until threads run.
    pub(super) async fn runs(&self) {
        while self.since.get().is_some() {
            self.goes_on.changed().await;
        }
    }

    /// A thread works for so long, while threads run.
    pub(super) async fn work(&self, span: Span) {
        let mut left = span;
        while !left.is_zero() {
            self.runs().await;
            let begun = self.sim.now();
            let mut sleep = Box::pin(self.sim.sleep(left));
            race(&mut sleep, self.stops.changed()).await;
            left = left.saturating_sub(self.sim.now() - begun);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_sim::Executor;
    use std::rc::Rc;

    #[test]
    fn work_stands_with_the_world() {
        let mut executor = Executor::new();
        let sim = executor.sim();
        executor
            .block_on(async {
                let world = Rc::new(World::new(&sim));
                let (of_task, clock) = (world.clone(), sim.clone());
                sim.spawn(async move {
                    for ms in [3, 1] {
                        clock.sleep(Span::from_ms(ms)).await;
                        of_task.stop();
                        clock.sleep(Span::from_ms(10)).await;
                        of_task.go_on();
                    }
                });
                world.work(Span::from_ms(5)).await;
                assert_eq!(sim.now().ns(), 25_000_000);
                assert!(world.stands_since().is_none());
            })
            .unwrap();
    }
}
