//! Commands in a drive and on their way back: by whom they are taken, when they are issued, what is known of their ends.

use std::rc::Rc;

use nandscape_drive::io::Sink;
use nandscape_drive::{Completion, HostMem, Io, Token};
use nandscape_host_machine::{Context, Event, Waits};
use nandscape_sim::executor::TaskId;
use nandscape_sim::slots::Key;
use nandscape_sim::{Span, Time};
use nandscape_wire_nvme::{SubmissionEntry, vendor};

use super::Path;
use crate::policy::Notice;
use crate::ring::Ended;

/// A command in the drive, or on its way back.
pub(crate) struct Flight {
    pub(crate) notice: Notice,
    /// The completion queue whose interrupt ends it.
    pub(crate) queue: usize,
    /// Where it is issued; `None` of a command for several ports.
    pub(crate) port: Option<usize>,
    pub(crate) cpu: usize,
    /// When the thread that issues it was given the request.
    arrived: Time,
    /// The command, until it is issued.
    unsent: Option<(SubmissionEntry, HostMem)>,
    /// When it was issued.
    pub(crate) issued: Option<Time>,
    /// It holds a tag of its port.
    pub(super) has_tag: bool,
    /// Its thread has left, and the tag is still in use.
    pub(super) is_left: bool,
    /// Whether its completion raises an interrupt.
    pub(crate) is_armed: bool,
    /// The drive's notice, if one came.
    pub(crate) ahead: Option<Ahead>,
    /// From the notice until the thread had its processor.
    pub(super) noticed: Option<Span>,
    /// The task of the thread, while it polls.
    pub(super) task: Option<TaskId>,
    /// The drive's answer, and when it came.
    pub(crate) done: Option<(Time, Completion)>,
    /// Stages that have ended since.
    marks: Vec<(&'static str, Time)>,
    /// A context has woken the thread.
    pub(crate) is_woken: bool,
    pub(crate) event: Rc<Event>,
    taker: Taker,
    /// How long its thread had waited for its processor when the answer came.
    waits: Waits,
}

/// Who takes an I/O that has ended.
pub(super) enum Taker {
    /// The thread that submitted.
    Thread(Key),
    Ring(Rc<Ended>),
}

impl Taker {
    fn ring(&self) -> Option<Rc<Ended>> {
        match self {
            Taker::Thread(_) => None,
            Taker::Ring(ring) => Some(ring.clone()),
        }
    }
}

/// A notice ahead of a completion.
#[derive(Copy, Clone)]
pub(crate) struct Ahead {
    /// When it came.
    pub(crate) at: Time,
    /// When the command is predicted to end.
    pub(crate) ends: Time,
    /// It has woken the thread.
    pub(crate) is_handled: bool,
}

/// An answer of the drive.
pub(crate) struct Taken {
    pub(crate) port: Option<usize>,
    pub(crate) issued: Time,
    pub(crate) done: Time,
    /// Stages that have ended since.
    pub(crate) marks: Vec<(&'static str, Time)>,
    pub(super) ahead: Option<Ahead>,
    pub(super) noticed: Option<Span>,
    pub(crate) completion: Completion,
    pub(super) waits: Waits,
}

impl Path {
    /// An I/O that is about to be issued on a processor.
    pub(super) fn insert(
        &self,
        (cpu, arrived): (usize, Time),
        (notice, is_armed): (Notice, bool),
        taker: Taker,
        (mut command, mem): (SubmissionEntry, HostMem),
    ) -> (Key, Rc<Event>) {
        let port = self.port_of(cpu, &mut command);
        let queue = if self.stripe.is_some() { 0 } else { cpu % self.ports.len() % self.vectors.len() };
        let under_way = &self.under_way[cpu];
        under_way.set(under_way.get() + 1);
        let event = Rc::new(Event::new(&self.machine));
        let flight = Flight {
            notice,
            queue,
            port,
            cpu,
            arrived,
            unsent: Some((command, mem)),
            issued: None,
            has_tag: false,
            is_left: false,
            is_armed,
            ahead: None,
            noticed: None,
            task: None,
            done: None,
            marks: Vec::new(),
            is_woken: false,
            event: event.clone(),
            taker,
            waits: Waits::default(),
        };
        (self.flights.borrow_mut().insert(flight), event)
    }

    /// The same for a ring, which takes it when it has ended. Its completion raises an interrupt if it is armed.
    pub(crate) fn reserve(
        &self,
        at: (usize, Time),
        (taker, is_armed): (Rc<Ended>, bool),
        command: (SubmissionEntry, HostMem),
    ) -> Key {
        self.insert(at, (Notice::Interrupt, is_armed), Taker::Ring(taker), command).0
    }

    /// The port of a command of a processor, which then names the addresses of that port; `None` of a command for several.
    pub(crate) fn port_of(&self, cpu: usize, command: &mut SubmissionEntry) -> Option<usize> {
        match &self.stripe {
            Some(stripe) => stripe.port_of(command, self.ports.len(), self.ports[0].drive.info()),
            None => Some(cpu % self.ports.len()),
        }
    }

    /// Issues a command, or has it wait for a tag.
    pub(crate) fn send_or_wait(&self, key: Key) {
        let port = self.with_flight(key, |flight| flight.port).flatten();
        match port.map(|port| &self.ports[port]) {
            Some(port) if port.has_requests() || !port.take_tag() => port.enqueue(key),
            port => _ = self.send(key, port.is_some()),
        }
    }

