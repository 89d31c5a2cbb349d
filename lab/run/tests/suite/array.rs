//! Arrays under a workload: all times sum up, and each technique changes busy sub-I/Os as it should.

use std::rc::Rc;

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::Profile;
use nandscape_lab_run::{ArrayLayer, ArrayReport, ChainFinished, Precondition, RigDrive, Simulation};
use nandscape_lab_workload::{JobSpec, Limit, Rate, RateProcess, Workload, load};
use nandscape_layers_array::Config;
use nandscape_sim::Seed;

fn drive(number: u64) -> RigDrive {
    let mut profile = Profile::load("default").unwrap();
    let small = ["capacity=128MiB", "geometry.channels=2", "geometry.dies_per_channel=2", "ftl.gc.scheme=channel"];
    profile.set_all(small).unwrap();
    RigDrive {
        name: format!("drive-{number}"),
        profile: profile.resolve().unwrap(),
        store: StoreKind::None,
        precondition: Precondition::Steady,
        seed: Seed::new(9).child("array").nth(number),
    }
}

fn run(shape: &str, settings: &[&str]) -> ChainFinished {
    let mut config = Config::default();
    settings.iter().for_each(|setting| config.set(setting).unwrap());
    let shape: nandscape_layers_array::Shape = shape.parse().unwrap();
    let rate = Some(Rate { iops: 3_000.0, process: RateProcess::Poisson });
    let (rw, bs) = ("randrw".parse().unwrap(), "4k".parse().unwrap());
    let job = JobSpec { rw, bs, rate, numjobs: 2, ..JobSpec::default() };
    let workload = Workload { limit: Limit::Requests(6_000), warmup: 500, ..Workload::of(job) };
    let (drives, layers) = ((0..shape.members as u64).map(drive).collect(), vec![ArrayLayer { shape, config }.into()]);
    let simulation = Simulation { layers, check: true, ..Simulation::of(drives, workload, 5) };
    simulation.run(Rc::new(())).unwrap_or_else(|error| panic!("{error}")).into_chain().unwrap()
}

fn array(finished: &ChainFinished) -> &ArrayReport {
    finished.host.array.as_ref().expect("an array has a part of the report")
}

fn p99_9(finished: &ChainFinished) -> f64 {
    finished.host.latency_us["read"].p99_9.expect("enough requests")
}

#[test]
fn remaining_time_cuts_the_tail_of_base_and_times_sum() {
    let (base, tea2) = (run("raid5:4", &[]), run("raid5:4", &["array.technique=tea2"]));
    for finished in [&base, &tea2] {
        let (read, layers) = (&finished.host.latency_us["read"], &finished.host.layers_us["read"]);
        assert!((layers.values().sum::<f64>() - read.mean.unwrap()).abs() < 1e-6);
        let of = array(finished);
        assert_eq!(of.busy_sub_ios.iter().sum::<u64>(), of.stripe_reads);
        assert!(of.busy_sub_ios[1] > 0, "garbage collection is in the way of some: {:?}", of.busy_sub_ios);
        assert!(finished.host.errors.is_empty());
    }
    assert_eq!((array(&base).extra_reads, array(&base).reconstructions), (0, 0));
    assert!(array(&tea2).reconstructions > 0);
    assert!(p99_9(&tea2) < p99_9(&base), "{} and {} us", p99_9(&tea2), p99_9(&base));
    let again = run("raid5:4", &["array.technique=tea2"]);
    assert_eq!((array(&again), p99_9(&again)), (array(&tea2), p99_9(&tea2)));
}

#[test]
fn windows_are_set_on_all_drives_and_dynamic_ones_move() {
    let fixed = run("raid5:4", &["array.technique=teafa", "array.window=20ms"]);
    assert_eq!(array(&fixed).window_ms, Some(20.0));
    let moving = run("raid5:4", &["array.technique=tea2", "array.windows=dynamic"]);
    assert!(array(&moving).window_changes > 10, "{:?}", array(&moving).window_changes);
    assert_ne!(array(&moving).window_ms, Some(500.0));
}

/// An array of drives `femu-teafa` that are worn in, with the windows that they recommend.
fn teafa(changes: &[&str], workload: Workload) -> ChainFinished {
    let mut profile = Profile::load("femu-teafa").unwrap();
    changes.iter().for_each(|change| profile.set(change).unwrap());
    let profile = profile.resolve().unwrap();
    let (store, precondition) = (StoreKind::None, Precondition::Steady);
    let drive = |number: u64| {
        let (name, seed) = (format!("drive-{number}"), Seed::new(1).child("array").nth(number));
        RigDrive { name, profile: profile.clone(), store, precondition, seed }
    };
    let mut config = Config::default();
    config.set("array.technique=teafa").unwrap();
    let layers = vec![ArrayLayer { shape: "raid5:4".parse().unwrap(), config }.into()];
    let simulation = Simulation { layers, ..Simulation::of((0..4).map(drive).collect(), workload, 1) };
    let finished = simulation.run(Rc::new(())).unwrap_or_else(|error| panic!("{error}")).into_chain().unwrap();
    assert!(array(&finished).window_ms.unwrap() > 1_000.0);
    finished
}

/// The formula of the recommended length has the drive's space free when the turns of others begin, so the drive has to have made it.
#[test]
fn in_windows_of_the_recommended_length_drives_collect_in_no_turn_but_their_own() {
    let run = |changes: &[&str]| {
        let rate = Some(Rate { iops: 3_000.0, process: RateProcess::Poisson });
        let (rw, bs) = ("randrw".parse().unwrap(), "64k".parse().unwrap());
        // Within 18,000 requests each drive has its first turn, before which it had no reason to make room.
        let workload = Workload {
            limit: Limit::Requests(20_000),
            warmup: 18_000,
            ..Workload::of(JobSpec { rw, bs, rate, ..JobSpec::default() })
        };
        let finished = teafa(changes, workload);
        let forced: u64 = finished.drives.iter().map(|drive| drive.report.gc.forced_steps).sum();
        (forced, finished.host.latency_us["read"].p99_99.expect("enough requests"))
    };
    let (forced, p99_99) = run(&[]);
    assert_eq!(forced, 0);
    assert!(p99_99 < 1_000.0, "{p99_99} us");
    // The load needs it.
    assert!(run(&["ftl.windows.free_blocks=0"]).0 > 0);
}

/// In the long windows that drives recommend, writes fill all that a drive with few command slots takes at a time. Reads that may fail
/// fast must not wait behind them.
#[test]
fn reads_do_not_queue_behind_writes_to_a_drive_in_its_window() {
    let workload = Workload { limit: Limit::Requests(4_000), ..load("teafa-tpcc").unwrap() };
    let finished = teafa(&["controller.command_slots=128"], workload);
    let writes = &finished.host.latency_us["write"];
    assert!(writes.p99.unwrap() > 30e3, "the load is to fill the drive: {:?} us", writes.p99);
    assert!(p99_9(&finished) < 1e3, "{} us", p99_9(&finished));
}

#[test]
fn windows_that_the_drives_refuse_are_told() {
    let refused = run("raid5:4", &["array.technique=teafa", "array.ranges=4"]);
    assert!(array(&refused).windows_refused && array(&refused).window_ms.is_none());
    assert!(refused.host.notes.iter().any(|note| note.contains("ftl.windows.ranges")), "{:?}", refused.host.notes);
    let set = run("raid5:4", &["array.technique=teafa", "array.window=20ms"]);
    assert!(!array(&set).windows_refused);
}
