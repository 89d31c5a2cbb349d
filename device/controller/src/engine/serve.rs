//! A command from its fetch to its completion.

use std::rc::Rc;

use nandscape_drive::breakdown::cause;
use nandscape_drive::ring::{Posted, Submission};
use nandscape_drive::{Breakdown, QueueId, Stage};
use nandscape_sim::trace::Event;
use nandscape_sim::{Cause, Span, Time};
use nandscape_wire_nvme::opcode::Transfer;
use nandscape_wire_nvme::vendor::BUSY;
use nandscape_wire_nvme::{CompletionEntry, IoOpcode, NSID_ALL, Parameter, Status, SubmissionEntry};

use super::guarded::always_asks;
use super::queues::QueueKey;
use super::{NvmeController, Stop};
use crate::command_set::{Command, DirectSet, Reply};
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

/// A command that was fetched. It is moved more than once: up to 128 bytes are moved without a call.
pub(crate) struct CommandJob<C: DirectSet + ?Sized> {
    pub(super) controller: Rc<NvmeController<C>>,
    pub(super) queue: QueueKey,
    pub(super) submission: Submission,
    /// The namespace that it names, if it is attached.
    pub(super) namespace: Option<Rc<Namespace>>,
    /// How often power had been cut by then.
    pub(super) power_cuts: u32,
    /// What the command was whose end made room for it, should it have waited for that.
    pub(super) behind: Cause,
}

impl<C: DirectSet + ?Sized> CommandJob<C> {
    /// The time from a command's fetch until it is served: it crosses the link, and firmware handles it. Other commands do
    /// not wait meanwhile.
    #[inline]
    pub(super) fn lead(config: &ControllerConfig) -> [(Stage, Span); 2] {
        [(Stage::Link, config.link.latency), (Stage::Firmware, config.firmware_time)]
    }

    /// Serves the command, once its [`lead`](CommandJob::lead) has passed, posts its completion, and gives its slot to others.
    pub(crate) async fn serve(&mut self) {
        let CommandJob { controller, submission: Submission { entry, mem, submitted }, .. } = &*self;
        let (CommandJob { queue, power_cuts, behind, .. }, submitted) = (&*self, *submitted);
        let (queue, power_cuts, behind) = (*queue, *power_cuts, *behind);
        let subsystem = &*controller.subsystem;
        let (mut breakdown, mut waited) = (Breakdown::new(), controller.sim.now() - submitted);
        for (stage, time) in CommandJob::<C>::lead(&subsystem.config) {
            breakdown.spend(stage, time);
            waited -= time;
        }
        subsystem.power.add_wait((submitted, waited), behind, &mut breakdown);
        // In a box: few drives have processors.
        if subsystem.work.processors().is_some() && queue.id != QueueId::ADMIN {
            Box::pin(subsystem.work.on_command(entry, self.namespace.as_deref(), &mut breakdown)).await;
        }
        let stop = controller.stop(queue, entry, power_cuts);
        let reply = match stop.check_begin() {
            Err(status) => Some(Err(status).into()),
            Ok(()) if queue.id == QueueId::ADMIN => {
                Box::pin(controller.admin_command(queue, entry, mem, &mut breakdown)).await
            }
            Ok(()) => match &self.namespace {
                Some(namespace) => {
                    let (link, work, settings) = (&subsystem.link, &subsystem.work, &controller.admin.settings);
                    let command = Command { entry, namespace, mem, link, work, settings, stop };
                    Some(match namespace.is_guarded() || always_asks(entry) {
                        false => subsystem.set.serve_directly(&command, &mut breakdown).await,
                        true => Box::pin(controller.serve_guarded(command, &mut breakdown)).await,
                    })
                }
                None => Some(without_namespace(entry)),
            },
        };
        let is_settled = reply.as_ref().is_none_or(|reply| reply.status.is_success() && mem.is_settled());
        let reply = if is_settled { reply } else { Box::pin(self.settle(reply, &mut breakdown)).await };
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
}

impl<C: DirectSet + ?Sized> NvmeController<C> {
    /// The namespace that a command of a queue names, if it is attached. Flush may name all of them: any stands for them, and
    /// each is asked before the command is served.
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

    /// Posts the completion of a command that was served, with its reply, and the power cuts when it was fetched.
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

    /// How a command ends during which power was cut: its host cannot know what it did.
    #[inline]
    fn final_reply(&self, reply: Reply, power_cuts: u32) -> Reply {
        match power_cuts == self.subsystem.power.cuts().get() {
            true => reply,
            false => Err(Status::ABORTED_POWER_LOSS).into(),
        }
    }

    /// Notes a failure in the error log; the completion's status says so.
    #[cold]
    fn log_failure(&self, queue: QueueKey, entry: &SubmissionEntry, reply: Reply) -> Reply {
        // A read that was to fail rather than wait: nothing is wrong.
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
            // The host has left, or has reset the controller: it expects no completion.
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

/// How a command ends that names no namespace that is attached (Base 3.2.1, 4.1, "Namespace Identifier"): where the
/// broadcast value is not supported it is a bad field, as is one that is not attached; any other value is invalid.
pub(super) fn without_namespace(entry: &SubmissionEntry) -> Reply {
    match entry.nsid.get() {
        // There is none to flush.
        NSID_ALL if entry.opcode == IoOpcode::FLUSH.0 => Reply::value(0),
        NSID_ALL | 1..=MAX_NAMESPACES => Err(Refusal::of(Status::INVALID_FIELD, Parameter::NSID).final_()).into(),
        _ => Err(Status::INVALID_NAMESPACE.final_()).into(),
    }
}

/// On whose behalf a command works. In every command set the opcode tells which way its data goes (Base, Figure "Common
/// Command Format", OPC bits 1:0).
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
