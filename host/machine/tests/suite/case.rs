//! Random hosts with threads and interrupts that follow scripts, and their run on the machine.

use std::cell::RefCell;
use std::rc::Rc;

use nandscape_host_machine::scheduler::SchedulerKind;
use nandscape_host_machine::{Affinity, Config, Context, Machine, Mode, Policy, Role, ThreadSpec, Times, Waits};
use nandscape_sim::{Executor, Rng, Sim, Span, Time};

/// A step of a thread. Lengths are nanoseconds.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    Work(u64),
    Sleep(u64),
    Yield,
}

#[derive(Clone, Debug)]
pub(crate) struct Thread {
    /// The priority of a real-time thread.
    pub(crate) priority: Option<u8>,
    pub(crate) role: Role,
    pub(crate) cpus: Vec<usize>,
    pub(crate) steps: Vec<Step>,
}

/// An interrupt or a softirq.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Raised {
    pub(crate) at: u64,
    pub(crate) cpu: usize,
    pub(crate) is_hard: bool,
    pub(crate) work: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) config: Config,
    pub(crate) threads: Vec<Thread>,
    pub(crate) raised: Vec<Raised>,
    pub(crate) until: u64,
}

/// A step that has ended: when, whose (interrupts after threads), and which.
pub(crate) type Ended = (u64, usize, usize);

impl Case {
    pub(crate) fn random(rng: &mut Rng) -> Case {
        let mut config = Config::free(1 + rng.below(3) as usize);
        config.threads = 1 + rng.below(2) as usize;
        config.share = 0.5;
        config.sched = if rng.chance(0.5) { SchedulerKind::Cfs } else { SchedulerKind::Eevdf };
        let mut ns = |from: u64, to: u64| Span::from_ns(from + rng.below(to - from));
        (config.slice, config.latency, config.wakeup) = (ns(700, 1_500), ns(300, 4_000), ns(0, 600));
        for cost in [&mut config.switch, &mut config.interrupt, &mut config.softirq, &mut config.timer] {
            *cost = ns(0, 40);
        }
        (config.cold_cache, config.cold_core, config.idle_exit) = (ns(0, 90), ns(0, 60), ns(0, 50));
        config.balance = rng.chance(0.5);
        if rng.chance(0.5) {
            config.ksoftirqd = Span::from_ns(100 + rng.below(300));
        }
        if rng.chance(0.5) {
            (config.nodes, config.distance) = (config.cores, 1.0 + rng.below(2) as f64);
        }
        let (cpus, until) = (config.cpus(), 20_000);
        let threads = (0..1 + rng.below(7)).map(|_| Case::thread(rng, cpus)).collect();
        let raised = |_| Raised {
            at: 1 + rng.below(until),
            cpu: rng.below(cpus as u64) as usize,
            is_hard: rng.chance(0.6),
            work: 1 + rng.below(300),
        };
        let raised = (0..30).map(raised).collect();
        Case { config, threads, raised, until }
    }

    fn thread(rng: &mut Rng, cpus: usize) -> Thread {
        let all: Vec<usize> = (0..cpus).collect();
        let some: Vec<usize> = all.iter().copied().filter(|_| rng.chance(0.6)).collect();
        let is_busy = rng.chance(0.4);
        let mut steps = vec![Step::Sleep(1 + rng.below(3_000))];
        for _ in 0..40 {
            steps.push(match rng.below(8) {
                0 => Step::Yield,
                1..=2 if !is_busy => Step::Sleep(1 + rng.below(2_000)),
                _ => Step::Work(1 + rng.below(if is_busy { 3_000 } else { 400 })),
            });
        }
        Thread {
            priority: rng.chance(0.2).then(|| 1 + rng.below(3) as u8),
            role: [Role::Application, Role::Load, Role::Kernel][rng.below(3) as usize],
            cpus: if some.is_empty() || rng.chance(0.6) { all } else { some },
            steps,
        }
    }

    fn spec(thread: &Thread) -> ThreadSpec {
        ThreadSpec {
            policy: thread.priority.map_or(ThreadSpec::default().policy, Policy::Realtime),
            affinity: thread.cpus.iter().copied().collect::<Affinity>(),
            role: thread.role,
        }
    }

    /// The steps that ended on the machine, in order, the accounts of processors, and the waits of threads.
    pub(crate) fn run(&self, mut executor: Executor) -> (Vec<Ended>, Vec<Times>, Vec<Waits>) {
        let sim = executor.sim();
        let machine = Machine::new(&sim, self.config.clone()).expect("a machine that is possible");
        let log = Rc::new(RefCell::new(Vec::new()));
        let mut contexts = Vec::new();
        for (number, thread) in self.threads.iter().enumerate() {
            let context = Rc::new(machine.thread(Case::spec(thread)).expect("processors that exist"));
            contexts.push(context.clone());
            sim.spawn(follow(sim.clone(), context, number, thread.steps.clone(), log.clone()));
        }
        for (number, raised) in self.raised.iter().copied().enumerate() {
            let (sim, log, machine) = (sim.clone(), log.clone(), machine.clone());
            let number = self.threads.len() + number;
            executor.sim().spawn(async move {
                sim.sleep(Span::from_ns(raised.at)).await;
                let make = if raised.is_hard { Machine::interrupt } else { Machine::softirq };
                let context = make(&machine, raised.cpu).expect("a processor that exists");
                context.work(Span::from_ns(raised.work), Mode::Kernel).await;
                log.borrow_mut().push((sim.now().ns(), number, 0));
            });
        }
        executor.block_on(sim.sleep_until(Time::from_ns(self.until))).expect("the run ends");
        let times = (0..machine.cpus()).map(|cpu| machine.usage(cpu)).collect();
        (log.take(), times, contexts.iter().map(|context| context.waits()).collect())
    }
}

async fn follow(sim: Sim, context: Rc<Context>, number: usize, steps: Vec<Step>, log: Rc<RefCell<Vec<Ended>>>) {
    for (index, step) in steps.into_iter().enumerate() {
        match step {
            Step::Work(ns) => context.work(Span::from_ns(ns), Mode::User).await,
            Step::Sleep(ns) => context.sleep(Span::from_ns(ns)).await,
            Step::Yield => context.yield_now().await,
        }
        log.borrow_mut().push((sim.now().ns(), number, index));
    }
}
