//! Drives are written and read in turn, by the clock (Flash on Rails, Skourtis et al., USENIX ATC 2014; [55] of Shin's thesis): one parity
//! takes all writes for a period, and then the other, whether there are any or not.
//!
//! Rails swaps every 10 s, and memory holds the writes of a period. Here memory holds what may wait, which a drive of 500 MB/s takes in some
//! 20 ms; a longer period only has writers wait for its end.

use nandscape_sim::Span;

use super::epochs::alternates;
use super::{Policy, Work, nothing};
use crate::drives::Member;

/// See the file.
pub struct Rails {
    /// The time between two swaps.
    pub period: Span,
}

/// The time between two swaps, unless it is chosen.
pub const PERIOD: Span = Span::from_ms(20);

impl Policy for Rails {
    fn name(&self) -> &'static str {
        "rails"
    }

    fn has_token(&self, epoch: u64, drive: usize, width: usize) -> bool {
        alternates(epoch, drive, width)
    }

    fn keeps_reads_apart(&self) -> bool {
        true
    }

    fn lasts(&self) -> Option<Span> {
        Some(self.period)
    }

    fn before_writes<'a>(&'a self, _: &'a Member, _: u64) -> Work<'a> {
        nothing()
    }

    fn after_writes<'a>(&'a self, _: &'a Member) -> Work<'a> {
        nothing()
    }
}
