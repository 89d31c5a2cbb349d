//! The interface through which the tasks of a load issue requests. Requests count against the workload's budget, and
//! are recorded when they complete and awaited.
//!
//! A thread of a load is an `async fn` that ends with [`Over`] when the workload has no request left for it.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll};

use nandscape_drive::io::Sink;
use nandscape_drive::{Completion, Drive, DriveInfo, Io, Token};
use nandscape_sim::executor::TaskId;
use nandscape_sim::slots::{Key, Slots};
use nandscape_sim::{Sim, Span, Time};

use crate::flight::{Commands, InFlight};
use crate::record::Direction;
use crate::request::Request;

/// The workload has no request left; a task that gets this ends.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Over;

/// Counts the requests of clients: the runner of a workload, or any other host.
pub trait Meter {
    /// Takes a request from the budget: whether it is measured, or `None` if none is left.
    fn admit(&self) -> Option<bool>;

    /// A request is issued outside the budget, to prepare the drive.
    fn admit_preparation(&self);

    /// A request has completed.
    fn completed(&self, request: &Request, submitted: Time, measured: bool, done: &Completion);

    /// An operation of several requests, begun at `begun`, has ended.
    fn operation(&self, name: &'static str, begun: Time);

    /// The host cannot continue.
    fn give_up(&self, problem: String);
}

/// Admits every request and counts none: for hosts without a workload.
#[derive(Copy, Clone, Default, Debug)]
pub struct Unmetered;

impl Meter for Unmetered {
    fn admit(&self) -> Option<bool> {
        Some(false)
    }

    fn admit_preparation(&self) {}

    fn completed(&self, _: &Request, _: Time, _: bool, _: &Completion) {}

    fn operation(&self, _: &'static str, _: Time) {}

    fn give_up(&self, _: String) {}
}

/// The duration of a call that needs no request.
const MEMORY_TIME: Span = Span::from_us(1);

/// Issues requests of tasks to one drive.
pub struct Client {
    sim: Sim,
    meter: Rc<dyn Meter>,
    drive: Rc<dyn Drive>,
    info: DriveInfo,
    in_flight: RefCell<Slots<Awaited>>,
    me: Weak<Client>,
}

struct Awaited {
    flight: InFlight,
    batch: Rc<Batch>,
}

/// A batch of requests that are awaited together.
struct Batch {
    left: Cell<u32>,
    task: Cell<TaskId>,
}

impl Client {
    /// A client of `drive` whose requests `meter` counts.
    pub fn new(sim: &Sim, meter: Rc<dyn Meter>, drive: Rc<dyn Drive>) -> Rc<Client> {
        let info = drive.info();
        Rc::new_cyclic(|me| Client {
            sim: sim.clone(),
            meter,
            drive,
            info,
            in_flight: RefCell::default(),
            me: me.clone(),
        })
    }

    /// The drive's properties.
    pub fn info(&self) -> &DriveInfo {
        &self.info
    }

    /// The simulation that the drive is part of.
    pub fn sim(&self) -> &Sim {
        &self.sim
    }

    /// Ends the run with an error.
    pub fn give_up(&self, problem: String) -> Over {
        self.meter.give_up(problem);
        Over
    }

    /// Issues requests at the same time, and waits for all of them when awaited.
    pub fn issue(&self, requests: impl IntoIterator<Item = Request>) -> Result<Requested, Over> {
        let batch = Rc::new(Batch { left: Cell::new(0), task: Cell::new(self.sim.current_task()) });
        for request in requests {
            let measured = self.meter.admit().ok_or(Over)?;
            self.submit(request, measured, &batch);
        }
        Ok(Requested { client: self.me.upgrade().expect("a client at work is alive"), batch })
    }

    /// A request that prepares the drive: outside the budget, and not measured.
    pub fn prepare(&self, request: Request) -> Requested {
        let batch = Rc::new(Batch { left: Cell::new(0), task: Cell::new(self.sim.current_task()) });
        self.meter.admit_preparation();
        self.submit(request, false, &batch);
        Requested { client: self.me.upgrade().expect("a client at work is alive"), batch }
    }

    /// Makes completed writes durable.
    pub async fn flush(&self) -> Result<(), Over> {
        self.issue([Request { direction: Direction::Flush, offset: 0, bytes: 0 }])?.await;
        Ok(())
    }

    /// A call served from the host's memory. It takes a short time, so that time advances even without requests.
    pub async fn served_from_memory(&self) {
        self.sim.sleep(MEMORY_TIME).await;
    }

    /// An operation of several requests has ended. It is recorded if it began in the measured phase.
    pub fn operation(&self, name: &'static str, begun: Time) {
        self.meter.operation(name, begun);
    }

    fn submit(&self, request: Request, measured: bool, batch: &Rc<Batch>) {
        let commands = Commands::of(&request, &self.info);
        let flight = InFlight::new(request, self.sim.now(), measured, &commands);
        batch.left.set(batch.left.get() + 1);
        let tag = self.in_flight.borrow_mut().insert(Awaited { flight, batch: batch.clone() }).to_bits();
        let sink: Rc<dyn Sink> = self.me.upgrade().expect("a client at work is alive");
        for (command, mem) in commands {
            self.drive.submit(Io { command, mem, token: Token::new(sink.clone(), tag) });
        }
    }
}

impl Sink for Client {
    fn complete(&self, tag: u64, completion: Completion) {
        let key = Key::from_bits(tag);
        let mut in_flight = self.in_flight.borrow_mut();
        let Some(done) = in_flight.get_mut(key).and_then(|entry| entry.flight.part_done(completion)) else { return };
        let Awaited { flight, batch } = in_flight.remove(key).expect("just seen");
        drop(in_flight);
        self.meter.completed(&flight.request, flight.submitted, flight.measured, &done);
        batch.left.set(batch.left.get() - 1);
        if batch.left.get() == 0 {
            self.sim.wake(batch.task.get());
        }
    }

    fn is_stopped(&self) -> bool {
        self.sim.is_stopped()
    }
}

/// See [`Client::issue`]. If dropped, the requests continue, and no task waits for them.
pub struct Requested {
    client: Rc<Client>,
    batch: Rc<Batch>,
}

impl Future for Requested {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if self.batch.left.get() == 0 {
            return Poll::Ready(());
        }
        self.batch.task.set(self.client.sim.current_task());
        Poll::Pending
    }
}
