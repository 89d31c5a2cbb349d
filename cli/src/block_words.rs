//! The host's block layer on command lines: its keys among `--set`, and its lines of a report.

use nandscape_host_block::Config;
use nandscape_lab_report::format::{count, percent, us};
use nandscape_lab_run::chain::BlockOver;
use nandscape_lab_run::{BlockReport, Latency};

use crate::failure::Failure;

/// The block layer with its settings, if there are any, and the other changes.
pub(crate) fn split(set: &[String]) -> Result<(Option<BlockOver>, Vec<String>), Failure> {
    let (of_block, others): (Vec<&String>, Vec<&String>) = set.iter().partition(|change| Config::is_key(change));
    let others = others.into_iter().cloned().collect();
    if of_block.is_empty() {
        return Ok((None, others));
    }
    let mut config = Config::default();
    for change in of_block {
        config.set(change).map_err(Failure::input)?;
    }
    let is_chosen = set.iter().any(|change| change.trim_start().starts_with("block.predictor"));
    Ok((Some(BlockOver { config, is_chosen }), others))
}

/// The lines of the report.
pub(crate) fn render(block: Option<&BlockReport>) -> String {
    let Some(block) = block else { return String::new() };
    let deadline =
        block.deadline_us.map_or("no deadline".to_owned(), |deadline| format!("deadline {} us", us(deadline)));
    let attached = match block.attached {
        0 => String::new(),
        attached => format!("; {} would have been, and were still served", count(attached)),
    };
    let mut text = format!(
        "block layer: scheduler {}, predictor {}, {deadline}; of {} reads {} were rejected at once, {} while they waited{attached}\n",
        block.scheduler,
        block.predictor,
        count(block.reads),
        count(block.rejected),
        count(block.cancelled),
    );
    if let Some(inaccuracy) = block.inaccuracy {
        text.push_str(&format!(
            "predictions: {} compared, {} wrong about the deadline ({} late by prediction and in time, {} in time by prediction and late); {}; {}\n",
            count(block.compared),
            percent(inaccuracy),
            count(block.false_positives),
            count(block.false_negatives),
            off("too short", &block.longer_us),
            off("too long", &block.shorter_us),
        ));
    }
    text
}

/// How far predictions were off in one direction.
fn off(direction: &str, errors: &Latency) -> String {
    let figure = |value: Option<f64>| value.map_or("-".to_owned(), us);
    match errors.count {
        0 => format!("none was {direction}"),
        number => format!(
            "{} {direction}, by {} us at p50, {} at p99, {} at most",
            count(number),
            figure(errors.p50),
            figure(errors.p99),
            figure(errors.max)
        ),
    }
}
