//! Programs of pages: all of them, of all streams, begin here, in the order in which their pages were handed out.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_device_ftl_core::address::SlotId;
use nandscape_device_ftl_core::component::{Stopped, Stream};
use nandscape_device_ftl_core::ftl::ReadOnly;
use nandscape_device_media::{MediaError, PageId, PageImage};
use nandscape_drive::Breakdown;
use nandscape_sim::executor::TaskId;
use nandscape_sim::{Cause, Sim};
use smallvec::SmallVec;

use super::core::{Core, Phase};
use super::streams::META;

/// A page to be programmed.
pub(super) struct ProgramJob {
    pub(super) page: PageId,
    pub(super) image: PageImage,
    pub(super) cause: Cause,
    pub(super) then: Then,
}

/// The next step after a program.
pub(super) enum Then {
    /// The slots of the write cache become current.
    Slots(SmallVec<[SlotId; 8]>),
    /// A waiter is notified.
    Tell(Rc<Done>),
}

/// The end of a program.
pub(super) struct Done {
    sim: Sim,
    ended: RefCell<Option<(Result<(), MediaError>, Breakdown)>>,
    waiting: Cell<Option<TaskId>>,
}

impl Done {
    fn tell(&self, ended: Result<(), MediaError>, breakdown: Breakdown) {
        *self.ended.borrow_mut() = Some((ended, breakdown));
        if let Some(task) = self.waiting.take() {
            self.sim.wake(task);
        }
    }

    /// Waits for the end.
    pub(super) async fn wait(&self) -> (Result<(), MediaError>, Breakdown) {
        std::future::poll_fn(|_| match self.ended.borrow_mut().take() {
            Some(ended) => std::task::Poll::Ready(ended),
            None => {
                self.waiting.set(Some(self.sim.current_task()));
                std::task::Poll::Pending
            }
        })
        .await
    }
}

impl Core {
    /// Programs a page that was just handed out.
    pub(super) fn start_program(&self, page: PageId, image: PageImage, cause: Cause) -> Rc<Done> {
        let done = Rc::new(Done { sim: self.sim.clone(), ended: RefCell::new(None), waiting: Cell::new(None) });
        self.programs.start(ProgramJob { page, image, cause, then: Then::Tell(done.clone()) });
        done
    }

    /// Waits for a page of a stream.
    ///
    /// # Errors
    /// When power is cut, or no block will ever return: the drive is read-only then.
    pub(super) async fn page_of(&self, stream: Stream, channel: Option<u32>) -> Result<PageId, Stopped> {
        let begun = self.state.borrow().progress();
        loop {
            self.still_running()?;
            if let Some(page) = self.state.borrow_mut().page_for(stream, channel) {
                return Ok(page);
            }
            if stream == META && (self.flags.writing_tables.get() || self.phase.get() == Phase::Starting) {
                self.check_room_for_tables();
            } else if self.state.borrow().progress().is_barren_since(begun) {
                self.give_up_writing(if stream == META { ReadOnly::NoRoomForTables } else { ReadOnly::NoRoomForData });
            }
            if self.phase.get() == Phase::ReadOnly {
                return Err(Stopped);
            }
            self.request_checkpoint();
            let wanted = &self.flags.table_pages_wanted;
            wanted.set(wanted.get() + u32::from(stream == META));
            let waited = self.wait(&self.space).await;
            wanted.set(wanted.get() - u32::from(stream == META));
            waited?;
        }
    }

    /// Programs a page somewhere, and elsewhere if that fails. Calls `placed` when it is programmed.
    pub(super) async fn write_page(
        &self,
        stream: Stream,
        channel: Option<u32>,
        image: PageImage,
        cause: Cause,
    ) -> Result<PageId, Stopped> {
        loop {
            let page = self.page_of(stream, channel).await?;
            let block = self.media.geometry().block_of(page);
            self.state.borrow_mut().begin_pending(block, 1);
            let (ended, _) = self.start_program(page, image.clone(), cause).wait().await;
            self.still_running()?;
            match ended {
                // The caller makes the page current without waiting, then ends pending waits.
                Ok(()) => return Ok(page),
                Err(error) => {
                    self.state.borrow_mut().end_pending(block, 1);
                    if error == MediaError::Store {
                        return Err(Stopped);
                    }
                }
            }
        }
    }

    /// See [`ProgramJob`].
    pub(super) async fn program(&self, job: &mut ProgramJob) {
        let issued = self.shared.free_slots.totals();
        let mut breakdown = Breakdown::new();
        if !self.is_alive() {
            // Power may have returned, and the page may have another use.
            if let Then::Tell(done) = &job.then {
                done.tell(Err(MediaError::PowerLost), breakdown);
            }
            return;
        }
        let image = std::mem::take(&mut job.image);
        let who = self.config.priority.who(job.cause);
        let loaded = |breakdown: &Breakdown| self.slots_loaded(&job.then, &issued, breakdown);
        let ended = self.media.program_together(&[job.page], &image, who, &mut breakdown, loaded).await;
        let ended = if self.is_alive() { ended.map_err(|broken| broken.error) } else { Err(MediaError::PowerLost) };
        if self.is_alive() {
            self.page_ended(job, ended);
        }
        match &job.then {
            Then::Tell(done) => done.tell(ended, breakdown),
            Then::Slots(slots) if self.is_alive() => {
                self.slots_programmed(job.page, slots, ended, (&issued, &breakdown)).await;
            }
            Then::Slots(_) => {}
        }
    }

    fn page_ended(&self, job: &ProgramJob, ended: Result<(), MediaError>) {
        let mut state = self.state.borrow_mut();
        // Closed first: a block whose last page fails must not count as full.
        if let Err(error) = ended {
            if let MediaError::Misuse(misuse) = error {
                panic!("a bug of OX-Block: program of {:?}: {misuse}", job.page);
            }
            if error == MediaError::NoAnswer {
                let plane = state.geometry.plane_of(state.geometry.block_of(job.page));
                state.plane_died(plane);
            }
            // Where the file cannot be written, the block is as good as before.
            if error != MediaError::Store {
                state.close(job.page);
            }
        }
        state.page_ended(job.page);
        if matches!(job.then, Then::Slots(_)) {
            state.host_program_ended(job.page);
            self.space.notify();
        }
        let block = state.geometry.block_of(job.page);
        drop(state);
        match ended {
            Ok(()) => self.end_block(block),
            Err(MediaError::Store) => self.give_up_writing(ReadOnly::Store),
            Err(MediaError::NoAnswer) => self.check_read_only(),
            Err(_) => {}
        }
    }

    fn slots_loaded(&self, then: &Then, issued: &nandscape_sim::account::Totals, breakdown: &Breakdown) {
        let Then::Slots(slots) = then else { return };
        if !self.is_alive() {
            return;
        }
        let mut told = Vec::new();
        let mut state = self.state.borrow_mut();
        slots.iter().for_each(|slot| state.cache.loaded(*slot, &mut told));
        drop(state);
        told.iter().for_each(|settling| settling.one_settled(Some((issued, breakdown))));
    }
}
