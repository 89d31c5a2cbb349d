//! The run of jobs on drives: one budget of requests and one outcome for all.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

use nandscape_drive::{Completion, Drive, Issuer};
use nandscape_sim::signal::Signal;
use nandscape_sim::{Seed, Sim, Span, Time};
use nandscape_wire_nvme::Status;

use crate::arrivals::Arrivals;
use crate::attributes::attributed;
use crate::client::{Client, Meter, Over};
use crate::flight::Commands;
use crate::flushes::{FLUSH, Syncs};
use crate::job::Job;
use crate::placement::{Placer, Placing};
use crate::record::{Direction, Due, Flow, Outcome};
use crate::request::Request;
use crate::spec::{JobSpec, Limit, Workload};
use crate::zoned;

/// Events of a run in progress.
pub trait Hooks {
    /// The measured phase begins.
    fn measuring(&self) {}

    /// Progress: the share of the workload's requests issued or of its time passed, from 0 to 1.
    fn progress(&self, _share: f64) {}

    /// Whether the run is to end now, because the user wants it to. It is asked every some requests. No further request is
    /// issued then, and outstanding ones complete.
    fn is_stopped(&self) -> bool {
        false
    }

    /// Whether [`Hooks::served`] is to be called. It is asked once.
    fn watches_requests(&self) -> bool {
        true
    }

    /// A measured request has completed.
    fn served(&self, _request: &Served<'_>) {}
}

/// A measured request that has completed.
pub struct Served<'a> {
    /// What it did.
    pub direction: Direction,
    /// Bytes moved or deallocated.
    pub bytes: u64,
    /// Where it begins, in bytes.
    pub offset: u64,
    /// The time of submission or arrival.
    pub submitted: Time,
    /// The time of completion.
    pub completed: Time,
    /// How.
    pub completion: &'a Completion,
}

impl Hooks for () {
    fn watches_requests(&self) -> bool {
        false
    }
}

/// A running workload.
pub struct Runner {
    pub(crate) sim: Sim,
    limit: Cell<Limit>,
    warmup: u64,
    ramp: Span,
    /// The group of jobs that runs, of how many, the requests issued before it, and when it began.
    group: Cell<usize>,
    groups: usize,
    before: Cell<u64>,
    begun: Cell<Time>,
    /// The number of requests after which none is issued, known when the measured phase begins.
    last: Cell<u64>,
    /// The time after which no request is issued, known when the measured phase begins.
    until: Cell<Time>,
    issued: Cell<u64>,
    outstanding: Cell<u64>,
    /// The number of job slots and threads of loads that may still issue requests.
    active: Cell<u32>,
    /// No further request of this group may be issued.
    over: Cell<bool>,
    /// The run ends with this group.
    is_last: Cell<bool>,
    /// Whether the measured phase has begun, of the first group.
    is_measuring: Cell<bool>,
    /// The start of the measured phase of this group.
    measured_from: Cell<Option<Time>>,
    /// The time of the last completion, or of the first outstanding request's issue.
    moved: Cell<Time>,
    /// The time of the last progress report, and the number of earlier reports at that time.
    standstill: Cell<(Time, u32)>,
    outcome: RefCell<Outcome>,
    idle: Signal,
    hooks: Box<dyn Hooks>,
    watched: bool,
}

/// A job that cannot run.
struct NotStarted;

/// The interval of progress reports, in requests.
const PROGRESS_EVERY: u64 = 1 << 14;
/// Requests after which the user is asked whether the run is to end: few, as they may be large.
const LOOK_EVERY: u64 = 64;
/// The most reports without time passing: a million requests at one instant.
const STANDSTILL: u32 = 64;

impl Runner {
    /// Prepares to run `workload`.
    pub fn new(sim: &Sim, workload: &Workload, hooks: Box<dyn Hooks>) -> Rc<Runner> {
        Rc::new(Runner {
            sim: sim.clone(),
            limit: Cell::new(workload.limit),
            warmup: workload.warmup,
            ramp: workload.ramp,
            group: Cell::new(0),
            groups: workload.groups().len(),
            before: Cell::new(0),
            begun: Cell::new(sim.now()),
            last: Cell::new(u64::MAX),
            until: Cell::new(Time::MAX),
            issued: Cell::new(0),
            outstanding: Cell::new(0),
            active: Cell::new(0),
            over: Cell::new(false),
            is_last: Cell::new(false),
            is_measuring: Cell::new(false),
            measured_from: Cell::new(None),
            moved: Cell::new(Time::ZERO),
            standstill: Cell::new((Time::ZERO, 0)),
            outcome: RefCell::default(),
            idle: Signal::new(sim),
            watched: hooks.watches_requests(),
            hooks,
        })
    }

