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
    let lines: Vec<String> = report["inputs"]["workload_lines"].as_array().into_iter().flatten().map(text).collect();
    workload(&lines, &mut inputs);
    flatten("", &report["inputs"]["profile_keys"], &mut inputs);
    if let Some(name) = report["inputs"]["host"]["name"].as_str() {
        inputs.insert("host".to_owned(), name.to_owned());
        flatten("", &report["inputs"]["host"]["keys"], &mut inputs);
    }
    inputs
}

/// The line of a store, in the report of an engine.
const STORE: &str = "store: ";

/// The words of a workload's lines, an input each; words without a value stay together. The last line is the end of the run; an engine has
/// lines of its load, and one of its store.
fn workload(lines: &[String], into: &mut BTreeMap<String, String>) {
    let (several, is_engine) = (lines.len() > 2, lines.iter().any(|line| line.starts_with(STORE)));
    for (number, line) in lines.iter().enumerate() {
        let (of, line) = match line.strip_prefix(STORE) {
            Some(keys) => ("store".to_owned(), keys),
            None if is_engine => (format!("load, line {}", number + 1), &**line),
            None if several && number + 1 < lines.len() => (format!("job {}", number + 1), &**line),
            None => ("workload".to_owned(), &**line),
        };
        let (words, rest): (Vec<&str>, Vec<&str>) = line.split(' ').partition(|word| word.contains('='));
        for (key, value) in words.into_iter().filter_map(|word| word.split_once('=')) {
            into.insert(format!("{of}: {key}"), value.to_owned());
        }
        if !rest.is_empty() {
            into.insert(of, rest.join(" "));
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_is_told_apart_word_by_word() {
        let mut inputs = BTreeMap::new();
        workload(&["rw=randread iodepth=8".to_owned(), "io_count=9".to_owned()], &mut inputs);
        let shown: Vec<(&str, &str)> = inputs.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!(shown, [("workload: io_count", "9"), ("workload: iodepth", "8"), ("workload: rw", "randread")]);
        let mut inputs = BTreeMap::new();
        workload(&["log: rw=write".to_owned(), "a trace".to_owned(), "io_count=9".to_owned()], &mut inputs);
        let shown: Vec<(&str, &str)> = inputs.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let expected = [("job 1", "log:"), ("job 1: rw", "write"), ("job 2", "a trace"), ("workload: io_count", "9")];
        assert_eq!(shown, expected);
        let mut inputs = BTreeMap::new();
        workload(&["9 keys".to_owned(), "2 clients".to_owned(), "store: form=lsm run=4MiB".to_owned()], &mut inputs);
        let shown: Vec<(&str, &str)> = inputs.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let expected =
            [("load, line 1", "9 keys"), ("load, line 2", "2 clients"), ("store: form", "lsm"), ("store: run", "4MiB")];
        assert_eq!(shown, expected);
    }
}
