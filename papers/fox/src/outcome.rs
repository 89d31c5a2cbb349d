//! The measurements: each command, and figures of them.

use std::collections::BTreeMap;

use nandscape_host_open_channel::Means;
use nandscape_sim::{Span, Time};
use serde::Serialize;

use crate::benchmark::Wanted;
use crate::layout::Unit;
use crate::mix::Kind;

/// A command that has ended.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Sample {
    /// Its operation.
    pub kind: Kind,
    /// Its parallel unit; of several, the first.
    pub unit: Unit,
    /// When it ended.
    pub ended: Time,
    /// How long it took.
    pub latency: Span,
    /// Its data.
    pub bytes: u64,
    /// Whether it failed.
    pub failed: bool,
}

/// The commands of a run, in the order in which they ended.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// The commands that carried the pages.
    pub means: Means,
    /// When all nodes began.
    pub begun: Time,
    /// When the last one ended.
    pub ended: Time,
    /// The commands.
    pub samples: Vec<Sample>,
}

/// The figures of a run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// The runs that it belongs to: the table.
    pub group: String,
    /// Its name in the group.
    pub name: String,
    /// The engine.
    pub engine: String,
    /// The mix of reads and writes.
    pub mix: String,
    /// Channels.
    pub channels: u32,
    /// Parallel units of each.
    pub pus: u32,
    /// Threads.
    pub threads: u32,
    /// Blocks of each unit.
    pub blocks: u32,
    /// Pages of each block.
    pub pages: u32,
    /// Pages of a command of the engine.
    pub pages_per_command: u32,
    /// How they reached the drive: `vectors`, or `rows`, a command for each row of addresses.
    pub means: &'static str,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// Reads and writes, in 10^6 bytes a second.
    pub mb_s: Option<f64>,
    /// Throughput over that of the first run of the group.
    pub scaling: Option<f64>,
    /// Writes.
    pub write: Option<Latency>,
    /// Reads.
    pub read: Option<Latency>,
    /// Throughput of each channel's parallel units, in 10^6 bytes a second, while the unit was used.
    pub units_mb_s: Vec<Vec<Option<f64>>>,
}

impl Report {
    /// Whether commands of several pages reached the drive as several.
    pub fn is_split(&self) -> bool {
        self.pages_per_command > 1 && self.means == Means::Rows.name()
    }
}

/// Commands of one kind.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Latency {
    /// Commands, with those that failed.
    pub count: u64,
    /// Those that failed. They are not in the figures below.
    pub failed: u64,
    /// Throughput, in 10^6 bytes a second of the whole run.
    pub mb_s: Option<f64>,
    /// The mean.
    pub mean_us: Option<f64>,
    /// The shortest.
    pub min_us: Option<f64>,
    /// Percentiles: the latency that so many percent of the commands do not exceed.
    pub p50_us: Option<f64>,
    /// See above.
    pub p90_us: Option<f64>,
    /// See above.
    pub p99_us: Option<f64>,
    /// See above.
    pub p99_9_us: Option<f64>,
    /// The longest.
    pub max_us: Option<f64>,
    /// Ranges of latencies that occurred, in steps of 100 us, with the share of commands.
    pub bands: Vec<Band>,
}

/// A range of latencies, with nothing below and above for 100 us or more.
#[derive(Copy, Clone, PartialEq, Debug, Serialize)]
pub struct Band {
    /// Where it begins, a multiple of 100 us.
    pub from_us: u64,
    /// Where it ends.
    pub to_us: u64,
    /// The share of the commands, from 0 to 1.
    pub share: f64,
}

/// A step of bands.
const STEP_US: u64 = 100;

fn rate(bytes: u64, span: Span) -> Option<f64> {
    (!span.is_zero()).then(|| bytes as f64 / span.as_s() / 1e6)
}

impl Outcome {
    /// Its figures.
    pub fn report(&self, wanted: &Wanted) -> Report {
        let span = self.ended.since(self.begun);
        let plan = &wanted.plan;
        let good = |sample: &&Sample| !sample.failed;
        Report {
            group: wanted.group.clone(),
            name: wanted.name.clone(),
            engine: wanted.engine.clone(),
            mix: plan.mix.to_string(),
            channels: plan.channels,
            pus: plan.pus,
            threads: plan.threads,
            blocks: plan.blocks,
            pages: plan.pages,
            pages_per_command: plan.vector,
            means: self.means.name(),
            seconds: span.as_s(),
            mb_s: rate(self.samples.iter().filter(good).map(|sample| sample.bytes).sum(), span),
            scaling: None,
            write: self.latency(Kind::Write, span),
            read: self.latency(Kind::Read, span),
            units_mb_s: self.units(plan.channels, plan.pus),
        }
    }

