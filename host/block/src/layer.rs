//! The layer: from the submission of a command to its end.
//!
//! A read that will miss its deadline ends at once with [`BUSY`], and DW0 holds its expected wait in microseconds. A
//! read that still waits in the layer is rejected when it would be late even without further waits, because later
//! commands may overtake it. If the scheduler has classes, a read is rejected as soon as arriving work of a higher
//! class makes it late. A read of several pages has one prediction, so it is rejected as a whole.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use nandscape_drive::io::Sink;
use nandscape_drive::{CommandRef, Completion, Drive, DriveInfo, Expected, Foresight, Io, Token};
use nandscape_sim::slots::{Key, Slots};
use nandscape_sim::{Sim, Span, Time};
use nandscape_wire_nvme::vendor::{BUSY, PREDICT_ONLY};
use nandscape_wire_nvme::{Status, vendor};

use crate::accuracy::Accuracy;
use crate::backlog::Backlog;
use crate::config::{Config, PredictorKind};
use crate::flight::{Flight, Predicted, us};
use crate::predictor::{Prediction, Predictor};
use crate::request::Request;
use crate::scheduler::Scheduler;
use crate::tolerance::{Tolerance, Tolerated};
use crate::watched::Watched;

/// The layer's default name in breakdowns.
pub const LAYER: &str = "block";

/// A read would be late.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("it would wait {wait} and take {latency}, and has {deadline}")]
pub struct Busy {
    /// The predicted wait for others.
    pub wait: Span,
    /// How long it would take, the wait included.
    pub latency: Span,
    /// Its deadline.
    pub deadline: Span,
}

/// Why a read is not known to be in time.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unchecked {
    /// It would be late.
    #[error(transparent)]
    Busy(#[from] Busy),
    /// The layer predicts nothing: the drive enforces deadlines.
    #[error("this layer predicts nothing, and only a read that is submitted finds out; block.predictor=ssd predicts")]
    Unknown,
}

/// The block layer over one drive. Jobs use it through [`BlockLayer::over`].
pub struct BlockLayer {
    sim: Sim,
    config: Config,
    scheduler: RefCell<Box<dyn Scheduler>>,
    predictor: Option<Rc<dyn Predictor>>,
    flights: RefCell<Slots<Flight>>,
    /// Commands at the drive.
    sent: Cell<u32>,
    counted: RefCell<Accuracy>,
    tolerance: RefCell<Tolerance>,
    /// Commands that wait here, for a predictor that knows only the work at the drive.
    backlog: Option<RefCell<Backlog>>,
    watched: Watched,
    me: Weak<BlockLayer>,
}

/// The layer over one queue pair of its drive.
pub struct Connection {
    layer: Rc<BlockLayer>,
    below: Rc<dyn Drive>,
}

impl BlockLayer {
    /// A layer with these settings. `predictor` is the one that they name; `None` if they name none or leave
    /// predictions to the drive.
    pub fn new(sim: &Sim, config: Config, predictor: Option<Rc<dyn Predictor>>) -> Rc<BlockLayer> {
        Rc::new_cyclic(|me| BlockLayer {
            sim: sim.clone(),
            scheduler: RefCell::new(config.scheduler.make(config.slice)),
            predictor,
            flights: RefCell::default(),
            sent: Cell::new(0),
            counted: RefCell::default(),
            tolerance: RefCell::default(),
            backlog: (config.depth > 0 && config.predictor == PredictorKind::Ssd)
                .then(|| RefCell::new(Backlog::new(config.depth))),
            watched: Watched::default(),
            me: me.clone(),
            config,
        })
    }

    /// A drive for one job, over its own queue pair.
    pub fn over(self: &Rc<Self>, below: Rc<dyn Drive>) -> Rc<Connection> {
        Rc::new(Connection { layer: self.clone(), below })
    }

    /// Its settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The counters so far.
    pub fn counted(&self) -> Accuracy {
        self.counted.borrow().clone()
    }

    /// Counts from the beginning.
    pub fn count_anew(&self) {
        self.counted.take();
    }

