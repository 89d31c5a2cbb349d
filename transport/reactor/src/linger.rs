//! How long the loop stays awake once there is nothing to do, in case a client comes back at once: waking up takes the
//! system longer than a client's turn often does.
//!
//! Staying awake pays only where clients run on other cores. On the loop's own core they cannot come back while it spins.
//! So it is given up after some spins in vain, and tried again now and then.

use nandscape_sim::Span;

/// The length of a linger.
const LENGTH: Span = Span::from_us(60);
/// Vigils in vain after which there are none.
const IN_VAIN: u32 = 4;
/// Sleeps until one is tried again.
const SLEEPS: u32 = 64;

/// See the module.
#[derive(Default)]
pub(crate) struct Linger {
    in_vain: u32,
    sleeps: u32,
    /// Looks since something was done, without finding anything.
    looks: u32,
}

impl Linger {
    /// How long to stay awake after the last thing that was done.
    pub(crate) fn length(&self) -> Span {
        if self.in_vain < IN_VAIN { LENGTH } else { Span::ZERO }
    }

    /// The loop polled for arrivals, and whether there were any.
    pub(crate) fn polled(&mut self, came: bool) {
        // An arrival found at the first poll came while the loop was working: spinning did not help.
        if came && self.looks > 1 {
            self.in_vain = 0;
        }
        self.looks = if came { 0 } else { self.looks.saturating_add(1) };
    }

    /// The loop goes to sleep.
    pub(crate) fn sleeps(&mut self) {
        self.looks = 0;
        if self.in_vain < IN_VAIN {
            self.in_vain += 1;
            self.sleeps = 0;
            return;
        }
        self.sleeps += 1;
        if self.sleeps == SLEEPS {
            (self.in_vain, self.sleeps) = (IN_VAIN - 1, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vigils_in_vain_are_given_up_and_tried_again() {
        let mut linger = Linger::default();
        let mut lengths = Vec::new();
        for _ in 0..200 {
            lengths.push(!linger.length().is_zero());
            linger.sleeps();
            linger.polled(true);
        }
        // Four at first, then one after each 64 sleeps without.
        let tried: Vec<usize> = (0..200).filter(|at| lengths[*at]).collect();
        assert_eq!(tried, [0, 1, 2, 3, 68, 133, 198]);
    }

    #[test]
    fn a_vigil_that_pays_is_kept() {
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
