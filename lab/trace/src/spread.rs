//! Spreads requests with times in whole seconds over their second. The n requests of a second arrive in their order,
//! the k-th of them (from 0) after k/n of the second. The rate within a second is constant, and the first request keeps
//! its time.

use std::collections::VecDeque;

use crate::record::Record;

const SECOND_NS: u64 = 1_000_000_000;

/// The most requests of one second; a file with more is not a trace of disks.
pub(crate) const MOST: usize = 1 << 22;

/// Holds the requests of one second, and the first of the next.
#[derive(Debug, Default)]
pub(crate) struct Spread {
    held: VecDeque<Record>,
    /// The number of requests in the second, and of those returned so far.
    count: usize,
    given: usize,
    next: Option<Record>,
}

/// More requests of a second than can be held.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct TooMany;

impl Spread {
    /// The next request, taken from `source`, in which times do not decrease.
    pub(crate) fn next<E: From<TooMany>>(
        &mut self,
        mut source: impl FnMut() -> Result<Option<Record>, E>,
    ) -> Result<Option<Record>, E> {
        if self.held.is_empty() {
            let first = match self.next.take() {
                Some(first) => Some(first),
                None => source()?,
            };
            let Some(first) = first else { return Ok(None) };
            self.held.push_back(first);
            loop {
                match source()? {
                    Some(record) if record.at == first.at => self.held.push_back(record),
                    other => {
                        self.next = other;
                        break;
                    }
                }
                if self.held.len() > MOST {
                    return Err(TooMany.into());
                }
            }
            (self.count, self.given) = (self.held.len(), 0);
        }
        let Some(mut record) = self.held.pop_front() else { return Ok(None) };
        record.at += SECOND_NS * self.given as u64 / self.count as u64;
        self.given += 1;
        Ok(Some(record))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_lab_workload::Direction;

    #[test]
    fn the_requests_of_a_second_are_spread_over_it_in_their_order() {
        let seconds = [5, 5, 5, 6, 9, 9];
        let mut given = seconds.iter().zip(0..).map(|(s, offset)| Record {
            at: s * SECOND_NS,
            device: 0,
            direction: Direction::Read,
            offset,
            bytes: 1,
            after_flush: false,
        });
        let mut spread = Spread::default();
        let mut times = Vec::new();
        while let Some(record) = spread.next(|| Ok::<_, TooMany>(given.next())).unwrap() {
            assert_eq!(record.offset, times.len() as u64);
            times.push(record.at / 1_000_000);
        }
        assert_eq!(times, [5_000, 5_333, 5_666, 6_000, 9_000, 9_500]);
    }
}
