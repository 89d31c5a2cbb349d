//! Latency and throughput over time. A request counts in the interval in which it completed.

use std::collections::BTreeMap;

use nandscape_drive::percentile;
use nandscape_lab_workload::{Direction, Served};
use nandscape_sim::{Histogram, Span, Time};
use serde::Serialize;

use super::intervals::{Cell, Intervals};

/// The length of an interval of a short run.
const FIRST: Span = Span::from_us(1);

/// Latency and throughput by interval.
#[derive(Clone, Debug, Serialize)]
pub struct Series {
    /// How long an interval is; the last may be cut short by the end.
    pub interval_s: f64,
    /// When each begins, from the beginning of the measured phase.
    pub t_s: Vec<f64>,
    /// By direction, those that occur.
    pub by: BTreeMap<&'static str, SeriesOf>,
}

/// The requests of one direction by the interval in which they completed.
#[derive(Clone, Default, Debug, Serialize)]
pub struct SeriesOf {
    /// How many.
    pub requests: Vec<u64>,
    /// Requests a second.
    pub iops: Vec<f64>,
    /// Bytes a second.
    pub bytes_per_s: Vec<f64>,
    /// Their mean latency, exact; null without requests.
    pub mean_us: Vec<Option<f64>>,
    /// Median, within 1%; null with fewer requests than a percentile needs, as those that follow.
    pub p50_us: Vec<Option<f64>>,
    /// 99%.
    pub p99_us: Vec<Option<f64>>,
    /// 99.9%.
    pub p99_9_us: Vec<Option<f64>>,
    /// The slowest, exact; null without requests.
    pub max_us: Vec<Option<f64>>,
}

#[derive(Default)]
struct Tally {
    /// Made when the first request comes.
    latency: Option<Box<Histogram>>,
    bytes: u64,
}

#[derive(Default)]
struct Interval([Tally; Direction::ALL.len()]);

impl Cell for Interval {
    fn merge(&mut self, next: Interval) {
        for (mine, theirs) in self.0.iter_mut().zip(next.0) {
            mine.bytes += theirs.bytes;
            match (&mut mine.latency, theirs.latency) {
                (Some(mine), Some(theirs)) => mine.merge(&theirs),
                (mine, theirs) => *mine = mine.take().or(theirs),
            }
        }
    }
}

pub(super) struct Recorder(Intervals<Interval>);

impl Recorder {
    pub(super) fn new(begun: Time) -> Recorder {
        Recorder(Intervals::new(begun, FIRST))
    }

    pub(super) fn served(&mut self, request: &Served<'_>) {
        if !request.completion.status.is_success() {
            return;
        }
        let interval = self.0.at(request.completed);
        for direction in request.direction.counted_as() {
            let tally = &mut interval.0[direction as usize];
            tally.bytes += request.bytes;
            let latency = tally.latency.get_or_insert_with(|| Box::new(Histogram::coarse()));
            latency.record(request.completed - request.submitted);
        }
    }

    pub(super) fn finish(&self, ended: Time) -> Series {
        let interval_s = self.0.width().as_s();
        let mut by: BTreeMap<&'static str, SeriesOf> = BTreeMap::new();
        for direction in Direction::ALL {
            let seen = |(interval, _): (&Interval, Span)| interval.0[direction as usize].latency.is_some();
            if self.0.until(ended).any(seen) {
                let series = by.entry(direction.name()).or_default();
                self.0.until(ended).for_each(|(interval, length)| {
                    series.push(&interval.0[direction as usize], length.as_s());
                });
            }
        }
        let t_s = self.0.until(ended).zip(0..).map(|(_, index)| f64::from(index) * interval_s).collect();
        Series { interval_s, t_s, by }
    }
}

impl SeriesOf {
    fn push(&mut self, tally: &Tally, seconds: f64) {
        let rate = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
        let latency = tally.latency.as_deref();
        let count = latency.map_or(0, Histogram::count);
        let quantile = |quantile: f64| latency.and_then(|latency| percentile(latency, latency.count(), quantile));
        self.requests.push(count);
        self.iops.push(rate(count));
        self.bytes_per_s.push(rate(tally.bytes));
        self.mean_us.push(latency.map(|latency| latency.mean_ns() / 1e3));
        self.p50_us.push(quantile(0.5));
        self.p99_us.push(quantile(0.99));
        self.p99_9_us.push(quantile(0.999));
        self.max_us.push(latency.map(|latency| latency.max().as_us()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_drive::Completion;

    /// Ten reads a microsecond for 400 us. The latency of each, in nanoseconds, is its time of issue since the
    /// beginning.
    #[test]
    fn requests_count_where_they_complete() {
        let begun = Time::from_ns(7);
        let mut recorder = Recorder::new(begun);
        let completion = Completion::of(nandscape_wire_nvme::Status::SUCCESS);
        for read in 1..=4_000u64 {
            let completed = Time::from_ns(7 + read * 100 - 1);
            let direction = Direction::Read;
            let served =
                Served { direction, bytes: 4_096, offset: 0, submitted: begun, completed, completion: &completion };
            recorder.served(&served);
        }
        let series = recorder.finish(Time::from_ns(7 + 400_000));
        assert_eq!((series.interval_s, series.t_s.len()), (2e-6, 200));
        let reads = &series.by["read"];
        assert!(series.by.len() == 1 && reads.requests.iter().all(|count| *count == 20), "{reads:?}");
        assert!(reads.iops.iter().all(|iops| (iops - 1e7).abs() < 1.0), "{reads:?}");
        assert!(reads.bytes_per_s.iter().all(|rate| (rate - 4.096e10).abs() < 1e4), "{reads:?}");
        for (index, begin_us) in (0..200).map(|index| (index, 2.0 * index as f64)) {
            let close = |figure: &[Option<f64>], us: f64| {
                let got = figure[index].unwrap();
                assert!((got - us).abs() <= 0.01 * us + 0.001, "interval {index}: {got}, not {us}");
            };
            // 99, 199, ... 1999 ns after its beginning.
            close(&reads.mean_us, begin_us + 1.049);
            close(&reads.p50_us, begin_us + 0.999);
            assert!((reads.max_us[index].unwrap() - begin_us - 1.999).abs() < 1e-9, "interval {index}");
        }
    }
}
