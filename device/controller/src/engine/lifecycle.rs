//! Deleting queues, resetting, shutting down. Each stops commands and waits for the last one to end, so none touches memory
//! or data afterwards. The subsystem handles power cuts.
//!
//! Base 5.2.4 (Delete I/O Submission Queue): commands of the queue end, or are aborted with Command Aborted due to SQ
//! Deletion, before the deletion completes. Base 3.7.2: a controller reset aborts all commands, deletes all I/O queues and
//! keeps the properties that describe the admin queues.

use std::rc::{Rc, Weak};

use nandscape_drive::{Breakdown, CompletionMemory, Controller, QueueId, Stage};
use nandscape_wire_nvme::Status;
use nandscape_wire_nvme::register::ControllerConfiguration;

use super::NvmeController;
use super::coalescing::Timer;
use super::queues::Released;
use crate::admin::{Event, watch_keep_alive};
use crate::subsystem::NvmSubsystem;

/// Work that takes time and belongs to no command.
pub(crate) enum Chore {
    /// Restart after a power cut.
    Restart(Rc<NvmSubsystem>),
    /// Shut a controller down.
    ShutDown(Shutdown),
    /// Fail a controller whose Keep Alive Timer expires.
    WatchKeepAlive(Weak<NvmeController>),
    /// Notify a host of completions.
    EndAggregation(Timer),
    /// Drop all data.
    Sanitize(Rc<NvmSubsystem>),
    /// Carry out a self-test.
    SelfTest(Rc<NvmSubsystem>),
}

impl Chore {
    /// Does it.
    pub(crate) async fn run(&mut self) {
        match self {
            Chore::Restart(subsystem) => subsystem.restart().await,
            Chore::ShutDown(shutdown) => shutdown.run().await,
            Chore::WatchKeepAlive(controller) => watch_keep_alive(controller).await,
            Chore::EndAggregation(timer) => timer.fire(),
            Chore::Sanitize(subsystem) => subsystem.sanitize().await,
            Chore::SelfTest(subsystem) => subsystem.self_test().await,
        }
    }
}

/// A shutdown that the host has asked for (CC.SHN).
pub(crate) struct Shutdown {
    controller: Rc<NvmeController>,
    /// Whether data that a power cut would lose is flushed first, and tables for the next start are written.
    flushes: bool,
    /// Which shutdown of the controller it is.
    number: u32,
}

impl Shutdown {
    /// Commands are still served, because the host has stopped sending them. A reset meanwhile cancels the shutdown.
    async fn run(&self) {
        if self.flushes {
            self.controller.subsystem.set.storage().shut_down().await;
        }
        if self.controller.registers.borrow().is_current_shutdown(self.number) {
            // The host may now reuse their memory without a reset (Linux does on removal of its driver).
            self.controller.forget_doorbell_buffers();
            self.controller.registers.borrow_mut().end_shutdown();
        }
    }
}

/// Why all queues are deleted.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Clearing {
    /// The host leaves.
    Detach,
    /// The controller is reset.
    Reset,
}

impl NvmeController {
    /// Begins to delete a submission queue, and with `completions` its completion queue. The deletion ends now, or with the
    /// last command of the queue.
    pub(super) fn begin_deletion(&self, id: QueueId, completions: bool) -> Result<(), Status> {
        let key = self.queues.borrow_mut().begin_deletion(id, completions)?;
        self.waiters.stop(Status::ABORTED_SQ_DELETION, |queue, _| queue == key);
        self.end_deletion(id);
        Ok(())
    }

    /// Ends the deletion of a submission queue if none of its commands is in work.
    pub(super) fn end_deletion(&self, id: QueueId) {
        let ended = self.queues.borrow_mut().end_deletion(id);
        let Some(Released { submissions, completions, is_unblocked }) = ended else { return };
        if id == QueueId::ADMIN {
            self.admin.forget_event_requests();
        }
        submissions.released();
        if let Some(memory) = completions {
            self.queue_deleted(&memory);
        }
        self.deleted.notify();
        self.end_clearing();
        if is_unblocked {
            self.fetch();
        }
    }

    /// Deletes a submission queue, and waits for the deletion and the queue's commands in work.
    pub(crate) async fn delete_submission(&self, id: QueueId, breakdown: &mut Breakdown) -> Result<(), Status> {
        let key = self.queues.borrow().key(id).ok_or(Status::INVALID_QUEUE_ID.final_())?;
        self.begin_deletion(id, false)?;
        let begun = self.sim.now();
        while self.queues.borrow().exists(key) {
            self.deleted.changed().await;
        }
        breakdown.waits(Stage::Queue).add(self.subsystem.slots.last_ended(), self.sim.now() - begun);
        Ok(())
    }

