//! A handle to a reactor for other threads: they pass clients and orders, request figures, and end it.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use nandscape_drive::DriveInfo;
use nandscape_drive::layer::Shown;
use nandscape_drive::mem::Dma;
use nandscape_sim::{Histogram, Span, Time};
use nandscape_wire_nvme::Status;
use nandscape_wire_nvme::fabrics::CONTROLLER_BUSY;

use crate::association::{ConnectQueue, ConnectRefusal};
use crate::buffers::Share;
use crate::client::Client;
use crate::clock::WallClock;
use crate::doorbells::Doorbells;
use crate::export::Absence;
use crate::order::{FaultCount, Order};
use crate::port::ConnectionId;
use crate::timing::Timing;
use crate::waiter::Waker;
use crate::watch::{Look, Wants};

/// Makes a client on the reactor's thread, once it is connected, from the drive's description and its share of the memory.
pub type MakeClient = Box<dyn FnOnce(DriveInfo, Share) -> Box<dyn Client> + Send>;

/// Makes a host with its own queues on the reactor's thread, from its connection.
pub type MakeHost = Box<dyn FnOnce(DriveInfo) -> NewHost + Send>;

/// A host with its own queues, to be connected.
pub struct NewHost {
    /// Its client in the reactor.
    pub client: Box<dyn Client>,
    /// Its memory.
    pub memory: Rc<dyn Dma>,
    /// Its interrupt vectors.
    pub vectors: u16,
    /// The PCI function that it uses, by its number among those of the drive.
    pub function: u16,
    /// Watches its doorbells.
    pub doorbells: Rc<dyn Doorbells>,
}

/// Why a client is refused.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refused {
    /// The drive rejects the connection, or does not exist.
    #[error("the drive takes no more connections ({0})")]
    Drive(Status),
    /// The drive has no namespace of this number for its clients.
    #[error("the drive has no namespace {0} for this kind of client")]
    NoNamespace(u32),
    /// The drive's logical blocks have metadata, of that many bytes, which clients of single commands know nothing of.
    #[error(
        "the drive is formatted with {0} bytes of metadata a logical block, which this kind of client cannot reach; \
         a host with an NVMe controller of its own can"
    )]
    Metadata(u32),
    /// Each of the drive's queue pairs has a client, or is promised to one.
    #[error("all {pairs} queue pairs of the drive are taken by other clients")]
    Taken {
        /// The number of queue pairs.
        pairs: usize,
    },
    /// No queue pair became free in time.
    #[error("the drive has no free queue pair: commands of earlier clients have not ended within {} ms", .0.as_millis())]
    Late(Duration),
    /// The reactor accepts no more clients.
    #[error("the drive is about to end")]
    Ending,
}

/// A message to a reactor.
pub(crate) enum Message {
    Connect { export: u16, nsid: Option<u32>, make: MakeClient },
    Attach { export: u16, make: MakeHost, reply: Sender<Result<(), Refused>> },
    Reserve { export: u16, nsid: Option<u32>, reply: Sender<Result<Reservation, Refused>> },
    ConnectQueue { ask: ConnectQueue, reply: Sender<Result<(Reservation, u16), ConnectRefusal>> },
    Start { connection: ConnectionId, make: MakeClient },
    Release(ConnectionId),
    Info { export: u16, nsid: Option<u32>, reply: Sender<Result<DriveInfo, Refused>> },
    Namespaces { export: u16, reply: Sender<Vec<DriveInfo>> },
    Order { export: u16, order: Order, reply: Sender<Result<(), String>> },
    Figures { not_before: Time, reply: Sender<Arc<Figures>> },
    Look { wants: Wants, reply: Sender<Look> },
    LookAway,
    Stop,
}

/// Figures of a reactor since it began.
#[derive(Clone, Default)]
pub struct Figures {
    /// Drive time.
    pub now: Time,
    /// By drive, in the order of the setup.
    pub exports: Vec<ExportFigures>,
    /// How well it keeps up.
    pub timing: Timing,
    /// Clients connected.
    pub clients: usize,
    /// Commands in the drives.
    pub outstanding: usize,
    /// Why arrivals are not recorded, or no longer, although they should be.
    pub recording_problem: Option<String>,
    /// The first drive that was not flushed at the end, and why.
    pub flush_problem: Option<String>,
}

