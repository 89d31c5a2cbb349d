//! A server as a client sees it: the connection, its unanswered requests, and its speed.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::{Rc, Weak};

use nandscape_sim::signal::Signal;
use nandscape_sim::{Sim, Span, Time};
use nandscape_wire_kv::{Frame, Load, Refusal, Reply, Request};

use crate::average::Ewma;
use nandscape_host_network::{Inlet, Network, Outlet};

/// The outcome of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    Value { version: u64, value: Vec<u8> },
    Missing,
    Stored,
    Busy { wait_us: u32 },
    Begun,
    Cancelled,
    Refused { why: Refusal, text: String },
    Lost,
}

/// The answers to the requests of one operation, each with the tag that it gave its request.
pub(crate) struct Mail {
    answers: RefCell<VecDeque<(usize, Answer)>>,
    came: Signal,
}

impl Mail {
    pub(crate) fn new(sim: &Sim) -> Rc<Mail> {
        Rc::new(Mail { answers: RefCell::default(), came: Signal::new(sim) })
    }

    pub(crate) fn take(&self) -> Option<(usize, Answer)> {
        self.answers.borrow_mut().pop_front()
    }

    pub(crate) async fn came(&self) {
        while self.answers.borrow().is_empty() {
            self.came.changed().await;
        }
    }

    fn put(&self, tag: usize, answer: Answer) {
        self.answers.borrow_mut().push_back((tag, answer));
        self.came.notify();
    }
}

/// A request that is not answered.
struct Call {
    mail: Weak<Mail>,
    tag: usize,
    begun: Time,
}

/// A client's statistics of a server.
#[derive(Default)]
pub(crate) struct Seen {
    /// Of response times in microseconds, with Cassandra's and C3's weights of a new one.
    pub(crate) snitch: Ewma,
    pub(crate) response: Ewma,
    /// Averages of the server's queue and of its service time in microseconds, as reported by the server.
    pub(crate) queue: Ewma,
    pub(crate) service: Ewma,
}

/// The share of a new value in Cassandra's average: ALPHA of DynamicEndpointSnitch's reservoir.
const SNITCH_WEIGHT: f64 = 0.75;
/// The share of a new value in C3's averages.
const C3_WEIGHT: f64 = 0.1;
/// The most requests whose answers are no longer awaited.
const MOST_CALLS: usize = 4_096;
/// How long a client waits before it connects again.
const AGAIN: Span = Span::from_ms(20);

/// See the module.
pub(crate) struct Peer {
    sim: Sim,
    network: Rc<dyn Network>,
    server: usize,
    outlet: RefCell<Option<Rc<dyn Outlet>>>,
    calls: RefCell<BTreeMap<u64, Call>>,
    next: Cell<u64>,
    /// Not before this time it is connected to again.
    again: Cell<Time>,
    /// The time until which it is asked last, because it was silent.
    suspect: Cell<Time>,
    pub(crate) seen: Seen,
}

struct Hears(Weak<Peer>);

impl Inlet for Hears {
    fn received(&self, frame: &[u8]) {
        if let Some(peer) = self.0.upgrade() {
            peer.received(frame);
        }
    }

    fn lost(&self, _: &str) {
        if let Some(peer) = self.0.upgrade() {
            peer.lost();
        }
    }
}

impl Peer {
    pub(crate) fn new(sim: &Sim, network: &Rc<dyn Network>, server: usize) -> Rc<Peer> {
        Rc::new(Peer {
            sim: sim.clone(),
            network: network.clone(),
            server,
            outlet: RefCell::default(),
            calls: RefCell::default(),
            next: Cell::new(1),
            again: Cell::new(Time::ZERO),
            suspect: Cell::new(Time::ZERO),
            seen: Seen::default(),
        })
    }

    /// Requests that it has not answered.
    pub(crate) fn outstanding(&self) -> usize {
        self.calls.borrow().len()
    }

    /// Whether it was recently silent.
    pub(crate) fn is_suspect(&self) -> bool {
        self.suspect.get() > self.sim.now()
    }

    /// It was silent: for `span` it is asked last.
    pub(crate) fn suspect_for(&self, span: Span) {
        self.suspect.set(self.sim.now() + span);
    }

