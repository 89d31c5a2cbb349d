//! The interrupt of the drive's notices ahead of completions, which has its own vector: its handler wakes the threads that the notices
//! are for. And what became of the commands that precompletion polls for.

use std::cell::Ref;

use nandscape_host_machine::Mode;
use nandscape_sim::slots::Key;
use nandscape_sim::{Histogram, Span};

use crate::path::{Ahead, Path};
use crate::policy::{Ended, Notice, Submitted, Way};
use crate::stages::stage;

/// The processor that the interrupt of notices is raised on.
const PROCESSOR: usize = 0;

/// What became of commands that precompletion polls for.
#[derive(Clone, Default)]
pub struct NoticeFigures {
    /// Reads that waited for a notice.
    pub reads: u64,
    /// Those whose thread was polling when the completion came.
    pub ready: u64,
    /// Those whose thread got its processor after the completion.
    pub late: u64,
    /// Those whose completion came without a notice, or before the handler of the notice.
    pub missing: u64,
    /// Those whose completion came later than the thread polled.
    pub gave_up: u64,
    /// Writes that were expected to find room in the write buffer, and polled for.
    pub hits: u64,
    /// Those whose completion came later than the thread polled.
    pub hits_waited: u64,
    /// From a notice until its thread had its processor.
    pub delay: Histogram,
}

impl NoticeFigures {
    fn count(&mut self, notice: Notice, ended: &Ended) {
        match notice {
            Notice::Announced(_) => {
                self.reads += 1;
                *match ended.way {
                    Way::Ready => &mut self.ready,
                    Way::Late => &mut self.late,
                    Way::GaveUp => &mut self.gave_up,
                    Way::Interrupt | Way::Poll => &mut self.missing,
                } += 1;
                if let Some(delay) = ended.noticed {
                    self.delay.record(delay);
                }
            }
            Notice::PollFor(_) => {
                self.hits += 1;
                self.hits_waited += u64::from(ended.way == Way::GaveUp);
            }
            Notice::Interrupt | Notice::Poll(_) => {}
        }
    }
}

impl Path {
    /// What became of the commands that precompletion polled for, since the last [`count_notices_anew`](Path::count_notices_anew).
    pub fn notices(&self) -> Ref<'_, NoticeFigures> {
        self.figures.borrow()
    }

    /// Counts from now on.
    pub fn count_notices_anew(&self) {
        self.figures.take();
    }

    /// The window that the drive was given last; `None` if it has its own.
    pub fn window(&self) -> Option<Span> {
        self.window.get()
    }

    /// Calls `set` with each window that the policy wants the drive's notices to have.
    pub fn on_window(&self, set: impl Fn(Span) + 'static) {
        self.set_window.replace(Some(Box::new(set)));
        self.renew_window();
    }

    /// A command has ended, and its thread has learnt of that.
    pub(crate) fn count_end(&self, notice: Notice, of: &Submitted, ended: &Ended) {
        self.policy.completed(of, ended);
        self.figures.borrow_mut().count(notice, ended);
        self.renew_window();
    }

    /// Has a thread of the kernel give the drive another window, if the policy wants one.
    fn renew_window(&self) {
        if self.set_window.borrow().is_none() {
            return;
        }
        let Some(window) = self.policy.new_window() else { return };
        self.window.set(Some(window));
        let path = self.me();
        self.sim.spawn(async move {
            let thread = path.machine.thread(Default::default()).expect("a thread of any processor");
            thread.work(path.config.costs.driver, Mode::Kernel).await;
            if let Some(set) = &*path.set_window.borrow() {
                set(window);
            }
        });
    }

    /// The drive announces the end of a command.
    pub(crate) fn noticed(&self, key: Key, remaining: Span) {
        let now = self.sim.now();
        let waits = self.with_flight(key, |flight| {
            let waits = matches!(flight.notice, Notice::Announced(_)) && flight.ahead.is_none();
            if waits {
                flight.ahead = Some(Ahead { at: now, ends: now + remaining, is_handled: false });
            }
            waits
        });
        if waits == Some(true) && self.announced.post(key) {
            self.announced.count_interrupt();
            let path = self.me();
            self.sim.spawn(async move { path.handle_notices().await });
        }
    }

    async fn handle_notices(&self) {
        let irq = self.machine.interrupt(PROCESSOR).expect("every machine has this processor");
        while let Some(key) = self.announced.next() {
            irq.work(self.config.costs.handler, Mode::Kernel).await;
            // If the completion has arrived by now, the interrupt of its queue is raised, and that handler wakes the thread.
            let event = self.with_flight(key, |flight| {
                let ahead = flight.ahead.as_mut().filter(|_| flight.done.is_none())?;
                (ahead.is_handled, flight.is_armed) = (true, false);
                Some(flight.event.clone())
            });
            let Some(Some(event)) = event else { continue };
            irq.work(self.config.costs.wake, Mode::Kernel).await;
            self.mark(key, stage::WAKEUP);
            event.notify_from(&irq);
        }
    }
}
