//! Takes clients in at a unix socket, which stands for one PCI function: a thread that accepts, and one for the client.
//! While a client is there, others are turned away; when it has left, the next one is served.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use nandscape_transport_reactor::Handle;
use nandscape_transport_reactor::socket::{Address, Listening, Stream, rest_after_failure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::session::Session;

/// A function, and where it listens.
pub struct Function {
    /// The path of its socket.
    pub path: PathBuf,
    /// The reactor that owns its drive.
    pub handle: Handle,
    /// The number of its drive there.
    pub drive: u16,
    /// I/O queue pairs of the drive's controllers.
    pub queue_pairs: u16,
    /// How doorbells come.
    pub doorbells: DoorbellMode,
    /// Is told of clients that failed.
    pub log: Arc<dyn Fn(&str) + Send + Sync>,
}

/// How the doorbells of guests come.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum DoorbellMode {
    /// Each by a message, also where the guest has doorbell buffers.
    Trapped,
    /// Through the guest's doorbell buffers while the reactor is awake, else by messages.
    Buffered,
    /// In a page that the guest maps. They come with no message, and the reactor has to look.
    Mapped,
}

/// Listens until it is dropped.
pub struct Listener {
    listening: Arc<Listening>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    /// The client that is served.
    client: Mutex<Option<Arc<UnixStream>>>,
}

impl Shared {
    fn client(&self) -> Option<Arc<UnixStream>> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_client(&self, client: Option<Arc<UnixStream>>) {
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = client;
    }
}

impl Listener {
    /// Starts to listen.
    ///
    /// # Errors
    /// When the path is taken or cannot be had.
    pub fn start(function: Function) -> io::Result<Listener> {
        let listening = Arc::new(Address::Unix(function.path.clone()).listen(false)?);
        let shared = Arc::<Shared>::default();
        let (taking, with) = (listening.clone(), shared.clone());
        let thread = thread::Builder::new().name("vfio-user".to_owned()).spawn(move || {
            accept_all(&taking, &Arc::new(function), &with);
        })?;
        Ok(Listener { listening, shared, thread: Some(thread) })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        self.listening.interrupt();
        if let Some(client) = self.shared.client() {
            // It fails where the client has left already.
            let _ = client.shutdown(std::net::Shutdown::Both);
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn accept_all(listening: &Listening, function: &Arc<Function>, shared: &Shared) {
    let mut serving: Option<JoinHandle<()>> = None;
    loop {
        let accepted = listening.accept();
        if shared.stop.load(Ordering::SeqCst) {
            break;
        }
        match accepted {
            Ok(Stream::Unix(stream)) => serving = take(stream, serving, function, shared),
            // It listens at a path.
            Ok(Stream::Tcp(_)) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                (function.log)(&format!("vfio-user: a client could not be accepted: {error}"));
                rest_after_failure();
            }
        }
    }
    if let Some(client) = shared.client() {
        let _ = client.shutdown(std::net::Shutdown::Both);
    }
    if let Some(serving) = serving {
        let _ = serving.join();
    }
}

/// Serves a client on a thread of its own, unless there is one; the thread that serves now.
fn take(
    stream: UnixStream,
    serving: Option<JoinHandle<()>>,
    function: &Arc<Function>,
    shared: &Shared,
) -> Option<JoinHandle<()>> {
    if let Some(before) = serving {
        let is_there = shared.client().is_some_and(|client| !before.is_finished() && !has_left(&client));
        if is_there {
            let path = function.path.display();
            (function.log)(&format!("vfio-user: a client was turned away: another one is connected to {path}"));
            return Some(before);
        }
        // It may be in the middle of a reply that nobody takes.
        if let Some(client) = shared.client() {
            let _ = client.shutdown(std::net::Shutdown::Both);
        }
        // Its controller is left when the thread ends.
        let _ = before.join();
    }
    let stream = Arc::new(stream);
    shared.set_client(Some(stream.clone()));
    let with = function.clone();
    let thread = thread::Builder::new().name("vfio-user client".to_owned()).spawn(move || serve(stream, &with));
    match thread {
        Ok(thread) => Some(thread),
        Err(error) => {
            shared.set_client(None);
            (function.log)(&format!("vfio-user: a client was turned away: {error}"));
            None
        }
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
