//! Machines, their work, and turns: a machine has the core until its slice ends, its work is done, or another one takes the core from it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use nandscape_host_kv::race::race;
use nandscape_sim::signal::Signal;
use nandscape_sim::{Sim, Span, Time};

use super::scheduler::{Scheduler, SchedulerKind};
use crate::resource::Average;

/// Work of a machine, done in order of arrival.
struct Job {
    left: Span,
    done: Rc<Done>,
}

struct Done {
    is_done: Cell<bool>,
    told: Signal,
}

struct Vm {
    jobs: VecDeque<Job>,
    /// Work of all jobs that has been done since the last one ended.
    begun: Span,
    /// How long its turns are.
    turn: Average,
}

/// The machine that has the core.
#[derive(Copy, Clone)]
struct Running {
    vm: usize,
    since: Time,
    /// Since when its work is not noted.
    from: Time,
    /// When its slice ends.
    until: Time,
}

/// See the file.
pub struct Core {
    sim: Sim,
    slice: Span,
    scheduler: RefCell<Box<dyn Scheduler>>,
    vms: RefCell<Vec<Vm>>,
    running: Cell<Option<Running>>,
    came: Signal,
    taken: Signal,
}

/// The weight of a new turn in their average.
const WEIGHT: f64 = 0.25;

/// What a machine that serves requests would find now.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Ahead {
    /// Until its turn.
    pub(super) wait: Span,
    /// How long that turn is at the most.
    pub(super) turn: Span,
    /// The turns of others between two of its own.
    pub(super) between: Span,
    /// Its own jobs that wait or are under way.
    pub(super) jobs: usize,
    /// What has been done of the first of them.
    pub(super) begun: Span,
}

impl Core {
    /// An idle core for a number of machines. It works from now on.
    pub fn new(sim: &Sim, machines: usize, slice: Span, scheduler: SchedulerKind) -> Rc<Core> {
        let vm = |_| Vm { jobs: VecDeque::new(), begun: Span::ZERO, turn: Average::new(slice, WEIGHT) };
        let core = Rc::new(Core {
            sim: sim.clone(),
            slice: slice.max(Span::from_us(1)),
            scheduler: RefCell::new(scheduler.make(machines)),
            vms: RefCell::new((0..machines).map(vm).collect()),
            running: Cell::new(None),
            came: Signal::new(sim),
            taken: Signal::new(sim),
        });
        sim.spawn(core.clone().work());
        core
    }

    /// The length of a slice.
    pub fn slice(&self) -> Span {
        self.slice
    }

    /// Has a machine do work, and waits until it is done.
    pub async fn run(&self, vm: usize, work: Span) {
        let done = Rc::new(Done { is_done: Cell::new(false), told: Signal::new(&self.sim) });
        let (wakes, turn) = {
            let vm = &mut self.vms.borrow_mut()[vm];
            vm.jobs.push_back(Job { left: work, done: done.clone() });
            (vm.jobs.len() == 1, vm.turn.get())
        };
        let has_core = self.running.get().is_some_and(|running| running.vm == vm);
        if wakes && !has_core {
            if self.scheduler.borrow_mut().wakes(vm, turn, self.sim.now()) {
                self.taken.notify();
            }
            self.came.notify();
        }
        while !done.is_done.get() {
            done.told.changed().await;
        }
    }

    async fn work(self: Rc<Self>) {
        loop {
            let next = self.scheduler.borrow_mut().next(self.sim.now());
            match next {
                Some(vm) => self.turn(vm).await,
                None => self.came.changed().await,
            }
        }
    }

    /// A machine's turn.
    async fn turn(&self, vm: usize) {
        let since = self.sim.now();
        let mut running = Running { vm, since, from: since, until: since + self.slice };
        let mut is_taken = false;
        while !is_taken && self.sim.now() < running.until {
            let Some(left) = self.first_left(vm) else { break };
            running.from = self.sim.now();
            self.running.set(Some(running));
            let ends = running.until.min(running.from + left);
            let mut sleep = Box::pin(self.sim.sleep_until(ends));
            is_taken = race(&mut sleep, self.taken.changed()).await.is_none();
            self.did(vm, self.sim.now() - running.from);
        }
        self.running.set(None);
        let turn = {
            let vm = &mut self.vms.borrow_mut()[vm];
            if !is_taken {
                vm.turn.add(self.sim.now() - since);
            }
            (!vm.jobs.is_empty()).then(|| vm.turn.get())
        };
        let mut scheduler = self.scheduler.borrow_mut();
        scheduler.ran(vm, self.sim.now() - since, self.sim.now());
        if let Some(turn) = turn {
            scheduler.waits(vm, turn, self.sim.now());
        }
    }

