//! The deadline that clients give drives. It may follow the share of rejected tries: many show that it is too strict,
//! few that it is too lax (Li 6.1).

use std::cell::Cell;

use nandscape_sim::Span;

/// See the module.
pub struct Deadline {
    us: Cell<f64>,
    wanted: Option<f64>,
    tries: Cell<u32>,
    busy: Cell<u32>,
}

/// Tries between two looks.
const BETWEEN: u32 = 200;
/// The change at each.
const STEP: f64 = 1.1;
/// The bounds in microseconds.
const BOUNDS: (f64, f64) = (20.0, 1e6);

impl Deadline {
    /// A deadline; with a share of tries that it is to reject, it is changed until it does.
    pub fn new(at_first: Span, wanted: Option<f64>) -> Deadline {
        Deadline { us: Cell::new(at_first.as_us().max(1.0)), wanted, tries: Cell::new(0), busy: Cell::new(0) }
    }

    /// Microseconds, at least 1.
    pub fn us(&self) -> u32 {
        self.us.get() as u32
    }

    /// A try with the deadline was rejected, or not.
    pub fn answered(&self, is_busy: bool) {
        let Some(wanted) = self.wanted else { return };
        self.tries.set(self.tries.get() + 1);
        self.busy.set(self.busy.get() + u32::from(is_busy));
        if self.tries.get() < BETWEEN {
            return;
        }
        let share = f64::from(self.busy.take()) / f64::from(self.tries.take());
        let us = self.us.get();
        let changed = if share > wanted * 1.25 {
            us * STEP
        } else if share < wanted * 0.75 {
            us / STEP
        } else {
            us
        };
        self.us.set(changed.clamp(BOUNDS.0, BOUNDS.1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_settles_where_the_wanted_share_is_rejected_and_else_stays() {
        // Waits are even up to 10 ms: 5% are above 9.5 ms.
        let follows = Deadline::new(Span::from_us(300), Some(0.05));
        let fixed = Deadline::new(Span::from_us(300), None);
        for number in 0..100_000u64 {
            let wait = nandscape_sim::rng::mix(number) % 10_000;
            follows.answered(wait > u64::from(follows.us()));
            fixed.answered(true);
        }
        assert!((9_000..9_900).contains(&follows.us()), "{}", follows.us());
        assert_eq!(fixed.us(), 300);
    }
}
