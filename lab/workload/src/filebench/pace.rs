//! Holds threads together to a rate: of bytes, or of rounds.

use std::cell::Cell;

use nandscape_sim::{Span, Time};

/// Gives each its turn.
pub(crate) struct Pace {
    /// So many a second.
    rate: Option<f64>,
    /// When what was given out so far will have gone by.
    free: Cell<Time>,
}

impl Pace {
    /// A pace; without a rate it holds nobody.
    pub(crate) fn new(rate: Option<f64>) -> Pace {
        Pace { rate, free: Cell::new(Time::ZERO) }
    }

    /// When so many may begin.
    pub(crate) fn turn(&self, now: Time, count: u64) -> Time {
        let Some(rate) = self.rate else { return now };
        let turn = self.free.get().max(now);
        self.free.set(turn + Span::from_ns(libm::round(count as f64 / rate * 1e9) as u64));
        turn
    }
}
