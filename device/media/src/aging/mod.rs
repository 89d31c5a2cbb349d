//! How flash ages: raw bit errors, their correction, erases that take longer, and operations that fail with wear.
//!
//! | file | what |
//! |---|---|
//! | `rates` | the raw bit error rate by erases, retention and reads |
//! | `correction` | the probability that error correction fails |
//! | `decoder` | whether a page can be decoded, by a draw |
//! | `life` | the state that a life before the run has left |
//! | `past` | the totals of that life, for reports |
//! | `in_file` | ages in the file of a drive |
//! | `cells` | the state of each block, and the effects on an operation |
//! | `health` | the estimate of a block, and its watcher |
//! | `decoded` | the errors that a decoder corrected in a page |
//! | `tally` | counts for reports |
//!
//! Random values are drawn from the seed, the address and the number of erases, not from a stream: the order of
//! operations changes nothing. A page keeps its draw until its block is erased.
//!
//! # The model of a read
//!
//! The raw bit error rate (RBER) of a page is that of the model ([`ErrorRates`]), times the quality of its die and its block
//! (log-normal, median 1), times the factors of its page type and its layer. A codeword is decoded if it has no more errors than can
//! be corrected. Bit errors are independent, so their number is binomial. A page fails if one of its codewords fails. A
//! retry senses at other voltages. It removes errors of shifted voltages (retention and disturb): each step leaves a
//! share [`Retries::keeps`] of the remaining ones. It does not remove errors of wear, whose distributions are wider.
//! This rule is ours; Cai et al., HPCA 2015, show that the best voltages follow the shift. A page that fails after the
//! last step has more errors than can be corrected.
//!
//! # Failures
//!
//! The share of blocks that fail in `e` erases is `1 - exp(-H(e))` with `H(e) = -ln(1 - share) (e / rated)^shape`, a Weibull
//! distribution. Data sheets promise the share of blocks that is good after the rated erases (usually 98% or more); the
//! caller gives the shape. The failure probability of a program is that of its block's next erase, divided by its
//! pages.
//!
//! Left out: temperature, program disturb, errors that depend on data, word lines that fail whole, soft decoding, and blocks
//! that recover. Retention counts from the first program of a block, and reads disturb all pages of a block alike.

mod cells;
mod correction;
mod decoded;
mod decoder;
mod health;
mod in_file;
mod life;
mod past;
mod rates;
mod tally;

use nandscape_sim::Span;

pub use correction::Correction;
pub use decoded::Decoded;
pub use health::BlockHealth;
pub use life::Life;
pub use past::Past;
pub use rates::ErrorRates;
pub use tally::AgingCounts;

pub(crate) use cells::{AgingCells, Begun};

/// The aging of a drive's flash.
#[derive(Clone, PartialEq, Debug)]
pub struct Aging {
    /// Raw bit errors.
    pub rates: ErrorRates,
    /// Factors of the error rate by page type, from the lowest.
    pub page_types: Vec<f64>,
    /// The share by which the first and last page of a block have more errors than the mean of its pages.
    pub layer_spread: f64,
    /// Standard deviation of the logarithm of the error rate from block to block.
    pub block_spread: f64,
    /// The same from die to die.
    pub die_spread: f64,
    /// Error correction.
    pub correction: Correction,
    /// Reading again at other voltages.
    pub retries: Retries,
    /// Erases that a block is rated for.
    pub rated: u32,
    /// The share by which an erase takes longer after the rated erases; proportional before and after.
    pub erase_growth: f64,
    /// Operations that fail.
    pub failures: Failures,
    /// The share of the correctable error rate at which blocks are rewritten; `None` is never.
    pub refresh: Option<f64>,
    /// The interval in which every block is read once, to find blocks near the correctable limit; `None` is never.
    pub scrub: Option<Span>,
    /// The state at the start.
    pub life: Life,
}

/// Reading again at other voltages.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Retries {
    /// The highest number of retries.
    pub steps: u32,
    /// The share of the errors of shifted voltages that a step leaves.
    pub keeps: f64,
}

/// Operations that fail with wear.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Failures {
    /// Share of blocks that fail to be erased in the rated erases.
    pub erase: f64,
    /// Share of blocks in which a program fails in the rated erases.
    pub program: f64,
    /// Exponent with which both grow; 1 is a constant rate, more is wear.
    pub shape: f64,
}

impl Failures {
    /// The share of blocks that fail within `erases` erases, each of which made room for programs of all pages.
    pub fn within(&self, erases: f64, rated: u32) -> f64 {
        -libm::expm1(-self.weight() * libm::pow(erases / f64::from(rated), self.shape))
    }

    /// The erases that a block survives that is weaker than a share of 1 - `draw` of the blocks: the inverse of
    /// [`Failures::within`].
    pub(crate) fn survived(&self, draw: f64, rated: u32) -> f64 {
        f64::from(rated) * libm::pow(-libm::log1p(-draw) / self.weight(), 1.0 / self.shape)
    }

    /// The cumulative hazard at the rated erases.
    fn weight(&self) -> f64 {
        -libm::log1p(-self.erase) - libm::log1p(-self.program)
    }

    /// The probability that a block that has survived `erases` erases does not survive the next.
    pub fn of_next(&self, share: f64, erases: u32, rated: u32) -> f64 {
        let hazard = |erases: f64| libm::pow(erases / f64::from(rated), self.shape);
        let step = hazard(f64::from(erases) + 1.0) - hazard(erases.into());
        -libm::expm1(libm::log1p(-share) * step)
    }
}

impl Aging {
    /// The time of an erase beyond that of a new block.
    pub fn erase_longer(&self, erase: Span, erases: u32) -> Span {
        let share = self.erase_growth * f64::from(erases) / f64::from(self.rated);
        Span::from_ns(libm::round(erase.ns() as f64 * share) as u64)
    }

    /// The error rate of a page at the retry `step`, of which `floor` is of wear and `shift` of shifted voltages.
    pub fn rate_at(&self, (floor, shift): (f64, f64), step: u32) -> f64 {
        (floor + shift * libm::pow(self.retries.keeps, step.into())).min(0.5)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The probabilities of each erase multiply to the share of the rated life, whatever the shape.
    #[test]
    fn failures_of_single_erases_make_up_the_share() {
        for (share, shape, rated) in [(0.02, 3.0, 1_000), (0.3, 1.0, 500), (0.5, 6.0, 50)] {
            let failures = Failures { erase: share, program: 0.0, shape };
            let survives: f64 =
                (0..rated).map(|erases| 1.0 - failures.of_next(failures.erase, erases, rated)).product();
            assert!((1.0 - survives - share).abs() < 1e-9, "{survives} survive, and the share is {share}");
        }
        let none = Failures { erase: 0.0, program: 0.0, shape: 3.0 };
        assert_eq!(none.of_next(0.0, 5_000, 1_000), 0.0);
    }

    #[test]
    fn a_block_that_is_worn_fails_sooner() {
        let failures = Failures { erase: 0.02, program: 0.0, shape: 3.0 };
        let at = |erases| failures.of_next(0.02, erases, 3_000);
        assert!(at(0) < at(1_000) && at(1_000) < at(3_000) && at(3_000) < at(9_000));
    }
}
