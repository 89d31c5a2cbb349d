//! The activity of each of several drives: over the whole run, and, in finer intervals, around the slowest read; with the windows
//! of drives that take turns.
//!
//! Left out: single operations, and dies, which the recording of each drive has.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};

use nandscape_lab_workload::{Outcome, Served};
use nandscape_layers_array::Schedule;
use nandscape_sim::trace::Event;
use nandscape_sim::{Span, Time};
use serde::Serialize;

use super::intervals::Intervals;
use super::rows::{Row, Rows};
use super::slowest::{Candidate, Slowest};
use super::turns::{Schedules, Turns};
use super::work::{Busy, KINDS, kind};

/// The length of an interval of a short run.
const FIRST: Span = Span::from_us(8);
/// Intervals around the slowest read.
const AROUND: usize = 384;
/// The intervals after the slowest read.
const AFTERWARDS: u64 = AROUND as u64 / 4;
/// Cycles of windows around it.
const CYCLES: u64 = 2;
/// How long all of them are where drives take no turns.
const WITHOUT_TURNS: Span = Span::from_ms(384);

/// What the drives did.
#[derive(Clone, Debug, Serialize)]
pub struct DriveTimeline {
    /// The drives, or the ranges of their logical blocks that have their own planes: the order of all that follows.
    pub rows: Vec<Row>,
    /// Over the whole run.
    pub whole: RowShares,
    /// The slowest read; without reads, the slowest request.
    pub slowest: Option<Slowest>,
    /// Around it.
    pub around: Option<RowShares>,
}

/// Shares of intervals.
#[derive(Clone, Debug, Serialize)]
pub struct RowShares {
    /// When the first interval begins, from the beginning of the measured phase; before it, if below zero.
    pub from_s: f64,
    /// How long an interval is.
    pub interval_s: f64,
    /// By kind of work, by row: the share of each interval, in parts per million, in which the arrays of its planes did this
    /// work; at least 1 if they did any. `gc` is reading and programming for garbage collection and wear levelling.
    pub parts_per_million: BTreeMap<&'static str, Vec<Vec<u32>>>,
    /// By row: when its windows begin and end, from the beginning of the measured phase. Empty without windows, with too many
    /// for a picture, and for drives that have each window, for one range or another.
    pub windows_s: Vec<Vec<(f64, f64)>>,
}

/// The last intervals of equal length, by their numbers since the simulation began.
struct Recent {
    width_ns: u64,
    first: u64,
    intervals: VecDeque<Busy>,
}

impl Recent {
    fn new(width_ns: u64) -> Recent {
        Recent { width_ns: width_ns.max(1), first: 0, intervals: VecDeque::with_capacity(AROUND) }
    }

    /// Calls `part` with each interval between two times, and the nanoseconds of the interval between them.
    fn spread(&mut self, start: Time, end: Time, mut part: impl FnMut(&mut Busy, u64)) {
        let (from, to) = (start.ns(), end.ns());
        if to <= from {
            return;
        }
        let last = (to - 1) / self.width_ns;
        self.go_on_to(last);
        for number in (from / self.width_ns).max(self.first)..=last {
            let (left, right) = (number * self.width_ns, (number + 1) * self.width_ns);
            part(&mut self.intervals[(number - self.first) as usize], to.min(right) - from.max(left));
        }
    }

    fn go_on_to(&mut self, last: u64) {
        if last >= self.first + (self.intervals.len() + AROUND) as u64 {
            self.intervals.clear();
        }
        if self.intervals.is_empty() {
            self.first = last.saturating_sub(AROUND as u64 - 1);
        }
        while self.first + self.intervals.len() as u64 <= last {
            if self.intervals.len() == AROUND {
                self.intervals.pop_front();
                self.first += 1;
            }
            self.intervals.push_back(Busy::default());
        }
    }

    fn from(&self) -> Time {
        Time::from_ns(self.first * self.width_ns)
    }
}

/// What was around the slowest so far.
struct Kept {
    from: Time,
    width: Span,
    intervals: Vec<Busy>,
    /// Of each row.
    windows: Vec<Vec<(u64, u64)>>,
}

struct State {
    begun: Time,
    whole: Intervals<Busy>,
    recent: Recent,
    schedules: Option<Schedules>,
    slowest: Option<Candidate>,
    /// The interval that completes the surroundings of the slowest read.
    keep_at: Option<u64>,
    around: Option<Kept>,
}

/// Hears of every operation of the drives' flash.
pub(super) struct Recorder {
    turns: Option<Turns>,
    state: RefCell<Option<State>>,
}

impl Recorder {
    pub(super) fn new(turns: Option<Turns>) -> Recorder {
        Recorder { turns, state: RefCell::new(None) }
    }

    pub(super) fn begin(&self, now: Time) {
        *self.state.borrow_mut() = Some(State {
            begun: now,
            whole: Intervals::new(now, FIRST),
            recent: Recent::new(WITHOUT_TURNS.ns() / AROUND as u64),
            schedules: self.turns.clone().map(Schedules::new),
            slowest: None,
            keep_at: None,
            around: None,
        });
    }

    /// A measured request has completed.
    pub(super) fn served(&self, request: &Served<'_>, schedule: Option<Schedule>, rows: &Rows) {
        let Some(state) = &mut *self.state.borrow_mut() else { return };
        state.takes_turns(request.completed, schedule);
        state.keep_if_complete(request.completed, rows);
        if let Some(slowest) = Candidate::beats(state.slowest.as_ref(), request) {
            state.slowest = Some(slowest);
            state.keep_at = Some(request.completed.ns() / state.recent.width_ns + AFTERWARDS);
        }
    }

