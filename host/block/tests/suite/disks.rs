//! Disks behind MittNoop and MittCFQ. Profiles are measured, and predictions are compared with the disk's own times
//! on other loads. Work of a higher class rejects the reads that it makes late.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_device_disk::{Disk, DiskSpec};
use nandscape_drive::conformance::{self, Subject};
use nandscape_drive::{HostMem, Issuer};
use nandscape_host_block::predictor::{DiskProfile, MittCfq, MittNoop, Predictor, calibrate};
use nandscape_host_block::{Accuracy, BlockLayer, Request, Unchecked};
use nandscape_sim::{Executor, Histogram, Seed, Sim, Span};
use nandscape_wire_nvme::vendor::BUSY;
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

use crate::rig::{config, read, seed};

const CFQ: [&str; 3] = ["block.scheduler=cfq", "block.predictor=cfq-disk", "block.depth=1"];

fn spec() -> DiskSpec {
    DiskSpec { keeps_data: false, ..DiskSpec::constellation_2() }
}

fn profile(spec: &DiskSpec, samples: u32) -> DiskProfile {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let disk = Disk::new(&sim, spec).expect("a possible disk");
    executor.block_on(calibrate(&sim, &*disk, Seed::new(seed()), samples)).unwrap().expect("the disk serves")
}

fn layer(sim: &Sim, profile: &DiskProfile, settings: &[&str]) -> Rc<BlockLayer> {
    let config = config(settings);
    config.check().expect("settings that go together");
    let predictor: Rc<dyn Predictor> = match settings.contains(&CFQ[1]) {
        true => MittCfq::new(profile.clone(), &config),
        false => MittNoop::new(profile.clone(), &config),
    };
    BlockLayer::new(sim, config, Some(predictor))
}

/// A command of a process of some class.
fn of(mut entry: SubmissionEntry, class: u32, tenant: u32) -> SubmissionEntry {
    entry.cdw2 = (class | tenant << 4).into();
    entry
}

#[test]
fn a_calibration_leaves_the_data_as_it_was_and_finds_the_seek_profile() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    executor
        .block_on(async {
            let spec = DiskSpec { cylinders: 400, ..DiskSpec::constellation_2() };
            let disk = Disk::new(&sim, &spec).expect("a possible disk");
            let issuer = Issuer::new(&sim);
            let places: Vec<u64> = (0..60).map(|number| number * 60_000).collect();
            for place in &places {
                let write = SubmissionEntry::blocks(IoOpcode::WRITE, 1, *place, 64);
                let mem = HostMem::from_bytes(&vec![*place as u8 | 1; 64 * 512]);
                assert!(issuer.execute(&*disk, write, mem).await.status.is_success());
            }
            calibrate(&sim, &*disk, Seed::new(seed()), 20).await.expect("the disk serves");
            for place in &places {
                let mem = HostMem::zeroed(64 * 512);
                let read = SubmissionEntry::blocks(IoOpcode::READ, 1, *place, 64);
                assert!(issuer.execute(&*disk, read, mem.clone()).await.status.is_success());
                assert!(mem.to_vec() == vec![*place as u8 | 1; 64 * 512], "at {place}");
            }
        })
        .unwrap();
    // Over a third of the disk: the average seek and half a revolution.
    let (spec, profile) = (spec(), profile(&spec(), 100));
    let takes = |from: u64, entry: SubmissionEntry| {
        let request = Request::of(&entry, None, nandscape_sim::Time::from_ns(0));
        profile.takes(from, &request).as_us()
    };
    let third = spec.blocks() / 3;
    let long = takes(0, read(third, 0));
    assert!((long - 12_300.0).abs() < 700.0, "seed {}: {long}", seed());
    let write = takes(third, SubmissionEntry::blocks(IoOpcode::WRITE, 1, 0, 8));
    assert!(write > long + 300.0 && write < long + 2_000.0, "seed {}: {write}", seed());
    assert!(takes(0, SubmissionEntry::blocks(IoOpcode::READ, 1, third, 1_024)) > long + 4_000.0);
}

#[test]
fn a_profile_has_the_mean_of_seek_and_rotation_over_random_places() {
    // For two evenly drawn places, the sheet has the mean seek; the mean rotation is half a turn. A distance has an
    // error of 2.4 ms (a turn over the square root of 12) over 20, the root of its samples: 0.12 ms. Over the dozen
    // distances that matter to such places this is 0.04 ms; the limit is four times as much.
    let (spec, profile) = (spec(), profile(&spec(), 400));
    let mut rng = Seed::new(seed()).child("places").rng();
    for (opcode, seek) in [(IoOpcode::READ, spec.read), (IoOpcode::WRITE, spec.write)] {
        let transfer = spec.revolution().as_us() * 8.0 / f64::from(spec.sectors);
        let mean = spec.overhead.as_us() + seek.average.as_us() + spec.revolution().as_us() / 2.0 + transfer;
        let count = 200_000;
        let mut sum = 0.0;
        for _ in 0..count {
            let entry = SubmissionEntry::blocks(opcode, 1, rng.below(spec.blocks() - 8), 8);
            let request = Request::of(&entry, None, nandscape_sim::Time::from_ns(0));
            sum += profile.takes(rng.below(spec.blocks()), &request).as_us();
        }
        let off = sum / f64::from(count) - mean;
        assert!(off.abs() < 160.0, "seed {}: {opcode:?} by {off:.0} us off {mean:.0}", seed());
    }
}

