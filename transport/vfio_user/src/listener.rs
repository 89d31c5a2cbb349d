//! Accepts clients at a unix socket, which represents one PCI function: a thread that accepts, and one for the client.
//! While a client is connected, others are rejected; when it has left, the next one is served.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use nandscape_transport_reactor::Handle;
use nandscape_transport_reactor::listening::Accepting;
use nandscape_transport_reactor::socket::{Address, Stream};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::session::Session;

/// A function, and its socket.
pub struct Function {
    /// The path of its socket.
    pub path: PathBuf,
    /// The reactor that owns its drive.
    pub handle: Handle,
    /// The number of its drive in the reactor.
    pub drive: u16,
    /// Its own number among the functions of the drive: the next guest of the function finds the state that one guest
    /// has saved.
    pub number: u16,
    /// I/O queue pairs of the drive's controllers.
    pub queue_pairs: u16,
    /// The way of doorbells.
    pub doorbells: DoorbellMode,
    /// Is notified of clients that failed.
    pub log: Arc<dyn Fn(&str) + Send + Sync>,
}

/// The way of guests' doorbells.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum DoorbellMode {
    /// Each by a message, even if the guest has doorbell buffers.
    Trapped,
    /// In the guest's doorbell buffers, which are checked when a message announces a change: one message for all
    /// changes until then. If the guest has no buffers, each by a message.
    Shadow,
    /// Through the guest's doorbell buffers while the reactor is awake, else by messages.
    Buffered,
    /// In a page that the guest maps, without messages, so the reactor has to poll.
    Mapped,
}

/// Listens until it is dropped.
pub struct Listener {
    accepting: Accepting,
    shared: Arc<Shared>,
}

/// The client that is served.
#[derive(Default)]
struct Shared(Mutex<Option<Arc<UnixStream>>>);

impl Shared {
    fn client(&self) -> Option<Arc<UnixStream>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_client(&self, client: Option<Arc<UnixStream>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = client;
    }

    /// Cuts the client off.
    fn disconnect(&self) {
        if let Some(client) = self.client() {
            // It fails if the client has left already.
            let _ = client.shutdown(std::net::Shutdown::Both);
        }
    }
}

impl Listener {
    /// Starts to listen.
    ///
    /// # Errors
    /// When the path is taken or unavailable.
    pub fn start(function: Function) -> io::Result<Listener> {
        let listening = Address::Unix(function.path.clone()).listen(false)?;
        let shared = Arc::<Shared>::default();
        let log = function.log.clone();
        let failed = move |error| log(&format!("vfio-user: a client could not be accepted: {error}"));
        let mut serving = Serving { function: Arc::new(function), shared: shared.clone(), thread: None };
        let take = move |stream| match stream {
            Stream::Unix(stream) => serving.take(stream),
            // It listens at a path.
            Stream::Tcp(_) => {}
        };
        let accepting = Accepting::start("vfio-user", listening, take, failed)?;
        Ok(Listener { accepting, shared })
    }
}

impl Drop for Listener {
    /// The thread that accepts may wait for a client that is cut off.
    fn drop(&mut self) {
        self.accepting.stop();
        self.shared.disconnect();
    }
}

/// The thread of the client that is served. When this is dropped, the client is cut off and its thread has ended.
struct Serving {
    function: Arc<Function>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Serving {
    /// Serves a client on a separate thread, unless one is connected.
    fn take(&mut self, stream: UnixStream) {
        if self.is_busy() {
            let path = self.function.path.display();
            let text = format!("vfio-user: a client was turned away: another one is connected to {path}");
            return (self.function.log)(&text);
        }
        // The previous thread may be in the middle of a reply that nothing reads.
        self.end();
        let stream = Arc::new(stream);
        self.shared.set_client(Some(stream.clone()));
        let (with, shared) = (self.function.clone(), self.shared.clone());
        let serves = move || {
            serve(stream, &with);
            // The next client is taken in when this thread has ended.
            shared.set_client(None);
        };
        match thread::Builder::new().name("vfio-user client".to_owned()).spawn(serves) {
            Ok(thread) => self.thread = Some(thread),
            Err(error) => {
                self.shared.set_client(None);
                (self.function.log)(&format!("vfio-user: a client was turned away: {error}"));
            }
        }
    }

    fn is_busy(&self) -> bool {
        let is_served = self.thread.as_ref().is_some_and(|thread| !thread.is_finished());
        is_served && self.shared.client().is_some_and(|client| !has_left(&client))
    }

    /// Cuts the client off and waits for its thread, which leaves the controller.
    fn end(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.shared.disconnect();
            let _ = thread.join();
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.end();
    }
}

fn serve(stream: Arc<UnixStream>, function: &Function) {
    let outcome = match Session::start(stream.clone(), function, function.log.clone()) {
        Ok(session) => session.run().map_err(|error| format!("vfio-user: a client was disconnected: {error}")),
        Err(error) => Err(format!("vfio-user: a client was turned away: {error}")),
    };
    if let Err(reason) = outcome {
        (function.log)(&reason);
    }
    // The listener keeps the socket too.
    let _ = stream.shutdown(std::net::Shutdown::Both);
}

/// Whether the other side has closed the connection.
fn has_left(client: &UnixStream) -> bool {
    let mut polled = [PollFd::new(client, PollFlags::RDHUP)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut polled, Some(&now)).is_ok_and(|ready| ready > 0)
}
