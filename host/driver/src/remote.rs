//! The interface of a drive behind a socket to a wall-clock loop.

use std::os::fd::BorrowedFd;

use nandscape_drive::Drive;
use nandscape_sim::Span;

/// A drive behind a socket. [`Drive::submit`] only queues a command; [`Remote::poll`] sends, receives and completes.
///
/// A loop takes the time, runs the executor up to it, and polls its drives. If none of them made progress, it may
/// wait until a socket is ready or an event is due.
pub trait Remote: Drive {
    /// Outstanding work for its user.
    fn pending(&self) -> Pending;

    /// The socket.
    fn socket(&self) -> BorrowedFd<'_>;

    /// Whether it also waits for room to send.
    fn wants_to_write(&self) -> bool;

    /// The broken connection, while the driver reconnects.
    fn broken(&self) -> Option<Broken> {
        None
    }

    /// Sends and receives without waiting, and completes commands. Returns whether anything moved.
    ///
    /// # Errors
    /// [`Lost`] when the connection is unusable. Its commands have failed then, and later ones fail.
    fn poll(&self) -> Result<bool, Lost>;
}

/// Outstanding work of a drive: a user may give up when its commands get no answer for long.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Pending {
    /// Commands that wait for an answer of the other end.
    pub commands: usize,
    /// Changes with every answer, or part of one.
    pub answers: u64,
}

/// A connection that broke, and is made again.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the connection to {endpoint} broke ({reason}); it is tried again for {} s (?patience=SECONDS of the URL)", .patience.as_s())]
pub struct Broken {
    /// The other end.
    pub endpoint: String,
    /// Why.
    pub reason: String,
    /// How long it is tried again.
    pub patience: Span,
}

/// The connection to a drive is lost.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the connection to {endpoint} is lost: {reason}")]
pub struct Lost {
    /// The other end.
    pub endpoint: String,
    /// Why.
    pub reason: String,
}
