//! The wall clock since the start of a run, in nanoseconds. The only source of a live drive's time.

use std::time::Instant;

use nandscape_sim::Time;

/// The wall clock of one reactor: counts from when it was started, in every thread alike.
#[derive(Copy, Clone, Debug)]
pub struct WallClock {
    start: Instant,
}

impl WallClock {
    /// Begins now.
    #[expect(clippy::disallowed_methods, reason = "this is the wall clock")]
    pub fn start() -> WallClock {
        WallClock { start: Instant::now() }
    }

    /// Time since it began. A model that keeps up is no further than this.
    #[inline]
    #[expect(clippy::disallowed_methods, reason = "this is the wall clock")]
    pub fn now(&self) -> Time {
        Time::from_ns(u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// As if more time had passed.
    #[cfg(test)]
    pub(crate) fn put_forward(&mut self, by: nandscape_sim::Span) {
        self.start -= std::time::Duration::from_nanos(by.ns());
    }
}
