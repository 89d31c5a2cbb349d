//! Accepting hosts: one thread accepts, and a thread for each connection initialises it, serves discovery, or passes
//! the connection to the reactor of its drive.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::Duration;

use nandscape_transport_reactor::handle::Reservation;
use nandscape_transport_reactor::listening::{
    Accepting, ClientSlot, ClientSlots, Negotiating, Place, TimeLimit, TimeLimited, keep_alive,
};
use nandscape_transport_reactor::socket::{Address, Stream};
use nandscape_transport_reactor::{ConnectQueue, ConnectRefusal, Handle};
use nandscape_wire_nvme::Status;
use nandscape_wire_nvme::fabrics::{CONTROLLER_BUSY, Connect, DISABLE_SQ_FLOW};

use crate::connect::{Aim, aim_of, reason};
use crate::discovery::{Agreed, Discovery, log_page};
use crate::handshake::{Peer, Terms};
use crate::session::Session;

/// A drive that hosts can connect to.
pub struct Subsystem {
    /// Its NVMe Qualified Name.
    pub nqn: String,
    /// The reactor that owns it.
    pub handle: Handle,
    /// Its number there.
    pub number: u16,
}

/// The address of a listener, and the drives that it offers.
pub struct ListenerConfig {
    /// Where to listen: a TCP address.
    pub address: Address,
    /// Whether addresses other than loopback are allowed.
    pub allow_remote: bool,
    /// Connections at a time, after Connect.
    pub max_clients: usize,
    /// The longest time until Connect, all in all.
    pub patience: Duration,
    /// The drives.
    pub subsystems: Vec<Subsystem>,
    /// Receives a line for each host that failed.
    pub log: Box<dyn Fn(&str) + Send + Sync>,
}

/// Listens until it is dropped.
pub struct Listener {
    accepting: Accepting,
    server: Arc<Server>,
}

struct Server {
    subsystems: Vec<Subsystem>,
    slots: ClientSlots,
    /// Hosts of discovery controllers.
    discoveries: Negotiating,
    /// Controller ID of the next discovery controller.
    next_discovery: AtomicU16,
    negotiating: Arc<Negotiating>,
    patience: Duration,
    log: Box<dyn Fn(&str) + Send + Sync>,
}

/// Concurrent connections before Connect: each has a thread, for as long as the server is patient.
const MAX_NEGOTIATING: usize = 256;
/// The time of a host that has sent some bytes, even if others of its address wait. The handshake takes a few
/// milliseconds on a busy machine.
const GRACE: Duration = Duration::from_millis(100);
/// Hosts at a time that are connected to a discovery controller: each has a thread.
const MAX_DISCOVERIES: usize = 32;

impl Listener {
    /// Starts to listen.
    ///
    /// # Errors
    /// When the address cannot be listened at, or is no TCP address.
    pub fn start(config: ListenerConfig) -> io::Result<Listener> {
        let ListenerConfig { address, allow_remote, max_clients, patience, subsystems, log } = config;
        if let Address::Unix(_) = address {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "NVMe/TCP needs HOST:PORT, as in 127.0.0.1:4420"));
        }
        let listening = address.listen(allow_remote)?;
        let server = Arc::new(Server {
            subsystems,
            slots: ClientSlots::new(max_clients),
            discoveries: Negotiating::new(MAX_DISCOVERIES, Duration::ZERO),
            next_discovery: AtomicU16::new(1),
            negotiating: Arc::new(Negotiating::new(MAX_NEGOTIATING, GRACE)),
            patience,
            log,
        });
        let (takes, notes) = (server.clone(), server.clone());
        let failed = move |error| (notes.log)(&format!("nvme-tcp: a host could not be accepted: {error}"));
        let accepting = Accepting::start("nvme-tcp", listening, move |stream| takes.clone().take(stream), failed)?;
        Ok(Listener { accepting, server })
    }

    /// Its address, with the port that the system has chosen if the given one is 0.
    pub fn address(&self) -> &Address {
        self.accepting.address()
    }
}

impl Drop for Listener {
    /// Disconnects hosts that connect, for which the accepting thread may wait.
    fn drop(&mut self) {
        self.accepting.stop();
        self.server.negotiating.close();
        self.server.discoveries.close();
    }
}

/// A connection whose queue exists.
struct Admitted {
    terms: Terms,
    place: Reservation,
    slot: ClientSlot,
}

/// The outcome of a connection's first command.
enum Outcome {
    Queue(Admitted),
    Discovery {
        connect: Connect,
        entries: u16,
    },
    /// It was refused, and knows.
    Refused(String),
}

impl Server {
    /// Lets a host connect, once there is room.
    fn take(self: Arc<Server>, stream: Stream) {
        let stream = Arc::new(stream);
        let Some(place) = self.negotiating.enter(stream.clone()) else { return };
        let (server, own) = (self.clone(), place.clone());
        let started = thread::Builder::new().name("nvme-tcp host".to_owned()).spawn(move || server.serve(stream, &own));
        if let Err(error) = started {
            self.negotiating.leave(&place);
            (self.log)(&format!("nvme-tcp: a host was turned away: {error}"));
        }
    }