/// Reads and writes of random places without a pause, some at a time, under predictions that reject nothing. Returns
/// the layer's counters.
fn without_a_pause(profile: &DiskProfile, settings: &[&str], count: u32) -> Accuracy {
    let mut executor = Executor::new();
    let sim = executor.sim();
    executor
        .block_on(async {
            let spec = spec();
            let layer = layer(&sim, profile, settings);
            let drive = layer.over(Disk::new(&sim, &spec).expect("a possible disk"));
            let left = Rc::new(Cell::new(count));
            for job in 0..6 {
                let (of_job, drive, left, blocks) = (sim.clone(), drive.clone(), left.clone(), spec.blocks());
                sim.spawn(async move {
                    let (issuer, mut rng) = (Issuer::new(&of_job), Seed::new(seed()).child("load").nth(job).rng());
                    while left.get() > 0 {
                        left.set(left.get() - 1);
                        let size = 8 << rng.below(5);
                        let opcode = if rng.chance(0.3) { IoOpcode::WRITE } else { IoOpcode::READ };
                        let mut entry = SubmissionEntry::blocks(opcode, 1, rng.below(blocks - 256), size);
                        entry.cdw3 = if opcode == IoOpcode::READ { 80_000.into() } else { 0.into() };
                        let entry = of(entry, 0, job as u32);
                        issuer.execute(&*drive, entry, HostMem::none()).await;
                    }
                });
            }
            while left.get() > 0 {
                sim.sleep(Span::from_s(1)).await;
            }
            sim.sleep(Span::from_s(1)).await;
            layer.counted()
        })
        .unwrap()
}

fn described(counted: &Accuracy) -> String {
    let part = |errors: &Histogram| {
        format!("{} (p50 {} p99 {} max {})", errors.count(), errors.quantile(0.5), errors.quantile(0.99), errors.max())
    };
    format!(
        "seed {}: {} compared, {} wrong; longer {}, shorter {}",
        seed(),
        counted.compared,
        counted.false_positives + counted.false_negatives,
        part(&counted.longer),
        part(&counted.shorter)
    )
}

#[test]
fn corrected_predictions_do_not_drift_and_are_right_on_average() {
    let profile = profile(&spec(), 400);
    let settings = ["block.predictor=noop-disk", "block.predict_only=true"];
    let corrected = without_a_pause(&profile, &settings, 20_000);
    // The unknown part is the rotation of at most six commands, and of the one in service.
    let most = corrected.longer.max().max(corrected.shorter.max());
    assert!(corrected.compared > 10_000 && most < Span::from_ms(60), "{}", described(&corrected));
    // Nor are they biased. Six commands have the error of the profile, 0.04 ms each. Half a random turn of six, over
    // 14,000 reads of which six in a row share it, is 0.15 ms. Three times both.
    let sum = |errors: &Histogram| errors.sum_ns() as f64 / 1e6;
    let bias = (sum(&corrected.longer) - sum(&corrected.shorter)) / corrected.compared as f64;
    assert!(bias.abs() < 1.2, "{bias} ms; {}", described(&corrected));
}

#[test]
fn the_profile_of_a_slower_disk_is_corrected_and_drifts_where_it_is_not() {
    // Half a turn of its disk is 0.245 ms longer. After 20,000 commands this is 4.9 s, of which a profile error of
    // 0.12 ms is at most half. Six commands are 1.5 ms.
    let profile = profile(&DiskSpec { rpm: 6_800, ..spec() }, 400);
    let settings = ["block.predictor=noop-disk", "block.predict_only=true"];
    let corrected = without_a_pause(&profile, &settings, 20_000);
    let most = corrected.longer.max().max(corrected.shorter.max());
    assert!(corrected.compared > 10_000 && most < Span::from_ms(60), "{}", described(&corrected));
    let others = without_a_pause(&profile, &[&settings[..], &["block.correct=false"]].concat(), 20_000);
    assert!(others.shorter.max() > Span::from_ms(2_400), "{}", described(&others));
    assert!(others.inaccuracy() > 2.0 * corrected.inaccuracy(), "{}; {}", described(&corrected), described(&others));
}

#[test]
fn predictions_behind_cfq_do_not_drift_either() {
    let profile = profile(&spec(), 100);
    let counted = without_a_pause(&profile, &[&CFQ[..], &["block.predict_only=true"]].concat(), 10_000);
    let most = counted.longer.max().max(counted.shorter.max());
    assert!(counted.compared > 5_000 && most < Span::from_ms(120), "{}", described(&counted));
}

