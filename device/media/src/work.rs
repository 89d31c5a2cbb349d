//! The cost of flash operations for the controller's processors. Each operation charges its work when it begins, and does not
//! wait for it.
//!
//! Left out: an operation begins no later where all processors are busy. The processors are still occupied, so commands
//! wait.

use std::rc::Rc;

use nandscape_sim::{Cause, Processors, Span};

use crate::fault::Operation;
use crate::media::Media;
use crate::watch::For;

/// See the module.
pub struct FlashWork {
    /// The processors.
    pub processors: Rc<Processors>,
    /// Time of an operation: its submission and its completion.
    pub operation: Span,
    /// Time of 1 KiB that is moved to the flash or from it.
    pub kib: Span,
}

impl FlashWork {
    fn give(&self, bytes: u64, cause: Cause) {
        let moved = Span::from_ns(self.kib.ns() * bytes / 1_024);
        self.processors.give(self.operation + moved, cause);
    }
}

impl Media {
    /// Charges processors for operations from now on. Returns whether this was the first call; a second call changes
    /// nothing.
    pub fn set_work(&self, work: FlashWork) -> bool {
        self.work.set(work).is_ok()
    }

    /// Gives the processors the work of an operation on a number of pages. Copies within a plane count as programs.
    #[cold]
    pub(crate) fn give_work(&self, work: &FlashWork, operation: Operation, pages: usize, of: For) {
        let page = u64::from(self.geometry.page_size());
        let bytes = match operation {
            Operation::Read if self.timing.partial_transfer => of.bytes.into(),
            Operation::Read => page,
            Operation::Program => page * pages as u64,
            Operation::Erase => 0,
        };
        work.give(bytes, of.cause);
    }
}
