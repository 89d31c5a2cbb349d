//! Accepting clients: one thread accepts, and a thread for each client negotiates and then passes the client to a
//! reactor.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use nandscape_drive::DriveInfo;
use nandscape_transport_reactor::Handle;
use nandscape_transport_reactor::handle::{Refused, Reservation};
use nandscape_transport_reactor::listening::{
    Accepting, ClientSlot, ClientSlots, Negotiating, Place, TimeLimit, TimeLimited, keep_alive,
};
use nandscape_transport_reactor::socket::{Address, Stream};

use nandscape_wire_nbd::reply;

use crate::handshake::{Agreed, Choice, Denied, Drives, Exported, negotiate};
use crate::session::Session;

/// The address of a listener, and the drives that it offers.
pub struct ListenerConfig {
    /// Where to listen.
    pub address: Address,
    /// Whether TCP addresses other than loopback are allowed.
    pub allow_remote: bool,
    /// Concurrent clients, after negotiation.
    pub max_clients: usize,
    /// The longest time that a client may take to negotiate, all in all.
    pub patience: Duration,
    /// The drives, each with the reactor that owns it and its number there.
    pub exports: Vec<(Exported, Handle, u16)>,
    /// Receives notes on clients that failed.
    pub log: Box<dyn Fn(&str) + Send + Sync>,
}

/// Listens until it is dropped.
pub struct Listener {
    accepting: Accepting,
    server: Arc<Server>,
}

struct Server {
    exported: Vec<Exported>,
    reactors: Vec<(Handle, u16)>,
    slots: ClientSlots,
    negotiating: Negotiating,
    patience: Duration,
    log: Box<dyn Fn(&str) + Send + Sync>,
}

/// Clients that negotiate at a time: each has a thread, until its time limit.
const MAX_NEGOTIATING: usize = 256;
/// The time of a client that has sent some bytes, even if others of its address wait: negotiation takes milliseconds.
const GRACE: Duration = Duration::from_millis(100);

/// A client's way into a drive.
pub(crate) struct Admission {
    place: Reservation,
    slot: ClientSlot,
}

impl Admission {
    /// The drive's description, which its session uses.
    pub(crate) fn info(&self) -> DriveInfo {
        self.place.info()
    }
}

impl Listener {
    /// Starts to listen.
    ///
    /// # Errors
    /// When the address cannot be listened at.
    pub fn start(config: ListenerConfig) -> io::Result<Listener> {
        let ListenerConfig { address, allow_remote, max_clients, patience, exports, log } = config;
        let listening = address.listen(allow_remote)?;
        let (exported, reactors) =
            exports.into_iter().map(|(exported, handle, number)| (exported, (handle, number))).unzip();
        let (slots, negotiating) = (ClientSlots::new(max_clients), Negotiating::new(MAX_NEGOTIATING, GRACE));
        let server = Arc::new(Server { exported, reactors, slots, negotiating, patience, log });
        let (takes, notes) = (server.clone(), server.clone());
        let failed = move |error| (notes.log)(&format!("nbd: a client could not be accepted: {error}"));
        let accepting = Accepting::start("nbd", listening, move |stream| takes.clone().take(stream), failed)?;
        Ok(Listener { accepting, server })
    }

    /// Its address, with the port that the system has chosen if the given one is 0.
    pub fn address(&self) -> &Address {
        self.accepting.address()
    }
}

impl Drop for Listener {
    /// Disconnects clients that negotiate, for which the accepting thread may wait.
    fn drop(&mut self) {
        self.accepting.stop();
        self.server.negotiating.close();
    }
}

impl Server {
    /// Lets a client negotiate, once there is room.
    fn take(self: Arc<Server>, stream: Stream) {
        let stream = Arc::new(stream);
        let Some(place) = self.negotiating.enter(stream.clone()) else { return };
        let (server, own) = (self.clone(), place.clone());
        let started = thread::Builder::new().name("nbd handshake".to_owned()).spawn(move || server.serve(stream, &own));
        if let Err(error) = started {
            self.negotiating.leave(&place);
            (self.log)(&format!("nbd: a client was turned away: {error}"));
        }
    }

