//! A block layer in the report of a run, and its metrics.

use nandscape_drive::Latency;
use nandscape_drive::layer::{LayerReport, Shown};
use nandscape_host_block::{Accuracy, BlockLayer};
use nandscape_sim::figures::{count, percent, us};
use nandscape_sim::{Histogram, Span};
use serde::Serialize;

/// What a block layer has counted since it began, by the names of metrics.
pub fn counters(layer: &BlockLayer) -> [(&'static str, f64); 7] {
    let counted = layer.counted();
    [
        ("block_reads_total", counted.reads as f64),
        ("block_reads_with_deadline_total", counted.judged as f64),
        ("block_reads_rejected_total", counted.rejected as f64),
        ("block_reads_cancelled_total", counted.cancelled as f64),
        ("block_reads_attached_total", counted.attached as f64),
        ("block_predictions_compared_total", counted.compared as f64),
        ("block_predictions_wrong_total", (counted.false_positives + counted.false_negatives) as f64),
    ]
}

/// What the block layer has counted in the measured phase.
#[derive(Clone, Debug, Serialize)]
pub struct BlockReport {
    /// Its scheduler.
    pub scheduler: &'static str,
    /// Its predictor.
    pub predictor: &'static str,
    /// The deadline of reads, in microseconds; null where they have none.
    pub deadline_us: Option<f64>,
    /// Reads.
    pub reads: u64,
    /// Rejected at once.
    pub rejected: u64,
    /// Rejected while they waited in the layer.
    pub cancelled: u64,
    /// Predicted to be late, and still served (`block.predict_only`).
    pub attached: u64,
    /// Served with a deadline, and compared with their prediction.
    pub compared: u64,
    /// Predicted to be late, and in time.
    pub false_positives: u64,
    /// Predicted to be in time, and late.
    pub false_negatives: u64,
    /// Both as a share of the compared predictions; null without any.
    pub inaccuracy: Option<f64>,
    /// By how much reads took longer than predicted, of those that did.
    pub longer_us: Latency,
    /// By how much reads took less than predicted, of those that did.
    pub shorter_us: Latency,
    /// By how much predictions were off that were wrong about the deadline.
    pub wrong_us: Latency,
}

impl BlockReport {
    /// Of a layer, since it last began to count.
    pub fn of(layer: &BlockLayer) -> BlockReport {
        let (config, counted) = (layer.config(), layer.counted());
        let Accuracy { reads, rejected, cancelled, attached, compared, false_positives, false_negatives, .. } = counted;
        let off = |errors: &Histogram| Latency::of(errors);
        BlockReport {
            scheduler: config.scheduler.name(),
            predictor: config.predictor.name(),
            deadline_us: config.default_deadline().map(Span::as_us),
            reads,
            rejected,
            cancelled,
            attached,
            compared,
            false_positives,
            false_negatives,
            inaccuracy: (compared > 0).then(|| counted.inaccuracy()),
            longer_us: off(&counted.longer),
            shorter_us: off(&counted.shorter),
            wrong_us: off(&counted.wrong),
        }
    }
}

impl LayerReport for BlockReport {
    fn key(&self) -> &'static str {
        "block"
    }

    fn json(&self) -> String {
        serde_json::to_string(self).expect("plain data")
    }

    fn settings(&self) -> String {
        format!("scheduler {}, predictor {}", self.scheduler, self.predictor)
    }

    fn shown(&self) -> Vec<Shown> {
        std::iter::once(self.reads_in_words()).chain(self.predictions_in_words()).map(Shown::Line).collect()
    }
}

impl BlockReport {
    fn reads_in_words(&self) -> String {
        let deadline = self
            .deadline_us
            .map_or("no deadline of its own".to_owned(), |deadline| format!("deadline {} us", us(deadline)));
        let attached = match self.attached {
            0 => String::new(),
            attached => format!("; {} would have been, and were still served", count(attached)),
        };
        format!(
            "block layer: scheduler {}, predictor {}, {deadline}; of {} reads {} were rejected at once, {} while they waited{attached}",
            self.scheduler,
            self.predictor,
            count(self.reads),
            count(self.rejected),
            count(self.cancelled),
        )
    }

    fn predictions_in_words(&self) -> Option<String> {
        Some(format!(
            "predictions: {} compared, {} wrong about the deadline ({} late by prediction and in time, {} in time by prediction and late); {}; {}",
            count(self.compared),
            percent(self.inaccuracy?),
            count(self.false_positives),
            count(self.false_negatives),
            off("too short", &self.longer_us),
            off("too long", &self.shorter_us),
        ))
    }
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
