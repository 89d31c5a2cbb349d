//! Arrival times of an open-loop job.

use nandscape_sim::{Rng, Span, Time};

use crate::spec::{Rate, RateProcess};
use crate::words::Burst;

/// The arrival times of one job, in order.
pub(crate) struct Arrivals {
    rate: Rate,
    burst: Option<Burst>,
    start: Time,
    /// Number of arrivals so far, and for random spacing the exact time of the last, in nanoseconds of on-time.
    count: u64,
    at: f64,
    rng: Rng,
}

impl Arrivals {
    pub(crate) fn new(rate: Rate, burst: Option<Burst>, start: Time, rng: Rng) -> Arrivals {
        Arrivals { rate, burst, start, count: 0, at: 0.0, rng }
    }

    /// The next arrival. Off periods are skipped: the rate applies to on periods.
    pub(crate) fn next(&mut self) -> Time {
        let mean_ns = 1e9 / self.rate.iops;
        let on = match self.rate.process {
            // Computed from the count, so that rounding errors do not accumulate.
            RateProcess::Linear => self.count as f64 * mean_ns,
            RateProcess::Poisson => {
                self.at += self.rng.exponential(mean_ns * 1e3).ns() as f64 / 1e3;
                self.at
            }
        };
        self.count += 1;
        self.start + stretched(Span::from_ns(on.round() as u64), self.burst)
    }
}

/// Converts on-time to time by adding the off periods in between.
fn stretched(on: Span, burst: Option<Burst>) -> Span {
    match burst {
        Some(burst) => on + burst.off * (on.ns() / burst.on.ns()),
        None => on,
    }
}

/// The next instant from `now` on within an on period.
pub(crate) fn next_on(now: Time, start: Time, burst: Option<Burst>) -> Time {
    let Some(burst) = burst else { return now };
    let period = (burst.on + burst.off).ns();
    let into = now.since(start).ns() % period;
    if into < burst.on.ns() { now } else { now + Span::from_ns(period - into) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_sim::Seed;

    fn arrivals(process: RateProcess, iops: f64, burst: Option<&str>, count: usize) -> Vec<u64> {
        let burst = burst.map(|text| text.parse().unwrap());
        let mut arrivals = Arrivals::new(Rate { iops, process }, burst, Time::ZERO, Seed::new(5).rng());
        (0..count).map(|_| arrivals.next().ns()).collect()
    }

    #[test]
    fn linear_arrivals_are_evenly_spaced_and_do_not_drift() {
        let times = arrivals(RateProcess::Linear, 3.0, None, 4);
        assert_eq!(times, [0, 333_333_333, 666_666_667, 1_000_000_000]);
    }

    #[test]
    fn poisson_arrivals_have_their_rate_and_spread() {
        let times = arrivals(RateProcess::Poisson, 1e6, None, 100_000);
        let mean = times[99_999] as f64 / 1e5;
        assert!((mean - 1_000.0).abs() < 10.0, "{mean}");
        let short = times.windows(2).filter(|pair| pair[1] - pair[0] < 693).count();
        assert!((49_000..51_000).contains(&short), "half of the gaps are below the median: {short}");
    }

    /// Gaps are exponential: mean and deviation are both one over the rate, and 1 - e^-x of them are below x means. The
    /// number of arrivals in an interval has a variance equal to its mean.
    #[test]
    fn poisson_arrivals_have_exponential_gaps_and_poisson_counts() {
        let (count, mean_ns) = (200_000, 10_000.0);
        let times = arrivals(RateProcess::Poisson, 1e5, None, count + 1);
        let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / count as f64;
        let variance = gaps.iter().map(|gap| (gap - mean) * (gap - mean)).sum::<f64>() / count as f64;
        // The mean of n gaps deviates by 1/sqrt n, their variance by sqrt(8/n): five times that.
        let n = libm::sqrt(count as f64);
        assert!((mean / mean_ns - 1.0).abs() < 5.0 / n, "seed 5: mean {mean}");
        assert!(
            (variance / (mean_ns * mean_ns) - 1.0).abs() < 5.0 * libm::sqrt(8.0) / n,
            "seed 5: variance {variance}"
        );
        for means in [0.1, 0.5, 1.0, 3.0] {
            let share = gaps.iter().filter(|gap| **gap < means * mean_ns).count() as f64 / count as f64;
            let expected = 1.0 - libm::exp(-means);
            let bound = 5.0 * libm::sqrt(expected * (1.0 - expected)) / n + 1e-4;
            assert!((share - expected).abs() < bound, "seed 5: {share} below {means} means");
        }
        let stretches = 2_000;
        let mut counts = vec![0.0; stretches];
        // Of 50 means each.
        times.iter().for_each(|at| {
            if let Some(count) = counts.get_mut((at / 500_000) as usize) {
                *count += 1.0;
            }
        });
        let mean = counts.iter().sum::<f64>() / stretches as f64;
        let variance = counts.iter().map(|count| (count - mean) * (count - mean)).sum::<f64>() / stretches as f64;
        let bound = 5.0 * libm::sqrt(2.0 / stretches as f64);
        assert!((variance / mean - 1.0).abs() < bound, "seed 5: mean {mean}, variance {variance}");
    }

    #[test]
    fn linear_arrivals_keep_their_rate_over_a_million() {
        for (iops, last) in [(7.0, 142_857_142_857_143u64), (3e6, 333_333_333)] {
            let times = arrivals(RateProcess::Linear, iops, None, 1_000_001);
            assert_eq!(times[1_000_000], last, "{iops} a second");
            let mean = 1e9 / iops;
            assert!(times.windows(2).all(|pair| ((pair[1] - pair[0]) as f64 - mean).abs() <= 1.0));
        }
    }

    #[test]
    fn bursts_leave_gaps() {
        let times = arrivals(RateProcess::Linear, 1e3, Some("2ms/8ms"), 5);
        assert_eq!(times, [0, 1_000_000, 10_000_000, 11_000_000, 20_000_000]);
        let burst = Some("2ms/8ms".parse().unwrap());
        let next = |ns| next_on(Time::from_ns(ns), Time::ZERO, burst).ns();
        assert_eq!((next(1_999_999), next(2_000_000), next(9_999_999)), (1_999_999, 10_000_000, 10_000_000));
    }
}
