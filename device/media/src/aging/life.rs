//! The state of the flash after a life before the run: erases of each block, blocks that went bad, the age of the data,
//! and reads since then.
//!
//! Left out: the order in which an FTL would have worn the blocks, and that good blocks would have taken over the writes of bad ones.

use nandscape_sim::{Rng, Span};

/// A life before the run.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Life {
    /// Mean erases of a block.
    pub cycles: f64,
    /// Standard deviation of the erases, as a share of their mean.
    pub spread: f64,
    /// The time in which they were made.
    pub age: Span,
    /// The time since then without power or writes, through which all data ages.
    pub shelf: Span,
    /// Mean reads of each page of flash on each day of `age`.
    pub reads_a_day: f64,
    /// Bytes that flash programmed for each byte that hosts wrote.
    pub amplification: f64,
}

impl Life {
    /// No life before the run: new flash.
    pub const NONE: Life =
        Life { cycles: 0.0, spread: 0.0, age: Span::ZERO, shelf: Span::ZERO, reads_a_day: 0.0, amplification: 1.0 };

    /// Whether it is no life.
    pub fn is_none(&self) -> bool {
        self.cycles == 0.0 && self.age.is_zero() && self.shelf.is_zero()
    }

    /// Erases of a block, drawn from a normal distribution.
    pub(crate) fn draw_erases(&self, rng: &mut Rng) -> u32 {
        libm::round(self.cycles * (1.0 + self.spread * rng.normal())).clamp(0.0, f64::from(u32::MAX)) as u32
    }

    /// For how long data of this age has been read.
    pub(crate) fn reads_of(&self, age: Span, pages: u32) -> u32 {
        let days = age.saturating_sub(self.shelf).as_s() / 86_400.0;
        libm::round(days * self.reads_a_day * f64::from(pages)).min(f64::from(u32::MAX)) as u32
    }

    /// How long ago the data of a block was written. Blocks are rewritten at random, `cycles` times in `age` on
    /// average. The time since the last write is therefore exponential, and not longer than the whole life.
    pub(crate) fn draw_age(&self, rng: &mut Rng) -> Span {
        let age = self.age.ns() as f64;
        let draw = rng.unit();
        let since = match self.cycles > 0.0 && age > 0.0 {
            true => {
                let interval = age / self.cycles;
                -interval * libm::log1p(draw * libm::expm1(-age / interval))
            }
            false => age,
        };
        self.shelf + Span::from_ns(libm::round(since) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_sim::Seed;

    const DAY: u64 = 86_400;

    #[test]
    fn erases_have_their_mean_and_their_spread() {
        let life = Life { cycles: 1_000.0, spread: 0.1, ..Life::NONE };
        let mut rng = Seed::new(3).rng();
        let drawn: Vec<f64> = (0..20_000).map(|_| f64::from(life.draw_erases(&mut rng))).collect();
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        let variance = drawn.iter().map(|erases| (erases - mean).powi(2)).sum::<f64>() / drawn.len() as f64;
        assert!((mean - 1_000.0).abs() < 4.0 && (variance.sqrt() - 100.0).abs() < 3.0, "{mean}, {variance}");
        assert_eq!(Life::NONE.draw_erases(&mut rng), 0);
    }

    /// Data was read only while the drive had power.
    #[test]
    fn data_was_read_for_as_long_as_it_was_there() {
        let life = Life { shelf: Span::from_s(100 * DAY), reads_a_day: 0.5, ..Life::NONE };
        assert_eq!(life.reads_of(Span::from_s(103 * DAY), 64), 96);
        assert_eq!(life.reads_of(Span::from_s(100 * DAY), 64), 0);
    }

    /// The mean of an exponential time, cut off at the age.
    #[test]
    fn data_is_as_old_as_random_writes_leave_it() {
        for cycles in [0.5, 3.0, 500.0] {
            let age = Span::from_s(500 * DAY);
            let life = Life { cycles, age, shelf: Span::from_s(DAY), ..Life::NONE };
            let mut rng = Seed::new(4).rng();
            let drawn: Vec<f64> = (0..20_000).map(|_| life.draw_age(&mut rng).as_s() / DAY as f64 - 1.0).collect();
            let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
            let expected = 500.0 * (1.0 / cycles - 1.0 / libm::expm1(cycles));
            assert!((mean / expected - 1.0).abs() < 0.04, "{cycles} cycles: {mean} days instead of {expected}");
            assert!(drawn.iter().all(|days| (0.0..=500.0).contains(days)));
        }
        let never_written = Life { age: Span::from_s(DAY), ..Life::NONE };
        assert_eq!(never_written.draw_age(&mut Seed::new(5).rng()), Span::from_s(DAY));
    }
}