    /// Runs all jobs and loads to the end. `connect(name, clone)` gives each its drive, jobs first. Groups of jobs run one after the
    /// other, loads with the first.
    pub async fn run(
        self: &Rc<Runner>,
        workload: &Workload,
        seed: Seed,
        mut connect: impl FnMut(&str, u32) -> Rc<dyn Drive>,
    ) -> Outcome {
        let has_deadline = workload.jobs.iter().any(|job| job.deadline.is_some());
        let has_flows = (workload.jobs.len() > 1 || has_deadline) && workload.loads.is_empty();
        if has_flows {
            let flow = |spec: &JobSpec| {
                let (due, all) = (spec.deadline.map(Due::of), spec.attributes().unwrap_or_default());
                Flow { name: spec.name.clone(), class: all.class(), tenant: all.tenant(), due, ..Flow::default() }
            };
            self.outcome.borrow_mut().flows = workload.jobs.iter().map(flow).collect();
        }
        let mut connect_all = |spec: &JobSpec| {
            (0..spec.numjobs).map(|clone| spec.attributed(clone, connect(&spec.name, clone))).collect()
        };
        let mut drives: Vec<Vec<Rc<dyn Drive>>> = workload.jobs.iter().map(&mut connect_all).collect();
        let of_loads = workload.loads.iter().map(|load| attributed(connect(&load.name, 0), load.assigned, 0));
        let of_loads: Vec<Rc<dyn Drive>> = of_loads.collect();
        let (mut all, mut tables) = (Vec::new(), zoned::Tables::new());
        for (group, number) in workload.groups().into_iter().zip(0..) {
            self.begin_group(number, workload.limit_of(number));
            let mut flushed = Vec::new();
            for job in group.clone() {
                let seed = seed.child("job").nth(workload.first_job + job as u64);
                let flow = has_flows.then_some(job);
                let drives = std::mem::take(&mut drives[job]);
                let ends = workload.jobs[job].flushes.end;
                flushed.extend(drives.iter().filter(|_| ends).map(|drive| (drive.clone(), flow)));
                match self.start_job(&workload.jobs[job], (flow, seed), drives, &mut tables).await {
                    Ok(jobs) => all.extend(jobs),
                    Err(NotStarted) => break,
                }
            }
            let loads = workload.loads.iter().filter(|_| number == 0);
            for ((load, drive), number) in loads.zip(&of_loads).zip(0..) {
                let client = Client::new(&self.sim, self.clone(), drive.clone());
                let notes = load.start(self, &client, seed.child("load").nth(number));
                self.outcome.borrow_mut().notes.extend(notes);
            }
            while self.outstanding.get() > 0 || (self.active.get() > 0 && !self.over.get()) {
                self.idle.changed().await;
            }
            if !self.is_last.get() {
                self.flush(flushed).await;
            }
            self.end_group(group);
            if self.is_last.get() || self.outcome.borrow().broken.is_some() {
                break;
            }
        }
        let mut outcome = self.outcome.take();
        for note in all.iter().flat_map(|job| job.notes()) {
            if !outcome.notes.contains(&note) {
                outcome.notes.push(note);
            }
        }
        outcome
    }

    /// Starts a job. Returns its clones, as far as they have notes.
    ///
    /// # Errors
    /// When it cannot run: the run has ended, or continues without it.
    async fn start_job(
        self: &Rc<Runner>,
        spec: &JobSpec,
        (flow, seed): (Option<usize>, Seed),
        drives: Vec<Rc<dyn Drive>>,
        tables: &mut zoned::Tables,
    ) -> Result<Vec<Rc<Job>>, NotStarted> {
        let gave_up = |problem: String| {
            self.give_up(problem);
            NotStarted
        };
        let note = drives.first().and_then(|drive| Syncs::note(spec, &drive.info()));
        self.outcome.borrow_mut().notes.extend(note);
        if spec.zoned.is_some() {
            zoned::start(self, spec, (flow, seed), drives, tables).await.map_err(gave_up)?;
            return Ok(Vec::new());
        }
        let mut drives: Vec<(Rc<dyn Drive>, Option<Placer>)> = drives.into_iter().map(|drive| (drive, None)).collect();
        if let Some(placing) = &spec.placing {
            let placed = self.place(placing, &mut drives, seed.child("placement")).await;
            placed.map_err(|problem| gave_up(format!("job \"{}\": {problem}", spec.name)))?;
        }
        let job = |(clone, drive): (u32, _)| {
            Job::new(self, spec, clone, flow, drive, seed.child("requests").nth(clone.into()))
        };
        let jobs = (0..).zip(drives).map(job).collect::<Result<Vec<Rc<Job>>, _>>();
        let jobs = jobs.map_err(|error| {
            self.broke_off(&*error);
            NotStarted
        })?;
        match spec.rate {
            _ if spec.is_timed() => jobs.iter().cloned().for_each(|job| self.start_timed(job)),
            Some(rate) => {
                let arrivals = Arrivals::new(rate, spec.burst, self.sim.now(), seed.child("arrivals").rng());
                self.start_open(jobs.clone(), arrivals);
            }
            None => {
                self.active.set(self.active.get() + spec.numjobs * spec.iodepth);
                jobs.iter().for_each(|job| job.start_closed());
            }
        }
        Ok(jobs)
    }

