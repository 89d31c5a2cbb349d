//! When drives have their windows, from the schedules in force.

use std::collections::VecDeque;

use nandscape_layers_array::{Array, Schedule};
use nandscape_sim::Time;

use super::rows::Row;

/// Schedules that are kept, the newest.
const MOST: usize = 4_096;
/// The most windows of a row: a picture cannot show more.
const MOST_WINDOWS: usize = 2_000;

/// The turns that drives take.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Turns {
    /// The place of each drive in the order; drives beyond these are spares.
    pub places: Vec<usize>,
    /// Ranges of the logical blocks with separate windows: a drive has each further range's a window earlier. 1 is none.
    pub ranges: usize,
}

impl Turns {
    /// Those of the members of an array; `None` if they have no windows.
    pub(crate) fn of(array: &Array) -> Option<Turns> {
        let ranges = usize::from(array.config().ranges).max(1);
        array.turns().map(|places| Turns { places, ranges })
    }

    /// Which window of a cycle a row has. `None` for spares, and for drives whose ranges share planes: they have each window, for one
    /// range or another.
    fn window_of(&self, row: Row) -> Option<usize> {
        let (width, place) = (self.places.len(), *self.places.get(row.drive)?);
        match (row.range, self.ranges) {
            (_, 0 | 1) => Some(place),
            (Some(range), ranges) if usize::from(range) < ranges => {
                Some((place + width - usize::from(range) % width) % width)
            }
            _ => None,
        }
    }
}

/// The schedules of a run.
pub(super) struct Schedules {
    turns: Turns,
    /// From when each was in force, up to the next.
    changes: VecDeque<(Time, Schedule)>,
    has_lost: bool,
}

impl Schedules {
    pub(super) fn new(turns: Turns) -> Schedules {
        Schedules { turns, changes: VecDeque::new(), has_lost: false }
    }

    /// The one in force now.
    pub(super) fn at(&mut self, now: Time, schedule: Option<Schedule>) {
        let Some(schedule) = schedule.filter(|schedule| !schedule.length.is_zero()) else { return };
        if self.changes.back().is_some_and(|(_, last)| *last == schedule) {
            return;
        }
        if self.changes.len() == MOST {
            self.changes.pop_front();
            self.has_lost = true;
        }
        self.changes.push_back((now, schedule));
    }

    /// The nanoseconds of a cycle of windows, a window of each drive.
    pub(super) fn cycle_ns(&self) -> Option<u64> {
        let (_, schedule) = self.changes.back()?;
        Some(schedule.length.ns() * self.turns.places.len() as u64)
    }

    /// Begins and ends of the windows of a row between two times, in nanoseconds of the simulation. Empty where schedules of that time were
    /// dropped, and where there are too many windows for a picture.
    pub(super) fn windows(&self, row: Row, from: Time, to: Time) -> Vec<(u64, u64)> {
        let Some(window) = self.turns.window_of(row) else { return Vec::new() };
        if self.has_lost && self.changes.front().is_some_and(|(first, _)| from < *first) {
            return Vec::new();
        }
        let mut windows: Vec<(u64, u64)> = Vec::new();
        let ends = self.changes.iter().skip(1).map(|(next, _)| *next).chain([to]);
        for ((begun, schedule), end) in self.changes.iter().zip(ends) {
            let within = (begun.max(&from).ns(), end.min(to).ns());
            for (start, end) in turns_of(*schedule, window as u64, self.turns.places.len() as u64, within) {
                match windows.last_mut() {
                    // A turn that continues under another schedule.
                    Some(last) if last.1 == start => last.1 = end,
                    _ => windows.push((start, end)),
                }
                if windows.len() > MOST_WINDOWS {
                    return Vec::new();
                }
            }
        }
        windows
    }
}

/// Every `width`th window of a schedule, from number `window` on, cut to the time between `from` and `to`.
fn turns_of(schedule: Schedule, window: u64, width: u64, (from, to): (u64, u64)) -> impl Iterator<Item = (u64, u64)> {
    let (length, since) = (i128::from(schedule.length.ns()), i128::from(schedule.since.ns()));
    let (width, window) = (i128::from(width), i128::from(window));
    // The last turn that began before `from`, which may last beyond it.
    let first = (i128::from(from) - since - window * length).div_euclid(length * width);
    let begins = (first..).map(move |turn| since + (window + turn * width) * length);
    let within = begins.take_while(move |begin| *begin < i128::from(to));
    let cut = move |begin: i128| (begin.max(i128::from(from)), (begin + length).min(i128::from(to)));
    // Those that are left lie between the two times, and so fit.
    within.map(cut).filter(|(begin, end)| begin < end).map(|(begin, end)| (begin as u64, end as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_sim::Span;
    use proptest::prelude::*;

    const fn row(drive: usize, range: Option<u8>) -> Row {
        Row { drive, range }
    }

    fn schedule(since: u64, length: u64) -> Schedule {
        Schedule { since: Time::from_ns(since), length: Span::from_ns(length) }
    }

    fn of(turns: Turns, changes: &[(u64, Schedule)], of: Row, from: u64, to: u64) -> Vec<(u64, u64)> {
        let mut schedules = Schedules::new(turns);
        changes.iter().for_each(|(at, schedule)| schedules.at(Time::from_ns(*at), Some(*schedule)));
        schedules.windows(of, Time::from_ns(from), Time::from_ns(to))
    }

    #[test]
    fn drives_and_ranges_take_turns() {
        let turns = |ranges| Turns { places: vec![0, 1, 2, 3], ranges };
        let always = [(0, schedule(0, 100))];
        assert_eq!(of(turns(1), &always, row(1, None), 150, 620), [(150, 200), (500, 600)]);
        // Range r has its turn in window w if (w + r) mod 4 is the place.
        assert_eq!(of(turns(4), &always, row(1, Some(3)), 0, 400), [(200, 300)]);
        assert_eq!(of(turns(4), &always, row(1, None), 0, 400), []);
        assert_eq!(of(turns(1), &always, row(4, None), 0, 400), [], "a spare");
    }

    #[test]
    fn a_turn_goes_on_under_another_schedule() {
        let changes = [(0, schedule(0, 100)), (50, schedule(0, 80)), (60, schedule(0, 40))];
        let turns = Turns { places: vec![0, 1], ranges: 1 };
        assert_eq!(of(turns.clone(), &changes, row(0, None), 0, 200), [(0, 60), (80, 120), (160, 200)]);
        assert_eq!(of(turns, &changes[1..], row(0, None), 0, 70), [(50, 60)], "none before there were any");
    }

    proptest! {
        /// At each instant the drive whose turn it is follows from a division.
        #[test]
        fn windows_are_those_of_the_formula(since in 0u64..5_000, length in 1u64..400, from in 0u64..5_000, span in 0u64..3_000, width in 1usize..5) {
            let turns = Turns { places: (0..width).collect(), ranges: 1 };
            let all: Vec<_> = (0..width).map(|drive| of(turns.clone(), &[(0, schedule(since, length))], row(drive, None), from, from + span)).collect();
            for at in from..from + span {
                let turn = (at as i128 - since as i128).div_euclid(i128::from(length)).rem_euclid(width as i128) as usize;
                for (drive, windows) in all.iter().enumerate() {
                    let is_open = windows.iter().any(|(begin, end)| (*begin..*end).contains(&at));
                    prop_assert_eq!(is_open, drive == turn, "{} of {} at {}", drive, width, at);
                }
            }
        }
    }
}
