//! A full drive keeps working: every built-in profile, small and large, with little over-provisioning or none, under
//! every collector and with the smallest buffer. Each run ends, nothing fails, and the drive's tables are sound.

#![expect(clippy::print_stdout, reason = "the measured figures, for --nocapture and the Validation page")]

use std::rc::Rc;

use nandscape_device_ssd::{BUILTIN, Profile};
use nandscape_lab_run::{Precondition, Report, Simulation};
use nandscape_lab_workload::{JobSpec, Limit, Workload};

/// Less than possible: a drive gets whole blocks on every plane, and a reserve for its collectors.
const OVER_PROVISIONING: [&str; 3] = ["0%", "2%", "7%"];

fn run(profile: &str, changes: &[&str], precondition: Precondition, (rw, bs): (&str, &str), requests: u64) -> Report {
    let mut drive = Profile::load(profile).unwrap();
    changes.iter().for_each(|change| drive.set(change).unwrap());
    let job = JobSpec { rw: rw.parse().unwrap(), bs: bs.parse().unwrap(), ..JobSpec::default() };
    let workload = Workload { limit: Limit::Requests(requests), ..Workload::of(job) };
    let simulation = Simulation { check: true, ..Simulation::on(drive.resolve().unwrap(), precondition, workload, 1) };
    let finished = simulation.run(Rc::new(())).unwrap_or_else(|error| panic!("{profile} {changes:?}: {error}"));
    let report = finished.into_drive().report;
    assert_eq!((report.requests, report.errors.len()), (requests, 0), "{profile} {changes:?}");
    let waf = report.waf.expect("there are writes");
    assert!(waf.is_finite() && waf > 0.0, "{profile} {changes:?}: {waf}");
    report
}

/// The buffer is small, so that writes reach the flash. A short run in steady state takes one share for each profile, in turn;
/// `NANDSCAPE_TEST_WHOLE_GRID=1` takes all.
fn profiles(capacity: &str, precondition: Precondition, requests: u64) {
    let is_whole = precondition == Precondition::Full || std::env::var_os("NANDSCAPE_TEST_WHOLE_GRID").is_some();
    // Zones, runs and chunks are not written at random.
    let has_blocks = |name: &str| {
        let resolved = Profile::load(name).unwrap().resolve().unwrap();
        resolved.zone().is_none() && resolved.lsm().is_none() && resolved.open_channel().is_none()
    };
    for (number, builtin) in BUILTIN.iter().filter(|builtin| has_blocks(builtin.name)).enumerate() {
        let shares = OVER_PROVISIONING.iter().enumerate();
        for (_, share) in shares.filter(|(place, _)| is_whole || number % OVER_PROVISIONING.len() == *place) {
            let changes = [
                &format!("capacity={capacity}") as &str,
                &format!("ftl.over_provisioning={share}"),
                "buffer.size=1MiB",
            ];
            let report = run(builtin.name, &changes, precondition, ("randwrite", "4k"), requests);
            println!(
                "{} {capacity} {share}: waf {:.2}, over-provisioning {:.3}, {} blocks in reserve",
                builtin.name,
                report.waf.unwrap_or(0.0),
                report.over_provisioning,
                report.reserve_blocks
            );
            assert!(report.gc.blocks > 0, "{} {changes:?}: collectors are at work", builtin.name);
        }
    }
}

/// Filled five times over.
#[test]
fn of_64_mebibytes() {
    profiles("64MiB", Precondition::Full, 5 * (64 << 8));
}

/// In steady state, which overwriting without time has reached, and then an eighth overwritten. `NANDSCAPE_TEST_MEBIBYTES`
/// sets another capacity: a gibibyte takes four times as long.
#[test]
fn in_steady_state() {
    let mebibytes = std::env::var("NANDSCAPE_TEST_MEBIBYTES").ok().and_then(|text| text.parse().ok()).unwrap_or(256);
    profiles(&format!("{mebibytes}MiB"), Precondition::Steady, (mebibytes << 8) / 8);
}

/// A buffer of two programs (of two planes at once in mqsim-mlc), and writes larger than it that start and end anywhere.
#[test]
fn with_the_smallest_buffer() {
    for mode in ["capacitor", "volatile", "through"] {
        for (profile, size) in [("default", "32KiB"), ("femu-blackbox", "8KiB"), ("mqsim-mlc", "32KiB")] {
            let changes = ["capacity=64MiB", &format!("buffer.mode={mode}"), &format!("buffer.size={size}")];
            let report =
                run(profile, &changes, Precondition::Full, ("randwrite", "512/40:12k/30:28k/20:100k/10"), 10_000);
            assert!(report.flash.read_modify_writes > 0, "{profile} {mode}");
        }
    }
}

/// Every scheme, victim and way of moving, without over-provisioning, trims between the writes.
#[test]
fn under_every_collector() {
    for scheme in ["controller", "channel", "plane", "none"] {
        for victim in ["greedy", "cost_benefit"] {
            for (copyback, batch) in [(false, 0), (false, 1), (true, 0), (true, 3)] {
                let changes = [
                    "capacity=64MiB",
                    "ftl.over_provisioning=0",
                    "buffer.size=256KiB",
                    "ftl.wear.static_threshold=4",
                    &format!("ftl.gc.scheme={scheme}"),
                    &format!("ftl.gc.victim={victim}"),
                    &format!("ftl.gc.copyback={copyback}"),
                    &format!("ftl.gc.batch={batch}"),
                ];
                run("femu-ocssd", &changes, Precondition::Steady, ("randrw", "4k/80:24k/20"), 10_000);
            }
        }
    }
}
