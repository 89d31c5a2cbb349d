//! Notices ahead of completions (Shin 4.3): for reads that ask, a notice comes a window before their end is predicted. A host that has not
//! set up a queue for notices sees none.
//!
//! | file | what |
//! |---|---|
//! | `predictor` | how long a component takes: the mean of its last three times |
//! | `tracker` | the reads that ask: from their issue to a chip, when their notice is due, and how they ended |
//! | `figures` | how right that was |
//!
//! The components are the chips, from the issue of a read until its page is corrected in the controller, and the way from there to the
//! host. Waiting for a chip is over when a prediction begins.
//!
//! Not predicted: writes; reads of 8 KiB and more; reads that need no flash. Left out: reads whose data is in several pages, which are
//! read by tasks of their own.

mod figures;
mod predictor;
mod tracker;

use std::rc::Rc;

use nandscape_drive::{CompletionMemory, QueueId};
use nandscape_sim::Span;
use nandscape_wire_nvme::CompletionEntry;

pub use figures::{Component, Precompletion, TOLERANCE};
pub use predictor::Recent;
pub(crate) use tracker::Following;
pub use tracker::Tracker;

/// Reads of as many bytes, and of more, are not predicted (Shin 4.3.1).
pub(crate) const TOO_LARGE: u64 = 8 << 10;

/// Puts a notice into the queue of a host. Whether there was room.
type Post = Box<dyn Fn(CompletionEntry) -> bool>;

/// Where a host has notices posted.
pub(crate) struct Port {
    pub(crate) queue: QueueId,
    pub(crate) memory: Rc<dyn CompletionMemory>,
    pub(crate) window: Span,
    pub(crate) post: Post,
}
