//! Snitching (Li 1.1), after Cassandra's dynamic snitch: the primary is asked unless another replica was recently
//! quicker by more than the badness threshold. Scores are updated every 100 ms, so a burst is noticed late.
//!
//! A try without an answer counts as a latency. A recently silent replica is chosen only if all are.
//!
//! Left out: Cassandra's reservoir of latencies, replaced by an average with the same weight, and its regular reset.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use nandscape_sim::{Span, Time};

use super::{Getting, Policy};
use crate::client::{Attempts, How};

/// Cassandra's `dynamic_snitch_update_interval`.
const BETWEEN: Span = Span::from_ms(100);
/// Cassandra's `dynamic_snitch_badness_threshold`.
const BADNESS: f64 = 0.1;

/// See the module.
#[derive(Default)]
pub struct Snitch {
    /// By server.
    scores: RefCell<BTreeMap<usize, f64>>,
    taken: Cell<Time>,
}

impl Snitch {
    fn best(&self, tries: &Attempts<'_>) -> usize {
        if tries.now() - self.taken.get() >= BETWEEN {
            self.taken.set(tries.now());
            *self.scores.borrow_mut() = tries.latencies();
        }
        let scores = self.scores.borrow();
        // One that was not asked yet has the best score.
        let score = |place: usize| scores.get(&tries.server(place)).copied().unwrap_or(0.0);
        let best = (0..tries.choices()).min_by(|one, other| score(*one).total_cmp(&score(*other))).unwrap_or(0);
        if score(0) > score(best) * (1.0 + BADNESS) { best } else { 0 }
    }
}

impl Policy for Snitch {
    fn get<'a>(&'a self, tries: &'a mut Attempts<'_>) -> Getting<'a> {
        Box::pin(async {
            tries.prefer(self.best(tries));
            tries.send(0, How::default()).await;
            tries.finish().await
        })
    }
}
