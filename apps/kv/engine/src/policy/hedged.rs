//! Hedged requests (Dean and Barroso, "The Tail at Scale"; Li 1.1): a second replica is asked when the first has not
//! answered within the 95th percentile of the expected latencies. The first answer counts; the other try continues.

use nandscape_sim::Span;

use super::{Getting, Policy};
use crate::average::Recent;
use crate::client::{Attempts, Event, How};

/// When the second try is sent while no latency is known.
const AT_FIRST: Span = Span::from_ms(1);

/// See the module.
pub struct Hedged {
    after: Option<Span>,
    seen: Recent,
}

impl Hedged {
    /// Sends a second try after this time; `None` is the 95th percentile of recent gets.
    pub fn new(after: Option<Span>) -> Hedged {
        Hedged { after, seen: Recent::new(0.95) }
    }

    /// When the second try is sent.
    pub fn after(&self) -> Span {
        self.after.or(self.seen.get()).unwrap_or(AT_FIRST)
    }

    /// Notes a latency.
    pub(super) fn saw(&self, took: Span) {
        self.seen.add(took);
    }
}

impl Policy for Hedged {
    fn get<'a>(&'a self, tries: &'a mut Attempts<'_>) -> Getting<'a> {
        Box::pin(async {
            let due = tries.begun() + self.after();
            tries.send(0, How::default()).await;
            match tries.next(Some(due)).await {
                Event::Done(ended) => return ended,
                _ => tries.send(1, How::default()).await,
            };
            tries.finish().await
        })
    }

    fn ended(&self, took: Span) {
        self.saw(took);
    }
}
