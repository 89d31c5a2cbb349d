//! Deallocations of a journal: for each unit the highest number of those that cover it. Neighbouring units of the same number are
//! one range, so that many deallocations of the whole drive cost no more than one.

use std::collections::BTreeMap;
use std::ops::Range;

/// See the file.
#[derive(Default)]
pub(super) struct Trims {
    /// By the first unit: the end, and the number.
    ranges: BTreeMap<u32, (u32, u64)>,
}

impl Trims {
    /// A deallocation. Numbers mostly arrive in ascending order; where they do not, the higher one stays.
    pub(super) fn add(&mut self, units: Range<u32>, sequence: u64) {
        if units.is_empty() {
            return;
        }
        self.split(units.start);
        self.split(units.end);
        let inside: Vec<(u32, (u32, u64))> =
            self.ranges.range(units.clone()).map(|(start, range)| (*start, *range)).collect();
        let mut at = units.start;
        for (start, (end, before)) in inside {
            if before > sequence {
                if at < start {
                    self.ranges.insert(at, (start, sequence));
                }
                at = end;
            } else {
                self.ranges.remove(&start);
            }
        }
        if at < units.end {
            self.ranges.insert(at, (units.end, sequence));
        }
    }

    /// Makes a range begin at `at` where one covers it.
    fn split(&mut self, at: u32) {
        if let Some((_, (end, sequence))) = self.ranges.range_mut(..at).next_back()
            && *end > at
        {
            let rest = (std::mem::replace(end, at), *sequence);
            self.ranges.insert(at, rest);
        }
    }

    /// The number of the last deallocation of a unit.
    pub(super) fn of(&self, unit: u32) -> Option<u64> {
        let (_, (end, sequence)) = self.ranges.range(..=unit).next_back()?;
        (unit < *end).then_some(*sequence)
    }

    pub(super) fn ranges(&self) -> impl Iterator<Item = (Range<u32>, u64)> {
        self.ranges.iter().map(|(start, (end, sequence))| (*start..*end, *sequence))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_sim::Seed;

    #[test]
    fn the_highest_number_of_each_unit_counts() {
        let mut rng = Seed::new(1).rng();
        for _ in 0..200 {
            let (mut trims, mut model) = (Trims::default(), [None; 40]);
            for _ in 0..30 {
                let (start, len, sequence) = (rng.below(40) as u32, rng.below(12) as u32, rng.below(50));
                let units = start..(start + len).min(40);
                trims.add(units.clone(), sequence);
                units.for_each(|unit| model[unit as usize] = model[unit as usize].max(Some(sequence)));
            }
            let found: Vec<Option<u64>> = (0..40).map(|unit| trims.of(unit)).collect();
            assert_eq!(found, model);
            let covered: usize = trims.ranges().map(|(units, _)| units.len()).sum();
            assert_eq!(covered, model.iter().flatten().count());
        }
    }
}
