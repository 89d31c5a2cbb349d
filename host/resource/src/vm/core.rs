//! Virtual machines and their work. Each is a thread of a host's only core. Its turn lasts until its slice ends, its
//! work is done, or another one preempts it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use nandscape_host_machine::{Config, Context, Event, Machine, Mode, ThreadSpec};
use nandscape_sim::signal::Signal;
use nandscape_sim::{Sim, Span, Time};

use super::queue::{Queue, Running, Turns};
use super::scheduler::SchedulerKind;

/// Work of a machine, done in order of arrival.
#[derive(Clone)]
struct Job {
    work: Span,
    done: Rc<Done>,
}

struct Done {
    is_done: Cell<bool>,
    told: Signal,
}

struct Vm {
    thread: Context,
    jobs: RefCell<VecDeque<Job>>,
    came: Event,
    /// The thread's time when the last job ended.
    began: Cell<Span>,
}

/// See the file.
pub struct Core {
    sim: Sim,
    slice: Span,
    turns: Rc<RefCell<Turns>>,
    vms: Vec<Vm>,
}

/// The state that a machine serving requests meets now.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Ahead {
    /// Until its turn.
    pub(super) wait: Span,
    /// The longest duration of that turn.
    pub(super) turn: Span,
    /// The turns of others between two of its own.
    pub(super) between: Span,
    /// Its own jobs that wait or are under way.
    pub(super) jobs: usize,
    /// The progress of the first of them.
    pub(super) begun: Span,
}

impl Core {
    /// An idle core for a number of machines. It works from now on.
    pub fn new(sim: &Sim, machines: usize, slice: Span, scheduler: SchedulerKind) -> Rc<Core> {
        let slice = slice.max(Span::from_us(1));
        let turns = Rc::new(RefCell::new(Turns::new(sim, machines, slice, scheduler.make(machines))));
        let queue = || Box::new(Queue(turns.clone())) as Box<_>;
        let host = Machine::with_scheduler(sim, Config::free(1), queue).expect("a host of one core");
        let vm = |_| {
            let thread = host.thread(ThreadSpec::default()).expect("a thread on every processor");
            turns.borrow_mut().add(thread.key());
            Vm { thread, jobs: RefCell::default(), came: Event::new(&host), began: Cell::new(Span::ZERO) }
        };
        let vms = (0..machines).map(vm).collect();
        let core = Rc::new(Core { sim: sim.clone(), slice, turns: turns.clone(), vms });
        for vm in 0..machines {
            sim.spawn(core.clone().serve(vm));
        }
        core
    }

    /// The length of a slice.
    pub fn slice(&self) -> Span {
        self.slice
    }

    /// Has a machine do work, and waits until it is done.
    pub async fn run(&self, vm: usize, work: Span) {
        let done = Rc::new(Done { is_done: Cell::new(false), told: Signal::new(&self.sim) });
        self.vms[vm].jobs.borrow_mut().push_back(Job { work, done: done.clone() });
        self.vms[vm].came.notify();
        while !done.is_done.get() {
            done.told.changed().await;
        }
    }

    /// A machine does its jobs.
    async fn serve(self: Rc<Self>, vm: usize) {
        let Vm { thread, jobs, came, began } = &self.vms[vm];
        loop {
            let job = jobs.borrow().front().cloned();
            let Some(Job { work, done }) = job else {
                came.wait(thread).await;
                continue;
            };
            thread.work(work, Mode::User).await;
            began.set(thread.times().total());
            jobs.borrow_mut().pop_front();
            done.is_done.set(true);
            done.told.notify();
        }
    }

    /// The progress of a machine's first job.
    fn begun(&self, vm: usize) -> Span {
        let Vm { thread, jobs, began, .. } = &self.vms[vm];
        if jobs.borrow().is_empty() { Span::ZERO } else { thread.times().total() - began.get() }
    }

    /// The state that a job arriving now meets, in a constant number of steps whatever the number of machines and
    /// jobs.
    pub(super) fn ahead(&self, vm: usize) -> Ahead {
        let (now, jobs, begun) = (self.sim.now(), self.vms[vm].jobs.borrow().len(), self.begun(vm));
        let turns = self.turns.borrow();
        let others = turns.scheduler.others(vm);
        let of = |wait, turn, between| Ahead { wait, turn, between, jobs, begun };
        match turns.running {
            Some(running) if running.vm == vm => of(Span::ZERO, running.until.since(now), others),
            Some(running) => {
                let usual = turns.usual(running.vm);
                match turns.scheduler.ahead(vm, now) {
                    Some(ahead) => of(left(&running, usual, now) + ahead, self.slice, others + usual),
                    None => of(Span::ZERO, self.slice, others + usual),
                }
            }
            None => of(turns.scheduler.ahead(vm, now).unwrap_or_default(), self.slice, others),
        }
    }
}

/// The rest of a turn: to its usual end, and past that, to the end of the slice.
fn left(running: &Running, turn: Span, now: Time) -> Span {
    let usual = (running.since + turn).since(now);
    if usual.is_zero() { running.until.since(now) } else { usual }
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
