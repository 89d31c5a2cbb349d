//! The choice of an operation's record, as in YCSB.
//!
//! `zipfian` is YCSB's scrambled one: a rank is drawn from Zipf's distribution with the exponent 0.99 over 10^10 ranks,
//! independent of the number of records, and hashed onto the records. `latest` draws the rank over the existing
//! records, and counts back from the newest. The hash differs from YCSB's: other records are popular, with the same
//! popularity.

use nandscape_sim::Rng;
use nandscape_sim::rng::mix;

use super::mix::Choice;
use crate::distribution::Zipf;

/// The exponent of YCSB's zipfian constant.
pub(crate) const EXPONENT: f64 = 0.99;
/// The ranks of its scrambled zipfian generator.
pub(crate) const RANKS: u64 = 10_000_000_000;

/// Draws records.
pub struct Chooser {
    choice: Choice,
    zipf: Zipf,
    /// The number of records that `zipf` is for, if it changes.
    records: u64,
}

impl Chooser {
    /// One that draws so.
    pub fn new(choice: Choice) -> Chooser {
        Chooser { choice, zipf: Zipf::new(RANKS, EXPONENT), records: RANKS }
    }

    /// The number of a record among the last `room` of the `inserted` records. Inserts may continue, up to `space`
    /// records at a time.
    pub fn next(&mut self, rng: &mut Rng, inserted: u64, space: u64) -> u64 {
        let live = inserted.min(space);
        let oldest = inserted - live;
        match self.choice {
            Choice::Uniform => oldest + rng.below(live),
            Choice::Latest => {
                if self.records != live {
                    (self.records, self.zipf) = (live, Zipf::new(live, EXPONENT));
                }
                inserted - self.zipf.rank(rng)
            }
            // Records that do not exist yet are drawn again, so that the others keep their popularity as the table
            // grows.
            Choice::Zipfian => loop {
                let place = mix(self.zipf.rank(rng)) % space;
                if place < live {
                    return oldest + (place + space - oldest % space) % space;
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_sim::Seed;

    const DRAWS: u32 = 200_000;

    fn drawn(choice: Choice, inserted: u64, space: u64) -> Vec<u64> {
        let (mut chooser, mut rng) = (Chooser::new(choice), Seed::new(6).rng());
        (0..DRAWS).map(|_| chooser.next(&mut rng, inserted, space)).collect()
    }

    fn expect(what: &str, hits: usize, p: f64) {
        let (mean, deviation) = (f64::from(DRAWS) * p, libm::sqrt(f64::from(DRAWS) * p * (1.0 - p)));
        assert!((hits as f64 - mean).abs() < 5.0 * deviation, "{what}, seed 6: {hits} instead of {mean:.0}");
    }

    /// YCSB states the sum of 1/k^0.99 over 10^10 ranks as 26.46902820178302. The record of rank k has that share of the
    /// draws, and its part of what falls on all records alike.
    #[test]
    fn popular_records_have_the_shares_of_the_ten_billion_ranks() {
        let zeta = 26.469_028_201_783_02;
        let records = 1_000_000;
        let drawn = drawn(Choice::Zipfian, records, records);
        for rank in [1u64, 2, 3, 10] {
            let record = mix(rank) % records;
            let share = libm::pow(rank as f64, -EXPONENT) / zeta;
            let hits = drawn.iter().filter(|other| **other == record).count();
            expect(&format!("rank {rank}"), hits, share + (1.0 - share) * 1e-6);
        }
    }

    #[test]
    fn the_latest_have_the_shares_of_their_ranks() {
        let (inserted, space) = (10_000u64, 12_000);
        let drawn = drawn(Choice::Latest, inserted, space);
        let harmonic = |upto: u32| (1..=upto).map(|k| libm::pow(f64::from(k), -EXPONENT)).sum::<f64>();
        for upto in [1u32, 10, 100, 5_000] {
            let hits = drawn.iter().filter(|record| **record >= inserted - u64::from(upto)).count();
            expect(&format!("the latest {upto}"), hits, harmonic(upto) / harmonic(10_000));
        }
    }

    #[test]
    fn uniform_records_are_even_and_all_stay_among_those_there_are() {
        let drawn_uniform = drawn(Choice::Uniform, 1_000, 1_250);
        expect("the first half", drawn_uniform.iter().filter(|record| **record < 500).count(), 0.5);
        for choice in [Choice::Uniform, Choice::Latest, Choice::Zipfian] {
            for (inserted, space) in [(1, 1), (1_000, 1_250), (1_250, 1_250), (9_999, 1_250)] {
                let live = inserted - inserted.min(space)..inserted;
                assert!(drawn(choice, inserted, space).iter().all(|record| live.contains(record)), "{choice:?}");
            }
        }
    }
}
