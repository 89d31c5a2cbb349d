//! A criterion: a measured quantity, its required value, and whether it holds. A criterion with several runs holds only
//! if the margin is wider than the spread between the runs.

use serde::Serialize;

use crate::figures::{Value, short};

/// A criterion.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Criterion {
    /// The measured quantity.
    pub what: String,
    /// The measured value; the lowest and the highest of several runs.
    pub measured: Value,
    /// Its unit.
    pub unit: String,
    /// The paper's figure; empty if it gives none.
    #[serde(rename = "paper")]
    pub published: String,
    /// The required value.
    pub must_be: String,
    /// Whether it holds.
    pub holds: bool,
    /// Whether the runs decide it: false if the margin is smaller than the spread between them, which is a miss.
    pub told_apart: bool,
    /// Its part in the verdict.
    pub role: Role,
    /// How many times larger or smaller than the published figure it is, for effects (ratios, less 1) and amounts; none where no
    /// published figure can be compared.
    pub times_off: Option<f64>,
    /// The runs it is measured with.
    pub runs: usize,
    #[serde(skip)]
    pub(super) form: Form,
}

/// The part of a criterion in the verdict.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// It is judged.
    Judged,
    /// The profile was given its value, or fitted to it: shown, not counted.
    Calibration,
    /// It belongs to one reading of an open point, and other readings give another verdict: shown, not counted.
    Reading,
}

/// The figures of a quantity: one, or one for each run.
pub trait Runs {
    /// The figures.
    fn runs(self) -> Vec<f64>;
}

impl Runs for f64 {
    fn runs(self) -> Vec<f64> {
        vec![self]
    }
}

impl Runs for Vec<f64> {
    fn runs(self) -> Vec<f64> {
        self
    }
}

/// The figures that decide a criterion.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Form {
    /// A formula or a table: chance has no part in it.
    Exact,
    /// Measured values, each with its distance to the bound, positive inside.
    Bound { runs: Vec<(f64, f64)>, may_touch: bool },
    /// Contestants from the lowest to the highest, each with the figures of its runs. Those that may be equal are in order unless the runs
    /// show the opposite.
    Ranking { contestants: Vec<Vec<f64>>, may_equal: bool, descends: bool },
}

/// What the runs show.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Shown {
    Holds,
    NotToldApart,
    Missed,
}

impl Criterion {
    /// Of a formula or a table.
    pub(super) fn exact(
        what: impl Into<String>,
        measured: Value,
        unit: &str,
        must_be: String,
        holds: bool,
    ) -> Criterion {
        let mut criterion = Criterion::new(what, unit, must_be, Form::Exact);
        (criterion.measured, criterion.holds) = (measured, holds);
        criterion
    }

    /// Of values and their distances to a bound, positive inside. A value that touches the bound is inside if `may_touch`.
    pub(super) fn bound(
        what: impl Into<String>,
        runs: Vec<f64>,
        unit: &str,
        must_be: String,
        (margin, may_touch): (impl Fn(f64) -> f64, bool),
    ) -> Criterion {
        let runs = runs.into_iter().map(|run| (run, margin(run))).collect();
        Criterion::new(what, unit, must_be, Form::Bound { runs, may_touch })
    }

    /// Of contestants from the lowest to the highest; from the highest to the lowest if the order `descends`.
    pub(super) fn ranking(
        what: impl Into<String>,
        contestants: Vec<Vec<f64>>,
        unit: &str,
        must_be: String,
        (may_equal, descends): (bool, bool),
    ) -> Criterion {
        Criterion::new(what, unit, must_be, Form::Ranking { contestants, may_equal, descends })
    }

    fn new(what: impl Into<String>, unit: &str, must_be: String, form: Form) -> Criterion {
        let mut criterion = Criterion {
            what: what.into(),
            measured: Value::Number(f64::NAN),
            unit: unit.to_owned(),
            published: String::new(),
            must_be,
            holds: false,
            told_apart: true,
            role: Role::Judged,
            times_off: None,
            runs: 1,
            form,
        };
        criterion.decide();
        criterion
    }

