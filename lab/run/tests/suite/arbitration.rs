//! A shallow queue next to a deep one on a drive with few command slots, under each arbiter: the tails of the shallow one.
//! The deep queue always fills the slots, so that arbitration alone decides how long a command of the shallow one waits.

use std::rc::Rc;

use nandscape_device_ssd::Profile;
use nandscape_lab_run::{Precondition, Simulation};
use nandscape_lab_workload::{JobSpec, Limit, Workload};
use nandscape_sim::Span;

/// The 99th percentiles of the shallow and of the deep queue, in microseconds.
fn p99(arbiter: &str, deadlines: [Option<Span>; 2]) -> (f64, f64) {
    p99_of((arbiter, ""), [1, 15], deadlines)
}

/// The same with rules for class and tenant, and the classes of the jobs.
fn p99_of((arbiter, rules): (&str, &str), classes: [u8; 2], deadlines: [Option<Span>; 2]) -> (f64, f64) {
    let mut profile = Profile::load("default").unwrap();
    let changes = ["capacity=1GiB", "controller.command_slots=8", "controller.weights=8:4:1"];
    profile.set_all(changes).unwrap();
    profile.set(&format!("controller.arbiter={arbiter}")).unwrap();
    profile.set(&format!("controller.assign={rules}")).unwrap();
    let job = |name: &str, iodepth, class, deadline| JobSpec {
        name: name.into(),
        rw: "randread".parse().unwrap(),
        iodepth,
        class,
        deadline,
        ..JobSpec::default()
    };
    let jobs = vec![job("shallow", 1, classes[0], deadlines[0]), job("deep", 256, classes[1], deadlines[1])];
    let workload = Workload { limit: Limit::Requests(30_000), jobs, ..Workload::of(JobSpec::default()) };
    let simulation =
        Simulation { check: true, ..Simulation::on(profile.resolve().unwrap(), Precondition::Full, workload, 1) };
    let flows = simulation.run(Rc::new(())).unwrap().into_drive().report.flows;
    assert!(flows.iter().all(|flow| flow.class.is_some()), "reports have the classes");
    let of = |number: usize| flows[number].latency_us["read"].p99.expect("enough reads");
    (of(0), of(1))
}

#[test]
fn the_tail_of_a_shallow_queue_next_to_a_deep_one_depends_on_the_arbiter() {
    let us = |value| Some(Span::from_us(value));
    let none = [None, None];
    let (turns, class) = (p99("round_robin", none), p99("class", none));
    let (weighted, oldest) = (p99("class_weighted", none), p99("oldest", none));
    let due = p99("deadline", [us(200), us(10_000)]);
    let figures =
        [("round_robin", turns), ("class", class), ("class_weighted", weighted), ("oldest", oldest), ("deadline", due)];
    // In order of age a command waits for all 256 before it.
    assert!(oldest.0 > 0.8 * oldest.1, "{figures:?}");
    // Bursts of eight keep it waiting for less, and a class, a weight or a deadline for the next free slot alone.
    assert!(turns.0 < 0.5 * oldest.0, "{figures:?}");
    for of in [class, weighted, due] {
        assert!(of.0 < turns.0, "{figures:?}");
    }
    // Without deadlines, the command that is due first is the oldest.
    assert_eq!(p99("deadline", none), oldest);
    // Deadlines that are equal for all order by age, too.
    assert_eq!(p99("deadline", [us(500), us(500)]), oldest);
}

/// Rules of the drive give its queues the same tails as classes of the jobs.
#[test]
fn rules_of_a_drive_do_what_classes_of_jobs_do() {
    let stated = p99("class", [None; 2]);
    assert_eq!(p99_of(("class", "queue=1,class=1 class=15"), [0; 2], [None; 2]), stated);
    assert_eq!(p99_of(("class", "class=15"), [1, 0], [None; 2]), stated);
}
