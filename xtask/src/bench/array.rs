//! Instructions of the simulator for a command to an array of four drives, compared with the same command to a single drive.
//!
//! A read within a chunk is one command to a drive. An overwrite of a chunk with parity is four: two reads and two writes. Each
//! is compared with a command of a single drive that reads and overwrites in equal parts.

use anyhow::Context as _;
use serde_json::{Value, json};

use super::instructions::{self, Counts};
use super::subject::Subject;
use super::suite::{Figure, Measured};

/// A drive small enough to be set up four times under callgrind.
const DRIVE: &[&str] = &[
    "--drive",
    "default",
    "--set",
    "capacity=1GiB",
    "--set",
    "geometry.channels=8",
    "--set",
    "geometry.dies_per_channel=4",
    "--set",
    "geometry.pages_per_block=48",
    "--bs",
    "4k",
    "--iodepth",
    "32",
];
const READS: &[&str] = &["--rw", "randread", "--precondition", "full"];
const BOTH: &[&str] = &["--rw", "randrw", "--precondition", "steady"];
const OVERWRITES: &[&str] = &["--rw", "randwrite", "--precondition", "steady"];
const BASE: &[&str] = &["--array", "raid5:4", "--set", "array.technique=base"];
const TEAFA: &[&str] = &["--array", "raid5:4", "--set", "array.technique=teafa"];

/// Requests of the two runs whose instructions are counted.
const COUNTED: (u32, u32) = (10_000, 30_000);

const AIM: &str = "at least 0.8";

/// A load on an array, and the load on a drive alone that its commands are held against.
struct Load {
    figure: &'static str,
    alone: &'static [&'static str],
    array: &'static [&'static str],
    words: &'static [&'static str],
}

const LOADS: [Load; 3] = [
    Load { figure: "speed of reads, array over drive", alone: READS, array: BASE, words: READS },
    Load { figure: "speed of reads with TeaFA", alone: READS, array: TEAFA, words: READS },
    Load { figure: "speed of the commands of overwrites", alone: BOTH, array: BASE, words: OVERWRITES },
];

/// Reads and overwrites of an array of four.
pub(crate) fn of_four(subject: &Subject) -> Measured {
    if !instructions::has_valgrind() {
        return Ok(None);
    }
    let (mut figures, mut runs) = (Vec::new(), Vec::new());
    for load in &LOADS {
        let (_, alone) = cost(subject, &[DRIVE, load.alone].concat())?;
        let (report, stages) = cost(subject, &[DRIVE, load.array, load.words].concat())?;
        let commands = commands(&report).context("the report lacks a figure")?;
        let sum = |counts: &Counts| counts.values().sum::<f64>();
        let value = sum(&alone) * commands / sum(&stages);
        figures.push(Figure { name: load.figure, value, aim: AIM, more_is_better: true });
        runs.push(json!({
            "alone": load.alone, "array": load.array, "load": load.words, "requests": COUNTED,
            "commands of a request": commands, "stages alone": alone, "stages of a request": stages,
        }));
    }
    Ok(Some((figures, json!({"drive": DRIVE, "runs": runs}))))
}

/// Instructions of a request, and the report of the longer run.
fn cost(subject: &Subject, words: &[&str]) -> anyhow::Result<(Value, Counts)> {
    let (short, long) = COUNTED;
    let (_, before) = instructions::count(subject, words, short)?;
    let (report, after) = instructions::count(subject, words, long)?;
    Ok((report, instructions::difference(&before, &after, long - short)))
}

/// Commands that the array sent for a request.
fn commands(report: &Value) -> Option<f64> {
    let number = |path: &str| report.pointer(path).and_then(Value::as_f64);
    let sent = number("/array/reads")? + number("/array/writes")? + number("/array/reads_for_writes")?;
    Some(sent / number("/requests")?)
}
