//! Traces slightly out of order, where the look-ahead suffices, and far out of order, which need a temporary file.

use nandscape_lab_trace::{Format, Options, Trace};
use nandscape_sim::Seed;

use crate::files::{file, requests};

/// Requests at these times, numbered by their addresses.
fn text(times: &[u64]) -> String {
    let line = |(number, at): (usize, &u64)| format!("0,W,{},4096,{at}\n", number * 4_096);
    times.iter().enumerate().map(line).collect()
}

/// Opens them, and checks twice that they are sorted stably, since a trace is read more than once.
fn sorted(times: &[u64]) -> Trace {
    let (_folder, path) = file(text(times));
    let trace = Trace::open(Options { path, format: Some(Format::Alibaba), ..Options::default() }).unwrap();
    let mut expected: Vec<(u64, u64)> = times.iter().copied().zip((0..).map(|number| number * 4_096)).collect();
    expected.sort_by_key(|(at, _)| *at);
    let first = expected[0].0;
    for _ in 0..2 {
        let seen: Vec<(u64, u64)> = requests(&trace).iter().map(|it| (it.0 / 1_000 + first, it.3)).collect();
        assert!(seen == expected);
    }
    trace
}

#[test]
fn what_is_in_order_needs_no_note() {
    let trace = sorted(&(5..2_000).collect::<Vec<u64>>());
    assert_eq!((trace.late(), trace.notes()), (0, Vec::new()));
}

#[test]
fn a_little_disorder_is_sorted_and_told() {
    let trace = sorted(&[10, 30, 20, 20, 40, 5, 40]);
    assert_eq!(trace.late(), 3);
    assert_eq!(trace.notes(), ["the trace was not in order and has been sorted: 3 requests followed later ones"]);
}

#[test]
fn any_disorder_is_sorted_stably() {
    let seed = 11;
    let mut rng = Seed::new(seed).rng();
    for most in [10, 1_000_000] {
        let times: Vec<u64> = (0..30_000).map(|_| rng.below(most)).collect();
        assert!(sorted(&times).late() > 20_000, "seed {seed}");
    }
    let backwards: Vec<u64> = (0..30_000).rev().collect();
    assert_eq!(sorted(&backwards).late(), 29_999);
}

#[test]
fn files_written_one_behind_another_are_merged() {
    let two: Vec<u64> = (0..6_000).chain(0..6_000).collect();
    let trace = sorted(&two);
    assert_eq!(trace.totals().requests(), 12_000);
}

#[test]
fn a_limit_takes_the_earliest() {
    let (_folder, path) = file(text(&(0..20_000).rev().collect::<Vec<u64>>()));
    let options = Options { path, format: Some(Format::Alibaba), limit: Some(3), ..Options::default() };
    let seen: Vec<u64> = requests(&Trace::open(options).unwrap()).iter().map(|it| it.3 / 4_096).collect();
    assert_eq!(seen, [19_999, 19_998, 19_997]);
}
