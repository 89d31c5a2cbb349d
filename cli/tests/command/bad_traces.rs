//! What is no trace, and words that do not go together.

use crate::program::{refuse, run};

fn sim(words: &[&str], parts: &[&str]) {
    refuse(&[&["sim", "--drive", "default", "--set", "capacity=64MiB"], words].concat(), parts);
}

/// A file with this content; dropping the folder removes it.
fn file(content: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t.trace");
    std::fs::write(&path, content).expect("a trace");
    let path = path.display().to_string();
    (folder, path)
}

const GOOD: &str = "0.5 0 0 65536 1\n1.5 0 65536 512 0\n";

#[test]
fn malformed_lines_are_refused_with_their_places_or_left_out_with_a_note() {
    let (_folder, path) = file(&format!("{GOOD}2.5 0 512 1\n3.5 0 0 512 7\n"));
    let parts = [
        "t.trace: 2 of 4 lines are malformed in the format replay; --skip-bad",
        "t.trace:3: the type is missing",
        "t.trace:4: the type \"7\"",
    ];
    sim(&["--trace", &path], &parts);
    refuse(&["trace", "info", &path], &parts);
    refuse(&["trace", "convert", &path, "-", "--to", "msr"], &parts);
    let ran = run(&["trace", "info", &path, "--skip-bad"]);
    assert!(
        ran.code == 0 && ran.err.contains("note: 2 malformed lines of the trace are left out, the first: "),
        "{}",
        ran.err
    );
    let ran = run(&["sim", "--drive", "default", "--set", "capacity=64MiB", "--trace", &path, "--skip-bad"]);
    assert!(
        ran.code == 0 && ran.err.contains("note: 2 malformed lines") && ran.out.contains("\n2 requests"),
        "{}",
        ran.err
    );
}

#[test]
fn what_is_there_and_what_is_asked_for_must_agree() {
    let (_folder, path) = file(GOOD);
    let trace = |words: &[&str], parts: &[&str]| refuse(&[&["trace", "info", &path], words].concat(), parts);
    trace(&["--format", "csv"], &["--format", "\"csv\" is not a format; there are msr, replay,", "and auto"]);
    trace(&["--format", "msr"], &["malformed in the format msr"]);
    trace(&["--disk", "5"], &["t.trace: has no disk 5; there are 0"]);
    trace(&["--trace-host", "web"], &["the format replay does not name them"]);
    trace(&["--window", "5s..6s"], &["has no request in the selection"]);
    trace(&["--window", "6s..5s"], &["--window", "must end after it begins"]);
    trace(&["--window", "6s"], &["--window", "such as 60s..120s"]);
    trace(&["--window", "6..7s"], &["--window", "a time such as \"40us\""]);
    trace(&["--limit", "0"], &["has no request in the selection"]);
    trace(&["--limit=-1"], &["--limit"]);
    trace(&["--action", "X"], &["--action", "X"]);
    refuse(&["trace", "info", "nowhere.trace"], &["nowhere.trace: cannot be opened"]);
    refuse(&["trace", "info", "."], &["cannot be opened", "directory"]);
    refuse(&["trace", "info"], &["<FILE>"]);
    refuse(&["trace"], &["Usage: nandscape trace"]);
}

#[test]
fn a_conversion_that_cannot_be_leaves_nothing() {
    let (folder, path) = file("fio version 3 iolog\n0 a sync\n5 a trim 0 512\n");
    let out = folder.path().join("out.csv").display().to_string();
    refuse(
        &["trace", "convert", &path, &out, "--to", "msr"],
        &["1 requests are trims, which the format msr cannot express; there are blkparse, fio-v2, fio-v3"],
    );
    refuse(&["trace", "convert", &path, &out], &["--to <FORMAT>"]);
    refuse(&["trace", "convert", &path, &out, "--to", "csv"], &["\"csv\" is not a format"]);
    refuse(
        &["trace", "convert", &path, "/nowhere/out.csv", "--to", "fio-v2"],
        &["cannot write /nowhere/out.csv: there is no folder /nowhere\n"],
    );
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1);
}

#[test]
fn words_of_a_replay_are_checked() {
    let (_folder, path) = file(GOOD);
    let trace = |words: &[&str], parts: &[&str]| sim(&[&["--trace", &path], words].concat(), parts);
    for (word, value) in
        [("--rw", "read"), ("--workload", "mixed"), ("--bs", "4k"), ("--numjobs", "2"), ("--burst", "1ms/1ms")]
    {
        trace(&[word, value], &["cannot be used with", word]);
    }
    trace(
        &["--iodepth", "4"],
        &["--iodepth does not limit requests that arrive at the times of a trace; give --replay-no-stall"],
    );
    trace(&["--replay-no-stall", "--iodepth", "0"], &["iodepth = 0 is out of range"]);
    trace(&["--replay-no-stall", "--rate-iops", "5"], &["cannot be used with"]);
    trace(&["--replay-no-stall", "--time-scale", "5"], &["cannot be used with"]);
    for scale in ["0", "-1", "nan", "inf", "1e10", "1e-10"] {
        trace(&["--time-scale", scale], &["a time scale of ", "is out of range; from 1e-9 to 1e9"]);
    }
    trace(&["--rate-iops", "0"], &["a rate of 0 is out of range"]);
    trace(&["--address", "fold"], &["--address", "\"fold\" is not wrap or scale"]);
    trace(&["--warmup-count", "2"], &["--warmup-count 2 leaves nothing of 2 requests"]);
    sim(&["--rw", "read", "--disk", "5"], &["--disk is for traces: give --trace FILE"]);
    sim(&["--rw", "read", "--time-scale", "5"], &["--time-scale is for traces: give --trace FILE"]);
    sim(&["--trace", "nowhere"], &["nowhere: cannot be opened"]);
}

#[test]
fn a_trace_without_times_is_not_issued_all_at_once() {
    let (_folder, path) = file("fio version 2 iolog\na read 0 4096\na read 4096 4096\n");
    sim(
        &["--trace", &path],
        &["all 2 requests arrive at the same time; --replay-no-stall replays them --iodepth at a time"],
    );
    let ran = run(&["sim", "--drive", "default", "--set", "capacity=64MiB", "--trace", &path, "--replay-no-stall"]);
    assert!(ran.code == 0 && ran.out.contains("\n2 requests"), "{}", ran.err);
}

#[test]
fn a_replay_that_outlasts_the_clock_is_refused() {
    let (_folder, path) = file("0,R,0,4096,0\n0,R,0,4096,10000000000000\n");
    sim(&["--trace", &path, "--time-scale", "0.0001"], &["years at this pace; at most 300 are valid"]);
}
