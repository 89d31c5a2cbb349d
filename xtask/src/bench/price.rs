//! The cost of each option: of NAND timing, of aging and scrubbing, of placement, partitions and zones. The cost of a request on
//! a drive with the option, as a ratio to the same drive without it, measured right before: in processor time, or in
//! instructions, which do not depend on other work on the machine.
//!
//! The ratio is of the host's work, not of the drive's: an option that makes a drive slower or faster is cheap if the
//! simulator has no extra work. If a request needs more page programs or reads, it costs more.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};
use serde_json::{Value, json};

use super::instructions;
use super::options::OPTIONS;
use super::subject::Subject;
use super::suite::{Figure, Measured};
use crate::say;

/// Requests of a run whose processor time is measured.
const TIMED: &[&str] = &["--warmup-count", "20000", "--io-count", "200000"];
/// Requests of the two runs whose instructions are counted.
const COUNTED: (u32, u32) = (20_000, 40_000);

/// The report of a run, and what a request costs.
type Cost = anyhow::Result<(Value, f64)>;

/// Processor time of each option in turn.
pub(crate) fn option_price(subject: &Subject) -> Measured {
    compare(subject, "us", |words| {
        let report = subject.report(&[words, TIMED].concat())?;
        let cost = us_a_request(&report).context("the report lacks a figure")?;
        Ok((report, cost))
    })
}

/// Instructions of each option in turn.
pub(crate) fn option_instructions(subject: &Subject) -> Measured {
    if !instructions::has_valgrind() {
        return Ok(None);
    }
    // Most options are compared with the same drive.
    let mut known: BTreeMap<Vec<String>, (Value, f64)> = BTreeMap::new();
    compare(subject, "instructions", |words| {
        let key: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        if let Some(known) = known.get(&key) {
            return Ok(known.clone());
        }
        let (short, long) = COUNTED;
        let (_, before) = instructions::count(subject, words, short)?;
        let (report, after) = instructions::count(subject, words, long)?;
        let cost = instructions::difference(&before, &after, long - short).values().sum();
        Ok(known.entry(key).or_insert((report, cost)).clone())
    })
}

/// Each option in turn with the drive without it.
fn compare(subject: &Subject, unit: &str, mut cost: impl FnMut(&[&str]) -> Cost) -> Measured {
    let (mut figures, mut runs) = (Vec::new(), Vec::new());
    for feature in OPTIONS {
        if !subject.has_drive(&feature.drive(true))? {
            say::line(&format!("{} has no {}: left out", subject.revision, feature.name));
            return Ok(None);
        }
        let ((off, without), (on, with)) = (cost(&feature.run(false))?, cost(&feature.run(true))?);
        if drives_alike(&off, &on) && !feature.may_be_alike {
            bail!("{}: the drive is the same with it and without", feature.name);
        }
        figures.push(Figure { name: feature.name, value: with / without, aim: "", more_is_better: false });
        let mut run = json!({"option": feature.name, "load": feature.run(true)});
        run[format!("without_{unit}")] = json!(without);
        run[format!("with_{unit}")] = json!(with);
        runs.push(run);
    }
    Ok(Some((figures, json!({"runs": runs}))))
}

/// Processor time, in microseconds.
fn us_a_request(report: &Value) -> Option<f64> {
    Some(report.pointer("/host/cpu_s")?.as_f64()? * 1e6 / report.pointer("/requests")?.as_f64()?)
}

/// Whether two drives behaved identically in simulated time.
fn drives_alike(one: &Value, other: &Value) -> bool {
    let latency = |report: &Value| report.pointer("/latency_us").cloned();
    latency(one) == latency(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_costs_its_share_of_the_processor() {
        assert_eq!(us_a_request(&json!({"host": {"cpu_s": 0.5}, "requests": 1_000})), Some(500.0));
        assert_eq!(us_a_request(&json!({})), None);
    }
}
