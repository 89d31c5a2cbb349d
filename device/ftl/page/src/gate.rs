//! The gate that the host's operations pass before they begin on the flash. A collection under the `controller` scheme
//! closes it; such collections take turns. Under the other schemes it is always open.

use nandscape_device_ftl_core::policy::GcScheme;
use nandscape_device_media::{Counted, Media};
use nandscape_drive::{Breakdown, Stage};
use nandscape_sim::resource::Hold;
use nandscape_sim::{Resource, Sim, Span, Wait, Who};

/// See the module.
pub(super) struct Gate(Option<Resource>);

impl Gate {
    pub(super) fn new(sim: &Sim, scheme: GcScheme) -> Gate {
        Gate((scheme == GcScheme::Controller).then(|| Resource::new(sim)))
    }

    #[inline]
    pub(super) fn is_closed(&self) -> bool {
        self.0.as_ref().is_some_and(|gate| !gate.is_idle())
    }

    /// Whether collections close it.
    #[inline]
    pub(super) fn is_used(&self) -> bool {
        self.0.is_some()
    }

    /// Waits until the gate is open, in the queue of waiters. The operation counts as under way until the result is
    /// dropped, which must be after it has begun. If power is cut while the operation waits, it has to fail before a
    /// restart scans its pages.
    pub(super) async fn pass<'a>(&self, media: &'a Media, who: Who, breakdown: &mut Breakdown) -> Counted<'a> {
        let counted = media.count_under_way();
        if let Some(gate) = &self.0 {
            gate.occupy(Span::ZERO, who, breakdown.waits(Stage::Queue)).await;
        }
        counted
    }

    /// Closes the gate until the result is dropped, if the scheme is one that does.
    pub(super) async fn close(&self, who: Who) -> Option<Hold<'_>> {
        match &self.0 {
            Some(gate) => Some(gate.take(who, &mut Wait::default()).await),
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use nandscape_device_media::Priority;
    use nandscape_drive::breakdown::cause;
    use nandscape_sim::Executor;

    use super::*;

    #[test]
    fn operations_wait_while_it_is_closed_and_those_who_close_it_take_turns() {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let media = nandscape_device_rig::TestFlash::default().media(&sim);
        let gate = Rc::new(Gate::new(&sim, GcScheme::Controller));
        for at in [0, 10] {
            let (gate, inner) = (gate.clone(), sim.clone());
            sim.spawn(async move {
                inner.sleep(Span::from_us(at)).await;
                let _closed = gate.close(Priority::Fifo.who(cause::GC)).await;
                inner.sleep(Span::from_us(100)).await;
            });
        }
        let mut breakdown = Breakdown::new();
        let passed = async {
            sim.sleep(Span::from_us(20)).await;
            assert!(gate.is_closed());
            drop(gate.pass(&media, Priority::Fifo.who(cause::HOST_READ), &mut breakdown).await);
            sim.now()
        };
        assert_eq!(executor.block_on(passed).unwrap().ns(), 200_000);
        assert_eq!(breakdown.waited(Stage::Queue, cause::GC), Span::from_us(180));
    }

    #[test]
    fn under_other_schemes_it_is_open() {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let gate = Gate::new(&sim, GcScheme::Channel);
        let open = async {
            let _closed = gate.close(Priority::Fifo.who(cause::GC)).await;
            assert!(!gate.is_closed());
        };
        executor.block_on(open).unwrap();
    }
}
