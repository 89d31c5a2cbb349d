//! Clients on another machine: each has a connection to a thread of this host, which does the I/O of a request and answers.
//!
//! That is a key-value server with its index in memory: a get is a request, one read of the drive, and an answer with the value.
//!
//! Left out: what requests contain beyond their size, threads that serve several connections, and the work of the clients themselves.

use std::cell::RefCell;
use std::rc::Rc;

use nandscape_drive::{Completion, HostMem};
use nandscape_host_machine::{ConfigError, Context, Machine, Mode, ThreadSpec};
use nandscape_host_network::card::{LinkConfig, Received};
use nandscape_host_network::links::{Links, Side, Socket};
use nandscape_sim::{Span, Time};
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

use crate::config::half;
use crate::path::{Path, bytes_of, is_to_drive};
use crate::stages::{Account, Legs, Stages, stage};

/// Bytes of a request or an answer without the value: the header of the protocol and the key.
const HEADER: u64 = 64;

/// The machine of the clients, like the host itself, and its links to the host.
pub struct Clients {
    path: Rc<Path>,
    links: Rc<Links>,
}

impl Clients {
    /// Clients of a host, over the links of its settings.
    ///
    /// # Errors
    /// That the machine is impossible: the key, and what would be valid.
    pub fn new(path: &Rc<Path>) -> Result<Rc<Clients>, ConfigError> {
        let machine = Machine::new(&path.sim, path.config.machine.clone())?;
        let config = LinkConfig { wake: path.config.costs.wake, ..path.config.network };
        let links = Links::new(&path.sim, config, &path.machine, &machine);
        Ok(Rc::new(Clients { path: path.clone(), links }))
    }

    /// The host.
    pub fn path(&self) -> &Rc<Path> {
        &self.path
    }

    /// The clients' machine.
    pub fn machine(&self) -> &Machine {
        self.links.machine(Side::Clients)
    }

    /// The links.
    pub fn links(&self) -> &Links {
        &self.links
    }

    /// A connection with its thread of the host.
    ///
    /// # Errors
    /// That the thread may not run on any processor.
    pub(crate) fn connect(&self, spec: ThreadSpec) -> Result<Rc<Connection>, ConfigError> {
        let thread = self.path.machine.thread(spec)?;
        let (server, client) = self.links.connect();
        let (request, answer) = (RefCell::default(), RefCell::default());
        let connection =
            Rc::new(Connection { path: self.path.clone(), links: self.links.clone(), server, client, request, answer });
        self.path.sim.spawn(connection.clone().serve(thread));
        Ok(connection)
    }
}

/// A client's connection, with one request at a time.
pub(crate) struct Connection {
    path: Rc<Path>,
    links: Rc<Links>,
    server: Rc<Socket>,
    client: Rc<Socket>,
    /// The command of the request, and the bytes of a logical block.
    request: RefCell<Option<(SubmissionEntry, u32, HostMem)>>,
    answer: RefCell<Option<Answer>>,
}

struct Answer {
    completion: Completion,
    request: Received,
    sent: Time,
}

/// Work of a thread, unless it takes no time.
async fn work(thread: &Context, span: Span) {
    if !span.is_zero() {
        thread.work(span, Mode::Kernel).await;
    }
}

impl Connection {
    /// A request of a client's thread, which has had it since `arrived`, until the answer.
    pub(crate) async fn call(
        &self,
        thread: &Context,
        arrived: Time,
        (command, lba_bytes): (SubmissionEntry, u32),
        mem: HostMem,
    ) -> Completion {
        let now = || self.path.sim.now();
        let syscall = self.path.config.costs.syscall;
        let (enter, leave) = (half(syscall), syscall - half(syscall));
        let mut legs = Legs::begin(arrived, now(), None);
        work(thread, enter).await;
        let is_to_drive = is_to_drive(IoOpcode(command.opcode));
        let bytes = HEADER + if is_to_drive { bytes_of(&command, lba_bytes) } else { 0 };
        self.request.replace(Some((command, lba_bytes, mem)));
        let sent = self.client.send(thread, bytes).await;
        legs.pass(stage::CLIENT, sent);
        work(thread, leave + enter).await;
        let back = self.client.receive(thread).await;
        work(thread, self.links.config().message_in + leave).await;
        let Answer { mut completion, request, sent } = self.answer.take().expect("an answer follows each request");
        legs.pass(stage::NETWORK, request.raised);
        legs.pass(stage::RECEIVE, request.at);
        // Meanwhile the server had it.
        legs.at = sent;
        legs.pass(stage::NETWORK, back.raised);
        legs.pass(stage::CLIENT, now());
        legs.charge(&mut completion);
        completion
    }

    /// The thread of the host: takes requests, does their I/Os, and answers.
    async fn serve(self: Rc<Connection>, thread: Context) {
        let (path, sim) = (&*self.path, &self.path.sim);
        let syscall = path.config.costs.syscall;
        let (enter, leave) = (half(syscall), syscall - half(syscall));
        loop {
            let (since, account) = (sim.now(), Account::of(&thread));
            let request = self.server.receive(&thread).await;
            let idle = (since <= request.at).then_some(account);
            let mut stages = Stages::begin(sim, &thread, request.at, idle);
            let message_in = self.links.config().message_in;
            path.work(&thread, (message_in, Mode::Kernel), stage::RECEIVE, &mut stages).await;
            path.work(&thread, (leave, Mode::Kernel), stage::SYSCALL, &mut stages).await;
            let (command, lba_bytes, mem) = self.request.take().expect("a message brings a request");
            let bytes = HEADER + if is_to_drive(IoOpcode(command.opcode)) { 0 } else { bytes_of(&command, lba_bytes) };
            let mut completion = path.io(&thread, sim.now(), (command, lba_bytes), mem).await;
            stages.elsewhere();
            path.work(&thread, (enter, Mode::Kernel), stage::SYSCALL, &mut stages).await;
            let sent = self.server.send(&thread, bytes).await;
            stages.end(stage::SEND);
            stages.charge(&mut completion.breakdown);
            self.answer.replace(Some(Answer { completion, request, sent }));
            work(&thread, leave + enter).await;
        }
    }
}
