//! Groups runs into experiments: the runs of one experiment have the same inputs except the seed.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Value, json};

use super::load::Run;

/// Runs of one experiment.
#[derive(Serialize)]
pub struct Column {
    /// Its label: the name of its folder or file.
    pub label: String,
    /// Its files.
    pub files: Vec<String>,
    /// Their seeds.
    pub seeds: Vec<u64>,
    #[serde(skip)]
    pub(crate) runs: Vec<Run>,
}

/// The inputs of a run except the seed. A report without inputs is a separate experiment.
fn inputs(run: &Run) -> Value {
    let (report, inputs) = (&run.report, &run.report["inputs"]);
    if inputs.is_null() {
        return json!(run.path);
    }
    json!([
        report["profile"],
        report["workload"],
        report["precondition"],
        inputs["profile_keys"],
        inputs["workload_lines"],
        inputs["host"],
        report["host"]["version"]
    ])
}

fn seed(run: &Run) -> u64 {
    run.report["seed"].as_u64().unwrap_or(0)
}

/// Runs that differ only in the seed become one column, in the place of the first. If two of them have the same seed, as when
/// versions of the program are compared, each becomes a column.
pub(super) fn columns(runs: Vec<Run>) -> Vec<Column> {
    let mut groups: Vec<(Value, Vec<Run>)> = Vec::new();
    for run in runs {
        let inputs = inputs(&run);
        match groups.iter_mut().find(|(of, _)| *of == inputs) {
            Some((_, group)) => group.push(run),
            None => groups.push((inputs, vec![run])),
        }
    }
    let mut columns = Vec::new();
    for (_, group) in groups {
        let seeds: BTreeSet<u64> = group.iter().map(seed).collect();
        match seeds.len() == group.len() {
            true => columns.push(column(group)),
            false => columns.extend(group.into_iter().map(|run| column(vec![run]))),
        }
    }
    tell_apart(&mut columns);
    columns
}

fn column(runs: Vec<Run>) -> Column {
    Column {
        label: together(&runs.iter().map(label).collect::<Vec<_>>()),
        files: runs.iter().map(|run| run.path.display().to_string()).collect(),
        seeds: runs.iter().map(seed).collect(),
        runs,
    }
}

/// The name of the file, or of its folder for files called report.json.
fn label(run: &Run) -> String {
    let stem = run.path.file_stem().map_or(String::new(), |stem| stem.to_string_lossy().into_owned());
    let folder = run.path.parent().and_then(|folder| folder.file_name());
    match (stem.as_str(), folder) {
        ("report", Some(folder)) => folder.to_string_lossy().into_owned(),
        _ => stem,
    }
}

/// One label for runs of one experiment: the common beginning of their labels, without the number that distinguishes
/// them.
fn together(labels: &[String]) -> String {
    let [first, rest @ ..] = labels else { return String::new() };
    if rest.is_empty() {
        return first.clone();
    }
    let common = rest.iter().fold(first.as_str(), |common, label| {
        let same = common.char_indices().zip(label.chars()).find(|((_, one), other)| one != other);
        let len = same.map_or(common.len().min(label.len()), |((at, _), _)| at);
        &common[..len]
    });
    let is_separator = |letter: char| letter.is_ascii_digit() || "-_. ".contains(letter);
    let common = common.trim_end_matches(is_separator);
    let common = ["-seed", "_seed", ".seed", " seed", "-s", "_s"]
        .iter()
        .find_map(|end| common.strip_suffix(end))
        .unwrap_or(common);
    if common.is_empty() { format!("{first} and {} more", rest.len()) } else { common.to_owned() }
}

/// Replaces labels that occur twice by paths.
fn tell_apart(columns: &mut [Column]) {
    let labels: Vec<String> = columns.iter().map(|column| column.label.clone()).collect();
    for column in columns.iter_mut() {
        if labels.iter().filter(|label| **label == column.label).count() > 1 {
            column.label.clone_from(&column.files[0]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(path: &str, scheme: &str, seed: u64) -> Run {
        let report = json!({"profile": "p", "workload": "w", "precondition": "full", "seed": seed,
            "inputs": {"profile_keys": {"scheme": scheme}, "workload_lines": ["rw=read"]}});
        Run { path: path.into(), report }
    }

    fn shown(runs: Vec<Run>) -> Vec<(String, Vec<u64>)> {
        columns(runs).into_iter().map(|column| (column.label, column.seeds)).collect()
    }

    #[test]
    fn runs_that_differ_in_their_seed_only_are_one_experiment() {
        let runs = vec![run("a1/report.json", "plane", 1), run("b.json", "none", 1), run("a2/report.json", "plane", 2)];
        assert_eq!(shown(runs), [("a".to_owned(), vec![1, 2]), ("b".to_owned(), vec![1])]);
    }

    #[test]
    fn a_pool_is_called_after_all_of_its_runs() {
        let called = |labels: &[&str]| together(&labels.iter().map(|label| (*label).to_owned()).collect::<Vec<_>>());
        assert_eq!(called(&["plane1", "plane2", "plane10"]), "plane");
        assert_eq!(called(&["w8-seed1", "w8-seed2"]), "w8");
        assert_eq!(called(&["a", "b", "c"]), "a and 2 more");
        assert_eq!(called(&["x1"]), "x1");
        assert_eq!(called(&["größe", "großes"]), "gr");
    }

    #[test]
    fn the_same_seed_twice_is_two_columns() {
        let runs = vec![run("old/report.json", "plane", 1), run("new/report.json", "plane", 1)];
        assert_eq!(shown(runs), [("old".to_owned(), vec![1]), ("new".to_owned(), vec![1])]);
        let runs = vec![run("x/a.json", "plane", 1), run("y/a.json", "plane", 1)];
        assert_eq!(shown(runs), [("x/a.json".to_owned(), vec![1]), ("y/a.json".to_owned(), vec![1])]);
    }
}
