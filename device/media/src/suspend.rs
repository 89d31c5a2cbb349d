//! Program and erase suspend and resume (ONFI leaves the commands to the maker, commonly 61h or 84h and D2h or 10h). An
//! operation of the array is suspended for more urgent reads and resumed for the rest of its time.
//!
//! Left out: channel time of these commands.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, Stage};
use nandscape_sim::{Span, Time};

use crate::features::Suspend;
use crate::lun::Register;

/// The terms of suspension of an operation.
#[derive(Copy, Clone)]
pub(crate) struct Terms {
    /// From the command until the array is free.
    pub(crate) cost: Span,
    pub(crate) resume: Span,
    pub(crate) min_run: Span,
    /// How many more times it may be suspended.
    pub(crate) left: u32,
}

impl Suspend {
    /// The terms for an operation whose suspension costs `cost`.
    pub(crate) fn terms(&self, cost: Span) -> Terms {
        let Suspend { resume, min_run, limit, .. } = *self;
        Terms { cost, resume, min_run, left: limit.unwrap_or(u32::MAX) }
    }
}

impl Register<'_> {
    /// Keeps the array busy for `time` in all, on the given terms. Calls `part` after each part with its length, and whether it ends
    /// with a suspension.
    pub(crate) async fn array_suspendable(
        &mut self,
        time: Span,
        mut terms: Terms,
        breakdown: &mut Breakdown,
        mut part: impl FnMut(Span, bool),
    ) {
        let mut left = time;
        loop {
            let mut busy = self.run(left, &terms, breakdown).await;
            left -= busy;
            if left > Span::ZERO {
                self.busy(terms.cost, breakdown).await;
                busy += terms.cost;
            }
            breakdown.spend(Stage::Array, busy);
            part(busy, !left.is_zero());
            if left.is_zero() {
                return;
            }
            terms.left -= 1;
            self.let_reads_in(breakdown).await;
            if terms.resume > Span::ZERO {
                self.busy(terms.resume, breakdown).await;
                breakdown.spend(Stage::Array, terms.resume);
                part(terms.resume, false);
            }
        }
    }

    /// Admits the more urgent reads that wait, until none is left.
    pub(crate) async fn let_reads_in(&mut self, breakdown: &mut Breakdown) {
        let (lun, begun) = (self.lun, self.lun.sim.now());
        if !lun.urgent_read_waits(self.who.class) {
            return;
        }
        let mut asked = false;
        poll_fn(|_| {
            if !asked {
                lun.suspend(self.who.class);
                asked = true;
            }
            if lun.is_suspended() { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
        breakdown.waits(Stage::DieWait).add(cause::HOST_READ, lun.sim.now() - begun);
    }

    /// Keeps the array busy for `time`, or until it is to be suspended. Returns how long that was. The array is free at the
    /// start, unless an operation that was suspended here was dropped and its guest still has it.
    async fn run(&mut self, time: Span, terms: &Terms, breakdown: &mut Breakdown) -> Span {
        let lun = self.lun;
        let _hold = lun.array.take(self.who, breakdown.waits(Stage::DieWait)).await;
        let begun = lun.sim.now();
        let (ends, earliest) = (begun + time, begun + terms.min_run);
        let mut work = pin!(lun.sim.sleep(time));
        let mut may_stop = pin!(lun.sim.sleep_until(earliest));
        let worth_it = |now: Time| terms.left > 0 && ends.ns() > now.ns() + terms.cost.ns();
        let mut too_early = false;
        poll_fn(|context| {
            if work.as_mut().poll(context).is_ready() {
                return Poll::Ready(());
            }
            let now = lun.sim.now();
            if worth_it(now.max(earliest)) && lun.urgent_read_waits(self.who.class) {
                too_early |= now < earliest;
                if !too_early || may_stop.as_mut().poll(context).is_ready() {
                    return Poll::Ready(());
                }
            }
            lun.interruptible(self.who.class);
            Poll::Pending
        })
        .await;
        lun.not_interruptible();
        lun.sim.now() - begun
    }

    async fn busy(&mut self, time: Span, breakdown: &mut Breakdown) {
        self.lun.array.occupy(time, self.who, breakdown.waits(Stage::DieWait)).await;
    }
}
