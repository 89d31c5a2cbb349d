//! The same hosts, simulated one nanosecond after the other, with a search through everything for every decision.
//!
//! All threads have nice 0, so that virtual time is an exact number of 1/1,024 ns. A run notes the first instant at which two
//! independent things happen at once: from there on the order of events decides, and the runs cannot be compared.

use nandscape_host_machine::scheduler::SchedulerKind;
use nandscape_host_machine::{Config, Holder, Role};

use crate::case::{Case, Ended, Step};

/// Units of work a nanosecond, and of virtual time.
const WORK: u64 = 2;
const VIRTUAL: i64 = 1_024;

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Is {
    Asleep(u64),
    Ready,
    On(usize),
    Over,
}

struct Thread {
    is: Is,
    step: usize,
    /// Left, in units of work: of the switch, of cold caches, of the step.
    left: [u64; 3],
    cpu: usize,
    /// The core where it was last, and how long threads had run on that.
    core: Option<(usize, u64)>,
    queue: usize,
    virtual_time: i64,
    deadline: i64,
    lag: i64,
    used: u64,
    joined: i64,
    has_joined: bool,
    /// The softirq with which it goes on, if it is the thread of a processor that does.
    softirq: Option<usize>,
    waited: [u64; Holder::ALL.len()],
}

#[derive(Copy, Clone)]
struct Irq {
    number: usize,
    is_hard: bool,
    left: [u64; 2],
}

struct Cpu {
    thread: Option<usize>,
    irqs: Vec<Irq>,
    stolen: u64,
    /// How long softirqs have run in a row.
    soft_ran: u64,
    least: i64,
    idle_at: i64,
}

pub(crate) struct Naive<'a> {
    case: &'a Case,
    config: &'a Config,
    now: u64,
    threads: Vec<Thread>,
    cpus: Vec<Cpu>,
    worked: Vec<u64>,
    joins: i64,
    returns: i64,
    log: Vec<Ended>,
}

