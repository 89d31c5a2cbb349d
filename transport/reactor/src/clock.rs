//! The wall clock, from the start of a run on, in the model's nanoseconds. The one place where a drive's time comes from
//! outside.

use std::time::Instant;

use nandscape_sim::Time;

/// Counts from when it was made.
#[derive(Copy, Clone, Debug)]
pub(crate) struct WallClock {
    start: Instant,
}

impl WallClock {
    #[expect(clippy::disallowed_methods, reason = "this is the wall clock")]
    pub(crate) fn new() -> WallClock {
        WallClock { start: Instant::now() }
    }

    #[inline]
    #[expect(clippy::disallowed_methods, reason = "this is the wall clock")]
    pub(crate) fn now(&self) -> Time {
        Time::from_ns(u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}
