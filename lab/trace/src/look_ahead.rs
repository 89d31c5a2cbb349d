//! Sorts requests that are slightly out of order, with a look-ahead of fixed length. Equal times keep their order.

use std::collections::VecDeque;

use crate::record::Record;

/// Requests held at a time.
pub(crate) const HELD: usize = 4_096;

/// A request is out of order by more than the look-ahead.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct TooLate;

/// The look-ahead.
#[derive(Debug, Default)]
pub(crate) struct LookAhead {
    held: VecDeque<Record>,
    /// The time of the last request given.
    given: u64,
    /// Requests that followed a later one.
    late: u64,
}

impl LookAhead {
    /// Takes a request.
    pub(crate) fn put(&mut self, record: Record) -> Result<(), TooLate> {
        if self.held.back().is_none_or(|last| last.at <= record.at) && record.at >= self.given {
            self.held.push_back(record);
            return Ok(());
        }
        self.late += 1;
        if record.at < self.given {
            return Err(TooLate);
        }
        let place = self.held.partition_point(|held| held.at <= record.at);
        self.held.insert(place, record);
        Ok(())
    }

    /// Returns the earliest request, if enough are held or the input has ended.
    pub(crate) fn take(&mut self, ended: bool) -> Option<Record> {
        if !ended && self.held.len() <= HELD {
            return None;
        }
        let record = self.held.pop_front()?;
        self.given = record.at;
        Some(record)
    }

    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        self.held.len()
    }

    /// Requests that followed a later one, so far.
    pub(crate) fn late(&self) -> u64 {
        self.late
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_lab_workload::Direction;
    use proptest::prelude::*;

    fn through(times: &[u64]) -> Result<Vec<(u64, u64)>, TooLate> {
        let (mut ahead, mut out) = (LookAhead::default(), Vec::new());
        for (at, number) in times.iter().zip(0..) {
            ahead.put(Record {
                at: *at,
                device: 0,
                direction: Direction::Read,
                offset: number,
                bytes: 1,
                after_flush: false,
            })?;
            out.extend(ahead.take(false).map(|record| (record.at, record.offset)));
            assert!(ahead.held.len() <= HELD);
        }
        while let Some(record) = ahead.take(true) {
            out.push((record.at, record.offset));
        }
        Ok(out)
    }

    #[test]
    fn equal_times_keep_their_order() {
        assert_eq!(through(&[3, 1, 3, 1, 2]).unwrap(), [(1, 1), (1, 3), (2, 4), (3, 0), (3, 2)]);
    }

    #[test]
    fn it_reaches_as_far_as_it_holds() {
        let late_by = |by: u64| through(&(1..=by).chain([0]).collect::<Vec<u64>>());
        assert_eq!(late_by(HELD as u64).unwrap()[0], (0, HELD as u64));
        assert_eq!(late_by(HELD as u64 + 1), Err(TooLate));
    }

    proptest! {
        #[test]
        fn what_is_out_of_order_by_less_is_sorted_stably(times in prop::collection::vec(0u64..50, 0..300)) {
            let mut sorted: Vec<(u64, u64)> = times.iter().copied().zip(0..).collect();
            sorted.sort_by_key(|(at, _)| *at);
            prop_assert_eq!(through(&times).unwrap(), sorted);
        }
    }
}