impl<'a> Naive<'a> {
    pub(crate) fn new(case: &'a Case) -> Naive<'a> {
        let first = |thread: &crate::case::Thread| match thread.steps[0] {
            Step::Sleep(ns) => Is::Asleep(ns),
            _ => unreachable!("a script begins with a sleep"),
        };
        let thread = |is: Is| Thread {
            is,
            step: 0,
            left: [0; 3],
            cpu: 0,
            core: None,
            queue: 0,
            virtual_time: 0,
            deadline: 0,
            lag: 0,
            used: 0,
            joined: 0,
            has_joined: false,
            softirq: None,
            waited: [0; Holder::ALL.len()],
        };
        let cpu = |_| Cpu { thread: None, irqs: Vec::new(), stolen: 0, soft_ran: 0, least: 0, idle_at: 0 };
        // After those of the script, a thread of each processor that goes on with softirqs.
        let deferring = (0..case.config.cpus()).map(|_| Is::Over);
        Naive {
            case,
            config: &case.config,
            now: 0,
            threads: case.threads.iter().map(first).chain(deferring).map(thread).collect(),
            cpus: (0..case.config.cpus()).map(cpu).collect(),
            worked: vec![0; case.config.cores],
            joins: 0,
            returns: 0,
            log: Vec::new(),
        }
    }

    /// Runs; the steps that ended, the instant of the first tie, and the waits of threads by holder.
    pub(crate) fn run(mut self) -> (Vec<Ended>, Option<u64>, Vec<[u64; Holder::ALL.len()]>) {
        let mut tie = None;
        while self.now < self.case.until && tie.is_none() {
            self.pass();
            self.now += 1;
            if self.triggers() > 1 {
                tie = Some(self.now);
            }
            self.react();
        }
        let waited = self.threads.iter().take(self.case.threads.len()).map(|thread| thread.waited).collect();
        (self.log, tie, waited)
    }

    fn priority(&self, thread: usize) -> Option<u8> {
        self.case.threads.get(thread).and_then(|thread| thread.priority)
    }

    fn is_realtime(&self, thread: usize) -> bool {
        self.priority(thread).is_some()
    }

    /// Whether a thread may run on a processor.
    fn may(&self, thread: usize, cpu: usize) -> bool {
        let of_script = self.case.threads.get(thread);
        of_script.map_or(thread == self.deferring(cpu), |thread| thread.cpus.contains(&cpu))
    }

    /// The thread of a processor that goes on with softirqs.
    fn deferring(&self, cpu: usize) -> usize {
        self.case.threads.len() + cpu
    }

    fn node_of(&self, core: usize) -> usize {
        core * self.config.nodes / self.config.cores
    }

    fn core_of(&self, cpu: usize) -> usize {
        cpu / self.config.threads
    }

    fn is_busy(&self, cpu: usize) -> bool {
        self.cpus[cpu].thread.is_some() || !self.cpus[cpu].irqs.is_empty()
    }

    fn sibling(&self, cpu: usize) -> Option<usize> {
        (self.config.threads == 2).then_some(cpu ^ 1)
    }

    fn irq(&self, cpu: usize) -> Option<usize> {
        let irqs = &self.cpus[cpu].irqs;
        let soft = || self.threads[self.deferring(cpu)].softirq.is_none() && !irqs.is_empty();
        irqs.iter().position(|irq| irq.is_hard).or_else(|| soft().then_some(0))
    }

    /// Who has a processor.
    fn holder(&self, cpu: usize) -> Option<Holder> {
        if self.cpus[cpu].stolen > 0 {
            return Some(Holder::Interrupt);
        }
        if let Some(irq) = self.irq(cpu) {
            let is_hard = self.cpus[cpu].irqs[irq].is_hard;
            return Some(if is_hard { Holder::Interrupt } else { Holder::Softirq });
        }
        let of_script = self.case.threads.get(self.cpus[cpu].thread?);
        Some(match of_script.map(|thread| thread.role) {
            None => Holder::Softirq,
            Some(Role::Application) => Holder::Application,
            Some(Role::Load) => Holder::Load,
            Some(Role::Kernel) => Holder::Kernel,
        })
    }

    /// Threads that wait for their processors do so for a nanosecond more.
    fn wait(&mut self) {
        for thread in 0..self.case.threads.len() {
            let cpu = match self.threads[thread].is {
                Is::Ready if self.is_realtime(thread) => self.threads[thread].cpu,
                Is::Ready => self.threads[thread].queue,
                Is::On(cpu) if self.irq(cpu).is_some() || self.cpus[cpu].stolen > 0 => cpu,
                _ => continue,
            };
            if let Some(holder) = self.holder(cpu) {
                self.threads[thread].waited[holder as usize] += 1;
            }
        }
    }

    /// One nanosecond passes on all processors.
    fn pass(&mut self) {
        self.wait();
        for cpu in 0..self.cpus.len() {
            let shares = self.sibling(cpu).is_some_and(|sibling| self.is_busy(sibling));
            let done = if shares { WORK / 2 } else { WORK };
            if self.cpus[cpu].stolen > 0 {
                self.cpus[cpu].stolen -= done.min(self.cpus[cpu].stolen);
            } else if let Some(irq) = self.irq(cpu) {
                let left = self.cpus[cpu].irqs[irq].left.iter_mut().find(|left| **left > 0).expect("work is left");
                *left -= done.min(*left);
                self.cpus[cpu].soft_ran += u64::from(!self.cpus[cpu].irqs[irq].is_hard);
            } else if let Some(thread) = self.cpus[cpu].thread {
                let core = self.core_of(cpu);
                self.worked[core] += 1;
                let left = self.threads[thread].left.iter_mut().find(|left| **left > 0).expect("work is left");
                *left -= done.min(*left);
                if !self.is_realtime(thread) {
                    self.ran(cpu, thread);
                }
            }
        }
    }

    fn ran(&mut self, cpu: usize, thread: usize) {
        let alone = self.queue(cpu).next().is_none();
        let first = self.first(cpu).map(|first| self.threads[first].virtual_time);
        let slice = self.config.slice.ns() as i64 * VIRTUAL;
        let it = &mut self.threads[thread];
        it.used += 1;
        it.virtual_time += VIRTUAL;
        if self.config.sched == SchedulerKind::Eevdf && alone && it.virtual_time >= it.deadline {
            it.deadline += slice;
        }
        let least = first.map_or(it.virtual_time, |first| first.min(it.virtual_time));
        self.cpus[cpu].least = self.cpus[cpu].least.max(least);
    }

    /// Independent things that happen now.
    fn triggers(&self) -> usize {
        let wakes = self.threads.iter().filter(|thread| thread.is == Is::Asleep(self.now)).count();
        let raised = self.case.raised.iter().filter(|raised| raised.at == self.now).count();
        let ends = (0..self.cpus.len()).filter(|cpu| self.changes(*cpu)).count();
        wakes + raised + ends
    }

    /// Whether what is on a processor has nothing left to do.
    fn is_done(&self, cpu: usize) -> bool {
        self.cpus[cpu].stolen == 0
            && match (self.irq(cpu), self.cpus[cpu].thread) {
                (Some(irq), _) => self.cpus[cpu].irqs[irq].left == [0; 2],
                (None, Some(thread)) => self.threads[thread].left == [0; 3],
                (None, None) => false,
            }
    }

    /// Whether something ends on a processor.
    fn changes(&self, cpu: usize) -> bool {
        self.is_done(cpu) || self.has_used_slice(cpu) || self.is_deferred(cpu)
    }

    /// Whether the softirqs of a processor have run for too long.
    fn is_deferred(&self, cpu: usize) -> bool {
        let most = self.config.ksoftirqd.ns();
        let at = &self.cpus[cpu];
        let runs = at.stolen == 0 && self.irq(cpu).is_some_and(|irq| !at.irqs[irq].is_hard);
        most > 0 && runs && at.soft_ran >= most && !self.is_done(cpu)
    }

    /// A thread goes on with the softirq of a processor.
    fn defer(&mut self, cpu: usize) {
        let irq = self.irq(cpu).expect("a softirq runs");
        let irq = self.cpus[cpu].irqs.remove(irq);
        self.take_over(cpu, irq);
        self.enter(self.deferring(cpu), cpu, false);
    }

    /// The work of a softirq is that of the thread of its processor from now on.
    fn take_over(&mut self, cpu: usize, irq: Irq) {
        let thread = self.deferring(cpu);
        let it = &mut self.threads[thread];
        (it.softirq, it.left, it.core, it.cpu, it.queue) =
            (Some(irq.number), [0, 0, irq.left[0] + irq.left[1]], None, cpu, cpu);
    }

    /// A softirq has ended with which the thread of a processor went on. It goes on with the next one.
    fn softirq_ended(&mut self, cpu: usize) {
        let thread = self.deferring(cpu);
        let number = self.threads[thread].softirq.take().expect("it goes on with one");
        self.log.push((self.now, number, 0));
        if self.cpus[cpu].irqs.is_empty() {
            return self.go(cpu, Is::Over);
        }
        let irq = self.cpus[cpu].irqs.remove(0);
        self.take_over(cpu, irq);
    }

    /// All that happens at this instant.
    fn react(&mut self) {
        for thread in 0..self.threads.len() {
            if self.threads[thread].is == Is::Asleep(self.now) {
                self.wake(thread);
            }
        }
        for (number, raised) in self.case.raised.iter().enumerate().filter(|(_, raised)| raised.at == self.now) {
            let (cost, exit) = match raised.is_hard {
                true => (self.config.interrupt.ns(), self.config.idle_exit.ns()),
                false => (self.config.softirq.ns(), self.config.idle_exit.ns()),
            };
            let enters = if self.is_busy(raised.cpu) { cost } else { cost + exit };
            let left = [enters * WORK, raised.work * WORK];
            let number = self.case.threads.len() + number;
            if !raised.is_hard && self.cpus[raised.cpu].irqs.iter().all(|irq| irq.is_hard) {
                self.cpus[raised.cpu].soft_ran = 0;
            }
            self.cpus[raised.cpu].irqs.push(Irq { number, is_hard: raised.is_hard, left });
        }
        while let Some(cpu) = (0..self.cpus.len()).find(|cpu| self.changes(*cpu)) {
            match (self.is_done(cpu), self.irq(cpu)) {
                (true, Some(irq)) => {
                    let irq = self.cpus[cpu].irqs.remove(irq);
                    self.log.push((self.now, irq.number, 0));
                }
                (true, None) if self.cpus[cpu].thread == Some(self.deferring(cpu)) => self.softirq_ended(cpu),
                (true, None) => self.step_ended(cpu),
                (false, _) if self.is_deferred(cpu) => self.defer(cpu),
                (false, _) => self.turn(cpu, false),
            }
        }
    }

    /// A thread's step has ended, and the next one begins.
    fn step_ended(&mut self, cpu: usize) {
        let thread = self.cpus[cpu].thread.expect("a thread has ended its step");
        self.log.push((self.now, thread, self.threads[thread].step));
        self.threads[thread].step += 1;
        match self.case.threads[thread].steps.get(self.threads[thread].step).copied() {
            Some(Step::Work(ns)) => self.threads[thread].left[2] = ns * WORK,
            Some(Step::Yield) => self.turn(cpu, true),
            Some(Step::Sleep(ns)) => self.go(cpu, Is::Asleep(self.now + ns)),
            None => self.go(cpu, Is::Over),
        }
    }

    /// A thread leaves its processor for something else than another turn.
    fn go(&mut self, cpu: usize, is: Is) {
        let thread = self.cpus[cpu].thread.expect("a thread goes");
        let lag = self.lag(cpu, self.threads[thread].virtual_time);
        self.off(cpu);
        let it = &mut self.threads[thread];
        (it.is, it.left, it.lag) = (is, [0; 3], lag);
        if !self.is_realtime(thread) {
            let time = self.threads[thread].virtual_time;
            let first = self.first(cpu).map(|first| self.threads[first].virtual_time);
            let at = &mut self.cpus[cpu];
            at.least = at.least.max(first.unwrap_or(at.least));
            at.idle_at = at.idle_at.max(time);
        }
        self.fill(cpu, false);
    }

    fn off(&mut self, cpu: usize) {
        let thread = self.cpus[cpu].thread.take().expect("a thread leaves");
        let core = self.core_of(cpu);
        let it = &mut self.threads[thread];
        it.left[0] = 0;
        it.core = Some((core, self.worked[core]));
    }

    /// The thread of a processor waits again, and the next one has its turn.
    fn turn(&mut self, cpu: usize, yields: bool) {
        let thread = self.cpus[cpu].thread.expect("a turn ends");
        let slice = self.config.slice.ns() as i64 * VIRTUAL;
        let is_eevdf = self.config.sched == SchedulerKind::Eevdf;
        if self.is_realtime(thread) {
            self.joins += i64::from(yields);
            self.returns -= i64::from(!yields);
            self.threads[thread].joined = if yields { self.joins } else { self.returns };
        } else {
            self.joins += 1;
            let it = &mut self.threads[thread];
            it.joined = self.joins;
            if is_eevdf && yields {
                it.deadline += slice;
            }
            if is_eevdf && it.virtual_time >= it.deadline {
                it.deadline = it.virtual_time + slice;
            }
        }
        self.threads[thread].is = Is::Ready;
        // The processor has no thread meanwhile, so that this one counts as one that waits.
        self.cpus[cpu].thread = None;
        let others = self.queue(cpu).any(|other| other != thread);
        let hides = yields && !is_eevdf && !self.is_realtime(thread) && others;
        let next = if hides {
            self.threads[thread].is = Is::Over;
            let next = self.next(cpu);
            self.threads[thread].is = Is::Ready;
            next
        } else {
            self.next(cpu)
        };
        self.cpus[cpu].thread = Some(thread);
        if next == Some(thread) {
            let it = &mut self.threads[thread];
            (it.is, it.used) = (Is::On(cpu), 0);
            return;
        }
        self.off(cpu);
        self.on(next.expect("another thread waits"), cpu, false);
        if self.is_realtime(thread) {
            self.push(thread);
        }
    }

    /// Threads that wait in the run queue of a processor.
    fn queue(&self, cpu: usize) -> impl Iterator<Item = usize> {
        (0..self.threads.len())
            .filter(move |thread| self.threads[*thread].is == Is::Ready && self.threads[*thread].queue == cpu)
            .filter(|thread| !self.is_realtime(*thread))
    }

    /// The one of them with the least virtual time.
    fn first(&self, cpu: usize) -> Option<usize> {
        self.queue(cpu).min_by_key(|thread| (self.threads[*thread].virtual_time, self.threads[*thread].joined))
    }

    /// All threads of a processor that share, with the one that has it.
    fn members(&self, cpu: usize) -> Vec<i64> {
        let has = self.cpus[cpu].thread.filter(|thread| !self.is_realtime(*thread));
        self.queue(cpu).chain(has).map(|thread| self.threads[thread].virtual_time).collect()
    }

    fn average(&self, cpu: usize) -> i64 {
        let members = self.members(cpu);
        if members.is_empty() {
            return self.cpus[cpu].idle_at;
        }
        members.iter().sum::<i64>().div_euclid(members.len() as i64)
    }

    fn lag(&self, cpu: usize, virtual_time: i64) -> i64 {
        let most = 2 * self.config.slice.ns() as i64 * VIRTUAL;
        (self.average(cpu) - virtual_time).clamp(-most, most)
    }

    fn is_eligible(&self, cpu: usize, virtual_time: i64) -> bool {
        let members = self.members(cpu);
        virtual_time * members.len() as i64 <= members.iter().sum()
    }

    /// The real-time thread that has waited for longest at the highest priority, of those that may run here.
    fn urgent(&self, cpu: usize) -> Option<usize> {
        (0..self.threads.len())
            .filter(|thread| self.threads[*thread].is == Is::Ready && self.is_realtime(*thread))
            .filter(|thread| self.may(*thread, cpu))
            .min_by_key(|thread| (std::cmp::Reverse(self.priority(*thread)), self.threads[*thread].joined))
    }

    fn fair(&self, cpu: usize) -> Option<usize> {
        match self.config.sched {
            SchedulerKind::Cfs => self.first(cpu),
            SchedulerKind::Eevdf => self
                .queue(cpu)
                .filter(|thread| self.is_eligible(cpu, self.threads[*thread].virtual_time))
                .min_by_key(|thread| (self.threads[*thread].deadline, self.threads[*thread].joined)),
        }
    }

    /// The next thread of a processor that has none.
    fn next(&self, cpu: usize) -> Option<usize> {
        self.urgent(cpu).or_else(|| self.fair(cpu))
    }

    fn fill(&mut self, cpu: usize, was_idle: bool) {
        if self.next(cpu).is_none() && self.config.balance {
            self.pull(cpu);
        }
        if let Some(next) = self.next(cpu) {
            self.on(next, cpu, was_idle);
        }
    }

    /// Takes the last thread of the longest queue.
    fn pull(&mut self, cpu: usize) {
        let last = |other: usize| {
            let may = self.queue(other).filter(|thread| self.may(*thread, cpu));
            may.max_by_key(|thread| match self.config.sched {
                SchedulerKind::Cfs => (self.threads[*thread].virtual_time, self.threads[*thread].joined),
                SchedulerKind::Eevdf => (self.threads[*thread].deadline, self.threads[*thread].joined),
            })
        };
        let from = (0..self.cpus.len())
            .filter(|other| *other != cpu && last(*other).is_some())
            .max_by_key(|other| (self.queue(*other).count(), std::cmp::Reverse(*other)));
        let Some((from, thread)) = from.and_then(|from| Some((from, last(from)?))) else { return };
        let lag = self.lag(from, self.threads[thread].virtual_time);
        let time = self.threads[thread].virtual_time;
        self.cpus[from].idle_at = self.cpus[from].idle_at.max(time);
        self.threads[thread].lag = lag;
        self.threads[thread].is = Is::Over;
        self.join(thread, cpu);
    }

    /// Gives a processor to a thread.
    fn on(&mut self, thread: usize, cpu: usize, was_idle: bool) {
        let core = self.core_of(cpu);
        let config = self.config;
        let switch = config.switch.ns() + if was_idle { config.idle_exit.ns() } else { 0 };
        let cold = match self.threads[thread].core {
            None => 0,
            Some((last, _)) if self.node_of(last) != self.node_of(core) => {
                (config.cold_core.ns() as f64 * config.distance) as u64
            }
            Some((last, _)) if last != core => config.cold_core.ns(),
            Some((_, worked)) => (self.worked[core] - worked).min(config.cold_cache.ns()),
        };
        let it = &mut self.threads[thread];
        it.left[0] = switch * WORK;
        it.left[1] = it.left[1].max(cold * WORK);
        (it.is, it.cpu, it.used) = (Is::On(cpu), cpu, 0);
        self.cpus[cpu].thread = Some(thread);
    }

    /// A thread begins to wait in a queue.
    fn join(&mut self, thread: usize, cpu: usize) {
        let (slice, latency) = (self.config.slice.ns() as i64, self.config.latency.ns() as i64);
        let (count, average) = (self.members(cpu).len() as i64, self.average(cpu));
        let least = self.cpus[cpu].least;
        let from = self.cpus[self.threads[thread].queue].least;
        self.joins += 1;
        let joins = self.joins;
        let it = &mut self.threads[thread];
        let is_new = !std::mem::replace(&mut it.has_joined, true);
        match self.config.sched {
            SchedulerKind::Cfs => {
                if is_new {
                    it.virtual_time = least;
                } else if it.queue != cpu {
                    it.virtual_time += least - from;
                }
                let period = latency.max(slice * (count + 1));
                let place = if is_new {
                    least + slice.max(period / (count + 1)) * VIRTUAL
                } else {
                    least - latency / 2 * VIRTUAL
                };
                it.virtual_time = it.virtual_time.max(place);
            }
            SchedulerKind::Eevdf => {
                let distance = if count == 0 { 0 } else { it.lag * (count + 1) / count };
                it.virtual_time = average - distance;
                it.deadline = it.virtual_time + slice * VIRTUAL / if is_new { 2 } else { 1 };
            }
        }
        (it.is, it.queue, it.joined) = (Is::Ready, cpu, joins);
    }

    fn has_used_slice(&self, cpu: usize) -> bool {
        let Some(thread) = self.cpus[cpu].thread.filter(|thread| !self.is_realtime(*thread)) else { return false };
        let waiting = self.queue(cpu).count() as u64;
        // It is looked at while it is at work.
        if self.irq(cpu).is_some() || self.cpus[cpu].stolen > 0 || waiting == 0 || self.threads[thread].left == [0; 3] {
            return false;
        }
        let (it, least) = (&self.threads[thread], self.config.slice.ns());
        match self.config.sched {
            SchedulerKind::Cfs => {
                let period = self.config.latency.ns().max(least * (waiting + 1));
                let slice = (period / (waiting + 1)).max(least);
                let first = self.threads[self.first(cpu).expect("one waits")].virtual_time;
                let is_ahead = it.virtual_time - first > slice as i64 * VIRTUAL;
                it.used >= slice || it.used >= least && is_ahead
            }
            SchedulerKind::Eevdf => it.virtual_time >= it.deadline,
        }
    }

    fn is_free(&self, cpu: usize) -> bool {
        self.cpus[cpu].thread.is_none()
    }

    /// A processor without a thread for one that wakes.
    fn free(&self, thread: usize) -> Option<usize> {
        let it = &self.threads[thread];
        let count = self.cpus.len();
        let from = if it.core.is_some() { it.cpu } else { 0 };
        let mut may = (0..count).map(|offset| (from + offset) % count).collect::<Vec<_>>();
        may.retain(|cpu| self.may(thread, *cpu) && self.is_free(*cpu));
        if it.core.is_some() && may.first() == Some(&from) {
            return Some(from);
        }
        let whole = |cpu: &usize| self.sibling(*cpu).is_none_or(|sibling| self.is_free(sibling));
        let node = self.node_of(self.core_of(from));
        let (near, far): (Vec<usize>, Vec<usize>) =
            may.iter().partition(|cpu| self.node_of(self.core_of(**cpu)) == node);
        let free = |among: &[usize]| among.iter().copied().find(whole).or(among.first().copied());
        free(&near).or_else(|| free(&far))
    }

    /// A sleep has ended.
    fn wake(&mut self, thread: usize) {
        let before = self.threads[thread].cpu;
        let was_busy = self.is_busy(before);
        let to = if self.is_realtime(thread) { self.wake_realtime(thread) } else { self.wake_fair(thread) };
        let at = if was_busy { before } else { to.unwrap_or(before) };
        if self.is_busy(at) {
            self.cpus[at].stolen += self.config.timer.ns() * WORK;
        }
    }

    fn wake_realtime(&mut self, thread: usize) -> Option<usize> {
        self.joins += 1;
        let it = &mut self.threads[thread];
        (it.is, it.joined) = (Is::Ready, self.joins);
        self.push(thread)
    }

    /// Gives a real-time thread a processor that is free or has a less urgent thread.
    fn push(&mut self, thread: usize) -> Option<usize> {
        let priority = |thread: usize| self.priority(thread);
        let count = self.cpus.len();
        let from = self.threads[thread].cpu;
        let of_cpu = |cpu: usize| self.cpus[cpu].thread.and_then(priority);
        let least = (0..count)
            .map(|offset| (from + offset) % count)
            .filter(|cpu| self.may(thread, *cpu))
            .min_by_key(|cpu| of_cpu(*cpu))
            .filter(|cpu| of_cpu(*cpu) < priority(thread));
        let to = self.free(thread).or(least)?;
        match self.is_free(to) {
            true => {
                let was_idle = !self.is_busy(to);
                self.fill(to, was_idle);
            }
            false => self.turn(to, false),
        }
        Some(to)
    }

    fn wake_fair(&mut self, thread: usize) -> Option<usize> {
        let may = &self.case.threads[thread].cpus;
        let load = |cpu: usize| self.queue(cpu).count() + usize::from(!self.is_free(cpu));
        let it = &self.threads[thread];
        let stays = it.core.map(|_| it.cpu).filter(|cpu| may.contains(cpu));
        let to = self.free(thread).or(stays).or_else(|| may.iter().copied().min_by_key(|cpu| load(*cpu)));
        let to = to.expect("a thread may run somewhere");
        self.enter(thread, to, !self.is_busy(to))
    }

    /// A thread joins the queue of a processor, which it may get at once.
    fn enter(&mut self, thread: usize, to: usize, was_idle: bool) -> Option<usize> {
        self.join(thread, to);
        let Some(current) = self.cpus[to].thread else {
            self.fill(to, was_idle);
            return Some(to);
        };
        let (it, that) = (&self.threads[thread], &self.threads[current]);
        let preempts = !self.is_realtime(current)
            && match self.config.sched {
                SchedulerKind::Cfs => that.virtual_time - it.virtual_time > self.config.wakeup.ns() as i64 * VIRTUAL,
                SchedulerKind::Eevdf => {
                    let keeps = self.is_eligible(to, that.virtual_time) && that.virtual_time < that.deadline;
                    !keeps && self.fair(to) == Some(thread)
                }
            };
        if preempts {
            self.turn(to, false);
        }
        (self.threads[thread].is == Is::On(to)).then_some(to)
    }
}
