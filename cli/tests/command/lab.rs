//! `nandscape lab`: lists, runs that resume, reports, and rejected input.

use std::fs;

use serde_json::Value;

use crate::program::{command, refuse, run, succeed};

const CLAIMS: [&str; 56] = [
    "femu-registers",
    "femu-gc-schemes",
    "femu-white-gc",
    "femu-cluster",
    "femu-scalability",
    "femu-delay",
    "femu-iops",
    "femu-unsafe-delay",
    "femu-grid",
    "femu-models",
    "teafa-tpcc",
    "teafa-all",
    "teafa-extra-load",
    "teafa-vs",
    "teafa-window-formulas",
    "teafa-dynamic-window",
    "teafa-waf",
    "teafa-filebench",
    "teafa-2d-window",
    "teafa-ocssd",
    "ttflash-tail",
    "ttflash-filebench",
    "ttflash-arithmetic",
    "ttflash-wear",
    "mitt-cost",
    "mitt-accuracy",
    "mitt-micro",
    "mitt-vs-others",
    "mitt-noop-cfq",
    "gc-tail-motivation",
    "leapio-virt",
    "hiops-iops",
    "hiops-handler",
    "hiops-poll",
    "hiops-kv",
    "kv-tail",
    "kv-load",
    "kv-memcached",
    "kv-percentiles",
    "pre-prediction",
    "pre-buffer-hit",
    "pre-window",
    "pre-multidepth",
    "ox-mq",
    "ox-fabric",
    "ox-sizes",
    "ox-gc",
    "ox-checkpoint",
    "ox-recovery",
    "eleos-cache",
    "eleos-scale",
    "oc-media",
    "oc-parallel-fpga",
    "oc-parallel-cnex",
    "oc-fpga-rest",
    "oc-isolation",
];

/// A folder that goes away, and its name.
fn folder() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let name = folder.path().join("results").display().to_string();
    (folder, name)
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&succeed(args)).expect("one JSON object")
}

#[test]
fn the_list_has_every_claim_and_shows_one_in_full() {
    let (_kept, out) = folder();
    let list = succeed(&["lab", "list", "--out", &out]);
    let (table, foot) = list.split_once("\n\n").expect("a line below the table");
    assert_eq!(table.lines().count(), CLAIMS.len() + 1, "{list}");
    assert!(
        foot.contains("recorded: the verdicts of docs/validation/claims.md, measured with another build"),
        "{foot}"
    );
    for claim in CLAIMS {
        let line = list.lines().find(|line| line.contains(&format!(" {claim} "))).expect(claim);
        assert!(line.contains(" none "), "{line}");
        assert!(line.chars().count() <= 100, "{line}");
        let entry = succeed(&["lab", "list", claim]);
        // What was designed was not published as a result.
        assert!(entry.contains("published: ") || entry.contains("described: "), "{entry}");
        for part in ["to show: ", "check: ", "parameters\n", "left open", "points\n"] {
            assert!(entry.contains(part), "{part} is not in\n{entry}");
        }
    }
    let registers = list.lines().find(|line| line.contains(" femu-registers ")).expect("a line");
    let words = registers.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(" two reads of one") && words.ends_with(" simulated <1 s none reproduced"), "{registers}");
    assert!(succeed(&["lab", "list", "femu-registers"]).contains("\ntakes: <1 s of processor time\n"));
    let list = json(&["lab", "list", "--json", "--out", &out]);
    assert_eq!((&list["schema"], list["claims"].as_array().map(Vec::len)), (&1.into(), Some(CLAIMS.len())));
    let registers = list["claims"].as_array().unwrap().iter().find(|claim| claim["id"] == "femu-registers").unwrap();
    assert_eq!((&registers["verdict"], &registers["recorded_verdict"]), (&"not measured".into(), &"reproduced".into()));
    let entry = succeed(&["lab", "list", "femu-registers"]);
    assert!(entry.contains("\nrecorded with another build (docs/validation/claims.md): reproduced\n"), "{entry}");
    assert!(!fs::exists(&out).unwrap(), "looking makes no folder");
}

