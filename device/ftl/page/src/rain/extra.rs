//! Pages of a stripe that are read concurrently, in addition to the reads of the host.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::Poll;

use nandscape_device_media::{Broken, MediaError, PageId};
use nandscape_drive::Breakdown;
use nandscape_drive::breakdown::cause;
use nandscape_sim::Cause;
use nandscape_sim::executor::TaskId;

use super::super::PageFtl;

/// A page to read.
pub(crate) struct Extra {
    page: PageId,
    member: u32,
    cause: Cause,
    all: Rc<Extras>,
}

/// Pages that are waited for together.
struct Extras {
    task: TaskId,
    left: Cell<u32>,
    /// Members that could not be read, a bit each.
    failed: Cell<u32>,
    is_power_lost: Cell<bool>,
    /// The breakdown of the read that ended last.
    last: RefCell<Breakdown>,
}

impl PageFtl {
    /// Reads pages, each of a member. Returns the members that could not be read, a bit each.
    ///
    /// # Errors
    /// [`MediaError::PowerLost`].
    pub(super) async fn read_extras(
        &self,
        pages: impl Iterator<Item = (u32, PageId)>,
        cause: Cause,
        breakdown: &mut Breakdown,
    ) -> Result<u32, MediaError> {
        let pages: smallvec::SmallVec<[(u32, PageId); 8]> = pages.collect();
        let all = Rc::new(Extras {
            task: self.sim.current_task(),
            left: Cell::new(pages.len() as u32),
            failed: Cell::new(0),
            is_power_lost: Cell::new(false),
            last: RefCell::default(),
        });
        for (member, page) in pages {
            self.extras.start(Extra { page, member, cause, all: all.clone() });
        }
        std::future::poll_fn(|_| if all.left.get() == 0 { Poll::Ready(()) } else { Poll::Pending }).await;
        *breakdown += &*all.last.borrow();
        if all.is_power_lost.get() { Err(MediaError::PowerLost) } else { Ok(all.failed.get()) }
    }

    /// Reads one of them.
    pub(crate) async fn read_extra(&self, extra: &Extra) {
        let Extra { page, member, cause, all } = extra;
        let who = self.config.priority.who(*cause);
        let bytes = self.media.geometry().unit_size();
        let mut breakdown = Breakdown::new();
        let counted = match self.gate.is_closed() {
            true => Some(self.gate.pass(&self.media, who, &mut breakdown).await),
            false => None,
        };
        let read = self.media.read(*page, bytes, who, &mut breakdown).await;
        drop(counted);
        if let Err(error) = read {
            all.failed.set(all.failed.get() | 1 << member);
            all.is_power_lost.set(all.is_power_lost.get() || error == MediaError::PowerLost);
            let mut state = self.state.borrow_mut();
            state.take_note(Broken { error, page: *page });
        }
        all.left.set(all.left.get() - 1);
        if all.left.get() == 0 {
            *all.last.borrow_mut() = breakdown;
            self.sim.wake(all.task);
        }
        if read.is_err() {
            self.pump();
        }
    }
}

/// The cause of reads for the parity of a write.
pub(super) const FOR_PARITY: Cause = cause::READ_MODIFY_WRITE;
