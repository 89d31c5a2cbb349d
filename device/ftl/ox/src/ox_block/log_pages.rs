//! The log on its way to flash, a page at a time (OX 6.1.6).

use nandscape_device_ftl_core::component::{ChainedLog, Log, LogPosition, POINTERS, Stopped};
use nandscape_drive::breakdown::cause;

use super::chores::Chore;
use super::core::{Core, Mark, Phase};
use super::pages::{self, Kind};
use super::streams::LOG;

impl Core {
    /// Starts writing the log, if a page of it is due and none is being written.
    pub(super) fn kick_log(&self) {
        let is_due = self.is_alive() && self.state.borrow().log.is_due();
        if !is_due || self.flags.log_writing.get() {
            return;
        }
        if self.offer_log_pages() {
            self.flags.log_writing.set(true);
            self.chores.start(Chore::Log);
        } else {
            self.check_room_for_tables();
        }
    }

    /// Writes pages of the log while they are due.
    pub(super) async fn write_log(&self) -> Result<(), Stopped> {
        loop {
            self.offer_log_pages();
            if self.flags.mark_wanted.replace(false) {
                self.flags.mark.set(Some(self.mark()));
                self.log_changed.notify();
            }
            let Some(outgoing) = self.state.borrow_mut().log.outgoing() else { break };
            let issued = self.shared.free_slots.totals();
            let image = pages::image(self.media.geometry(), Kind::Log, 0, &outgoing.bytes);
            // Everything that the records refer to must be durable before them.
            self.sync();
            let (ended, breakdown) = self.start_program(outgoing.page, image, cause::METADATA).wait().await;
            self.still_running()?;
            if ended.is_ok() {
                let mut state = self.state.borrow_mut();
                let block = state.geometry.block_of(outgoing.page);
                let number = state.log.number();
                state.log_blocks.insert(block, number);
                state.log.written(&outgoing);
                state.counters.upkeep.pages.log += 1;
                drop(state);
                self.tell_durable(Some((&issued, &breakdown)));
            }
            self.log_changed.notify();
            if self.media.store_has_failed() {
                break;
            }
        }
        self.flags.log_writing.set(false);
        self.log_changed.notify();
        if self.state.borrow().log.is_broken() {
            self.request_checkpoint();
        }
        if self.is_writing() {
            // Due records without a page: one becomes available soon, or never.
            self.kick_log();
        }
        Ok(())
    }

    /// The instant between two pages of the log from which on all changes are in records to come.
    pub(super) async fn next_mark(&self) -> Result<Mark, Stopped> {
        if !self.flags.log_writing.get() {
            self.offer_log_pages();
            return Ok(self.mark());
        }
        self.flags.mark_wanted.set(true);
        loop {
            self.wait(&self.log_changed).await?;
            if let Some(mark) = self.flags.mark.take() {
                return Ok(mark);
            }
            if !self.flags.log_writing.get() && self.flags.mark_wanted.replace(false) {
                self.offer_log_pages();
                return Ok(self.mark());
            }
        }
    }

    fn mark(&self) -> Mark {
        let mut state = self.state.borrow_mut();
        let written = state.log.written_up_to();
        Mark {
            head: state.log.mark(),
            held: state.held.len(),
            breaks: state.log.breaks(),
            written,
            changes: state.changes(),
        }
    }

    /// Waits until all records up to a position are in a chain. Returns whether they are: not if the chain has broken
    /// since `breaks`.
    pub(super) async fn log_written(&self, upto: LogPosition, breaks: u32) -> Result<bool, Stopped> {
        self.state.borrow_mut().log.persist(upto);
        loop {
            self.kick_log();
            let (is_written, now) = {
                let state = self.state.borrow();
                (state.log.is_written(upto), state.log.breaks())
            };
            let is_over = self.media.store_has_failed() || self.phase.get() == Phase::ReadOnly;
            if now != breaks || is_written || is_over {
                return Ok(is_written);
            }
            self.wait(&self.log_changed).await?;
        }
    }

    /// Waits until all records so far can be read after a power cut.
    pub(super) async fn log_durable(&self) -> Result<(), Stopped> {
        let last = self.state.borrow().log.last();
        loop {
            self.state.borrow_mut().log.persist(last);
            self.kick_log();
            if self.state.borrow().log.is_durable(last) || !self.is_writing() {
                self.sync();
                return self.still_running();
            }
            self.wait(&self.log_changed).await?;
        }
    }

    /// Gives the log its next pages. Returns whether it has one.
    fn offer_log_pages(&self) -> bool {
        let mut state = self.state.borrow_mut();
        while state.log.lacking() > 0 {
            let Some(page) = state.page_for(LOG, None) else { break };
            state.log.offer(page);
        }
        state.log.lacking() <= POINTERS
    }
}
