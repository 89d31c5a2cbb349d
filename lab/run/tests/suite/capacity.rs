//! A smaller drive keeps the physics of its profile: under the same load per die, reads see the same latencies on 4 GiB as
//! on 256 GiB. Where a capacity changes the physics, the report notes it.

#![expect(clippy::print_stdout, reason = "the measured figures, for --nocapture and the Profiles page")]

use std::rc::Rc;

use nandscape_device_ssd::Profile;
use nandscape_lab_run::{Precondition, Report, Simulation};
use nandscape_lab_workload::{JobSpec, Limit, Rate, RateProcess, Workload};

/// Requests a second for each die, 70% of them reads.
const IOPS_PER_DIE: f64 = 1_250.0;
/// Relative difference of the 99th percentile of reads that is accepted.
const TOLERANCE: f64 = 0.05;

fn run(capacity: &str, dies: f64, requests: u64) -> Report {
    let mut drive = Profile::load("default").unwrap();
    drive.set(&format!("capacity={capacity}")).unwrap();
    let rate = Rate { iops: IOPS_PER_DIE * dies, process: RateProcess::Poisson };
    let job = JobSpec { rw: "randrw".parse().unwrap(), rwmixread: 70.0, rate: Some(rate), ..JobSpec::default() };
    let workload = Workload { limit: Limit::Requests(requests), warmup: requests / 10, ..Workload::of(job) };
    let simulation = Simulation::on(drive.resolve().unwrap(), Precondition::Steady, workload, 1);
    simulation.run(Rc::new(())).unwrap().into_drive().report
}

#[test]
fn reads_see_the_same_tail_on_a_small_drive_under_the_same_load_per_die() {
    let (large, small) = (run("256GiB", 64.0, 400_000), run("4GiB", 8.0, 400_000));
    let p99 = |report: &Report| report.latency_us["read"].p99.unwrap();
    let difference = p99(&small) / p99(&large) - 1.0;
    for (capacity, report) in [("256 GiB", &large), ("4 GiB", &small)] {
        let (read, waf) = (&report.latency_us["read"], report.waf.unwrap());
        println!("{capacity}: mean {:.1}, p99 {:.1} us, waf {waf:.2}", read.mean.unwrap(), read.p99.unwrap());
    }
    assert!(difference.abs() < TOLERANCE, "p99 {} and {} us", p99(&large), p99(&small));
    assert!(large.notes.is_empty(), "{:?}", large.notes);
    assert!(small.notes[0].contains("8 dies instead of 64"), "{:?}", small.notes);
    assert!(!small.notes.iter().any(|note| note.contains("WARNING")), "{:?}", small.notes);
}

#[test]
fn a_capacity_that_changes_the_physics_is_warned_of() {
    let report = run("64MiB", 1.0, 1_000);
    assert!(report.notes.iter().any(|note| note.starts_with("WARNING: geometry.pages_per_block is 96 instead of 768")));
}
