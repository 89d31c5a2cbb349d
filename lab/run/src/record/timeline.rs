//! The activity of each die. Over the whole run: for each interval the share of time that the arrays of a die's planes
//! spend on each kind of work. Around the slowest read (or write, without reads): every single operation.
//!
//! Operations are those of the arrays; transfers on the channels are left out. The first `MOST_DIES` dies are shown.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};

use nandscape_device_media::PlaneId;
use nandscape_device_ssd::{Part as DrivePart, Ssd};
use nandscape_lab_workload::Served;
use nandscape_sim::trace::{Event, Listener};
use nandscape_sim::{Span, Time};
use serde::Serialize;

use super::intervals::Intervals;
use super::slowest::{Candidate, Slowest};
use super::work::{Busy, KINDS, kind};

/// The most dies that are recorded separately.
const MOST_DIES: usize = 128;
/// Operations that are kept around the slowest request.
const MOST_OPERATIONS: usize = 6_000;
/// The operations after the slowest request.
const AFTERWARDS: usize = MOST_OPERATIONS / 8;
/// The length of an interval of a short run.
const FIRST: Span = Span::from_us(8);

/// What each die did.
#[derive(Clone, Debug, Serialize)]
pub struct Timeline {
    /// The dies, in the order of all that follows.
    pub dies: Vec<String>,
    /// Planes of each die.
    pub planes_per_die: u32,
    /// Dies that are not shown.
    pub dies_left_out: u32,
    /// Over the whole run.
    pub shares: DieShares,
    /// The slowest read; without reads, the slowest request.
    pub slowest: Option<Slowest>,
    /// Every operation around it.
    pub operations: Operations,
}

/// Shares of intervals.
#[derive(Clone, Debug, Serialize)]
pub struct DieShares {
    /// How long an interval is.
    pub interval_s: f64,
    /// By kind of work, by die: parts per million of each interval, at least 1 where there was any work. `gc` is reading
    /// and programming for garbage collection and wear levelling.
    pub parts_per_million: BTreeMap<&'static str, Vec<Vec<u32>>>,
}

/// Single operations, in the order in which they ended; the nth of each list belongs to the nth operation.
#[derive(Clone, Default, Debug, Serialize)]
pub struct Operations {
    /// The time that the first of them starts at, from the beginning of the measured phase.
    pub from_s: f64,
    /// The plane, counted over all dies: plane 5 of dies with 2 planes is the second of die 2.
    pub plane: Vec<u32>,
    /// 0 read, 1 program, 2 read or program of a collection, 3 erase.
    pub kind: Vec<u8>,
    /// When it started, after `from_s`.
    pub start_ns: Vec<u64>,
    /// How long it took.
    pub duration_ns: Vec<u64>,
}

#[derive(Copy, Clone)]
struct Operation {
    plane: u32,
    kind: u8,
    start: Time,
    end: Time,
}

struct State {
    begun: Time,
    intervals: Intervals<Busy>,
    recent: VecDeque<Operation>,
    slowest: Option<Candidate>,
    /// Operations still to record before the surroundings of the slowest are kept.
    to_come: usize,
    around: Vec<Operation>,
}

/// Hears of every operation of the flash.
pub(super) struct Recorder {
    dies: Vec<String>,
    dies_left_out: u32,
    planes_per_die: u32,
    /// By die: arrays that work independently.
    arrays_of_die: Vec<u32>,
    /// By the number of its track, the place of a plane among those shown.
    planes: Vec<Option<u32>>,
    state: RefCell<Option<State>>,
}

impl Recorder {
    pub(super) fn new(ssd: &Ssd) -> Recorder {
        let planes_per_die = ssd.media().geometry().counts().planes_per_die;
        let (mut dies, mut planes) = (Vec::new(), Vec::new());
        for media in ssd.parts().iter().map(DrivePart::media) {
            let first = dies.len();
            let counts = media.geometry().counts();
            for channel in media.channels_of_drive() {
                let die = |die| (format!("channel {channel} die {die}"), media.arrays_per_die());
                dies.extend(media.dies_of_drive().iter().map(die));
            }
            for (track, plane) in media.plane_tracks().iter().zip(0..) {
                let (channel, die, within) = media.geometry().place(PlaneId(plane));
                let die = first as u32 + channel * counts.dies_per_channel + die;
                planes.resize(planes.len().max(track.index() + 1), None);
                planes[track.index()] = (die < MOST_DIES as u32).then_some(die * planes_per_die + within);
            }
        }
        let dies_left_out = dies.len().saturating_sub(MOST_DIES) as u32;
        dies.truncate(MOST_DIES);
        let (dies, arrays_of_die) = dies.into_iter().unzip();
        Recorder { dies, dies_left_out, planes_per_die, arrays_of_die, planes, state: RefCell::new(None) }
    }

