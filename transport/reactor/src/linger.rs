//! How long the loop spins when it has nothing to do, in case a client sends its next request at once: a wake-up often takes
//! longer than the client does.
//!
//! Spinning helps only if clients run on other cores: on the loop's own core they cannot run while it spins. So after some
//! spins without an arrival the loop sleeps at once, and tries spinning again now and then.

use nandscape_sim::Span;

/// The duration of a spin.
const LENGTH: Span = Span::from_us(60);
/// Fruitless spins after which the loop does not spin.
const MAX_FRUITLESS: u32 = 4;
/// Sleeps until it tries a spin again.
const SLEEPS: u32 = 64;

/// See the module.
#[derive(Default)]
pub(crate) struct Linger {
    fruitless: u32,
    sleeps: u32,
    /// Polls without an arrival since the last activity.
    idle_polls: u32,
}

impl Linger {
    /// How long to spin after the last activity.
    pub(crate) fn length(&self) -> Span {
        if self.fruitless < MAX_FRUITLESS { LENGTH } else { Span::ZERO }
    }

    /// The loop polled for arrivals; `came` is whether there were any.
    pub(crate) fn polled(&mut self, came: bool) {
        // An arrival found at the first poll arrived while the loop was working: spinning did not help.
        if came && self.idle_polls > 1 {
            self.fruitless = 0;
        }
        self.idle_polls = if came { 0 } else { self.idle_polls.saturating_add(1) };
    }

    /// The loop goes to sleep.
    pub(crate) fn sleeps(&mut self) {
        self.idle_polls = 0;
        if self.fruitless < MAX_FRUITLESS {
            self.fruitless += 1;
            self.sleeps = 0;
            return;
        }
        self.sleeps += 1;
        if self.sleeps == SLEEPS {
            (self.fruitless, self.sleeps) = (MAX_FRUITLESS - 1, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fruitless_spins_stop_and_are_tried_again() {
        let mut linger = Linger::default();
        let mut lengths = Vec::new();
        for _ in 0..200 {
            lengths.push(!linger.length().is_zero());
            linger.sleeps();
            linger.polled(true);
        }
        // Four at first, then one after each 64 sleeps without a spin.
        let tried: Vec<usize> = (0..200).filter(|at| lengths[*at]).collect();
        assert_eq!(tried, [0, 1, 2, 3, 68, 133, 198]);
    }

    #[test]
    fn spins_with_arrivals_continue() {
        let mut linger = Linger::default();
        for _ in 0..3 {
            linger.sleeps();
        }
        [false, false, true].into_iter().for_each(|came| linger.polled(came));
        for _ in 0..3 {
            linger.sleeps();
            assert!(!linger.length().is_zero());
        }
        // An arrival at the first poll does not count.
        [true, false, true].into_iter().for_each(|came| linger.polled(came));
        linger.sleeps();
        assert!(linger.length().is_zero());
    }
}
