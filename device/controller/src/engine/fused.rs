//! Fused operations (Base 3.4.2): two adjacent commands of a submission queue, submitted by one doorbell. They are fetched
//! together and served as one. A lone half is aborted.

use std::rc::Rc;

use nandscape_drive::breakdown::cause;
use nandscape_drive::ring::Submission;
use nandscape_drive::{Breakdown, QueueId};
use nandscape_sim::{Cause, Time};
use nandscape_wire_nvme::Status;
use nandscape_wire_nvme::command::{FLAGS_FUSED, FLAGS_FUSED_FIRST, FLAGS_FUSED_SECOND};

use super::NvmeController;
use super::queues::QueueKey;
use super::serve::{CommandJob, without_namespace};
use crate::command_set::{Command, Reply};

/// The commands of a fused operation, or a lone half.
pub(crate) struct FusedJob {
    pub(super) controller: Rc<NvmeController>,
    pub(super) queue: QueueKey,
    pub(super) first: Submission,
    pub(super) second: Option<Submission>,
    /// When they were fetched.
    at: Time,
    /// How often power had been cut by then.
    pub(super) power_cuts: u32,
    /// The cause of the command whose end freed their slots.
    behind: Cause,
}

impl NvmeController {
    /// A command with FUSE set was fetched from an I/O queue: fetches the second command after it, if it is one, and starts
    /// both. A pair takes two command slots, the second of which may be one beyond the limit.
    #[cold]
    pub(super) fn fetch_fused(&self, queue: QueueKey, first: Submission) {
        let is_second = |flags: u8| flags & FLAGS_FUSED == FLAGS_FUSED_SECOND;
        match first.entry.flags & FLAGS_FUSED {
            FLAGS_FUSED_FIRST => {
                let second = self.queues.borrow_mut().fetch_with(queue.id, is_second);
                self.start_fused(queue, first, second);
            }
            FLAGS_FUSED_SECOND => self.start_fused(queue, first, None),
            // 11b is reserved: the parser rejects it.
            _ => self.start(queue, first),
        }
    }

    fn start_fused(&self, queue: QueueKey, mut first: Submission, mut second: Option<Submission>) {
        let subsystem = &*self.subsystem;
        let behind = subsystem.slots.take();
        first.entry.flags &= !FLAGS_FUSED;
        if let Some(second) = &mut second {
            second.entry.flags &= !FLAGS_FUSED;
            subsystem.slots.take();
        }
        let (at, power_cuts) = (self.sim.now(), subsystem.power.cuts().get());
        let job = FusedJob { controller: self.handle(), queue, first, second, at, power_cuts, behind };
        let [(_, link), (_, firmware)] = CommandJob::lead(&subsystem.config);
        subsystem.fused.start_after(link + firmware, job);
    }
}

impl FusedJob {
    /// Serves the operation and posts both completions, the first command's first.
    pub(crate) async fn serve(&mut self) {
        let FusedJob { controller, queue, first, second, at, power_cuts, behind } = &*self;
        let (queue, at, power_cuts) = (*queue, *at, *power_cuts);
        let mut shared = Breakdown::new();
        CommandJob::lead(&controller.subsystem.config).into_iter().for_each(|(stage, time)| shared.spend(stage, time));
        let replies = match second {
            Some(second) => self.serve_pair(second, &mut shared).await,
            None => {
                let begun = controller.stop(queue, &first.entry, power_cuts).check_begin();
                [Err(begun.err().unwrap_or(Status::FUSED_MISSING)).into(); 2]
            }
        };
        let memories = [Some(first), second.as_ref()].into_iter().flatten().map(|submission| &submission.mem);
        let is_settled =
            replies.iter().all(|reply| reply.status.is_success()) && { memories }.all(|mem| mem.is_settled());
        let replies = if is_settled { replies } else { Box::pin(self.settle(replies, &mut shared)).await };
        for (submission, reply) in [Some(first), second.as_ref()].into_iter().flatten().zip(replies) {
            let (entry, submitted) = (&submission.entry, submission.submitted);
            let mut breakdown = shared.clone();
            let power = &controller.subsystem.power;
            power.add_wait((submitted, at - submitted), *behind, &mut breakdown);
            controller.finish(queue, entry, (reply, power_cuts), submitted, breakdown);
            controller.trace_command(queue.id, entry, submitted);
        }
        // A namespace change may wait for the end of these commands.
        controller.subsystem.changes.released();
        controller.report_events();
        for _ in 0..1 + u32::from(second.is_some()) {
            controller.ended(queue, cause::HOST_WRITE);
        }
    }

    async fn serve_pair(&self, second: &Submission, breakdown: &mut Breakdown) -> [Reply; 2] {
        let FusedJob { controller, queue, first, power_cuts, .. } = self;
        let stop = |submission: &Submission| controller.stop(*queue, &submission.entry, *power_cuts);
        match [first, second].map(|submission| stop(submission).check_begin()) {
            [Ok(()), Ok(())] => self.serve_both(second, breakdown).await,
            // An aborted half aborts the other.
            begins => begins.map(|begin| Err(begin.err().unwrap_or(Status::FUSED_FAILED)).into()),
        }
    }

    /// Serves both commands, which may begin.
    pub(super) async fn serve_both(&self, second: &Submission, breakdown: &mut Breakdown) -> [Reply; 2] {
        let FusedJob { controller, queue, first, power_cuts, .. } = self;
        let stop = |submission: &Submission| controller.stop(*queue, &submission.entry, *power_cuts);
        // Both are commands of one namespace (Base 3.4.2).
        if first.entry.nsid != second.entry.nsid {
            return [(); 2].map(|()| Err(Status::INVALID_FIELD.final_()).into());
        }
        let (subsystem, settings) = (&controller.subsystem, &controller.admin.settings);
        let namespace = |submission: &Submission| controller.namespace_of(queue.id, &submission.entry);
        let [Some(compared), Some(written)] = [first, second].map(namespace) else {
            let status = |submission: &Submission| match namespace(submission) {
                Some(_) => Err(Status::FUSED_FAILED).into(),
                None => without_namespace(&submission.entry),
            };
            return [status(first), status(second)];
        };
        // Each half is admitted separately; a rejected half aborts the other.
        let admitted =
            [controller.admits_command(&compared, &first.entry), controller.admits_command(&written, &second.entry)];
        if admitted.iter().any(Result::is_err) {
            return admitted.map(|admitted| Err(admitted.err().unwrap_or(Status::FUSED_FAILED)).into());
        }
        let command = |submission, namespace| {
            let Submission { entry, mem, .. }: &Submission = submission;
            let (link, work) = (&subsystem.link, &subsystem.work);
            Command { entry, namespace, mem, link, work, settings, stop: stop(submission) }
        };
        match subsystem.set.fused() {
            Some(set) => set.serve_fused([command(first, &compared), command(second, &written)], breakdown).await,
            None => [(); 2].map(|()| Err(Status::INVALID_FIELD.final_()).into()),
        }
    }
}

/// Whether an entry of a queue is half of a fused operation.
#[inline]
pub(super) fn is_fused(queue: QueueId, submission: &Submission) -> bool {
    submission.entry.flags & FLAGS_FUSED != 0 && queue != QueueId::ADMIN
}
