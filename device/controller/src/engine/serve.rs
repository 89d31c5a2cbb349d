//! A command from its fetch to its completion.

use std::future::ready;
use std::rc::Rc;

use nandscape_device_ftl_core::offers::Later;
use nandscape_drive::breakdown::cause;
use nandscape_drive::ring::{Posted, Submission};
use nandscape_drive::{Breakdown, HostMem, QueueId, Stage};
use nandscape_sim::trace::Event;
use nandscape_sim::{Cause, Span, Time};
use nandscape_wire_nvme::opcode::Transfer;
use nandscape_wire_nvme::vendor::BUSY;
use nandscape_wire_nvme::{CompletionEntry, IoOpcode, NSID_ALL, Parameter, Status, SubmissionEntry};

use super::guarded::always_asks;
use super::queues::QueueKey;
use super::{NvmeController, Stop};
use crate::command_set::any::AnySet;
use crate::command_set::{Command, Reply};
use crate::config::ControllerConfig;
use crate::namespace::{MAX_NAMESPACES, Namespace};
use crate::refusal::Refusal;

/// Statuses of commands whose data could not be read or written (SMART: Media and Data Integrity Errors).
pub(crate) const LOST_DATA: [Status; 5] = [
    Status::UNRECOVERED_READ_ERROR,
    Status::WRITE_FAULT,
    Status::GUARD_CHECK,
    Status::APPLICATION_TAG_CHECK,
    Status::REFERENCE_TAG_CHECK,
];

/// A fetched command. It is moved more than once, and up to 128 bytes move without a call.
pub(crate) struct CommandJob {
    pub(super) controller: Rc<NvmeController>,
    pub(super) queue: QueueKey,
    pub(super) submission: Submission,
    /// The namespace that it names, if it is attached.
    pub(super) namespace: Option<Rc<Namespace>>,
    /// How often power had been cut by then.
    pub(super) power_cuts: u32,
    /// The cause of the command whose end freed its slot, in case it waited for the slot.
    pub(super) behind: Cause,
}

/// The caller of `serve_whole` here: the compiler makes a copy of the commands' path for it, and merges the copy with
/// [`CommandJob::serve`].
enum Directly {}

impl CommandJob {
    /// The time between the fetch of a command and serving it: the command crosses the link, and firmware handles it. Other
    /// commands do not wait meanwhile.
    #[inline]
    pub(super) fn lead(config: &ControllerConfig) -> [(Stage, Span); 2] {
        [(Stage::Link, config.link.latency), (Stage::Firmware, config.firmware_time)]
    }

    /// Serves the command after its [`lead`](CommandJob::lead), posts its completion, and frees its slot.
    pub(crate) async fn serve(&mut self) {
        let CommandJob { controller, submission: Submission { entry, mem, submitted }, .. } = &*self;
        let (CommandJob { queue, power_cuts, behind, .. }, submitted) = (&*self, *submitted);
        let (queue, power_cuts, behind) = (*queue, *power_cuts, *behind);
        let subsystem = &*controller.subsystem;
        let (mut breakdown, mut waited) = (Breakdown::new(), controller.sim.now() - submitted);
        for (stage, time) in CommandJob::lead(&subsystem.config) {
            breakdown.spend(stage, time);
            waited -= time;
        }
        subsystem.power.add_wait((submitted, waited), behind, &mut breakdown);
        if let Some(work) = subsystem.work.on_io((queue.id, entry), self.namespace.as_deref(), &mut breakdown) {
            work.await;
        }
        let stop = controller.stop(queue, entry, power_cuts);
        let begun = stop.check_begin();
        let reply = match &self.namespace {
            Some(namespace) if begun.is_ok() && self.is_for_set(namespace) => {
                let command = controller.command((entry, mem), namespace, stop);
                Some(match &subsystem.set {
                    AnySet::Page(set) if namespace.is_plain => {
                        set.serve_whole::<Directly>(&command, &mut breakdown).await
                    }
                    set => set.serve(&command, &mut breakdown).await,
                })
            }
            _ => self.serve_boxed(begun, stop, &mut breakdown).await,
        };
        let is_settled = reply.as_ref().is_none_or(|reply| reply.status.is_success() && mem.is_settled());
        let reply = if is_settled { reply } else { self.settle_boxed(reply, &mut breakdown).await };
        let CommandJob { controller, submission: Submission { entry, .. }, .. } = &*self;
        let subsystem = &*controller.subsystem;
        if let Some(reply) = reply {
            controller.finish(queue, entry, (reply, power_cuts), submitted, breakdown);
        }
        controller.report_events();
        controller.trace_command(queue.id, entry, submitted);
        let cause = cause_of(entry.opcode);
        if let Some(namespace) = &self.namespace
            && namespace.is_leaving()
        {
            subsystem.changes.released();
        }
        controller.ended(queue, cause);
    }

