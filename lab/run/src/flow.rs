//! The figures of each of several jobs, and how fairly the drive serves them.
//!
//! A job's slowdown is its mean latency among the other jobs over its mean latency alone. Fairness is the smallest slowdown
//! over the largest: 1 where all jobs suffer alike, near 0 where one suffers alone (Gabor et al. 2006; FLIN, ISCA 2018).

use std::collections::BTreeMap;

use nandscape_drive::Latency;
use nandscape_lab_workload::{Direction, Due, Flow, Outcome};
use nandscape_sim::Histogram;
use serde::Serialize;

use crate::host_report::layers;
use crate::report::breakdown;

/// How the reads and writes of a job stood to its deadline. Those that failed, or that a layer rejected, count nowhere.
#[derive(Copy, Clone, PartialEq, Debug, Serialize)]
pub struct DeadlineReport {
    /// Time from the submission of a command until it is due.
    pub due_us: f64,
    /// Requests that ended in time.
    pub met: u64,
    /// Requests that ended later.
    pub missed: u64,
    /// The first as a share of both; null without any.
    pub met_ratio: Option<f64>,
    /// The longest time that one was late; null if none was.
    pub latest_us: Option<f64>,
}

impl DeadlineReport {
    fn of(due: &Due) -> DeadlineReport {
        let all = due.met + due.missed;
        DeadlineReport {
            due_us: due.after.as_us(),
            met: due.met,
            missed: due.missed,
            met_ratio: (all > 0).then(|| due.met as f64 / all as f64),
            latest_us: (due.missed > 0).then(|| due.latest.as_us()),
        }
    }
}

/// The figures of a job: of one of several, or of one with a deadline.
#[derive(Clone, Debug, Serialize)]
pub struct FlowReport {
    /// The job.
    pub name: String,
    /// The class of its commands; left out of a job without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<u8>,
    /// Their tenant; left out of a job without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<u16>,
    /// How it stood to its deadline; left out of a job without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<DeadlineReport>,
    /// Requests that succeeded.
    pub requests: u64,
    /// Requests a second of drive time; null when none passed.
    pub iops: Option<f64>,
    /// Bytes a second of drive time; null when none passed.
    pub bytes_per_s: Option<f64>,
    /// Latencies by direction.
    pub latency_us: BTreeMap<&'static str, Latency>,
    /// Mean time by stage and direction; with that in layers, the stages sum to the mean latency.
    pub breakdown_us: BTreeMap<&'static str, BTreeMap<String, serde_json::Value>>,
    /// Mean time by direction and layer, the drives' under `drive`, as of a run with layers; left out of others.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub layers_us: BTreeMap<&'static str, BTreeMap<&'static str, f64>>,
    /// Mean latency of all its requests.
    pub mean_us: Option<f64>,
    /// Mean latency of the same job alone; left out unless it was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alone_mean_us: Option<f64>,
    /// The one over the other; left out unless it was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slowdown: Option<f64>,
}

impl FlowReport {
    pub(crate) fn of(flow: &Flow, outcome: &Outcome) -> FlowReport {
        let ways: Vec<Direction> =
            Direction::ALL.into_iter().filter(|way| flow.tally(*way).latency.count() > 0).collect();
        let sum = |of: fn(&nandscape_lab_workload::Tally) -> u64| flow.distinct().map(of).sum::<u64>();
        let seconds = flow.elapsed.unwrap_or(outcome.elapsed()).as_s();
        let per_s = |count: u64| (seconds > 0.0).then(|| count as f64 / seconds);
        let requests = sum(|tally| tally.latency.count());
        FlowReport {
            name: flow.name.clone(),
            class: Some(flow.class).filter(|class| *class != 0),
            tenant: Some(flow.tenant).filter(|tenant| *tenant != 0),
            deadline: flow.due.as_ref().map(DeadlineReport::of),
            requests,
            iops: per_s(requests),
            bytes_per_s: per_s(sum(|tally| tally.bytes)),
            latency_us: ways.iter().map(|way| (way.name(), Latency::of(&flow.tally(*way).latency))).collect(),
            breakdown_us: ways.iter().map(|way| (way.name(), breakdown(flow.tally(*way)))).collect(),
            layers_us: BTreeMap::new(),
            mean_us: mean_us(flow.distinct().map(|tally| &tally.latency)),
            alone_mean_us: None,
            slowdown: None,
        }
    }

    /// The same of a run with layers.
    pub(crate) fn with_layers(flow: &Flow, outcome: &Outcome) -> FlowReport {
        let plain = FlowReport::of(flow, outcome);
        let of = |way: &&'static str| {
            let direction = Direction::ALL.into_iter().find(|direction| direction.name() == *way)?;
            Some((*way, layers(flow.tally(direction))))
        };
        FlowReport { layers_us: plain.latency_us.keys().filter_map(of).collect(), ..plain }
    }

    /// With the mean latency of the same job alone.
    pub(crate) fn beside(&mut self, alone_mean_us: Option<f64>) {
        self.alone_mean_us = alone_mean_us;
        self.slowdown =
            self.mean_us.zip(alone_mean_us).filter(|(_, alone)| *alone > 0.0).map(|(mean, alone)| mean / alone);
    }
}

/// The mean of several distributions together.
pub(crate) fn mean_us<'a>(latencies: impl Iterator<Item = &'a Histogram>) -> Option<f64> {
    let (sum, count) = latencies.fold((0, 0), |(sum, count), one| (sum + one.sum_ns(), count + one.count()));
    (count > 0).then(|| sum as f64 / count as f64 / 1e3)
}

/// Adds the mean latency that each job has alone, in the order of the jobs. The fairness that follows.
pub(crate) fn compare_with_alone(flows: &mut [FlowReport], alone_mean_us: &[Option<f64>]) -> Option<f64> {
    flows.iter_mut().zip(alone_mean_us).for_each(|(flow, alone)| flow.beside(*alone));
    fairness(flows)
}

/// The smallest slowdown over the largest; `None` unless all are known.
fn fairness(flows: &[FlowReport]) -> Option<f64> {
    let slowdowns: Vec<f64> = flows.iter().map(|flow| flow.slowdown).collect::<Option<_>>()?;
    let least = slowdowns.iter().copied().reduce(f64::min)?;
    let most = slowdowns.iter().copied().reduce(f64::max)?;
    Some(least / most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(mean_us: f64, alone: Option<f64>) -> FlowReport {
        let outcome = Outcome::default();
        let mut report = FlowReport { mean_us: Some(mean_us), ..FlowReport::of(&Flow::default(), &outcome) };
        report.beside(alone);
        report
    }

    #[test]
    fn fairness_is_the_smallest_slowdown_over_the_largest() {
        let flows = [flow(200.0, Some(100.0)), flow(90.0, Some(90.0)), flow(400.0, Some(100.0))];
        assert_eq!(flows.each_ref().map(|flow| flow.slowdown), [Some(2.0), Some(1.0), Some(4.0)]);
        assert_eq!(fairness(&flows), Some(0.25));
        assert_eq!(fairness(&[flow(1.0, Some(1.0)), flow(1.0, None)]), None);
        assert_eq!(fairness(&[]), None);
    }
}