    /// A client's negotiation, on a separate thread.
    fn serve(&self, stream: Arc<Stream>, place: &Place) {
        let limit = TimeLimit::new(self.patience);
        let drives = ForClient { server: self, place, limit };
        let agreed = negotiate(&mut TimeLimited::new(&stream, limit, place), &self.exported, &drives);
        let made_room = "nbd: a client was turned away before it had negotiated: all places were taken, and it had sent nothing, or its address had the most of them";
        // After leaving, this is the only owner of the socket.
        let stream = self.negotiating.leave(place).then(|| Arc::into_inner(stream)).flatten();
        let Some(stream) = stream else { return (self.log)(made_room) };
        let outcome = match agreed {
            Ok(Some(agreed)) => start_session(stream, agreed),
            Ok(None) => Ok(()),
            Err(error) => {
                // The log entry precedes the close, so that a client that sees the close finds the reason in the log.
                (self.log)(&format!("nbd: negotiation failed: {error}"));
                drop(stream);
                return;
            }
        };
        if let Err(error) = outcome {
            (self.log)(&format!("nbd: a client could not be handed over: {error}"));
        }
    }

    /// Reserves a client slot and a connection to the drive, for which it waits within the client's time limit.
    fn admit(&self, client: &Place, choice: Choice, limit: TimeLimit) -> Result<Admission, Denied> {
        let denied = |error, reason| self.denied(error, reason);
        let slot = self.slots.take();
        let slot = slot.map_err(|taken| denied(reply::ERR_POLICY, format!("there are {taken} clients already")))?;
        let (handle, number) = &self.reactors[choice.export];
        match handle.reserve_namespace(*number, choice.nsid, limit.left()) {
            Ok(place) if self.negotiating.admit(client) => Ok(Admission { place, slot }),
            Ok(_) => Err(denied(reply::ERR_POLICY, "it took too long to negotiate".to_owned())),
            Err(refused) => Err(self.refused(refused)),
        }
    }

    fn refused(&self, refused: Refused) -> Denied {
        let error = match refused {
            Refused::Ending => reply::ERR_SHUTDOWN,
            Refused::NoNamespace(_) => reply::ERR_UNKNOWN,
            _ => reply::ERR_POLICY,
        };
        self.denied(error, refused.to_string())
    }

    fn denied(&self, error: u32, reason: String) -> Denied {
        (self.log)(&format!("nbd: a client was turned away: {reason}"));
        Denied { error, reason }
    }
}

/// The drives, for a client that negotiates.
struct ForClient<'a> {
    server: &'a Server,
    /// Its place among the negotiating clients.
    place: &'a Place,
    limit: TimeLimit,
}

impl Drives for ForClient<'_> {
    fn admit(&self, choice: Choice) -> Result<Admission, Denied> {
        self.server.admit(self.place, choice, self.limit)
    }

    fn info(&self, choice: Choice) -> Result<DriveInfo, Denied> {
        let (handle, number) = &self.server.reactors[choice.export];
        handle.info(*number, choice.nsid).map_err(|refused| self.server.refused(refused))
    }

    fn namespaces(&self, export: usize) -> Vec<DriveInfo> {
        let (handle, number) = &self.server.reactors[export];
        handle.namespaces(*number)
    }
}

/// Hands a client that has negotiated to its reactor.
fn start_session(stream: Stream, agreed: Agreed) -> io::Result<()> {
    stream.set_read_timeout(None)?;
    stream.set_write_timeout(None)?;
    stream.set_nonblocking()?;
    keep_alive(&stream)?;
    let Agreed { admission: Admission { place, slot }, structured } = agreed;
    place.connect(Box::new(move |info, share| Box::new(Session::new(stream, info, structured, slot, share))));
    Ok(())
}
