//! Jobs at work against drives.
//!
//! A closed job keeps `iodepth` requests outstanding. An open one issues each request at its arrival, whatever is
//! outstanding. All draw from one budget of requests, or stop at one time; the first `warmup` requests are not recorded.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_drive::{Completion, Drive, DriveInfo, HostMem, Issuer};
use nandscape_sim::signal::Signal;
use nandscape_sim::workers::Workers;
use nandscape_sim::{Seed, Sim, Time};
use nandscape_wire_nvme::io::DsmRange;
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};
use zerocopy::IntoBytes;

use crate::arrivals::{Arrivals, next_on};
use crate::record::{Direction, Outcome};
use crate::requests::{Request, Requests};
use crate::spec::{JobSpec, Limit, Workload};

/// What is told of a run while it goes on.
pub trait Hooks {
    /// The measured phase begins.
    fn measuring(&self) {}

    /// So many of the workload's requests have been issued, or so much of its time has passed: a share from 0 to 1.
    fn progress(&self, _share: f64) {}
}

impl Hooks for () {}

/// A workload at work.
pub struct Runner {
    sim: Sim,
    issuer: Issuer,
    limit: Limit,
    warmup: u64,
    issued: Cell<u64>,
    outstanding: Cell<u64>,
    /// Jobs that may still issue requests.
    active: Cell<u32>,
    /// When the measured phase began.
    measured_from: Cell<Option<Time>>,
    outcome: RefCell<Outcome>,
    idle: Signal,
    hooks: Box<dyn Hooks>,
}

/// A request of an open job.
struct Arrival {
    job: Rc<Job>,
    request: Request,
    measured: bool,
}

/// One job and its drive.
struct Job {
    runner: Rc<Runner>,
    drive: Rc<dyn Drive>,
    info: DriveInfo,
    requests: RefCell<Requests>,
}

/// How often progress is told, in requests.
const PROGRESS_EVERY: u64 = 1 << 14;

