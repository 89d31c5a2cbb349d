//! A worn-in drive is in its steady state from the first request, under any load: write amplification is constant from
//! window to window and from load to load, no write meets a stop of the whole drive, and waits of writes for
//! collectors are attributed to collectors.
//!
//! The write buffer fills up first: its contents are not part of the first window.

use std::rc::Rc;

use nandscape_device_ssd::Profile;
use nandscape_lab_run::{Precondition, Report, Simulation};
use nandscape_lab_workload::{JobSpec, Limit, Rate, RateProcess, Workload};

fn run(drive: &str, changes: &[&str], job: JobSpec, warmup: u64, requests: u64) -> Report {
    let mut profile = Profile::load(drive).unwrap();
    changes.iter().for_each(|change| profile.set(change).unwrap());
    let workload = Workload { limit: Limit::Requests(requests), warmup, ..Workload::of(job) };
    let simulation =
        Simulation { check: true, ..Simulation::on(profile.resolve().unwrap(), Precondition::Steady, workload, 1) };
    simulation.run(Rc::new(())).unwrap().into_drive().report
}

fn random(rw: &str, rwmixread: f64, iops: Option<f64>) -> JobSpec {
    let rate = iops.map(|iops| Rate { iops, process: RateProcess::Poisson });
    JobSpec { rw: rw.parse().unwrap(), rwmixread, rate, ..JobSpec::default() }
}

/// The default drive with a small buffer, and small enough to write a good part of it.
const SMALL: [&str; 2] = ["capacity=16GiB", "buffer.size=1MiB"];

#[test]
fn write_amplification_is_the_same_in_every_window_and_under_every_load() {
    let waf = |job: JobSpec, warmup: u64, requests: u64| run("default", &SMALL, job, warmup, requests).waf.unwrap();
    let first = waf(random("randwrite", 0.0, None), 5_000, 150_000);
    for (what, waf) in [
        ("later writes", waf(random("randwrite", 0.0, None), 500_000, 150_000)),
        ("reads and writes", waf(random("randrw", 50.0, None), 10_000, 300_000)),
        ("few writes among reads", waf(random("randrw", 95.0, Some(100_000.0)), 100_000, 1_000_000)),
    ] {
        assert!((waf / first - 1.0).abs() < 0.05, "{what}: {waf}, the first writes: {first}");
    }
}

#[test]
fn no_write_meets_a_stop_of_the_whole_drive() {
    let report = run("default", &SMALL, random("randwrite", 0.0, None), 0, 400_000);
    let writes = &report.latency_us["write"];
    // A collection of a block takes its thousand programs: half a second. A write waits for pages.
    let (mean, max) = (writes.mean.unwrap(), writes.max.unwrap());
    assert!(max < 20_000.0 && max < 50.0 * mean, "mean {mean} us, max {max} us");
}

#[test]
fn what_collectors_add_to_writes_is_put_down_to_them() {
    for (drive, scheme) in [("femu-ocssd", "channel"), ("mqsim-mlc", "plane"), ("mqsim-mlc", "channel")] {
        let queue = |scheme: &str| {
            let scheme = format!("ftl.gc.scheme={scheme}");
            let changes = ["capacity=1GiB", "buffer.size=8MiB", &scheme];
            let report = run(drive, &changes, random("randwrite", 0.0, None), 0, 100_000);
            let by = &report.breakdown_us["write"]["queue_by"];
            (by["gc"].as_f64().unwrap(), by["host_write"].as_f64().unwrap())
        };
        let ((none_gc, none_host), (gc, host)) = (queue("none"), queue(scheme));
        assert_eq!(none_gc, 0.0, "{drive}: collectors that take no time hold nobody up");
        let added = gc + host - none_host;
        assert!(gc > 0.9 * added, "{drive}, {scheme}: {added} us more, {gc} us of it put down to collectors");
    }
}
