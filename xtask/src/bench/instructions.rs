//! Instructions of a command: callgrind counts two runs of different lengths; the difference of the counts is divided by
//! that of the lengths. The same program gives the same number on any machine, whatever else runs.
//!
//! The total is also split by stage: the folder or file of an instruction's source line. Instructions of
//! the standard library count for the line of the project before them in the same function.
//!
//! Left out: cache misses of a command, which show in time only.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context as _;
use serde_json::{Value, json};

use super::subject::Subject;
use super::suite::{Figure, Measured};
use crate::run::{output, target};
use crate::say;

/// 4 KiB, 32 at a time, on a drive small enough to be set up under callgrind, which keeps the 64 dies of a large one.
const LOAD: &[&str] = &[
    "--drive",
    "default",
    "--set",
    "capacity=2GiB",
    "--set",
    "geometry.channels=8",
    "--set",
    "geometry.dies_per_channel=8",
    "--set",
    "geometry.pages_per_block=48",
    "--bs",
    "4k",
    "--iodepth",
    "32",
];

/// A load, by name, with the numbers of requests of its two runs.
struct Load {
    figure: &'static str,
    words: &'static [&'static str],
    requests: (u32, u32),
    aim: &'static str,
}

const LOADS: [Load; 2] = [
    Load {
        figure: "instructions a read",
        words: &["--rw", "randread", "--precondition", "full"],
        requests: (10_000, 30_000),
        aim: "at most 2,800",
    },
    Load {
        figure: "instructions an overwrite",
        words: &["--rw", "randwrite", "--precondition", "steady"],
        requests: (20_000, 60_000),
        aim: "at most 6,650",
    },
];

/// Stages, and the beginnings of the paths of their sources.
const STAGES: [(&str, &[&str]); 11] = [
    ("host: requests and records", &["lab/", "sim/src/rng", "sim/src/histogram", "sim/src/slots"]),
    ("layers of the host", &["host/", "layers/"]),
    ("transport", &["transport/"]),
    ("queue pair", &["drive/src/ring", "drive/src/queue", "drive/src/io", "drive/src/mem", "wire/"]),
    ("host link", &["device/controller/src/link", "sim/src/units"]),
    ("controller: fetch, parse, serve, post", &["device/controller/src/"]),
    ("FTL", &["device/ftl/"]),
    ("flash", &["device/media/"]),
    ("resources and waits", &["sim/src/resource", "sim/src/account", "sim/src/credits", "drive/src/breakdown"]),
    ("events, tasks, workers", &["sim/src/"]),
    ("rest", &[""]),
];

/// Instructions by stage.
pub(super) type Counts = BTreeMap<&'static str, f64>;

/// Reads and overwrites.
pub(crate) fn instructions(subject: &Subject) -> Measured {
    if !has_valgrind() {
        return Ok(None);
    }
    let (mut figures, mut runs) = (Vec::new(), Vec::new());
    for load in &LOADS {
        let (short, long) = load.requests;
        let words = [LOAD, load.words].concat();
        let ((_, before), (_, after)) = (count(subject, &words, short)?, count(subject, &words, long)?);
        let stages = difference(&before, &after, long - short);
        let value = stages.values().sum();
        figures.push(Figure { name: load.figure, value, aim: load.aim, more_is_better: false });
        runs.push(json!({"load": load.words, "requests": [short, long], "stages": stages}));
    }
    Ok(Some((figures, json!({"load": LOAD, "runs": runs}))))
}

/// Whether valgrind is installed; prints a line if it is not.
pub(super) fn has_valgrind() -> bool {
    let has = Command::new("valgrind").arg("--version").stdout(Stdio::null()).status().is_ok();
    if !has {
        say::line("valgrind is not installed: left out");
    }
    has
}

/// The program under callgrind, with the file for its counts.
pub(super) fn callgrind(subject: &Subject) -> (Command, PathBuf) {
    let file = target().join("bench/callgrind.out");
    let mut command = Command::new("valgrind");
    command.args(["--quiet", "--tool=callgrind"]).arg(format!("--callgrind-out-file={}", file.display()));
    command.arg(subject.program());
    (command, file)
}

/// Instructions of each request, from the counts of two runs; the second has `requests` more.
pub(super) fn difference(before: &Counts, after: &Counts, requests: u32) -> Counts {
    let of = |counts: &Counts, stage| counts.get(stage).copied().unwrap_or(0.0);
    STAGES.iter().map(|(stage, _)| (*stage, (of(after, stage) - of(before, stage)) / f64::from(requests))).collect()
}