#[test]
fn a_run_renews_the_processor_times_of_its_claims() {
    let (kept, out) = folder();
    let table = kept.path().join("durations.txt");
    let name = table.display().to_string();
    let timed = ["lab", "run", "femu-registers", "ox-sizes", "--out", &out, "--durations", &name];
    refuse(&timed, &["--fresh"]);
    refuse(&[&timed[..], &["--fresh", "--quick"]].concat(), &["--quick"]);
    fs::write(&table, "# mine\nfemu-delay 116.5\nfemu-registers 900.0\n").unwrap();
    let timed = [&timed[..], &["--fresh"]].concat();
    succeed(&timed);
    let text = fs::read_to_string(&table).unwrap();
    let lines: Vec<(&str, &str)> = text.lines().filter_map(|line| line.split_once(' ')).collect();
    let ids: Vec<&str> = lines.iter().map(|(id, _)| *id).collect();
    assert_eq!(ids, ["#", "femu-delay", "femu-registers", "ox-sizes"], "{text}");
    assert_eq!((lines[0].1, lines[1].1), ("mine", "116.5"));
    assert!(lines[2].1.parse::<f64>().is_ok_and(|seconds| seconds < 900.0), "{text}");
    fs::write(&table, "femu-delay soon\n").unwrap();
    refuse(&timed, &["--durations", "line 1: \"femu-delay soon\" is not a claim and its seconds"]);
}

#[test]
fn a_run_gives_verdicts_and_is_kept() {
    let (_kept, out) = folder();
    let first = run(&["lab", "run", "femu-registers", "--out", &out]);
    assert_eq!((first.code, first.err.as_str()), (0, ""), "no progress in a pipe");
    for part in ["published: two reads of one plane", "108 and 168 us", "verdict: reproduced", "holds"] {
        assert!(first.out.contains(part), "{part} is not in\n{}", first.out);
    }
    let second = run(&["lab", "run", "femu-registers", "--out", &out]);
    assert_eq!((second.code, &second.out), (0, &first.out));
    assert!(second.err.starts_with("note: femu-registers: 3 of 3 points exist already"), "{}", second.err);
    assert_eq!(run(&["lab", "run", "femu-registers", "--out", &out, "--fresh"]).err, "");

    let list = succeed(&["lab", "list", "--out", &out]);
    let line = list.lines().find(|line| line.contains(" femu-registers ")).unwrap();
    let words = line.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.ends_with(" reproduced, seed 1 reproduced"), "{line}");
    let report = succeed(&["lab", "report", "--out", &out]);
    for part in
        ["# Verdicts", "| [femu-registers](#femu-registers) |", "**reproduced**", "- femu-delay: there are no results"]
    {
        assert!(report.contains(part), "{part} is not in\n{report}");
    }
    let html = succeed(&["lab", "report", "--out", &out, "--html"]);
    assert!(html.starts_with("<!doctype html>") && html.contains("<h2 id=\"femu-registers\">"), "{html}");
    let (_, figure) = html.split_once("<figure class=\"claim\">").expect("a figure");
    assert!(figure.contains("<small>168 us, published 168 us</small>"), "{figure}");
    let report = json(&["lab", "report", "--out", &out, "--json"]);
    let claim = report["claims"].as_array().unwrap().iter().find(|claim| claim["id"] == "femu-registers").unwrap();
    assert_eq!((&claim["verdict"], &claim["seed"]), (&"reproduced".into(), &1.into()));
}

#[test]
fn another_seed_is_another_run() {
    let (_kept, out) = folder();
    let args = ["lab", "run", "femu-registers", "--jobs", "3", "--json", "--out", &out];
    assert_eq!(json(&args)["claims"][0]["seed"], 1);
    let other = run(&[&args[..], &["--seed", "2"]].concat());
    assert!(other.err.contains("3 of 3 points: was measured with seed 1; measured again"), "{}", other.err);
    let other: Value = serde_json::from_str(&other.out).unwrap();
    assert_eq!(other["claims"][0]["seed"], 2);
}

