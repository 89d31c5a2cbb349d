//! Whether pages can be decoded, by draws. The result equals that of [`Correction::page_fails`], whose sum nearly all
//! reads avoid.
//!
//! The probability that a page fails grows with the error rate. It is precomputed at some rates. Between two of these
//! rates it lies between their values. Only a draw between the two values needs the sum.

use super::correction::Correction;

/// Rates at which the probability is known, and one more.
const STEPS: u32 = 256;
/// A probability below which no draw of a run is expected; far above the rounding error of sums.
const HARDLY: f64 = 1e-9;
/// Halvings of the search interval of an error rate.
const HALVINGS: u32 = 100;

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Decoder {
    correction: Correction,
    /// The rate below which pages hardly ever fail, and the distance between neighbouring known rates.
    least: f64,
    step: f64,
    /// 0, the probabilities at the rates, and 1.
    bounds: Vec<f64>,
}

impl Decoder {
    pub(super) fn new(correction: Correction) -> Decoder {
        let reaches = |chance: f64| move |rate: f64| correction.page_fails(rate) >= chance;
        let (least, most) = (first_rate(reaches(HARDLY)), first_rate(reaches(1.0 - HARDLY)));
        let step = (most - least) / f64::from(STEPS);
        let known = (0..=STEPS).map(|number| correction.page_fails(least + f64::from(number) * step));
        let bounds = std::iter::once(0.0).chain(known).chain([1.0]).collect();
        Decoder { correction, least, step, bounds }
    }

    /// Whether a page fails at an error rate: whether `draw`, from 0 to 1, is below the probability of that.
    #[inline]
    pub(super) fn fails(&self, rber: f64, draw: f64) -> bool {
        let place = (rber - self.least) / self.step;
        let at = if place >= 0.0 { (place as usize + 1).min(self.bounds.len() - 2) } else { 0 };
        if draw >= self.bounds[at + 1] + HARDLY {
            false
        } else if draw < self.bounds[at] - HARDLY {
            true
        } else {
            draw < self.correction.page_fails(rber)
        }
    }
}

/// The lowest rate from which a condition holds; 1 if it never holds.
fn first_rate(holds: impl Fn(f64) -> bool) -> f64 {
    let (mut below, mut first) = (0.0, 1.0);
    for _ in 0..HALVINGS {
        let between = f64::midpoint(below, first);
        if holds(between) { first = between } else { below = between }
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_sim::Seed;

    const CODES: [(u32, u32, u32); 6] =
        [(32_768, 288, 4), (8_192, 40, 2), (4_096, 0, 1), (100, 100, 4), (64, 63, 1), (1_000, 500, 8)];

    /// At rates far below the limit, about it and above it, at draws next to the probability and at those that hardly ever are drawn.
    #[test]
    fn what_is_decided_without_a_sum_is_what_the_sum_decides() {
        let mut rng = Seed::new(1).rng();
        for (bits, correctable, codewords) in CODES {
            let correction = Correction { bits, correctable, codewords };
            let decoder = Decoder::new(correction);
            let most = decoder.least + decoder.step * f64::from(STEPS);
            for _ in 0..2_000 {
                let rber = (decoder.least * 0.5 + (most * 1.5 - decoder.least * 0.5) * rng.unit()).min(0.999);
                let chance = correction.page_fails(rber);
                for draw in
                    [rng.unit(), 0.0, 1e-20, 1e-12, 0.999_999, chance, chance * (1.0 - 1e-6), chance * (1.0 + 1e-6)]
                {
                    assert_eq!(decoder.fails(rber, draw), draw < chance, "{correction:?} at {rber}: {draw}");
                }
            }
            assert!(!decoder.fails(0.0, 1e-20) && !decoder.fails(f64::NAN, 0.5), "{correction:?}");
        }
    }

    /// Otherwise the tables would save no time.
    #[test]
    fn few_draws_ask_for_a_sum() {
        let decoder = Decoder::new(Correction { bits: 32_768, correctable: 288, codewords: 4 });
        assert!(decoder.bounds.is_sorted());
        let widest = decoder.bounds.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max);
        assert!(widest < 0.05, "{widest}");
        assert!((0.005..0.0088).contains(&decoder.least), "near the limit: {}", decoder.least);
    }
}
