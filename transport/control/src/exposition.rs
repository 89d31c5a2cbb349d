//! The figures of several reactors as OpenMetrics text. Names carry their units, the base units of the format: seconds
//! and bytes.

use std::collections::BTreeSet;
use std::fmt;
use std::iter::{Once, once};
use std::sync::Arc;

use nandscape_sim::{Histogram, Span, Time};
use nandscape_transport_reactor::handle::{ExportFigures, Figures, Tally};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, EncodeMetric, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

use crate::process::cpu_s;
use crate::statistics::{quantile, timing};

/// The quantiles given, as labels and as shares.
const QUANTILES: [(&str, f64); 6] =
    [("0.5", 0.5), ("0.9", 0.9), ("0.99", 0.99), ("0.999", 0.999), ("0.9999", 0.9999), ("1", 1.0)];

/// Labels of a sample: names and values.
type Labels<'a> = Vec<(&'static str, &'a str)>;

/// The figures of several reactors as OpenMetrics text.
pub fn exposition(figures: Vec<Arc<Figures>>) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Snapshot(figures)));
    let mut page = String::new();
    text::encode(&mut page, &registry).expect("a string takes everything");
    page
}

struct Snapshot(Vec<Arc<Figures>>);

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").finish_non_exhaustive()
    }
}

impl Collector for Snapshot {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut page = Page(encoder);
        let drives: Vec<&ExportFigures> = self.0.iter().flat_map(|one| &one.exports).collect();
        requests(&mut page, &drives)?;
        counters(&mut page, &drives)?;
        parts(&mut page, &drives)?;
        reactors(&mut page, &self.0)
    }
}

/// The commands of clients.
fn requests(page: &mut Page<'_>, drives: &[&ExportFigures]) -> fmt::Result {
    let tallies = || {
        drives.iter().flat_map(|drive| {
            [("read", &drive.reads), ("write", &drive.writes), ("other", &drive.others)]
                .map(|(op, tally)| (vec![("drive", &*drive.name), ("op", op)], tally))
        })
    };
    let count = |value: fn(&Tally) -> u64| tallies().map(move |(labels, tally)| (labels, value(tally)));
    page.counter("nandscape_requests", "Commands that succeeded", None, count(|tally| tally.latency.count()))?;
    page.counter("nandscape_errors", "Commands that failed", None, count(|tally| tally.errors))?;
    let of_media = drives.iter().map(|drive| (vec![("drive", &*drive.name)], drive.media_errors));
    let help = "Commands that failed because data could not be written or read back";
    page.counter("nandscape_media_errors", help, None, of_media)?;
    let help = "Bytes of the commands that succeeded";
    page.counter("nandscape", help, Some(&Unit::Bytes), count(|tally| tally.bytes))?;
    let sums = tallies().map(|(labels, tally)| (labels, tally.latency.sum_ns() as f64 / 1e9));
    let help = "Sum of the latencies, in drive time, of the commands that succeeded";
    page.counter("nandscape_latency_sum", help, Some(&Unit::Seconds), sums)?;
    let quantiles = tallies().flat_map(|(labels, tally)| quantiles(&labels, &tally.latency));
    let help =
        "Latencies since the drive began, in drive time, of the commands that succeeded; quantile 1 is the maximum";
    page.gauge("nandscape_latency", help, Some(&Unit::Seconds), quantiles)?;
    among_them(page, drives, ("nandscape_flush", "Flushes, which are among the others,"), |drive| &drive.flushes)?;
    let name = ("nandscape_fua_write", "Writes with Force Unit Access, which are among the writes,");
    among_them(page, drives, name, |drive| &drive.forced_writes)
}

/// Commands of one kind that are also counted among others. They are in separate families, so that sums over `op`
/// count each command once. A drive without such commands has no sample.
fn among_them(
    page: &mut Page<'_>,
    drives: &[&ExportFigures],
    (name, words): (&str, &str),
    of: fn(&ExportFigures) -> &Tally,
) -> fmt::Result {
    let tallies = || {
        let all = drives.iter().map(|drive| (vec![("drive", &*drive.name)], of(drive)));
        all.filter(|(_, tally)| !tally.is_empty())
    };
    let count = |value: fn(&Tally) -> u64| tallies().map(move |(labels, tally)| (labels, value(tally)));
    let help = format!("{words} that succeeded");
    page.counter(&format!("{name}_requests"), &help, None, count(|tally| tally.latency.count()))?;
    page.counter(&format!("{name}_errors"), &format!("{words} that failed"), None, count(|tally| tally.errors))?;
    let sums = tallies().map(|(labels, tally)| (labels, tally.latency.sum_ns() as f64 / 1e9));
    let help = format!("{words} that succeeded: sum of their latencies in drive time");
    page.counter(&format!("{name}_latency_sum"), &help, Some(&Unit::Seconds), sums)?;
    let quantiles = tallies().flat_map(|(labels, tally)| quantiles(&labels, &tally.latency));
    let help =
        format!("{words} that succeeded: latencies since the drive began, in drive time; quantile 1 is the maximum");
    page.gauge(&format!("{name}_latency"), &help, Some(&Unit::Seconds), quantiles)
}

