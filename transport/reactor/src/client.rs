//! The trait that a transport implements for each connected client: bytes in, commands out; completions in, bytes out. A
//! client never blocks and never waits for another one.

use std::os::fd::BorrowedFd;

use nandscape_drive::HostMem;
use nandscape_drive::mem::Ask;
use nandscape_sim::{Span, Time};
use nandscape_wire_nvme::{Status, SubmissionEntry};

use crate::arrival::Arrival;
use crate::outbox::Released;
use crate::port::{ConnectionId, Port};

/// The events that a client's socket is watched for.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Interest {
    /// Data to read. A client with enough commands under way does not watch for it.
    pub read: bool,
    /// Room to write.
    pub write: bool,
}

/// A client has disconnected, or has to be disconnected.
#[derive(Debug)]
pub struct Gone {
    /// Why, unless it disconnected in order.
    pub reason: Option<String>,
}

impl Gone {
    /// It disconnected in order.
    pub const fn quietly() -> Gone {
        Gone { reason: None }
    }

    /// The connection broke, or the client violated the protocol.
    pub fn because(reason: impl Into<String>) -> Gone {
        Gone { reason: Some(reason.into()) }
    }
}

/// A time at which a client is disconnected.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Deadline {
    /// When.
    pub at: Time,
    /// Why.
    pub reason: &'static str,
}

/// Takes a client's commands to its drive.
pub struct Intake<'a> {
    port: &'a mut Port,
    connection: ConnectionId,
}

impl<'a> Intake<'a> {
    pub(crate) fn new(port: &'a mut Port, connection: ConnectionId) -> Intake<'a> {
        Intake { port, connection }
    }

    /// The time with which arrivals of this turn are stamped.
    pub fn now(&self) -> Time {
        self.port.now(self.connection)
    }

    /// Submits a command; its completion returns under `tag`.
    pub fn submit(&mut self, tag: u64, command: SubmissionEntry, mem: HostMem) {
        self.port.submit(self.connection, tag, command, mem);
    }

    /// The cost of a command that changes or reads more than its data `mem`, which it transfers, in bytes; 0 for
    /// others. It is begun when the client may ([`Share::may_begin`](crate::Share::may_begin)).
    #[cfg(target_os = "linux")]
    pub fn cost(&self, command: &SubmissionEntry, mem: impl FnOnce() -> HostMem) -> u64 {
        crate::effort::cost_of(command, mem, || self.port.block_bytes(self.connection, command.nsid.get()))
    }

    /// A command fails before it reaches the drive: the status that its host gets. The controller notes it in its error log.
    pub fn refuse(&mut self, command: &SubmissionEntry, status: Status) -> Status {
        self.port.refuse(self.connection, command, status)
    }

    /// A host with its own queues does something to its controller.
    pub fn arrive(&mut self, arrival: Arrival) {
        self.port.arrive(self.connection, arrival);
    }

    /// A host with its own queues answers a request by its number: the data read, nothing for a write, or `None` for a
    /// failure.
    pub fn answer(&mut self, number: u64, answer: Option<Vec<u8>>) {
        self.port.answer(self.connection, number, answer);
    }

    /// The dword of the controller's properties at a byte offset.
    pub fn register(&self, offset: u32) -> u32 {
        self.port.register(self.connection, offset)
    }
}

/// A connected client.
pub trait Client {
    /// Its socket, if it has one.
    fn socket(&self) -> Option<BorrowedFd<'_>>;

    /// Further descriptors, watched for input while the client exists, which reads them in
    /// [`Client::receive_arrivals`].
    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }

    /// Whether it is served in every turn, like a client with doorbells in memory.
    fn is_polled(&self) -> bool {
        self.socket().is_none()
    }

    /// The events to watch the socket for now.
    fn interest(&self) -> Interest;

    /// The peer has closed the connection, or its sending side. The reactor calls this even for a client without interest in
    /// reading, perhaps more than once, and receives its arrivals right afterwards.
    fn hung_up(&mut self) {}

    /// After a stop, no more input is received. Returns whether its peer has hung up, so that it needs no results of
    /// commands under way, and the end need not wait for them.
    fn is_deserted(&mut self) -> bool {
        false
    }

    /// Receives a fair share of the available input. Returns whether there was any.
    ///
    /// # Errors
    /// [`Gone`] when the connection must be closed.
    fn receive_arrivals(&mut self, intake: &mut Intake<'_>) -> Result<bool, Gone>;

    /// The reactor is about to sleep, once it has checked for arrivals one more time. The client makes its host ring
    /// in a way that wakes the reactor; otherwise it returns the time after which it must be polled again. No client
    /// has sent anything for `silent`.
    fn before_sleep(&mut self, _silent: Span) -> Option<Span> {
        None
    }

    /// A command has completed. Replies that cost almost nothing are sent here, others in [`Client::flush`].
    fn complete(&mut self, released: Released);

    /// The drive announces the end of a command that asked for it, predicted to be `remaining` after the announcement
    /// ([`NOTICES`](nandscape_wire_nvme::vendor::NOTICES)). Called at most once, and never after the completion.
    fn announced(&mut self, _tag: u64, _remaining: Span) {}

    /// An interrupt of a host with its own queues, whose completions are in its memory.
    fn interrupt(&mut self, _vector: u16) {}

    /// Requests a transfer of a host with memory that only the host reaches. It answers by [`Intake::answer`], in the
    /// order of the requests.
    fn ask(&mut self, _number: u64, _ask: Ask) {
        unreachable!("all of its memory is mapped");
    }

    /// Sends the data that can be sent without waiting.
    ///
    /// # Errors
    /// [`Gone`] when the connection must be closed.
    fn flush(&mut self) -> Result<(), Gone>;

    /// The time at which the client is disconnected unless bytes have arrived from it. It is called once a second.
    /// Either a client always has a deadline while it is connected, or it has one only at its beginning.
    fn deadline(&self) -> Option<Deadline> {
        None
    }

    /// Whether it has input that is read but not processed, and can continue now.
    fn has_more(&self) -> bool {
        false
    }

    /// Whether everything was sent.
    fn is_flushed(&self) -> bool;
}
