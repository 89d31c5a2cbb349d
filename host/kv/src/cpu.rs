//! The processors of a machine, as many as it has: work waits for a free one, first come first served, and is not interrupted.
//!
//! Left out: time slices and priorities. At the wall clock the machine has processors of its own, and work takes no time here.

use nandscape_sim::credits::Credits;
use nandscape_sim::{Cause, Sim, Span, Wait};

/// See the module.
pub struct Cpu {
    sim: Sim,
    cores: Option<Credits>,
}

impl Cpu {
    /// A machine with this number of processors.
    pub fn new(sim: &Sim, cores: usize) -> Cpu {
        Cpu { sim: sim.clone(), cores: Some(Credits::new(sim, cores, Cause::new(0))) }
    }

    /// Work takes no time: that is another's business.
    pub fn elsewhere(sim: &Sim) -> Cpu {
        Cpu { sim: sim.clone(), cores: None }
    }

    /// Works for so long on one processor.
    pub async fn work(&self, span: Span) {
        let Some(cores) = self.cores.as_ref().filter(|_| !span.is_zero()) else { return };
        cores.take(1, &mut Wait::default()).await;
        self.sim.sleep(span).await;
        cores.give(1);
    }
}
