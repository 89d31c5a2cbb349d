//! At most: a cost. The published figure is the upper bound; a lower one holds.

use super::Criterion;
use crate::figures::short;

/// A cost against the published one.
pub fn cost(what: impl Into<String>, measured: f64, unit: &str, published: f64) -> Criterion {
    Criterion::number(what, measured, unit, format!("at most {}", short(published)), measured <= published)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_counts_and_the_published_figure_itself_too() {
        for (measured, holds) in [(0.0, true), (299.9, true), (300.0, true), (300.1, false), (f64::NAN, false)] {
            assert_eq!(cost("prediction", measured, "ns", 300.0).holds, holds, "{measured}");
        }
        assert_eq!(cost("prediction", 1.0, "ns", 300.0).must_be, "at most 300");
    }
}
