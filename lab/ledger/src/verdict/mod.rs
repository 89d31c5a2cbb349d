//! Verdicts, and the rules they follow. A rule turns a figure into a criterion that holds or does not; an experiment is
//! reproduced when all of its criteria hold.
//!
//! | file | rule | holds when |
//! |---|---|---|
//! | `exact` | a formula or a table | the figure, rounded to the published digits, equals the published one |
//! | `ratio` | a relative result | within its band; without a band, same direction and half of the published effect |
//! | `atmost` | a cost | at most the published figure |
//! | `order` | a ranking or shape | each in its place, at every point |

pub mod atmost;
pub mod exact;
pub mod order;
pub mod ratio;

use serde::Serialize;

use crate::claim::Kind;
use crate::figures::Value;

/// A criterion.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Criterion {
    /// The measured quantity.
    pub what: String,
    /// The measured value.
    pub measured: Value,
    /// Its unit.
    pub unit: String,
    /// The required value.
    pub must_be: String,
    /// Whether it holds.
    pub holds: bool,
}

impl Criterion {
    fn number(what: impl Into<String>, measured: f64, unit: &str, must_be: String, holds: bool) -> Criterion {
        Criterion { what: what.into(), measured: Value::Number(measured), unit: unit.to_owned(), must_be, holds }
    }

    fn text(
        what: impl Into<String>,
        measured: impl Into<String>,
        unit: &str,
        must_be: String,
        holds: bool,
    ) -> Criterion {
        Criterion { what: what.into(), measured: Value::Text(measured.into()), unit: unit.to_owned(), must_be, holds }
    }
}

/// Figures shown beside those that are judged.
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
    /// Parts of the claim that the experiment cannot measure, each with the reason.
    pub unmeasured: Vec<String>,
}

/// The verdict of an experiment.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Every criterion holds.
    Reproduced,
    /// Every criterion holds, and a part of the claim has none: it cannot be measured yet.
    InPart,
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
            (Verdict::InPart, Kind::Result) => "reproduced in part",
            (Verdict::InPart, Kind::Design) => "holds in part",
            (Verdict::Missed, _) => "missed",
            (Verdict::NotMeasured, _) => "not measured",
            (Verdict::Failed, _) => "failed",
        }
    }
}

impl Judgement {
    /// The verdict, and for a miss the criteria that do not hold, with the reason; with parts that are not measured.
    pub fn verdict(&self) -> (Verdict, String) {
        let missed: Vec<&str> = self
            .criteria
            .iter()
            .filter(|criterion| !criterion.holds)
            .map(|criterion| criterion.what.as_str())
            .collect();
        let unmeasured = match self.unmeasured.is_empty() {
            true => String::new(),
            false => format!("not measured: {}", self.unmeasured.join("; ")),
        };
        match (self.criteria.is_empty(), missed.is_empty()) {
            (true, _) => (Verdict::Failed, "the experiment judged nothing".to_owned()),
            (false, true) if unmeasured.is_empty() => (Verdict::Reproduced, unmeasured),
            (false, true) => (Verdict::InPart, unmeasured),
            (false, false) => {
                let reason = if self.reason.is_empty() { "No reason has been found" } else { &self.reason };
                let gap = if unmeasured.is_empty() { "" } else { ". " };
                (Verdict::Missed, format!("missed: {}. {reason}{gap}{unmeasured}", missed.join("; ")))
            }
        }
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
    fn a_design_is_never_reproduced() {
        assert_eq!(Verdict::InPart.name(Kind::Design), "holds in part");
        assert_eq!(Verdict::Reproduced.name(Kind::Design), "holds");
        assert_eq!(Verdict::Reproduced.name(Kind::Result), "reproduced");
    }
}
