//! `nandscape compare`: ratios, intervals, pages, and files that it refuses.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::browser::{data, open};
use crate::program::{number, refuse, sim, succeed};

/// The report of a run with this scheme and seed, as a file.
fn run(folder: &Path, scheme: &str, seed: u64) -> PathBuf {
    let out = folder.join(format!("{scheme}{seed}"));
    let set = format!("ftl.gc.scheme={scheme}");
    let load = ["--rw", "randrw", "--precondition", "steady", "--io-count", "3000"];
    sim(&[&load[..], &["--set", &set, "--seed", &seed.to_string(), "--out", &out.display().to_string()]].concat());
    out.join("report.json")
}

fn words<'a>(files: &'a [PathBuf], more: &[&'a str]) -> Vec<&'a str> {
    let files = files.iter().map(|file| file.to_str().expect("a path in UTF-8"));
    ["compare"].into_iter().chain(files).chain(more.iter().copied()).collect()
}

/// A figure of a comparison.
fn figure<'a>(comparison: &'a Value, name: &str) -> &'a Value {
    let figures = comparison["figures"].as_array().expect("figures");
    figures.iter().find(|figure| figure["name"] == name).unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn seeds_of_one_experiment_are_a_column_with_intervals() {
    let folder = tempfile::tempdir().expect("a folder");
    let files: Vec<PathBuf> = [("plane", 1), ("channel", 1), ("plane", 2), ("plane", 3), ("channel", 2)]
        .map(|(scheme, seed)| run(folder.path(), scheme, seed))
        .to_vec();
    let out = folder.path().join("compared");
    let printed = succeed(&words(&files, &["--json", "--out", out.to_str().expect("UTF-8")]));
    let comparison: Value = serde_json::from_str(&printed).expect("JSON");
    assert_eq!(comparison["columns"][0]["seeds"], json!([1, 2, 3]));
    assert_eq!(comparison["columns"][1]["seeds"], json!([1, 2]));
    let keys: Vec<&Value> =
        comparison["differences"].as_array().expect("a list").iter().map(|one| &one["key"]).collect();
    assert_eq!(keys, ["ftl.gc.scheme", "seed"]);

    // The interval of three values, by hand: t is 4.303.
    let p99 = |file: &PathBuf| {
        let report: Value = serde_json::from_str(&std::fs::read_to_string(file).expect("a report")).expect("JSON");
        number(&report, "/latency_us/read/p99")
    };
    let values = [p99(&files[0]), p99(&files[2]), p99(&files[3])];
    let mean = values.iter().sum::<f64>() / 3.0;
    let half = 4.303 * (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 2.0 / 3.0).sqrt();
    let cells = &figure(&comparison, "read p99")["cells"];
    assert!((number(cells, "/0/value") - mean).abs() < 1e-9 * mean, "{cells}");
    assert!((number(cells, "/0/half_width_95") - half).abs() < 1e-9 * mean, "{cells}");
    let ratio = (p99(&files[1]) + p99(&files[4])) / 2.0 / mean;
    assert!((number(cells, "/0/ratio"), number(cells, "/1/ratio")) == (1.0, ratio), "{cells}");

    let page = std::fs::read_to_string(out.join("compare.html")).expect("a page");
    assert_eq!(data(&page)["comparison"], comparison);

    // A folder stands for the report in it.
    let folders: Vec<PathBuf> = files.iter().map(|file| file.parent().expect("a folder").to_owned()).collect();
    let of_folders: Value = serde_json::from_str(&succeed(&words(&folders, &["--json"]))).expect("JSON");
    assert_eq!(of_folders["figures"], comparison["figures"]);
    let reads: u64 = data(&page)["runs"][0]["read"]["requests"]
        .as_array()
        .expect("counts")
        .iter()
        .map(|count| count.as_u64().expect("a count"))
        .sum();
    assert!(reads > 3 * 1_300, "the distributions of three runs of 1500 reads: {reads}");
    open(&out.join("compare.html"));
    let table = succeed(&words(&files, &[]));
    assert!(table.contains("plane (3 seeds)") && table.contains(" ± ") && table.contains("Student's t"), "{table}");
}

#[test]
fn what_json_printed_can_be_compared() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = ["a.json", "b.json", "c.json"].map(|name| folder.path().join(name));
    for (file, (seed, depth)) in files.iter().zip([("1", "4"), ("2", "4"), ("1", "8")]) {
        let report = sim(&["--rw", "randread", "--io-count", "2000", "--seed", seed, "--iodepth", depth]);
        std::fs::write(file, report.to_string()).expect("a file");
    }
    let table = succeed(&words(&files, &[]));
    assert!(
        table.contains("a and 1 more (2 seeds)") && table.contains("c (seed 1)") && table.contains("1.00x"),
        "{table}"
    );
    assert!(table.contains("over-provisioning asked") && table.contains("workload: iodepth"), "{table}");
    let out = folder.path().display().to_string();
    succeed(&words(&files, &["--out", &out]));
    open(&folder.path().join("compare.html"));
}

#[test]
fn files_that_are_no_reports_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path
    };
    let good = file("good.json", &sim(&["--rw", "randread", "--io-count", "9"]).to_string());
    for (bad, parts) in [
        (file("text.json", "latency: 5"), ["text.json", "not JSON", "line 1"]),
        (file("list.json", "[1]"), ["list.json", "no object", "report.json"]),
        (file("other.json", "{\"a\":1}"), ["other.json", "no field schema", "report.json"]),
        (file("half.json", "{\"schema\":1}"), ["half.json", "no field profile", "report.json"]),
        (file("new.json", "{\"schema\":2}"), ["new.json", "its schema is 2", "schema 1"]),
        (folder.path().join("none.json"), ["none.json", "No such file", "none.json"]),
    ] {
        refuse(&words(&[good.clone(), bad], &[]), &parts);
    }
    refuse(&words(std::slice::from_ref(&good), &[]), &["compare"]);
    let out = folder.path().display().to_string();
    file("compare.html", "another program's");
    refuse(&words(&[good.clone(), good.clone()], &["--out", &out]), &["compare.html", "not made by nandscape"]);
}

#[test]
fn figures_that_no_run_has_are_refused_with_their_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let good = sim(&["--rw", "randread", "--io-count", "9"]);
    let sound = folder.path().join("sound.json");
    std::fs::write(&sound, good.to_string()).expect("a file");
    let spoilt = folder.path().join("spoilt.json");
    let name = spoilt.to_str().expect("UTF-8");
    for (place, value, parts) in [
        ("/iops", "-5", ["iops is -5", "valid is a number from 0"]),
        ("/latency_us/read/p50", "-1", ["latency_us.read.p50 is -1", "or null"]),
        ("/latency_us/read/count", "\"many\"", ["latency_us.read.count is \"many\"", "a whole number"]),
        ("/gc", "[]", ["gc is []", "an object"]),
        ("/waf", "1e400", ["number out of range", "line "]),
        ("/requests", "{}", ["requests is {}", "a whole number"]),
    ] {
        let mut bad = good.clone();
        *bad.pointer_mut(place).expect("a field") = "THE FIGURE".into();
        std::fs::write(&spoilt, bad.to_string().replace("\"THE FIGURE\"", value)).expect("a file");
        let all = [&["spoilt.json"][..], &parts].concat();
        refuse(&words(&[sound.clone(), spoilt.clone()], &[]), &all);
        refuse(&["explain", name], &all);
    }
}
