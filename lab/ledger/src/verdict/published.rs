//! The published figures of an experiment's criteria. Each criterion shows its figure in its own column, so that a reader
//! sees the size as well as the order.

use super::{Criterion, Role};

/// The published figure of the criteria that a pattern names.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Published {
    /// The criteria: a name in which `*` stands for any letters.
    of: &'static str,
    /// The figure as the paper gives it; empty where the criterion itself has it.
    figure: &'static str,
    size: Size,
    given: bool,
}

/// The number to compare the size with.
#[derive(Copy, Clone, PartialEq, Debug)]
enum Size {
    None,
    /// An amount in the criterion's unit.
    Amount(f64),
    /// A ratio, compared by its distance to 1.
    Ratio(f64),
}

impl Published {
    /// Of criteria with this name, in which `*` stands for any letters. The first that fits counts.
    pub const fn of(of: &'static str, figure: &'static str) -> Published {
        Published { of, figure, size: Size::None, given: false }
    }

    /// With the published amount, in the criterion's unit; of a ranking, that of its last contestant.
    #[must_use]
    pub const fn amount(self, amount: f64) -> Published {
        Published { size: Size::Amount(amount), ..self }
    }

    /// With the published ratio; of a ranking, its last contestant over its first.
    #[must_use]
    pub const fn ratio(self, ratio: f64) -> Published {
        Published { size: Size::Ratio(ratio), ..self }
    }

    /// The profile was given the value, or fitted to it: calibration.
    #[must_use]
    pub const fn given(self) -> Published {
        Published { given: true, ..self }
    }

    /// Marks a criterion with the first that fits it.
    pub(crate) fn mark(all: &[Published], criterion: &mut Criterion) {
        let Some(fits) = all.iter().find(|one| covers(one.of, &criterion.what)) else { return };
        if !fits.figure.is_empty() {
            fits.figure.clone_into(&mut criterion.published);
        }
        if fits.given {
            criterion.role = Role::Calibration;
        }
        let off = match fits.size {
            Size::None => return,
            Size::Amount(amount) => criterion.amount().map(|measured| times(measured, amount)),
            Size::Ratio(ratio) => criterion.ratio().map(|measured| effects(measured, ratio)),
        };
        criterion.times_off = off;
    }
}

/// How many times one is the other, at least 1; infinite if their signs differ, or one is nothing.
fn times(one: f64, other: f64) -> f64 {
    let times = one / other;
    if times > 0.0 { times.max(1.0 / times) } else { f64::INFINITY }
}

/// How many times one ratio's distance to 1 is the other's.
pub(super) fn effects(one: f64, other: f64) -> f64 {
    times(one - 1.0, other - 1.0)
}

/// Whether a pattern covers a name.
fn covers(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((begin, rest)) => name.strip_prefix(begin).is_some_and(|name| {
            rest.is_empty()
                || name.char_indices().map(|(at, _)| at).chain([name.len()]).any(|at| covers(rest, &name[at..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::order;

    #[test]
    fn patterns_cover_names() {
        for (pattern, name, fits) in [
            ("p99 of reads", "p99 of reads", true),
            ("p99", "p99 of reads", false),
            ("p99*", "p99 of reads", true),
            ("*reads", "p99 of reads", true),
            ("p*, 64 in flight", "p50, 6, 64 in flight", true),
            ("p*, 64 in flight", "p50, 6 in flight", false),
            ("*", "", true),
        ] {
            assert_eq!(covers(pattern, name), fits, "{pattern} for {name}");
        }
    }

    #[test]
    fn the_first_that_fits_gives_figure_size_and_role() {
        let all = [
            Published::of("x, 1", "ten").amount(10.0),
            Published::of("x, *", "twice").ratio(2.0),
            Published::of("y", "").given(),
        ];
        let marked = |mut criterion: Criterion| {
            Published::mark(&all, &mut criterion);
            criterion
        };
        let ten = marked(order::below("x, 1", 40.0, "us", 50.0));
        assert_eq!((ten.published.as_str(), ten.times_off), ("ten", Some(4.0)));
        let twice = marked(order::ranked("x, 2", &[("a", vec![10.0]), ("b", vec![11.0])], "us"));
        assert!((twice.times_off.unwrap() - 10.0).abs() < 1e-9, "a tenth more instead of as much again: {twice:?}");
        assert_eq!(marked(order::below("x, 3", 0.9, "", 2.0)).times_off, Some(f64::INFINITY), "the other side of 1");
        assert_eq!(marked(order::below("y", 1.0, "us", 2.0)).role, Role::Calibration);
        assert_eq!(marked(order::below("z", 1.0, "us", 2.0)).published, "");
    }
}