    /// Decides it by its figures.
    fn decide(&mut self) {
        let (shown, measured, runs) = match &self.form {
            Form::Exact => return,
            Form::Bound { runs, may_touch } => {
                let margins: Vec<f64> = runs.iter().map(|(_, margin)| *margin).collect();
                let values: Vec<f64> = runs.iter().map(|(value, _)| *value).collect();
                let measured = match range(&values) {
                    (low, high) if short(low) != short(high) => Value::Text(between(low, high)),
                    _ => Value::Number(mean(&values)),
                };
                (inside(&margins, *may_touch), measured, runs.len())
            }
            Form::Ranking { contestants, may_equal, descends } => {
                let shown = ordered(contestants, *may_equal, *descends);
                let figures: Vec<String> =
                    contestants.iter().map(|runs| range(runs)).map(|(low, high)| between(low, high)).collect();
                let runs = contestants.iter().map(Vec::len).min().unwrap_or(0);
                (shown, Value::Text(figures.join(", ")), runs)
            }
        };
        (self.holds, self.told_apart) = (shown == Shown::Holds, shown != Shown::NotToldApart);
        (self.measured, self.runs) = (measured, runs);
    }

    /// Whether chance affects it, so that it needs several runs.
    pub fn is_of_chance(&self) -> bool {
        self.form != Form::Exact
    }

    /// Adds the same criterion of another run, and decides again.
    pub(crate) fn merge(&mut self, other: Criterion) {
        match (&mut self.form, other.form) {
            (Form::Bound { runs, .. }, Form::Bound { runs: more, .. }) => runs.extend(more),
            (Form::Ranking { contestants, .. }, Form::Ranking { contestants: more, .. }) => {
                contestants.iter_mut().zip(more).for_each(|(runs, more)| runs.extend(more));
            }
            _ => {
                self.holds &= other.holds;
                self.runs += other.runs;
                if self.measured != other.measured {
                    self.measured = Value::Text(format!("{}; {}", self.measured, other.measured));
                }
            }
        }
        if self.must_be != other.must_be && !self.must_be.split("; ").any(|bound| bound == other.must_be) {
            self.must_be = format!("{}; {}", self.must_be, other.must_be);
        }
        self.decide();
    }

    /// The lowest and the highest of the runs: of one figure, or of each contestant of a ranking; nothing of a text.
    pub(crate) fn ranges(&self) -> Vec<(f64, f64)> {
        match (&self.form, &self.measured) {
            (Form::Exact, Value::Number(number)) => vec![(*number, *number)],
            (Form::Exact, Value::Text(_)) => Vec::new(),
            (Form::Bound { runs, .. }, _) => vec![range(&runs.iter().map(|(value, _)| *value).collect::<Vec<_>>())],
            (Form::Ranking { contestants, .. }, _) => contestants.iter().map(|runs| range(runs)).collect(),
        }
    }

    /// The amount: a bound's value, or that of a ranking's last contestant; the mean of the runs.
    pub(super) fn amount(&self) -> Option<f64> {
        match &self.form {
            Form::Exact => None,
            Form::Bound { runs, .. } => Some(mean(&runs.iter().map(|(value, _)| *value).collect::<Vec<_>>())),
            Form::Ranking { contestants, .. } => contestants.last().map(|runs| mean(runs)),
        }
    }

    /// The ratio: a bound's value, or a ranking's last contestant over its first; the mean of the runs.
    pub(super) fn ratio(&self) -> Option<f64> {
        match &self.form {
            Form::Ranking { contestants, .. } => Some(mean(contestants.last()?) / mean(contestants.first()?)),
            _ => self.amount(),
        }
    }
}

/// Whether all margins are inside, by more than their spread.
fn inside(margins: &[f64], may_touch: bool) -> Shown {
    let is_in = |margin: &f64| *margin > 0.0 || may_touch && *margin == 0.0;
    let (low, high) = range(margins);
    let (mean, spread) = (mean(margins), high - low);
    if margins.is_empty() || margins.iter().any(|margin| margin.is_nan()) || !is_in(&mean) {
        return Shown::Missed;
    }
    if spread > 0.0 && mean <= spread { Shown::NotToldApart } else { Shown::Holds }
}

