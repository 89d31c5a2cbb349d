//! A report in words: the causes of the tail of its latencies, and what to change. Each sentence names the figures of the report
//! that it rests on. Advice appears where the evidence holds, and never for options that the drive already has.
//!
//! | file | what |
//! |---|---|
//! | `cite` | sentences, and the figures that they rest on |
//! | `words` | stages and causes in words |
//! | `tail` | where the tail comes from |
//! | `limit` | what bounds the rate |
//! | `array` | what an array adds |
//! | `windows` | work outside of the windows of its drives |
//! | `faults` | rules of the fault plan that struck, outages, and requests that failed |
//! | `advice` | what to change |
//! | `load` | reports from files |
//!
//! Left out: the difference of two reports, which `compare` shows.

mod advice;
mod array;
mod cite;
mod faults;
mod host;
mod limit;
mod load;
mod tail;
#[cfg(test)]
mod tests;
mod windows;
mod words;

use serde::Serialize;
use serde_json::Value;

pub use cite::{Evidence, Kind, Sentence};

use crate::LoadError;

/// A report in words.
#[derive(Clone, Debug, Serialize)]
pub struct Explanation {
    /// The file or folder; empty if the report is not from a file.
    pub path: String,
    /// The drive.
    pub profile: String,
    /// The workload.
    pub workload: String,
    /// The seed.
    pub seed: u64,
    /// The findings, then the advice.
    pub sentences: Vec<Sentence>,
    /// Whether the report has its slowest requests: without them, sentences are about means.
    pub has_tail: bool,
    /// Whether the report covers an array: the reports of its drives have their own slowest requests.
    pub is_of_array: bool,
}

/// The version of the JSON form.
const SCHEMA: u32 = 1;

impl Explanation {
    /// Of a report as JSON, with or without the details of `--out`.
    pub fn of(report: &Value) -> Explanation {
        let text = |key: &str| report[key].as_str().unwrap_or_default().to_owned();
        let found = tail::sentences(report).into_iter().chain(limit::sentence(report));
        let found = found.chain(faults::sentences(report)).chain(array::found(report));
        let sentences = found.chain(advice::sentences(report)).chain(host::advice(report)).chain(array::advice(report));
        Explanation {
            path: String::new(),
            profile: text("profile"),
            workload: text("workload"),
            seed: report["seed"].as_u64().unwrap_or_default(),
            sentences: sentences.collect(),
            has_tail: report["details"]["tail"].is_object(),
            is_of_array: report["array"].is_object(),
        }
    }

    /// Of a report in a file, or in a folder that `sim --out` has written.
    ///
    /// # Errors
    /// When the file cannot be read or is no report.
    pub fn load(path: &std::path::Path) -> Result<Explanation, LoadError> {
        let report = load::report(path)?;
        Ok(Explanation { path: path.display().to_string(), ..Explanation::of(&report) })
    }

    /// The sentences of one kind.
    pub fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Sentence> {
        self.sentences.iter().filter(move |sentence| sentence.kind == kind)
    }

    /// As text: the findings and the advice, each sentence with its figures in brackets.
    pub fn text(&self) -> String {
        let origin = if self.path.is_empty() { String::new() } else { format!("{}: ", self.path) };
        let mut text = format!("{origin}{} under {}, seed {}\n", self.profile, self.workload, self.seed);
        for (kind, head) in [(Kind::Finding, "Where the tail comes from"), (Kind::Advice, "What to change")] {
            let mut sentences = self.of_kind(kind).peekable();
            if sentences.peek().is_some() {
                text.push_str(&format!("\n{head}\n"));
            }
            sentences.for_each(|one| text.push_str(&format!("  {}\n    [{}]\n", one.text, one.brackets())));
        }
        text
    }

    /// Several as one JSON object.
    pub fn to_json(all: &[Explanation]) -> String {
        serde_json::to_string_pretty(&serde_json::json!({ "schema": SCHEMA, "reports": all })).expect("plain data")
    }
}