    /// Flushes drives at the end of their jobs (fio's `end_fsync`), all at once: each with the job that has the figures.
    async fn flush(self: &Rc<Runner>, drives: Vec<(Rc<dyn Drive>, Option<usize>)>) {
        let measured = self.measured_from.get().is_some();
        for (drive, flow) in drives.into_iter().filter(|(drive, _)| drive.info().volatile_cache) {
            self.admit_preparation();
            let runner = self.clone();
            self.sim.spawn(async move {
                let (issuer, submitted) = (Issuer::new(&runner.sim), runner.sim.now());
                for (command, mem) in Commands::of(&FLUSH, &drive.info()) {
                    let done = issuer.execute(&*drive, command, mem).await;
                    runner.completed(&FLUSH, submitted, measured, &done);
                    if let Some(flow) = flow.filter(|_| measured && done.status.is_success()) {
                        runner.flowed(flow, &FLUSH, submitted, &done);
                    }
                }
            });
        }
        while self.outstanding.get() > 0 {
            self.idle.changed().await;
        }
    }

    /// A group of jobs begins. Slots of the group before it that still wait for their time have ended.
    fn begin_group(&self, group: usize, limit: Limit) {
        self.group.set(group);
        self.limit.set(limit);
        self.before.set(self.issued.get());
        self.begun.set(self.sim.now());
        self.last.set(u64::MAX);
        self.until.set(Time::MAX);
        self.active.set(0);
        self.over.set(self.is_last.get());
        self.measured_from.set(None);
    }

    /// A group of jobs has ended: the time that it took is that of its jobs.
    fn end_group(&self, jobs: Range<usize>) {
        let mut outcome = self.outcome.borrow_mut();
        let took = outcome.ended.since(self.measured_from.get().unwrap_or(outcome.ended));
        if self.groups > 1 {
            outcome.flows.iter_mut().take(jobs.end).skip(jobs.start).for_each(|flow| flow.elapsed = Some(took));
        }
    }

    /// Gives each clone of a job what places its writes.
    async fn place(
        &self,
        placing: &Placing,
        drives: &mut [(Rc<dyn Drive>, Option<Placer>)],
        seed: Seed,
    ) -> Result<(), String> {
        for ((drive, placer), clone) in drives.iter_mut().zip(0..) {
            *placer = Some(Placer::open(placing, &self.sim, &**drive, seed.nth(clone)).await?);
        }
        Ok(())
    }

    /// Issues requests of a timed source at their own times (open loop).
    fn start_timed(self: &Rc<Runner>, job: Rc<Job>) {
        self.active.set(self.active.get() + 1);
        let (runner, start) = (self.clone(), self.sim.now());
        self.sim.spawn(async move {
            while let Some(next) = job.next() {
                runner.sim.sleep_until(start + next.at).await;
                if job.has_ended() {
                    return;
                }
                let Some(measured) = runner.admit_arrival() else { break };
                job.issue_in_order(next, measured);
            }
            runner.slot_ended();
        });
    }

    /// Issues requests at the rate's times (open loop), to the clones in turn.
    fn start_open(self: &Rc<Runner>, jobs: Vec<Rc<Job>>, mut arrivals: Arrivals) {
        self.active.set(self.active.get() + 1);
        let runner = self.clone();
        self.sim.spawn(async move {
            for job in jobs.iter().cycle() {
                let Some(next) = job.next() else { break };
                runner.sim.sleep_until(arrivals.next()).await;
                if job.has_ended() {
                    return;
                }
                let Some(measured) = runner.admit_arrival() else { break };
                job.issue_in_order(next, measured);
                job.flush_if_due();
            }
            runner.slot_ended();
        });
    }

