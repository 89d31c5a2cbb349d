//! Accepts clients on one thread, and serves each on a separate thread, a bounded number. Ending the server ends
//! them.
//!
//! A new client always gets a place. If all are taken, another client is disconnected: the longest connected of those
//! without a whole message yet, otherwise the one whose last message is the oldest. Clients that are silent, or send
//! a message byte by byte, therefore keep no other client out.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::Shutdown;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nandscape_transport_reactor::listening::Accepting;
use nandscape_transport_reactor::socket::{Address, Listening, Stream};

/// Serves one client, whose connection is closed afterwards, also after an error. It calls the given function each time it
/// has received a message.
pub(crate) type Serve = Box<dyn Fn(&Stream, &dyn Fn()) -> io::Result<()> + Send + Sync>;

/// The service for clients, and its limits.
pub(crate) struct Service {
    /// Names the threads.
    pub(crate) name: &'static str,
    /// Clients at a time.
    pub(crate) max_clients: usize,
    /// The longest wait for a client to send; `None` is no limit.
    pub(crate) read_patience: Option<Duration>,
    /// The longest wait for a client to receive sent data.
    pub(crate) write_patience: Duration,
    /// Sent to a client that is disconnected for another one.
    pub(crate) refusal: Vec<u8>,
    /// Serves one client.
    pub(crate) serve: Serve,
}

/// Listens until it is dropped, which disconnects all clients.
pub(crate) struct Server {
    accepting: Accepting,
    shared: Arc<Shared>,
}

/// State shared by the threads of clients. It excludes the listening socket, which must not outlive the server.
struct Shared {
    service: Service,
    clients: Mutex<Clients>,
    /// Messages of clients so far.
    heard: AtomicU64,
}

#[derive(Default)]
struct Clients {
    next: u64,
    connected: BTreeMap<u64, Client>,
}

struct Client {
    stream: Arc<Stream>,
    thread: JoinHandle<()>,
    /// The count of messages with its last one: the larger, the later. 0 before its first.
    heard: Arc<AtomicU64>,
}

impl Clients {
    /// Removes the client that makes room for another. Clients are numbered in the order in which they connected.
    fn pop_silent(&mut self) -> Option<Client> {
        let silence = |(number, client): &(&u64, &Client)| (client.heard.load(Ordering::Relaxed), **number);
        let number = *self.connected.iter().min_by_key(silence)?.0;
        self.connected.remove(&number)
    }
}

impl Server {
    pub(crate) fn start(listening: Listening, service: Service) -> io::Result<Server> {
        let name = service.name;
        let shared = Arc::new(Shared { service, clients: Mutex::default(), heard: AtomicU64::new(0) });
        let takes = shared.clone();
        let accepting = Accepting::start(name, listening, move |stream| takes.take(stream), |_| {})?;
        Ok(Server { accepting, shared })
    }

    pub(crate) fn address(&self) -> &Address {
        self.accepting.address()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // No client is accepted any more.
        self.accepting.end();
        let connected = std::mem::take(&mut self.shared.clients().connected);
        connected.values().for_each(|client| client.stream.shutdown(Shutdown::Both));
        for client in connected.into_values() {
            let _ = client.thread.join();
        }
    }
}

impl Shared {
    /// Gives a client a thread. It is rejected only if the system has none.
    fn take(self: &Arc<Shared>, stream: Stream) {
        let mut clients = self.clients();
        if clients.connected.len() >= self.service.max_clients
            && let Some(silent) = clients.pop_silent()
        {
            self.turn_away(&silent.stream);
            silent.stream.shutdown(Shutdown::Both);
        }
        let (number, stream) = (clients.next, Arc::new(stream));
        clients.next += 1;
        let heard = Arc::<AtomicU64>::default();
        let (shared, socket, hears) = (self.clone(), stream.clone(), heard.clone());
        let name = format!("{} client", self.service.name);
        let spawned = thread::Builder::new().name(name).spawn(move || {
            // An error means that the client has broken off.
            let _ = shared.serve(&socket, &|| hears.store(shared.next_heard(), Ordering::Relaxed));
            socket.shutdown(Shutdown::Both);
            // It has to have been put there first, so this waits for the lock.
            shared.clients().connected.remove(&number);
        });
        match spawned {
            Ok(thread) => drop(clients.connected.insert(number, Client { stream, thread, heard })),
            Err(_) => self.turn_away(&stream),
        }
    }

    fn next_heard(&self) -> u64 {
        self.heard.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn serve(&self, stream: &Stream, heard: &dyn Fn()) -> io::Result<()> {
        stream.set_read_timeout(self.service.read_patience)?;
        stream.set_write_timeout(Some(self.service.write_patience))?;
        (self.service.serve)(stream, heard)
    }

    fn turn_away(&self, mut stream: &Stream) {
        // A new socket has room for it. A client that does not get it sees the connection closed.
        let _ = stream.set_nonblocking().and_then(|()| stream.write_all(&self.service.refusal));
    }

    fn clients(&self) -> MutexGuard<'_, Clients> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