    /// Whether the command set serves the command, without a check of the controller before it. Commands of the admin queue have no
    /// namespace here.
    #[inline(always)]
    fn is_for_set(&self, namespace: &Namespace) -> bool {
        !namespace.is_guarded() && !always_asks(&self.submission.entry)
    }

    /// Serves what [`serve`](CommandJob::serve) does not serve itself. In boxes, so that the compiler can merge the rest with its caller.
    #[inline(never)]
    fn serve_boxed<'a>(
        &'a self,
        begun: Result<(), Status>,
        stop: Stop<'a>,
        breakdown: &'a mut Breakdown,
    ) -> Later<'a, Option<Reply>> {
        let CommandJob { controller, submission: Submission { entry, mem, .. }, queue, .. } = self;
        if let Err(status) = begun {
            return Box::pin(ready(Some(Err(status).into())));
        }
        if queue.id == QueueId::ADMIN {
            return Box::pin(controller.admin_command(*queue, entry, mem, breakdown));
        }
        let Some(namespace) = &self.namespace else {
            return Box::pin(ready(Some(without_namespace(entry))));
        };
        let command = controller.command((entry, mem), namespace, stop);
        Box::pin(async move { Some(controller.serve_guarded(command, breakdown).await) })
    }

    /// [`settle`](CommandJob::settle) in a box.
    #[cold]
    fn settle_boxed<'a>(&'a mut self, reply: Option<Reply>, breakdown: &'a mut Breakdown) -> Later<'a, Option<Reply>> {
        Box::pin(self.settle(reply, breakdown))
    }
}

impl NvmeController {
    /// The attached namespace that a command names. For Flush of all namespaces, any attached one stands in, and each is
    /// checked before the command is served.
    #[inline]
    pub(super) fn namespace_of(&self, queue: QueueId, entry: &SubmissionEntry) -> Option<Rc<Namespace>> {
        if queue == QueueId::ADMIN {
            return None;
        }
        match entry.nsid.get() {
            NSID_ALL if entry.opcode == IoOpcode::FLUSH.0 => self.namespaces.first(),
            nsid => self.namespaces.get(nsid),
        }
    }

