//! Ratio: a relative result. If the ledger gives a band, the quantity it applies to must be within it, bounds included.
//! Without a band a ratio must be on the published one's side of 1, with at least half of the published effect. The
//! effect is the distance of the ratio from 1: half of 1.89 (89% more) is 1.445, half of 0.78 (22% less) is 0.89.

use super::published::effects;
use super::{Criterion, Runs};
use crate::claim::{Band, BandOf};
use crate::figures::short;

/// Compares the measured ratio `ratio` with number `number` of a claim's band. `published` is the paper's
/// figure.
///
/// # Panics
/// When the band has no such number, which is a bug of the experiment.
pub fn in_band(what: impl Into<String>, ratio: impl Runs, published: f64, band: Band, number: usize) -> Criterion {
    // One pair may stand for all numbers.
    let (low, high) = if band.within.len() == 1 { band.within[0] } else { band.within[number] };
    let words = match band.of {
        BandOf::Value => "",
        BandOf::Loss => "lost: ",
        BandOf::Published => "of the published: ",
    };
    let of = |ratio: f64| match band.of {
        BandOf::Value => ratio,
        BandOf::Loss => 1.0 - ratio,
        BandOf::Published => ratio / published,
    };
    let runs = ratio.runs().into_iter().map(of).collect();
    let margin = |of: f64| (of - low).min(high - of);
    let criterion = Criterion::bound(what, runs, "", format!("{words}{low} to {high}"), (margin, true));
    let shown = if band.of == BandOf::Loss { 1.0 - published } else { published };
    Criterion { published: short(shown), ..criterion }
}

/// A ratio against the published one, where the ledger gives no band.
pub fn half_effect(what: impl Into<String>, ratio: impl Runs, published: f64) -> Criterion {
    let half = 1.0 + (published - 1.0) / 2.0;
    let (side, sign) = if published >= 1.0 { ("at least", 1.0) } else { ("at most", -1.0) };
    let must_be = format!("{side} {}, half of {}'s effect", short(half), short(published));
    let mut criterion = Criterion::bound(what, ratio.runs(), "", must_be, (|ratio| sign * (ratio - half), true));
    criterion.times_off = criterion.ratio().map(|measured| effects(measured, published));
    Criterion { published: short(published), ..criterion }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUE: Band = Band { of: BandOf::Value, within: &[(2.0, 2.8), (1.0, 1.15)] };

    #[test]
    fn each_number_has_its_band_and_bounds_are_inside() {
        for (number, ratio, holds) in
            [(0, 2.0, true), (0, 2.8, true), (0, 1.99, false), (0, 2.81, false), (1, 1.06, true), (1, 2.4, false)]
        {
            assert_eq!(in_band("reads", ratio, 2.4, VALUE, number).holds, holds, "{ratio}");
        }
        assert!(!in_band("reads", f64::NAN, 2.4, VALUE, 0).holds);
    }

    #[test]
    fn a_band_may_be_of_what_is_lost_or_of_the_published_figure() {
        let loss = Band { of: BandOf::Loss, within: &[(0.0, 0.05)] };
        assert!(in_band("throughput", 0.96, 0.98, loss, 0).holds && !in_band("throughput", 0.9, 0.98, loss, 0).holds);
        let published = Band { of: BandOf::Published, within: &[(0.85, 1.15)] };
        // One pair for all numbers; the ratio is 17 over 16.81.
        assert!(in_band("write, MB/s", 17.0, 16.81, published, 2).holds);
        assert!(!in_band("write, MB/s", 20.0, 16.81, published, 2).holds);
    }

    #[test]
    fn without_a_band_half_of_the_effect_counts_on_the_same_side() {
        for (published, ratio, holds) in [
            (1.89, 1.45, true),
            (1.89, 1.44, false),
            (1.89, 0.5, false),
            (1.89, 5.0, true),
            (0.78, 0.88, true),
            (0.78, 0.9, false),
            (0.78, 0.5, true),
            (0.78, 1.2, false),
            (38.0, 19.5, true),
            (38.0, 19.4, false),
            (1.89, f64::NAN, false),
            (0.78, f64::NAN, false),
        ] {
            assert_eq!(half_effect("x", ratio, published).holds, holds, "{ratio} for {published}");
        }
    }
}
