//! Sentences, and the figures of a report as their evidence. A figure has its path in the report's JSON, the parts
//! separated by dots: `latency_us.read.p99_9`; elements of a list are numbers.

use serde::Serialize;
use serde_json::Value;

/// The kind of a sentence.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A fact.
    Finding,
    /// A change to try.
    Advice,
}

/// A figure that a sentence rests on.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Evidence {
    /// Its place in the report.
    pub path: String,
    /// The figure's value.
    pub value: Value,
}

/// A sentence with its figures.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Sentence {
    /// Its kind.
    pub kind: Kind,
    /// In words.
    pub text: String,
    /// One figure or more.
    pub figures: Vec<Evidence>,
}

impl Evidence {
    /// Path and value, numbers rounded.
    pub fn text(&self) -> String {
        let value = match self.value.as_f64() {
            Some(number) if number.fract() != 0.0 && number.abs() >= 100.0 => format!("{number:.1}"),
            Some(number) if number.fract() != 0.0 => format!("{number:.4}").trim_end_matches('0').to_owned(),
            _ => self.value.to_string(),
        };
        format!("{} = {value}", self.path)
    }
}

impl Sentence {
    /// Its figures, as text.
    pub fn brackets(&self) -> String {
        self.figures.iter().map(Evidence::text).collect::<Vec<_>>().join(", ")
    }
}

/// The value at a path.
pub(super) fn at<'a>(report: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(report, |at, part| match at {
        Value::Array(list) => list.get(part.parse::<usize>().ok()?),
        at => at.get(part),
    })
}

/// The number at a path.
pub(super) fn number(report: &Value, path: &str) -> Option<f64> {
    at(report, path)?.as_f64()
}

/// Collects the figures of a sentence while it is written.
pub(super) struct Cite<'a> {
    report: &'a Value,
    figures: Vec<Evidence>,
}

impl<'a> Cite<'a> {
    pub(super) fn of(report: &'a Value) -> Cite<'a> {
        Cite { report, figures: Vec::new() }
    }

    /// The number at a path, which becomes a figure of the sentence.
    pub(super) fn number(&mut self, path: &str) -> Option<f64> {
        let number = number(self.report, path)?;
        self.value(path);
        Some(number)
    }

    /// The value at a path becomes a figure of the sentence; one that is left out is null.
    pub(super) fn value(&mut self, path: &str) {
        let value = at(self.report, path).cloned().unwrap_or_default();
        if self.figures.iter().all(|figure| figure.path != path) {
            self.figures.push(Evidence { path: path.to_owned(), value });
        }
    }

    pub(super) fn finding(self, text: String) -> Sentence {
        self.sentence(Kind::Finding, text)
    }

    pub(super) fn advice(self, text: String) -> Sentence {
        self.sentence(Kind::Advice, text)
    }

    fn sentence(self, kind: Kind, text: String) -> Sentence {
        assert!(!self.figures.is_empty(), "no figure for: {text}");
        Sentence { kind, text, figures: self.figures }
    }
}
