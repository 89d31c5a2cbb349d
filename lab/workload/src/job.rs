//! One job and its drive: requests are split into commands, and in a closed loop each completion issues the next
//! request.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use nandscape_drive::io::Sink;
use nandscape_drive::{Completion, Drive, DriveInfo, Io, Token};
use nandscape_sim::slots::{Key, Slots};
use nandscape_sim::{Seed, Span, Time};
use nandscape_wire_nvme::SubmissionEntry;

use crate::arrivals::next_on;
use crate::flight::{Commands, InFlight};
use crate::flushes::{FLUSH, Syncs};
use crate::placement::Placer;
use crate::preflush::{Follows, Preflushes};
use crate::record::Direction;
use crate::request::{Request, SourceError, TimedRequest};
use crate::requests::Feed;
use crate::run::Runner;
use crate::spec::JobSpec;
use crate::think::{Counts, Thinking};
use crate::words::Burst;

pub(crate) struct Job {
    runner: Rc<Runner>,
    drive: Rc<dyn Drive>,
    info: DriveInfo,
    feed: RefCell<Feed>,
    in_flight: RefCell<Slots<InFlight>>,
    /// Outstanding requests of a closed loop.
    depth: Option<u32>,
    /// A closed loop of drawn requests without own figures, bursts, placement, flushes and pauses: most jobs. They test this alone.
    is_plain: bool,
    /// Its place among jobs with their own figures.
    flow: Option<usize>,
    burst: Option<Burst>,
    placer: Option<Placer>,
    syncs: Syncs,
    preflushes: Preflushes,
    thinking: Option<Thinking>,
    /// The group of the job: its slots end with the group.
    group: usize,
    begun: Time,
    /// Slots with a request to issue, and whether a call is already issuing: a drive may complete a command during its
    /// submission.
    owed: Cell<u32>,
    issuing: Cell<bool>,
    me: Weak<Job>,
}

impl Job {
    /// The `clone`-th job of its kind.
    ///
    /// # Errors
    /// When its source of requests cannot be opened.
    pub(crate) fn new(
        runner: &Rc<Runner>,
        spec: &JobSpec,
        clone: u32,
        flow: Option<usize>,
        (drive, placer): (Rc<dyn Drive>, Option<Placer>),
        seed: Seed,
    ) -> Result<Rc<Job>, SourceError> {
        let info = drive.info();
        let feed = Feed::open(spec, &info, clone, seed)?;
        let has_extras = flow.is_some() || spec.burst.is_some() || placer.is_some() || spec.flushes.is_some();
        let is_drawn = matches!(feed, Feed::Drawn(_));
        Ok(Rc::new_cyclic(|me| Job {
            is_plain: is_drawn && !spec.is_open() && !has_extras && spec.think.is_none(),
            runner: runner.clone(),
            feed: RefCell::new(feed),
            drive,
            in_flight: RefCell::default(),
            depth: (!spec.is_open()).then_some(spec.iodepth),
            flow,
            burst: spec.burst,
            placer,
            syncs: Syncs::new(spec, &info),
            preflushes: Preflushes::default(),
            thinking: spec.think.map(Thinking::new),
            group: runner.group(),
            begun: runner.sim.now(),
            info,
            owed: Cell::new(0),
            issuing: Cell::new(false),
            me: me.clone(),
        }))
    }

    /// Takes the next request; `None` after the last, and when the source fails.
    #[inline(always)]
    pub(crate) fn next(&self) -> Option<TimedRequest> {
        match &mut *self.feed.borrow_mut() {
            // Drawn requests never end, and have no times.
            Feed::Drawn(requests) => Some(TimedRequest::new(Span::ZERO, requests.next())),
            Feed::Split(requests) => Some(TimedRequest::new(Span::ZERO, requests.next())),
            Feed::Source(source) => source.next().unwrap_or_else(|error| {
                self.runner.broke_off(&*error);
                None
            }),
        }
    }

    /// Notes of the source of its requests.
    pub(crate) fn notes(&self) -> Vec<String> {
        self.feed.borrow().notes()
    }

    /// Issues the first requests of a closed job.
    pub(crate) fn start_closed(&self) {
        self.owe(self.depth.unwrap_or(0));
    }

    /// Issues a request, now or, if it follows a flush, when that flush has ended.
    #[inline(always)]
    pub(crate) fn issue_in_order(&self, next: TimedRequest, measured: bool) {
        if next.after_flush {
            match self.preflushes.follows(next.request, measured) {
                Follows::Now => {}
                Follows::Later => return,
                Follows::Fails(done) => return self.fail_unsent(next.request, measured, &done),
            }
        }
        let is_followed = next.request.direction == Direction::Flush;
        self.issue_as(next.request, measured, |tag| {
            if is_followed {
                self.preflushes.sent(tag);
            }
        });
    }

    /// Issues the request that waited for this flush.
    fn issue_held(&self, flush: u64, done: &Completion) {
        match self.preflushes.ended(flush, done) {
            None => {}
            Some((request, measured)) if done.status.is_success() => self.issue(request, measured),
            Some((request, measured)) => self.fail_unsent(request, measured, done),
        }
    }

    /// A request fails as the flush before it, and is not sent.
    fn fail_unsent(&self, request: Request, measured: bool, done: &Completion) {
        self.runner.completed(&request, self.runner.sim.now(), measured, done);
        if self.depth.is_some() {
            self.owe(1);
        }
    }

    /// Issues a request, now.
    #[inline(always)]
    pub(crate) fn issue(&self, request: Request, measured: bool) {
        self.issue_as(request, measured, |_| ());
    }

