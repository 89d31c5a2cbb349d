//! The strength of error correction: the probability that a codeword, or a page, has more errors than can be corrected.
//!
//! Left out: codes whose success depends on where errors are, and soft decoding. The number of errors up to which an LDPC
//! code nearly always succeeds stands in for it.

/// A code that corrects up to a number of errors in a codeword.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Correction {
    /// Bits of a codeword, in which errors count.
    pub bits: u32,
    /// Errors that it corrects.
    pub correctable: u32,
    /// Codewords of a page, all of which must be decoded.
    pub codewords: u32,
}

impl Correction {
    /// The probability that a codeword cannot be decoded at an error rate: the tail of a binomial distribution,
    /// P(errors > correctable).
    pub fn codeword_fails(&self, rber: f64) -> f64 {
        let (bits, limit) = (f64::from(self.bits), f64::from(self.correctable));
        if self.correctable >= self.bits || rber <= 0.0 {
            return 0.0;
        }
        let odds = rber / (1.0 - rber);
        // Terms are summed away from the mean, where each is smaller than the previous one.
        if limit + 1.0 > bits * rber {
            let ratio = |errors: f64| (bits - errors) / (errors + 1.0) * odds;
            sum(self.term(limit + 1.0, rber), limit + 1.0, bits, 1.0, ratio)
        } else {
            let ratio = |errors: f64| errors / (bits - errors + 1.0) / odds;
            1.0 - sum(self.term(limit, rber), limit, 0.0, -1.0, ratio)
        }
    }

    /// The probability that one of the codewords of a page cannot be decoded.
    pub fn page_fails(&self, rber: f64) -> f64 {
        -libm::expm1(f64::from(self.codewords) * libm::log1p(-self.codeword_fails(rber)))
    }

    /// The probability of exactly this many errors.
    fn term(&self, errors: f64, rber: f64) -> f64 {
        let bits = f64::from(self.bits);
        let choices = libm::lgamma(bits + 1.0) - libm::lgamma(errors + 1.0) - libm::lgamma(bits - errors + 1.0);
        libm::exp(choices + errors * libm::log(rber) + (bits - errors) * libm::log1p(-rber))
    }
}

/// The sum of terms from `errors` up or down to `end`, each `ratio` times the previous one, until they are negligible.
fn sum(first: f64, errors: f64, end: f64, step: f64, ratio: impl Fn(f64) -> f64) -> f64 {
    let (mut term, mut errors, mut sum) = (first, errors, first);
    while errors != end && term > sum * 1e-17 {
        term *= ratio(errors);
        errors += step;
        sum += term;
    }
    sum.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Term by term, by multiplication alone.
    fn by_hand(bits: u32, correctable: u32, rber: f64) -> f64 {
        let mut term = (1.0 - rber).powi(bits as i32);
        let mut decoded = 0.0;
        for errors in 0..=correctable {
            decoded += term;
            term *= f64::from(bits - errors) / f64::from(errors + 1) * rber / (1.0 - rber);
        }
        1.0 - decoded
    }

    #[test]
    fn a_codeword_fails_with_the_tail_of_the_binomial_distribution() {
        for (bits, correctable) in [(100, 3), (1_000, 8), (4_096, 40)] {
            for rber in [1e-3, 5e-3, 1e-2, 2e-2, 0.1] {
                let expected = by_hand(bits, correctable, rber);
                let found = Correction { bits, correctable, codewords: 1 }.codeword_fails(rber);
                assert!((found - expected).abs() < 1e-10, "{bits} {correctable} {rber}: {found} is not {expected}");
            }
        }
    }

    /// Small tails, whose difference to 1 has no digits left: against the first term, which is nearly the whole tail.
    #[test]
    fn small_probabilities_keep_their_digits() {
        let correction = Correction { bits: 8 << 10, correctable: 72, codewords: 1 };
        let fails = correction.codeword_fails(1e-4);
        let first = correction.term(73.0, 1e-4);
        assert!(first > 0.0 && (first..first * 1.02).contains(&fails), "{fails} of {first}");
        assert_eq!(correction.codeword_fails(0.0), 0.0);
        assert!(correction.codeword_fails(0.5) > 0.999_999);
        assert_eq!(Correction { bits: 8, correctable: 8, codewords: 4 }.page_fails(0.3), 0.0);
    }

    #[test]
    fn a_page_needs_all_of_its_codewords() {
        let one = Correction { bits: 1_000, correctable: 8, codewords: 1 };
        let of = |codewords| Correction { codewords, ..one }.page_fails(5e-3);
        assert!((of(1) - one.codeword_fails(5e-3)).abs() < 1e-15);
        assert!((of(4) - (1.0 - (1.0 - of(1)).powi(4))).abs() < 1e-12);
    }
}
