//! The command first that is due first, whichever queue it is in: at its deadline (CDW3) after its submission. Commands without a
//! deadline are due after [`PATIENCE`], so that they do not starve. Commands that are due at the same time take turns.
//!
//! An overdue command keeps its place. Left out: dropping it, or its rejection, which a block layer does.

use nandscape_drive::QueueId;
use nandscape_sim::Time;

use super::by_key::{self, ByKey};
use super::longest::PATIENCE;
use super::{Arbiter, ArbiterKind, Claim, Head, Queues};

/// See the file.
#[derive(Default)]
pub struct EarliestDeadline(ByKey);

impl Arbiter for EarliestDeadline {
    fn next(&mut self, queues: &Queues, _burst: Option<u32>) -> QueueId {
        self.0.next(queues, Some(1), |_, head| due(head))
    }

    fn claim(&self, queues: &Queues) -> Option<Claim> {
        by_key::claim(queues, ArbiterKind::Deadline, |_, head| (due(head).ns(), 0))
    }
}

fn due(head: Head) -> Time {
    head.submitted + head.deadline.unwrap_or(PATIENCE)
}