#[test]
fn the_checks_of_drives_behind_both() {
    let spec = DiskSpec { cylinders: 16, ..DiskSpec::constellation_2() };
    let profile = profile(&spec, 10);
    for settings in [
        &["block.predictor=noop-disk"][..],
        &CFQ,
        &["block.scheduler=cfq", "block.predictor=cfq-disk", "block.depth=4"],
    ] {
        let make = |sim: &Sim| {
            let disk = Disk::new(sim, &spec).expect("a possible disk");
            Subject::new(layer(sim, &profile, settings).over(disk))
        };
        conformance::all(&make, seed()).unwrap_or_else(|what| panic!("{settings:?}: {what}"));
    }
}

#[test]
fn work_of_a_higher_class_rejects_what_it_makes_late_at_once_and_nothing_else() {
    let profile = profile(&spec(), 100);
    let mut executor = Executor::new();
    let sim = executor.sim();
    executor
        .block_on(async {
            let spec = spec();
            let layer = layer(&sim, &profile, &CFQ);
            let drive = layer.over(Disk::new(&sim, &spec).expect("a possible disk"));
            let (issuer, third) = (Issuer::new(&sim), spec.blocks() / 3);
            // One is at the disk; of two that wait, one has 45 ms and the other 300 ms.
            let first = issuer.execute(&*drive, of(read(third, 0), 0, 1), HostMem::none());
            let ends = Rc::new(RefCell::new(Vec::new()));
            for (name, place, deadline) in [("short", third + 800, 45_000), ("long", third + 1_600, 300_000)] {
                let (of_read, drive, ends) = (sim.clone(), drive.clone(), ends.clone());
                sim.spawn(async move {
                    let ended =
                        Issuer::new(&of_read).execute(&*drive, of(read(place, deadline), 0, 2), HostMem::none()).await;
                    ends.borrow_mut().push((name, ended.status.meaning() == BUSY, of_read.now()));
                });
            }
            sim.sleep(Span::from_ms(1)).await;
            assert!(ends.borrow().is_empty());
            // Work of the same class changes nothing. Four real-time commands, of some 12 ms each, precede both.
            let other = issuer.execute(&*drive, of(read(0, 0), 0, 3), HostMem::none());
            sim.sleep(Span::from_ms(1)).await;
            assert!(ends.borrow().is_empty());
            let urgent: Vec<_> = (0..4)
                .map(|number| issuer.execute(&*drive, of(read(number % 2 * third, 0), 1, 4), HostMem::none()))
                .collect();
            let came = sim.now();
            sim.sleep(Span::from_us(1)).await;
            assert_eq!(*ends.borrow(), [("short", true, came)], "at once");
            assert_eq!(layer.counted().cancelled, 1);
            for command in urgent {
                assert!(command.await.status.is_success());
            }
            assert!(first.await.status.is_success() && other.await.status.is_success());
            sim.sleep(Span::from_ms(100)).await;
            let ends = ends.borrow();
            assert!(ends.len() == 2 && ends[1].0 == "long" && !ends[1].1, "{ends:?}");
        })
        .unwrap();
}

#[test]
fn thousands_that_wait_are_one_sum_which_goes_with_them() {
    let profile = profile(&spec(), 20);
    let mut executor = Executor::new();
    let sim = executor.sim();
    executor
        .block_on(async {
            let layer = layer(&sim, &profile, &CFQ);
            let drive = layer.over(Disk::new(&sim, &spec()).expect("a possible disk"));
            let issuer = Issuer::new(&sim);
            let mut waiting = Vec::new();
            for number in 0..4_000u64 {
                waiting.push(issuer.execute(&*drive, of(read(number * 100_000, 0), 1, 1), HostMem::none()));
            }
            sim.sleep(Span::from_ms(1)).await;
            let busy = || match layer.addrcheck(0, 8, Span::from_ms(10)) {
                Err(Unchecked::Busy(busy)) => busy,
                other => panic!("all of real time goes first: {other:?}"),
            };
            let all = busy();
            // Some 5 ms each.
            assert!(all.wait > Span::from_s(8) && all.wait < Span::from_s(80), "{}", all.wait);
            let mut cancelled = 0;
            for (number, command) in waiting.into_iter().enumerate() {
                if number % 2 == 1 {
                    assert!(command.cancel(&*drive));
                    cancelled += 1;
                }
                drop(command);
            }
            let half = busy();
            assert!(half.wait < all.wait * 6 / 10 && half.wait > all.wait * 4 / 10, "{} {}", half.wait, all.wait);
            assert_eq!(cancelled, 2_000);
            sim.sleep(Span::from_s(80)).await;
            assert!(layer.addrcheck(0, 8, Span::from_ms(100)).is_ok(), "nothing is left");
        })
        .unwrap();
}
