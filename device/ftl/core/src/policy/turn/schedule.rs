//! Windows by schedule (TeaFA, Li 3.2.3): drives of an array take turns, each for a window. With ranges (Li 6.2, Table 6.1) a drive
//! has a turn with each of them, at different times.

use nandscape_sim::{Span, Time};

use super::TurnPolicy;

/// See the file. Window w begins w x length after the epoch; range r has its turn in it if (w + r) mod width is the position.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Schedule {
    /// Drives that take turns, at least one.
    pub width: u16,
    /// The place of this drive among them.
    pub position: u16,
    /// Ranges, at least one.
    pub ranges: u16,
    /// The length of a window, which is not zero.
    pub length: Span,
    /// Whether it is at least as long as the drive's space permits: it needs free space when it begins.
    pub is_long: bool,
    /// When window 0 begins, in nanoseconds of the drive's time; it may be before that begins.
    pub epoch: i128,
}

impl Schedule {
    /// The number of the window at a time, and when it ends.
    fn window(&self, now: Time) -> (i128, i128) {
        let length = i128::from(self.length.ns());
        let number = (i128::from(now.ns()) - self.epoch).div_euclid(length);
        (number, self.epoch + (number + 1) * length)
    }

    /// Whether a range has its turn.
    #[inline]
    pub fn is_open(&self, range: u16, now: Time) -> bool {
        let (number, _) = self.window(now);
        let turn = (number + i128::from(range)).rem_euclid(i128::from(self.width));
        turn == i128::from(self.position)
    }
}

impl TurnPolicy for Schedule {
    fn left(&self, range: u16, now: Time) -> Option<Span> {
        if self.width == 1 {
            return None;
        }
        let (_, ends) = self.window(now);
        let left = u64::try_from(ends - i128::from(now.ns())).unwrap_or(u64::MAX);
        Some(if self.is_open(range, now) { Span::from_ns(left) } else { Span::ZERO })
    }

    fn next_turn(&self, now: Time) -> Option<Time> {
        if self.width == 1 {
            return None;
        }
        let (_, mut ends) = self.window(now);
        // Some range has a turn within as many windows as drives.
        for _ in 0..self.width {
            let begins = Time::from_ns(u64::try_from(ends).ok()?);
            if (0..self.ranges).any(|range| self.is_open(range, begins)) {
                return Some(begins);
            }
            ends += i128::from(self.length.ns());
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(width: u16, position: u16, ranges: u16, epoch: i128) -> Schedule {
        Schedule { width, position, ranges, length: Span::from_ms(100), is_long: false, epoch }
    }

    fn at(ms: u64) -> Time {
        Time::from_ns(ms * 1_000_000)
    }

    #[test]
    fn one_drive_has_its_turn_at_a_time() {
        for epoch in [0, -70_000_000, 1_000_000_000_030_000_000] {
            for ms in [0, 99, 100, 370, 1_000] {
                let open = (0..4).filter(|position| schedule(4, *position, 1, epoch).is_open(0, at(ms)));
                assert_eq!(open.count(), 1, "epoch {epoch}, {ms} ms");
            }
        }
        let second = schedule(4, 1, 1, 0);
        assert_eq!((second.left(0, at(130)), second.left(0, at(200))), (Some(Span::from_ms(70)), Some(Span::ZERO)));
        assert_eq!(second.next_turn(at(0)), Some(at(100)));
        assert_eq!(second.next_turn(at(100)), Some(at(500)));
        // The epoch may be to come.
        assert_eq!(schedule(4, 1, 1, 1_000_000_000).next_turn(at(0)), Some(at(300)));
    }

    /// Li, Table 6.1: eight drives and ranges; in each window each drive cleans one range, and no range is cleaned by two.
    #[test]
    fn with_ranges_each_drive_has_one_at_a_time_and_each_range_one_drive() {
        for window in 0..20 {
            for of in 0..8 {
                let now = at(window * 100 + 1);
                let ranges = (0..8).filter(|range| schedule(8, of, 8, 0).is_open(*range, now));
                assert_eq!(ranges.count(), 1);
                let drives = (0..8).filter(|drive| schedule(8, *drive, 8, 0).is_open(of, now));
                assert_eq!(drives.count(), 1);
            }
        }
        assert_eq!(schedule(8, 3, 8, 0).next_turn(at(50)), Some(at(100)));
    }

    #[test]
    fn a_drive_alone_may_always_work() {
        let alone = schedule(1, 0, 1, 5);
        assert_eq!((alone.left(0, at(3)), alone.next_turn(at(3))), (None, None));
    }
}