    /// Starts a thread of a load. The load ends when all threads have ended.
    pub(crate) fn spawn_thread(self: &Rc<Runner>, thread: impl Future<Output = Result<(), Over>> + 'static) {
        self.active.set(self.active.get() + 1);
        let runner = self.clone();
        self.sim.spawn(async move {
            // The thread has finished, or no request is left.
            let (Ok(()) | Err(Over)) = thread.await;
            runner.slot_ended();
        });
    }

    /// A load cannot continue, and the run ends.
    pub(crate) fn give_up(&self, problem: String) {
        self.outcome.borrow_mut().broken.get_or_insert(problem);
        self.stop();
    }

    /// A load cannot continue, because of the drive's state: the run ends with the figures until then, and a note. If no request
    /// was measured before, the run has failed. Several tasks of one job may report this.
    pub(crate) fn end_early(&self, note: String) {
        let mut outcome = self.outcome.borrow_mut();
        if outcome.requests() == 0 && outcome.errors.is_empty() {
            outcome.broken.get_or_insert(note);
        } else if !outcome.notes.contains(&note) {
            outcome.notes.push(note);
        }
        drop(outcome);
        self.stop();
    }

    /// Ends the run if the user wants it to end.
    pub(crate) fn look_for_stop(&self) {
        if self.hooks.is_stopped() {
            self.outcome.borrow_mut().interrupted = true;
            self.stop();
        }
    }

    /// A command outside the budget has failed.
    pub(crate) fn failed(&self, status: Status) {
        *self.outcome.borrow_mut().errors.entry(status.meaning().bits()).or_default() += 1;
    }

    /// Ends the run: no further request is issued, and outstanding ones complete.
    pub fn stop(&self) {
        self.is_last.set(true);
        self.end();
    }

    /// The group of jobs that runs.
    #[inline(always)]
    pub(crate) fn group(&self) -> usize {
        self.group.get()
    }

    /// The time after which no request is issued, as far as it is known.
    pub(crate) fn ends(&self) -> Time {
        self.until.get()
    }

    fn end(&self) {
        self.over.set(true);
        self.idle.notify();
    }

    /// Takes a request from the budget: whether it is measured, or `None` when there is none left.
    #[inline(always)]
    pub(crate) fn admit(&self) -> Option<bool> {
        let (now, issued) = (self.sim.now(), self.issued.get());
        let measured = self.is_warm(now);
        let left = issued < self.last.get() && now < self.until.get();
        if issued.is_multiple_of(PROGRESS_EVERY) && self.stands_still(now) {
            self.give_up(
                "no drive time passes, so --runtime would never be reached: limit the run by requests \
                 (--io-count)"
                    .into(),
            );
            return None;
        }
        if !left || self.over.get() {
            // The run does not wait for threads that wait for other events.
            self.end();
            return None;
        }
        if measured {
            self.measure_from(now);
        }
        self.issued.set(issued + 1);
        self.began(now);
        if issued.is_multiple_of(PROGRESS_EVERY) {
            self.hooks.progress(self.share(now));
        }
        if issued.is_multiple_of(LOOK_EVERY) {
            self.look_for_stop();
        }
        Some(measured)
    }

    /// Whether requests issued now are measured.
    #[inline(always)]
    fn is_warm(&self, now: Time) -> bool {
        self.issued.get() - self.before.get() >= self.warmup && now.since(self.begun.get()) >= self.ramp
    }

    /// Admits the flush that follows a write: whether it is measured, or `None` when nothing more is to be issued. It is no part of
    /// the budget.
    pub(crate) fn admit_flush(&self) -> Option<bool> {
        let now = self.sim.now();
        if self.issued.get() >= self.last.get() || now >= self.until.get() || self.over.get() {
            self.end();
            return None;
        }
        self.began(now);
        Some(self.measured_from.get().is_some())
    }

    /// Whether a run limited by time would never end, because requests take no time.
    fn stands_still(&self, now: Time) -> bool {
        let (since, looks) = self.standstill.get();
        self.standstill.set((now, if since == now { looks + 1 } else { 0 }));
        looks >= STANDSTILL && since == now && matches!(self.limit.get(), Limit::Runtime(_))
    }

    /// As [`Runner::admit`], for an open-loop request.
    fn admit_arrival(&self) -> Option<bool> {
        let measured = self.admit()?;
        if measured {
            let mut outcome = self.outcome.borrow_mut();
            outcome.backlog.get_or_insert_default().arrived(self.sim.now(), self.outstanding.get());
        }
        Some(measured)
    }

