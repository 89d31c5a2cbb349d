//! A long read whose reply must be one piece, while memory for all of it is not free: its data is sent in order as
//! parts of it are read.
//!
//! Other replies of the client wait until the last byte is queued, and no other read of the client begins before all
//! parts are in the drive. The buffers guaranteed to every client therefore suffice to finish the read. An error
//! after the first part cannot be reported within the reply.

use std::collections::BTreeMap;
use std::rc::Rc;

use nandscape_transport_reactor::Loan;

/// See the module.
pub(crate) struct Streamed {
    /// The place on the drive up to which data was queued to be sent.
    sent_to: u64,
    end: u64,
    /// Parts that were read before an earlier one, by their place.
    early: BTreeMap<u64, Rc<Loan>>,
}

impl Streamed {
    /// A read of `len` bytes at `offset`.
    pub(crate) fn new(offset: u64, len: u32) -> Streamed {
        Streamed { sent_to: offset, end: offset + u64::from(len), early: BTreeMap::new() }
    }

    /// The part at `offset` was read.
    pub(crate) fn add(&mut self, offset: u64, data: Rc<Loan>) {
        self.early.insert(offset, data);
    }

    /// The part that is sent next, if it was read; and whether it is the last.
    pub(crate) fn next(&mut self) -> Option<(Rc<Loan>, bool)> {
        let data = self.early.remove(&self.sent_to)?;
        self.sent_to += data.bytes().len() as u64;
        Some((data, self.sent_to == self.end))
    }
}
