//! Samples of a figure, in nanoseconds: the median, and the 10th and 90th percentiles.

use std::time::Instant;

/// See the file. It holds one sample at least.
#[derive(Clone, Debug)]
pub(crate) struct Samples(Vec<f64>);

impl Samples {
    /// Of values in any order.
    ///
    /// # Panics
    /// Without a value.
    pub(crate) fn new(mut values: Vec<f64>) -> Samples {
        assert!(!values.is_empty(), "a figure has a sample");
        values.sort_by(f64::total_cmp);
        Samples(values)
    }

    /// Takes `count` samples, one at least.
    pub(crate) fn take(count: usize, mut sample: impl FnMut() -> f64) -> Samples {
        Samples::new((0..count.max(1)).map(|_| sample()).collect())
    }

    /// As [`Samples::take`], until one fails.
    pub(crate) fn try_take<E>(count: usize, mut sample: impl FnMut() -> Result<f64, E>) -> Result<Samples, E> {
        (0..count.max(1)).map(|_| sample()).collect::<Result<_, E>>().map(Samples::new)
    }

    /// How many.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// The value below which a share of them is.
    pub(crate) fn at(&self, share: f64) -> f64 {
        self.0[((self.0.len() - 1) as f64 * share).round() as usize]
    }

    /// The median.
    pub(crate) fn median(&self) -> f64 {
        self.at(0.5)
    }

    /// Each by a factor, less a value.
    pub(crate) fn adjusted(self, factor: f64, less: f64) -> Samples {
        Samples(self.0.into_iter().map(|value| value * factor - less).collect())
    }
}

/// The clock of all measurements.
#[derive(Copy, Clone)]
pub(crate) struct Clock(Instant);

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "measures the machine, not the model")]
    pub(crate) fn start() -> Clock {
        Clock(Instant::now())
    }

    /// Nanoseconds since the start.
    #[expect(clippy::disallowed_methods, reason = "measures the machine, not the model")]
    pub(crate) fn ns(self) -> u64 {
        self.0.elapsed().as_nanos() as u64
    }

    /// Nanoseconds of `work`, by the number of times that it repeats itself.
    pub(crate) fn each(self, times: u32, work: impl FnOnce()) -> f64 {
        let start = self.ns();
        work();
        (self.ns() - start) as f64 / f64::from(times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_and_the_spread_are_those_of_the_values() {
        let samples = Samples::new((0..=100).rev().map(f64::from).collect());
        assert_eq!((samples.at(0.1), samples.median(), samples.at(0.9)), (10.0, 50.0, 90.0));
        let half = samples.adjusted(0.5, 5.0);
        assert_eq!((half.count(), half.median(), half.at(1.0)), (101, 20.0, 45.0));
        assert_eq!(Samples::take(0, || 3.0).count(), 1);
        assert_eq!(Samples::try_take(3, || Err::<f64, _>("none")).unwrap_err(), "none");
    }
}
