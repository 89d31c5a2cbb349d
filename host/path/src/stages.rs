//! The stages of an I/O in the host, and the time that a thread spends in each.

use nandscape_drive::{Breakdown, Completion};
use nandscape_host_machine::{Context, Kind, Times};
use nandscape_sim::{Sim, Span, Time};

/// The host's name as a layer of breakdowns.
pub const LAYER: &str = "host";

/// The stages, as causes of the layer's time.
pub mod stage {
    /// Waiting for a free thread of the application, and the application's own work.
    pub const THREAD: &str = "thread";
    /// Entering and leaving the kernel.
    pub const SYSCALL: &str = "syscall";
    /// The block layer, on the way to the drive.
    pub const SUBMIT: &str = "submit";
    /// Taking a lock of the block layer or the driver, and the wait for it.
    pub const LOCK: &str = "lock";
    /// The driver, up to the doorbell.
    pub const DRIVER: &str = "driver";
    /// Waiting for a free tag of the drive.
    pub const QUEUE: &str = "queue";
    /// A completion that the drive holds back to join others in one interrupt.
    pub const COALESCING: &str = "coalescing";
    /// From the interrupt to the end of the driver's handler.
    pub const INTERRUPT: &str = "interrupt";
    /// From the handler to the processor that submitted.
    pub const IPI: &str = "ipi";
    /// Until the softirq has the processor.
    pub const SOFTIRQ: &str = "softirq";
    /// The end of the I/O in the block layer, and in a polled driver.
    pub const COMPLETE: &str = "complete";
    /// Waking the thread.
    pub const WAKEUP: &str = "wakeup";
    /// Waiting for a processor: for other threads, and for interrupts of other I/Os.
    pub const RUN_DELAY: &str = "run_delay";
    /// Switching to the thread, with the end of a power state and cold caches.
    pub const SWITCH: &str = "switch";
    /// A completion that finds its thread asleep, until the thread's timer wakes it.
    pub const OVERSLEEP: &str = "oversleep";
    /// Finding the completion in the queue.
    pub const POLL: &str = "poll";
    /// Taking completions and issuing requests of other threads.
    pub const HELP: &str = "help";
    /// Copying the data to the application.
    pub const COPY: &str = "copy";
    /// Entries of a ring: the I/O's own, and the wait for those of others in the same system call.
    pub const RING: &str = "ring";

    /// The machine of the clients: the request, and its answer.
    pub const CLIENT: &str = "client";
    /// Wires and cards between the machines, until an interrupt.
    pub const NETWORK: &str = "network";
    /// From the interrupt of a request until its thread has it: the interrupt, the protocols, the wake-up.
    pub const RECEIVE: &str = "receive";
    /// The protocols of an answer.
    pub const SEND: &str = "send";

    /// All, in the order in which an I/O passes them.
    pub const ALL: [&str; 23] = [
        CLIENT, NETWORK, RECEIVE, THREAD, SYSCALL, SUBMIT, LOCK, DRIVER, QUEUE, COALESCING, INTERRUPT, IPI, SOFTIRQ,
        COMPLETE, WAKEUP, OVERSLEEP, RUN_DELAY, SWITCH, POLL, HELP, COPY, RING, SEND,
    ];
}

/// The stages of one I/O that have ended.
pub(crate) struct Stages<'a> {
    sim: &'a Sim,
    thread: &'a Context,
    /// When the last one ended, and the thread's time then.
    at: Time,
    times: Times,
    spent: Vec<(&'static str, Span)>,
}

