//! A processor: what is on it, and its account.

use std::collections::VecDeque;

use nandscape_sim::slots::Key;
use nandscape_sim::trace::Track;
use nandscape_sim::{Span, Time};

use super::units::Units;
use crate::scheduler::{Scheduler, Share};
use crate::times::{Kind, Times, Waits};

/// See the file.
pub(crate) struct Cpu {
    pub(crate) core: usize,
    /// The other hardware thread of its core.
    pub(crate) sibling: Option<usize>,
    /// Up to when its time is accounted.
    pub(crate) since: Time,
    /// The thread that has it.
    pub(crate) thread: Option<Key>,
    /// Hard interrupts and softirqs, the first of which is under way.
    pub(crate) hard: VecDeque<Key>,
    pub(crate) soft: VecDeque<Key>,
    /// How long softirqs have run in a row.
    pub(crate) soft_ran: Span,
    /// Whether its thread goes on with a softirq, and has the others wait.
    pub(crate) is_deferring: bool,
    /// The share of this thread; while it has work, that is at the softirq.
    pub(crate) ksoftirqd: Share,
    /// Interrupts of the machine itself that have to be handled: timers, and those from other processors.
    pub(crate) stolen: Units,
    /// Threads that wait for it.
    pub(crate) queue: Box<dyn Scheduler>,
    /// Whether another thread is to have it as soon as that is allowed.
    pub(crate) resched: bool,
    /// The next tick.
    pub(crate) tick: Time,
    /// Units that it does in a nanosecond.
    pub(crate) rate: u64,
    /// Whether anything is on it.
    pub(crate) busy: bool,
    pub(crate) times: Times,
    /// The same by who had it.
    pub(crate) held: Waits,
    pub(crate) timeline: Timeline,
}

/// The line of a processor in the event trace.
#[derive(Default)]
pub(crate) struct Timeline {
    pub(crate) track: Option<Track>,
    open: Option<Stretch>,
}

/// Time of one kind, of one context.
#[derive(Copy, Clone)]
pub(crate) struct Stretch {
    pub(crate) kind: Kind,
    pub(crate) of: u64,
    pub(crate) start: Time,
    pub(crate) end: Time,
}

impl Timeline {
    /// Adds time that follows the last. Returns a stretch that has ended with it.
    pub(crate) fn add(&mut self, kind: Kind, of: u64, start: Time, span: Span) -> Option<Stretch> {
        let end = start + span;
        match &mut self.open {
            Some(open) if open.kind == kind && open.of == of && open.end == start => {
                open.end = end;
                None
            }
            open => open.replace(Stretch { kind, of, start, end }).filter(|stretch| stretch.kind != Kind::Idle),
        }
    }

    /// Ends the open stretch.
    pub(crate) fn end(&mut self) -> Option<Stretch> {
        self.open.take().filter(|stretch| stretch.kind != Kind::Idle)
    }
}
