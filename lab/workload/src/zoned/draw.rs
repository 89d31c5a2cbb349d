//! Directions and sizes of the requests of a job that knows zones. Left out: their places, which depend on the zones.

use nandscape_sim::{Rng, Seed};

use crate::each::Each;
use crate::record::Direction;
use crate::requests::reads_of;
use crate::spec::JobSpec;
use crate::words::{Action, BlockSizes};

/// Draws requests.
pub(crate) struct Draw {
    rng: Rng,
    action: Action,
    bs: Each<BlockSizes>,
    /// The number of draws that are reads, and of all.
    reads_of: (u64, u64),
}

impl Draw {
    pub(crate) fn new(spec: &JobSpec, seed: Seed) -> Draw {
        Draw { rng: seed.rng(), action: spec.rw.action, bs: spec.bs.clone(), reads_of: reads_of(spec.rwmixread) }
    }

    /// The direction of the next request, and its bytes.
    pub(crate) fn next(&mut self) -> (Direction, u64) {
        let (reads, draws) = self.reads_of;
        let (direction, action) = match self.action {
            Action::Read => (Direction::Read, Action::Read),
            Action::Write => (Direction::Write, Action::Write),
            Action::Trim => (Direction::Trim, Action::Trim),
            Action::Mixed if self.rng.below(draws) < reads => (Direction::Read, Action::Read),
            Action::Mixed => (Direction::Write, Action::Write),
        };
        (direction, self.bs.of(action).draw(&mut self.rng))
    }
}