    /// The host has written Controller Configuration.
    pub(super) fn configure(self: &Rc<Self>, to: ControllerConfiguration) {
        let from = self.registers.borrow_mut().configure(to);
        match (from.enabled(), to.enabled()) {
            (true, false) => self.clear(Clearing::Reset),
            (false, true) if self.clearing.get().is_none() => self.enable(),
            _ => {}
        }
        // A disabled controller is shut down too: its subsystem may hold data of other hosts (Base 3.6.1).
        if from.shutdown() == 0 && to.shutdown() != 0 {
            let number = self.registers.borrow_mut().begin_shutdown();
            // Normal (01b) flushes, abrupt (10b) does not.
            let flushes = to.shutdown() == 0b01;
            self.subsystem.chores.start(Chore::ShutDown(Shutdown { controller: self.clone(), flushes, number }));
        }
    }

    /// CC.EN changed to 1: starts serving the admin queues of a host that names them by address.
    fn enable(&self) {
        self.choose_arbiter();
        let is_supported = {
            let registers = self.registers.borrow();
            registers.is_supported() && registers.cc.command_set() == self.subsystem.set.selected_by()
        };
        if !is_supported || self.create_admin_queues().is_err() {
            self.registers.borrow_mut().set_fatal();
            return;
        }
        self.registers.borrow_mut().set_ready(true);
        self.update_fetching();
        self.fetch();
    }

    /// The controller fails (CSTS.CFS): it fetches nothing until it is reset.
    pub(crate) fn fail(&self, status: Status) {
        self.admin.errors.borrow_mut().failed(status);
        self.registers.borrow_mut().set_fatal();
        self.update_fetching();
    }

    /// The host rang a doorbell of no queue, or with a value outside its queue.
    #[cold]
    pub(super) fn bad_doorbell(&self, event: Event) {
        if self.registers.borrow().is_ready() && self.clearing.get().is_none() {
            self.raise(event);
        }
    }

    fn create_admin_queues(&self) -> Result<(), Status> {
        let Some(host) = self.attached.borrow().clone() else { return Ok(()) };
        let queues = self.registers.borrow().admin_queues();
        if host.page() != queues.page {
            return Err(Status::INVALID_FIELD);
        }
        let ((asq, submissions), (acq, completions)) = (queues.submission, queues.completion);
        let submissions = host.submissions(QueueId::ADMIN, asq, submissions);
        self.create_queue_pair(QueueId::ADMIN, submissions, host.completions(QueueId::ADMIN, acq, completions, Some(0)))
    }

    /// Begins to stop all commands and delete all queues.
    pub(super) fn clear(&self, why: Clearing) {
        // A reset takes precedence over a host that leaves.
        self.clearing.set(self.clearing.get().max(Some(why)));
        self.update_fetching();
        let queues = self.queues.borrow().existing();
        for id in queues {
            // Queues in deletion continue.
            let _ = self.begin_deletion(id, true);
        }
        self.end_clearing();
    }

    /// Ends the work of [`NvmeController::clear`] if no submission queue is left: features get their defaults. After a reset,
    /// the controller is not ready.
    fn end_clearing(&self) {
        let Some(why) = self.clearing.get() else { return };
        if !self.queues.borrow().existing().is_empty() {
            return;
        }
        let unused = self.queues.borrow_mut().take_unused_completions();
        unused.iter().for_each(|memory| self.queue_deleted(memory));
        let keep_alive = self.keep_alive_over_reset();
        self.admin.reset(&self.subsystem.saved, self.owner(), self.sim.now());
        match keep_alive {
            Some(timeout_ms) => self.connected_with_keep_alive(timeout_ms),
            None => self.keep_alive_changed(),
        }
        self.coalescing.forget();
        self.forget_doorbell_buffers();
        self.subsystem.forget_registrations(self.id);
        self.subsystem.end_streams(self.id);
        self.subsystem.self_tests.controller_reset(self.number, self.sim.now());
        self.clearing.set(None);
        if why == Clearing::Reset {
            self.registers.borrow_mut().set_ready(false);
            // The host enabled the controller before the reset ended.
            if self.registers.borrow().cc.enabled() {
                self.enable();
            }
        }
        self.update_fetching();
    }

    /// From now on, doorbells are only in registers.
    fn forget_doorbell_buffers(&self) {
        if let Some(host) = &*self.attached.borrow() {
            host.set_doorbell_buffers(None);
        }
    }

    /// A completion queue was deleted: its host is no longer notified of it.
    pub(crate) fn queue_deleted(&self, memory: &Rc<dyn CompletionMemory>) {
        self.coalescing.forget_queue(memory);
        memory.released();
    }

    /// Whether memory of a queue was unreachable. No completion can report it: the controller sets the fatal status, and
    /// fetches nothing until the next reset (Base 3.1.4.6, 9.5).
    #[cold]
    pub(super) fn check_queue_memory(&self) -> bool {
        let is_lost = self.queues.borrow_mut().take_lost();
        if is_lost {
            self.registers.borrow_mut().set_fatal();
            self.update_fetching();
        }
        is_lost
    }

    /// Updates whether entries are fetched: the controller is ready, without a fatal status or a reset; the drive is not
    /// restarting; and few commands wait for their host.
    pub(crate) fn update_fetching(&self) {
        let ready = self.registers.borrow().can_fetch() && !self.asking.is_full();
        self.fetching.set(ready && self.clearing.get().is_none() && !self.subsystem.power.is_restarting());
    }
}
