//! The measured phase of a run: what its drives and its host do between two times.

use std::rc::Rc;

use nandscape_apps_memcached_engine::Stats;
use nandscape_device_ssd::Ssd;
use nandscape_lab_run::{DriveFigures, Members};
use nandscape_sim::{Histogram, Sim, Span, Time};

use crate::below::Left;
use crate::simulated::{Outcome, Spec};
use crate::turns::Recorder;

/// What a phase began with.
pub(crate) struct Begun<'a> {
    sim: &'a Sim,
    members: &'a Members,
    at: Time,
    stats: Stats,
    spent: Span,
    turns: Option<Rc<Recorder>>,
    has_trace: bool,
}

/// What the clients of a phase have met, and its counters at the end.
pub(crate) struct Measured {
    pub(crate) reads: Histogram,
    pub(crate) misses: Histogram,
    pub(crate) tenants: Vec<Histogram>,
    pub(crate) put_bytes: u64,
    pub(crate) items: u64,
    pub(crate) stats: Stats,
    /// Processor time so far.
    pub(crate) spent: Span,
    pub(crate) left: Left,
}

impl<'a> Begun<'a> {
    /// Begins a phase of these drives, with the engine's counters and its processor time so far.
    pub(crate) fn new(
        spec: &Spec,
        sim: &'a Sim,
        (ssds, members): (&[Rc<Ssd>], &'a Members),
        (stats, spent): (Stats, Span),
    ) -> Begun<'a> {
        let at = sim.now();
        members.begin();
        if spec.trace {
            sim.trace().switch_on();
        }
        let turns = spec.turns.then(|| Recorder::start(sim, &spec.tracks(ssds)));
        Begun { sim, members, at, stats, spent, turns, has_trace: spec.trace }
    }

    /// Ends it.
    pub(crate) fn end(self, measured: Measured) -> Outcome {
        let DriveFigures { host_bytes, flash_bytes, gc_blocks, .. } = self.members.figures();
        Outcome {
            reads: measured.reads,
            misses: measured.misses,
            tenants: measured.tenants,
            took: self.sim.now() - self.at,
            put_bytes: measured.put_bytes,
            cpu: measured.spent - self.spent,
            after: measured.stats,
            before: self.stats,
            collected: gc_blocks,
            waf: (host_bytes > 0).then(|| flash_bytes as f64 / host_bytes as f64),
            items: measured.items,
            trace: self.has_trace.then(|| self.sim.trace().to_chrome_json()),
            turns: self.turns.map(|turns| turns.end()),
            left: measured.left,
        }
    }
}