    /// Registers a request outside the budget, which prepares the drive.
    pub(crate) fn admit_preparation(&self) {
        self.began(self.sim.now());
    }

    fn began(&self, now: Time) {
        let outstanding = self.outstanding.get();
        if outstanding == 0 {
            self.moved.set(now);
        }
        self.outstanding.set(outstanding + 1);
    }

    /// The measured phase begins, if it has not.
    fn measure_from(&self, now: Time) {
        if self.measured_from.get().is_some() {
            return;
        }
        self.measured_from.set(Some(now));
        if let Limit::Runtime(span) | Limit::Either(_, span) = self.limit.get() {
            self.until.set(now + span);
        }
        if let Limit::Requests(count) | Limit::Either(count, _) = self.limit.get() {
            self.last.set(self.issued.get().saturating_add(count));
        }
        self.moved.set(now);
        if !self.is_measuring.replace(true) {
            self.outcome.borrow_mut().started = now;
            self.hooks.measuring();
        }
    }

    /// A load begins an operation that is no request. The measured phase begins with it, if all requests of the warm-up were issued.
    pub(crate) fn begins_operation(&self) {
        if self.is_warm(self.sim.now()) && !self.over.get() {
            self.measure_from(self.sim.now());
        }
    }

    /// An operation of a load that began at `begun` has ended. It is recorded if it began in the measured phase.
    pub(crate) fn operation(&self, name: &'static str, begun: Time) {
        if self.measured_from.get().is_some_and(|from| begun >= from) {
            self.outcome.borrow_mut().operations.entry(name).or_default().record(self.sim.now() - begun);
        }
    }

    fn share(&self, now: Time) -> f64 {
        let issued = self.issued.get() - self.before.get();
        let of_requests = |count: u64| (issued as f64 / (self.warmup + count) as f64).min(1.0);
        let of_time = |span: Span| {
            let passed = self.measured_from.get().map(|from| now.since(from).ns() as f64 / span.ns().max(1) as f64);
            passed.unwrap_or(0.0)
        };
        let share = match self.limit.get() {
            Limit::Requests(count) => of_requests(count),
            Limit::Runtime(span) => of_time(span),
            Limit::Either(count, span) => of_requests(count).max(of_time(span)),
        };
        (self.group.get() as f64 + share) / self.groups as f64
    }

    /// A source of requests has failed: the run still waits for outstanding requests.
    pub(crate) fn broke_off(&self, error: &dyn std::error::Error) {
        self.outcome.borrow_mut().broken.get_or_insert_with(|| error.to_string());
    }

    /// A slot of a job has nothing left to issue.
    pub(crate) fn slot_ended(&self) {
        self.active.set(self.active.get() - 1);
        self.idle.notify();
    }

    /// A request has completed.
    #[inline(always)]
    pub(crate) fn completed(&self, request: &Request, submitted: Time, measured: bool, done: &Completion) {
        let now = self.sim.now();
        let stood_still = now - self.moved.replace(now);
        if measured {
            let Request { direction, bytes, offset } = *request;
            let mut outcome = self.outcome.borrow_mut();
            if stood_still > outcome.standstill {
                outcome.stood_still(stood_still, &done.breakdown);
            }
            outcome.record(direction, bytes, submitted, now, done);
            drop(outcome);
            if self.watched {
                self.hooks.served(&Served { direction, bytes, offset, submitted, completed: now, completion: done });
            }
        }
        self.outstanding.set(self.outstanding.get() - 1);
        if self.outstanding.get() == 0 {
            self.idle.notify();
        }
    }
}

impl Runner {
    /// A measured request of a job with its own figures has succeeded.
    pub(crate) fn flowed(&self, flow: usize, request: &Request, submitted: Time, done: &Completion) {
        let latency = self.sim.now() - submitted;
        self.outcome.borrow_mut().flows[flow].record(request.direction, request.bytes, latency, done);
    }
}

impl Meter for Runner {
    fn admit(&self) -> Option<bool> {
        Runner::admit(self)
    }

    fn admit_preparation(&self) {
        Runner::admit_preparation(self);
    }

    fn completed(&self, request: &Request, submitted: Time, measured: bool, done: &Completion) {
        Runner::completed(self, request, submitted, measured, done);
    }

    fn operation(&self, name: &'static str, begun: Time) {
        Runner::operation(self, name, begun);
    }

    fn give_up(&self, problem: String) {
        Runner::give_up(self, problem);
    }
}
