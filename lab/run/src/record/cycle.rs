//! Collections of drives that take turns, by the time within a cycle of their windows: one cycle is a window of each drive. One
//! picture shows whether each drive keeps to its own window, over thousands of cycles.
//!
//! Left out: which reads met the collections; drives whose ranges have separate windows, which have several in a cycle.

use std::cell::RefCell;

use nandscape_layers_array::Schedule;
use nandscape_sim::trace::Event;
use nandscape_sim::{Span, Time};
use serde::Serialize;

use super::intervals::{Cell, Intervals};
use super::rows::Rows;
use super::work::kind;

/// Parts of a window, each with the collections of every drive.
const PARTS: usize = 48;
/// The length of an interval of a short run, for the length of windows over time.
const FIRST: Span = Span::from_us(100);

/// See the file.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Cycle {
    /// Windows of a cycle: one for each drive.
    pub windows: usize,
    /// Equal parts of a window.
    pub parts: usize,
    /// The window of each drive.
    pub positions: Vec<usize>,
    /// By drive, for each part of the cycle: the share of the time that the array of a plane was busy with collections, mean over all
    /// planes that are recorded and over all cycles; null for parts in which the run was at no time.
    pub busy: Vec<Vec<Option<f64>>>,
    /// How long the intervals of `length_ms` are.
    pub interval_s: f64,
    /// The length of windows in each interval of the run, the last one of it; null before there were windows.
    pub length_ms: Vec<Option<f64>>,
}

/// The last length in an interval.
#[derive(Default)]
struct Length(Option<f64>);

impl Cell for Length {
    fn merge(&mut self, next: Length) {
        self.0 = next.0.or(self.0);
    }
}

/// Records it.
pub(super) struct Recorder {
    windows: usize,
    positions: Vec<usize>,
    state: RefCell<Option<State>>,
}

struct State {
    begun: Time,
    /// Up to when the time was counted.
    seen: Time,
    schedule: Option<Schedule>,
    /// Nanoseconds of the run in each part of the cycle.
    time: Vec<u64>,
    /// Of collections, by drive.
    busy: Vec<Vec<u64>>,
    lengths: Intervals<Length>,
}

impl Recorder {
    /// Of drives that take turns, by the positions of their windows. Drives beyond those are spares, and are left out.
    pub(super) fn new(positions: Vec<usize>) -> Recorder {
        Recorder { windows: positions.len(), positions, state: RefCell::new(None) }
    }

    /// The measured phase begins.
    pub(super) fn begin(&self, now: Time) {
        let parts = self.windows * PARTS;
        *self.state.borrow_mut() = Some(State {
            begun: now,
            seen: now,
            schedule: None,
            time: vec![0; parts],
            busy: vec![vec![0; parts]; self.windows],
            lengths: Intervals::new(now, FIRST),
        });
    }

    /// The windows in force now.
    pub(super) fn at(&self, now: Time, schedule: Option<Schedule>) {
        let Some(state) = &mut *self.state.borrow_mut() else { return };
        state.pass(now);
        state.schedule = schedule.filter(|schedule| !schedule.length.is_zero());
        state.lengths.at(now).0 = state.schedule.map(|schedule| schedule.length.as_us() / 1e3);
    }

    /// An operation of a drive has ended.
    pub(super) fn ended(&self, event: &Event, drive: usize) {
        if kind(event.name) < 2 {
            return;
        }
        let Some(state) = &mut *self.state.borrow_mut() else { return };
        let State { begun, schedule, busy, .. } = state;
        if let (Some(schedule), Some(busy)) = (*schedule, busy.get_mut(drive)) {
            spread(event.start.max(*begun), event.end, schedule, busy);
        }
    }

    /// The measured phase has ended. `None` without windows.
    pub(super) fn finish(&self, ended: Time, rows: &Rows) -> Option<Cycle> {
        let mut state = self.state.take()?;
        state.pass(ended);
        state.schedule?;
        let share = |busy: u64, time: u64, arrays: f64| (time > 0).then(|| busy as f64 / (time as f64 * arrays));
        let of_drive = |(busy, arrays): (&Vec<u64>, f64)| {
            busy.iter().zip(&state.time).map(|(busy, time)| share(*busy, *time, arrays)).collect()
        };
        Some(Cycle {
            windows: self.windows,
            parts: PARTS,
            positions: self.positions.clone(),
            busy: state.busy.iter().zip(rows.arrays_of_drives()).map(of_drive).collect(),
            interval_s: state.lengths.width().as_s(),
            length_ms: state.lengths.until(ended).map(|(length, _)| length.0).collect(),
        })
    }
}

impl State {
    /// Counts the time since it was seen last.
    fn pass(&mut self, now: Time) {
        if let Some(schedule) = self.schedule {
            spread(self.seen, now, schedule, &mut self.time);
        }
        self.seen = self.seen.max(now);
    }
}

/// Adds the nanoseconds between two times to the parts of the cycle in which they lie. A cycle begins with window 0, and there were
/// cycles before it.
fn spread(start: Time, end: Time, schedule: Schedule, parts: &mut [u64]) {
    let windows = (parts.len() / PARTS) as u64;
    let cycle = schedule.length.ns().max(1) * windows;
    let before = cycle - schedule.since.ns() % cycle;
    let (mut at, end) = (start.ns(), end.ns());
    // Whole cycles add the same to all parts.
    let whole = end.saturating_sub(at) / cycle;
    let edge = |part: u64| u128::from(cycle) * u128::from(part) / parts.len() as u128;
    let edges: Vec<u64> = (0..=parts.len() as u64).map(|part| edge(part) as u64).collect();
    for (part, pair) in parts.iter_mut().zip(edges.windows(2)) {
        *part += whole * (pair[1] - pair[0]);
    }
    at += whole * cycle;
    while at < end {
        let phase = (at % cycle + before) % cycle;
        let part = edges.partition_point(|edge| *edge <= phase) - 1;
        let until = (at + edges[part + 1] - phase).min(end);
        parts[part] += until - at;
        at = until;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn time_counts_in_its_part_of_the_cycle() {
        // Two windows of 480 ns: parts of 10 ns, and a cycle of 960.
        let mut parts = vec![0; 2 * PARTS];
        let schedule =
            |since: u64, length: u64| Schedule { since: Time::from_ns(since), length: Span::from_ns(length) };
        spread(Time::from_ns(960 + 5), Time::from_ns(960 + 25), schedule(0, 480), &mut parts);
        assert_eq!((parts[0], parts[1], parts[2], parts[3]), (5, 10, 5, 0));
        spread(Time::from_ns(475), Time::from_ns(475 + 3 * 960), schedule(0, 480), &mut parts);
        assert_eq!((parts[0], parts[47], parts[95]), (35, 30, 30), "three whole cycles");
        spread(Time::from_ns(5), Time::from_ns(25), schedule(2_000, 480), &mut parts);
        assert_eq!((parts[88], parts[89], parts[90], parts[91]), (35, 40, 35, 30), "2,000 is 80 after the last cycle");
    }

    proptest! {
        #[test]
        fn no_time_is_lost(start in 0u64..10_000, span in 0u64..50_000, since in 0u64..9_000, length in 1u64..3_000, windows in 1usize..5) {
            let mut parts = vec![0; windows * PARTS];
            let schedule = Schedule { since: Time::from_ns(since), length: Span::from_ns(length) };
            spread(Time::from_ns(start), Time::from_ns(start + span), schedule, &mut parts);
            prop_assert_eq!(parts.iter().sum::<u64>(), span);
        }
    }
}
