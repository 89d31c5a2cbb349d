//! A trace described: mix, sizes, rates, gaps between arrivals, pages touched, sequentiality, disks.

use std::collections::BTreeMap;

use nandscape_lab_workload::Direction;
use nandscape_sim::{Histogram, Span};
use roaring::RoaringTreemap;
use serde::Serialize;

use crate::error::TraceError;
use crate::record::Record;
use crate::trace::Trace;

/// The page in which the footprint is counted.
const PAGE: u64 = 4_096;
/// The interval over which the peak is taken.
const SECOND_NS: u64 = 1_000_000_000;
/// The most disks listed individually.
const DISKS_TOLD: usize = 64;

/// A trace described.
#[derive(Clone, Debug, Serialize)]
pub struct Info {
    /// The version of this format.
    pub schema: u32,
    /// The file.
    pub trace: String,
    /// Its format.
    pub format: &'static str,
    /// Malformed lines, left out.
    pub malformed_lines: u64,
    /// Requests that followed a later one, and were sorted.
    pub late_requests: u64,
    /// From the first arrival to the last, in seconds.
    pub duration_s: f64,
    /// All requests, and by direction.
    pub all: Stream,
    /// By direction, for directions that occur.
    pub by: BTreeMap<&'static str, Stream>,
    /// The end of the highest address used, with disks placed one after another.
    pub span_bytes: u64,
    /// Disks with requests.
    pub disks: u64,
    /// The disks with the most requests, at most 64.
    pub busiest_disks: Vec<Disk>,
}

/// Requests of one kind.
#[derive(Clone, Debug, Serialize)]
pub struct Stream {
    /// Requests.
    pub requests: u64,
    /// Their share of all.
    pub share: f64,
    /// Bytes.
    pub bytes: u64,
    /// Requests a second, from the first to the last of the trace; null if all arrive at once.
    pub rate_mean: Option<f64>,
    /// Requests of the busiest second.
    pub rate_peak: u64,
    /// Bytes of the second with the most bytes.
    pub bytes_peak: u64,
    /// Sizes in bytes; null for flushes, which have none.
    pub size_bytes: Option<Spread>,
    /// The most frequent sizes: bytes and requests.
    pub frequent_sizes: Vec<(u64, u64)>,
    /// Gaps between arrivals, in microseconds; null with less than two requests.
    pub gap_us: Option<Spread>,
    /// Coefficient of variation of the gaps: 1 for Poisson arrivals, more for bursts; null without gaps.
    pub gap_variation: Option<f64>,
    /// Bytes of the pages of 4 KiB touched at least once.
    pub footprint_bytes: u64,
    /// Share of requests that begin at the end of the previous one of the same kind on the same disk.
    pub sequential: f64,
}

/// A distribution.
#[derive(Copy, Clone, Debug, Serialize)]
pub struct Spread {
    /// Exact.
    pub mean: f64,
    /// Exact.
    pub min: f64,
    /// Within 0.1%, like the other percentiles; exact for sizes, unless there are more than 4,096 of them.
    pub p50: f64,
    /// 90%.
    pub p90: f64,
    /// 99%.
    pub p99: f64,
    /// Exact.
    pub max: f64,
}

/// A disk.
#[derive(Clone, Debug, Serialize)]
pub struct Disk {
    /// Its host; empty where the format has none.
    pub host: String,
    /// Its name.
    pub disk: String,
    /// Requests.
    pub requests: u64,
    /// The end of the highest address used.
    pub end_bytes: u64,
}

/// Reads a trace for its description. Its memory grows with the pages touched: some bits to two bytes each.
///
/// # Errors
/// When it can no longer be read.
pub fn describe(trace: &Trace) -> Result<Info, TraceError> {
    let mut all = Gather::default();
    let mut by: BTreeMap<Direction, Gather> = BTreeMap::new();
    for record in trace.records()? {
        let record = record?;
        all.add(&record);
        for way in record.direction.counted_as() {
            by.entry(way).or_default().add(&record);
        }
    }
    let totals = trace.totals();
    let mut disks: Vec<Disk> = trace
        .devices()
        .iter()
        .zip(&totals.devices)
        .filter(|(_, counts)| counts.requests > 0)
        .map(|(device, counts)| Disk {
            host: device.host.clone(),
            disk: device.disk.clone(),
            requests: counts.requests,
            end_bytes: counts.end,
        })
        .collect();
    let (count, span_bytes) =
        (disks.len() as u64, disks.iter().map(|disk| disk.end_bytes).fold(0, u64::saturating_add));
    disks.sort_by_key(|disk| std::cmp::Reverse(disk.requests));
    disks.truncate(DISKS_TOLD);
    let duration_ns = totals.duration_ns();
    let requests = totals.requests();
    Ok(Info {
        schema: 1,
        trace: trace.name(),
        format: trace.format().name(),
        malformed_lines: trace.malformed().count,
        late_requests: trace.late(),
        duration_s: duration_ns as f64 / 1e9,
        by: by.into_iter().map(|(way, gather)| (way.name(), gather.finish(requests, duration_ns))).collect(),
        all: all.finish(requests, duration_ns),
        span_bytes,
        disks: count,
        busiest_disks: disks,
    })
}

