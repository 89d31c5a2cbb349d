//! Sends messages to a client from a separate thread, in the order in which they were queued: the reactor's requests to
//! the client, and the replies of the session. Clients with memory that only they reach have such a thread; the
//! sessions of others send their replies themselves.

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use crate::channel;

/// A message to be sent.
pub(crate) enum Outgoing {
    /// A command of the server, with its payload.
    Command(Vec<u8>),
    /// A reply, perhaps with a descriptor; its sender is notified when it was sent.
    Reply(Vec<u8>, Option<Arc<File>>, Sender<io::Result<()>>),
}

/// See the file.
pub(crate) struct Writer {
    queue: Sender<Outgoing>,
    thread: JoinHandle<()>,
}

impl Writer {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system has none left.
    pub(crate) fn start(stream: Arc<UnixStream>) -> io::Result<Writer> {
        let (queue, messages) = channel();
        let thread = thread::Builder::new().name("vfio-user writer".to_owned());
        Ok(Writer { queue, thread: thread.spawn(move || send_all(&stream, &messages))? })
    }

    /// Where messages are queued.
    pub(crate) fn queue(&self) -> Sender<Outgoing> {
        self.queue.clone()
    }

    /// Sends a reply behind everything that was queued before, and waits until it is sent.
    ///
    /// # Errors
    /// When the connection breaks.
    pub(crate) fn reply(&self, message: Vec<u8>, descriptor: Option<Arc<File>>) -> io::Result<()> {
        let (tell, told) = channel();
        let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
        self.queue.send(Outgoing::Reply(message, descriptor, tell)).map_err(|_| gone())?;
        told.recv().unwrap_or_else(|_| Err(gone()))
    }

    /// Waits for the thread, when its queue has no other sender and the connection is shut down.
    pub(crate) fn join(self) {
        drop(self.queue);
        // It ends without a panic, and has nothing to report.
        let _ = self.thread.join();
    }
}

fn send_all(stream: &UnixStream, messages: &Receiver<Outgoing>) {
    for message in messages {
        let sent = match message {
            Outgoing::Command(message) => channel::send(stream, &message, None),
            Outgoing::Reply(message, descriptor, tell) => {
                let sent = channel::send(stream, &message, descriptor.as_ref().map(|file| file.as_fd()));
                let (told, end) = match sent {
                    Ok(()) => (Ok(()), Ok(())),
                    Err(error) => (Err(io::Error::from(error.kind())), Err(error)),
                };
                // The session may have ended.
                let _ = tell.send(told);
                end
            }
        };
        if sent.is_err() {
            // The session also finds the connection broken.
            return;
        }
    }
}