/// Figures of one drive.
#[derive(Clone, Default)]
pub struct ExportFigures {
    /// Its name.
    pub name: String,
    /// Reads, compares, verifies.
    pub reads: Tally,
    /// Writes of any kind.
    pub writes: Tally,
    /// Everything without data: flushes, deallocations.
    pub others: Tally,
    /// Flushes, which are among the others.
    pub flushes: Tally,
    /// Writes with Force Unit Access, which are among the writes.
    pub forced_writes: Tally,
    /// The drive's own counters, by name.
    pub counters: BTreeMap<&'static str, f64>,
    /// The figures of each of its parts, by the part's name.
    pub parts: Vec<(String, BTreeMap<&'static str, f64>)>,
    /// The figures of each layer over it for people, by the layer's name.
    pub layers: Vec<(String, Vec<Shown>)>,
    /// Commands that failed because data could not be written or read back, as the SMART log counts them.
    pub media_errors: u64,
    /// Why the drive takes no writes, if it takes none.
    pub read_only: Option<String>,
    /// Why the store that has the drive does not read it, if so.
    pub absence: Option<Absence>,
    /// Its fault rules, and how often each struck.
    pub faults: Vec<FaultCount>,
    /// Its present settings that can be changed, by key.
    pub settings: Vec<(String, String)>,
}

/// Commands of one kind.
#[derive(Clone, Default)]
pub struct Tally {
    /// Bytes of the commands that succeeded.
    pub bytes: u64,
    /// Commands that failed.
    pub errors: u64,
    /// Latencies in drive time of the commands that succeeded.
    pub latency: Histogram,
}

impl ExportFigures {
    /// All kinds with their names. The first ones count each command once; flushes and writes with FUA are among
    /// them.
    pub fn kinds(&self) -> [(&'static str, &Tally); 5] {
        [
            ("reads", &self.reads),
            ("writes", &self.writes),
            ("others", &self.others),
            ("flushes", &self.flushes),
            ("fua_writes", &self.forced_writes),
        ]
    }
}

impl Tally {
    /// Whether any command has completed.
    pub fn is_empty(&self) -> bool {
        self.latency.count() == 0 && self.errors == 0
    }

    /// Adds a command that has succeeded, or none.
    pub(crate) fn add(&mut self, bytes: u64, latency: Option<Span>) {
        match latency {
            Some(latency) => {
                self.bytes += bytes;
                self.latency.record(latency);
            }
            None => self.errors += 1,
        }
    }
}

/// The age up to which figures are recent.
pub const RECENT: Span = Span::from_ms(100);

/// A handle to a reactor. Once the reactor has ended, messages have no effect.
#[derive(Clone)]
pub struct Handle {
    messages: Sender<Message>,
    waker: Waker,
    clock: WallClock,
}

/// A connection to a drive that waits for its client: given back when dropped without one.
pub struct Reservation {
    handle: Handle,
    connection: ConnectionId,
    info: DriveInfo,
    taken: bool,
}

impl Reservation {
    pub(crate) fn new(handle: Handle, connection: ConnectionId, info: DriveInfo) -> Reservation {
        Reservation { handle, connection, info, taken: false }
    }

    /// The drive's description, which the client also gets.
    pub fn info(&self) -> DriveInfo {
        self.info
    }

    /// Attaches the client. If the reactor ends meanwhile, `make` is dropped.
    pub fn connect(mut self, make: MakeClient) {
        self.taken = true;
        self.handle.send(Message::Start { connection: self.connection, make });
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if !self.taken {
            self.handle.send(Message::Release(self.connection));
        }
    }
}

impl Handle {
    pub(crate) fn new(waker: Waker, clock: WallClock) -> (Handle, Receiver<Message>) {
        let (messages, inbox) = channel();
        (Handle { messages, waker, clock }, inbox)
    }

    /// The reactor's clock. Completions are stamped by it.
    pub fn clock(&self) -> WallClock {
        self.clock
    }

    /// Connects a client to a drive. If the drive refuses, or the reactor has ended, `make` is dropped.
    pub fn connect(&self, export: u16, make: MakeClient) {
        self.connect_namespace(export, None, make);
    }

    /// The same to a namespace; `None` is the drive's first.
    pub fn connect_namespace(&self, export: u16, nsid: Option<u32>, make: MakeClient) {
        self.send(Message::Connect { export, nsid, make });
    }

    /// Connects a host with its own queues to a drive's controller, which no other host may use. Blocks until the
    /// reactor has answered, which is between two of its turns.
    ///
    /// # Errors
    /// [`Refused`] when the drive has other connections, or commands of the last one under way, or the reactor ends.
    pub fn attach(&self, export: u16, make: MakeHost) -> Result<(), Refused> {
        let (reply, answer) = channel();
        self.send(Message::Attach { export, make, reply });
        answer.recv().unwrap_or(Err(Refused::Ending))
    }

