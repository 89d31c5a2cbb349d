//! The queue that announces completions ahead of time to a host of this process ([`NOTICES`]): a queue pair whose
//! submission queue stays empty.
//!
//! Left out: the host's use of a notice.
//!
//! [`NOTICES`]: nandscape_wire_nvme::vendor::NOTICES

use std::cell::Cell;
use std::rc::{Rc, Weak};

use nandscape_sim::Span;
use nandscape_wire_nvme::Status;

use crate::controller::{Controller, QueueId};
use crate::ring::Ring;

/// A notice.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Notice {
    /// The submission queue of the command.
    pub queue: QueueId,
    /// Its identifier.
    pub cid: u16,
    /// How long it is predicted to take from now on.
    pub remaining: Span,
}

/// See the file.
pub struct NoticeQueue {
    controller: Rc<dyn Controller>,
    id: QueueId,
    ring: Rc<Ring>,
    /// The next entry, and its phase.
    head: Cell<(u16, bool)>,
    arrived: Box<dyn Fn(Notice)>,
}

impl NoticeQueue {
    /// Creates pair `id` of a controller with `entries` entries and calls `arrived` with each notice. The caller sets
    /// the feature.
    ///
    /// # Errors
    /// Those of [`Controller::create_queue_pair`].
    pub fn new(
        controller: Rc<dyn Controller>,
        id: QueueId,
        entries: u32,
        arrived: impl Fn(Notice) + 'static,
    ) -> Result<Rc<NoticeQueue>, Status> {
        let queue = Rc::new_cyclic(|me: &Weak<NoticeQueue>| {
            let me = me.clone();
            let notify = move || {
                if let Some(queue) = me.upgrade() {
                    queue.reap();
                }
            };
            let (ring, arrived) = (Rc::new(Ring::new(entries, Some(Rc::new(notify)))), Box::new(arrived));
            NoticeQueue { controller, id, ring, head: Cell::new((0, true)), arrived }
        });
        queue.controller.create_queue_pair(id, queue.ring.clone(), queue.ring.clone())?;
        Ok(queue)
    }

    /// Its number.
    pub fn id(&self) -> QueueId {
        self.id
    }

    fn reap(&self) {
        let (mut head, mut phase) = self.head.get();
        while let Some(posted) = self.ring.reap(head, phase) {
            head = self.ring.next(head);
            phase ^= head == 0;
            self.head.set((head, phase));
            self.controller.ring_completion(self.id, head);
            let (queue, cid) = (QueueId(posted.entry.sq_id.get()), posted.entry.cid.get());
            (self.arrived)(Notice { queue, cid, remaining: Span::from_ns(posted.entry.dw0.get().into()) });
        }
    }
}

impl Drop for NoticeQueue {
    fn drop(&mut self) {
        let _ = self.controller.delete_queue_pair(self.id);
    }
}