    /// The same; `enters` gets its tag before the drive has a command of it, which may complete at once.
    #[inline(always)]
    fn issue_as(&self, request: Request, measured: bool, enters: impl FnOnce(u64)) {
        let now = self.runner.sim.now();
        let request = match self.is_plain {
            true => request,
            false => Request { direction: self.syncs.issued(request.direction, now), ..request },
        };
        let commands = Commands::of(&request, &self.info);
        let entry = InFlight::new(request, now, measured, &commands);
        let tag = self.in_flight.borrow_mut().insert(entry).to_bits();
        enters(tag);
        let place = if self.is_plain { None } else { self.issues(&request) };
        for (mut command, mem) in commands {
            if let Some(place) = &place {
                place(&mut command);
            }
            let sink: Rc<dyn Sink> = self.me.upgrade().expect("a job at work is alive");
            self.drive.submit(Io { command, mem, token: Token::new(sink, tag) });
        }
    }

    /// Whether the group of the job has ended, and its slots with it.
    #[inline(always)]
    pub(crate) fn has_ended(&self) -> bool {
        self.group != self.runner.group()
    }

    /// Issues the flush that follows a write of an open loop, if it is due.
    pub(crate) fn flush_if_due(&self) {
        if self.syncs.take_due()
            && let Some(measured) = self.runner.admit_flush()
        {
            self.issue(FLUSH, measured);
        }
    }

    /// Frees this number of slots of a closed loop.
    #[inline(always)]
    fn owe(&self, slots: u32) {
        if self.issuing.replace(true) {
            return self.owed.set(self.owed.get() + slots);
        }
        let mut left = slots;
        while left > 0 {
            self.issue_next();
            left = left - 1 + self.owed.take();
        }
        self.issuing.set(false);
    }

    /// Issues the next request of a closed loop, now or in the next on period.
    #[inline(always)]
    fn issue_next(&self) {
        if self.has_ended() {
            return;
        }
        if !self.is_plain && self.waits_or_flushes() {
            return;
        }
        let next = self.next().and_then(|next| Some((next, self.runner.admit()?)));
        match next {
            Some((next, measured)) if self.is_plain => self.issue(next.request, measured),
            Some((next, measured)) => self.issue_in_order(next, measured),
            None => self.runner.slot_ended(),
        }
    }

    /// Whether a slot waits for the end of a pause or for the next on period, or a flush is issued in place of its next request.
    #[inline(never)]
    fn waits_or_flushes(&self) -> bool {
        if let Some(thinking) = self.thinking.as_ref().filter(|thinking| thinking.is_due()) {
            self.park(thinking);
            return true;
        }
        let now = self.runner.sim.now();
        let on = next_on(now, self.begun, self.burst);
        if on > now {
            let job = self.me.upgrade().expect("a job at work is alive");
            self.runner.sim.spawn(async move {
                job.runner.sim.sleep_until(on).await;
                job.owe(1);
            });
            return true;
        }
        let is_due = self.syncs.take_due();
        if is_due {
            match self.runner.admit_flush() {
                Some(measured) => self.issue(FLUSH, measured),
                None => self.runner.slot_ended(),
            }
        }
        is_due
    }

    /// A request is issued: it counts for the pauses. Returns what places it.
    #[inline(never)]
    fn issues(&self, request: &Request) -> Option<impl Fn(&mut SubmissionEntry)> {
        if let Some(thinking) = self.thinking.as_ref().filter(|_| request.direction != Direction::Flush) {
            thinking.count(Counts::Issued);
        }
        self.placer.as_ref().filter(|_| request.direction.is_write()).map(Placer::next)
    }

    /// A request has ended: its job's own figures, what waited for it, and what it counts for.
    #[inline(never)]
    fn ended(&self, tag: u64, (request, submitted, measured): (&Request, Time, bool), done: &Completion) {
        if let Some(flow) = self.flow.filter(|_| measured && done.status.is_success()) {
            self.runner.flowed(flow, request, submitted, done);
        }
        if request.direction == Direction::Flush {
            self.issue_held(tag, done);
        }
        if let Some(begun) = self.syncs.ended().filter(|_| done.status.is_success()) {
            self.runner.operation("commit", begun);
        }
        if let Some(thinking) = self.thinking.as_ref().filter(|_| request.direction != Direction::Flush) {
            thinking.count(Counts::Completed);
        }
    }

    /// A slot waits for the end of the pause, which begins when no request is in flight. The pause ends with the run.
    fn park(&self, thinking: &Thinking) {
        if !thinking.park(self.in_flight.borrow().len()) {
            return;
        }
        let job = self.me.upgrade().expect("a job at work is alive");
        let until = (self.runner.sim.now() + thinking.think.time).min(self.runner.ends());
        self.runner.sim.spawn(async move {
            job.runner.sim.sleep_until(until).await;
            let slots = job.thinking.as_ref().map_or(0, Thinking::resume);
            job.owe(slots);
        });
    }
}

impl Sink for Job {
    fn complete(&self, tag: u64, completion: Completion) {
        let key = Key::from_bits(tag);
        let mut in_flight = self.in_flight.borrow_mut();
        let ended = in_flight.remove_if(key, |entry| {
            let done = entry.part_done(completion)?;
            Some((entry.request, entry.submitted, entry.measured, done))
        });
        drop(in_flight);
        let Some((request, submitted, measured, done)) = ended else { return };
        self.runner.completed(&request, submitted, measured, &done);
        if !self.is_plain {
            self.ended(tag, (&request, submitted, measured), &done);
        }
        if self.depth.is_some() {
            self.owe(1);
        }
    }

    fn is_stopped(&self) -> bool {
        self.runner.sim.is_stopped()
    }
}
