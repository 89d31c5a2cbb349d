//! How long background work delays reads, for hosts that would rather fail than wait or let a read in first.

use nandscape_sim::Span;

use crate::address::Extent;

/// How long background work would keep a read waiting.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Delay {
    /// Until the read reaches its chip.
    pub remaining: Span,
    /// That as a share of the longest time, in 256ths.
    pub share: u8,
}

/// An FTL that knows the delays of its background work.
pub trait Delays {
    /// Whether [`Delays::delay`] ever returns a delay.
    fn fails_reads(&self) -> bool;

    /// Whether collections let reads in that are urgent ([`Destination::is_urgent`](crate::Destination::is_urgent)).
    fn lets_urgent_reads_in(&self) -> bool;

    /// The background work that a read of an extent has to fail of at once, if it is one that would rather fail than
    /// wait. Such a read is counted if it `fails`.
    fn delay(&self, extent: Extent, fails: bool) -> Option<Delay>;
}