    /// Issues a command, with a tag that was taken for it, or none. Returns whether it was still there.
    pub(crate) fn send(&self, key: Key, has_tag: bool) -> bool {
        let mut flights = self.flights.borrow_mut();
        let now = self.sim.now();
        let unsent = flights.get_mut(key).and_then(|flight| {
            let mut unsent = flight.unsent.take()?;
            vendor::has_waited(&mut unsent.0, (now - flight.arrived).ns());
            (flight.issued, flight.has_tag) = (Some(now), has_tag);
            Some((flight.port, unsent))
        });
        drop(flights);
        let Some((port, (command, mem))) = unsent else { return false };
        let drive = match (port, &self.stripe) {
            (Some(port), _) => &self.ports[port].drive,
            (None, Some(stripe)) => &stripe.whole,
            (None, None) => unreachable!("a queue pair takes any command"),
        };
        drive.submit(Io { command, mem, token: Token::new(self.me(), key.to_bits()) });
        true
    }

    /// Whether a command still waits to be issued.
    pub(crate) fn is_unsent(&self, key: Key) -> bool {
        self.flights.borrow().get(key).is_some_and(|flight| flight.unsent.is_some())
    }

    /// Gives the tag of a command back, whose port is returned. If its thread has left, the command ends.
    pub(crate) fn release(&self, key: Key) -> Option<usize> {
        let (port, is_left) = self
            .with_flight(key, |flight| (flight.port.filter(|_| std::mem::take(&mut flight.has_tag)), flight.is_left))?;
        if is_left {
            self.take_flight(key);
        }
        port.inspect(|port| self.ports[*port].release_tag())
    }

    /// Takes an I/O that has ended, and gives its tag back, on the processor of a context.
    pub(crate) fn take_ended(&self, key: Key, context: Option<&Context>) -> Taken {
        self.run_queue(self.release(key), context);
        let flight = self.take_flight(key).expect("an I/O is taken once");
        let (done, completion) = flight.done.expect("it has completed");
        let issued = flight.issued.expect("it was issued");
        Taken {
            port: flight.port,
            issued,
            done,
            marks: flight.marks,
            ahead: flight.ahead,
            noticed: flight.noticed,
            completion,
            waits: flight.waits,
        }
    }

    /// The ring that takes an I/O.
    pub(crate) fn taker(&self, key: Key) -> Option<Rc<Ended>> {
        self.with_flight(key, |flight| flight.taker.ring()).flatten()
    }

    /// An I/O that has not ended.
    pub(crate) fn with_flight<T>(&self, key: Key, look: impl FnOnce(&mut Flight) -> T) -> Option<T> {
        self.flights.borrow_mut().get_mut(key).map(look)
    }

    /// Takes an I/O out.
    pub(super) fn take_flight(&self, key: Key) -> Option<Flight> {
        let flight = self.flights.borrow_mut().remove(key)?;
        let under_way = &self.under_way[flight.cpu];
        under_way.set(under_way.get() - 1);
        Some(flight)
    }

    pub(crate) fn me(&self) -> Rc<Path> {
        self.me.upgrade().expect("a path at work is alive")
    }

    /// A stage of an I/O after its completion has ended now.
    pub(crate) fn mark(&self, key: Key, stage: &'static str) {
        self.mark_until(key, stage, self.sim.now());
    }

    /// The same at an earlier time. Before the last mark, it is none.
    pub(crate) fn mark_until(&self, key: Key, stage: &'static str, at: Time) {
        let mut flights = self.flights.borrow_mut();
        let Some(flight) = flights.get_mut(key) else { return };
        let Some((done, _)) = &flight.done else { return };
        let last = flight.marks.last().map_or(*done, |(_, at)| *at);
        if at > last {
            flight.marks.push((stage, at));
        }
    }

    /// The processor that submitted an I/O, if the I/O still exists.
    pub(crate) fn submitted_on(&self, key: Key) -> Option<usize> {
        self.flights.borrow().get(key).map(|flight| flight.cpu)
    }

    /// Wakes the thread of an I/O.
    pub(crate) fn wake(&self, context: &Context, key: Key) {
        let mut flights = self.flights.borrow_mut();
        let Some(flight) = flights.get_mut(key) else { return };
        flight.is_woken = true;
        let event = flight.event.clone();
        drop(flights);
        event.notify_from(context);
    }
}

impl Sink for Path {
    fn complete(&self, tag: u64, completion: Completion) {
        let key = Key::from_bits(tag);
        let mut flights = self.flights.borrow_mut();
        let Some(flight) = flights.get_mut(key) else { return };
        flight.done = Some((self.sim.now(), completion));
        let (is_armed, is_left, queue) = (flight.is_armed, flight.is_left, flight.queue);
        let (task, taker) = (flight.task, flight.taker.ring().filter(|_| !is_armed));
        if let Taker::Thread(thread) = flight.taker
            && !is_left
        {
            flight.waits = self.machine.waits(thread);
        }
        drop(flights);
        let task = taker.map_or(task, |ring| ring.push(key));
        if self.config.path.strategy().is_some() {
            self.posted_event(queue, key);
        } else if is_armed {
            self.posted(queue, key);
        } else if is_left {
            self.run_queue(self.release(key), None);
        } else if let Some(task) = task {
            self.sim.wake(task);
        }
    }

    fn announced(&self, tag: u64, remaining: Span) {
        self.noticed(Key::from_bits(tag), remaining);
    }

    fn is_stopped(&self) -> bool {
        self.sim.is_stopped()
    }
}