    /// Whether a read would be in time if it were submitted now, without submitting it (addrcheck, Li 3.1.8).
    ///
    /// # Errors
    /// The read would be late, or this layer predicts nothing.
    pub fn addrcheck(&self, slba: u64, blocks: u32, deadline: Span) -> Result<(), Unchecked> {
        let arrived = self.sim.now();
        let deadline = Some(deadline).filter(|deadline| !deadline.is_zero());
        let request = Request { is_read: true, slba, blocks, class: 0, tenant: 0, deadline, arrived };
        match self.predicted(&request) {
            Some(prediction) => Ok(self.judge(&request, &prediction)?),
            None if request.deadline.is_none() => Ok(()),
            None => Err(Unchecked::Unknown),
        }
    }

    /// The latency of a read if it were submitted now; `None` if nothing is predicted.
    pub fn predict(&self, slba: u64, blocks: u32) -> Option<Prediction> {
        let arrived = self.sim.now();
        let request = Request { is_read: true, slba, blocks, class: 0, tenant: 0, deadline: None, arrived };
        self.predicted(&request)
    }

    /// The prediction for a command that arrives now, with its wait in the layer.
    fn predicted(&self, request: &Request) -> Option<Prediction> {
        let predictor = self.predictor.as_ref()?;
        let now = request.arrived;
        let (goes, more) = self.backlog.as_ref().map_or((now, Span::ZERO), |backlog| {
            let backlog = backlog.borrow();
            (backlog.begins(now), backlog.more(now))
        });
        let mut prediction = predictor.predict(request, goes);
        let waits = goes - now + more;
        prediction.latency += waits;
        prediction.wait += waits;
        Some(prediction)
    }

    fn judge(&self, request: &Request, prediction: &Prediction) -> Result<(), Busy> {
        let Some(deadline) = request.deadline else { return Ok(()) };
        match prediction.latency > deadline + self.config.hop {
            true => Err(Busy { wait: prediction.wait, latency: prediction.latency, deadline }),
            false => Ok(()),
        }
    }

    fn submit(self: &Rc<Self>, below: &Rc<dyn Drive>, io: Io) {
        let Io { mut command, mem, token } = io;
        let request = Request::of(&command, self.config.default_deadline(), self.sim.now());
        let only = self.config.predict_only || command.cdw2.get() & PREDICT_ONLY != 0;
        command.cdw3 = match (self.config.predictor, request.deadline) {
            // The drive decides, and also receives the default deadline of reads without one.
            (PredictorKind::None, Some(deadline)) => us(deadline).into(),
            (_, Some(_)) => 0.into(),
            // Of a Write, which no predictor judges, or another field.
            (_, None) => command.cdw3,
        };
        self.count(&request);
        let prediction = self.predicted(&request);
        if let Some(prediction) = &prediction
            && self.judge(&request, prediction).is_err()
        {
            if !only {
                return self.reject(token, &request, prediction.wait);
            }
            self.counted.borrow_mut().attached += 1;
        }
        let chip = prediction.as_ref().and_then(|prediction| prediction.pages.first()).map(|page| page.chip);
        let predicted = prediction.zip(self.predictor.as_ref()).map(|(prediction, predictor)| Predicted {
            // With a backlog, the predictor accounts for the command when it is sent to the drive.
            ticket: match &self.backlog {
                Some(_) => u64::MAX,
                None => predictor.accept(&request, &prediction, request.arrived),
            },
            latency: prediction.latency,
            wait: prediction.wait,
            takes: prediction.latency.saturating_sub(prediction.wait),
        });
        let is_asked = self.config.predictor == PredictorKind::Told && request.deadline.is_some() && !only;
        let kept = Some((command, mem));
        let flight = Flight {
            token,
            below: Rc::downgrade(below),
            kept,
            is_sent: false,
            waited: Span::ZERO,
            is_asked,
            request,
            predicted,
            turn: None,
            last: None,
            tolerated: None,
        };
        let key = self.flights.borrow_mut().insert(flight);
        if request.is_read || !self.scheduler.borrow().puts_reads_first() {
            self.enter(key);
        }
        self.scheduler.borrow_mut().push(key.to_bits(), &request, chip);
        self.overtake(key, only);
        self.dispatch();
        self.watch_over(key, &request, predicted, only);
    }

