//! Verdicts, and the rules they follow. A rule turns a figure into a criterion that holds or does not; an experiment is
//! reproduced when all of its criteria hold.
//!
//! | file | rule | holds when |
//! |---|---|---|
//! | `exact` | a formula or a table | the figure, rounded to the published digits, equals the published one |
//! | `ratio` | a relative result | within its band; without a band, same direction and half of the published effect |
//! | `atmost` | a cost | at most the published figure |
//! | `order` | a ranking or shape | each in its place, at every point |
//! | `criterion` | all of these | the margin is wider than the spread of the runs |
//! | `published` | none | the published figure of each criterion, and figures that the profile was given |

pub mod atmost;
mod criterion;
pub mod exact;
pub mod order;
mod published;
pub mod ratio;

use serde::Serialize;

pub use self::criterion::{Criterion, Role, Runs};
pub use self::published::Published;
use crate::claim::Kind;

/// The factor by which a figure may differ from the published one before the verdict reports that its size is not reproduced.
pub(crate) const SIZE: f64 = 3.0;

/// Figures shown next to the judged ones.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Table {
    /// Its title.
    pub title: String,
    /// Names of the columns. The first is the row's own.
    pub head: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<String>>,
}

/// The judgement of the figures.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Judgement {
    /// The criteria.
    pub criteria: Vec<Criterion>,
    /// Tables for information.
    pub tables: Vec<Table>,
    /// Remarks, for any verdict.
    pub notes: Vec<String>,
    /// The reason for a miss; empty if none is known.
    pub reason: String,
    /// Parts of the claim that the experiment cannot measure, and why.
    pub unmeasured: Vec<String>,
    /// Runs that the rules ask for and that do not exist yet.
    pub awaits: Vec<String>,
    /// Choices that the paper leaves open and that decide the verdict, with the outcome of each reading.
    pub depends: Vec<String>,
}

/// The verdict of an experiment.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Every criterion holds.
    Reproduced,
    /// Every criterion holds, and a figure is more than three times as large or as small as the published one.
    InOrder,
    /// Every criterion holds, and a part of the claim has none: it cannot be measured yet.
    InPart,
    /// A choice that the paper leaves open decides.
    Depends,
    /// Every criterion holds so far, and the rules ask for a run that does not exist yet.
    Awaits,
    /// The margin of a criterion is smaller than the spread between runs: a miss.
    NotToldApart,
    /// A criterion does not hold.
    Missed,
    /// There are no figures to judge: no run yet, or a machine that cannot run it.
    NotMeasured,
    /// A point failed, or its figures make no sense.
    Failed,
}

impl Verdict {
    /// Its name. A part described without a result cannot be reproduced: it holds.
    pub const fn name(self, kind: Kind) -> &'static str {
        match (self, kind) {
            (Verdict::Reproduced, Kind::Result) => "reproduced",
            (Verdict::Reproduced, Kind::Design) => "holds",
            (Verdict::InOrder, Kind::Result) => "reproduced in order, not in size",
            (Verdict::InOrder, Kind::Design) => "holds in order, not in size",
            (Verdict::InPart, Kind::Result) => "reproduced in part",
            (Verdict::InPart, Kind::Design) => "holds in part",
            (Verdict::Depends, _) => "depends",
            (Verdict::Awaits, _) => "asks for a run",
            (Verdict::NotToldApart, _) => "not told apart",
            (Verdict::Missed, _) => "missed",
            (Verdict::NotMeasured, _) => "not measured",
            (Verdict::Failed, _) => "failed",
        }
    }

    /// Whether the verdict counts as a miss.
    pub const fn is_miss(self) -> bool {
        matches!(self, Verdict::Missed | Verdict::NotToldApart)
    }
}

impl Judgement {
    /// Adds the criteria of readings of a point that the paper leaves open. Where the readings agree all of them count. Where
    /// they do not, the verdict depends on the point, and the criteria are shown.
    pub fn add_readings(&mut self, open: &str, readings: Vec<(&str, Vec<Criterion>)>) {
        let outcomes: Vec<bool> =
            readings.iter().map(|(_, criteria)| criteria.iter().all(|criterion| criterion.holds)).collect();
        let agree = outcomes.windows(2).all(|pair| pair[0] == pair[1]);
        if !agree {
            let word = |holds: &bool| if *holds { "holds" } else { "missed" };
            let told: Vec<String> =
                readings.iter().zip(&outcomes).map(|((name, _), holds)| format!("{name}: {}", word(holds))).collect();
            self.depends.push(format!("{open} ({})", told.join("; ")));
        }
        let role = if agree { Role::Judged } else { Role::Reading };
        let criteria = readings.into_iter().flat_map(|(_, criteria)| criteria);
        self.criteria.extend(criteria.map(|criterion| Criterion { role, ..criterion }));
    }

