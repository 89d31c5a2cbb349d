//! Strict order by the class of the next command: real time, best effort, idle, and by priority within them
//! ([`Attributes::rank`](nandscape_wire_nvme::vendor::Attributes::rank)). Queues of one class take turns.
//!
//! A class starves while more urgent ones have entries. A command waits behind those before it in its queue, whatever their class.

use nandscape_drive::QueueId;

use super::by_key::{self, ByKey};
use super::{Arbiter, ArbiterKind, Claim, Queues};

/// See the file.
#[derive(Default)]
pub struct ByClass(ByKey);

impl Arbiter for ByClass {
    fn next(&mut self, queues: &Queues, burst: Option<u32>) -> QueueId {
        self.0.next(queues, burst, |_, head| head.attributes.rank())
    }

    fn claim(&self, queues: &Queues) -> Option<Claim> {
        by_key::claim(queues, ArbiterKind::Class, |_, head| (head.attributes.rank().into(), 0))
    }
}