    /// A command takes a turn behind all that wait here.
    fn enter(&self, key: Key) {
        let Some(backlog) = &self.backlog else { return };
        let (now, mut flights, mut backlog) = (self.sim.now(), self.flights.borrow_mut(), backlog.borrow_mut());
        let Some(flight) = flights.get_mut(key) else { return };
        let waits = backlog.begins(now) - flight.request.arrived;
        let takes = match flight.predicted.filter(|_| flight.request.is_read) {
            Some(predicted) => predicted.latency.saturating_sub(waits),
            None => backlog.others(),
        };
        flight.turn = Some(backlog.enter(now, takes));
    }

    fn count(&self, request: &Request) {
        let mut counted = self.counted.borrow_mut();
        counted.reads += u64::from(request.is_read);
        counted.judged += u64::from(request.deadline.is_some());
    }

    fn reject(&self, token: Token, request: &Request, wait: Span) {
        self.counted.borrow_mut().rejected += 1;
        let (sim, takes, began) = (self.sim.clone(), self.config.reject, request.arrived);
        let layer = self.config.layer;
        if takes.is_zero() {
            return token.complete(busy(self.config.layer, wait, Span::ZERO));
        }
        self.sim.spawn(async move {
            sim.sleep(takes).await;
            token.complete(busy(layer, wait, sim.now() - began));
        });
    }

    /// Sends commands up to the drive's limit.
    fn dispatch(self: &Rc<Self>) {
        while self.config.depth == 0 || self.sent.get() < self.config.depth {
            let is_busy = |chip| self.predictor.as_ref().is_some_and(|predictor| predictor.is_busy(chip));
            let next = self.scheduler.borrow_mut().pop(self.sim.now(), &is_busy);
            let Some(key) = next else { return };
            self.send(Key::from_bits(key));
        }
    }

    fn send(self: &Rc<Self>, key: Key) {
        if self.flights.borrow().get(key).is_some_and(|flight| flight.turn.is_none()) {
            self.enter(key);
        }
        let (below, entry, mem) = {
            let mut flights = self.flights.borrow_mut();
            // A command that was rejected or cancelled meanwhile has no entry.
            let Some(flight) = flights.get_mut(key) else { return };
            let Some((mut entry, mem)) = flight.entry(flight.is_asked) else { return };
            if !flight.is_sent {
                flight.waited = self.sim.now() - flight.request.arrived;
                self.unwatch(key, flight);
                self.goes(key, flight);
            }
            flight.is_sent = true;
            vendor::has_waited(&mut entry, flight.waited.ns());
            if !flight.is_asked {
                flight.kept = None;
            }
            (flight.below.upgrade(), entry, mem)
        };
        self.sent.set(self.sent.get() + 1);
        let token = Token::new(self.clone(), key.to_bits());
        match below {
            Some(below) => below.submit(Io { command: entry, mem, token }),
            // The job and its queue pair no longer exist.
            None => token.complete(Completion::of(Status::ABORTED_SQ_DELETION)),
        }
    }

    /// A command is sent to the drive for the first time.
    fn goes(&self, key: Key, flight: &mut Flight) {
        let (Some(predictor), Some(predicted)) = (&self.predictor, &mut flight.predicted) else { return };
        let now = self.sim.now();
        if let (Some(backlog), Some(turn)) = (&self.backlog, &mut flight.turn) {
            backlog.borrow_mut().goes(turn, now);
            // The predictor accounts only for work at the drive.
            let at_drive = predictor.predict(&flight.request, now);
            predicted.ticket = predictor.accept(&flight.request, &at_drive, now);
        }
        predictor.sent(predicted.ticket, now);
        // Work that overtook the command was unknown at its arrival.
        let more = self.untolerate(key, flight.tolerated.take());
        predicted.latency += more;
        predicted.wait += more;
    }

    fn untolerate(&self, key: Key, tolerated: Option<Tolerated>) -> Span {
        tolerated.map_or(Span::ZERO, |tolerated| self.tolerance.borrow_mut().leave(key.to_bits(), tolerated))
    }

