//! Cut points: when, what loses power, for how long.
//!
//! Points are any iterator, so that a subject may draw them from the random numbers of its load.

use std::collections::VecDeque;

use nandscape_sim::{Rng, Span};

/// The time from a command to a cut while it is under way.
const UNDER_WAY: Span = Span::from_us(20);

/// What loses power.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Cut {
    /// All drives; the host lives on.
    Drives,
    /// One of several drives, which returns; the host lives on.
    Drive(usize),
    /// One of several drives, which stays away until the next restart or for good.
    Member(usize),
    /// The host, as by `kill -9`; drives keep power. A restart and a check follow.
    Host,
    /// All drives and the host. A restart and a check follow.
    All,
}

impl Cut {
    /// Whether the host ends.
    pub fn ends_host(self) -> bool {
        matches!(self, Cut::Host | Cut::All)
    }

    pub(crate) fn name(self) -> String {
        match self {
            Cut::Drives => "the drives".to_owned(),
            Cut::Host => "the host".to_owned(),
            Cut::Drive(number) | Cut::Member(number) => format!("drive {number}"),
            Cut::All => "the drives and the host".to_owned(),
        }
    }
}

/// A cut point.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Point {
    /// The command that comes first, counted from 1 since the host began to open or since the last point. `None`: time alone counts.
    pub command: Option<u64>,
    /// Simulated time since then, or since the load began or the last point ended.
    pub after: Span,
    /// How much longer the cut waits for the first acknowledgement of this life. If none comes, the exploration fails. Zero: it does
    /// not wait, and none is needed.
    pub patience: Span,
    /// What loses power.
    pub cut: Cut,
    /// Simulated time until the next step: the pause of the load, or the time before the next host.
    pub off: Span,
}

impl Point {
    /// A point that needs no acknowledgement.
    pub fn new(after: Span, cut: Cut, off: Span) -> Point {
        Point { command: None, after, patience: Span::ZERO, cut, off }
    }

    /// A point while a command is under way. It may come while the host opens.
    pub fn at_command(number: u64, cut: Cut, off: Span) -> Point {
        Point { command: Some(number), ..Point::new(UNDER_WAY, cut, off) }
    }
}

/// Lives of hosts that end at random times, with cuts of the drives alone before.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Lives {
    /// How many; each ends with [`Cut::All`].
    pub lives: u64,
    /// Cuts of the drives alone in a life: fewer than this, at random. Zero: none.
    pub blinks: u64,
    /// The longest time before each.
    pub blink_within: Span,
    /// The longest time from the last of them to the end of the life.
    pub within: Span,
    /// Simulated time from the end of a life to the next host.
    pub off: Span,
}

impl Lives {
    /// The points, in steps of a microsecond.
    pub fn points(self, mut rng: Rng) -> impl Iterator<Item = Point> {
        let mut of_life = VecDeque::new();
        let mut left = self.lives;
        std::iter::from_fn(move || {
            if of_life.is_empty() && left > 0 {
                left -= 1;
                let mut within = |most: Span| Span::from_us(rng.below((most.ns() / 1_000).max(1)));
                let blinks = if self.blinks == 0 { 0 } else { within(Span::from_us(self.blinks)).ns() / 1_000 };
                for _ in 0..blinks {
                    of_life.push_back(Point::new(within(self.blink_within), Cut::Drives, Span::ZERO));
                }
                of_life.push_back(Point::new(within(self.within), Cut::All, self.off));
            }
            of_life.pop_front()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_sim::Seed;

    #[test]
    fn lives_have_the_points_that_the_seed_draws() {
        let ms = Span::from_ms;
        let lives = Lives { lives: 20, blinks: 4, blink_within: ms(60), within: ms(120), off: ms(500) };
        let points: Vec<Point> = lives.points(Seed::new(3).rng()).collect();
        assert_eq!(points, lives.points(Seed::new(3).rng()).collect::<Vec<_>>());
        assert_eq!(points.iter().filter(|point| point.cut == Cut::All).count(), 20);
        assert_eq!(points.last().map(|point| (point.cut, point.off)), Some((Cut::All, ms(500))));
        assert!(points.iter().all(|point| point.after < if point.cut == Cut::All { ms(120) } else { ms(60) }));
        let blinks = points.split_inclusive(|point| point.cut == Cut::All).map(<[Point]>::len);
        assert_eq!(blinks.collect::<std::collections::BTreeSet<_>>(), (1..=4).collect());
        let without = Lives { blinks: 0, ..lives };
        assert!(without.points(Seed::new(3).rng()).all(|point| point.cut == Cut::All));
    }
}
