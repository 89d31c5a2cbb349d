//! Division by a number that is known once and used millions of times: a multiplication instead.

/// A divisor that is not zero.
#[derive(Copy, Clone, Debug)]
pub struct Divisor {
    divisor: u32,
    /// (2^64 - 1) / divisor, rounded down. Its product with the dividend plus one is exact in the upper half for every
    /// 32-bit dividend: it falls short of (dividend + 1) / divisor by less than 1 / divisor.
    magic: u64,
}

impl Divisor {
    /// Prepares division by `divisor`.
    ///
    /// # Panics
    /// When `divisor` is zero.
    pub const fn new(divisor: u32) -> Divisor {
        assert!(divisor > 0, "division by zero");
        Divisor { divisor, magic: u64::MAX / divisor as u64 }
    }

    /// The number divided by.
    pub const fn get(self) -> u32 {
        self.divisor
    }

    /// `dividend / divisor`.
    #[inline]
    pub const fn quotient(self, dividend: u32) -> u32 {
        ((self.magic as u128 * (dividend as u128 + 1)) >> 64) as u32
    }

    /// `dividend % divisor`.
    #[inline]
    pub const fn remainder(self, dividend: u32) -> u32 {
        dividend - self.quotient(dividend) * self.divisor
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn divides_exactly(dividend in any::<u32>(), divisor in prop_oneof![1u32..70, any::<u32>()]) {
            let divisor = divisor.max(1);
            let prepared = Divisor::new(divisor);
            for dividend in [dividend, 0, divisor - 1, divisor, u32::MAX, u32::MAX / divisor * divisor] {
                prop_assert_eq!(prepared.quotient(dividend), dividend / divisor);
                prop_assert_eq!(prepared.remainder(dividend), dividend % divisor);
            }
        }
    }
}