    /// A command arrives and overtakes waiting commands of lower classes. The reads that this makes late are
    /// rejected. Later commands of higher classes may do the same to it.
    fn overtake(&self, key: Key, only: bool) {
        let (late, takes) = {
            let mut flights = self.flights.borrow_mut();
            let Some(Flight { request, predicted: Some(predicted), tolerated, .. }) = flights.get_mut(key) else {
                return;
            };
            let Some(class) = self.scheduler.borrow().class(request) else { return };
            if let Some(deadline) = request.deadline {
                let more = (deadline + self.config.hop).saturating_sub(predicted.latency);
                let more = if only { Span::MAX } else { more };
                *tolerated = Some(self.tolerance.borrow_mut().wait(key.to_bits(), class, more));
            }
            (self.tolerance.borrow_mut().goes_before(class, predicted.takes), predicted.takes)
        };
        for late in late {
            let wait = self.flights.borrow().get(Key::from_bits(late)).and_then(|flight| flight.predicted);
            self.overtaken(Key::from_bits(late), wait.map_or(takes, |predicted| predicted.wait + takes));
        }
    }

    /// Rejects a read that still waits here at the time from which it would be late even if it were sent at once.
    fn watch_over(self: &Rc<Self>, key: Key, request: &Request, predicted: Option<Predicted>, only: bool) {
        let waits = self.flights.borrow().get(key).is_some_and(|flight| !flight.is_sent);
        let (Some(deadline), Some(predicted)) = (request.deadline, predicted) else { return };
        if only || !waits {
            return;
        }
        let last = request.arrived + (deadline + self.config.hop).saturating_sub(predicted.takes);
        if let Some(flight) = self.flights.borrow_mut().get_mut(key) {
            flight.last = Some(last);
        }
        if let Some(at) = self.watched.enter(self.sim.now(), last, key.to_bits()) {
            self.look_at(at);
        }
    }

    /// At a given time, rejects the reads that have waited for too long.
    fn look_at(&self, time: Time) {
        let (sim, layer) = (self.sim.clone(), self.me.clone());
        self.sim.spawn(async move {
            sim.sleep_until(time).await;
            let Some(layer) = layer.upgrade() else { return };
            while let Some(key) = layer.watched.due(time).map(Key::from_bits) {
                let predicted = layer.flights.borrow().get(key).and_then(|flight| flight.predicted);
                layer.overtaken(key, predicted.map_or(Span::ZERO, |predicted| predicted.wait));
            }
            if let Some(next) = layer.watched.looked(time) {
                layer.look_at(next);
            }
        });
    }

    /// A command no longer waits here.
    fn unwatch(&self, key: Key, flight: &mut Flight) {
        if let Some(last) = flight.last.take() {
            self.watched.leave(last, key.to_bits());
        }
    }

    fn overtaken(&self, key: Key, wait: Span) {
        let Some(flight) = self.take_waiting(key) else { return };
        self.counted.borrow_mut().cancelled += 1;
        let took = self.sim.now() - flight.began();
        flight.token.complete(busy(self.config.layer, wait.max(took), took));
    }

    /// Removes a command that waits here.
    fn take_waiting(&self, key: Key) -> Option<Flight> {
        let mut flights = self.flights.borrow_mut();
        flights.get(key).filter(|flight| !flight.is_sent)?;
        let mut flight = flights.remove(key)?;
        drop(flights);
        self.unwatch(key, &mut flight);
        if let (Some(backlog), Some(turn)) = (&self.backlog, &flight.turn) {
            backlog.borrow_mut().dropped(turn, self.sim.now());
        }
        if let (Some(predictor), Some(predicted)) = (&self.predictor, flight.predicted) {
            predictor.dropped(predicted.ticket, self.sim.now());
            if let Some(class) = self.scheduler.borrow().class(&flight.request) {
                self.untolerate(key, flight.tolerated);
                self.tolerance.borrow_mut().takes_back(class, predicted.takes);
            }
        }
        Some(flight)
    }

