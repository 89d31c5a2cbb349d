//! Accepting clients on a separate thread, until stopped.
//!
//! Left out: the fate of a client. The server's `take` decides, and mostly gives it a thread.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::socket::{Address, Listening, Stream};

/// Accepts clients until it is dropped, which waits until the last `take` has returned.
pub struct Accepting {
    listening: Arc<Listening>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Accepting {
    /// Calls `take` with each client, and `failed` with each failure, on a thread of this name.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(
        name: &str,
        listening: Listening,
        take: impl FnMut(Stream) + Send + 'static,
        failed: impl FnMut(io::Error) + Send + 'static,
    ) -> io::Result<Accepting> {
        let (listening, stop) = (Arc::new(listening), Arc::new(AtomicBool::new(false)));
        let (accepts, stopped) = (listening.clone(), stop.clone());
        let accept = move || accept(&accepts, &stopped, take, failed);
        let thread = thread::Builder::new().name(name.to_owned()).spawn(accept)?;
        Ok(Accepting { listening, stop, thread: Some(thread) })
    }

    /// Its address, with the port that the system has chosen if the given one is 0.
    pub fn address(&self) -> &Address {
        self.listening.address()
    }

    /// Accepts no more clients, and does not wait for the last `take`.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
        self.listening.interrupt();
    }

    /// Stops, and waits until the last `take` has returned.
    pub fn end(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            // A panic was reported already.
            let _ = thread.join();
        }
    }
}

impl Drop for Accepting {
    fn drop(&mut self) {
        self.end();
    }
}

fn accept(listening: &Listening, stop: &AtomicBool, mut take: impl FnMut(Stream), mut failed: impl FnMut(io::Error)) {
    loop {
        let accepted = listening.accept();
        if stop.load(Ordering::SeqCst) {
            return;
        }
        match accepted {
            Ok(stream) => take(stream),
            Err(error) if is_passing(&error) => {}
            Err(error) => {
                failed(error);
                rest();
            }
        }
    }
}

/// A client that left before it was accepted, or a signal.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted)
}

/// Accepting a client fails mostly because descriptors are exhausted, and the next attempt would fail too until a
/// client leaves.
#[expect(clippy::disallowed_methods, reason = "there is no event for free descriptors")]
fn rest() {
    thread::sleep(Duration::from_millis(100));
}
