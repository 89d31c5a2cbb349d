//! For tests: hosts with their own controllers (`tenant`), contiguous memory (`flat`), and a drive for tests of
//! transports, hosts and workloads. The test sets the time and the effect of a command; queueing, service and
//! disconnection are those of the real drive.
//!
//! Dropping a [`Connection`] deletes its queue pair: commands that still wait end with Command Aborted due to SQ
//! Deletion. A command in service takes effect and then ends with the same status.
//!
//! Left out: queues and doorbells (their tests use a [`Ring`](crate::ring::Ring)), and drives that break rules on
//! purpose, which are in the tests of the conformance suite.

pub mod flat;
pub mod tenant;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use nandscape_sim::signal::Signal;
use nandscape_sim::{Sim, Span, Time};
use nandscape_wire_nvme::Status;

use crate::drive::{Drive, DriveInfo};
use crate::io::{Completion, Io};
use crate::node::{Node, Refused, Use};

/// A drive of 1 GiB without cache and data; tests replace the fields that matter to them.
pub const INFO: DriveInfo = DriveInfo {
    nsid: 1,
    blocks: 2 << 20,
    lba_bytes: 512,
    metadata_bytes: 0,
    max_blocks: 256,
    unit_bytes: 4_096,
    volatile_cache: false,
    keeps_data: false,
};

/// The behaviour of a fake drive.
pub trait Service: 'static {
    /// The service of a command begins; its duration.
    fn begin(&self, io: &Io) -> Span;

    /// The service that began at `begun` has ended: applies the command's effect to data; its status.
    fn end(&self, _io: &Io, _begun: Time) -> Status {
        Status::SUCCESS
    }
}

/// Every command takes the same time and does nothing.
impl Service for Span {
    fn begin(&self, _: &Io) -> Span {
        *self
    }
}

/// A fake drive as a [`Node`] without views.
pub struct FakeNode(pub Rc<FakeDrive<Span>>);

impl Node for FakeNode {
    fn info(&self) -> DriveInfo {
        INFO
    }

    fn connect(&self, _: Use) -> Result<Rc<dyn Drive>, Refused> {
        Ok(self.0.connect())
    }
}

/// How many commands a fake drive serves at a time.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Servers {
    /// One, in the order of submission.
    One,
    /// All.
    Unlimited,
}

/// The drive behind its connections.
pub struct FakeDrive<S> {
    sim: Sim,
    info: DriveInfo,
    servers: Servers,
    service: S,
    /// Commands that wait for the one server.
    queue: RefCell<VecDeque<Waiting>>,
    came: Signal,
    connections: Cell<usize>,
}

struct Waiting {
    io: Io,
    is_gone: Rc<Cell<bool>>,
}

/// A client's way to a fake drive, as a queue pair is to the product. Dropped, it disconnects.
pub struct Connection<S: Service> {
    drive: Rc<FakeDrive<S>>,
    is_gone: Rc<Cell<bool>>,
}

impl<S: Service> FakeDrive<S> {
    /// A drive that serves from now on.
    pub fn new(sim: &Sim, info: DriveInfo, servers: Servers, service: S) -> Rc<FakeDrive<S>> {
        let (queue, came) = (RefCell::default(), Signal::new(sim));
        let drive = FakeDrive { sim: sim.clone(), info, servers, service, queue, came, connections: Cell::new(0) };
        let drive = Rc::new(drive);
        if servers == Servers::One {
            sim.spawn(drive.clone().serve_in_turn());
        }
        drive
    }

    /// The behaviour that the test has given it.
    pub fn service(&self) -> &S {
        &self.service
    }

    /// The drive's description.
    pub fn info(&self) -> DriveInfo {
        self.info
    }

    /// Connections that are not dropped.
    pub fn connections(&self) -> usize {
        self.connections.get()
    }

    /// A way to the drive for one client.
    pub fn connect(self: &Rc<Self>) -> Rc<Connection<S>> {
        self.connections.set(self.connections.get() + 1);
        Rc::new(Connection { drive: self.clone(), is_gone: Rc::default() })
    }

    async fn serve_in_turn(self: Rc<Self>) {
        loop {
            let next = self.queue.borrow_mut().pop_front();
            match next {
                Some(waiting) => self.serve(waiting).await,
                None => self.came.changed().await,
            }
        }
    }

    async fn serve(&self, Waiting { io, is_gone }: Waiting) {
        let begun = self.sim.now();
        self.sim.sleep(self.service.begin(&io)).await;
        let status = self.service.end(&io, begun);
        io.token.complete(Completion::of(if is_gone.get() { Status::ABORTED_SQ_DELETION } else { status }));
    }
}

impl<S: Service> Drive for Connection<S> {
    fn info(&self) -> DriveInfo {
        self.drive.info
    }

    fn submit(&self, io: Io) {
        let waiting = Waiting { io, is_gone: self.is_gone.clone() };
        match self.drive.servers {
            Servers::One => {
                self.drive.queue.borrow_mut().push_back(waiting);
                self.drive.came.notify();
            }
            Servers::Unlimited => {
                let drive = self.drive.clone();
                self.drive.sim.spawn(async move { drive.serve(waiting).await });
            }
        }
    }
}

impl<S: Service> Drop for Connection<S> {
    fn drop(&mut self) {
        let FakeDrive { sim, queue, connections, .. } = &*self.drive;
        self.is_gone.set(true);
        connections.set(connections.get() - 1);
        if sim.is_stopped() {
            return;
        }
        let (dropped, kept): (VecDeque<_>, _) = queue.take().into_iter().partition(|waiting| waiting.is_gone.get());
        queue.replace(kept);
        dropped.into_iter().for_each(|waiting| waiting.io.token.complete(Completion::of(Status::ABORTED_SQ_DELETION)));
    }
}
