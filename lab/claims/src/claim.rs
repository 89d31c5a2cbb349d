//! The form of every claim: what was published, what is measured, the verdict; as a table and as JSON.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use nandscape_sim::{Histogram, Span};
use serde::Serialize;

/// A published claim and the way to measure it.
pub struct Claim {
    /// Its name.
    pub id: &'static str,
    /// Where it was published.
    pub source: &'static str,
    /// What it says, with its numbers.
    pub published: &'static str,
    /// What a run must show.
    pub must_show: &'static str,
    /// Measures it.
    pub measure: fn(&Effort) -> anyhow::Result<Findings>,
}

/// How long to measure. All points of a claim take turns, round after round, so that what disturbs the machine meets all
/// of them alike.
#[derive(Copy, Clone, Debug)]
pub struct Effort {
    /// Rounds.
    pub rounds: u32,
    /// Time of one point in one round.
    pub slice: Span,
}

/// What a measurement gave.
#[derive(Default, Debug)]
pub struct Findings {
    /// The figures.
    pub measured: Vec<Measured>,
    /// Why a figure is what it is, where that is known whatever the verdict.
    pub notes: Vec<String>,
    /// The reason, should a bound be missed.
    pub reason: String,
}

/// One figure.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Measured {
    /// What it is.
    pub name: String,
    /// The figure.
    pub value: f64,
    /// Its unit.
    pub unit: &'static str,
    /// What it must be for the claim to hold; nothing for those that stand beside it.
    pub must_be: Option<Bound>,
}

/// A bound.
#[derive(Copy, Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// Less than this.
    Below(f64),
    /// More than this.
    Above(f64),
}

/// What came of a claim.
#[derive(Debug, Serialize)]
pub struct Outcome {
    /// The version of this form.
    pub schema: u32,
    /// The claim's name.
    pub id: &'static str,
    /// Where it was published.
    pub source: &'static str,
    /// What was published.
    pub published: &'static str,
    /// What a run must show.
    pub must_show: &'static str,
    /// What was measured.
    pub measured: Vec<Measured>,
    /// Remarks on the figures.
    pub notes: Vec<String>,
    /// Whether every bound holds.
    pub verdict: Verdict,
    /// Which bounds do not hold, and why; empty where all do.
    pub reason: String,
}

/// The verdict.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Every bound holds.
    Reproduced,
    /// One does not.
    Missed,
}

impl Bound {
    /// Whether a figure is within it.
    pub fn holds(self, value: f64) -> bool {
        match self {
            Bound::Below(bound) => value < bound,
            Bound::Above(bound) => value > bound,
        }
    }

    fn words(self) -> String {
        match self {
            Bound::Below(bound) => format!("below {}", short(bound)),
            Bound::Above(bound) => format!("above {}", short(bound)),
        }
    }
}

impl Measured {
    /// Whether its bound holds; what has none holds.
    pub fn holds(&self) -> bool {
        self.must_be.is_none_or(|bound| bound.holds(self.value))
    }
}

impl Findings {
    /// Adds a figure that must be within a bound.
    pub fn judge(&mut self, name: impl Into<String>, value: f64, unit: &'static str, bound: Bound) {
        self.measured.push(Measured { name: name.into(), value, unit, must_be: Some(bound) });
    }

    /// Adds a figure that stands beside those that are judged.
    pub fn beside(&mut self, name: impl Into<String>, value: f64, unit: &'static str) {
        self.measured.push(Measured { name: name.into(), value, unit, must_be: None });
    }
}

impl Claim {
    /// Measures and judges.
    ///
    /// # Errors
    /// When it could not be measured.
    pub fn outcome(&self, effort: &Effort) -> anyhow::Result<Outcome> {
        let Findings { measured, notes, reason } = (self.measure)(effort)?;
        let Claim { id, source, published, must_show, .. } = *self;
        let missed: Vec<&str> =
            measured.iter().filter(|figure| !figure.holds()).map(|figure| figure.name.as_str()).collect();
        let (verdict, reason) = match missed.is_empty() {
            true => (Verdict::Reproduced, String::new()),
            false => (Verdict::Missed, format!("missed: {}. {reason}", missed.join("; "))),
        };
        Ok(Outcome { schema: 1, id, source, published, must_show, measured, notes, verdict, reason })
    }
}

impl Outcome {
    /// For people.
    pub fn to_text(&self) -> String {
        let mut table = Table::new();
        table.load_style(NOTHING).set_header(["measured", "", "unit", "must be", ""]);
        for figure in &self.measured {
            let must_be = figure.must_be.map_or_else(String::new, Bound::words);
            let holds = match (figure.must_be, figure.holds()) {
                (None, _) => "",
                (_, true) => "holds",
                (_, false) => "MISSED",
            };
            table.add_row([&figure.name, &short(figure.value), figure.unit, must_be.as_str(), holds]);
        }
        if let Some(values) = table.column_mut(1) {
            values.set_cell_alignment(CellAlignment::Right);
        }
        let mut text =
            format!("{} ({})\npublished: {}\nto show: {}\n\n", self.id, self.source, self.published, self.must_show);
        text.push_str(&table.trim_fmt());
        text.push('\n');
        self.notes.iter().for_each(|note| text.push_str(&format!("\nnote: {note}")));
        match self.verdict {
            Verdict::Reproduced => text.push_str("\nverdict: reproduced\n"),
            Verdict::Missed => text.push_str(&format!("\nverdict: missed\n{}\n", self.reason)),
        }
        text
    }

    /// As one JSON object.
    ///
    /// # Panics
    /// Never: all of it is plain data.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("plain data")
    }
}

/// A quantile in microseconds.
pub fn us(histogram: &Histogram, quantile: f64) -> f64 {
    histogram.quantile(quantile).as_us()
}

fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 1e6 => format!("{:.3} M", value / 1e6),
        size if size >= 1e4 => format!("{:.1} k", value / 1e3),
        size if size >= 100.0 => format!("{value:.0}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measure(_: &Effort) -> anyhow::Result<Findings> {
        let mut findings = Findings { reason: "Because.".to_owned(), ..Findings::default() };
        findings.judge("latency", 12.0, "us", Bound::Below(10.0));
        findings.judge("rate", 2e6, "1/s", Bound::Above(1e6));
        findings.beside("other", 0.25, "us");
        Ok(findings)
    }

    #[test]
    fn a_missed_bound_is_a_miss_with_its_reason() {
        let claim = Claim { id: "a", source: "b", published: "c", must_show: "d", measure };
        let outcome = claim.outcome(&Effort { rounds: 1, slice: Span::ZERO }).unwrap();
        assert_eq!((outcome.verdict, outcome.reason.as_str()), (Verdict::Missed, "missed: latency. Because."));
        let text = outcome.to_text();
        assert!(["below 10.00", "MISSED", "2.000 M", "holds"].iter().all(|words| text.contains(words)), "{text}");
        let json: serde_json::Value = serde_json::from_str(&outcome.to_json()).unwrap();
        assert_eq!((&json["verdict"], &json["measured"][0]["must_be"]["below"]), (&"missed".into(), &10.0.into()));
    }

    #[test]
    fn a_bound_itself_is_outside() {
        assert!(!Bound::Below(1.0).holds(1.0) && !Bound::Above(1.0).holds(1.0));
        assert!(Bound::Below(1.0).holds(0.9) && Bound::Above(1.0).holds(1.1) && !Bound::Below(1.0).holds(f64::NAN));
    }
}
