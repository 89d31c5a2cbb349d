//! The delays of reads by background work, for fail-fast and urgent reads.

use nandscape_sim::Span;

use crate::address::Extent;

/// The delay of a read by background work.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Delay {
    /// Until the read reaches its chip.
    pub remaining: Span,
    /// The same as a share of the longest delay, in 256ths.
    pub share: u8,
}

/// An FTL that estimates the delays by its background work.
pub trait Delays {
    /// Whether [`Delays::delay`] ever returns a delay.
    fn fails_reads(&self) -> bool;

    /// Whether hosts may send fail-fast reads. They may at first; without them the FTL need not estimate its work.
    fn expect_fail_fast(&self, expected: bool);

    /// Whether collections let urgent reads in ([`Destination::is_urgent`](crate::Destination::is_urgent)).
    fn lets_urgent_reads_in(&self) -> bool;

    /// The background work because of which a fail-fast read of an extent must fail at once. Such a read is counted if it
    /// `fails`.
    fn delay(&self, extent: Extent, fails: bool) -> Option<Delay>;
}
