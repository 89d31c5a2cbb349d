//! Hedged requests with deadlines (Li 6.1: hedged requests can coexist with MittOS). The next replica is asked when
//! the drive rejects the read, or when no answer has arrived within the hedging time, whatever the cause.

use nandscape_sim::Span;

use super::{Deadline, Getting, Hedged, Policy};
use crate::client::{Attempts, Event, How};

/// See the module.
pub struct HedgedMitt {
    /// When the second try is sent in any case.
    pub hedged: Hedged,
    /// The deadline.
    pub deadline: Deadline,
}

impl Policy for HedgedMitt {
    fn get<'a>(&'a self, tries: &'a mut Attempts<'_>) -> Getting<'a> {
        Box::pin(async {
            let last = tries.replicas().saturating_sub(1);
            let (mut place, mut due) = (0, Some(tries.begun() + self.hedged.after()));
            let how =
                |place: usize| How { deadline_us: if place < last { self.deadline.us() } else { 0 }, ..How::default() };
            tries.send(place, how(place)).await;
            loop {
                let event = tries.next(due).await;
                match event {
                    Event::Done(ended) => {
                        self.deadline.answered(false);
                        return ended;
                    }
                    Event::Busy(..) => self.deadline.answered(true),
                    // One hedge; further tries follow rejections only.
                    Event::Due => due = None,
                    Event::Begun(_) => continue,
                }
                if place < last {
                    place += 1;
                    tries.send(place, how(place)).await;
                } else if !tries.is_waiting() {
                    return tries.finish().await;
                }
            }
        })
    }

    fn ended(&self, took: Span) {
        self.hedged.saw(took);
    }

    fn deadline_us(&self) -> Option<u32> {
        Some(self.deadline.us())
    }
}
