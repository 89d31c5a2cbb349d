//! A point: what was published, the run that is held against it, and the rule.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use serde_json::Value;

/// How far from what was published a judged point may be.
const JUDGED: f64 = 0.10;
/// How far a point may be to which the profile was fitted.
const FITTED: f64 = 0.005;
/// How far from a sum of steps.
const SUMMED: f64 = 0.01;

/// The points of a profile.
pub(crate) struct Table {
    /// The profile.
    pub(crate) drive: &'static str,
    /// What is changed for all of its runs, as words of the command line.
    pub(crate) changes: &'static str,
    /// The points.
    pub(crate) points: &'static [Point],
}

/// A point.
pub(crate) struct Point {
    /// What is measured.
    pub(crate) what: &'static str,
    /// What was published, in the figure's unit.
    pub(crate) published: f64,
    /// What of a report is held against it.
    pub(crate) figure: Figure,
    /// What it must be.
    pub(crate) role: Role,
    /// The words of the command line.
    pub(crate) words: &'static str,
}

/// A figure of a report.
#[derive(Copy, Clone)]
pub(crate) enum Figure {
    /// A latency in microseconds: `/latency_us` and this.
    Us(&'static str),
    /// Requests a second, in thousands.
    Kiops,
    /// Megabytes (10^6 bytes) a second.
    MBps,
}

/// What a point must be.
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
    /// No more than shown, and why.
    Shown(&'static str),
}

/// A point with what the program measures.
pub(crate) struct Measured {
    pub(crate) point: &'static Point,
    pub(crate) value: f64,
}

impl Table {
    /// Runs all of them, those with the same words once.
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
            Figure::Kiops => number("/iops") / 1e3,
            Figure::MBps => number("/bytes_per_s") / 1e6,
        }
    }

    /// Its unit.
    pub(crate) fn unit(self) -> &'static str {
        match self {
            Figure::Us(_) => "us",
            Figure::Kiops => "K/s",
            Figure::MBps => "MB/s",
        }
    }
}

impl Measured {
    /// How far from what was published, as a share of it.
    pub(crate) fn error(&self) -> f64 {
        self.value / self.point.published - 1.0
    }

    /// What is wrong with it, if anything is. A miss that is none any more is.
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