    fn latency(&self, kind: Kind, span: Span) -> Option<Latency> {
        let all: Vec<&Sample> = self.samples.iter().filter(|sample| sample.kind == kind).collect();
        let good: Vec<&&Sample> = all.iter().filter(|sample| !sample.failed).collect();
        let mut sorted: Vec<u64> = good.iter().map(|sample| sample.latency.ns()).collect();
        sorted.sort_unstable();
        let us = |ns: u64| ns as f64 / 1e3;
        let at = |share: f64| {
            let place = (sorted.len() as f64 * share).ceil() as usize;
            sorted.get(place.max(1) - 1).map(|ns| us(*ns))
        };
        let sum: u64 = sorted.iter().sum();
        (!all.is_empty()).then(|| Latency {
            count: all.len() as u64,
            failed: (all.len() - good.len()) as u64,
            mb_s: rate(good.iter().map(|sample| sample.bytes).sum(), span),
            mean_us: (!sorted.is_empty()).then(|| us(sum) / sorted.len() as f64),
            min_us: sorted.first().map(|ns| us(*ns)),
            p50_us: at(0.5),
            p90_us: at(0.9),
            p99_us: at(0.99),
            p99_9_us: at(0.999),
            max_us: sorted.last().map(|ns| us(*ns)),
            bands: bands(&sorted),
        })
    }

    /// The throughput of each unit, from the beginning of its first command to the end of its last.
    fn units(&self, channels: u32, pus: u32) -> Vec<Vec<Option<f64>>> {
        let mut used: BTreeMap<Unit, (u64, Time, Time)> = BTreeMap::new();
        for sample in self.samples.iter().filter(|sample| !sample.failed) {
            let begun = Time::from_ns(sample.ended.ns() - sample.latency.ns());
            let (bytes, first, last) = used.entry(sample.unit).or_insert((0, begun, sample.ended));
            *bytes += sample.bytes;
            (*first, *last) = ((*first).min(begun), (*last).max(sample.ended));
        }
        let of = |channel, pu| {
            let (bytes, first, last) = used.get(&Unit { channel, pu })?;
            rate(*bytes, last.since(*first))
        };
        (0..channels).map(|channel| (0..pus).map(|pu| of(channel, pu)).collect()).collect()
    }
}

/// Bands of sorted latencies.
fn bands(sorted: &[u64]) -> Vec<Band> {
    let mut bands: Vec<(u64, u64, u64)> = Vec::new();
    for ns in sorted {
        let step = ns / 1_000 / STEP_US;
        match bands.last_mut() {
            Some((_, last, count)) if step <= *last + 1 => (*last, *count) = (step, *count + 1),
            _ => bands.push((step, step, 1)),
        }
    }
    let band = |(first, last, count): (u64, u64, u64)| Band {
        from_us: first * STEP_US,
        to_us: (last + 1) * STEP_US,
        share: count as f64 / sorted.len() as f64,
    };
    bands.into_iter().map(band).collect()
}

/// Fills in the scaling of runs of the same group and mix.
pub fn scale(reports: &mut [Report]) {
    let mut firsts: BTreeMap<(String, String), Option<f64>> = BTreeMap::new();
    for report in reports {
        let key = (report.group.clone(), report.mix.clone());
        let first = *firsts.entry(key).or_insert(report.mb_s);
        report.scaling = scaling(report.mb_s, first);
    }
}

/// There is none of a group whose first run has moved nothing.
fn scaling(own: Option<f64>, first: Option<f64>) -> Option<f64> {
    own.zip(first.filter(|first| *first > 0.0)).map(|(own, first)| own / first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(latencies_us: &[u64]) -> Outcome {
        let mut at = Time::from_ns(0);
        let sample = |us: &u64| {
            at = at + Span::from_us(*us);
            let unit = Unit { channel: 0, pu: 0 };
            Sample { kind: Kind::Write, unit, ended: at, latency: Span::from_us(*us), bytes: 4_000, failed: *us == 7 }
        };
        let samples = latencies_us.iter().map(sample).collect();
        Outcome { means: Means::Vector, begun: Time::from_ns(0), ended: at, samples }
    }

    #[test]
    fn a_run_scales_with_one_that_has_moved_something() {
        assert_eq!(scaling(Some(60.0), Some(20.0)), Some(3.0));
        assert_eq!([scaling(Some(0.0), Some(0.0)), scaling(Some(60.0), None), scaling(None, Some(20.0))], [None; 3]);
    }

    #[test]
    fn figures_are_those_of_commands_that_did_not_fail() {
        let outcome = outcome(&[1_150, 2_748, 7, 1_150, 2_748, 1_255]);
        let latency = outcome.latency(Kind::Write, outcome.ended.since(outcome.begun)).unwrap();
        assert_eq!((latency.count, latency.failed), (6, 1));
        assert_eq!((latency.p50_us, latency.max_us, latency.min_us), (Some(1_255.0), Some(2_748.0), Some(1_150.0)));
        let bands: Vec<(u64, u64)> = latency.bands.iter().map(|band| (band.from_us, band.to_us)).collect();
        assert_eq!(bands, [(1_100, 1_300), (2_700, 2_800)]);
        assert!((latency.bands[0].share - 0.6).abs() < 1e-9);
        assert_eq!(outcome.latency(Kind::Read, Span::from_s(1)), None);
        let units = outcome.units(1, 2);
        assert!(units[0][1].is_none() && (units[0][0].unwrap() - 20_000.0 / 9_058e-6 / 1e6).abs() < 1e-6, "{units:?}");
    }
}
