//! The delays of idle loops on this machine. The machine takes the processor away from every thread now and then. So
//! each real-time figure is shown next to these delays, measured in turn with it.
//!
//! Two threads: one spins on the clock until a deadline, then signals the other, which spins on the signal; then the
//! next deadline. This is the work of a minimal drive and client.

use std::sync::atomic::{AtomicU64, Ordering};

use nandscape_sim::{Histogram, Span, Time};
use nandscape_transport_reactor::WallClock;

use crate::wall::cores::{CLIENT, DRIVE, stay_on};
use nandscape_lab_ledger::figures::{Figures, short};
use nandscape_lab_ledger::verdict::{Judgement, Table};

/// The lateness of these loops.
#[derive(Clone, Default)]
pub(crate) struct Idle {
    /// The loop that spins on the clock: its first look past the deadline.
    pub(crate) alone: Histogram,
    /// The other loop: when it saw the signal.
    pub(crate) told: Histogram,
}

/// No deadline, and the last.
const NONE: u64 = 0;
const LAST: u64 = u64::MAX;

impl Idle {
    /// Runs the loops for this time, with a deadline `every` span after the previous one was handled.
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

/// The loops, by the names of their figures.
const LOOPS: [&str; 2] = ["an idle spinning loop", "two idle loops, one telling the other"];
/// Quantiles, by theirs.
const QUANTILES: [(f64, &str); 3] = [(0.5, "p50"), (0.99, "p99"), (0.9999, "p99.99")];

impl Idle {
    /// Adds their lateness to the figures.
    pub(crate) fn add_to(&self, figures: &mut Figures) {
        for (name, late) in LOOPS.iter().zip([&self.alone, &self.told]) {
            figures.add(format!("deadlines of {name}"), late.count() as f64, "");
            for (quantile, of) in QUANTILES {
                figures.add(format!("{of} lateness of {name}"), late.quantile(quantile).as_us(), "us");
            }
            figures.add(format!("most lateness of {name}"), late.max().as_us(), "us");
        }
    }
}

/// Adds a table of their lateness to the judgement, and the reason for misses caused by the machine.
pub(crate) fn show(figures: &Figures, judgement: &mut Judgement) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    for name in LOOPS {
        let mut row = vec![name.to_owned(), short(figures.number(&format!("deadlines of {name}"))?)];
        for of in ["p50", "p99", "p99.99", "most"] {
            row.push(short(figures.number(&format!("{of} lateness of {name}"))?));
        }
        rows.push(row);
    }
    let [_, told] = LOOPS;
    let late = |of: &str| figures.number(&format!("{of} lateness of {told}"));
    judgement.reason = format!(
        "In the same run two idle loops with no drive between them were late by {:.1} us at p99, {:.1} at p99.99 and {:.0} \
         at most: this part is due to the machine, the rest is not",
        late("p99")?,
        late("p99.99")?,
        late("most")?
    );
    judgement.tables.push(Table {
        title: "lateness of idle loops on this machine in the same run, us".to_owned(),
        head: ["", "deadlines", "p50", "p99", "p99.99", "most"].map(str::to_owned).to_vec(),
        rows,
    });
    Ok(())
}
