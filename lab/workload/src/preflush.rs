//! Requests that follow a flush, as the host's block layer orders them: a request with a preflush is sent when that flush has
//! ended, and fails with it. The flush and the request are two requests with their own latencies; that of the second begins when
//! it is sent.

use std::cell::{Cell, RefCell};

use crate::request::Request;

/// The flushes of a job that requests wait for.
#[derive(Default)]
pub(crate) struct Preflushes {
    /// The last flush that was sent, while it is in flight.
    last: Cell<Option<u64>>,
    /// Requests, and whether they are measured, by the flush that each waits for.
    held: RefCell<Vec<(u64, Request, bool)>>,
}

impl Preflushes {
    /// A flush was sent, and is in flight under this tag unless it has ended at once.
    pub(crate) fn sent(&self, tag: Option<u64>) {
        self.last.set(tag);
    }

    /// Keeps a request until the last flush has ended. Returns `false` if that flush has ended.
    pub(crate) fn hold(&self, request: Request, measured: bool) -> bool {
        let Some(tag) = self.last.get() else { return false };
        self.held.borrow_mut().push((tag, request, measured));
        true
    }

    /// A flush has ended. Returns the request that waited for it.
    pub(crate) fn ended(&self, tag: u64) -> Option<(Request, bool)> {
        if self.last.get() == Some(tag) {
            self.last.set(None);
        }
        let mut held = self.held.borrow_mut();
        let place = held.iter().position(|(flush, ..)| *flush == tag)?;
        let (_, request, measured) = held.swap_remove(place);
        Some((request, measured))
    }
}
