//! One deadline for a sequence of reads (Li 3.1.2): each gets the remainder.

use nandscape_sim::{Sim, Span, Time};
use nandscape_wire_nvme::SubmissionEntry;

/// The deadline of a sequence of reads, which runs from when it was made.
#[derive(Clone)]
pub struct DeadlineGroup {
    sim: Sim,
    begun: Time,
    deadline: Span,
}

impl DeadlineGroup {
    /// A deadline for all reads that will be tagged. It is no deadline if it is zero.
    pub fn new(sim: &Sim, deadline: Span) -> DeadlineGroup {
        DeadlineGroup { sim: sim.clone(), begun: sim.now(), deadline }
    }

    /// The remainder; `None` without a deadline.
    pub fn left(&self) -> Option<Span> {
        let used = self.sim.now() - self.begun;
        (!self.deadline.is_zero()).then(|| self.deadline.saturating_sub(used))
    }

    /// Sets the remainder as the deadline of a read. Returns false if none is left: then the read
    /// must not be submitted.
    pub fn tag(&self, read: &mut SubmissionEntry) -> bool {
        let Some(left) = self.left() else { return true };
        let us = u32::try_from(left.ns() / 1_000).unwrap_or(u32::MAX);
        read.cdw3 = us.into();
        us > 0
    }
}
