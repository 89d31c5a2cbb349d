//! The inputs that differ between experiments: keys of the profile, the workload, the state at the start, the seeds.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use super::group::Column;

/// An input that differs between experiments.
#[derive(PartialEq, Debug, Serialize)]
pub struct Difference {
    /// A key of the profile, or a field of the report.
    pub key: String,
    /// Its value in each experiment; empty where it has none.
    pub values: Vec<String>,
}

/// All inputs that differ.
pub(super) fn of(columns: &[Column]) -> Vec<Difference> {
    let all: Vec<BTreeMap<String, String>> = columns.iter().map(inputs).collect();
    let keys: BTreeSet<&String> = all.iter().flat_map(BTreeMap::keys).collect();
    let difference = |key: &String| {
        let values: Vec<String> = all.iter().map(|inputs| inputs.get(key).cloned().unwrap_or_default()).collect();
        Difference { key: key.clone(), values }
    };
    let differs = |difference: &Difference| difference.values.iter().any(|value| *value != difference.values[0]);
    keys.into_iter().map(difference).filter(differs).collect()
}

fn inputs(column: &Column) -> BTreeMap<String, String> {
    let report = &column.runs[0].report;
    let mut inputs = BTreeMap::new();
    for field in ["profile", "workload", "precondition"] {
        inputs.insert(field.to_owned(), text(&report[field]));
    }
    let seeds: Vec<String> = column.seeds.iter().map(u64::to_string).collect();
    inputs.insert("seed".to_owned(), seeds.join(" "));
    inputs.insert("version".to_owned(), text(&report["host"]["version"]));
    if let Some(lines) = report["inputs"]["workload_lines"].as_array() {
        inputs.insert("workload, job by job".to_owned(), lines.iter().map(text).collect::<Vec<_>>().join("; "));
    }
    flatten("", &report["inputs"]["profile_keys"], &mut inputs);
    inputs
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Nested keys, with dots.
fn flatten(prefix: &str, value: &Value, into: &mut BTreeMap<String, String>) {
    for (key, value) in value.as_object().into_iter().flatten() {
        let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match value {
            Value::Object(_) => flatten(&path, value, into),
            value => drop(into.insert(path, text(value))),
        }
    }
}
