//! Taking clients in: a thread that accepts, and for each client one that negotiates and then hands it to a reactor.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nandscape_transport_reactor::Handle;
use nandscape_transport_reactor::socket::{Address, Listening, Stream, rest_after_failure};

use crate::handshake::{Agreed, Exported, negotiate};
use crate::session::Session;

/// What is listened for, and where clients go.
pub struct ListenerConfig {
    /// Where to listen.
    pub address: Address,
    /// Whether TCP addresses other than loopback are allowed.
    pub allow_remote: bool,
    /// Clients at a time, those that negotiate included.
    pub max_clients: usize,
    /// The longest time that a client may take to negotiate, all in all.
    pub patience: Duration,
    /// The drives, each with the reactor that owns it and its number there.
    pub exports: Vec<(Exported, Handle, u16)>,
    /// Is told of clients that failed.
    pub log: Box<dyn Fn(&str) + Send + Sync>,
}

/// Listens until it is dropped.
pub struct Listener {
    listening: Arc<Listening>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

struct Server {
    exported: Vec<Exported>,
    reactors: Vec<(Handle, u16)>,
    seats: Arc<AtomicUsize>,
    max_clients: usize,
    patience: Duration,
    log: Box<dyn Fn(&str) + Send + Sync>,
}

/// One of the places for clients, free again when dropped.
pub(crate) struct Seat(Arc<AtomicUsize>);

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Listener {
    /// Starts to listen.
    ///
    /// # Errors
    /// When the address cannot be listened at.
    pub fn start(config: ListenerConfig) -> io::Result<Listener> {
        let ListenerConfig { address, allow_remote, max_clients, patience, exports, log } = config;
        let listening = Arc::new(address.listen(allow_remote)?);
        let (exported, reactors) =
            exports.into_iter().map(|(exported, handle, number)| (exported, (handle, number))).unzip();
        let seats = Arc::default();
        let server = Arc::new(Server { exported, reactors, seats, max_clients, patience, log });
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, taking) = (stop.clone(), listening.clone());
        let thread = thread::Builder::new().name("nbd".to_owned()).spawn(move || accept(&taking, &server, &stopped))?;
        Ok(Listener { listening, stop, thread: Some(thread) })
    }

    /// Where it listens: with the port that the system chose, where it was left to it.
    pub fn address(&self) -> &Address {
        self.listening.address()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        self.listening.interrupt();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn accept(listening: &Listening, server: &Arc<Server>, stop: &AtomicBool) {
    loop {
        let accepted = listening.accept();
        if stop.load(Ordering::SeqCst) {
            return;
        }
        match accepted {
            Ok(stream) => server.clone().take(stream),
            Err(error) if is_passing(&error) => {}
            Err(error) => {
                (server.log)(&format!("nbd: a client could not be accepted: {error}"));
                rest_after_failure();
            }
        }
    }
}

/// A client that left before it was accepted, or a signal.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted)
}

impl Server {
    /// Gives a client a seat and lets it negotiate.
    fn take(self: Arc<Server>, stream: Stream) {
        let taken = self.seats.fetch_add(1, Ordering::Relaxed);
        let seat = Seat(self.seats.clone());
        if taken >= self.max_clients {
            (self.log)(&format!("nbd: a client was turned away: there are {taken} already"));
            return;
        }
        let server = self.clone();
        let started = thread::Builder::new().name("nbd handshake".to_owned()).spawn(move || {
            let mut stream = stream;
            match server.negotiate(&mut stream) {
                Ok(Some(agreed)) => server.hand_over(stream, agreed, seat),
                Ok(None) => {}
                Err(error) => {
                    (server.log)(&format!("nbd: negotiation failed: {error}"));
                    // Who sees the socket closed finds the seat free.
                    drop(seat);
                }
            }
        });
        if let Err(error) = started {
            (self.log)(&format!("nbd: a client was turned away: {error}"));
        }
    }

    fn negotiate(&self, stream: &mut Stream) -> io::Result<Option<Agreed>> {
        let agreed = negotiate(&mut Hurried::new(stream, self.patience), &self.exported)?;
        stream.set_read_timeout(None)?;
        stream.set_write_timeout(None)?;
        stream.set_nonblocking()?;
        Ok(agreed)
    }

    fn hand_over(&self, stream: Stream, agreed: Agreed, seat: Seat) {
        let (handle, number) = &self.reactors[agreed.export];
        let make = move |info| Box::new(Session::new(stream, info, agreed.structured, seat)) as Box<_>;
        handle.connect(*number, Box::new(make));
    }
}

/// A stream for so long only, however often it is read and written.
struct Hurried<'a> {
    stream: &'a mut Stream,
    patience: Duration,
    begun: Instant,
}

impl Hurried<'_> {
    #[expect(clippy::disallowed_methods, reason = "a client's patience is in real time")]
    fn new(stream: &mut Stream, patience: Duration) -> Hurried<'_> {
        Hurried { stream, patience, begun: Instant::now() }
    }

    /// Does something within the time that is left.
    #[expect(clippy::disallowed_methods, reason = "a client's patience is in real time")]
    fn hurry<T>(&mut self, mut act: impl FnMut(&mut Stream) -> io::Result<T>) -> io::Result<T> {
        let late = || io::Error::new(io::ErrorKind::TimedOut, format!("it took longer than {:?}", self.patience));
        let left = self.patience.checked_sub(self.begun.elapsed()).filter(|left| !left.is_zero()).ok_or_else(late)?;
        self.stream.set_read_timeout(Some(left))?;
        self.stream.set_write_timeout(Some(left))?;
        act(self.stream).map_err(|error| if error.kind() == io::ErrorKind::WouldBlock { late() } else { error })
    }
}

impl Read for Hurried<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self.hurry(|stream| stream.read(bytes))? {
            0 if !bytes.is_empty() => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the client hung up")),
            count => Ok(count),
        }
    }
}

impl Write for Hurried<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.hurry(|stream| stream.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
