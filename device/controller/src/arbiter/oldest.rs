//! The oldest command first, whichever queue it is in: no command waits for one submitted later. A burst has no meaning here;
//! queues whose commands are equally old take turns.

use nandscape_drive::QueueId;

use super::by_key::{self, ByKey};
use super::{Arbiter, ArbiterKind, Claim, Queues};

/// See the file.
#[derive(Default)]
pub struct OldestFirst(ByKey);

impl Arbiter for OldestFirst {
    fn next(&mut self, queues: &Queues, _burst: Option<u32>) -> QueueId {
        self.0.next(queues, Some(1), |_, head| head.submitted)
    }

    fn claim(&self, queues: &Queues) -> Option<Claim> {
        by_key::claim(queues, ArbiterKind::Oldest, |_, head| (head.submitted.ns(), 0))
    }
}
