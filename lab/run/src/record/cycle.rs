//! Collections of drives that take turns, by the time within a cycle of their windows: one cycle is a window of each. Of a run with
//! thousands of cycles it tells in one picture whether each drive keeps to its own.
//!
//! Left out: which reads met them.

use std::cell::RefCell;

use nandscape_device_ssd::Ssd;
use nandscape_sim::trace::Event;
use nandscape_sim::{Span, Time};
use serde::Serialize;

use super::intervals::{Cell, Intervals};
use super::timeline::{self, kind};

/// Parts of a window, for which the collections of each drive are told.
const PARTS: usize = 48;
/// The length of an interval of a short run, for which the length of windows is told.
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
pub(crate) struct Recorder {
    windows: usize,
    positions: Vec<usize>,
    drives: Vec<timeline::Recorder>,
    arrays: Vec<u64>,
    state: RefCell<Option<State>>,
}

struct State {
    begun: Time,
    /// Up to when the time was counted.
    seen: Time,
    length: Option<Span>,
    /// Nanoseconds of the run in each part of the cycle.
    time: Vec<u64>,
    /// Of collections, by drive.
    busy: Vec<Vec<u64>>,
    lengths: Intervals<Length>,
}

impl Recorder {
    /// Of drives that take turns, by the positions of their windows. Drives beyond those are spares, of which nothing is told.
    pub(crate) fn new<'a>(ssds: impl Iterator<Item = &'a Ssd>, positions: Vec<usize>) -> Recorder {
        let drives: Vec<timeline::Recorder> = ssds.take(positions.len()).map(timeline::Recorder::new).collect();
        let arrays = drives.iter().map(timeline::Recorder::arrays).collect();
        let state = RefCell::new(None);
        Recorder { windows: positions.len(), positions, drives, arrays, state }
    }

    /// The measured phase begins.
    pub(crate) fn begin(&self, now: Time) {
        let parts = self.windows * PARTS;
        *self.state.borrow_mut() = Some(State {
            begun: now,
            seen: now,
            length: None,
            time: vec![0; parts],
            busy: vec![vec![0; parts]; self.windows],
            lengths: Intervals::new(now, FIRST),
        });
    }

    /// The length of windows now.
    pub(crate) fn at(&self, now: Time, length: Option<Span>) {
        let Some(state) = &mut *self.state.borrow_mut() else { return };
        state.pass(now);
        state.length = length.filter(|length| !length.is_zero());
        state.lengths.at(now).0 = state.length.map(|length| length.as_us() / 1e3);
    }

    /// An operation of a flash has ended.
    pub(crate) fn ended(&self, event: &Event) {
        if kind(event.name) < 2 {
            return;
        }
        let Some(drive) = self.drives.iter().position(|drive| drive.plane(event).is_some()) else { return };
        let Some(state) = &mut *self.state.borrow_mut() else { return };
        let State { begun, length, busy, .. } = state;
        if let Some(length) = *length {
            spread(event.start.max(*begun), event.end, length, &mut busy[drive]);
        }
    }

    /// The measured phase has ended. `None` without windows.
    pub(crate) fn finish(&self, ended: Time) -> Option<Cycle> {
        let mut state = self.state.take()?;
        state.pass(ended);
        state.length?;
        let share = |busy: u64, time: u64, arrays: u64| (time > 0).then(|| busy as f64 / (time * arrays) as f64);
        let of_drive = |(busy, arrays): (&Vec<u64>, &u64)| {
            busy.iter().zip(&state.time).map(|(busy, time)| share(*busy, *time, *arrays)).collect()
        };
        Some(Cycle {
            windows: self.windows,
            parts: PARTS,
            positions: self.positions.clone(),
            busy: state.busy.iter().zip(&self.arrays).map(of_drive).collect(),
            interval_s: state.lengths.width().as_s(),
            length_ms: state.lengths.until(ended).map(|(length, _)| length.0).collect(),
        })
    }
}

impl State {
    /// Counts the time since it was seen last.
    fn pass(&mut self, now: Time) {
        if let Some(length) = self.length {
            spread(self.seen, now, length, &mut self.time);
        }
        self.seen = self.seen.max(now);
    }
}

/// Adds the nanoseconds between two times to the parts of the cycle in which they lie. Window 0 begins with the simulation.
fn spread(start: Time, end: Time, length: Span, parts: &mut [u64]) {
    let windows = (parts.len() / PARTS) as u64;
    let cycle = length.ns().max(1) * windows;
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
        let phase = at % cycle;
        let part = edges.partition_point(|edge| *edge <= phase) - 1;
        let until = (at - phase + edges[part + 1]).min(end);
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
        let length = Span::from_ns(480);
        spread(Time::from_ns(960 + 5), Time::from_ns(960 + 25), length, &mut parts);
        assert_eq!((parts[0], parts[1], parts[2], parts[3]), (5, 10, 5, 0));
        spread(Time::from_ns(475), Time::from_ns(475 + 3 * 960), length, &mut parts);
        assert_eq!((parts[0], parts[47], parts[95]), (35, 30, 30), "three whole cycles");
    }

    proptest! {
        #[test]
        fn no_time_is_lost(start in 0u64..10_000, span in 0u64..50_000, length in 1u64..3_000, windows in 1usize..5) {
            let mut parts = vec![0; windows * PARTS];
            spread(Time::from_ns(start), Time::from_ns(start + span), Span::from_ns(length), &mut parts);
            prop_assert_eq!(parts.iter().sum::<u64>(), span);
        }
    }
}