impl Runner {
    /// Prepares to run `workload`.
    pub fn new(sim: &Sim, workload: &Workload, hooks: Box<dyn Hooks>) -> Rc<Runner> {
        Rc::new(Runner {
            sim: sim.clone(),
            issuer: Issuer::new(sim),
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
            let jobs: Vec<Rc<Job>> = (0..spec.numjobs)
                .map(|clone| self.job(spec, clone, connect(spec, clone), seed.child("requests").nth(u64::from(clone))))
                .collect();
            match spec.rate {
                Some(rate) => {
                    let arrivals = Arrivals::new(rate, spec.burst, self.sim.now(), seed.child("arrivals").rng());
                    self.start_open(jobs, arrivals);
                }
                None => jobs.iter().for_each(|job| self.start_closed(job, spec)),
            }
        }
        while self.active.get() > 0 || self.outstanding.get() > 0 {
            self.idle.changed().await;
        }
        self.outcome.take()
    }

    fn job(self: &Rc<Runner>, spec: &JobSpec, clone: u32, drive: Rc<dyn Drive>, seed: Seed) -> Rc<Job> {
        let info = drive.info();
        let requests = RefCell::new(Requests::new(spec, info.bytes(), clone, seed));
        Rc::new(Job { runner: self.clone(), drive, info, requests })
    }

    fn start_closed(self: &Rc<Runner>, job: &Rc<Job>, spec: &JobSpec) {
        let (start, burst) = (self.sim.now(), spec.burst);
        for _ in 0..spec.iodepth {
            let job = job.clone();
            self.active.set(self.active.get() + 1);
            self.sim.spawn(async move {
                let runner = &job.runner;
                loop {
                    if burst.is_some() {
                        runner.sim.sleep_until(next_on(runner.sim.now(), start, burst)).await;
                    }
                    let Some(measured) = runner.admit(runner.sim.now()) else { break };
                    let request = job.requests.borrow_mut().next();
                    job.execute(request, measured).await;
                }
                runner.job_ended();
            });
        }
    }

    /// Arrivals go to the jobs in turn.
    fn start_open(self: &Rc<Runner>, jobs: Vec<Rc<Job>>, mut arrivals: Arrivals) {
        self.active.set(self.active.get() + 1);
        let runner = self.clone();
        let workers = Workers::new(&self.sim, |arrival: Arrival| async move {
            arrival.job.execute(arrival.request, arrival.measured).await;
        });
        self.sim.spawn(async move {
            for job in jobs.iter().cycle() {
                runner.sim.sleep_until(arrivals.next()).await;
                let Some(measured) = runner.admit(runner.sim.now()) else { break };
                let request = job.requests.borrow_mut().next();
                workers.start(Arrival { job: job.clone(), request, measured });
            }
            runner.job_ended();
            // The pool must outlive its workers.
            std::future::pending::<()>().await;
            drop(workers);
        });
    }

    /// Takes a request from the budget: whether it is measured, or `None` when there is none left.
    fn admit(&self, now: Time) -> Option<bool> {
        let issued = self.issued.get();
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

    fn job_ended(&self) {
        self.active.set(self.active.get() - 1);
        self.idle.notify();
    }

    fn completed(&self, request: Request, submitted: Time, measured: bool, done: &Completion) {
        if measured {
            let now = self.sim.now();
            self.outcome.borrow_mut().record(request.direction, request.bytes, submitted, now, done);
        }
        self.outstanding.set(self.outstanding.get() - 1);
        if self.outstanding.get() == 0 {
            self.idle.notify();
        }
    }
}

impl Job {
    async fn execute(&self, request: Request, measured: bool) {
        let runner = &self.runner;
        let submitted = runner.sim.now();
        let lba_bytes = u64::from(self.info.lba_bytes);
        let (first, end) = (request.offset / lba_bytes, (request.offset + request.bytes).div_ceil(lba_bytes));
        let done = match end - first {
            blocks if blocks <= u64::from(self.info.max_blocks) => {
                let (command, mem) = self.command(request.direction, first, blocks as u32);
                runner.issuer.execute(&*self.drive, command, mem).await
            }
            _ => self.execute_split(request.direction, first..end).await,
        };
        runner.completed(request, submitted, measured, &done);
    }

    /// A request larger than the drive takes at once: several commands at the same time. It ends with the last of them,
    /// and fails with the first that fails.
    async fn execute_split(&self, direction: Direction, blocks: std::ops::Range<u64>) -> Completion {
        let step = u64::from(self.info.max_blocks);
        let mut parts = Vec::new();
        for first in blocks.clone().step_by(step as usize) {
            let (command, mem) = self.command(direction, first, step.min(blocks.end - first) as u32);
            parts.push(self.runner.issuer.execute(&*self.drive, command, mem));
        }
        let mut last: Option<Completion> = None;
        for part in parts {
            let done = part.await;
            let later = last.as_ref().is_none_or(|last| done.breakdown.total() > last.breakdown.total());
            let failed = last.as_ref().is_some_and(|last| !last.status.is_success());
            if !failed && (later || !done.status.is_success()) {
                last = Some(done);
            }
        }
        last.expect("a request has at least one block")
    }

    fn command(&self, direction: Direction, first: u64, blocks: u32) -> (SubmissionEntry, HostMem) {
        let nsid = self.info.nsid;
        let mem = || match self.info.keeps_data {
            true => HostMem::zeroed((u64::from(blocks) * u64::from(self.info.lba_bytes)) as usize),
            false => HostMem::none(),
        };
        match direction {
            Direction::Read => (SubmissionEntry::blocks(IoOpcode::READ, nsid, first, blocks), mem()),
            Direction::Write => (SubmissionEntry::blocks(IoOpcode::WRITE, nsid, first, blocks), mem()),
            Direction::Trim => {
                let range = DsmRange { slba: first.into(), blocks: blocks.into(), ..DsmRange::default() };
                (SubmissionEntry::deallocate(nsid, 1), HostMem::from_bytes(range.as_bytes()))
            }
        }
    }
}
