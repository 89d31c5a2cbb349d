//! The measured phase of a run: what its drives and its host do between two times.

use std::rc::Rc;

use nandscape_apps_memcached_engine::Stats;
use nandscape_device_ssd::Ssd;
use nandscape_sim::{Histogram, Sim, Span, Time};

use crate::simulated::{Outcome, Spec};
use crate::turns::Recorder;

/// What a phase began with.
pub(crate) struct Begun<'a> {
    sim: &'a Sim,
    ssds: &'a [Rc<Ssd>],
    at: Time,
    stats: Stats,
    spent: Span,
    drives: Counters,
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
}

/// Blocks that drives collected, bytes that they programmed, and bytes that they received.
struct Counters {
    collected: u64,
    programmed: u64,
    received: u64,
}

impl Counters {
    fn of(ssds: &[Rc<Ssd>]) -> Counters {
        let sum = |of: fn(&Ssd) -> u64| ssds.iter().map(|ssd| of(ssd)).sum::<u64>();
        let unit = u64::from(ssds[0].controller().info().unit_bytes);
        Counters {
            collected: sum(|ssd| ssd.ftl_stats().gc_blocks),
            programmed: sum(|ssd| ssd.ftl_stats().programmed_units()) * unit,
            received: sum(|ssd| ssd.ftl_stats().host_bytes),
        }
    }
}

impl<'a> Begun<'a> {
    /// Begins a phase, with the engine's counters and its processor time so far.
    pub(crate) fn new(spec: &Spec, sim: &'a Sim, ssds: &'a [Rc<Ssd>], (stats, spent): (Stats, Span)) -> Begun<'a> {
        let (at, drives) = (sim.now(), Counters::of(ssds));
        if spec.trace {
            sim.trace().switch_on();
        }
        let turns = spec.turns.then(|| Recorder::start(sim, &spec.tracks(ssds)));
        Begun { sim, ssds, at, stats, spent, drives, turns, has_trace: spec.trace }
    }

    /// Ends it.
    pub(crate) fn end(self, measured: Measured) -> Outcome {
        let after = Counters::of(self.ssds);
        let received = after.received - self.drives.received;
        let programmed = after.programmed - self.drives.programmed;
        Outcome {
            reads: measured.reads,
            misses: measured.misses,
            tenants: measured.tenants,
            took: self.sim.now() - self.at,
            put_bytes: measured.put_bytes,
            cpu: measured.spent - self.spent,
            after: measured.stats,
            before: self.stats,
            collected: after.collected - self.drives.collected,
            waf: (received > 0).then(|| programmed as f64 / received as f64),
            items: measured.items,
            trace: self.has_trace.then(|| self.sim.trace().to_chrome_json()),
            turns: self.turns.map(|turns| turns.end()),
        }
    }
}
