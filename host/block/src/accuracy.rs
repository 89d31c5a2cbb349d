//! The accuracy of predictions (Li 3.5.3).
//!
//! The latency of a rejected read is unknown. Accuracy is therefore measured with predictions that are attached to
//! reads without rejecting them.

use nandscape_sim::{Histogram, Span};

/// The layer's counters, of reads with a deadline unless stated otherwise.
#[derive(Clone)]
pub struct Accuracy {
    /// Reads, with a deadline or without one.
    pub reads: u64,
    /// With a deadline.
    pub judged: u64,
    /// Rejected at once.
    pub rejected: u64,
    /// Rejected while they waited in the layer.
    pub cancelled: u64,
    /// Predicted to be late, and still served.
    pub attached: u64,
    /// Of these, reads that were in time: false positives.
    pub false_positives: u64,
    /// Predicted to be in time, and late: false negatives.
    pub false_negatives: u64,
    /// Served, and compared with the prediction.
    pub compared: u64,
    /// Actual minus predicted latency, of reads that took longer than predicted.
    pub longer: Histogram,
    /// Predicted minus actual latency, of reads that took less than predicted.
    pub shorter: Histogram,
    /// The error of predictions that were wrong about the deadline.
    pub wrong: Histogram,
}

impl Default for Accuracy {
    fn default() -> Accuracy {
        Accuracy {
            reads: 0,
            judged: 0,
            rejected: 0,
            cancelled: 0,
            attached: 0,
            false_positives: 0,
            false_negatives: 0,
            compared: 0,
            longer: Histogram::new(),
            shorter: Histogram::new(),
            wrong: Histogram::new(),
        }
    }
}

impl Accuracy {
    /// A read with a deadline has ended.
    pub fn compare(&mut self, predicted: Span, took: Span, deadline: Span) {
        self.compared += 1;
        let off = predicted.saturating_sub(took).max(took.saturating_sub(predicted));
        match took > predicted {
            true => self.longer.record(off),
            false => self.shorter.record(off),
        }
        match (predicted > deadline, took > deadline) {
            (true, false) => self.false_positives += 1,
            (false, true) => self.false_negatives += 1,
            _ => return,
        }
        self.wrong.record(off);
    }

    /// Adds the counters of another one.
    pub fn merge(&mut self, other: &Accuracy) {
        self.reads += other.reads;
        self.judged += other.judged;
        self.rejected += other.rejected;
        self.cancelled += other.cancelled;
        self.attached += other.attached;
        self.false_positives += other.false_positives;
        self.false_negatives += other.false_negatives;
        self.compared += other.compared;
        self.longer.merge(&other.longer);
        self.shorter.merge(&other.shorter);
        self.wrong.merge(&other.wrong);
    }

    /// The share of the reads compared that the prediction was wrong about; 0 without any.
    pub fn inaccuracy(&self) -> f64 {
        (self.false_positives + self.false_negatives) as f64 / self.compared.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_predictions_are_told_apart_and_measured() {
        let us = Span::from_us;
        let mut accuracy = Accuracy::default();
        for (predicted, took) in [(90, 95), (90, 130), (120, 80), (120, 200)] {
            accuracy.compare(us(predicted), us(took), us(100));
        }
        assert_eq!((accuracy.false_positives, accuracy.false_negatives, accuracy.compared), (1, 1, 4));
        assert_eq!((accuracy.longer.count(), accuracy.shorter.count(), accuracy.wrong.count()), (3, 1, 2));
        assert!((accuracy.inaccuracy() - 0.5).abs() < 1e-9);
        assert_eq!(Accuracy::default().inaccuracy(), 0.0);
        let mut both = accuracy.clone();
        both.merge(&accuracy);
        assert_eq!((both.compared, both.wrong.count(), both.inaccuracy()), (8, 4, accuracy.inaccuracy()));
    }
}
