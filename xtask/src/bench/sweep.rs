//! A sweep on two cores against the same on one: wall time, in turn.
//!
//! Left out: sweeps whose points begin in one state, which one core makes while others wait.

use std::process::Command;

use anyhow::{Context as _, ensure};
use serde_json::json;

use super::servers::Folder;
use super::subject::Subject;
use super::suite::{Figure, Measured};
use super::summary::median;
use crate::clock::Moment;
use crate::say;

/// Eight points that take about as long as each other.
const SWEEP: [&str; 13] = [
    "sweep",
    "--set",
    "rw=randrw",
    "--set",
    "capacity=4GiB",
    "--set",
    "precondition=steady",
    "--set",
    "iodepth=32",
    "--set",
    "io_count=500000",
    "--seeds",
    "1-8",
];
/// Turns, each with one core and with two.
const TURNS: usize = 2;

pub(crate) fn two_cores(subject: &Subject) -> Measured {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        say::line("this machine has one core: left out");
        return Ok(None);
    }
    let mut turns = Vec::new();
    for turn in 0..TURNS {
        let mut both = [0.0; 2];
        // Neither is always the first.
        for cores in if turn % 2 == 0 { [1, 2] } else { [2, 1] } {
            both[cores - 1] = seconds(subject, cores)?;
        }
        turns.push(both);
    }
    Ok(Some((figures(&turns), json!({ "sweep": SWEEP, "order": ["one core", "two cores"], "seconds": turns }))))
}

fn seconds(subject: &Subject, cores: usize) -> anyhow::Result<f64> {
    let folder = Folder::new()?;
    let mut command = Command::new(subject.program());
    command.args(SWEEP).args(["--jobs", &cores.to_string(), "--out"]).arg(folder.path("out"));
    let begun = Moment::now();
    let ran = command.output().context("cannot run the program")?;
    let passed = begun.passed().as_secs_f64();
    ensure!(ran.status.success(), "the sweep failed: {}", String::from_utf8_lossy(&ran.stderr));
    Ok(passed)
}

fn figures(turns: &[[f64; 2]]) -> Vec<Figure> {
    let of = |which: usize| median(&turns.iter().map(|turn| turn[which]).collect::<Vec<_>>());
    let speed_up = median(&turns.iter().map(|[one, two]| one / two).collect::<Vec<_>>());
    let figure = |name, value, aim, more_is_better| Figure { name, value, aim, more_is_better };
    vec![
        figure("a sweep on one core, s", of(0), "", false),
        figure("the same on two, s", of(1), "", false),
        figure("one core to two", speed_up, "at least 1.8", true),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_is_of_the_same_turn() {
        let values: Vec<f64> = figures(&[[4.0, 2.0], [9.0, 3.0], [2.0, 2.0]]).iter().map(|one| one.value).collect();
        assert_eq!(values, [4.0, 2.0, 2.0]);
    }
}