    /// A command with what it needs of the controller.
    #[inline(always)]
    fn command<'a>(
        &'a self,
        (entry, mem): (&'a SubmissionEntry, &'a HostMem),
        namespace: &'a Namespace,
        stop: Stop<'a>,
    ) -> Command<'a> {
        let (link, work, settings) = (&self.subsystem.link, &self.subsystem.work, &self.admin.settings);
        Command { entry, namespace, mem, link, work, settings, stop }
    }

    pub(crate) fn stop(&self, queue: QueueKey, entry: &SubmissionEntry, cuts: u32) -> Stop<'_> {
        let (cid, nsid) = (entry.cid.get(), entry.nsid.get());
        Stop {
            waiters: &self.waiters,
            queues: &self.queues,
            queue,
            cid,
            nsid,
            cuts,
            cuts_now: self.subsystem.power.cuts(),
        }
    }

    /// Posts the completion of a served command, given its reply and the power cuts at its fetch.
    #[inline(always)]
    pub(super) fn finish(
        &self,
        queue: QueueKey,
        entry: &SubmissionEntry,
        (reply, power_cuts): (Reply, u32),
        submitted: Time,
        breakdown: Breakdown,
    ) {
        let mut reply = self.final_reply(reply, power_cuts);
        if !reply.status.is_success() {
            reply = self.log_failure(queue, entry, reply);
        }
        assert_sums(&breakdown, self.sim.now() - submitted);
        self.complete(queue, entry.cid.get(), reply, breakdown);
    }

    /// The end of a command during which power was cut: its host cannot know its effects.
    #[inline]
    fn final_reply(&self, reply: Reply, power_cuts: u32) -> Reply {
        match power_cuts == self.subsystem.power.cuts().get() {
            true => reply,
            false => Err(Status::ABORTED_POWER_LOSS).into(),
        }
    }

    /// Records a failure in the error log, and sets the More bit of the completion.
    #[cold]
    fn log_failure(&self, queue: QueueKey, entry: &SubmissionEntry, reply: Reply) -> Reply {
        // A fail-fast read: no error.
        if reply.status.meaning() == BUSY {
            return reply;
        }
        if LOST_DATA.contains(&reply.status.meaning()) {
            let media_errors = &self.subsystem.media_errors;
            media_errors.set(media_errors.get() + 1);
        }
        match self.admin.errors.borrow_mut().ended(queue.id.0, entry, reply.status, reply.culprit) {
            true => Reply { status: reply.status.with_more(), ..reply },
            false => reply,
        }
    }

    #[inline(always)]
    pub(crate) fn complete(&self, queue: QueueKey, cid: u16, reply: Reply, breakdown: Breakdown) {
        if self.clearing.get().is_some() {
            // The host left or reset the controller: it expects no completion.
            return;
        }
        let mut entry = CompletionEntry { cid: cid.into(), ..CompletionEntry::default() };
        (entry.dw0, entry.dw1) = (reply.dw0.into(), reply.dw1.into());
        entry.set_status(reply.status, false);
        let posted_to = self.queues.borrow_mut().post(queue, Posted { entry, breakdown });
        match posted_to {
            Some(memory) if self.admin.settings.coalesces() => self.coalesce(queue, memory),
            Some(memory) => memory.notify(),
            None => _ = self.check_queue_memory(),
        }
    }

    pub(super) fn trace_command(&self, queue: QueueId, entry: &SubmissionEntry, start: Time) {
        self.sim.trace_event(|end| {
            let (name, detail) = match queue {
                QueueId::ADMIN => ("admin", entry.opcode.into()),
                _ => self.subsystem.set.traced(entry),
            };
            Event { track: self.subsystem.track, name, start, end, detail }
        });
    }
}

/// The end of a command that names no attached namespace (Base 3.2.1, 4.1, "Namespace Identifier"). An unsupported broadcast
/// value or an unattached namespace is Invalid Field; any other value is Invalid Namespace.
pub(super) fn without_namespace(entry: &SubmissionEntry) -> Reply {
    match entry.nsid.get() {
        // No namespace to flush.
        NSID_ALL if entry.opcode == IoOpcode::FLUSH.0 => Reply::value(0),
        NSID_ALL | 1..=MAX_NAMESPACES => Err(Refusal::of(Status::INVALID_FIELD, Parameter::NSID).final_()).into(),
        _ => Err(Status::INVALID_NAMESPACE.final_()).into(),
    }
}

/// The cause of a command. In every command set the opcode encodes the direction of the data (Base, Figure "Common Command
/// Format", OPC bits 1:0).
pub(crate) fn cause_of(opcode: u8) -> Cause {
    match Transfer::of(opcode) {
        Transfer::ToHost => cause::HOST_READ,
        _ => cause::HOST_WRITE,
    }
}

/// The stages of a command sum to its latency: no nanosecond is lost or counted twice.
#[inline(always)]
fn assert_sums(breakdown: &Breakdown, latency: Span) {
    assert_eq!(breakdown.total(), latency, "stages do not sum: {breakdown:?}");
}

#[cfg(test)]
mod tests {
    use nandscape_drive::Stage;

    use super::*;

    /// A deliberate mistake: a wait is charged twice.
    #[test]
    #[should_panic(expected = "stages do not sum")]
    fn stages_that_do_not_sum_are_noticed() {
        let mut breakdown = Breakdown::new();
        breakdown.spend(Stage::Array, Span::from_us(40));
        assert_sums(&breakdown, Span::from_us(40));
        breakdown.spend(Stage::Array, Span::from_us(40));
        assert_sums(&breakdown, Span::from_us(40));
    }
}
