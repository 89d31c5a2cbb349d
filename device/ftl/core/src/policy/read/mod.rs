//! The fate of a host's read of a page that background work delays: collections, and programs of data whose writes have
//! ended. Without a policy it is served like any other.

mod fail_fast;
mod reconstruct;

use nandscape_sim::Span;

pub use fail_fast::FailFast;
pub use reconstruct::Reconstruct;

/// A read of a page, and the work in its way.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct PendingRead {
    /// For how long background work keeps the read from the chip, as far as the FTL knows. It is not zero.
    pub remaining: Span,
    /// The time of the read alone: sensing the page and transferring the requested part.
    pub alone: Span,
    /// Whether the host requests fail-fast.
    pub may_fail: bool,
    /// The number of busy channels among those over which the page would be regenerated; `None` if it cannot be.
    pub busy_channels: Option<u32>,
}

/// The fate of a read.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It waits.
    Serve,
    /// The page is regenerated from other pages that the host can reach. An FTL without such pages serves the read.
    Reconstruct,
    /// It fails at once, and the host gets the time that it would have waited. Not for reads that may not fail: those
    /// are served.
    FailFast,
}

/// Decides on reads that would wait for background work. It is asked once for each page of a read, when the page has been
/// found.
pub trait ReadPolicy {
    /// Whether it ever fails reads.
    fn fails_reads(&self) -> bool {
        false
    }

    /// Decides the fate of the read.
    fn verdict(&self, read: &PendingRead) -> Verdict;
}