/// The figures of one kind while they are collected.
#[derive(Default)]
struct Gather {
    requests: u64,
    bytes: u64,
    sizes: Measure,
    size_counts: BTreeMap<u64, u64>,
    gaps: Measure,
    last_at: u64,
    /// The current second, with its requests and bytes.
    second: u64,
    in_second: (u64, u64),
    peak: (u64, u64),
    /// By device, the pages touched, and the end of the last request.
    devices: Vec<(RoaringTreemap, Option<u64>)>,
    sequential: u64,
}

/// The most sizes counted individually; further ones are in the distribution only.
const SIZES_COUNTED: usize = 4_096;

impl Gather {
    fn add(&mut self, record: &Record) {
        if self.requests > 0 {
            self.gaps.add(record.at - self.last_at);
        }
        self.last_at = record.at;
        self.requests += 1;
        self.bytes += record.bytes;
        let second = record.at / SECOND_NS;
        if second != self.second {
            (self.second, self.in_second) = (second, (0, 0));
        }
        self.in_second = (self.in_second.0 + 1, self.in_second.1 + record.bytes);
        self.peak = (self.peak.0.max(self.in_second.0), self.peak.1.max(self.in_second.1));
        if record.direction != Direction::Flush {
            self.size(record.bytes);
            self.touch(record);
        }
    }

    fn size(&mut self, bytes: u64) {
        self.sizes.add(bytes);
        if let Some(count) = self.size_counts.get_mut(&bytes) {
            *count += 1;
        } else if self.size_counts.len() < SIZES_COUNTED {
            self.size_counts.insert(bytes, 1);
        }
    }

    fn touch(&mut self, record: &Record) {
        let number = record.device as usize;
        if number >= self.devices.len() {
            self.devices.resize_with(number + 1, Default::default);
        }
        let (pages, ended) = &mut self.devices[number];
        let end = record.offset + record.bytes;
        let (first, last) = (record.offset / PAGE, (end - 1) / PAGE);
        match first == last {
            true => pages.insert(first),
            false => pages.insert_range(first..=last) > 0,
        };
        self.sequential += u64::from(ended.replace(end) == Some(record.offset));
    }

    fn finish(self, all: u64, duration_ns: u64) -> Stream {
        let requests = self.requests;
        let mut size_bytes = self.sizes.spread(1.0);
        let mut frequent: Vec<(u64, u64)> = self.size_counts.into_iter().collect();
        // All sizes were counted: percentiles are exact.
        if frequent.len() < SIZES_COUNTED {
            let sized = self.sizes.histogram.count();
            let quantile = |share: f64| exact_quantile(&frequent, sized, share);
            (size_bytes.p50, size_bytes.p90, size_bytes.p99) = (quantile(0.5), quantile(0.9), quantile(0.99));
        }
        frequent.sort_by_key(|(bytes, count)| (std::cmp::Reverse(*count), *bytes));
        frequent.truncate(8);
        let per_s = |count: u64| (duration_ns > 0).then(|| count as f64 * 1e9 / duration_ns as f64);
        Stream {
            requests,
            share: requests as f64 / all.max(1) as f64,
            bytes: self.bytes,
            rate_mean: per_s(requests),
            rate_peak: self.peak.0,
            bytes_peak: self.peak.1,
            size_bytes: (self.sizes.histogram.count() > 0).then_some(size_bytes),
            frequent_sizes: frequent,
            gap_us: (requests > 1).then(|| self.gaps.spread(1e3)),
            gap_variation: self.gaps.variation(),
            footprint_bytes: self.devices.iter().map(|(pages, _)| pages.len() * PAGE).sum(),
            sequential: self.sequential as f64 / requests.max(1) as f64,
        }
    }
}

/// The smallest value with at least this share of all values at or below it; values are sorted and have counts.
fn exact_quantile(counts: &[(u64, u64)], all: u64, share: f64) -> f64 {
    let wanted = ((all as f64 * share).ceil() as u64).max(1);
    let mut seen = 0;
    let found = counts.iter().find(|(_, count)| {
        seen += count;
        seen >= wanted
    });
    found.map_or(0.0, |(value, _)| *value as f64)
}

/// A distribution of whole numbers.
#[derive(Default)]
struct Measure {
    histogram: Histogram,
    min: Option<u64>,
    squares: f64,
}

impl Measure {
    fn add(&mut self, value: u64) {
        self.histogram.record(Span::from_ns(value));
        self.min = Some(self.min.map_or(value, |min| min.min(value)));
        self.squares += value as f64 * value as f64;
    }

    fn spread(&self, unit: f64) -> Spread {
        let quantile = |share: f64| self.histogram.quantile(share).ns() as f64 / unit;
        Spread {
            mean: self.histogram.mean_ns() / unit,
            min: self.min.unwrap_or(0) as f64 / unit,
            p50: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
            max: self.histogram.max().ns() as f64 / unit,
        }
    }

    fn variation(&self) -> Option<f64> {
        let (count, mean) = (self.histogram.count() as f64, self.histogram.mean_ns());
        (count > 0.0 && mean > 0.0).then(|| (self.squares / count - mean * mean).max(0.0).sqrt() / mean)
    }
}
