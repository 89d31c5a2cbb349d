//! A point: the published figure, the run that measures it, and the rule that judges it.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use serde_json::Value;

/// Tolerance of a judged point, as a share of the published figure.
const JUDGED: f64 = 0.10;
/// Tolerance of a point to which the profile was fitted.
const FITTED: f64 = 0.005;
/// Tolerance of a sum of steps.
const SUMMED: f64 = 0.01;

/// The points of a profile.
pub(crate) struct Table {
    /// The profile.
    pub(crate) drive: &'static str,
    /// Changes for all of its runs, as command-line options.
    pub(crate) changes: &'static str,
    /// The points.
    pub(crate) points: &'static [Point],
}

/// A point.
pub(crate) struct Point {
    /// The name of the point.
    pub(crate) what: &'static str,
    /// The published value, in the figure's unit.
    pub(crate) published: f64,
    /// The figure of the report that is compared with it.
    pub(crate) figure: Figure,
    /// The rule for the point.
    pub(crate) role: Role,
    /// Command-line options of the run.
    pub(crate) words: &'static str,
}

/// A figure of a report.
#[derive(Copy, Clone)]
pub(crate) enum Figure {
    /// A latency in microseconds, at this path below `/latency_us`.
    Us(&'static str),
    /// A time of an operation between requests in milliseconds, at this path below `/operations_us`.
    Ms(&'static str),
    /// Requests a second, in thousands.
    Kiops,
    /// Megabytes (10^6 bytes) a second.
    MBps,
}

/// The rule for a point.
#[derive(Copy, Clone)]
pub(crate) enum Role {
    /// The profile was fitted to it.
    Fitted,
    /// Within 10%.
    Judged,
    /// The sum of the published times of its steps: within 1%.
    Sum,
    /// Not within 10%, and why.
    Missed(&'static str),
    /// Shown for information, and why.
    Shown(&'static str),
}

/// A point with the measured value.
pub(crate) struct Measured {
    pub(crate) point: &'static Point,
    pub(crate) value: f64,
}

impl Table {
    /// Runs all points; points with the same options share a run.
    pub(crate) fn measure(&self) -> Vec<Measured> {
        let mut reports = BTreeMap::new();
        let mut measure = |point: &'static Point| {
            let report = reports.entry(point.words).or_insert_with(|| self.run(point.words));
            Measured { point, value: point.figure.of(report) }
        };
        self.points.iter().map(&mut measure).collect()
    }

    fn run(&self, words: &str) -> Value {
        let output = Command::new(env!("CARGO_BIN_EXE_nandscape"))
            .args(["sim", "--json", "--drive", self.drive])
            .args(self.changes.split_whitespace())
            .args(words.split_whitespace())
            .stdin(Stdio::null())
            .output()
            .expect("the program starts");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {words}\n{error}", self.drive);
        serde_json::from_slice(&output.stdout).expect("one JSON object")
    }
}

impl Figure {
    fn of(self, report: &Value) -> f64 {
        let number = |path: &str| report.pointer(path).and_then(Value::as_f64).expect("a number");
        match self {
            Figure::Us(path) => number(&format!("/latency_us/{path}")),
            Figure::Ms(path) => number(&format!("/operations_us/{path}")) / 1e3,
            Figure::Kiops => number("/iops") / 1e3,
            Figure::MBps => number("/bytes_per_s") / 1e6,
        }
    }

    /// Its unit.
    pub(crate) fn unit(self) -> &'static str {
        match self {
            Figure::Us(_) => "us",
            Figure::Ms(_) => "ms",
            Figure::Kiops => "K/s",
            Figure::MBps => "MB/s",
        }
    }
}

impl Measured {
    /// The deviation from the published value, as a share of it.
    pub(crate) fn error(&self) -> f64 {
        self.value / self.point.published - 1.0
    }

    /// Describes the point's violation of its rule, if any. A declared miss that now holds is a violation.
    pub(crate) fn wrong(&self) -> Option<String> {
        let (off, what) = (self.error().abs(), self.point.what);
        let beyond =
            |limit: f64| (off > limit).then(|| format!("{what}: {:.2}, {:+.1}%", self.value, 100.0 * self.error()));
        match self.point.role {
            Role::Fitted => beyond(FITTED),
            Role::Judged => beyond(JUDGED),
            Role::Sum => beyond(SUMMED),
            Role::Missed(_) => (off <= JUDGED).then(|| format!("{what}: no miss any more, {:.2}", self.value)),
            Role::Shown(_) => None,
        }
    }
}
