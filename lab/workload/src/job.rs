//! One job and its drive: requests are split into commands, and in a closed loop each completion issues the next
//! request.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use nandscape_drive::io::Sink;
use nandscape_drive::{Completion, Drive, DriveInfo, Io, Token};
use nandscape_sim::slots::{Key, Slots};
use nandscape_sim::{Seed, Span, Time};

use crate::arrivals::next_on;
use crate::flight::{Commands, InFlight};
use crate::placement::Placer;
use crate::request::{Request, SourceError, TimedRequest};
use crate::requests::Feed;
use crate::run::Runner;
use crate::spec::JobSpec;
use crate::words::Burst;

pub(crate) struct Job {
    runner: Rc<Runner>,
    drive: Rc<dyn Drive>,
    info: DriveInfo,
    feed: RefCell<Feed>,
    in_flight: RefCell<Slots<InFlight>>,
    /// Outstanding requests of a closed loop.
    depth: Option<u32>,
    /// Its place among several jobs.
    flow: Option<usize>,
    burst: Option<Burst>,
    placer: Option<Placer>,
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
        Ok(Rc::new_cyclic(|me| Job {
            runner: runner.clone(),
            feed: RefCell::new(feed),
            drive,
            info,
            in_flight: RefCell::default(),
            depth: (!spec.is_open()).then_some(spec.iodepth),
            flow,
            burst: spec.burst,
            placer,
            begun: runner.sim.now(),
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
            Feed::Drawn(requests) => Some(TimedRequest { at: Span::ZERO, request: requests.next() }),
            Feed::Split(requests) => Some(TimedRequest { at: Span::ZERO, request: requests.next() }),
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

    /// Issues a request, now.
    #[inline(always)]
    pub(crate) fn issue(&self, request: Request, measured: bool) {
        let commands = Commands::of(&request, &self.info);
        let entry = InFlight::new(request, self.runner.sim.now(), measured, &commands);
        let tag = self.in_flight.borrow_mut().insert(entry).to_bits();
        let place = self.placer.as_ref().filter(|_| request.direction.is_write()).map(Placer::next);
        for (mut command, mem) in commands {
            if let Some(place) = &place {
                place(&mut command);
            }
            let sink: Rc<dyn Sink> = self.me.upgrade().expect("a job at work is alive");
            self.drive.submit(Io { command, mem, token: Token::new(sink, tag) });
        }
    }

    /// Frees this number of slots of a closed loop.
    #[inline(always)]
    fn owe(&self, slots: u32) {
        self.owed.set(self.owed.get() + slots);
        if self.issuing.replace(true) {
            return;
        }
        while self.owed.get() > 0 {
            self.owed.set(self.owed.get() - 1);
            self.issue_next();
        }
        self.issuing.set(false);
    }

    /// Issues the next request of a closed loop, now or in the next on period.
    #[inline(always)]
    fn issue_next(&self) {
        let now = self.runner.sim.now();
        let on = next_on(now, self.begun, self.burst);
        if on > now {
            let job = self.me.upgrade().expect("a job at work is alive");
            self.runner.sim.spawn(async move {
                job.runner.sim.sleep_until(on).await;
                job.owe(1);
            });
            return;
        }
        let next = self.next().and_then(|next| Some((next.request, self.runner.admit()?)));
        match next {
            Some((request, measured)) => self.issue(request, measured),
            None => self.runner.slot_ended(),
        }
    }
}

impl Sink for Job {
    fn complete(&self, tag: u64, completion: Completion) {
        let key = Key::from_bits(tag);
        let mut in_flight = self.in_flight.borrow_mut();
        let Some(entry) = in_flight.get_mut(key) else { return };
        let Some(done) = entry.part_done(completion) else { return };
        let InFlight { request, submitted, measured, .. } = *entry;
        in_flight.remove(key);
        drop(in_flight);
        self.runner.completed(&request, submitted, measured, &done);
        if let Some(flow) = self.flow.filter(|_| measured && done.status.is_success()) {
            self.runner.flowed(flow, &request, submitted, &done);
        }
        if self.depth.is_some() {
            self.owe(1);
        }
    }

    fn is_stopped(&self) -> bool {
        self.runner.sim.is_stopped()
    }
}
