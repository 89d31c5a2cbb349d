//! Times between requests of a given mean, alone or in bursts.
//!
//! Alone, gaps are exponential: a Poisson process. In bursts, the next request of a burst follows after a short gap, and
//! the next burst after a long one, both exponential; a burst has a geometric number of requests of the given mean. The
//! long gap is chosen to give the mean over both.

use nandscape_sim::{Rng, Span};

use crate::keys::shown;

/// Parameters of bursts.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Bursts {
    /// Mean number of requests in a burst.
    pub requests: f64,
    /// Mean time between requests of a burst.
    pub gap: Span,
}

/// Draws gaps.
#[derive(Debug)]
pub(crate) struct Gaps {
    /// The probability that the burst ends.
    ends: f64,
    inside_ns: f64,
    between_ns: f64,
}

/// The longest mean gap: 116 days.
const MOST_NS: f64 = 1e16;

impl Gaps {
    /// Gaps with this mean, in nanoseconds.
    ///
    /// # Errors
    /// When these bursts cannot give the mean, with the valid range.
    pub(crate) fn new(mean_ns: f64, bursts: Option<Bursts>) -> Result<Gaps, String> {
        let Some(Bursts { requests, gap }) = bursts else {
            return Ok(Gaps { ends: 1.0, inside_ns: 0.0, between_ns: mean_ns });
        };
        if !(1.0..=1e9).contains(&requests) {
            return Err(format!("burst_requests = {} is out of range; from 1 to 1e9 is valid", shown(&requests)));
        }
        let (ends, inside_ns) = (1.0 / requests, gap.ns() as f64);
        if inside_ns > mean_ns {
            let mean = Span::from_ns(mean_ns as u64);
            return Err(format!("burst_gap = {gap} is more than the mean interval; up to {mean} is valid"));
        }
        let between_ns = (mean_ns - (1.0 - ends) * inside_ns) / ends;
        if between_ns > MOST_NS {
            return Err(format!("burst_requests = {requests} makes the gap between bursts more than {MOST_NS} ns"));
        }
        Ok(Gaps { ends, inside_ns, between_ns })
    }

    /// The next gap in nanoseconds.
    pub(crate) fn next_ns(&self, rng: &mut Rng) -> f64 {
        let mean_ns = if self.ends >= 1.0 || rng.chance(self.ends) { self.between_ns } else { self.inside_ns };
        -libm::log(1.0 - rng.unit()) * mean_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_sim::Seed;

    fn moments(gaps: &Gaps) -> (f64, f64) {
        let mut rng = Seed::new(9).rng();
        let drawn: Vec<f64> = (0..400_000).map(|_| gaps.next_ns(&mut rng)).collect();
        let count = drawn.len() as f64;
        (drawn.iter().sum::<f64>() / count, drawn.iter().map(|gap| gap * gap).sum::<f64>() / count)
    }

    /// An exponential of mean m has the second moment 2 m^2; a mixture has that of its parts in their shares.
    #[test]
    fn moments_are_those_of_the_mixture() {
        let (mean, square) = moments(&Gaps::new(1e6, None).unwrap());
        assert!((mean / 1e6 - 1.0).abs() < 0.01 && (square / 2e12 - 1.0).abs() < 0.03, "seed 9: {mean} {square}");
        let gaps = Gaps::new(1e6, Some(Bursts { requests: 10.0, gap: Span::from_us(100) })).unwrap();
        let (mean, square) = moments(&gaps);
        // Nine gaps of 0.1 ms and one of 9.1 ms make ten of 1 ms.
        let expected = 2.0 * (0.9 * 1e5 * 1e5 + 0.1 * 9.1e6 * 9.1e6);
        assert!((mean / 1e6 - 1.0).abs() < 0.02, "seed 9: {mean}");
        assert!((square / expected - 1.0).abs() < 0.04, "seed 9: {square} {expected}");
    }

    #[test]
    fn bursts_that_cannot_be_are_refused() {
        let refused = |requests, us| Gaps::new(1e6, Some(Bursts { requests, gap: Span::from_us(us) })).unwrap_err();
        assert!(refused(10.0, 2_000).contains("burst_gap = 2ms is more than the mean interval; up to 1ms"));
        assert!(refused(0.5, 10).contains("burst_requests = 0.5 is out of range"));
    }
}