/// Whether each contestant is in its place, by more than the spread of the two.
fn ordered(contestants: &[Vec<f64>], may_equal: bool, descends: bool) -> Shown {
    let is_whole = |runs: &Vec<f64>| !runs.is_empty() && runs.iter().all(|run| run.is_finite());
    if contestants.len() < 2 || !contestants.iter().all(is_whole) {
        return Shown::Missed;
    }
    let pair = |(lower, higher): (&[f64], &[f64])| {
        let spread = [lower, higher].map(range).map(|(low, high)| high - low).into_iter().fold(0.0, f64::max);
        let margin = mean(higher) - mean(lower);
        match may_equal {
            true if margin < 0.0 && -margin > spread => Shown::Missed,
            true => Shown::Holds,
            false if margin <= 0.0 => Shown::Missed,
            false if spread > 0.0 && margin <= spread => Shown::NotToldApart,
            false => Shown::Holds,
        }
    };
    let shown: Vec<Shown> = contestants
        .windows(2)
        .map(|two| if descends { pair((&two[1], &two[0])) } else { pair((&two[0], &two[1])) })
        .collect();
    match [Shown::Missed, Shown::NotToldApart].into_iter().find(|bad| shown.contains(bad)) {
        Some(bad) => bad,
        None => Shown::Holds,
    }
}

fn mean(runs: &[f64]) -> f64 {
    runs.iter().sum::<f64>() / runs.len() as f64
}

/// The lowest and the highest.
fn range(runs: &[f64]) -> (f64, f64) {
    runs.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), run| (low.min(*run), high.max(*run)))
}

fn between(low: f64, high: f64) -> String {
    let (low, high) = (short(low), short(high));
    if low == high { low } else { format!("{low} to {high}") }
}

#[cfg(test)]
mod tests {
    use crate::verdict::order;

    #[test]
    fn a_margin_within_the_spread_is_not_told_apart() {
        for (runs, holds, told_apart) in [
            (&[1.0, 1.1, 1.2][..], true, true),
            (&[1.6, 1.7, 1.9], false, false),
            (&[1.9, 1.95, 2.2], false, true),
            (&[2.0, 2.0, 2.0], false, true),
            (&[1.9, 1.9, 1.9], true, true),
            (&[1.9], true, true),
        ] {
            let criterion = order::below("x", runs.to_vec(), "us", 2.0);
            assert_eq!(
                (criterion.holds, criterion.told_apart, criterion.runs),
                (holds, told_apart, runs.len()),
                "{runs:?}"
            );
        }
    }

    #[test]
    fn runs_that_are_added_decide_again() {
        let mut criterion = order::below("x", 1.9, "us", 2.0);
        assert!(criterion.holds);
        criterion.merge(order::below("x", 1.5, "us", 2.0));
        assert!(!criterion.holds && !criterion.told_apart && criterion.runs == 2, "{criterion:?}");
        assert_eq!((criterion.measured.to_string().as_str(), criterion.must_be.as_str()), ("1.50 to 1.90", "below 2"));
        let ranking = |low: f64, high: f64| order::ranked("y", &[("a", vec![low]), ("b", vec![high])], "us");
        let mut criterion = ranking(1.0, 2.0);
        criterion.merge(ranking(1.5, 2.1));
        assert!(criterion.holds, "0.8 apart, spreads of 0.5 and 0.1: {criterion:?}");
        criterion.merge(ranking(2.2, 2.0));
        assert!(!criterion.holds && !criterion.told_apart, "{criterion:?}");
    }

    #[test]
    fn equals_are_in_an_order_that_allows_them() {
        let of =
            |low: &[f64], high: &[f64]| order::never_falls("x", &[("a", low.to_vec()), ("b", high.to_vec())], "us");
        assert!(of(&[2.0, 3.0], &[1.9, 2.8]).holds, "by less than the spread");
        let falls = of(&[3.0, 3.1], &[2.0, 2.1]);
        assert!(!falls.holds && falls.told_apart);
    }
}
