//! The stages of an I/O in the host, and the time that a thread spends in each.

use nandscape_drive::{Breakdown, Completion};
use nandscape_host_machine::{Context, Holder, Kind, Times, Waits};
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
    /// Waiting for a processor, by who has it: see [`split`].
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

    /// Who has a processor for which a thread waits: the names of [`Holder`](nandscape_host_machine::Holder).
    pub const HOLDERS: [&str; 6] = ["interrupt", "softirq", "application", "polling", "load", "kernel"];

    /// The waits for them, as causes of the layer's time.
    pub(crate) const BEHIND: [&str; 6] = [
        "run_delay:interrupt",
        "run_delay:softirq",
        "run_delay:application",
        "run_delay:polling",
        "run_delay:load",
        "run_delay:kernel",
    ];

    /// The stage of a cause of the layer's time, and the holder of the processor if the stage is a wait for that.
    pub fn split(cause: &'static str) -> (&'static str, Option<&'static str>) {
        cause.split_once(':').map_or((cause, None), |(stage, holder)| (stage, Some(holder)))
    }
}

/// What a thread has spent and waited for up to an instant.
#[derive(Copy, Clone)]
pub(crate) struct Account {
    times: Times,
    waits: Waits,
}

impl Account {
    pub(crate) fn of(thread: &Context) -> Account {
        Account { times: thread.times(), waits: thread.waits() }
    }

    /// What it has spent and waited for since `earlier`.
    fn since(&self, earlier: &Account) -> Account {
        Account { times: self.times.since(&earlier.times), waits: self.waits.since(&earlier.waits) }
    }

    /// The same since this account until now.
    pub(crate) fn until_now(&self, thread: &Context) -> Account {
        Account::of(thread).since(self)
    }

    fn switched(&self) -> Span {
        self.times.by(Kind::Switch) + self.times.by(Kind::Cold)
    }
}

