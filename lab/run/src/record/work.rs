//! The kinds of work of flash, and the time that dies or drives spend on each in an interval.

use super::intervals::Cell;

/// The kinds of work, by their names.
pub(super) const KINDS: [&str; 4] = ["read", "program", "gc", "erase"];

/// The kind of an operation.
pub(super) fn kind(name: &str) -> usize {
    match name {
        "read" => 0,
        "program" => 1,
        "erase" => 3,
        _ => 2,
    }
}

/// Nanoseconds at each kind of work, by the number of the thing; empty where none has worked.
#[derive(Clone, Default)]
pub(super) struct Busy<const N: usize = { KINDS.len() }>(Vec<[u64; N]>);

impl<const N: usize> Busy<N> {
    /// Adds some to one of `all` things.
    pub(super) fn add(&mut self, all: usize, number: usize, kind: usize, ns: u64) {
        self.0.resize(all, [0; N]);
        self.0[number][kind] += ns;
    }

    /// As parts per million of a whole, for a thing and a kind.
    pub(super) fn share(&self, number: usize, kind: usize, whole_ns: u128) -> u32 {
        parts_per_million(self.ns(number, kind), whole_ns)
    }

    pub(super) fn ns(&self, number: usize, kind: usize) -> u64 {
        self.0.get(number).map_or(0, |kinds| kinds[kind])
    }
}

impl<const N: usize> Cell for Busy<N> {
    fn merge(&mut self, next: Busy<N>) {
        self.0.resize(self.0.len().max(next.0.len()), [0; N]);
        for (mine, theirs) in self.0.iter_mut().zip(next.0) {
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine += theirs);
        }
    }
}

/// Rounded to the nearest; at least 1 if there was any work.
fn parts_per_million(busy_ns: u64, whole_ns: u128) -> u32 {
    const MILLION: u128 = 1_000_000;
    let parts = (u128::from(busy_ns) * MILLION + whole_ns / 2) / whole_ns;
    parts.clamp(u128::from(busy_ns > 0), MILLION) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_work_is_not_rounded_away() {
        assert_eq!(parts_per_million(0, 8_000), 0);
        assert_eq!(parts_per_million(1, 8_000_000_000), 1);
        assert_eq!(parts_per_million(40_000, 8_000_000_000), 5);
        assert_eq!(parts_per_million(4_000, 8_000), 500_000);
        assert_eq!(parts_per_million(9_000, 8_000), 1_000_000);
        // A day, whose nanoseconds times a million do not fit 64 bits.
        assert_eq!(parts_per_million(86_400_000_000_000, 86_400_000_000_000), 1_000_000);
    }
}
