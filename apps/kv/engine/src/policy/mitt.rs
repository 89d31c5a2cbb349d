//! MittOS (Li 3.1.8): a read that its drive cannot begin within the deadline is rejected at once, and the next
//! replica is asked. The last replica gets no deadline.
//!
//! With `waits` the last replica has a deadline too. If all reject, the replica that reported the shortest wait is
//! asked without one (the extension that Li proposes there).

use super::{Deadline, Getting, Policy};
use crate::client::{Attempts, Ended, Event, How};

/// See the module.
pub struct Mitt {
    /// The deadline.
    pub deadline: Deadline,
    /// Whether reported waits decide when all replicas reject.
    pub waits: bool,
}

impl Mitt {
    async fn tried(&self, tries: &mut Attempts<'_>) -> Ended {
        let replicas = tries.replicas();
        let with_deadline = if self.waits { replicas } else { replicas.saturating_sub(1) };
        let mut least = (u32::MAX, replicas.saturating_sub(1));
        for place in 0..with_deadline {
            let how = How { deadline_us: self.deadline.us(), ..How::default() };
            if !tries.send(place, how).await {
                break;
            }
            let event = tries.next(None).await;
            self.deadline.answered(matches!(event, Event::Busy(..)));
            match event {
                Event::Done(ended) => return ended,
                Event::Busy(place, wait_us) if self.waits => least = least.min((wait_us, place)),
                _ => {}
            }
        }
        if !tries.send(least.1, How::default()).await && !tries.is_waiting() {
            return Ended::Failed;
        }
        tries.finish().await
    }
}

impl Policy for Mitt {
    fn get<'a>(&'a self, tries: &'a mut Attempts<'_>) -> Getting<'a> {
        Box::pin(self.tried(tries))
    }

    fn deadline_us(&self) -> Option<u32> {
        Some(self.deadline.us())
    }
}