    /// Adds the judgement of a further run of all points. A criterion that this run has not is left out, and a note names it.
    pub(crate) fn merge(&mut self, other: Judgement) {
        let mut others = other.criteria;
        self.criteria.retain_mut(|criterion| match others.iter().position(|other| other.what == criterion.what) {
            Some(place) => {
                criterion.merge(others.remove(place));
                true
            }
            None => {
                self.notes.push(format!("{}: not judged, as not every run has it", criterion.what));
                false
            }
        });
        if self.reason.is_empty() {
            self.reason = other.reason;
        }
        for (all, more) in [(&mut self.unmeasured, other.unmeasured), (&mut self.depends, other.depends)] {
            for one in more {
                if !all.contains(&one) {
                    all.push(one);
                }
            }
        }
    }

    /// The verdict, and what a reader has to know of it: criteria that do not hold, and why; dependences; figures far
    /// from the published size; what is not measured, and which run the rules require.
    pub fn verdict(&self) -> (Verdict, String) {
        let judged = || self.criteria.iter().filter(|criterion| criterion.role == Role::Judged);
        let names = |of: &dyn Fn(&Criterion) -> bool| -> Vec<&str> {
            judged().filter(|criterion| of(criterion)).map(|criterion| criterion.what.as_str()).collect()
        };
        let missed = names(&|criterion| !criterion.holds && criterion.told_apart);
        let near = names(&|criterion| !criterion.holds && !criterion.told_apart);
        let far = names(&|criterion| criterion.holds && criterion.times_off.is_some_and(|times| times > SIZE));
        let verdict = match self {
            _ if judged().next().is_none() && self.depends.is_empty() => {
                return (Verdict::Failed, "the experiment judged nothing".to_owned());
            }
            _ if !missed.is_empty() => Verdict::Missed,
            _ if !near.is_empty() => Verdict::NotToldApart,
            _ if !self.depends.is_empty() => Verdict::Depends,
            _ if !self.awaits.is_empty() => Verdict::Awaits,
            _ if !self.unmeasured.is_empty() => Verdict::InPart,
            _ if !far.is_empty() => Verdict::InOrder,
            _ => Verdict::Reproduced,
        };
        let depends: Vec<&str> = self.depends.iter().map(String::as_str).collect();
        let mut told = Vec::new();
        let mut tell = |lead: &str, what: &[&str]| {
            if !what.is_empty() {
                told.push(format!("{lead}: {}", what.join("; ")));
            }
        };
        tell("depends on", &depends);
        tell("missed", &missed);
        tell("not told apart", &near);
        if verdict.is_miss() || verdict == Verdict::Depends {
            let none = if verdict.is_miss() { "No reason has been found" } else { "" };
            let reason = if self.reason.is_empty() { none } else { &self.reason };
            told.extend((!reason.is_empty()).then(|| reason.to_owned()));
        }
        let mut tell = |lead: &str, what: &[&str]| {
            if !what.is_empty() {
                told.push(format!("{lead}: {}", what.join("; ")));
            }
        };
        tell("in order, not in size", &far);
        tell("not measured", &self.unmeasured.iter().map(String::as_str).collect::<Vec<_>>());
        tell("asks for a run that does not exist yet", &self.awaits.iter().map(String::as_str).collect::<Vec<_>>());
        (verdict, told.join(". "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_criterion_that_does_not_hold_is_a_miss_with_its_reason() {
        let mut judgement = Judgement { reason: "Because".to_owned(), ..Judgement::default() };
        assert_eq!(judgement.verdict().0, Verdict::Failed, "nothing is judged");
        judgement.criteria.push(order::below("latency", 1.0, "us", 2.0));
        assert_eq!(judgement.verdict(), (Verdict::Reproduced, String::new()));
        judgement.criteria.push(order::above("rate", 1.0, "1/s", 2.0));
        assert_eq!(judgement.verdict(), (Verdict::Missed, "missed: rate. Because".to_owned()));
        judgement.reason.clear();
        assert_eq!(judgement.verdict().1, "missed: rate. No reason has been found");
    }

    #[test]
    fn a_claim_with_a_part_that_is_not_measured_is_reproduced_in_part() {
        let mut judgement = Judgement { unmeasured: vec!["a part".to_owned()], ..Judgement::default() };
        assert_eq!(judgement.verdict().0, Verdict::Failed, "nothing is judged");
        judgement.criteria.push(order::below("latency", 1.0, "us", 2.0));
        assert_eq!(judgement.verdict(), (Verdict::InPart, "not measured: a part".to_owned()));
        judgement.criteria.push(order::above("rate", 1.0, "1/s", 2.0));
        let reason = "missed: rate. No reason has been found. not measured: a part";
        assert_eq!(judgement.verdict(), (Verdict::Missed, reason.to_owned()));
    }

    #[test]
    fn a_margin_within_the_spread_is_a_miss() {
        let mut judgement = Judgement::default();
        judgement.criteria.push(order::below("latency", vec![1.5, 1.7, 1.95], "us", 2.0));
        let (verdict, reason) = judgement.verdict();
        assert!(verdict == Verdict::NotToldApart && verdict.is_miss(), "{reason}");
        assert_eq!(reason, "not told apart: latency. No reason has been found");
    }

    #[test]
    fn what_the_profile_was_given_does_not_count() {
        let mut judgement = Judgement::default();
        judgement.criteria.push(order::below("latency", 1.0, "us", 2.0));
        judgement.criteria.push(Criterion { role: Role::Calibration, ..order::below("given", 3.0, "us", 2.0) });
        assert_eq!(judgement.verdict(), (Verdict::Reproduced, String::new()));
        judgement.criteria.remove(0);
        assert_eq!(judgement.verdict().0, Verdict::Failed, "calibration alone judges nothing");
    }

    #[test]
    fn an_order_of_another_size_is_told() {
        let mut judgement = Judgement::default();
        judgement.criteria.push(Criterion { times_off: Some(2.9), ..order::below("near", 1.0, "us", 2.0) });
        assert_eq!(judgement.verdict().0, Verdict::Reproduced);
        judgement.criteria.push(Criterion { times_off: Some(3.1), ..order::below("far", 1.0, "us", 2.0) });
        assert_eq!(judgement.verdict(), (Verdict::InOrder, "in order, not in size: far".to_owned()));
        judgement.awaits.push("three seeds".to_owned());
        let reason = "in order, not in size: far. asks for a run that does not exist yet: three seeds";
        assert_eq!(judgement.verdict(), (Verdict::Awaits, reason.to_owned()));
    }

    #[test]
    fn readings_that_disagree_make_the_verdict_depend() {
        let reading = |measured| vec![order::below("latency", measured, "us", 2.0)];
        let mut judgement = Judgement::default();
        judgement.add_readings("the size", vec![("small", reading(1.0)), ("large", reading(1.5))]);
        assert_eq!((judgement.verdict().0, judgement.criteria.len()), (Verdict::Reproduced, 2));
        let mut judgement = Judgement::default();
        judgement.add_readings("the size", vec![("small", reading(1.0)), ("large", reading(3.0))]);
        let reason = "depends on: the size (small: holds; large: missed)";
        assert_eq!(judgement.verdict(), (Verdict::Depends, reason.to_owned()));
    }

    #[test]
    fn runs_are_judged_together() {
        let of = |values: &[(&str, f64)]| {
            let criteria = values.iter().map(|(what, value)| order::below(*what, *value, "us", 2.0)).collect();
            Judgement { criteria, ..Judgement::default() }
        };
        let mut judgement = of(&[("a", 1.0), ("b", 1.0)]);
        judgement.merge(of(&[("a", 1.9)]));
        assert_eq!(judgement.criteria.len(), 1, "{judgement:?}");
        assert_eq!(judgement.notes, ["b: not judged, as not every run has it"]);
        assert_eq!(judgement.verdict().0, Verdict::NotToldApart);
    }

    #[test]
    fn a_design_is_never_reproduced() {
        assert_eq!(Verdict::InPart.name(Kind::Design), "holds in part");
        assert_eq!(Verdict::Reproduced.name(Kind::Design), "holds");
        assert_eq!(Verdict::Reproduced.name(Kind::Result), "reproduced");
    }
}
