//! Latencies: exact count, mean and maximum; percentiles within 0.1 %, or 1 % if there are many distributions.

use crate::time::Span;

/// Significant decimal digits of percentiles.
const DIGITS: u8 = 3;
/// The same where memory counts.
const COARSE_DIGITS: u8 = 2;

/// A distribution of spans.
#[derive(Clone)]
pub struct Histogram {
    counts: hdrhistogram::Histogram<u64>,
    sum: u128,
    max: Span,
}

impl Histogram {
    /// A distribution without a value.
    pub fn new() -> Histogram {
        Histogram::with_digits(DIGITS)
    }

    /// The same with percentiles within 1 %, in an eighth of the memory.
    pub fn coarse() -> Histogram {
        Histogram::with_digits(COARSE_DIGITS)
    }

    fn with_digits(digits: u8) -> Histogram {
        let counts = hdrhistogram::Histogram::new(digits).expect("few digits are within bounds");
        Histogram { counts, sum: 0, max: Span::ZERO }
    }

    /// Adds a value.
    #[inline]
    pub fn record(&mut self, span: Span) {
        self.counts.record(span.ns()).expect("an auto-resizing histogram takes every value");
        self.sum += u128::from(span.ns());
        self.max = self.max.max(span);
    }

    /// Adds all values of another distribution.
    pub fn merge(&mut self, other: &Histogram) {
        self.counts.add(&other.counts).expect("both resize");
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    /// The values recorded after `earlier` was copied from this distribution. Their maximum is within 0.1 %.
    ///
    /// # Panics
    /// When `earlier` has values that this one has not.
    pub fn since(&self, earlier: &Histogram) -> Histogram {
        let mut counts = self.counts.clone();
        counts.subtract(&earlier.counts).expect("a copy has no other values");
        let max = Span::from_ns(if counts.is_empty() { 0 } else { counts.max() }).min(self.max);
        Histogram { counts, sum: self.sum - earlier.sum, max }
    }

    /// The distribution with omitted values: a value longer than `interval` stands for as many more as intervals pass
    /// in it, each shorter by one interval. Mean and maximum are within 0.1 %. An interval of zero adds nothing.
    pub fn corrected(&self, interval: Span) -> Histogram {
        let counts = self.counts.clone_correct(interval.ns());
        let sum = counts.iter_recorded().map(|step| {
            u128::from(counts.median_equivalent(step.value_iterated_to())) * u128::from(step.count_at_value())
        });
        Histogram { sum: sum.sum(), max: self.max, counts }
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.counts.len()
    }

    /// The exact mean in nanoseconds; zero without values.
    pub fn mean_ns(&self) -> f64 {
        if self.count() == 0 { 0.0 } else { self.sum as f64 / self.count() as f64 }
    }

    /// The exact sum in nanoseconds.
    pub fn sum_ns(&self) -> u128 {
        self.sum
    }

    /// The exact maximum.
    pub fn max(&self) -> Span {
        self.max
    }

    /// The smallest recorded value, to 0.1 %, that at least the share `quantile` (0 to 1) of all values does not
    /// exceed.
    pub fn quantile(&self, quantile: f64) -> Span {
        Span::from_ns(self.counts.value_at_quantile(quantile)).min(self.max)
    }

    /// The distribution itself: values, to 0.1 % and rising, with how often each was recorded. A quantile is the first
    /// value at which the sum of the counts reaches its share.
    pub fn values(&self) -> impl Iterator<Item = (Span, u64)> {
        let highest = |value: u64| Span::from_ns(self.counts.highest_equivalent(value)).min(self.max);
        self.counts.iter_recorded().map(move |step| (highest(step.value_iterated_to()), step.count_at_value()))
    }
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_long_value_stands_for_those_it_kept_from_coming() {
        let mut histogram = Histogram::new();
        [10, 10, 45].map(Span::from_us).into_iter().for_each(|span| histogram.record(span));
        let corrected = histogram.corrected(Span::from_us(10));
        // 45 us keep four requests from coming: they would have taken 35, 25, 15 and, as it is an interval or more, no 5.
        assert_eq!(corrected.count(), 6);
        assert!((corrected.mean_ns() - 140_000.0 / 6.0).abs() < 25.0, "{}", corrected.mean_ns());
        assert_eq!((corrected.max(), histogram.corrected(Span::ZERO).count()), (Span::from_us(45), 3));
    }

    proptest! {
        #[test]
        fn what_came_since_a_copy_is_as_if_it_had_come_alone(
            before in prop::collection::vec(0u64..1 << 40, 0..50),
            after in prop::collection::vec(0u64..1 << 40, 0..50),
        ) {
            let (mut whole, mut alone) = (Histogram::new(), Histogram::new());
            before.iter().for_each(|&ns| whole.record(Span::from_ns(ns)));
            let copy = whole.clone();
            after.iter().for_each(|&ns| [&mut whole, &mut alone].into_iter().for_each(|one| one.record(Span::from_ns(ns))));
            let since = whole.since(&copy);
            prop_assert_eq!((since.count(), since.sum_ns()), (alone.count(), alone.sum_ns()));
            let (exact, got) = (alone.max().ns() as f64, since.max().ns() as f64);
            prop_assert!((got - exact).abs() <= exact * 0.001 + 0.5, "{} {}", exact, got);
            let ranks = |one: &Histogram| [0.5, 0.99].map(|quantile| one.counts.value_at_quantile(quantile));
            prop_assert_eq!(ranks(&since), ranks(&alone));
        }

        #[test]
        fn agrees_with_a_sorted_list(mut values in prop::collection::vec(0u64..1 << 40, 1..500)) {
            let mut histogram = Histogram::new();
            values.iter().for_each(|&ns| histogram.record(Span::from_ns(ns)));
            values.sort_unstable();
            prop_assert_eq!(histogram.max().ns(), *values.last().unwrap());
            prop_assert_eq!(histogram.sum_ns(), values.iter().map(|&ns| u128::from(ns)).sum::<u128>());
            for quantile in [0.5, 0.9, 0.99, 0.999] {
                let rank = (libm::ceil(values.len() as f64 * quantile) as usize).max(1);
                let (exact, got) = (values[rank - 1] as f64, histogram.quantile(quantile).ns() as f64);
                prop_assert!((got - exact).abs() <= exact * 0.001 + 0.5, "{} {} {}", quantile, exact, got);
                let mut below = 0;
                let reached = histogram.values().find(|(_, count)| {
                    below += count;
                    below >= rank as u64
                });
                prop_assert_eq!(reached.map(|(value, _)| value), Some(histogram.quantile(quantile)));
            }
        }
    }
}