/// Runs a simulation of this many requests under callgrind: its report, and the counts.
pub(super) fn count(subject: &Subject, words: &[&str], requests: u32) -> anyhow::Result<(Value, Counts)> {
    let (mut command, file) = callgrind(subject);
    command.args(["sim", "--json"]).args(words);
    let report: Value = serde_json::from_str(&output(command.args(["--io-count", &requests.to_string()]))?)?;
    report.pointer("/requests").context("the report has no requests")?;
    Ok((report, counts_in(&file)?))
}

/// Reads a file of callgrind.
pub(super) fn counts_in(file: &Path) -> anyhow::Result<Counts> {
    Ok(by_stage(&std::fs::read_to_string(file).with_context(|| format!("{}", file.display()))?))
}

/// Sums the costs in a file of callgrind, in the format of callgrind's manual.
fn by_stage(file: &str) -> Counts {
    let (mut names, mut stage) = (BTreeMap::new(), "rest");
    let (mut counts, mut is_call) = (Counts::new(), false);
    for line in file.lines() {
        if let Some(name) = line.strip_prefix("fl=") {
            // The file of a function.
            stage = stage_of(full_name(&mut names, name)).unwrap_or("rest");
        } else if let Some(name) = ["fi=", "fe="].iter().find_map(|key| line.strip_prefix(key)) {
            // The file of an inlined function.
            stage = stage_of(full_name(&mut names, name)).unwrap_or(stage);
        } else if let Some(name) = ["cfi=", "cfl="].iter().find_map(|key| line.strip_prefix(key)) {
            full_name(&mut names, name);
        } else if line.starts_with("calls=") {
            // The next line has the cost of the called function, which is counted there.
            is_call = true;
        } else if line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) {
            let cost = line.split(' ').nth(1).and_then(|cost| cost.parse::<f64>().ok());
            if !std::mem::take(&mut is_call) {
                *counts.entry(stage).or_default() += cost.unwrap_or(0.0);
            }
        }
    }
    counts
}

/// A name is given with its number once, and by its number from then on.
fn full_name<'a>(names: &'a mut BTreeMap<String, String>, name: &str) -> &'a str {
    let (number, name) = name.split_once(' ').unwrap_or((name, ""));
    let known = names.entry(number.to_owned()).or_default();
    if !name.is_empty() {
        *known = name.to_owned();
    }
    known
}

/// The stage of a source of the project.
fn stage_of(path: &str) -> Option<&'static str> {
    let folders = ["lab/", "host/", "layers/", "transport/", "drive/src/", "wire/", "device/", "sim/src/"];
    // From the workspace's root on: the last of the folders that has a crate's sources.
    let from = folders.iter().filter_map(|folder| path.rfind(&format!("/{folder}"))).min()?;
    let path = &path[from + 1..];
    let is_ours = Path::new(path).extension().is_some_and(|ending| ending == "rs") && !path.contains("/.cargo/");
    let stage = || STAGES.iter().find(|(_, begins)| begins.iter().any(|begin| path.starts_with(begin)));
    is_ours.then(stage).flatten().map(|(stage, _)| *stage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_count_for_the_stage_of_their_line_and_calls_not_at_all() {
        let file = "fl=(1) /tree/sim/src/wheel.rs\nfn=(1) pop\n10 5\nfi=(2) /rustc/1/library/core/src/option.rs\n+3 2\n\
                    fe=(3) /tree/device/ftl/page/src/read.rs\n7 11\ncfi=(4) /tree/sim/src/resource.rs\ncfn=(2) ask\n\
                    calls=1 4\n* 100\nfl=(4)\nfn=(2)\n-2 9\n";
        let counts = by_stage(file);
        assert_eq!(counts["events, tasks, workers"], 7.0);
        assert_eq!((counts["FTL"], counts["resources and waits"]), (11.0, 9.0));
        assert_eq!(counts.values().sum::<f64>(), 27.0);
    }

    #[test]
    fn every_stage_has_sources_of_its_own() {
        let stage = |path: &str| stage_of(&format!("/tree/{path}")).unwrap_or("none");
        assert_eq!(stage("device/controller/src/link.rs"), "host link");
        assert_eq!(stage("device/controller/src/commands/read.rs"), "controller: fetch, parse, serve, post");
        assert_eq!(stage("drive/src/breakdown.rs"), "resources and waits");
        assert_eq!(stage("sim/src/executor.rs"), "events, tasks, workers");
        assert_eq!(stage("lab/workload/src/job.rs"), "host: requests and records");
        assert_eq!(stage("layers/array/src/read.rs"), "layers of the host");
        assert_eq!(stage_of("/rustc/abc/library/core/src/mem/mod.rs"), None);
    }
}
