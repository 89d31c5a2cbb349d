//! What this machine does to loops that only wait. Real time is no better than the machine: it takes the processor away
//! from every thread now and then. So each figure of real time stands beside these, measured in turn with it.
//!
//! Two threads: one spins on the clock until a deadline, then tells the other, which spins for the news; then the next
//! deadline. That is what the shortest imaginable drive and client would do.

use std::sync::atomic::{AtomicU64, Ordering};

use nandscape_sim::{Histogram, Span, Time};
use nandscape_transport_reactor::WallClock;

use crate::claim::{Findings, us};
use crate::cores::{CLIENT, DRIVE, stay_on};

/// How late such loops were.
#[derive(Clone, Default)]
pub(crate) struct Idle {
    /// The loop that spins on the clock: its first look past the deadline.
    pub(crate) alone: Histogram,
    /// The other one: when it knew.
    pub(crate) told: Histogram,
}

/// No deadline, and the last.
const NONE: u64 = 0;
const LAST: u64 = u64::MAX;

impl Idle {
    /// Lets the loops run for so long, with a deadline `every` span after the last was dealt with.
    pub(crate) fn run(&mut self, clock: WallClock, every: Span, lasting: Span) {
        let (news, answer) = (AtomicU64::new(NONE), AtomicU64::new(NONE));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                stay_on(DRIVE);
                let end = clock.now() + lasting;
                let mut now = clock.now();
                while now < end {
                    let deadline = now + every;
                    while now < deadline {
                        now = clock.now();
                    }
                    self.alone.record(now.since(deadline));
                    news.store(deadline.ns(), Ordering::Release);
                    while answer.load(Ordering::Acquire) != deadline.ns() {
                        std::hint::spin_loop();
                    }
                    now = clock.now();
                }
                news.store(LAST, Ordering::Release);
            });
            scope.spawn(|| {
                stay_on(CLIENT);
                let mut known = NONE;
                loop {
                    match news.load(Ordering::Acquire) {
                        LAST => return,
                        deadline if deadline != known => {
                            self.told.record(clock.now().since(Time::from_ns(deadline)));
                            known = deadline;
                            answer.store(deadline, Ordering::Release);
                        }
                        _ => std::hint::spin_loop(),
                    }
                }
            });
        });
    }
}

impl Idle {
    /// Puts their lateness beside what was measured, and gives the reason for what this machine made miss.
    pub(crate) fn stand_beside(&self, findings: &mut Findings) {
        for (name, late) in
            [("an idle spinning loop", &self.alone), ("two idle loops, one telling the other", &self.told)]
        {
            for (quantile, name_of_it) in [(0.5, "p50"), (0.99, "p99"), (0.9999, "p99.99")] {
                findings.beside(format!("{name_of_it} lateness of {name}"), us(late, quantile), "us");
            }
        }
        findings.reason = format!(
            "In the same run two idle loops that only tell each other the time were late by {:.1} us at p99, {:.1} at \
             p99.99 and {:.0} at most: so much is this machine's, with no drive between them; what exceeds it is not",
            us(&self.told, 0.99),
            us(&self.told, 0.9999),
            self.told.max().as_us()
        );
    }
}
