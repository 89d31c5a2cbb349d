//! The accuracy of notices.

use nandscape_sim::{Histogram, Span};

/// The maximum deviation of a notice in time from its window: the error of the thesis' predictions of flash (Shin, Table
/// 4.1).
pub const TOLERANCE: Span = Span::from_us(1);

/// Counts of reads that asked for a notice, and errors of predictions.
#[derive(Clone, Default)]
pub struct Precompletion {
    /// Reads that asked.
    pub asked: u64,
    /// Reads of 8 KiB and more, which are not predicted.
    pub large: u64,
    /// Smaller ones that needed no read of a single page: served from memory, or spread over several pages.
    pub unissued: u64,
    /// Notices in time: one window before the end, within [`TOLERANCE`].
    pub in_time: u64,
    /// Notices that came earlier.
    pub early: u64,
    /// Notices that came later, with less than the window to go.
    pub late: u64,
    /// Reads of a page that ended without a notice: their chip had no history, they ended before the notice was due, or its
    /// queue was full.
    pub missing: u64,
    /// Absolute errors of predictions, from the issue to the end.
    pub error: Histogram,
    /// From the issue to a chip until the page is in the controller.
    pub flash: Component,
    /// From there until the read ends.
    pub transfer: Component,
}

impl Precompletion {
    /// Notices.
    pub fn sent(&self) -> u64 {
        self.in_time + self.early + self.late
    }

    /// Counts a notice that came `lead` before the end of its read.
    pub(super) fn count(&mut self, lead: Span, window: Span) {
        *if lead > window + TOLERANCE {
            &mut self.early
        } else if lead + TOLERANCE < window {
            &mut self.late
        } else {
            &mut self.in_time
        } += 1;
    }
}

/// Times of a component, and of its predictions.
#[derive(Copy, Clone, Default, PartialEq, Eq, Debug)]
pub struct Component {
    count: u64,
    sum: u128,
    squares: u128,
    predicted: u64,
    squared_errors: u128,
}

impl Component {
    pub(super) fn add(&mut self, time: Span, predicted: Option<Span>) {
        let ns = u128::from(time.ns());
        self.count += 1;
        self.sum += ns;
        self.squares += ns * ns;
        if let Some(predicted) = predicted {
            let error = u128::from(predicted.ns().abs_diff(time.ns()));
            self.predicted += 1;
            self.squared_errors += error * error;
        }
    }

    /// The mean time in microseconds; `None` without any.
    pub fn mean_us(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64 / 1e3)
    }

    /// The standard deviation in microseconds.
    pub fn deviation_us(&self) -> Option<f64> {
        let count = self.count as f64;
        let mean = self.mean_us()? * 1e3;
        Some((self.squares as f64 / count - mean * mean).max(0.0).sqrt() / 1e3)
    }

    /// The root of the mean of the squared errors of predictions in microseconds.
    pub fn error_us(&self) -> Option<f64> {
        (self.predicted > 0).then(|| (self.squared_errors as f64 / self.predicted as f64).sqrt() / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_are_in_time_within_a_microsecond() {
        let (mut figures, window) = (Precompletion::default(), Span::from_us(16));
        for ns in [14_999, 15_000, 16_000, 17_000, 17_001] {
            figures.count(Span::from_ns(ns), window);
        }
        assert_eq!((figures.late, figures.in_time, figures.early, figures.sent()), (1, 3, 1, 5));
    }

    #[test]
    fn a_component_has_mean_deviation_and_error() {
        let mut component = Component::default();
        assert_eq!((component.mean_us(), component.deviation_us(), component.error_us()), (None, None, None));
        component.add(Span::from_us(3), None);
        component.add(Span::from_us(5), Some(Span::from_us(2)));
        component.add(Span::from_us(4), Some(Span::from_us(8)));
        assert_eq!(component.mean_us(), Some(4.0));
        assert!((component.deviation_us().unwrap() - (2.0_f64 / 3.0).sqrt()).abs() < 1e-9);
        assert!((component.error_us().unwrap() - 12.5_f64.sqrt()).abs() < 1e-9);
    }
}
