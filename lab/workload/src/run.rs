//! Jobs at work against drives: one budget of requests for all, one outcome.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_drive::{Completion, Drive};
use nandscape_sim::signal::Signal;
use nandscape_sim::{Seed, Sim, Time};

use crate::arrivals::Arrivals;
use crate::job::Job;
use crate::record::{Direction, Outcome};
use crate::requests::Request;
use crate::spec::{JobSpec, Limit, Workload};

/// What is told of a run while it goes on.
pub trait Hooks {
    /// The measured phase begins.
    fn measuring(&self) {}

    /// So many of the workload's requests have been issued, or so much of its time has passed: a share from 0 to 1.
    fn progress(&self, _share: f64) {}

    /// A measured request has completed.
    fn served(&self, _request: &Served<'_>) {}
}

/// A measured request that has completed.
pub struct Served<'a> {
    /// What it did.
    pub direction: Direction,
    /// How much it moved or deallocated.
    pub bytes: u64,
    /// When it was submitted or arrived.
    pub submitted: Time,
    /// When it completed.
    pub completed: Time,
    /// How.
    pub completion: &'a Completion,
}

impl Hooks for () {}

/// A workload at work.
pub struct Runner {
    pub(crate) sim: Sim,
    limit: Limit,
    warmup: u64,
    issued: Cell<u64>,
    outstanding: Cell<u64>,
    /// Jobs, or rather their slots, that may still issue requests.
    active: Cell<u32>,
    /// When the measured phase began.
    measured_from: Cell<Option<Time>>,
    outcome: RefCell<Outcome>,
    idle: Signal,
    hooks: Box<dyn Hooks>,
}

/// How often progress is told, in requests.
const PROGRESS_EVERY: u64 = 1 << 14;

impl Runner {
    /// Prepares to run `workload`.
    pub fn new(sim: &Sim, workload: &Workload, hooks: Box<dyn Hooks>) -> Rc<Runner> {
        Rc::new(Runner {
            sim: sim.clone(),
            limit: workload.limit,
            warmup: workload.warmup,
            issued: Cell::new(0),
            outstanding: Cell::new(0),
            active: Cell::new(0),
            measured_from: Cell::new(None),
            outcome: RefCell::default(),
            idle: Signal::new(sim),
            hooks,
        })
    }

    /// Runs all jobs to the end. `connect(job, clone)` gives each its drive.
    pub async fn run(
        self: &Rc<Runner>,
        workload: &Workload,
        seed: Seed,
        mut connect: impl FnMut(&JobSpec, u32) -> Rc<dyn Drive>,
    ) -> Outcome {
        for (spec, number) in workload.jobs.iter().zip(0..) {
            let seed = seed.child("job").nth(number);
            let job =
                |clone| Job::new(self, spec, clone, connect(spec, clone), seed.child("requests").nth(clone.into()));
            let jobs: Vec<Rc<Job>> = (0..spec.numjobs).map(job).collect();
            match spec.rate {
                Some(rate) => {
                    let arrivals = Arrivals::new(rate, spec.burst, self.sim.now(), seed.child("arrivals").rng());
                    self.start_open(jobs, arrivals);
                }
                None => {
                    self.active.set(self.active.get() + spec.numjobs * spec.iodepth);
                    jobs.iter().for_each(|job| job.start_closed());
                }
            }
        }
        while self.active.get() > 0 || self.outstanding.get() > 0 {
            self.idle.changed().await;
        }
        self.outcome.take()
    }

    /// Requests arrive at their times, whatever is outstanding, and go to the jobs in turn.
    fn start_open(self: &Rc<Runner>, jobs: Vec<Rc<Job>>, mut arrivals: Arrivals) {
        self.active.set(self.active.get() + 1);
        let runner = self.clone();
        self.sim.spawn(async move {
            for job in jobs.iter().cycle() {
                runner.sim.sleep_until(arrivals.next()).await;
                let Some(measured) = runner.admit() else { break };
                job.issue(measured);
            }
            runner.slot_ended();
        });
    }

    /// Takes a request from the budget: whether it is measured, or `None` when there is none left.
    pub(crate) fn admit(&self) -> Option<bool> {
        let (now, issued) = (self.sim.now(), self.issued.get());
        let measured = issued >= self.warmup;
        let left = match (self.limit, self.measured_from.get()) {
            (Limit::Requests(count), _) => issued < self.warmup + count,
            (Limit::Runtime(span), Some(from)) => now < from + span,
            (Limit::Runtime(_), None) => true,
        };
        if !left {
            return None;
        }
        if measured && self.measured_from.get().is_none() {
            self.measured_from.set(Some(now));
            self.outcome.borrow_mut().started = now;
            self.hooks.measuring();
        }
        self.issued.set(issued + 1);
        self.outstanding.set(self.outstanding.get() + 1);
        if issued.is_multiple_of(PROGRESS_EVERY) {
            self.hooks.progress(self.share(now));
        }
        Some(measured)
    }

    fn share(&self, now: Time) -> f64 {
        match (self.limit, self.measured_from.get()) {
            (Limit::Requests(count), _) => self.issued.get() as f64 / (self.warmup + count) as f64,
            (Limit::Runtime(span), Some(from)) => now.since(from).ns() as f64 / span.ns().max(1) as f64,
            (Limit::Runtime(_), None) => 0.0,
        }
    }

    /// A slot of a job found nothing left to issue.
    pub(crate) fn slot_ended(&self) {
        self.active.set(self.active.get() - 1);
        self.idle.notify();
    }

    /// A request has completed.
    pub(crate) fn completed(&self, request: &Request, submitted: Time, measured: bool, done: &Completion) {
        if measured {
            let now = self.sim.now();
            let Request { direction, bytes, .. } = *request;
            self.outcome.borrow_mut().record(direction, bytes, submitted, now, done);
            self.hooks.served(&Served { direction, bytes, submitted, completed: now, completion: done });
        }
        self.outstanding.set(self.outstanding.get() - 1);
        if self.outstanding.get() == 0 {
            self.idle.notify();
        }
    }
}