    /// Sends a request; its answer arrives under `tag`. Returns its number, for [`Peer::cancel`] and
    /// [`Peer::was_silent`].
    pub(crate) fn send(self: &Rc<Self>, request: &Request<'_>, mail: &Rc<Mail>, tag: usize) -> u64 {
        let id = self.next.get();
        self.next.set(id + 1);
        let frame = request.to_frame(id).expect("key and value are of valid length");
        match self.outlet() {
            Some(outlet) => {
                let mut calls = self.calls.borrow_mut();
                calls.insert(id, Call { mail: Rc::downgrade(mail), tag, begun: self.sim.now() });
                if calls.len() > MOST_CALLS {
                    calls.pop_first();
                }
                drop(calls);
                outlet.send(frame);
            }
            None => mail.put(tag, Answer::Lost),
        }
        id
    }

    /// The request is not wanted any more.
    pub(crate) fn cancel(&self, id: u64) {
        if let Some(outlet) = self.outlet.borrow().as_ref()
            && let Ok(frame) = Request::Cancel.to_frame(id)
        {
            outlet.send(frame);
        }
    }

    /// No answer is expected any more. The wait counts as a response time: else a replica that hangs keeps the times of its good days.
    pub(crate) fn was_silent(&self, id: u64) {
        self.took(id);
        self.calls.borrow_mut().remove(&id);
    }

    /// The way to it, made again if it was lost a while ago.
    fn outlet(self: &Rc<Self>) -> Option<Rc<dyn Outlet>> {
        let found = self.outlet.borrow().clone().filter(|outlet| outlet.is_up());
        if found.is_some() || self.again.get() > self.sim.now() {
            return found;
        }
        let outlet = self.network.connect(self.server, Rc::new(Hears(Rc::downgrade(self))));
        self.again.set(self.sim.now() + AGAIN);
        self.outlet.replace(Some(outlet.clone()));
        Some(outlet).filter(|outlet| outlet.is_up())
    }

    fn lost(&self) {
        self.outlet.replace(None);
        self.again.set(self.sim.now() + AGAIN);
        for call in self.calls.take().into_values() {
            if let Some(mail) = call.mail.upgrade() {
                mail.put(call.tag, Answer::Lost);
            }
        }
    }

    fn received(&self, bytes: &[u8]) {
        let reply = Frame::parse(bytes).and_then(|frame| Ok((frame.id, Reply::parse(&frame)?)));
        let Ok((id, reply)) = reply else {
            // A server that violates the protocol is treated as disconnected.
            if let Some(outlet) = self.outlet.take() {
                outlet.close("an answer that is no message of the protocol");
            }
            return self.lost();
        };
        let answer = match reply {
            Reply::Begun => {
                if let Some((mail, tag)) =
                    self.calls.borrow().get(&id).and_then(|call| Some((call.mail.upgrade()?, call.tag)))
                {
                    mail.put(tag, Answer::Begun);
                }
                return;
            }
            Reply::Value { load, version, value } => {
                self.saw(id, Some(load));
                Answer::Value { version, value: value.to_vec() }
            }
            Reply::Missing { load } => {
                self.saw(id, Some(load));
                Answer::Missing
            }
            Reply::Stored { .. } => Answer::Stored,
            Reply::Busy { wait_us, .. } => Answer::Busy { wait_us },
            Reply::Cancelled => Answer::Cancelled,
            Reply::Refused { why, text } => Answer::Refused { why, text: text.to_owned() },
        };
        if let Some(call) = self.calls.borrow_mut().remove(&id)
            && let Some(mail) = call.mail.upgrade()
        {
            mail.put(call.tag, answer);
        }
    }

    /// A get was served: notes how quick that was.
    fn saw(&self, id: u64, load: Option<Load>) {
        if !self.took(id) {
            return;
        }
        self.suspect.set(Time::ZERO);
        if let Some(load) = load {
            self.seen.queue.add(load.queue.into(), C3_WEIGHT);
            self.seen.service.add(load.service_us.into(), C3_WEIGHT);
        }
    }

    /// Notes how long a request has taken until now; whether it is known.
    fn took(&self, id: u64) -> bool {
        let Some(begun) = self.calls.borrow().get(&id).map(|call| call.begun) else { return false };
        let took = (self.sim.now() - begun).as_us();
        self.seen.snitch.add(took, SNITCH_WEIGHT);
        self.seen.response.add(took, C3_WEIGHT);
        true
    }
}
