//! Requests that follow a flush, as the host's block layer orders them: a request with a preflush is sent when that flush has
//! ended, and fails with it. The flush and the request are two requests with their own latencies; that of the second begins when
//! it is sent.

use std::cell::RefCell;

use nandscape_drive::Completion;

use crate::request::Request;

/// The flushes of a job that requests wait for.
#[derive(Default)]
pub(crate) struct Preflushes {
    last: RefCell<Last>,
    /// Requests, and whether they are measured, by the flush that each waits for.
    held: RefCell<Vec<(u64, Request, bool)>>,
}

/// The last flush that requests may follow.
#[derive(Clone, Default)]
enum Last {
    /// It has succeeded, or there was none.
    #[default]
    Done,
    /// It is in flight under this tag.
    Sent(u64),
    /// It has failed.
    Failed(Completion),
}

/// What becomes of a request that follows a flush.
pub(crate) enum Follows {
    /// It is sent now.
    Now,
    /// It is kept until the flush has ended.
    Later,
    /// It fails as the flush has, unsent.
    Fails(Completion),
}

impl Preflushes {
    /// A flush is sent under this tag.
    pub(crate) fn sent(&self, tag: u64) {
        self.last.replace(Last::Sent(tag));
    }

    /// A request follows the last flush.
    pub(crate) fn follows(&self, request: Request, measured: bool) -> Follows {
        match &*self.last.borrow() {
            Last::Done => Follows::Now,
            Last::Sent(tag) => {
                self.held.borrow_mut().push((*tag, request, measured));
                Follows::Later
            }
            Last::Failed(completion) => Follows::Fails(completion.clone()),
        }
    }

    /// A flush has ended. Returns the request that waited for it.
    pub(crate) fn ended(&self, tag: u64, completion: &Completion) -> Option<(Request, bool)> {
        self.last.replace_with(|last| match last {
            Last::Sent(sent) if *sent == tag && completion.status.is_success() => Last::Done,
            Last::Sent(sent) if *sent == tag => Last::Failed(completion.clone()),
            last => last.clone(),
        });
        let mut held = self.held.borrow_mut();
        let place = held.iter().position(|(flush, ..)| *flush == tag)?;
        let (_, request, measured) = held.swap_remove(place);
        Some((request, measured))
    }
}