    /// The place of the plane that an event is of, among those shown.
    pub(super) fn plane(&self, event: &Event) -> Option<u32> {
        *self.planes.get(event.track.index())?
    }

    /// The number of dies that are shown.
    pub(super) fn dies(&self) -> usize {
        self.dies.len()
    }

    pub(super) fn begin(&self, now: Time) {
        *self.state.borrow_mut() = Some(State {
            begun: now,
            intervals: Intervals::new(now, FIRST),
            recent: VecDeque::with_capacity(MOST_OPERATIONS),
            slowest: None,
            to_come: 0,
            around: Vec::new(),
        });
    }

    /// A measured request has completed.
    pub(super) fn served(&self, request: &Served<'_>) {
        let Some(state) = &mut *self.state.borrow_mut() else { return };
        if let Some(slowest) = Candidate::beats(state.slowest.as_ref(), request) {
            state.slowest = Some(slowest);
            state.to_come = AFTERWARDS;
        }
    }

    /// `die_of` gives the die of the slowest read, if it is known.
    pub(super) fn finish(&self, ended: Time, die_of: impl Fn(&Candidate) -> Option<u32>) -> Timeline {
        let mut state = self.state.take().expect("begun");
        if state.to_come > 0 {
            state.keep();
        }
        Timeline {
            dies: self.dies.clone(),
            planes_per_die: self.planes_per_die,
            dies_left_out: self.dies_left_out,
            shares: self.shares(&state.intervals, ended),
            slowest: state.slowest.as_ref().map(|slowest| slowest.told(state.begun, die_of(slowest))),
            operations: operations(&state.around, state.begun),
        }
    }

    fn shares(&self, intervals: &Intervals<Busy>, ended: Time) -> DieShares {
        let part = |busy: &Busy, length: Span, die: usize, kind: usize| {
            busy.share(die, kind, u128::from(length.ns().max(1)) * u128::from(self.arrays_of_die[die]))
        };
        let of_kind = |kind: usize| -> Vec<Vec<u32>> {
            let of_die = |die| intervals.until(ended).map(|(cell, length)| part(cell, length, die, kind)).collect();
            (0..self.dies.len()).map(of_die).collect()
        };
        let parts_per_million = KINDS.iter().enumerate().map(|(kind, name)| (*name, of_kind(kind))).collect();
        DieShares { interval_s: intervals.width().as_s(), parts_per_million }
    }
}

impl Listener for Recorder {
    fn ended(&self, event: &Event) {
        let Some(state) = &mut *self.state.borrow_mut() else { return };
        let Some(plane) = self.plane(event) else { return };
        let kind = kind(event.name);
        let die = (plane / self.planes_per_die) as usize;
        let dies = self.dies.len();
        state.intervals.spread(event.start, event.end, |busy, ns| busy.add(dies, die, kind, ns));
        state.add(Operation { plane, kind: kind as u8, start: event.start, end: event.end });
    }
}

impl State {
    fn add(&mut self, operation: Operation) {
        if self.recent.len() == MOST_OPERATIONS {
            self.recent.pop_front();
        }
        self.recent.push_back(operation);
        if self.to_come > 0 {
            self.to_come -= 1;
            if self.to_come == 0 {
                self.keep();
            }
        }
    }

    fn keep(&mut self) {
        self.around = self.recent.iter().copied().collect();
    }
}

fn operations(around: &[Operation], begun: Time) -> Operations {
    let from = around.iter().map(|operation| operation.start.max(begun)).min().unwrap_or(begun);
    let mut told = Operations { from_s: (from - begun).as_s(), ..Operations::default() };
    for operation in around.iter().filter(|operation| operation.end > from) {
        let start = operation.start.max(from);
        told.plane.push(operation.plane);
        told.kind.push(operation.kind);
        told.start_ns.push((start - from).ns());
        told.duration_ns.push((operation.end - start).ns());
    }
    told
}
