//! At most: a cost. The published figure is the upper bound; a lower one holds.

use super::{Criterion, Runs};
use crate::figures::short;

/// A cost against the published one.
pub fn cost(what: impl Into<String>, measured: impl Runs, unit: &str, published: f64) -> Criterion {
    let must_be = format!("at most {}", short(published));
    let criterion = Criterion::bound(what, measured.runs(), unit, must_be, (|run| published - run, true));
    Criterion { published: short(published), ..criterion }
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