#[test]
fn the_score_is_that_of_results_or_of_a_page() {
    let (_kept, out) = folder();
    run(&["lab", "run", "femu-registers", "--out", &out]);
    let score = succeed(&["lab", "score", "--out", &out]);
    assert!(score.starts_with("<!-- score -->\n| paper |") && score.ends_with("<!-- /score -->\n"), "{score}");
    let femu = score.lines().find(|line| line.contains("FEMU")).unwrap();
    assert!(femu.contains("| 8 | 1 | 0 | 0 | 7 | 0 |"), "{femu}");
    let page = format!("{out}/page.md");
    fs::write(&page, succeed(&["lab", "report", "--out", &out])).unwrap();
    assert_eq!(succeed(&["lab", "score", "--page", &page]), score);
    refuse(&["lab", "score", "--out", "/no/such/folder"], &["--out /no/such/folder", "lab run all"]);
    fs::write(&page, "# Something else\n").unwrap();
    refuse(&["lab", "score", "--page", &page], &["--page", "no table of verdicts"]);
}

/// What a single core, or another system, cannot measure is reported, and is no miss.
#[test]
fn real_time_is_measured_or_the_reason_told() {
    let (_kept, out) = folder();
    let args = ["lab", "run", "femu-unsafe-delay", "--rounds", "1", "--slice-ms", "2", "--json", "--out", &out];
    let outcome = &json(&args)["claims"][0];
    match outcome["verdict"].as_str().unwrap() {
        "not measured" => assert!(outcome["reason"].as_str().unwrap().contains("cores")),
        _ => assert_eq!(outcome["effort"], serde_json::json!({"rounds": 1, "slice_ms": 2})),
    }
}

#[test]
fn a_quick_run_says_so_and_strict_makes_the_status_follow_the_verdict() {
    let (_kept, out) = folder();
    assert_eq!(run(&["lab", "run", "femu-registers", "--strict", "--out", &out]).code, 0);
    // At a tenth of the requests, one run of a scheme and the next are too close for the order to be sure.
    let quick = ["lab", "run", "femu-gc-schemes", "--quick", "--json", "--out", &out];
    let outcome = json(&quick)["claims"][0].clone();
    assert_eq!(outcome["effort"]["requests_percent"], 10);
    let notes = outcome["notes"].as_array().unwrap();
    assert!(notes.iter().any(|note| note.as_str().unwrap().contains("a short run")), "{notes:?}");
    let strict = command(&[&quick[..], &["--strict"]].concat()).output().expect("the program starts");
    let missed = outcome["verdict"] == "too short to tell";
    assert_eq!(strict.status.code(), Some(i32::from(missed)), "{outcome}");
    let err = String::from_utf8_lossy(&strict.stderr).into_owned();
    assert!(err.contains("36 of 36 points exist already"), "{err}");
    assert_eq!(err.contains("error: femu-gc-schemes too short to tell"), missed, "{err}");
    assert!(!strict.stdout.is_empty(), "the outcome is told with this status too");
}

#[test]
fn what_cannot_be_is_refused() {
    let (kept, out) = folder();
    refuse(&["lab"], &["Usage: nandscape lab", "list", "run", "report", "score"]);
    refuse(&["lab", "run"], &["<ID>"]);
    let change = ["lab", "run", "femu-registers", "--set", "capacity=1GiB"];
    refuse(&change, &["an experiment fixes its parameters", "nandscape sim --set capacity=1GiB"]);
    refuse(&["lab", "run", "femu-register", "--out", &out], &["\"femu-register\"", "did you mean femu-registers"]);
    refuse(&["lab", "list", "xyzzy"], &["\"xyzzy\"", "femu-gc-schemes"]);
    refuse(&["lab", "run", "all", "--jobs", "0", "--out", &out], &["--jobs"]);
    refuse(&["lab", "run", "all", "--rounds", "0", "--out", &out], &["--rounds"]);
    refuse(&["lab", "run", "all", "--seed=-1", "--out", &out], &["--seed"]);
    refuse(&["lab", "report", "--out", &out], &["--out", "there is no such folder"]);
    refuse(&["lab", "report", "--json", "--html"], &["cannot be used with"]);
    refuse(&["lab", "costs", "femu-registers", "--out", &out], &["femu-registers: no cost of it", "hiops-iops, "]);
    let unknown = ["lab", "costs", "hiops-kv", "--key", "host.cores", "--out", &out];
    refuse(&unknown, &["--key host.cores", "host.syscall", "host.packet_in"]);
    let file = kept.path().join("file");
    fs::write(&file, "in the way").unwrap();
    refuse(&["lab", "run", "all", "--out", &file.display().to_string()], &["--out", "cannot make the folder"]);
}