    /// The drive reported how long its internal work delays a read. If the deadline allows that wait, the read is
    /// sent again without fast-fail. Returns whether it was.
    fn asks_again(self: &Rc<Self>, key: Key, completion: &Completion) -> bool {
        let mut flights = self.flights.borrow_mut();
        let Some(flight) = flights.get_mut(key).filter(|flight| flight.is_asked) else { return false };
        let ends = Span::from_us(completion.dw0.into()) + flight.waited;
        let may_wait = flight.request.deadline.is_some_and(|deadline| ends <= deadline + self.config.hop);
        if completion.status.meaning() != BUSY || !may_wait {
            return false;
        }
        flight.is_asked = false;
        drop(flights);
        self.send(key);
        true
    }

    fn end(&self, flight: Flight, mut completion: Completion) {
        let now = self.sim.now();
        let took = now - flight.began();
        let deadline = flight.request.deadline;
        if let (Some(backlog), Some(turn)) = (&self.backlog, &flight.turn) {
            backlog.borrow_mut().ended(turn, flight.request.is_read, now);
        }
        if let (Some(predictor), Some(predicted)) = (&self.predictor, flight.predicted) {
            predictor.ended(predicted.ticket, now);
            if let Some(deadline) = deadline.filter(|_| completion.status.is_success()) {
                let late_after = deadline + self.config.hop;
                self.counted.borrow_mut().compare(predicted.latency, took, late_after);
                if predicted.latency > late_after {
                    completion.dw0 = us(predicted.wait);
                }
            }
        }
        let is_left_to_drive = self.config.predictor == PredictorKind::None && deadline.is_some();
        if (flight.is_asked || is_left_to_drive) && completion.status.meaning() == BUSY {
            self.counted.borrow_mut().rejected += 1;
        }
        if !took.is_zero() {
            completion.breakdown.charge_rest(self.config.layer, took);
        }
        flight.token.complete(completion);
    }
}

/// The completion of a rejected read.
fn busy(layer: &'static str, wait: Span, took: Span) -> Completion {
    let mut completion = Completion { dw0: us(wait), ..Completion::of(BUSY) };
    if !took.is_zero() {
        completion.breakdown.charge_rest(layer, took);
    }
    completion
}

impl Sink for BlockLayer {
    fn complete(&self, tag: u64, completion: Completion) {
        let me = self.me.upgrade().expect("a token keeps the layer");
        let key = Key::from_bits(tag);
        self.sent.set(self.sent.get() - 1);
        if !me.asks_again(key, &completion) {
            let flight = self.flights.borrow_mut().remove(key);
            if let Some(flight) = flight {
                self.end(flight, completion);
            }
        }
        me.dispatch();
    }

    fn announced(&self, tag: u64, remaining: Span) {
        let announcer = self.flights.borrow().get(Key::from_bits(tag)).map(|flight| flight.token.announcer());
        if let Some(announce) = announcer {
            announce(remaining);
        }
    }

    fn is_stopped(&self) -> bool {
        self.sim.is_stopped()
    }
}

impl Foresight for BlockLayer {
    fn expected(&self, slba: u64, blocks: u32) -> Option<Expected> {
        let Prediction { latency, wait, .. } = self.predict(slba, blocks)?;
        Some(Expected { latency, wait })
    }
}

impl Drive for Connection {
    fn info(&self) -> DriveInfo {
        self.below.info()
    }

    fn submit(&self, io: Io) {
        self.layer.submit(&self.below, io);
    }

    fn cancel(&self, command: CommandRef) -> bool {
        let found = self.layer.flights.borrow().find(|flight| flight.token.is_of(command));
        let Some(key) = found else { return false };
        if let Some(flight) = self.layer.take_waiting(key) {
            self.layer.end_cancelled(flight);
            return true;
        }
        let sink: Rc<dyn Sink> = self.layer.clone();
        self.below.cancel(CommandRef::new(&sink, key.to_bits()))
    }
}

impl BlockLayer {
    fn end_cancelled(&self, flight: Flight) {
        let took = self.sim.now() - flight.began();
        let mut completion = Completion::of(Status::ABORT_REQUESTED);
        if !took.is_zero() {
            completion.breakdown.charge_rest(self.config.layer, took);
        }
        flight.token.complete(completion);
    }
}
