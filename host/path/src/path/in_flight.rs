//! How a thread waits for its command: for an interrupt, by polling, for a notice of the drive.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{self, Poll};

use nandscape_drive::Completion;
use nandscape_host_machine::{Context, Event, Mode};
use nandscape_sim::slots::Key;
use nandscape_sim::{Span, Time};
use nandscape_wire_nvme::vendor::Hints;

use super::{Flight, Path, Taken};
use crate::config::Costs;
use crate::policy::{self, Notice, Submitted, Way};
use crate::stages::{Stages, stage};

/// A command in the drive. Dropped, its completion has no effect.
pub(crate) struct InFlight<'a> {
    pub(crate) path: &'a Path,
    pub(crate) key: Key,
    pub(super) notice: Notice,
    pub(crate) event: Rc<Event>,
    pub(super) of: Submitted,
}

impl InFlight<'_> {
    fn flight<T>(&self, look: impl FnOnce(&mut Flight) -> T) -> T {
        self.path.with_flight(self.key, look).expect("an I/O is taken once")
    }

    /// Gives the processor away until an interrupt has woken the thread.
    pub(super) async fn interrupted(&self, thread: &Context, stages: &mut Stages<'_>) -> Completion {
        self.woken(thread, Way::Interrupt, stages).await
    }

    async fn woken(&self, thread: &Context, way: Way, stages: &mut Stages<'_>) -> Completion {
        while !self.flight(|flight| flight.is_woken) {
            self.event.wait(thread).await;
        }
        let Taken { marks, completion, .. } = self.take_from_drive(way, stages);
        marks.into_iter().for_each(|(stage, at)| stages.pass(stage, at));
        // What the thread has done since it submitted is to get its processor again.
        stages.end(stage::WAKEUP);
        completion
    }

    /// Sleeps for a time, then polls.
    pub(super) async fn polled(&self, thread: &Context, sleep: Span, stages: &mut Stages<'_>) -> Completion {
        let wakes_at = self.path.sim.now() + sleep;
        let mut overslept = false;
        if !sleep.is_zero() {
            thread.sleep(sleep).await;
            overslept = self.is_done();
        }
        self.spin(thread, None).await;
        if !overslept {
            return self.seen(thread, Way::Poll, stages).await;
        }
        let Taken { port, done, completion, .. } = self.take_from_drive(Way::Poll, stages);
        if wakes_at > done {
            stages.pass(stage::OVERSLEEP, wakes_at);
        }
        stages.resumed();
        self.polls(thread, port, stages).await;
        completion
    }

    /// The end of a command for which the thread has polled for a time: it is there, or an interrupt is waited for.
    pub(super) async fn polled_for(&self, thread: &Context, way: Way, stages: &mut Stages<'_>) -> Completion {
        if self.is_done() {
            return self.seen(thread, way, stages).await;
        }
        self.flight(|flight| flight.is_armed = true);
        stages.mark_thread();
        self.woken(thread, Way::GaveUp, stages).await
    }

    /// Gives the processor away until a notice or an interrupt has woken the thread. After a notice it polls.
    pub(super) async fn announced(&self, thread: &Context, patience: Span, stages: &mut Stages<'_>) -> Completion {
        let is_noticed = || self.flight(|flight| flight.ahead.filter(|ahead| ahead.is_handled));
        while is_noticed().is_none() && !self.flight(|flight| flight.is_woken) {
            self.event.wait(thread).await;
        }
        let ahead = is_noticed().filter(|_| !self.flight(|flight| flight.is_woken));
        let Some(ahead) = ahead else { return self.woken(thread, Way::Interrupt, stages).await };
        let noticed = self.path.sim.now() - ahead.at;
        self.flight(|flight| flight.noticed = Some(noticed));
        if !self.is_done() {
            self.spin(thread, Some(ahead.ends + patience)).await;
            return self.polled_for(thread, Way::Ready, stages).await;
        }
        let Taken { port, marks, completion, .. } = self.take_from_drive(Way::Late, stages);
        marks.into_iter().for_each(|(stage, at)| stages.pass(stage, at));
        stages.resumed();
        self.polls(thread, port, stages).await;
        completion
    }

    /// Keeps the processor busy until the drive has completed the command, or until a time.
    pub(super) async fn spin(&self, thread: &Context, until: Option<Time>) {
        let Some(until) = until else { return thread.spin_until(Done(self)).await };
        let mut timer = pin!(self.path.sim.sleep_until(until));
        let either = poll_fn(|context| match Pin::new(&mut Done(self)).poll(context) {
            Poll::Pending => timer.as_mut().poll(context),
            Poll::Ready(()) => Poll::Ready(()),
        });
        thread.spin_until(either).await;
    }

    /// The end of a command that the thread was polling for.
    async fn seen(&self, thread: &Context, way: Way, stages: &mut Stages<'_>) -> Completion {
        let Taken { port, completion, .. } = self.take_from_drive(way, stages);
        stages.waited();
        self.polls(thread, port, stages).await;
        completion
    }

    /// The thread finds the completion in the queue, and finishes the I/O itself.
    async fn polls(&self, thread: &Context, port: Option<usize>, stages: &mut Stages<'_>) {
        let path = self.path;
        let Costs { poll, handler, complete, .. } = path.config.costs;
        path.work(thread, (poll, Mode::Kernel), stage::POLL, stages).await;
        if path.locks.is_none() {
            return path.work(thread, (handler + complete, Mode::Kernel), stage::COMPLETE, stages).await;
        }
        let held = path.lock_controller(thread, &mut |stage| stages.end(stage)).await;
        path.work(thread, (handler, Mode::Kernel), stage::COMPLETE, stages).await;
        drop(held);
        path.block_layer_out(thread, port, |stage| stages.end(stage)).await;
    }

    fn is_done(&self) -> bool {
        self.path.flights.borrow().get(self.key).is_some_and(|flight| flight.done.is_some())
    }

    /// Takes the answer; the policy sees how long the drive took, and how the thread has learnt of it.
    fn take(&self, way: Way) -> Taken {
        let taken = self.path.take_ended(self.key, None);
        let has_count = self.path.policy.asks() && self.of.can_ask() && taken.completion.status.is_success();
        let ended = policy::Ended {
            took: taken.done - taken.issued,
            way,
            delay: self.path.sim.now() - taken.done,
            noticed: taken.noticed.or(taken.ahead.map(|ahead| self.path.sim.now() - ahead.at)),
            buffer_free: has_count.then(|| Hints(taken.completion.dw1).buffer_free().into()),
        };
        self.path.count_end(self.notice, &self.of, &ended);
        taken
    }

    /// The same, with the wait for a tag as a stage, and the drive's time.
    pub(crate) fn take_from_drive(&self, way: Way, stages: &mut Stages<'_>) -> Taken {
        let taken = self.take(way);
        stages.queued(taken.issued);
        stages.in_drive(taken.done, taken.waits);
        taken
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        let Some(has_tag) = self.path.with_flight(self.key, |flight| flight.has_tag) else { return };
        self.path.policy.dropped(&self.of);
        if !has_tag {
            self.path.take_flight(self.key);
            return;
        }
        // The tag is in use until the drive has answered, and a context has taken the answer.
        let is_over = self.flight(|flight| {
            flight.is_left = true;
            flight.done.is_some() && !flight.is_armed
        });
        if is_over && self.path.config.path.strategy().is_none() {
            self.path.run_queue(self.path.release(self.key), None);
        }
    }
}

/// Ready when the drive has completed the command.
struct Done<'a>(&'a InFlight<'a>);

impl Future for Done<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut task::Context<'_>) -> Poll<()> {
        let InFlight { path, key, .. } = self.0;
        match path.flights.borrow_mut().get_mut(*key) {
            Some(flight) if flight.done.is_none() => {
                flight.task = Some(path.sim.current_task());
                Poll::Pending
            }
            _ => Poll::Ready(()),
        }
    }
}
