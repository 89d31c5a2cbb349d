//! The page of the tour: the same load on the same drive under several schemes of garbage collection. It shows first
//! the distributions, then the activity of dies, then the breakdown of the mean.

use minijinja::context;
use nandscape_lab_run::record::{Operations, Timeline};
use nandscape_lab_run::{Details, Report};
use serde_json::{Value, json, to_value};

use crate::bars::{self, Bar};
use crate::format::{count, us_or_dash};
use crate::page;

const SCRIPT: &str = concat!(include_str!("../templates/several.js"), include_str!("../templates/demo.js"));

/// The part of each timeline that is shown, in seconds before and after the slowest read.
const BEFORE_S: f64 = 0.004;
const AFTER_S: f64 = 0.006;
/// The number of channels whose dies are shown.
const CHANNELS: usize = 2;

/// One run of the tour.
pub struct TourRun {
    /// Its name.
    pub label: String,
    /// Describes what a collection blocks.
    pub holds: String,
    /// The command that runs it alone.
    pub command: String,
    /// Its figures.
    pub report: Report,
    /// Its recording.
    pub details: Details,
}

/// The tour.
pub struct Tour {
    /// A description of the load.
    pub load: String,
    /// The result, in two sentences.
    pub seen: [String; 2],
    /// The runs, the ideal first.
    pub runs: Vec<TourRun>,
}

impl Tour {
    /// The page.
    pub fn to_html(&self, command: &str) -> String {
        let data: Vec<Value> = self.runs.iter().map(TourRun::data).collect();
        let rows: Vec<_> = self.runs.iter().map(TourRun::row).collect();
        let timelines: Vec<_> = self
            .runs
            .iter()
            .enumerate()
            .map(|(index, run)| context! { id => format!("dies-{index}"), label => run.label, holds => run.holds })
            .collect();
        let means: Vec<(String, f64, Value)> = self.runs.iter().map(TourRun::mean).collect();
        let bars: Vec<Bar<'_>> =
            means.iter().map(|(name, mean_us, stages)| Bar { name: name.clone(), mean_us: *mean_us, stages }).collect();
        let shown = context! {
            load => self.load, seen => self.seen.each_ref().map(|text| text.replace(" us", " µs")), rows, timelines, command,
            commands => self.runs.iter().map(|run| run.command.as_str()).collect::<Vec<_>>(),
            means => bars::bars(&bars), key => bars::key(&bars),
            waf => self.runs.iter().map(|run| format!("{:.2}", run.report.waf.unwrap_or(0.0))).collect::<Vec<_>>().join(", "),
            seed => self.runs[0].report.seed,
        };
        page::render("demo.html", SCRIPT, &json!({ "runs": data }).to_string(), shown)
    }
}

impl TourRun {
    /// The data of the page's charts.
    fn data(&self) -> Value {
        let Timeline { dies, planes_per_die, slowest, operations, .. } = &self.details.timeline;
        let done = slowest.as_ref().map_or(0.0, |slowest| slowest.submitted_s + slowest.latency_us / 1e6);
        let begun = slowest.as_ref().map_or(0.0, |slowest| slowest.submitted_s);
        let (from, to) = ((begun - BEFORE_S).max(operations.from_s), done + AFTER_S);
        json!({
            "label": self.label,
            "histogram": self.details.histogram.get("read"),
            "latency_us": self.report.latency_us["read"],
            "slowest": slowest,
            "dies": dies,
            "planes_per_die": planes_per_die,
            "lanes": lanes(operations, dies, *planes_per_die, (from, to)),
            "from_s": from,
            "to_s": to,
            "operations": between(operations, from, to),
        })
    }

    fn row(&self) -> minijinja::Value {
        let latency = &self.report.latency_us["read"];
        let figures = [latency.mean, latency.p50, latency.p90, latency.p99, latency.p99_9, latency.p99_99, latency.max];
        let cells = figures.map(us_or_dash);
        let held = self.report.gc.blocked_reads as f64 / (latency.count.max(1)) as f64;
        context! { name => self.label, count => count(latency.count), cells, held => format!("{:.1}%", held * 100.0) }
    }

    fn mean(&self) -> (String, f64, Value) {
        let mean = self.report.latency_us["read"].mean.unwrap_or(0.0);
        (self.label.clone(), mean, to_value(&self.report.breakdown_us["read"]).expect("plain data"))
    }
}

/// The dies of the channel with the most collection time in an interval, and of the next channel.
fn lanes(operations: &Operations, dies: &[String], planes_per_die: u32, (from, to): (f64, f64)) -> Vec<usize> {
    let channel = |die: &str| die.split(" die ").next().unwrap_or_default().to_owned();
    let per_channel = dies.iter().take_while(|die| channel(die) == channel(&dies[0])).count().max(1);
    let channels = dies.len().div_ceil(per_channel);
    let mut busy = vec![0; channels];
    for index in 0..operations.plane.len() {
        let start = operations.from_s + operations.start_ns[index] as f64 / 1e9;
        if operations.kind[index] >= 2 && start >= from && start <= to {
            let die = (operations.plane[index] / planes_per_die) as usize;
            busy[die / per_channel] += operations.duration_ns[index];
        }
    }
    let most = (0..channels).max_by_key(|channel| (busy[*channel], channels - channel)).unwrap_or(0);
    let mut shown: Vec<usize> = (0..CHANNELS.min(channels)).map(|next| (most + next) % channels).collect();
    shown.sort_unstable();
    shown.into_iter().flat_map(|channel| channel * per_channel..((channel + 1) * per_channel).min(dies.len())).collect()
}

/// The operations that overlap an interval.
fn between(operations: &Operations, from: f64, to: f64) -> Operations {
    let mut kept = Operations { from_s: operations.from_s, ..Operations::default() };
    for index in 0..operations.plane.len() {
        let start = operations.from_s + operations.start_ns[index] as f64 / 1e9;
        let end = start + operations.duration_ns[index] as f64 / 1e9;
        if end >= from && start <= to {
            kept.plane.push(operations.plane[index]);
            kept.kind.push(operations.kind[index]);
            kept.start_ns.push(operations.start_ns[index]);
            kept.duration_ns.push(operations.duration_ns[index]);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_channel_that_collects_longest_is_shown_with_the_next() {
        let dies: Vec<String> = (0..6).map(|die| format!("channel {} die {}", die / 2, die % 2)).collect();
        let operations = Operations {
            from_s: 1.0,
            plane: vec![0, 4, 4, 2],
            kind: vec![0, 2, 3, 3],
            start_ns: vec![0, 0, 500, 9_000],
            duration_ns: vec![9_000, 400, 5_000, 90_000],
        };
        // The erase on die 2 begins too late to count.
        assert_eq!(lanes(&operations, &dies, 1, (1.0, 1.000_005)), [0, 1, 4, 5]);
        assert_eq!(lanes(&operations, &dies, 1, (1.0, 1.1)), [2, 3, 4, 5]);
        let kept = between(&operations, 1.000_006, 1.000_008);
        assert_eq!(kept.plane, [0]);
    }
}
