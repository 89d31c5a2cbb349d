//! How many requests of an open load were outstanding when others arrived, and whether that number grows: then the load
//! exceeds the drive's rate. Left out: closed loads, which set their number of outstanding requests themselves.

use nandscape_sim::Time;

/// Blocks of arrivals that are counted separately; when there are twice as many, neighbours are merged.
const BLOCKS: usize = 64;
/// The least share of all requests that waits at the end of an overload.
const LEAST_SHARE: f64 = 0.01;
/// The least number of requests that waits at the end of an overload.
const LEAST: u64 = 32;

/// Outstanding requests as measured arrivals of open loads found them.
#[derive(Clone, Default, Debug)]
pub struct Backlog {
    arrived: u64,
    first: Time,
    last: Time,
    most: u64,
    at_end: u64,
    /// Sums of outstanding requests over `every` arrivals each, and over the arrivals that do not fill a block yet.
    blocks: Vec<u64>,
    every: u64,
    open: (u64, u64),
}

impl Backlog {
    /// A request arrives, and with it `outstanding` have not completed.
    pub fn arrived(&mut self, now: Time, outstanding: u64) {
        if self.arrived == 0 {
            (self.first, self.every) = (now, 1);
        }
        self.arrived += 1;
        (self.last, self.at_end, self.most) = (now, outstanding, self.most.max(outstanding));
        self.open = (self.open.0 + 1, self.open.1 + outstanding);
        if self.open.0 == self.every {
            self.blocks.push(self.open.1);
            self.open = (0, 0);
        }
        if self.blocks.len() == 2 * BLOCKS {
            self.blocks = self.blocks.chunks(2).map(|pair| pair.iter().sum()).collect();
            self.every *= 2;
        }
    }

    /// Requests that arrived.
    pub fn arrivals(&self) -> u64 {
        self.arrived
    }

    /// Arrivals a second; `None` of fewer than two, or where all came at the same time.
    pub fn asked_iops(&self) -> Option<f64> {
        let seconds = self.last.since(self.first).as_s();
        (seconds > 0.0).then(|| (self.arrived - 1) as f64 / seconds)
    }

    /// The most requests that were outstanding.
    pub fn most(&self) -> u64 {
        self.most
    }

    /// Requests outstanding when the last one arrived.
    pub fn at_end(&self) -> u64 {
        self.at_end
    }

    /// Whether the number of outstanding requests grows from each quarter of the arrivals to the next, from the second to
    /// the last by half or more, and those left at the end are no passing burst.
    pub fn grows(&self) -> bool {
        let quarter = self.blocks.len() / 4;
        if quarter == 0 || self.at_end < LEAST || (self.at_end as f64) < LEAST_SHARE * self.arrived as f64 {
            return false;
        }
        let sum = |blocks: &[u64]| blocks.iter().sum::<u64>() as f64;
        let of = |number: usize| sum(&self.blocks[number * quarter..(number + 1) * quarter]);
        let quarters = [of(0), of(1), of(2), of(3)];
        quarters.is_sorted() && quarters[3] > 1.5 * quarters[1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One arrival a microsecond; each finds `outstanding` requests.
    fn backlog(arrivals: u64, outstanding: impl Fn(u64) -> u64) -> Backlog {
        let mut backlog = Backlog::default();
        (0..arrivals).for_each(|index| backlog.arrived(Time::from_ns(index * 1_000), outstanding(index)));
        backlog
    }

    #[test]
    fn a_queue_that_grows_is_told_from_one_that_stands() {
        for arrivals in [1_000, 12_345, 1_000_000] {
            let growing = backlog(arrivals, |index| 8 + index / 10);
            assert!(growing.grows() && growing.at_end() == 8 + (arrivals - 1) / 10, "{arrivals} arrivals");
            assert!((growing.asked_iops().unwrap() - 1e6).abs() < 1.0);
            assert!(!backlog(arrivals, |index| 40 + index % 50).grows(), "{arrivals} arrivals");
        }
    }

    #[test]
    fn a_burst_is_no_overload() {
        assert!(!backlog(10_000, |index| if index % 1_000 < 100 { index % 1_000 } else { 3 }).grows());
        assert!(!backlog(3, |index| 100 * index).grows(), "too few to tell");
        assert_eq!(backlog(1, |_| 1).asked_iops(), None);
    }
}
