//! The queue with most entries first, so that queues drain alike. Queues of equal length take turns; a burst has no meaning
//! here. A short queue starves while longer ones are refilled, except for commands that have waited longer than [`PATIENCE`]:
//! the oldest of those comes first.

use nandscape_drive::QueueId;
use nandscape_sim::{Span, Time};

use super::by_key::{self, ByKey};
use super::{Arbiter, ArbiterKind, Claim, Head, Place, Queues};

/// How long a command waits at most before its queue counts as the longest.
pub(super) const PATIENCE: Span = Span::from_ms(10);

/// See the file.
#[derive(Default)]
pub struct LongestFirst(ByKey);

impl Arbiter for LongestFirst {
    fn next(&mut self, queues: &Queues, _burst: Option<u32>) -> QueueId {
        self.0.next(queues, Some(1), |id, head| place(queues, id, head))
    }

    fn claim(&self, queues: &Queues) -> Option<Claim> {
        by_key::claim(queues, ArbiterKind::Longest, |id, head| place(queues, id, head))
    }
}

fn place(queues: &Queues, id: QueueId, head: Head) -> Place {
    match queues.now() - head.submitted > PATIENCE {
        true => (head.submitted.ns(), 0),
        false => (Time::MAX.ns(), (u32::MAX - queues.depth(id)).into()),
    }
}
