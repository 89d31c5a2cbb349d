//! What a loop at the wall clock needs of a drive behind a socket.

use std::os::fd::BorrowedFd;

use nandscape_drive::Drive;
use nandscape_sim::Span;

/// A drive behind a socket. [`Drive::submit`] only queues a command; [`Remote::poll`] sends, receives and completes.
///
/// A loop takes the time, runs the executor up to it, and polls its drives; when none of them moved, it may wait until a
/// socket is ready or an event is due.
pub trait Remote: Drive {
    /// What it owes its user now.
    fn pending(&self) -> Pending;

    /// The socket.
    fn socket(&self) -> BorrowedFd<'_>;

    /// Whether it waits for room to send, and not only for data to receive.
    fn wants_to_write(&self) -> bool;

    /// That there is no connection, while the driver reconnects.
    fn broken(&self) -> Option<Broken> {
        None
    }

    /// Sends and receives what it can without waiting, and completes commands. Whether anything moved.
    ///
    /// # Errors
    /// [`Lost`] when the connection cannot be used any more. Its commands have failed then, and later ones fail.
    fn poll(&self) -> Result<bool, Lost>;
}

/// What a drive owes its user: a user whose commands get no answer for long may give up.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Pending {
    /// Commands that wait for an answer of the other end.
    pub commands: usize,
    /// Changes whenever an answer, or a part of one, has come.
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
