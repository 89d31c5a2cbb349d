//! The latencies of a run by direction, and the percentiles that a user chooses in addition.

use std::collections::BTreeMap;

use nandscape_drive::{Latency, percentile};
use nandscape_lab_workload::{Direction, Outcome};
use nandscape_sim::Histogram;

use crate::flow::mean_us;
use crate::percentile::Percentile;

/// All latencies of a run, by direction.
#[derive(Clone)]
pub(crate) struct Latencies([Histogram; Direction::ALL.len()]);

impl Latencies {
    pub(crate) fn of_all(outcome: &Outcome) -> Latencies {
        Latencies(Direction::ALL.map(|way| outcome.tally(way).latency.clone()))
    }

    /// Those of one direction.
    pub(crate) fn of(&self, direction: Direction) -> &Histogram {
        &self.0[direction as usize]
    }

    /// The mean of all in microseconds; `None` without any.
    pub(crate) fn mean_us(&self) -> Option<f64> {
        mean_us(self.0.iter())
    }

    /// Adds percentiles to the figures of a report.
    pub(crate) fn choose(&self, figures: &mut BTreeMap<&'static str, Latency>, chosen: &[Percentile]) {
        for way in Direction::ALL {
            figures.get_mut(way.name()).into_iter().for_each(|latency| choose(latency, self.of(way), chosen));
        }
    }
}

/// Latencies of the operations of a workload, by name.
pub(crate) fn of_operations(outcome: &Outcome) -> BTreeMap<&'static str, Latency> {
    outcome.operations.iter().map(|(name, taken)| (*name, Latency::of(taken))).collect()
}

/// Adds percentiles that are not among the others.
fn choose(latency: &mut Latency, latencies: &Histogram, chosen: &[Percentile]) {
    for one in chosen.iter().filter(|one| !Latency::ALWAYS.contains(&one.key().as_str())) {
        latency.chosen.insert(one.key(), percentile(latencies, latencies.count(), one.quantile()));
    }
}