    fn first_left(&self, vm: usize) -> Option<Span> {
        self.vms.borrow()[vm].jobs.front().map(|job| job.left)
    }

    /// A machine has worked on its first job.
    fn did(&self, vm: usize, span: Span) {
        let mut vms = self.vms.borrow_mut();
        let vm = &mut vms[vm];
        let Some(job) = vm.jobs.front_mut() else { return };
        job.left = job.left.saturating_sub(span);
        vm.begun += span;
        if job.left.is_zero()
            && let Some(job) = vm.jobs.pop_front()
        {
            vm.begun = Span::ZERO;
            job.done.is_done.set(true);
            job.done.told.notify();
        }
    }

    /// What a job that comes now would find: a step for each of its parts, whatever the number of machines and jobs.
    pub(super) fn ahead(&self, vm: usize) -> Ahead {
        let (now, scheduler, vms) = (self.sim.now(), self.scheduler.borrow(), self.vms.borrow());
        let (jobs, others) = (vms[vm].jobs.len(), scheduler.others(vm));
        let of = |wait, turn, between, begun| Ahead { wait, turn, between, jobs, begun };
        match self.running.get() {
            Some(running) if running.vm == vm => {
                of(Span::ZERO, running.until.since(now), others, vms[vm].begun + now.since(running.from))
            }
            Some(running) => {
                let left = self.left(&running, vms[running.vm].turn.get(), now);
                let between = others + vms[running.vm].turn.get();
                match scheduler.ahead(vm, now) {
                    Some(ahead) => of(left + ahead, self.slice, between, vms[vm].begun),
                    None => of(Span::ZERO, self.slice, between, vms[vm].begun),
                }
            }
            None => of(scheduler.ahead(vm, now).unwrap_or_default(), self.slice, others, vms[vm].begun),
        }
    }

    /// What is left of a turn: to its usual end, and past that, to the end of the slice.
    fn left(&self, running: &Running, turn: Span, now: Time) -> Span {
        let usual = (running.since + turn).since(now);
        if usual.is_zero() { running.until.since(now) } else { usual }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_sim::Executor;

    const MS: fn(u64) -> Span = Span::from_ms;

    #[test]
    fn machines_have_the_core_in_slices_and_a_wait_is_known() {
        let mut executor = Executor::new();
        let sim = executor.sim();
        executor
            .block_on(async {
                let core = Core::new(&sim, 3, MS(30), SchedulerKind::RoundRobin);
                for vm in [1, 2] {
                    let (core, work) = (core.clone(), MS(100));
                    sim.spawn(async move { core.run(vm, work).await });
                }
                sim.sleep(MS(40)).await;
                // The second one has had 10 ms of its slice, and the first waits.
                let ahead = core.ahead(0);
                assert_eq!((ahead.wait, ahead.between, ahead.jobs), (MS(20 + 30), MS(60), 0));
                core.run(0, MS(1)).await;
                assert_eq!(sim.now().ns() / 1_000_000, 40 + 50 + 1);
                // A job longer than a slice waits for the others twice.
                core.run(0, MS(31)).await;
                assert_eq!(sim.now().ns() / 1_000_000, 91 + 30 + 30 + 30 + 30 + 10 + 1);
            })
            .unwrap();
    }

    #[test]
    fn credit_gives_the_core_to_one_that_seldom_wants_it() {
        let mut executor = Executor::new();
        let sim = executor.sim();
        executor
            .block_on(async {
                let core = Core::new(&sim, 3, MS(30), SchedulerKind::Credit);
                for vm in [1, 2] {
                    let core = core.clone();
                    sim.spawn(async move { core.run(vm, Span::from_s(5)).await });
                }
                for _ in 0..20 {
                    sim.sleep(MS(45)).await;
                    let (begun, ahead) = (sim.now(), core.ahead(0));
                    assert!(ahead.wait.is_zero(), "{ahead:?}");
                    core.run(0, MS(1)).await;
                    assert_eq!(sim.now() - begun, MS(1));
                }
            })
            .unwrap();
    }
}
