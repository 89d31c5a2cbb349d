//! The wall clock since the start of a run, in nanoseconds. The only source of a live drive's time.

use std::time::Instant;

use nandscape_sim::{Span, Time};

/// The wall clock of one reactor: counts from when it was started, in every thread alike.
#[derive(Copy, Clone, Debug)]
pub struct WallClock {
    start: Instant,
    /// Its time when it was started.
    first: Span,
    /// The time at which a test has stopped it.
    #[cfg(test)]
    stopped: Option<Time>,
}

impl WallClock {
    /// Begins now.
    #[expect(clippy::disallowed_methods, reason = "this is the wall clock")]
    pub fn start() -> WallClock {
        WallClock {
            start: Instant::now(),
            first: Span::ZERO,
            #[cfg(test)]
            stopped: None,
        }
    }

    /// Begins now, at the time of a model that has run before.
    pub fn start_at(first: Time) -> WallClock {
        WallClock { first: first.since(Time::ZERO), ..WallClock::start() }
    }

    /// Time since it began. A model that keeps up is no further than this.
    #[inline]
    #[expect(clippy::disallowed_methods, reason = "this is the wall clock")]
    pub fn now(&self) -> Time {
        #[cfg(test)]
        if let Some(stopped) = self.stopped {
            return stopped;
        }
        let elapsed = u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Time::from_ns(elapsed.saturating_add(self.first.ns()))
    }

    /// As if more time had passed.
    #[cfg(test)]
    pub(crate) fn put_forward(&mut self, by: Span) {
        match &mut self.stopped {
            Some(stopped) => *stopped = *stopped + by,
            None => self.start -= std::time::Duration::from_nanos(by.ns()),
        }
    }

    /// From now on it moves only when it is put forward: what a turn does then depends on no machine.
    #[cfg(test)]
    pub(crate) fn stop_at(&mut self, at: Time) {
        self.stopped = Some(at);
    }
}
