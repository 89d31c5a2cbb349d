//! Stripes move while wear differs by more than a threshold, in erases.

use super::StripeWearPolicy;

/// See the file.
pub struct Thresholds {
    /// Between planes of a group; 0 is never.
    pub shift: f64,
    /// Between groups; 0 is never.
    pub migrate: f64,
}

impl StripeWearPolicy for Thresholds {
    fn shifts(&self, hot: f64, least: f64) -> bool {
        self.shift > 0.0 && hot - least > self.shift
    }

    fn migrates(&self, hot: f64, least: f64) -> bool {
        self.migrate > 0.0 && hot - least > self.migrate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_of_zero_is_never() {
        let policy = Thresholds { shift: 2.0, migrate: 0.0 };
        assert!(policy.shifts(5.1, 3.0) && !policy.shifts(5.0, 3.0));
        assert!(!policy.migrates(50.0, 3.0));
    }
}
