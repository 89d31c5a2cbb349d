//! The numbers below a bound in random order, without a table.
//!
//! A bijection on the next power of two (multiply by an odd number, add, fold the upper half onto the lower: each step
//! can be undone). It is applied again and again until the result is below the bound, which is a bijection below the
//! bound.

use crate::rng::Rng;

/// A random order of the numbers below a bound.
#[derive(Clone, Debug)]
pub struct Permutation {
    bound: u64,
    mask: u64,
    shift: u32,
    keys: [(u64, u64); 3],
}

impl Permutation {
    /// A random order of the numbers below `bound`.
    ///
    /// # Panics
    /// When `bound` is zero.
    pub fn new(bound: u64, rng: &mut Rng) -> Permutation {
        assert!(bound > 0, "there is no number below zero");
        let bits = (u64::BITS - (bound - 1).leading_zeros()).max(1);
        let keys = std::array::from_fn(|_| (rng.bits() | 1, rng.bits()));
        Permutation { bound, mask: u64::MAX >> (u64::BITS - bits), shift: bits.div_ceil(2), keys }
    }

    /// The number at `index`, which is below the bound like the result.
    #[inline]
    pub fn at(&self, index: u64) -> u64 {
        debug_assert!(index < self.bound);
        let mut x = index;
        loop {
            for (odd, add) in self.keys {
                x = x.wrapping_mul(odd).wrapping_add(add) & self.mask;
                x ^= x >> self.shift;
            }
            if x < self.bound {
                return x;
            }
        }
    }

    /// The index of a number: the inverse.
    #[inline]
    pub fn index_of(&self, number: u64) -> u64 {
        debug_assert!(number < self.bound);
        let mut x = number;
        loop {
            for (odd, add) in self.keys.iter().rev() {
                // The fold shifts by at least half of the bits, so that folding again undoes it.
                x ^= x >> self.shift;
                x = x.wrapping_sub(*add).wrapping_mul(inverse(*odd)) & self.mask;
            }
            if x < self.bound {
                return x;
            }
        }
    }
}

/// The number that undoes a multiplication by `odd` modulo 2^64. Newton's method doubles the right bits, 3 at first.
const fn inverse(odd: u64) -> u64 {
    let mut inverse = odd;
    let mut step = 0;
    while step < 5 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse)));
        step += 1;
    }
    inverse
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seed;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_number_stands_once(bound in 1u64..3_000, seed in any::<u64>()) {
            let permutation = Permutation::new(bound, &mut Seed::new(seed).rng());
            let mut all: Vec<u64> = (0..bound).map(|index| permutation.at(index)).collect();
            prop_assert!(all.iter().zip(0..).all(|(number, index)| permutation.index_of(*number) == index));
            all.sort_unstable();
            prop_assert_eq!(all, (0..bound).collect::<Vec<_>>());
        }
    }
}