/// The drives' own counters. Names of monotonic ones end in `_total`.
fn counters(page: &mut Page<'_>, drives: &[&ExportFigures]) -> fmt::Result {
    let names: BTreeSet<&str> = drives.iter().flat_map(|drive| drive.counters.keys().copied()).collect();
    for name in names {
        let samples = drives.iter().filter_map(|drive| {
            let value = drive.counters.get(name)?;
            Some((vec![("drive", &*drive.name)], *value))
        });
        match name.strip_suffix("_total") {
            Some(name) => {
                let help = "Counted by the drive itself; it only grows";
                page.counter(&format!("nandscape_drive_{name}"), help, None, samples)?;
            }
            None => page.gauge(&format!("nandscape_drive_{name}"), "As the drive has it now", None, samples)?,
        }
    }
    Ok(())
}

/// The counters of the parts of drives, as [`counters`].
fn parts(page: &mut Page<'_>, drives: &[&ExportFigures]) -> fmt::Result {
    let parts = || drives.iter().flat_map(|drive| drive.parts.iter().map(move |part| (&*drive.name, part)));
    let names: BTreeSet<&str> = parts().flat_map(|(_, (_, counters))| counters.keys().copied()).collect();
    for name in names {
        let samples = parts().filter_map(|(drive, (part, counters))| {
            let value = counters.get(name)?;
            Some((vec![("drive", drive), ("part", &**part)], *value))
        });
        match name.strip_suffix("_total") {
            Some(name) => {
                let help = "Counted by the part's FTL; it only grows";
                page.counter(&format!("nandscape_part_{name}"), help, None, samples)?;
            }
            None => page.gauge(&format!("nandscape_part_{name}"), "As the part's FTL has it now", None, samples)?,
        }
    }
    Ok(())
}

/// The timing of the reactors.
fn reactors(page: &mut Page<'_>, figures: &[Arc<Figures>]) -> fmt::Result {
    let timing = timing(figures);
    let help = "From the model's completion of a command to its completion being on its way to the client";
    let lags = quantiles(&[], &timing.release_lag);
    page.gauge("nandscape_release_lag", help, Some(&Unit::Seconds), lags)?;
    page.counter("nandscape_releases", "Completions sent to clients", None, one(timing.release_lag.count()))?;
    let help = "Between looking for arrivals and looking again, while awake";
    page.gauge("nandscape_poll_gap", help, Some(&Unit::Seconds), quantiles(&[], &timing.poll_gap))?;
    page.counter("nandscape_polls", "Looks for arrivals while awake", None, one(timing.poll_gap.count()))?;
    let help = "How far a model was behind the wall clock, at most since it began";
    page.gauge("nandscape_behind", help, Some(&Unit::Seconds), one(seconds(timing.behind_max)))?;
    page.counter("nandscape_turns", "Turns of the loops", None, one(timing.turns))?;
    page.counter("nandscape_sleeps", "How often the loops slept", None, one(timing.sleeps))?;
    let sum = |value: fn(&Figures) -> usize| one(figures.iter().map(|one| value(one)).sum::<usize>());
    let help = "Processor time of the process, of all its threads";
    page.counter("nandscape_process_cpu", help, Some(&Unit::Seconds), one(cpu_s()))?;
    page.gauge("nandscape_clients", "Clients connected to drives", None, sum(|one| one.clients))?;
    page.gauge("nandscape_outstanding_requests", "Commands in the drives", None, sum(|one| one.outstanding))?;
    let now = figures.iter().map(|one| one.now).max().unwrap_or(Time::ZERO);
    let time = one(seconds(now.since(Time::ZERO)));
    page.gauge("nandscape_time", "Drive time since the drives began", Some(&Unit::Seconds), time)
}

/// The only sample of its family.
fn one<N>(value: N) -> Once<(Labels<'static>, N)> {
    once((Labels::new(), value))
}

/// A sample a quantile; none without values.
fn quantiles<'a>(labels: &[(&'static str, &'a str)], histogram: &Histogram) -> Vec<(Labels<'a>, f64)> {
    let sample = |(label, share)| {
        let mut labels = labels.to_vec();
        labels.push(("quantile", label));
        Some((labels, seconds(quantile(histogram, share)?)))
    };
    QUANTILES.into_iter().filter_map(sample).collect()
}

fn seconds(span: Span) -> f64 {
    span.ns() as f64 / 1e9
}

/// Where metrics are written, family by family.
struct Page<'a>(DescriptorEncoder<'a>);

impl Page<'_> {
    fn counter<'v, N: EncodeCounterValue>(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<&Unit>,
        samples: impl IntoIterator<Item = (Labels<'v>, N)>,
    ) -> fmt::Result {
        self.family(name, help, unit, samples, ConstCounter::new)
    }

    fn gauge<'v, N: EncodeGaugeValue>(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<&Unit>,
        samples: impl IntoIterator<Item = (Labels<'v>, N)>,
    ) -> fmt::Result {
        self.family(name, help, unit, samples, ConstGauge::new)
    }

    /// Writes a family, if it has a sample. One without labels is alone in its family.
    fn family<'v, N, M: EncodeMetric>(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<&Unit>,
        samples: impl IntoIterator<Item = (Labels<'v>, N)>,
        metric: fn(N) -> M,
    ) -> fmt::Result {
        let mut samples = samples.into_iter().map(|(labels, value)| (labels, metric(value))).peekable();
        let Some((_, first)) = samples.peek() else { return Ok(()) };
        let kind: MetricType = first.metric_type();
        let mut encoder = self.0.encode_descriptor(name, help, unit, kind)?;
        for (labels, metric) in samples {
            if labels.is_empty() {
                return metric.encode(encoder);
            }
            metric.encode(encoder.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
