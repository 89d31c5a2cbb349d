//! Notices ahead of completions (Shin 4.3): for reads that ask, a notice is posted one window before their predicted end. A
//! host without a queue for notices sees none.
//!
//! | file | what |
//! |---|---|
//! | `predictor` | the predicted time of a component: the mean of its last three times |
//! | `tracker` | the reads that ask: issue to a chip, due time of the notice, end |
//! | `figures` | the accuracy of notices |
//!
//! The components are the chips, from the issue of a read until its page is corrected in the controller, and the transfer
//! from there to the host. A prediction begins after the wait for the chip.
//!
//! Not predicted: writes; reads of 8 KiB and more; reads that need no flash. Left out: reads whose data is in several pages,
//! which separate tasks read.

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

/// Reads of this many bytes or more are not predicted (Shin 4.3.1).
pub(crate) const TOO_LARGE: u64 = 8 << 10;

/// Posts a notice to the queue of a host. Returns whether it had room.
type Post = Box<dyn Fn(CompletionEntry) -> bool>;

/// The destination of a host's notices.
pub(crate) struct Port {
    pub(crate) queue: QueueId,
    pub(crate) memory: Rc<dyn CompletionMemory>,
    pub(crate) window: Span,
    pub(crate) post: Post,
}
