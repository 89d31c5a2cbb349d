//! The strategies of the thesis (Shin 3.3.3), whose switches add up. All take completions, finish I/Os and issue requests that
//! wait for a tag; they differ in who does so.
//!
//! | file | switch | who |
//! |---|---|---|
//! | `non_blocking` | | the handler of the interrupt; threads issue their own requests, and never wait for a tag |
//! | `lazy` | lazy | the thread of an I/O finishes it, on the processor where it waited |
//! | `cooperative` | cooperative | each thread takes completions and issues requests of others, when it submits and when its I/O ends |
//! | `poll_thread` | | a thread that looks for completions at an interval, instead of interrupts |
//!
//! Left out: timeouts, and the decision between interrupts and a poll thread at run time.

mod cooperative;
mod lazy;
mod non_blocking;
mod poll_thread;

use nandscape_drive::Completion;
use nandscape_host_machine::{Context, Mode};
use nandscape_sim::slots::Key;

use crate::path::{InFlight, Path, Taken};
use crate::policy::Way;
use crate::stages::{Stages, stage};

/// The switches of a strategy.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Strategy {
    /// The thread of an I/O finishes it.
    pub lazy: bool,
    /// Threads do the work of others.
    pub cooperative: bool,
}

impl Path {
    /// The drive has finished a command: its event waits until a context takes it.
    pub(crate) fn posted_event(&self, queue: usize, key: Key) {
        self.vectors[queue].push(key);
        if let Some(poller) = *self.poller.borrow() {
            self.sim.wake(poller);
        }
        if self.config.poll_thread.is_none() {
            self.raise_events(queue);
        }
    }
}

impl InFlight<'_> {
    /// The rest of an I/O, from the driver to its end.
    pub(crate) async fn by_strategy(
        &self,
        thread: &Context,
        Strategy { lazy, cooperative }: Strategy,
        stages: &mut Stages<'_>,
    ) -> Completion {
        let InFlight { path, key, .. } = *self;
        let queue = self.issue(thread).await;
        match self.issued() {
            // The rest of the time the drive has had it.
            Some(at) if at < path.sim.now() => stages.pass(stage::DRIVER, at),
            _ => stages.end(stage::DRIVER),
        }
        if cooperative {
            path.help(thread, queue, Some(key)).await;
        }
        let waited = !self.is_woken();
        stages.mark_thread();
        if lazy {
            self.wait_in_place(thread).await;
        } else {
            self.wait(thread).await;
        }
        let Taken { marks, completion, .. } = self.take_from_drive(Way::Interrupt, stages);
        marks.into_iter().for_each(|(stage, at)| stages.pass(stage, at));
        if waited {
            stages.end(stage::WAKEUP);
        } else {
            stages.pass(stage::HELP, path.sim.now());
            stages.mark_thread();
        }
        if lazy {
            path.work(thread, (path.config.costs.complete, Mode::Kernel), stage::COMPLETE, stages).await;
        }
        if cooperative {
            path.help(thread, queue, None).await;
            stages.end(stage::HELP);
        }
        completion
    }

    /// Gives the processor away until a context has taken the completion.
    async fn wait(&self, thread: &Context) {
        while !self.is_woken() {
            self.event.wait(thread).await;
        }
    }
}
