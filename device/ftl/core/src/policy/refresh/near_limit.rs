//! Refresh of blocks whose errors, estimated or counted by a decoder, come near to the correctable limit.

use nandscape_device_media::aging::{BlockHealth, Decoded};

use super::RefreshPolicy;

/// The least share of the bound that retention and disturb make up, because a refresh removes only these. Without it
/// worn blocks would be rewritten forever.
const LEAST_SHIFT: f64 = 0.25;

/// Blocks whose estimated error rate has reached a share of the rate that can be corrected.
#[derive(Copy, Clone, Debug)]
pub struct NearLimit {
    /// The share.
    pub share: f64,
}

impl RefreshPolicy for NearLimit {
    fn is_due(&self, health: &BlockHealth) -> bool {
        let bound = self.share * health.correctable;
        health.floor + health.shift >= bound && health.shift >= LEAST_SHIFT * bound
    }

    fn is_due_by(&self, page: &Decoded) -> bool {
        let (bound, errors) = (self.share * f64::from(page.correctable), f64::from(page.errors));
        errors >= bound && errors * page.shifted >= LEAST_SHIFT * bound
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_due_by_the_errors_of_a_page() {
        let due = |errors, shifted| NearLimit { share: 0.5 }.is_due_by(&Decoded { errors, correctable: 72, shifted });
        assert!(due(36, 0.25) && due(73, 1.0));
        assert!(!due(35, 1.0), "it is below the bound");
        assert!(!due(36, 0.2), "a refresh would take back too little");
    }

    #[test]
    fn a_block_is_due_by_what_a_refresh_takes_back() {
        let due = |floor, shift| {
            NearLimit { share: 0.5 }.is_due(&BlockHealth { floor, shift, correctable: 0.01, hours: 1.0, reads: 0.0 })
        };
        assert!(due(0.001, 0.004) && due(0.0, 0.005));
        assert!(!due(0.001, 0.003), "it is below the bound");
        assert!(!due(0.006, 0.001), "a refresh would take back too little");
    }
}
