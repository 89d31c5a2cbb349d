//! A drive outside this process, as the loop handles it: the loop waits for its connection as for those of clients,
//! and makes it send and receive.
//!
//! The answers of such a drive come from outside without being recorded: a run with one has no recording.

use std::os::fd::BorrowedFd;

use nandscape_sim::Span;

/// See the module.
pub trait Source {
    /// The descriptor that becomes readable when there is work.
    fn descriptor(&self) -> BorrowedFd<'_>;

    /// Whether it has commands that it has not sent yet.
    fn has_unsent(&self) -> bool;

    /// Sends and receives a fair share of the bytes possible without waiting, and completes commands. Returns whether
    /// anything moved.
    fn poll(&self) -> bool;

    /// Commands that have not completed.
    fn outstanding(&self) -> usize;

    /// The events of its connection since the last call, for the log.
    fn news(&self) -> Option<String>;

    /// From now on, commands fail when it has been out of reach for this long: the loop is to end.
    fn limit_patience(&self, patience: Span);
}
