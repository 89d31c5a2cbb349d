//! Reads before writes: on flash a read takes tens of microseconds, and a program hundreds. A write goes after some reads, so that none
//! starves.

use std::collections::VecDeque;

use nandscape_sim::Time;

use super::Scheduler;
use crate::request::Request;

/// Reads that go before a write that waits.
const BEFORE_A_WRITE: u32 = 16;

/// See the file.
#[derive(Default)]
pub struct SsdAware {
    reads: VecDeque<u64>,
    others: VecDeque<u64>,
    /// Reads that have gone while a write waited.
    passed: u32,
}

impl Scheduler for SsdAware {
    fn push(&mut self, key: u64, request: &Request) {
        if request.is_read { self.reads.push_back(key) } else { self.others.push_back(key) }
    }

    fn pop(&mut self, _: Time) -> Option<u64> {
        let is_due = self.passed >= BEFORE_A_WRITE || self.reads.is_empty();
        if is_due && let Some(key) = self.others.pop_front() {
            self.passed = 0;
            return Some(key);
        }
        self.passed += u32::from(!self.others.is_empty());
        self.reads.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::request;
    use super::*;

    #[test]
    fn reads_go_first_and_writes_go_at_last() {
        let mut scheduler = SsdAware::default();
        (0..4).for_each(|key| scheduler.push(key, &request(false)));
        (100..140).for_each(|key| scheduler.push(key, &request(true)));
        let order: Vec<u64> = std::iter::from_fn(|| scheduler.pop(Time::from_ns(0))).collect();
        let places: Vec<usize> = (0..4).map(|key| order.iter().position(|at| *at == key).unwrap()).collect();
        assert_eq!(places, [16, 33, 42, 43]);
    }
}
