//! Request sizes of a given mean and maximum.
//!
//! A mean and a maximum do not determine the distribution. This file uses a power law over the multiples of a step: k
//! steps have a probability proportional to k^-a, with the exponent that gives the mean. Sizes of server loads have
//! long tails, and the maximum of a trace is often a hundred times its mean: a power law reaches it, but a geometric
//! distribution with the same mean practically never does. Means near the maximum have a negative exponent.

use nandscape_sim::Rng;
use nandscape_sim::units::Bytes;

/// Parameters of sizes, in bytes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct SizeSpec {
    /// Their mean.
    pub mean: u64,
    /// The largest.
    pub max: u64,
}

/// The largest number of different sizes.
const MOST_SIZES: u64 = 65_536;

impl SizeSpec {
    /// Checks that such sizes exist in multiples of `step`.
    ///
    /// # Errors
    /// The reason why not, with valid values.
    pub(crate) fn check(&self, step: u64) -> Result<(), String> {
        let SizeSpec { mean, max } = *self;
        if !max.is_multiple_of(step) || max == 0 {
            return Err(format!("a largest size of {} is not a multiple of {}", Bytes(max), Bytes(step)));
        }
        if max / step > MOST_SIZES {
            let most = Bytes(step * MOST_SIZES);
            return Err(format!("a largest size of {} is out of range; up to {most} is valid", Bytes(max)));
        }
        match (step..=max).contains(&mean) {
            true => Ok(()),
            false => Err(format!(
                "a mean size of {} is out of range; from {} to {} is valid",
                Bytes(mean),
                Bytes(step),
                Bytes(max)
            )),
        }
    }
}

/// Draws sizes.
#[derive(Debug)]
pub(crate) struct Sizes {
    step: u64,
    /// Cumulative probabilities of 1, 2, ... steps.
    upto: Vec<f64>,
}

impl Sizes {
    /// Sizes of `spec` in multiples of `step`; `spec` has been checked.
    pub(crate) fn new(spec: SizeSpec, step: u64) -> Sizes {
        let (steps, mean) = (spec.max / step, spec.mean as f64 / step as f64);
        let logs: Vec<f64> = (1..=steps).map(|k| libm::log(k as f64)).collect();
        let weights = weights(&logs, exponent(&logs, mean));
        let sum: f64 = weights.iter().sum();
        let upto = weights
            .iter()
            .scan(0.0, |upto, weight| {
                *upto += weight / sum;
                Some(*upto)
            })
            .collect();
        Sizes { step, upto }
    }

    pub(crate) fn next(&self, rng: &mut Rng) -> u64 {
        let draw = rng.unit();
        let below = self.upto.partition_point(|upto| *upto <= draw) as u64;
        (below + 1).min(self.upto.len() as u64) * self.step
    }
}

/// k^-a for each k, given the logarithms of all k, relative to the largest of them.
fn weights(logs: &[f64], a: f64) -> Vec<f64> {
    let least = if a >= 0.0 { 0.0 } else { *logs.last().expect("a size") };
    logs.iter().map(|log| libm::exp(-a * (log - least))).collect()
}

/// The exponent that gives the mean, by bisection: the mean falls as the exponent grows.
fn exponent(logs: &[f64], mean: f64) -> f64 {
    let mean_of = |a: f64| {
        let weights = weights(logs, a);
        let (sum, of) = weights
            .iter()
            .zip(1u32..)
            .fold((0.0, 0.0), |(sum, of), (weight, k)| (sum + weight, of + weight * f64::from(k)));
        of / sum
    };
    // Wide enough for means within a thousandth of a step of either end.
    let (mut low, mut high) = (-20.0 * logs.len() as f64, 64.0);
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        match mean_of(middle) > mean {
            true => low = middle,
            false => high = middle,
        }
    }
    (low + high) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_sim::Seed;
    use proptest::prelude::*;

    fn drawn(mean: u64, max: u64, count: usize) -> Vec<u64> {
        let spec = SizeSpec { mean, max };
        spec.check(4_096).unwrap();
        let (sizes, mut rng) = (Sizes::new(spec, 4_096), Seed::new(3).rng());
        (0..count).map(|_| sizes.next(&mut rng)).collect()
    }

    /// Two sizes: the mean alone determines their probabilities.
    #[test]
    fn two_sizes_have_the_shares_that_give_the_mean() {
        let drawn = drawn(5_120, 8_192, 200_000);
        let large = drawn.iter().filter(|size| **size == 8_192).count() as f64;
        // A quarter of them; five standard deviations.
        assert!((large - 50_000.0).abs() < 5.0 * libm::sqrt(200_000.0 * 0.25 * 0.75), "seed 3: {large}");
    }

    #[test]
    fn a_mean_at_either_end_is_one_size() {
        assert!(drawn(4_096, 1 << 20, 10_000).iter().all(|size| *size == 4_096));
        assert!(drawn(1 << 20, 1 << 20, 10_000).iter().all(|size| *size == 1 << 20));
    }

    /// For any two consecutive sizes, the ratio of their shares is the same power of the ratio of the sizes.
    #[test]
    fn sizes_fall_as_a_power() {
        let sizes = Sizes::new(SizeSpec { mean: 60_000, max: 4 << 20 }, 4_096);
        let share = |k: usize| sizes.upto[k - 1] - if k == 1 { 0.0 } else { sizes.upto[k - 2] };
        let slope = |k: usize| libm::log(share(2 * k) / share(k)) / libm::log(2.0);
        assert!((slope(1) - slope(10)).abs() < 1e-6 && (slope(10) - slope(500)).abs() < 1e-6, "{}", slope(1));
        assert!(slope(1) < 0.0);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn the_mean_is_the_one_given(steps in 1u64..3_000, part in 0.0..=1.0f64) {
            let mean = 4_096 + (part * (steps - 1) as f64 * 4_096.0) as u64;
            let sizes = Sizes::new(SizeSpec { mean, max: steps * 4_096 }, 4_096);
            // The mean of a distribution over 1, 2, ... is the sum of its upper tails.
            let tails: f64 = sizes.upto.iter().map(|upto| 1.0 - upto).sum::<f64>() + 1.0;
            prop_assert!((tails * 4_096.0 / mean as f64 - 1.0).abs() < 1e-6, "{} {}", tails * 4_096.0, mean);
        }
    }

    #[test]
    fn what_there_is_not_is_refused() {
        let refused = |mean, max| SizeSpec { mean, max }.check(4_096).unwrap_err();
        assert!(refused(8_192, 4_096).contains("mean size of 8KiB is out of range; from 4KiB to 4KiB"));
        assert!(refused(1_024, 8_192).contains("out of range"));
        assert!(refused(4_096, 5_000).contains("not a multiple"));
        assert!(refused(4_096, 1 << 40).contains("up to 256MiB"));
    }
}