    /// A host's connection until its queue exists, on a separate thread.
    fn serve(&self, stream: Arc<Stream>, place: &Place) {
        let connected = self.connect(&stream, place);
        let kept = self.negotiating.leave(place);
        let report = |text: &str| (self.log)(&format!("nvme-tcp: {text}"));
        let (outcome, peer) = match connected {
            _ if !kept => {
                return report(
                    "a host was turned away before it had connected: all places were taken, and it had sent nothing, or its address had the most of them",
                );
            }
            // The log entry precedes the close, so that a host that sees the close finds the reason in the log.
            Err(error) => return report(&format!("a host failed to connect: {error}")),
            Ok(connected) => connected,
        };
        let result = match outcome {
            Outcome::Refused(reason) => return report(&format!("a host was refused: {reason}")),
            Outcome::Discovery { connect, entries } => self.enter_discovery(&stream, peer, &connect, entries),
            Outcome::Queue(admitted) => match Arc::into_inner(stream) {
                Some(stream) => start_session(stream, admitted),
                None => Err(io::Error::other("its socket is still in use")),
            },
        };
        if let Err(error) = result {
            report(&format!("a host's connection ended: {error}"));
        }
    }

    /// Initialises a connection and takes its Connect. A rejection is sent to the host here; whoever serves the
    /// connection sends the success.
    fn connect(&self, stream: &Stream, negotiates: &Place) -> io::Result<(Outcome, Peer<()>)> {
        let mut peer = Peer::initialize(TimeLimited::new(stream, TimeLimit::new(self.patience), negotiates))?;
        let (connect, data) = peer.connect()?;
        let outcome = data.and_then(|data| {
            let names = self.subsystems.iter().map(|subsystem| subsystem.nqn.as_str());
            match aim_of(&connect, &data, names)? {
                Aim::Discovery { entries } => Ok(Outcome::Discovery { connect, entries }),
                Aim::Drive { place, ask } => self.admit(&peer, &connect, place, ask, negotiates).map(Outcome::Queue),
            }
        });
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(refusal) => {
                peer.respond(connect.cid.get(), refusal.status, refusal.value.into(), 0)?;
                Outcome::Refused(reason(&refusal))
            }
        };
        Ok((outcome, peer.over(()).0))
    }

    /// Opens the queue that a host requests.
    fn admit<S>(
        &self,
        peer: &Peer<S>,
        connect: &Connect,
        place: usize,
        ask: ConnectQueue,
        negotiates: &Place,
    ) -> Result<Admitted, ConnectRefusal> {
        let Subsystem { handle, number: export, .. } = &self.subsystems[place];
        let slot = self.slots.take().map_err(|_| busy())?;
        let (queue, entries) = (ask.queue.0, ask.entries as u16);
        let (place, controller) = handle.connect_queue(ConnectQueue { export: *export, ..ask })?;
        if !self.negotiating.admit(negotiates) {
            return Err(busy());
        }
        let terms = Terms {
            digests: peer.digests,
            align: peer.align,
            transfers_each: peer.transfers_each,
            queue,
            entries,
            without_flow_control: connect.attributes & DISABLE_SQ_FLOW != 0,
            keep_alive_ms: connect.keep_alive_ms.get(),
            connect_cid: connect.cid.get(),
            controller,
        };
        Ok(Admitted { terms, place, slot })
    }

    /// Serves a host of the discovery controller. While there are too many, the one that connected first makes room,
    /// also with a long Keep Alive Timeout: a host needs no discovery controller for long.
    fn enter_discovery(&self, stream: &Arc<Stream>, peer: Peer<()>, connect: &Connect, entries: u16) -> io::Result<()> {
        let Some(place) = self.discoveries.enter(stream.clone()) else { return Ok(()) };
        let served = self.discover(stream, peer, connect, entries);
        match self.discoveries.leave(&place) {
            true => served,
            false => Err(io::Error::other("it made room for another host of the discovery controller")),
        }
    }

    /// Serves a host of the discovery controller until it leaves.
    fn discover(&self, stream: &Stream, peer: Peer<()>, connect: &Connect, entries: u16) -> io::Result<()> {
        let limit = |time| {
            stream.set_read_timeout(Some(time))?;
            stream.set_write_timeout(Some(time))
        };
        let (mut peer, ()) = peer.over(stream);
        limit(self.patience)?;
        let controller = self.next_discovery.fetch_add(1, Ordering::Relaxed).clamp(1, 0xffef);
        let head = if connect.attributes & DISABLE_SQ_FLOW != 0 { u16::MAX } else { 1 };
        peer.respond(connect.cid.get(), Status::SUCCESS, controller.into(), head)?;
        // The address that the host has reached is also one for its connections.
        let log = log_page(stream.local_address()?, self.subsystems.iter().map(|subsystem| subsystem.nqn.as_str()));
        let agreed = Agreed { controller, entries, keep_alive_ms: connect.keep_alive_ms.get() };
        Discovery::new(&mut peer, &log, agreed, &limit).serve()
    }
}

/// There are too many connections.
fn busy() -> ConnectRefusal {
    CONTROLLER_BUSY.into()
}

/// Hands a connection to the reactor of its drive.
fn start_session(stream: Stream, Admitted { terms, place, slot }: Admitted) -> io::Result<()> {
    stream.set_read_timeout(None)?;
    stream.set_write_timeout(None)?;
    stream.set_nonblocking()?;
    keep_alive(&stream)?;
    place.connect(Box::new(move |info, share| Box::new(Session::new(stream, terms, info, slot, share))));
    Ok(())
}
