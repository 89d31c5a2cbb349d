//! Counts of the effects of aging, for reports.

use std::collections::BTreeMap;

/// Bins per decade of raw bit error rates.
const BINS: f64 = 4.0;

/// The effects of aging on flash operations.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct AgingCounts {
    /// Reads by the retries that they took, from none on.
    pub retries: Vec<u64>,
    /// Reads that could not be corrected after all retries; not among `retries`.
    pub uncorrectable: u64,
    /// Programs that failed.
    pub failed_programs: u64,
    /// Erases that failed.
    pub failed_erases: u64,
    /// Reads of pages for their errors, among all others.
    pub scrub_reads: u64,
    /// Reads by the raw bit error rate of the first attempt, in quarters of a decade: `-9` is from 10^(-9/4) on.
    pub rates: BTreeMap<i32, u64>,
    /// The sum of those rates.
    pub rate_sum: f64,
    /// The largest of them.
    pub rate_max: f64,
}

impl AgingCounts {
    pub(super) fn rate(&mut self, rber: f64) {
        *self.rates.entry(libm::floor(libm::log10(rber) * BINS) as i32).or_default() += 1;
        self.rate_sum += rber;
        self.rate_max = self.rate_max.max(rber);
    }

    pub(super) fn retried(&mut self, retries: u32) {
        let retries = retries as usize;
        if self.retries.len() <= retries {
            self.retries.resize(retries + 1, 0);
        }
        self.retries[retries] += 1;
    }

    /// Reads.
    pub fn reads(&self) -> u64 {
        self.rates.values().sum()
    }

    /// The lower end of a bin of `rates`.
    pub fn lower_end(bin: i32) -> f64 {
        libm::pow(10.0, f64::from(bin) / BINS)
    }

    /// The counts of two groups of channels together.
    pub fn plus(mut self, other: &AgingCounts) -> AgingCounts {
        self.retries.resize(self.retries.len().max(other.retries.len()), 0);
        self.retries.iter_mut().zip(&other.retries).for_each(|(sum, count)| *sum += count);
        other.rates.iter().for_each(|(bin, count)| *self.rates.entry(*bin).or_default() += count);
        self.uncorrectable += other.uncorrectable;
        self.failed_programs += other.failed_programs;
        self.failed_erases += other.failed_erases;
        self.scrub_reads += other.scrub_reads;
        self.rate_sum += other.rate_sum;
        self.rate_max = self.rate_max.max(other.rate_max);
        self
    }
}
