//! Reads before writes, and reads of idle chips before reads of busy ones: on flash a read takes tens of
//! microseconds. A program takes hundreds and blocks one chip. To prevent starvation, a write is sent after some
//! reads, and a read after some that arrived later.
//!
//! Chips are known if the predictor knows the flash; otherwise reads are sent in order of arrival. A read of several
//! pages counts at the chip of the first.

use std::collections::{BTreeMap, VecDeque};

use nandscape_sim::Time;

use super::Scheduler;
use crate::request::Request;

/// Reads that may precede a waiting write, and the read that has waited longest.
const BEFORE_ANOTHER: u32 = 16;

/// See the file.
#[derive(Default)]
pub struct SsdAware {
    /// Reads by their chips, each with its number in the order of arrival.
    reads: BTreeMap<Option<u32>, VecDeque<(u64, u64)>>,
    arrived: u64,
    others: VecDeque<u64>,
    /// Reads sent while a write waited.
    passed: u32,
    /// Reads sent before the one that has waited longest.
    overtook: u32,
}

impl SsdAware {
    /// The chip whose read is sent next.
    fn next_chip(&mut self, is_busy: &dyn Fn(u32) -> bool) -> Option<Option<u32>> {
        let first = |reads: &VecDeque<(u64, u64)>| reads.front().map_or(u64::MAX, |(number, _)| *number);
        let oldest = self.reads.iter().min_by_key(|(_, reads)| first(reads)).map(|(chip, _)| *chip)?;
        let idle = self.reads.iter().filter(|(chip, _)| chip.is_none_or(|chip| !is_busy(chip)));
        let of_idle = idle.min_by_key(|(_, reads)| first(reads)).map(|(chip, _)| *chip);
        let next = of_idle.filter(|_| self.overtook < BEFORE_ANOTHER).unwrap_or(oldest);
        self.overtook = if next == oldest { 0 } else { self.overtook + 1 };
        Some(next)
    }

    fn pop_read(&mut self, is_busy: &dyn Fn(u32) -> bool) -> Option<u64> {
        let chip = self.next_chip(is_busy)?;
        let reads = self.reads.get_mut(&chip)?;
        let (_, key) = reads.pop_front()?;
        if reads.is_empty() {
            self.reads.remove(&chip);
        }
        Some(key)
    }
}

impl Scheduler for SsdAware {
    fn push(&mut self, key: u64, request: &Request, chip: Option<u32>) {
        if request.is_read {
            self.reads.entry(chip).or_default().push_back((self.arrived, key));
            self.arrived += 1;
        } else {
            self.others.push_back(key);
        }
    }

    fn pop(&mut self, _: Time, is_busy: &dyn Fn(u32) -> bool) -> Option<u64> {
        let is_due = self.passed >= BEFORE_ANOTHER || self.reads.is_empty();
        if is_due && let Some(key) = self.others.pop_front() {
            self.passed = 0;
            return Some(key);
        }
        self.passed += u32::from(!self.others.is_empty());
        self.pop_read(is_busy)
    }

    fn puts_reads_first(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::request;
    use super::*;

    const AT: Time = Time::ZERO;

    #[test]
    fn reads_go_first_and_writes_go_at_last() {
        let mut scheduler = SsdAware::default();
        (0..4).for_each(|key| scheduler.push(key, &request(false), None));
        (100..140).for_each(|key| scheduler.push(key, &request(true), None));
        let order: Vec<u64> = std::iter::from_fn(|| scheduler.pop(AT, &|_| true)).collect();
        let places: Vec<usize> = (0..4).map(|key| order.iter().position(|at| *at == key).unwrap()).collect();
        assert_eq!(places, [16, 33, 42, 43]);
    }

    #[test]
    fn reads_of_idle_chips_go_before_those_of_busy_ones_which_do_not_starve() {
        let mut scheduler = SsdAware::default();
        for key in 0..3 {
            scheduler.push(key, &request(true), Some(7));
        }
        for key in 100..140 {
            scheduler.push(key, &request(true), Some(key as u32 % 4));
        }
        let busy = |chip| chip == 7;
        let order: Vec<u64> = (0..20).filter_map(|_| scheduler.pop(AT, &busy)).collect();
        let of_idle: Vec<u64> = (100..116).collect();
        assert_eq!(order[..16], of_idle, "in the order in which they came");
        assert_eq!(order[16..], [0, 116, 117, 118], "the one that has waited longest goes after 16");
        // Its chip is idle now: it arrived first.
        assert_eq!(scheduler.pop(AT, &|_| false), Some(1));
        // All are busy: the first arrival, rather than none.
        assert_eq!(scheduler.pop(AT, &|_| true), Some(2));
    }
}
