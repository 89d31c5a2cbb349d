//! Order: a ranking, or a bound that is kept. It must hold at every point named. With several runs the margin must be wider
//! than their spread.

use super::{Criterion, Runs};
use crate::figures::short;

/// Below a bound; the bound itself is outside.
pub fn below(what: impl Into<String>, measured: impl Runs, unit: &str, bound: f64) -> Criterion {
    let must_be = format!("below {}", short(bound));
    Criterion::bound(what, measured.runs(), unit, must_be, (|run| bound - run, false))
}

/// Above a bound; the bound itself is outside.
pub fn above(what: impl Into<String>, measured: impl Runs, unit: &str, bound: f64) -> Criterion {
    let must_be = format!("above {}", short(bound));
    Criterion::bound(what, measured.runs(), unit, must_be, (|run| run - bound, false))
}

/// At or above a bound.
pub fn at_least(what: impl Into<String>, measured: impl Runs, unit: &str, bound: f64) -> Criterion {
    let must_be = format!("at least {}", short(bound));
    Criterion::bound(what, measured.runs(), unit, must_be, (|run| run - bound, true))
}

/// At or below a bound.
pub fn at_most(what: impl Into<String>, measured: impl Runs, unit: &str, bound: f64) -> Criterion {
    let must_be = format!("at most {}", short(bound));
    Criterion::bound(what, measured.runs(), unit, must_be, (|run| bound - run, true))
}

/// Contestants from the lowest to the highest, each with the figures of its runs.
pub type Ranking<'a> = [(&'a str, Vec<f64>)];

/// Each is below the next.
pub fn ranked(what: impl Into<String>, ranking: &Ranking<'_>, unit: &str) -> Criterion {
    let must_be = names(ranking).join(" < ");
    Criterion::ranking(what, figures(ranking), unit, must_be, (false, false))
}

/// Each is at least the one before: it fails where the runs show that one is lower.
pub fn never_falls(what: impl Into<String>, ranking: &Ranking<'_>, unit: &str) -> Criterion {
    let must_be = names(ranking).join(" <= ");
    Criterion::ranking(what, figures(ranking), unit, must_be, (true, false))
}

/// None is worse than the one before: it fails where the runs show that one is higher.
pub fn none_worse(what: impl Into<String>, ranking: &Ranking<'_>, unit: &str) -> Criterion {
    let must_be = format!("none above the one before: {}", names(ranking).join(", "));
    Criterion::ranking(what, figures(ranking), unit, must_be, (true, true))
}

fn names<'a>(ranking: &Ranking<'a>) -> Vec<&'a str> {
    ranking.iter().map(|(name, _)| *name).collect()
}

fn figures(ranking: &Ranking<'_>) -> Vec<Vec<f64>> {
    ranking.iter().map(|(_, runs)| runs.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_itself_is_outside() {
        assert!(!below("x", 1.0, "", 1.0).holds && !above("x", 1.0, "", 1.0).holds);
        assert!(below("x", 0.9, "", 1.0).holds && above("x", 1.1, "", 1.0).holds);
        assert!(!below("x", f64::NAN, "", 1.0).holds && !above("x", f64::NAN, "", 1.0).holds);
        assert!(at_least("x", 1.0, "", 1.0).holds && !at_least("x", 0.9, "", 1.0).holds);
        assert!(!at_least("x", f64::NAN, "", 1.0).holds);
    }

    #[test]
    fn what_never_falls_may_stay() {
        let of = |figures: [f64; 3]| {
            let names = ["1", "2", "3"];
            let ranking: Vec<(&str, Vec<f64>)> = names.into_iter().zip(figures.map(|figure| vec![figure])).collect();
            never_falls("x", &ranking, "").holds
        };
        assert!(of([1.0, 1.0, 2.0]) && !of([1.0, 2.0, 1.9]) && !of([1.0, f64::NAN, 2.0]));
    }

    #[test]
    fn what_is_in_no_order_is_not_worse() {
        let of = |next: &[f64]| none_worse("x", &[("a", vec![10.0, 12.0]), ("b", next.to_vec())], "").holds;
        assert!(of(&[9.0]) && of(&[12.0, 13.0]) && !of(&[14.1]) && of(&[12.1, 20.0]) && !of(&[f64::NAN]) && !of(&[]));
        assert!(at_most("x", 1.0, "", 1.0).holds && !at_most("x", 1.1, "", 1.0).holds);
    }

    #[test]
    fn each_is_below_the_next_by_more_than_the_spread() {
        let ranking = |none: &[f64], plane: &[f64]| [("none", none.to_vec()), ("plane", plane.to_vec())];
        for (none, plane, holds) in [
            (&[1.0, 2.0][..], &[3.0, 4.0][..], true),
            (&[1.0, 3.0], &[3.0, 4.0], false),
            (&[1.0, 5.0], &[3.0, 4.0], false),
            (&[3.0], &[1.0], false),
            (&[1.0], &[], false),
            (&[], &[1.0], false),
            (&[1.0, f64::NAN], &[3.0], false),
        ] {
            let criterion = ranked("p99", &ranking(none, plane), "us");
            assert_eq!(criterion.holds, holds, "{criterion:?}");
        }
        let criterion = ranked("p99", &ranking(&[1.0, 2.0], &[3.0]), "us");
        assert_eq!(
            (criterion.must_be.as_str(), criterion.measured.to_string().as_str()),
            ("none < plane", "1 to 2, 3")
        );
        assert!(!ranked("p99", &[("alone", vec![1.0])], "us").holds, "one alone is no ranking");
    }
}
