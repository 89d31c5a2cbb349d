//! Tied requests (Dean and Barroso, "The Tail at Scale"; Li 1.1): a get waits in the queues of two servers, and is cancelled at one
//! when the other begins it.
//!
//! Servers do not know each other here: the server that begins notifies the client, which cancels at the other. A
//! cancellation thus takes two hops, and a get that both begin meanwhile is executed twice. A get that waits in a
//! drive has begun; cancelling reaches it there if the drive can cancel.

use super::{Getting, Policy};
use crate::client::{Attempts, Event, How};

/// See the module.
pub struct Tied;

impl Policy for Tied {
    fn get<'a>(&'a self, tries: &'a mut Attempts<'_>) -> Getting<'a> {
        Box::pin(async {
            let how = How { tell_begun: true, ..How::default() };
            tries.send(0, how).await;
            tries.send(1, how).await;
            loop {
                match tries.next(None).await {
                    Event::Done(ended) => return ended,
                    Event::Begun(place @ (0 | 1)) => {
                        tries.cancel(1 - place);
                        return tries.finish().await;
                    }
                    _ => {}
                }
            }
        })
    }
}
