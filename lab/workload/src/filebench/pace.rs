//! Limits the combined rate of threads, in bytes or rounds.

use std::cell::Cell;

use nandscape_sim::{Span, Time};

/// A shared rate limit.
pub(crate) struct Pace {
    /// Units a second.
    rate: Option<f64>,
    /// The time at which the units granted so far are used up.
    free: Cell<Time>,
}

impl Pace {
    /// A pace; without a rate, no limit.
    pub(crate) fn new(rate: Option<f64>) -> Pace {
        Pace { rate, free: Cell::new(Time::ZERO) }
    }

    /// The time at which this number of units may start.
    pub(crate) fn turn(&self, now: Time, count: u64) -> Time {
        let Some(rate) = self.rate else { return now };
        let turn = self.free.get().max(now);
        self.free.set(turn + Span::from_ns(libm::round(count as f64 / rate * 1e9) as u64));
        turn
    }
}
