//! Notes on points whose figures need care: overload, and the notes of their runs. Notes that differ in numbers alone are one line.

use std::collections::BTreeMap;

use nandscape_lab_sweep::Outcome;
use serde_json::Value;

use crate::output;

const OVERLOADED: &str = "OVERLOADED: the queue grows, and latencies with it";

/// Prints a note for each kind, with the first point that has it.
pub(super) fn print(outcome: &Outcome) {
    let of = outcome.states.len();
    for (first, text, count) in kinds(outcome.states.iter().map(|state| state.report())) {
        let label = outcome.plan.sweep.label(&outcome.plan.points[first].choices);
        output::note(&format!("{count} of {of} points, the first {label}: {text}"));
    }
}

/// The first point with a note of each kind, its text, and how many points have one.
fn kinds<'a>(reports: impl Iterator<Item = Option<&'a Value>>) -> Vec<(usize, String, usize)> {
    let mut kinds: BTreeMap<String, (usize, String, usize)> = BTreeMap::new();
    for (at, report) in reports.enumerate().filter_map(|(at, report)| Some((at, report?))) {
        let is_overloaded = report["arrivals"]["overloaded"].as_bool() == Some(true);
        let noted = report["notes"].as_array().into_iter().flatten().filter_map(Value::as_str);
        for text in noted.chain(is_overloaded.then_some(OVERLOADED)) {
            let kind = text.chars().filter(|letter| !letter.is_ascii_digit() && *letter != '.').collect();
            kinds.entry(kind).or_insert_with(|| (at, text.to_owned(), 0)).2 += 1;
        }
    }
    let mut kinds: Vec<_> = kinds.into_values().collect();
    kinds.sort();
    kinds
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn notes_that_differ_in_numbers_are_one() {
        let reports = [
            json!({"notes": ["nothing completed for 1.5 ms"]}),
            json!({"arrivals": {"overloaded": true}, "notes": ["nothing completed for 20 ms"]}),
        ];
        let found = kinds([None, Some(&reports[0]), Some(&reports[1])].into_iter());
        assert_eq!(found, [(1, "nothing completed for 1.5 ms".to_owned(), 2), (2, OVERLOADED.to_owned(), 1)]);
    }
}
