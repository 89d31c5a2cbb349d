//! Commands whose memory only their host reaches (see `Memory::settle` of the drive's crate): the controller requests the
//! data by messages, and the command waits for the answers. A host that answers late, or never, delays no other host: its
//! waiting commands hold neither slot nor namespace, and every early end takes effect at once. A limit on waiting commands
//! bounds the data kept for a host.
//!
//! A command that lacks memory fails before it has any effect; it is served again once its host has answered. Data for the
//! host is sent at the end of the command, before its completion.

use std::cell::Cell;
use std::rc::Rc;

use nandscape_drive::mem::Need;
use nandscape_drive::{Breakdown, HostMem, QueueId, Stage};
use nandscape_sim::Sim;
use nandscape_sim::signal::Signal;
use nandscape_wire_nvme::{Status, SubmissionEntry};

use super::fused::FusedJob;
use super::serve::{CommandJob, cause_of, without_namespace};
use super::{NvmeController, Stop};
use crate::command_set::{Command, Reply};

/// Commands of a controller that may keep data of their host at a time.
const MOST_ADMITTED: u32 = 64;
/// Commands of a controller that may wait for their host before it fetches no more.
const MOST_WAITING: u32 = 64;

/// How many commands of a controller wait for their host.
pub(super) struct Asking {
    waiting: Cell<u32>,
    admitted: Cell<u32>,
    /// Notified when a command releases its data.
    released: Signal,
}

impl Asking {
    pub(super) fn new(sim: &Sim) -> Rc<Asking> {
        Rc::new(Asking { waiting: Cell::new(0), admitted: Cell::new(0), released: Signal::new(sim) })
    }

    /// Whether fetching stops because too many commands wait.
    pub(super) fn is_full(&self) -> bool {
        self.waiting.get() >= MOST_WAITING
    }

    async fn admit(self: &Rc<Self>) -> Permit {
        while self.admitted.get() >= MOST_ADMITTED {
            self.released.changed().await;
        }
        self.admitted.set(self.admitted.get() + 1);
        Permit(self.clone())
    }
}

/// A command may keep data of its host until this is dropped.
pub(crate) struct Permit(Rc<Asking>);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.admitted.set(self.0.admitted.get() - 1);
        self.0.released.notify();
    }
}

impl NvmeController {
    /// Asks the host for what memories of a command need, and waits for its answers.
    ///
    /// # Errors
    /// The status with which the command is to end.
    pub(crate) async fn ask_host(
        &self,
        stop: Stop<'_>,
        entry: &SubmissionEntry,
        memories: &[&HostMem],
        permit: &mut Option<Permit>,
        breakdown: &mut Breakdown,
    ) -> Result<(), Status> {
        let begun = self.sim.now();
        self.asking.waiting.set(self.asking.waiting.get() + 1);
        self.update_fetching();
        self.lend_slot(entry);
        let answered = stop.or_stopped(self.answers(memories, permit)).await;
        self.subsystem.slots.take();
        self.asking.waiting.set(self.asking.waiting.get() - 1);
        self.update_fetching();
        self.fetch();
        breakdown.spend(Stage::Link, self.sim.now() - begun);
        if answered.is_err() {
            memories.iter().for_each(|memory| memory.give_up());
        }
        answered
    }

    async fn answers(&self, memories: &[&HostMem], permit: &mut Option<Permit>) {
        if permit.is_none() {
            *permit = Some(self.asking.admit().await);
        }
        let left = Rc::new((Cell::new(memories.len()), Signal::new(&self.sim)));
        for memory in memories {
            let left = left.clone();
            memory.settle(Box::new(move || {
                left.0.set(left.0.get() - 1);
                left.1.notify();
            }));
        }
        while left.0.get() > 0 {
            left.1.changed().await;
        }
    }

    /// Frees the slot of a command that waits for its host.
    fn lend_slot(&self, entry: &SubmissionEntry) {
        let subsystem = &*self.subsystem;
        if subsystem.slots.give_back(cause_of(entry.opcode)) && subsystem.power.is_restarting() {
            subsystem.slots.report_idle();
        }
        if subsystem.slots.are_shared() {
            self.fetch_in_turn();
        }
        self.fetch();
    }
}

impl CommandJob {
    /// The end of a command that failed, or whose memory is not settled.
    #[cold]
    pub(super) async fn settle(&mut self, mut reply: Option<Reply>, breakdown: &mut Breakdown) -> Option<Reply> {
        let (controller, mem) = (self.controller.clone(), self.submission.mem.clone());
        let mut permit = None;
        while mem.need() != Need::Nothing {
            let lacks = mem.need() == Need::Fetch;
            if let Some(namespace) = self.namespace.take()
                && namespace.is_leaving()
            {
                drop(namespace);
                controller.subsystem.changes.released();
            }
            let entry = &self.submission.entry;
            let stop = controller.stop(self.queue, entry, self.power_cuts);
            let answered = controller.ask_host(stop, entry, &[&mem], &mut permit, breakdown).await;
            self.namespace = controller.namespace_of(self.queue.id, entry);
            if let Err(status) = answered {
                return Some(Err(status).into());
            }
            if lacks {
                reply = self.serve_again(breakdown).await;
            }
        }
        if mem.has_failed() { Some(Err(Status::DATA_TRANSFER_ERROR).into()) } else { reply }
    }

    /// Serves a command again whose memory was missing.
    async fn serve_again(&self, breakdown: &mut Breakdown) -> Option<Reply> {
        let CommandJob { controller, queue, submission, namespace, power_cuts, .. } = self;
        let (entry, mem) = (&submission.entry, &submission.mem);
        let stop = controller.stop(*queue, entry, *power_cuts);
        if let Err(status) = stop.check() {
            return Some(Err(status).into());
        }
        if queue.id == QueueId::ADMIN {
            return controller.admin_command(*queue, entry, mem, breakdown).await;
        }
        let Some(namespace) = namespace else { return Some(without_namespace(entry)) };
        let (subsystem, settings) = (&controller.subsystem, &controller.admin.settings);
        let (link, work) = (&subsystem.link, &subsystem.work);
        let command = Command { entry, namespace, mem, link, work, settings, stop };
        Some(controller.serve_guarded(command, breakdown).await)
    }
}

impl FusedJob {
    /// The same for a fused operation, which reads its memory and writes none.
    #[cold]
    pub(super) async fn settle(&self, mut replies: [Reply; 2], breakdown: &mut Breakdown) -> [Reply; 2] {
        let Some(second) = &self.second else { return replies };
        let memories = [&self.first.mem, &second.mem];
        let mut permit = None;
        while memories.iter().any(|memory| memory.need() != Need::Nothing) {
            let (controller, entry) = (&self.controller, &self.first.entry);
            let stop = controller.stop(self.queue, entry, self.power_cuts);
            match controller.ask_host(stop, entry, &memories, &mut permit, breakdown).await {
                Ok(()) => replies = self.serve_both(second, breakdown).await,
                Err(status) => return [Err(status).into(); 2],
            }
        }
        match memories.map(HostMem::has_failed) {
            [false, false] => replies,
            failed => failed.map(|failed| {
                let status = if failed { Status::DATA_TRANSFER_ERROR } else { Status::FUSED_FAILED };
                Err(status).into()
            }),
        }
    }
}