    /// An operation of a row has ended.
    pub(super) fn ended(&self, event: &Event, row: usize, rows: &Rows) {
        let Some(state) = &mut *self.state.borrow_mut() else { return };
        state.keep_if_complete(event.end, rows);
        let (kind, all) = (kind(event.name), rows.all().len());
        state.whole.spread(event.start, event.end, |busy, ns| busy.add(all, row, kind, ns));
        state.recent.spread(event.start, event.end, |busy, ns| busy.add(all, row, kind, ns));
    }

    /// The measured phase has ended.
    pub(super) fn finish(&self, outcome: &Outcome, rows: &Rows) -> DriveTimeline {
        if self.state.borrow().is_none() {
            self.begin(outcome.started);
        }
        let (mut state, ended) = (self.state.take().expect("begun"), outcome.ended);
        if state.keep_at.is_some() {
            state.keep(ended, rows);
        }
        let whole: Vec<(&Busy, Span)> = state.whole.until(ended).collect();
        DriveTimeline {
            rows: rows.all().to_vec(),
            whole: RowShares {
                from_s: 0.0,
                interval_s: state.whole.width().as_s(),
                parts_per_million: shares(&whole, rows),
                windows_s: seconds(&state.windows(state.begun, ended, rows), state.begun),
            },
            around: state.around.as_ref().map(|kept| kept.told(state.begun, rows)),
            slowest: state.slowest.map(|slowest| slowest.told(state.begun, None)),
        }
    }
}

impl State {
    fn takes_turns(&mut self, now: Time, schedule: Option<Schedule>) {
        let Some(schedules) = &mut self.schedules else { return };
        schedules.at(now, schedule);
        let Some(cycle) = schedules.cycle_ns() else { return };
        let wanted = (cycle * CYCLES / AROUND as u64).max(1);
        // A dynamic length changes by little at a time.
        if wanted >= 2 * self.recent.width_ns || 2 * wanted <= self.recent.width_ns {
            self.recent = Recent::new(wanted);
            self.keep_at = self.keep_at.map(|_| now.ns() / wanted + AFTERWARDS);
        }
    }

    fn keep_if_complete(&mut self, now: Time, rows: &Rows) {
        if self.keep_at.is_some_and(|at| now.ns() / self.recent.width_ns >= at) {
            self.keep(now, rows);
        }
    }

    fn keep(&mut self, now: Time, rows: &Rows) {
        self.keep_at = None;
        if self.recent.intervals.is_empty() {
            self.around = None;
            return;
        }
        let from = self.recent.from();
        self.around = Some(Kept {
            from,
            width: Span::from_ns(self.recent.width_ns),
            intervals: self.recent.intervals.iter().cloned().collect(),
            windows: self.windows(from, now, rows),
        });
    }

    fn windows(&self, from: Time, to: Time, rows: &Rows) -> Vec<Vec<(u64, u64)>> {
        let of = |row: &Row| self.schedules.as_ref().map_or(Vec::new(), |all| all.windows(*row, from, to));
        rows.all().iter().map(of).collect()
    }
}

impl Kept {
    fn told(&self, begun: Time, rows: &Rows) -> RowShares {
        let intervals: Vec<(&Busy, Span)> = self.intervals.iter().map(|busy| (busy, self.width)).collect();
        RowShares {
            from_s: seconds_since(self.from.ns(), begun),
            interval_s: self.width.as_s(),
            parts_per_million: shares(&intervals, rows),
            windows_s: seconds(&self.windows, begun),
        }
    }
}

fn shares(intervals: &[(&Busy, Span)], rows: &Rows) -> BTreeMap<&'static str, Vec<Vec<u32>>> {
    let share = |row: usize, kind: usize, (busy, length): &(&Busy, Span)| {
        let whole = (length.ns().max(1) as f64 * rows.arrays()[row]).round();
        busy.share(row, kind, whole as u128)
    };
    let of_row = |row: usize, kind: usize| intervals.iter().map(|interval| share(row, kind, interval)).collect();
    let of_kind = |kind: usize| (0..rows.all().len()).map(|row| of_row(row, kind)).collect();
    KINDS.iter().enumerate().map(|(kind, name)| (*name, of_kind(kind))).collect()
}

fn seconds(windows: &[Vec<(u64, u64)>], begun: Time) -> Vec<Vec<(f64, f64)>> {
    let told = |(begin, end): &(u64, u64)| (seconds_since(*begin, begun), seconds_since(*end, begun));
    windows.iter().map(|windows| windows.iter().map(told).collect()).collect()
}

fn seconds_since(ns: u64, begun: Time) -> f64 {
    (i128::from(ns) - i128::from(begun.ns())) as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The last intervals keep the amounts spread over them, and their number is bounded.
        #[test]
        fn recent_intervals_have_what_was_in_them(
            width in 1u64..50, spans in prop::collection::vec((0u64..400, 0u64..2_000), 1..60),
        ) {
            let mut recent = Recent::new(width);
            let (mut at, mut all) = (0, Vec::new());
            for (gap, length) in spans {
                at += gap;
                all.push((at, at + length));
                recent.spread(Time::from_ns(at), Time::from_ns(at + length), |busy, ns| busy.add(1, 0, 0, ns));
                at += length;
            }
            prop_assert!(recent.intervals.len() <= AROUND);
            for (number, busy) in (recent.first..).zip(&recent.intervals) {
                let (left, right) = (number * width, (number + 1) * width);
                let within = |(from, to): &(u64, u64)| (*to).min(right).saturating_sub((*from).max(left));
                let expected: u64 = all.iter().map(within).sum();
                prop_assert_eq!(busy.ns(0, 0), expected);
            }
        }
    }
}
