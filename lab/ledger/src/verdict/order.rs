//! Order: a ranking, or a bound that is kept. It must hold at every point named, and for a point with several runs, for
//! every pair of runs: the highest of the lower ones is below the lowest of the next.

use super::Criterion;
use crate::figures::short;

/// Below a bound; the bound itself is outside.
pub fn below(what: impl Into<String>, measured: f64, unit: &str, bound: f64) -> Criterion {
    Criterion::number(what, measured, unit, format!("below {}", short(bound)), measured < bound)
}

/// Above a bound; the bound itself is outside.
pub fn above(what: impl Into<String>, measured: f64, unit: &str, bound: f64) -> Criterion {
    Criterion::number(what, measured, unit, format!("above {}", short(bound)), measured > bound)
}

/// At or above a bound.
pub fn at_least(what: impl Into<String>, measured: f64, unit: &str, bound: f64) -> Criterion {
    Criterion::number(what, measured, unit, format!("at least {}", short(bound)), measured >= bound)
}

/// At or below a bound.
pub fn at_most(what: impl Into<String>, measured: f64, unit: &str, bound: f64) -> Criterion {
    Criterion::number(what, measured, unit, format!("at most {}", short(bound)), measured <= bound)
}

/// Contestants from the lowest to the highest, each with the figures of its runs.
pub type Ranking<'a> = [(&'a str, Vec<f64>)];

/// Each is below the next.
pub fn ranked(what: impl Into<String>, ranking: &Ranking<'_>, unit: &str) -> Criterion {
    compare(what, ranking, unit, "<", |lower, higher| lower < higher)
}

/// Each is at least the one before.
pub fn never_falls(what: impl Into<String>, ranking: &Ranking<'_>, unit: &str) -> Criterion {
    compare(what, ranking, unit, "<=", |lower, higher| lower <= higher)
}

/// Each is at least the one before less what the measurement cannot tell apart: a count over a time, for example, is uncertain by the
/// requests that are outstanding at its ends.
pub fn never_falls_by_more(what: impl Into<String>, ranking: &Ranking<'_>, unit: &str, uncertain: f64) -> Criterion {
    let mut criterion = compare(what, ranking, unit, "<=", |lower, higher| lower <= higher + uncertain);
    criterion.must_be += &format!(" + {}", short(uncertain));
    criterion
}

/// None is worse than the one before: it would be if all of its runs were above all of those.
pub fn none_worse(what: impl Into<String>, ranking: &Ranking<'_>, unit: &str) -> Criterion {
    let names: Vec<&str> = ranking.iter().map(|(name, _)| *name).collect();
    let spans: Vec<(f64, f64)> = ranking.iter().map(|(_, runs)| span(runs)).collect();
    let holds = is_whole(ranking) && spans.windows(2).all(|pair| pair[1].0 <= pair[0].1);
    Criterion::text(what, shown(ranking), unit, format!("none above the one before: {}", names.join(", ")), holds)
}

fn compare(
    what: impl Into<String>,
    ranking: &Ranking<'_>,
    unit: &str,
    sign: &str,
    fits: impl Fn(f64, f64) -> bool,
) -> Criterion {
    let sign = format!(" {sign} ");
    let names: Vec<&str> = ranking.iter().map(|(name, _)| *name).collect();
    let spans: Vec<(f64, f64)> = ranking.iter().map(|(_, runs)| span(runs)).collect();
    let holds = is_whole(ranking) && spans.windows(2).all(|pair| fits(pair[0].1, pair[1].0));
    Criterion::text(what, shown(ranking), unit, names.join(&sign), holds)
}

/// Whether there are several contestants, each with runs that are numbers.
fn is_whole(ranking: &Ranking<'_>) -> bool {
    ranking.len() > 1 && ranking.iter().all(|(_, runs)| !runs.is_empty() && runs.iter().all(|run| run.is_finite()))
}

/// The figures of each.
fn shown(ranking: &Ranking<'_>) -> String {
    let shown: Vec<String> = ranking.iter().map(|(_, runs)| span(runs)).map(|(low, high)| between(low, high)).collect();
    shown.join(", ")
}

/// The lowest and the highest.
fn span(runs: &[f64]) -> (f64, f64) {
    runs.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), run| (low.min(*run), high.max(*run)))
}

fn between(low: f64, high: f64) -> String {
    let (low, high) = (short(low), short(high));
    if low == high { low } else { format!("{low} to {high}") }
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
        assert!(of(&[9.0]) && of(&[12.0, 20.0]) && !of(&[12.1, 20.0]) && !of(&[f64::NAN]) && !of(&[]));
        assert!(at_most("x", 1.0, "", 1.0).holds && !at_most("x", 1.1, "", 1.0).holds);
    }

    #[test]
    fn what_cannot_be_told_apart_is_equal() {
        let of = |lower, higher| never_falls_by_more("x", &[("a", vec![lower]), ("b", vec![higher])], "", 2.0);
        assert!(of(12.0, 10.0).holds && !of(12.1, 10.0).holds && !of(f64::NAN, 10.0).holds);
        assert_eq!(of(12.0, 10.0).must_be, "a <= b + 2");
    }

    #[test]
    fn every_run_of_the_lower_is_below_every_run_of_the_next() {
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
