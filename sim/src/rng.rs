//! Seeded randomness: the same seed gives the same numbers on any machine, for good.
//!
//! The generator is xoshiro256++; everything drawn from it here uses integers, IEEE arithmetic or `libm`, never the
//! platform's own mathematics. Golden values in the tests hold the streams fast. Left out: any source of entropy.

use rand_core::{Rng as _, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::time::Span;

/// Names a stream of random numbers. Children of a seed are independent of each other and of the order in which
/// they are requested.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Seed(u64);

impl Seed {
    /// The seed a user gave.
    pub const fn new(seed: u64) -> Seed {
        Seed(seed)
    }

    /// The number given to [`Seed::new`], or derived by the child functions.
    pub const fn value(self) -> u64 {
        self.0
    }

    /// The child for a named part.
    pub fn child(self, name: &str) -> Seed {
        // FNV-1a over the name, then mixed with the parent.
        let hash = name
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        Seed(mix(self.0 ^ mix(hash)))
    }

    /// The `index`-th child.
    pub fn nth(self, index: u64) -> Seed {
        Seed(mix(self.0.wrapping_add(mix(index.wrapping_add(1)))))
    }

    /// A generator at the start of this stream.
    pub fn rng(self) -> Rng {
        Rng { inner: Xoshiro256PlusPlus::seed_from_u64(self.0) }
    }
}

/// Stafford's variant 13 of the 64-bit finaliser: every input bit reaches every output bit.
pub const fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Rng {
    inner: Xoshiro256PlusPlus,
}

impl Rng {
    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.inner.next_u64()
    }

    /// A number below `bound`, all equally likely (Lemire's method).
    ///
    /// # Panics
    /// When `bound` is zero.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "there is no number below zero");
        loop {
            let product = u128::from(self.bits()) * u128::from(bound);
            let low = product as u64;
            if low >= bound || low >= bound.wrapping_neg() % bound {
                return (product >> 64) as u64;
            }
        }
    }

    /// A number in [0, 1) with 53 random bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Whether an event of the given probability happens.
    #[inline]
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// A span from the exponential distribution: the gap between the arrivals of a Poisson process.
    pub fn exponential(&mut self, mean_ns: f64) -> Span {
        let gap = -libm::log(1.0 - self.unit()) * mean_ns;
        Span::from_ns(libm::round(gap) as u64)
    }

    /// A number from the standard normal distribution (Marsaglia's polar method).
    pub fn normal(&mut self) -> f64 {
        loop {
            let (x, y) = (2.0 * self.unit() - 1.0, 2.0 * self.unit() - 1.0);
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                return x * libm::sqrt(-2.0 * libm::log(square) / square);
            }
        }
    }

    /// Puts `items` into random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If these change, every published result of the project changes with them.
    #[test]
    fn streams_are_the_golden_ones() {
        let mut rng = Seed::new(42).rng();
        let bits: Vec<u64> = (0..3).map(|_| rng.bits()).collect();
        assert_eq!(bits, GOLDEN_BITS);
        let below: Vec<u64> = (0..6).map(|_| rng.below(1_000)).collect();
        assert_eq!(below, GOLDEN_BELOW);
        let gaps: Vec<u64> = (0..4).map(|_| rng.exponential(1e6).ns()).collect();
        assert_eq!(gaps, GOLDEN_GAPS);
        let normals: Vec<u64> = (0..3).map(|_| rng.normal().to_bits()).collect();
        assert_eq!(normals, GOLDEN_NORMALS);
        assert_eq!((Seed::new(42).child("media").value(), Seed::new(42).nth(7).value()), GOLDEN_CHILDREN);
    }

    const GOLDEN_BITS: [u64; 3] = [15_021_278_609_987_233_951, 5_881_210_131_331_364_753, 18_149_643_915_985_481_100];
    const GOLDEN_BELOW: [u64; 6] = [701, 793, 588, 125, 605, 207];
    const GOLDEN_GAPS: [u64; 4] = [2_708_257, 819_934, 1_897_319, 1_139_455];
    const GOLDEN_NORMALS: [u64; 3] =
        [13_827_760_834_688_590_543, 4_597_557_239_375_184_418, 13_826_927_032_000_181_305];
    const GOLDEN_CHILDREN: (u64, u64) = (4_804_690_110_163_881_215, 3_422_949_151_222_215_498);

    #[test]
    fn below_is_uniform_and_exponential_has_its_mean() {
        let mut rng = Seed::new(1).rng();
        let mut counts = [0u32; 7];
        (0..70_000).for_each(|_| counts[rng.below(7) as usize] += 1);
        assert!(counts.iter().all(|&count| (9_600..10_400).contains(&count)), "{counts:?}");
        let mean = (0..100_000).map(|_| rng.exponential(1e4).ns()).sum::<u64>() / 100_000;
        assert!((9_850..10_150).contains(&mean), "{mean}");
    }
}
