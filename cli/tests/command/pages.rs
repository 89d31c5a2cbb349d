//! The files of `sim --out`: the page, its data, the tables, and that recording them changes no figure.

use std::path::Path;

use serde_json::Value;

use crate::browser::{data, open, same_figures};
use crate::program::{number, sim};

const MIX: [&str; 8] =
    ["--set", "geometry.channels=8", "--rw", "randrw", "--precondition", "steady", "--io-count", "20000"];

/// A run with its folder.
fn recorded(folder: &Path, more: &[&str]) -> Value {
    sim(&[more, &["--out", &folder.display().to_string()]].concat())
}

fn read(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The rows of a table, by the names of its columns.
fn rows(folder: &Path, name: &str) -> Vec<std::collections::BTreeMap<String, String>> {
    let text = read(folder, name);
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let row =
        |line: &str| names.iter().map(|name| (*name).to_owned()).zip(line.split(',').map(str::to_owned)).collect();
    lines.map(row).collect()
}

#[test]
fn recording_changes_no_figure_and_is_the_same_each_time() {
    let (one, other) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let plain = sim(&MIX);
    let printed = recorded(one.path(), &MIX);
    same_figures(&plain, &printed);
    recorded(other.path(), &MIX);
    let details = |folder: &Path| {
        let report: Value = serde_json::from_str(&read(folder, "report.json")).expect("JSON");
        same_figures(&printed, &report);
        report["details"].clone()
    };
    assert_eq!(details(one.path()), details(other.path()));
    assert_eq!(read(one.path(), "series.csv"), read(other.path(), "series.csv"));
}

#[test]
fn the_page_shows_the_figures_of_the_report_and_draws_them() {
    let folder = tempfile::tempdir().expect("a folder");
    recorded(folder.path(), &MIX);
    let report: Value = serde_json::from_str(&read(folder.path(), "report.json")).expect("JSON");
    let html = read(folder.path(), "report.html");
    assert_eq!(data(&html), report);
    let dom = open(&folder.path().join("report.html"));
    for way in ["read", "write"] {
        let p99 = number(&report, &format!("/latency_us/{way}/p99"));
        let text = if p99 < 100.0 { format!("<td>{p99:.2}</td>") } else { format!("<td>{p99:.1}</td>") };
        assert!(dom.contains(&text), "no {text}");
    }
    assert!(dom.contains("ftl.gc") && dom.contains("randrw") && dom.contains("nandscape sim --json --check"));
    assert!(!html.contains("undefined") || html.contains("=== undefined"));
}

#[test]
fn what_is_recorded_sums_to_the_figures() {
    let folder = tempfile::tempdir().expect("a folder");
    let report = recorded(folder.path(), &MIX);
    let whole: Value = serde_json::from_str(&read(folder.path(), "report.json")).expect("JSON");
    let list = |path: &str| -> Vec<f64> {
        let list = whole.pointer(path).and_then(Value::as_array).unwrap_or_else(|| panic!("{path}"));
        list.iter().map(|value| value.as_f64().unwrap_or(0.0)).collect()
    };
    for way in ["read", "write"] {
        let count = number(&report, &format!("/latency_us/{way}/count"));
        for path in ["histogram", "series/by"] {
            let sum: f64 = list(&format!("/details/{path}/{way}/requests")).iter().sum();
            assert_eq!(sum, count, "{path} of {way}");
        }
        let slowest = list(&format!("/details/series/by/{way}/max_us")).into_iter().fold(0.0, f64::max);
        assert_eq!(slowest, number(&report, &format!("/latency_us/{way}/max")));
        let values = list(&format!("/details/histogram/{way}/latency_us"));
        assert!(values.is_sorted() && values.last() == Some(&slowest), "{way}");
    }
    // Time in which planes were busy, look by look and interval by interval, against the whole.
    let times = list("/details/drive/t_s");
    let gc = list("/details/drive/busy_die/gc");
    let busy: f64 = times.windows(2).zip(&gc[1..]).map(|(pair, share)| (pair[1] - pair[0]) * share).sum();
    let expected = number(&report, "/busy/die/by/gc") * number(&report, "/virtual_s");
    assert!((busy - expected).abs() <= 1e-6 * expected, "{busy} {expected}");
    assert_eq!(list("/details/drive/gc_blocks").last().copied(), Some(number(&report, "/gc/blocks")));
    assert_eq!(list("/details/drive/free_blocks").last().copied(), Some(number(&report, "/gc/free_blocks_after")));
    let slowest = &whole["details"]["timeline"]["slowest"];
    assert_eq!(slowest["latency_us"], report["latency_us"]["read"]["max"]);
    let parts: f64 = slowest["parts"].as_array().expect("parts").iter().map(|part| number(part, "/us")).sum();
    assert!((parts - number(slowest, "/latency_us")).abs() < 1e-6, "{slowest}");
}

#[test]
fn tables_hold_the_same_figures() {
    let folder = tempfile::tempdir().expect("a folder");
    let report = recorded(folder.path(), &MIX);
    let p99 =
        rows(folder.path(), "latency.csv").into_iter().find(|row| row["direction"] == "read" && row["figure"] == "p99");
    assert_eq!(
        p99.expect("a row")["latency_us"].parse::<f64>().expect("a number"),
        number(&report, "/latency_us/read/p99")
    );
    let cdf = rows(folder.path(), "cdf.csv");
    let reads: f64 = cdf
        .iter()
        .filter(|row| row["direction"] == "read")
        .map(|row| row["requests"].parse::<f64>().expect("a number"))
        .sum();
    assert_eq!(reads, number(&report, "/latency_us/read/count"));
    let median = cdf
        .iter()
        .find(|row| row["direction"] == "read" && row["share_at_most"].parse::<f64>().expect("a number") >= 0.5);
    assert_eq!(
        median.expect("a row")["latency_us"].parse::<f64>().expect("a number"),
        number(&report, "/latency_us/read/p50")
    );
    assert_eq!(rows(folder.path(), "drive.csv")[0]["t_s"], "0");
    assert!(!folder.path().join("cdf.parquet").exists() || cfg!(feature = "parquet"));
}

/// Runs with little to draw: no time, no reads, one request.
#[test]
fn pages_of_odd_runs_come_to_their_end() {
    let loads: [&[&str]; 4] = [
        &["--rw", "randrw", "--no-delay", "--io-count", "500"],
        &["--rw", "randwrite", "--io-count", "300"],
        &["--rw", "trim", "--io-count", "50"],
        &["--rw", "randread", "--io-count", "1"],
    ];
    for load in loads {
        let folder = tempfile::tempdir().expect("a folder");
        recorded(folder.path(), load);
        open(&folder.path().join("report.html"));
    }
}