impl<'a> Stages<'a> {
    /// An I/O that was requested at `arrived` and gets its thread now. `idle` is the thread's time when it began to wait for one, if the I/O
    /// found it so: the rest is a wait for the processor and a switch.
    pub(crate) fn begin(sim: &'a Sim, thread: &'a Context, arrived: Time, idle: Option<Times>) -> Stages<'a> {
        let (at, times) = (sim.now(), thread.times());
        let waited = at - arrived;
        let spent = match idle.map(|idle| times.since(&idle)) {
            None => vec![(stage::THREAD, waited)],
            Some(spent) => {
                let switched = (spent.by(Kind::Switch) + spent.by(Kind::Cold)).min(waited);
                vec![(stage::SWITCH, switched), (stage::RUN_DELAY, waited - switched)]
            }
        };
        Stages { sim, thread, at, times, spent }
    }

    /// A stage has ended in which the thread worked. Its switches and its waits for the processor are stages themselves.
    pub(crate) fn end(&mut self, stage: &'static str) {
        let (now, times) = (self.sim.now(), self.thread.times());
        let spent = times.since(&self.times);
        let switched = spent.by(Kind::Switch) + spent.by(Kind::Cold);
        let elapsed = now - self.at;
        self.spent.push((stage, spent.busy() - switched));
        self.spent.push((stage::SWITCH, switched));
        self.spent.push((stage::RUN_DELAY, elapsed - spent.busy()));
        (self.at, self.times) = (now, times);
    }

    /// A stage has ended at `at` in which the thread did nothing.
    pub(crate) fn pass(&mut self, stage: &'static str, at: Time) {
        self.spent.push((stage, at - self.at));
        self.at = at;
    }

    /// A command was issued at `at`: until then it waited for a tag.
    pub(crate) fn queued(&mut self, at: Time) {
        if at > self.at {
            self.pass(stage::QUEUE, at);
        }
    }

    /// The drive has had the command from the end of the last stage to `at`.
    pub(crate) fn in_drive(&mut self, at: Time) {
        self.at = at;
    }

    /// A thread that slept in the last stage, and has had its processor back for no time: a switch, and a wait before it.
    pub(crate) fn resumed(&mut self) {
        let (now, times) = (self.sim.now(), self.thread.times());
        let spent = times.since(&self.times);
        let elapsed = now - self.at;
        let switched = (spent.by(Kind::Switch) + spent.by(Kind::Cold)).min(elapsed);
        self.spent.push((stage::SWITCH, switched));
        self.spent.push((stage::RUN_DELAY, elapsed - switched));
        (self.at, self.times) = (now, times);
    }

    /// The thread's time counts anew.
    pub(crate) fn mark_thread(&mut self) {
        self.times = self.thread.times();
    }

    /// Charges all of it to the host.
    pub(crate) fn charge(&self, breakdown: &mut Breakdown) {
        self.spent.iter().for_each(|(stage, span)| breakdown.charge(LAYER, stage, *span));
    }
}

/// The parts of a request's time, each from the end of the one before.
pub(crate) struct Legs {
    pub(crate) at: Time,
    spent: Vec<(&'static str, Span)>,
}

impl Legs {
    /// A request that came at `arrived` and is seen now; the thread was idle, and has spent `switched` on its switch since.
    pub(crate) fn begin(arrived: Time, now: Time, idle: Option<Span>) -> Legs {
        let mut legs = Legs { at: arrived, spent: Vec::new() };
        match idle {
            Some(switched) => legs.resumed(switched, now),
            None => legs.pass(stage::THREAD, now),
        }
        legs
    }

    pub(crate) fn pass(&mut self, stage: &'static str, at: Time) {
        if at > self.at {
            self.spent.push((stage, at - self.at));
            self.at = at;
        }
    }

    /// The thread has its processor again, after a switch of a length at most.
    pub(crate) fn resumed(&mut self, switched: Span, at: Time) {
        let switch = switched.min(at.since(self.at));
        self.spent.push((stage::SWITCH, switch));
        self.spent.push((stage::RUN_DELAY, at.since(self.at) - switch));
        self.at = self.at.max(at);
    }

    pub(crate) fn charge(&self, completion: &mut Completion) {
        self.spent.iter().for_each(|(stage, span)| completion.breakdown.charge(LAYER, stage, *span));
    }
}
