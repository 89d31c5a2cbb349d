//! A first look at FEMU's comparison of blocking schemes (Li 2018, Fig. 6a): the same reads and writes to the same
//! drive in steady state, under collectors that keep others out of the controller, the channel, the plane, or nothing.
//! The figure's load is not given; this one is light enough for every scheme to keep up with it. Order only.

#![expect(clippy::print_stdout, reason = "the measured figures, for --nocapture and the Validation page")]

use nandscape_device_ftl::Plant;
use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Ssd};
use nandscape_drive::{QueueDrive, QueueId};
use nandscape_lab_workload::{Direction, JobSpec, Limit, Rate, RateProcess, Runner, Workload};
use nandscape_sim::{Executor, Seed};

/// The worst first.
const SCHEMES: [&str; 4] = ["controller", "channel", "plane", "none"];
const QUANTILES: [f64; 3] = [0.95, 0.99, 0.999];

/// What reads saw under one scheme.
#[derive(Debug)]
struct Reads {
    scheme: &'static str,
    /// At each of [`QUANTILES`].
    latency_us: [f64; QUANTILES.len()],
    blocked_by_gc: u64,
    gc_blocks: u64,
    waf: f64,
}

/// 4 KiB requests at random, 70% of them reads, arriving independently of each other.
fn run(profile: &str, scheme: &'static str, iops: f64, seed: u64) -> Reads {
    let mut drive = Profile::load(profile).unwrap();
    drive.set("capacity=1GiB").unwrap();
    drive.set(&format!("ftl.gc.scheme={scheme}")).unwrap();
    let job = JobSpec {
        rw: "randrw".parse().unwrap(),
        rwmixread: 70,
        rate: Some(Rate { iops, process: RateProcess::Poisson }),
        ..JobSpec::default()
    };
    let workload = Workload { limit: Limit::Requests(250_000), warmup: 50_000, ..Workload::of(job) };

    let mut executor = Executor::new();
    let sim = executor.sim();
    let seed = Seed::new(seed);
    let profile = drive.resolve().unwrap();
    let ssd = Ssd::new(&sim, &profile, StoreKind::None, seed.child("drive")).unwrap();
    ssd.plant(Plant::Steady, seed.child("precondition"), &mut |_| ());
    let queue = QueueDrive::new(&sim, ssd.controller(), QueueId(1), profile.max_queue_entries()).unwrap();
    let runner = Runner::new(&sim, &workload, Box::new(()));
    let outcome = executor.block_on(runner.run(&workload, seed.child("workload"), |_, _| queue.clone())).unwrap();
    ssd.check().unwrap();

    let (reads, stats) = (outcome.tally(Direction::Read), ssd.ftl_stats());
    assert_eq!(outcome.requests(), 250_000, "nothing fails");
    Reads {
        scheme,
        latency_us: QUANTILES.map(|quantile| reads.latency.quantile(quantile).as_us()),
        blocked_by_gc: reads.blocked_by_gc,
        gc_blocks: stats.gc_blocks,
        waf: stats.programmed_units() as f64 / (stats.host_bytes as f64 / 4_096.0),
    }
}

/// Each scheme is no worse than the one before it at any quantile, histograms being exact to a thousandth, and better by
/// a twentieth at those of [`QUANTILES`] from number `from` on.
fn narrower_blocking_is_better(profile: &str, iops: f64, from: usize) {
    for seed in [1, 2, 3] {
        let schemes = SCHEMES.map(|scheme| run(profile, scheme, iops, seed));
        for Reads { scheme, latency_us: [p95, p99, p99_9], blocked_by_gc, gc_blocks, waf } in &schemes {
            println!(
                "{profile}, seed {seed}, {scheme}: p95 {p95:.0} us, p99 {p99:.0} us, p99.9 {p99_9:.0} us; \
                 {blocked_by_gc} reads waited, {gc_blocks} blocks cleaned, waf {waf:.2}"
            );
        }
        for pair in schemes.windows(2) {
            for (nth, quantile) in QUANTILES.iter().enumerate() {
                let (worse, better) = (pair[0].latency_us[nth], pair[1].latency_us[nth]);
                let most = if nth >= from { worse / 1.05 } else { worse * 1.001 };
                assert!(better <= most, "{profile}, seed {seed}, quantile {quantile}: {pair:?}");
            }
        }
        assert!(schemes.iter().all(|reads| reads.gc_blocks > 100), "{profile}, seed {seed}: {schemes:?}");
        assert_eq!(schemes[3].blocked_by_gc, 0, "{profile}, seed {seed}");
    }
}

#[test]
fn on_the_open_channel_drive() {
    narrower_blocking_is_better("femu-ocssd", 1_500.0, 0);
}

/// On 64 planes, fewer than a read in a hundred meets a plane that is being cleaned: up to there, plane and none are
/// alike.
#[test]
fn on_the_black_box_drive() {
    narrower_blocking_is_better("femu-blackbox", 4_000.0, 2);
}