    /// Opens a connection to a drive for a client that will connect later. Blocks until the reactor has answered:
    /// within two of its turns, or, if queue pairs of earlier clients are about to be released, when one is.
    ///
    /// # Errors
    /// [`Refused`] when the drive takes no more connections, none became free within `limit`, or the reactor ends.
    pub fn reserve(&self, export: u16, limit: Duration) -> Result<Reservation, Refused> {
        self.reserve_namespace(export, None, limit)
    }

    /// The same to a namespace; `None` is the drive's first.
    ///
    /// # Errors
    /// As [`Handle::reserve`], and when the drive has no such namespace.
    pub fn reserve_namespace(&self, export: u16, nsid: Option<u32>, limit: Duration) -> Result<Reservation, Refused> {
        let (reply, answer) = channel();
        self.send(Message::Reserve { export, nsid, reply });
        answer.recv_timeout(limit).unwrap_or_else(|none| match none {
            RecvTimeoutError::Timeout => Err(Refused::Late(limit)),
            RecvTimeoutError::Disconnected => Err(Refused::Ending),
        })
    }

    /// Opens a connection for one queue of a host whose commands pass as messages; returns the Controller ID, too. Blocks
    /// until the reactor has answered, which is between two of its turns.
    ///
    /// # Errors
    /// The status of Connect; Controller Busy when the reactor ends.
    pub fn connect_queue(&self, ask: ConnectQueue) -> Result<(Reservation, u16), ConnectRefusal> {
        let (reply, answer) = channel();
        self.send(Message::ConnectQueue { ask, reply });
        answer.recv().unwrap_or(Err(CONTROLLER_BUSY.into()))
    }

    /// The present description of a drive's namespace; `None` is its first. Blocks until the reactor has answered,
    /// which is between two of its turns.
    ///
    /// # Errors
    /// [`Refused`] when there is no such drive or namespace, or the reactor has ended.
    pub fn info(&self, export: u16, nsid: Option<u32>) -> Result<DriveInfo, Refused> {
        let (reply, answer) = channel();
        self.send(Message::Info { export, nsid, reply });
        answer.recv().unwrap_or(Err(Refused::Ending))
    }

    /// The present descriptions of a drive's namespaces, by number. Blocks as [`Handle::info`].
    pub fn namespaces(&self, export: u16) -> Vec<DriveInfo> {
        let (reply, answer) = channel();
        self.send(Message::Namespaces { export, reply });
        answer.recv().unwrap_or_default()
    }

    /// Gives a drive an order. Blocks until the reactor has passed it on, which is between two of its turns.
    ///
    /// # Errors
    /// The drive's reason to refuse it, or that the drive has ended.
    pub fn order(&self, export: u16, order: Order) -> Result<(), String> {
        let (reply, answer) = channel();
        self.send(Message::Order { export, order, reply });
        answer.recv().unwrap_or_else(|_| Err("the drives have ended".to_owned()))
    }

    /// Figures since the beginning; `None` when the reactor has ended.
    pub fn figures(&self) -> Option<Arc<Figures>> {
        self.figures_of(self.clock.now())
    }

    /// As [`Handle::figures`], but up to [`RECENT`] old, so that frequent requests hardly delay the drives.
    pub fn recent_figures(&self) -> Option<Arc<Figures>> {
        let now = self.clock.now().since(Time::ZERO);
        self.figures_of(Time::ZERO + now.saturating_sub(RECENT))
    }

    /// The events inside the drives since the last look, beyond their figures; `None` when the reactor has ended. The
    /// first look begins to gather them, which costs each command some nanoseconds until [`Handle::look_away`]. Blocks
    /// until the reactor has answered, which is between two of its turns.
    pub fn look(&self, wants: Wants) -> Option<Look> {
        let (reply, look) = channel();
        self.send(Message::Look { wants, reply });
        look.recv().ok()
    }

    /// Ends what [`Handle::look`] has begun.
    pub fn look_away(&self) {
        self.send(Message::LookAway);
    }

    fn figures_of(&self, not_before: Time) -> Option<Arc<Figures>> {
        let (reply, figures) = channel();
        self.ask(not_before, reply);
        figures.recv().ok()
    }

    pub(crate) fn ask(&self, not_before: Time, reply: Sender<Arc<Figures>>) {
        self.send(Message::Figures { not_before, reply });
    }

    /// Makes the reactor receive nothing more, finish the work in the drives, flush, and end.
    pub fn stop(&self) {
        self.send(Message::Stop);
    }

    /// Wakes the reactor to look after its clients, if it sleeps.
    pub fn wake(&self) {
        self.waker.wake();
    }

    pub(crate) fn send(&self, message: Message) {
        // A reactor that has ended does not listen.
        let _ = self.messages.send(message);
        self.waker.wake();
    }
}
