//! `nandscape demo`: what it prints, that threads do not matter, and its page.

use serde_json::Value;

use crate::browser::{data, open, same_figures};
use crate::program::{number, refuse, run};

const SCHEMES: [&str; 4] = ["none", "plane", "channel", "controller"];

fn demo(folder: &std::path::Path, more: &[&str]) -> String {
    let out = folder.display().to_string();
    let small = ["--set", "capacity=4GiB", "--io-count", "60000"];
    let ran = run(&[&["demo", "--out", &out][..], &small, more].concat());
    assert_eq!(ran.code, 0, "{}", ran.err);
    ran.out
}

#[test]
fn the_tour_shows_its_point_and_is_the_same_with_any_number_of_threads() {
    let folder = tempfile::tempdir().expect("a folder");
    let one: Value = serde_json::from_str(&demo(folder.path(), &["--json", "--threads", "1"])).expect("JSON");
    let first = std::fs::read_to_string(folder.path().join("report.html")).expect("a page");
    let three: Value = serde_json::from_str(&demo(folder.path(), &["--json", "--threads", "3"])).expect("JSON");
    let second = std::fs::read_to_string(folder.path().join("report.html")).expect("a page");
    assert_eq!(data(&first), data(&second));
    let p99_9 = |scheme: &str| number(&one["runs"][scheme], "/latency_us/read/p99_9");
    for scheme in SCHEMES {
        same_figures(&one["runs"][scheme], &three["runs"][scheme]);
    }
    // The more a collection holds, the more reads wait, and the longer is the mean.
    for pair in SCHEMES.windows(2) {
        for figure in ["/gc/blocked_reads", "/latency_us/read/mean"] {
            let [less, more] = [pair[0], pair[1]].map(|scheme| number(&one["runs"][scheme], figure));
            assert!(more > less, "{figure} of {pair:?}: {less} {more}");
        }
    }
    assert_eq!(one["runs"]["none"]["gc"]["blocked_reads"], 0);
    for (run, scheme) in data(&first)["runs"].as_array().expect("runs").iter().zip(SCHEMES) {
        assert_eq!(run["latency_us"], one["runs"][scheme]["latency_us"]["read"], "{scheme}");
    }
    let dom = open(&folder.path().join("report.html"));
    for scheme in SCHEMES {
        assert!(dom.contains(&format!("<td>{:.1}</td>", p99_9(scheme))), "the p99.9 of {scheme}");
    }
}

#[test]
fn the_table_says_what_the_page_shows() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = demo(folder.path(), &[]);
    for part in ["without GC", "GC holds the controller", "p99.99", "The p99.9 of reads is", "report.html"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_page_of_another_program_is_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = folder.path().join("report.html");
    std::fs::write(&page, "<html>my own</html>").expect("a file");
    refuse(&["demo", "--out", &folder.path().display().to_string()], &["report.html", "--out"]);
    assert_eq!(std::fs::read_to_string(&page).expect("still there"), "<html>my own</html>");
}
