//! A queue of notices for drives over queue pairs: each notice reaches the receiver of its command's completion.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

use nandscape_wire_nvme::Status;

use crate::controller::{Controller, QueueId};
use crate::notice_queue::{Notice, NoticeQueue};
use crate::queue_drive::QueueDrive;

/// See the file.
pub struct Announcements {
    queue: Rc<NoticeQueue>,
    drives: Drives,
}

/// The drives whose commands may ask, by queue.
type Drives = Rc<RefCell<BTreeMap<QueueId, Weak<QueueDrive>>>>;

impl Announcements {
    /// Creates pair `id` of a controller with `entries` entries for notices. The caller sets the feature.
    ///
    /// # Errors
    /// Those of [`Controller::create_queue_pair`].
    pub fn new(controller: Rc<dyn Controller>, id: QueueId, entries: u32) -> Result<Announcements, Status> {
        let drives = Drives::default();
        let of = drives.clone();
        let arrived = move |Notice { queue, cid, remaining }| {
            let drive = of.borrow().get(&queue).and_then(Weak::upgrade);
            drive.iter().for_each(|drive| drive.announce(cid, remaining));
        };
        Ok(Announcements { queue: NoticeQueue::new(controller, id, entries, arrived)?, drives })
    }

    /// The number of the pair.
    pub fn id(&self) -> QueueId {
        self.queue.id()
    }

    /// Passes on the notices of this drive's commands from now on.
    pub fn add(&self, drive: &Rc<QueueDrive>) {
        self.drives.borrow_mut().insert(drive.id(), Rc::downgrade(drive));
    }
}
