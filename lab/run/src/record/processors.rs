//! The processors of a host over the whole run: for each interval the share of a processor's time by kind. The first
//! `MOST_PROCESSORS` are shown.

use std::cell::RefCell;
use std::collections::BTreeMap;

use nandscape_host_machine::Kind;
use nandscape_sim::trace::{Event, Listener, Track};
use nandscape_sim::{Span, Time};
use serde::Serialize;

use super::intervals::Intervals;
use super::work::Busy;

/// The most processors that are recorded.
const MOST_PROCESSORS: usize = 64;
/// The length of an interval of a short run.
const FIRST: Span = Span::from_us(8);
/// Kinds of time, without idling, which is the last.
const KINDS: usize = Kind::ALL.len() - 1;

/// What each processor did.
#[derive(Clone, Debug, Serialize)]
pub struct Processors {
    /// The processors, with their cores, in the order of all that follows.
    pub names: Vec<String>,
    /// How long an interval is.
    pub interval_s: f64,
    /// By kind of time, by processor: parts per million of each interval, at least 1 where there was any.
    pub parts_per_million: BTreeMap<&'static str, Vec<Vec<u32>>>,
}

/// Hears of every stretch of time of the processors.
#[derive(Default)]
pub(super) struct Recorder {
    /// The number of the first track; those of the other processors follow.
    first: RefCell<Option<usize>>,
    names: RefCell<Vec<String>>,
    intervals: RefCell<Option<Intervals<Busy<KINDS>>>>,
}

impl Recorder {
    /// The processors that it records from now on: the track and the core of each.
    pub(super) fn show(&self, processors: &[(Track, usize)]) {
        self.first.replace(processors.first().map(|(track, _)| track.index()));
        let shown = processors.iter().take(MOST_PROCESSORS).enumerate();
        self.names.replace(shown.map(|(number, (_, core))| format!("core {core} processor {number}")).collect());
    }

    pub(super) fn begin(&self, now: Time) {
        self.intervals.replace(Some(Intervals::new(now, FIRST)));
    }

    /// Nothing without a host.
    pub(super) fn finish(&self, ended: Time) -> Option<Processors> {
        let (names, intervals) = (self.names.take(), self.intervals.take()?);
        if names.is_empty() {
            return None;
        }
        let part = |busy: &Busy<KINDS>, length: Span, processor, kind| {
            busy.share(processor, kind, u128::from(length.ns().max(1)))
        };
        let of_kind = |kind: usize| -> Vec<Vec<u32>> {
            let of = |one| intervals.until(ended).map(|(cell, length)| part(cell, length, one, kind)).collect();
            (0..names.len()).map(of).collect()
        };
        let kinds = Kind::ALL[..KINDS].iter().enumerate();
        let parts_per_million = kinds.map(|(kind, (name, _))| (*name, of_kind(kind))).collect();
        Some(Processors { names, interval_s: intervals.width().as_s(), parts_per_million })
    }
}

impl Listener for Recorder {
    fn ended(&self, event: &Event) {
        let Some(first) = *self.first.borrow() else { return };
        let (all, number) = (self.names.borrow().len(), event.track.index().wrapping_sub(first));
        let kind = Kind::ALL[..KINDS].iter().position(|(name, _)| *name == event.name);
        let (Some(kind), Some(intervals)) = (kind.filter(|_| number < all), &mut *self.intervals.borrow_mut()) else {
            return;
        };
        intervals.spread(event.start, event.end, |busy, ns| busy.add(all, number, kind, ns));
    }
}