/// Time by cause.
#[derive(Default)]
struct Spent(Vec<(&'static str, Span)>);

impl Spent {
    fn push(&mut self, stage: &'static str, span: Span) {
        self.0.push((stage, span));
    }

    /// A wait for the processor. `waits` has who had that, for as long or longer: then each has its part. A thread that was at work on
    /// other I/Os meanwhile had the rest.
    fn wait(&mut self, delay: Span, waits: &Waits) {
        if delay.is_zero() {
            return;
        }
        let (all, mut left) = (waits.total(), delay);
        for ((_, holder), cause) in Holder::ALL.into_iter().zip(stage::BEHIND) {
            let waited = waits.by(holder);
            let part = match all > delay {
                true => (u128::from(waited.ns()) * u128::from(delay.ns()) / u128::from(all.ns())) as u64,
                false => waited.ns(),
            };
            left -= Span::from_ns(part);
            self.push(cause, Span::from_ns(part));
        }
        self.push(stage::BEHIND[Holder::Application as usize], left);
    }

    fn charge(&self, breakdown: &mut Breakdown) {
        self.0.iter().for_each(|(cause, span)| breakdown.charge(LAYER, cause, *span));
    }
}

/// The stages of one I/O that have ended.
pub(crate) struct Stages<'a> {
    sim: &'a Sim,
    thread: &'a Context,
    /// When the last one ended, and the thread's account then.
    at: Time,
    account: Account,
    spent: Spent,
}

impl<'a> Stages<'a> {
    /// An I/O that was requested at `arrived` and gets its thread now. `idle` is the thread's account when it began to wait for one, if the
    /// I/O found it so: the rest is a wait for the processor and a switch.
    pub(crate) fn begin(sim: &'a Sim, thread: &'a Context, arrived: Time, idle: Option<Account>) -> Stages<'a> {
        let (at, account, mut spent) = (sim.now(), Account::of(thread), Spent::default());
        let waited = at - arrived;
        match idle.map(|idle| account.since(&idle)) {
            None => spent.push(stage::THREAD, waited),
            Some(since) => {
                let switched = since.switched().min(waited);
                spent.push(stage::SWITCH, switched);
                spent.wait(waited - switched, &since.waits);
            }
        }
        Stages { sim, thread, at, account, spent }
    }

    /// A stage has ended in which the thread worked. Its switches and its waits for the processor are stages themselves.
    pub(crate) fn end(&mut self, stage: &'static str) {
        let (elapsed, since) = self.go_on();
        let (switched, busy) = (since.switched(), since.times.busy());
        self.spent.push(stage, busy - switched);
        self.spent.push(stage::SWITCH, switched);
        self.spent.wait(elapsed - busy, &since.waits);
    }

    /// The next stage begins now. Returns how long the last one took, and the thread's account of it.
    fn go_on(&mut self) -> (Span, Account) {
        let (now, account) = (self.sim.now(), Account::of(self.thread));
        let (elapsed, since) = (now - self.at, account.since(&self.account));
        (self.at, self.account) = (now, account);
        (elapsed, since)
    }

    /// A stage has ended at `at` in which the thread did nothing.
    pub(crate) fn pass(&mut self, stage: &'static str, at: Time) {
        self.spent.push(stage, at - self.at);
        self.at = at;
    }

    /// A command was issued at `at`: until then it waited for a tag.
    pub(crate) fn queued(&mut self, at: Time) {
        if at > self.at {
            self.pass(stage::QUEUE, at);
        }
    }

    /// The drive has had the command from the end of the last stage to `at`, when the thread had waited for its processor for so long.
    pub(crate) fn in_drive(&mut self, at: Time, waits: Waits) {
        (self.at, self.account.waits) = (at, waits);
    }

    /// Another has had the I/O from the end of the last stage until now.
    pub(crate) fn elsewhere(&mut self) {
        _ = self.go_on();
    }

    /// A thread that slept in the last stage, and has had its processor back for no time: a switch, and a wait before it.
    pub(crate) fn resumed(&mut self) {
        let (elapsed, since) = self.go_on();
        let switched = since.switched().min(elapsed);
        self.spent.push(stage::SWITCH, switched);
        self.spent.wait(elapsed - switched, &since.waits);
    }

    /// A thread that polled has its processor: until now it waited for that.
    pub(crate) fn waited(&mut self) {
        let (elapsed, since) = self.go_on();
        self.spent.wait(elapsed, &since.waits);
    }

    /// The thread's time counts anew.
    pub(crate) fn mark_thread(&mut self) {
        self.account = Account::of(self.thread);
    }

    /// Charges all of it to the host.
    pub(crate) fn charge(&self, breakdown: &mut Breakdown) {
        self.spent.charge(breakdown);
    }
}

/// The parts of a request's time, each from the end of the one before.
pub(crate) struct Legs {
    /// When the request came.
    pub(crate) arrived: Time,
    pub(crate) at: Time,
    spent: Spent,
}

impl Legs {
    /// A request that came at `arrived` and is seen now; the thread was idle, and this is its account since.
    pub(crate) fn begin(arrived: Time, now: Time, idle: Option<&Account>) -> Legs {
        let mut legs = Legs { arrived, at: arrived, spent: Spent::default() };
        match idle {
            Some(since) => legs.resumed(since, now),
            None => legs.pass(stage::THREAD, now),
        }
        legs
    }

    pub(crate) fn pass(&mut self, stage: &'static str, at: Time) {
        if at > self.at {
            self.spent.push(stage, at - self.at);
            self.at = at;
        }
    }

    /// The thread has its processor again. Its account since it slept has the switch, and who had the processor.
    pub(crate) fn resumed(&mut self, since: &Account, at: Time) {
        let elapsed = at.since(self.at);
        let switch = since.switched().min(elapsed);
        self.spent.push(stage::SWITCH, switch);
        self.spent.wait(elapsed - switch, &since.waits);
        self.at = self.at.max(at);
    }

    pub(crate) fn charge(&self, completion: &mut Completion) {
        self.spent.charge(&mut completion.breakdown);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_holder_has_a_cause_of_the_wait_for_a_processor() {
        assert_eq!(Holder::ALL.map(|(name, _)| name), stage::HOLDERS);
        let causes = stage::HOLDERS.map(|name| (stage::RUN_DELAY, Some(name)));
        assert_eq!(stage::BEHIND.map(stage::split), causes);
        assert_eq!(stage::split(stage::SWITCH), (stage::SWITCH, None));
    }
}
