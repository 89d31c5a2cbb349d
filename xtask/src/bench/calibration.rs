//! A fixed piece of work: a chain of integer operations, and a walk through memory in random order. Its time, measured
//! right before each run, relates figures of different machines, and shows when a machine was not idle.

use std::hint::black_box;

use serde::Serialize;

use crate::clock::cpu_s;

/// The time of the work, in CPU seconds.
#[derive(Copy, Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Calibration {
    /// The integer operations.
    pub(crate) integer_s: f64,
    /// The walk.
    pub(crate) memory_s: f64,
}

/// Multiplications and shifts, each dependent on the previous one.
const STEPS: u64 = 100_000_000;
/// Words of memory walked through: 64 MiB, more than the caches hold.
const WORDS: u32 = 1 << 24;
/// Steps of the walk.
const HOPS: u32 = 3_000_000;

/// Does the work.
pub(crate) fn measure() -> Calibration {
    let begun = cpu_s();
    black_box(chain(black_box(STEPS)));
    let integer_s = cpu_s() - begun;
    let ring = ring(WORDS);
    let begun = cpu_s();
    black_box(walk(&ring, black_box(HOPS)));
    Calibration { integer_s, memory_s: cpu_s() - begun }
}

fn chain(steps: u64) -> u64 {
    (0..steps).fold(1, |value: u64, step| {
        let mixed = (value ^ (value >> 29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed.wrapping_add(step)
    })
}

/// Each word names the next: one ring through all of them. A linear congruential step has full period for a power of
/// two when the increment is odd and the factor one more than a multiple of four.
fn ring(words: u32) -> Vec<u32> {
    (0..words).map(|word| word.wrapping_mul(1_664_525).wrapping_add(1_013_904_223) & (words - 1)).collect()
}

fn walk(ring: &[u32], hops: u32) -> u32 {
    (0..hops).fold(0, |at, _| ring[at as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ring_goes_through_every_word_once() {
        let ring = ring(1 << 10);
        assert_eq!(walk(&ring, 1 << 10), 0);
        assert!((1..1 << 10).all(|hops| walk(&ring, hops) != 0));
    }

    #[test]
    fn the_chain_is_the_same_work_everywhere() {
        assert_eq!(chain(3), chain(3));
        assert_ne!(chain(3), chain(4));
    }
}
