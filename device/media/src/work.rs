//! What operations of the flash cost the controller's processors: each is given them as it begins, and does not wait for them.
//!
//! Left out: that an operation begins later where all processors are busy. They are busy with it all the same, so commands wait.

use std::rc::Rc;

use nandscape_sim::{Cause, Processors, Span};

use crate::fault::Operation;
use crate::media::Media;
use crate::watch::For;

/// See the module.
pub struct FlashWork {
    /// What does it.
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
    /// Has operations cost processors time from now on. Whether it was the first time; a second one changes nothing.
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
