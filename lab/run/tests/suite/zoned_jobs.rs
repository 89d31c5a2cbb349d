//! Jobs that know zones, on a small drive with zones: the drive rejects none of their commands, and the same seed gives the same
//! run.

use std::rc::Rc;

use nandscape_device_ssd::{Profile, Resolved};
use nandscape_lab_run::{Precondition, Report, RunError, Simulation};
use nandscape_lab_workload::{JobSpec, Limit, Share, Workload, Zoned};

/// 16 zones of 96 blocks, at multiples of 128; 3 open and 4 active at a time.
const DRIVE: &str = r#"version = 1
base = "default"
capacity = "6MiB"
lba_size = "4KiB"
[geometry]
channels = 2
dies_per_channel = 2
planes_per_die = 1
pages_per_block = 24
page_size = "4KiB"
[timing]
program_unit = "word_line"
[buffer]
size = "192KiB"
[controller]
max_transfer = "64KiB"
[ftl]
kind = "zone"
over_provisioning = "50%"
[ftl.zone]
max_active = 4
max_open = 3
"#;

fn drive(faults: &[String]) -> Resolved {
    let mut profile = Profile::parse("zones.toml", DRIVE).expect("a profile");
    profile.set(&format!("faults={faults:?}")).expect("faults");
    profile.resolve().expect("a valid one")
}

fn run(jobs: Vec<JobSpec>, requests: u64, seed: u64) -> Result<Report, RunError> {
    run_with(&[], jobs, requests, seed)
}

fn run_with(faults: &[String], jobs: Vec<JobSpec>, requests: u64, seed: u64) -> Result<Report, RunError> {
    let workload = Workload { jobs, limit: Limit::Requests(requests), ..Workload::of(JobSpec::default()) };
    let simulation = Simulation { check: true, ..Simulation::on(drive(faults), Precondition::None, workload, seed) };
    Ok(simulation.run(Rc::new(()))?.into_drive().report)
}

fn job(rw: &str, bs: &str, iodepth: u32, zoned: Zoned) -> JobSpec {
    let (rw, bs) = (rw.parse().unwrap(), bs.parse().unwrap());
    JobSpec { rw, bs, iodepth, zoned: Some(zoned), ..JobSpec::default() }
}

#[test]
fn nothing_is_refused() {
    for seed in 1..=4 {
        for (rw, bs) in [("write", "4k/3:20k/1"), ("randwrite", "4k"), ("randrw", "8k,64k"), ("rw", "16k")] {
            for (append, open, depth) in [(false, 1, 1), (false, 3, 8), (true, 1, 16), (true, 3, 5)] {
                for (fill, finish) in [(1.0, false), (0.3, true)] {
                    let zoned = Zoned { open, append, fill: Share::Of(fill), finish };
                    let case = format!("seed {seed}: {rw} {bs} depth {depth} {}", zoned.describe());
                    let report = run(vec![job(rw, bs, depth, zoned)], 1_500, seed).expect(&case);
                    assert_eq!((report.requests, report.errors.len()), (1_500, 0), "{case}");
                    assert!(report.operations_us.contains_key("reset"), "{case}");
                    assert_eq!(report.operations_us.contains_key("finish"), finish, "{case}");
                    assert!(
                        report.waf.is_none_or(|waf| waf < 4.0),
                        "{case}: zones are not collected, {:?}",
                        report.waf
                    );
                }
            }
        }
    }
}

#[test]
fn jobs_share_the_zones_and_the_same_seed_does_the_same() {
    let jobs = || {
        let two = JobSpec { name: "writers".into(), numjobs: 2, ..job("write", "4k", 2, Zoned::default()) };
        let reader =
            JobSpec { name: "reader".into(), ..job("randrw", "16k", 4, Zoned { append: true, ..Zoned::default() }) };
        let resets = JobSpec { name: "resets".into(), ..job("randtrim", "4k", 1, Zoned::default()) };
        vec![two, reader, resets]
    };
    let report = run(jobs(), 4_000, 7).expect("it runs");
    assert_eq!((report.requests, report.errors.len()), (4_000, 0));
    assert!(["read", "write", "trim"].iter().all(|name| report.latency_us.contains_key(name)), "all directions");
    let again = run(jobs(), 4_000, 7).expect("it runs");
    assert_eq!((report.virtual_s, report.iops), (again.virtual_s, again.iops));
}

/// Jobs that want more zones than there are for them, and one at a time each.
#[test]
fn jobs_that_want_the_same_zones_do_not_wait_for_each_other() {
    let size: Share = "1MiB".parse().unwrap();
    let narrow = |name: &str, open| {
        let job = job("write", "4k", 1, Zoned { open, ..Zoned::default() });
        JobSpec { name: name.into(), size, ..job }
    };
    let report = run(vec![narrow("a", 2), narrow("b", 1)], 2_000, 1).expect("it ends");
    assert_eq!((report.requests, report.errors.len()), (2_000, 0));
}

#[test]
fn what_cannot_run_says_so() {
    let error = |job: JobSpec| run(vec![job], 100, 1).expect_err("an error").to_string();
    assert!(error(job("randread", "4k", 1, Zoned::default())).contains("no zone has data to read"));
    assert!(error(job("write", "128k", 1, Zoned::default())).contains("is more than a command of the drive moves"));
    assert!(
        error(job("write", "4k", 1, Zoned { open: 4, ..Zoned::default() })).contains("the drive has 3 open at most")
    );
}

/// Each waits for its turn: with all of them looking at each change, this took minutes.
#[test]
fn as_many_tasks_as_a_queue_has_entries_take_their_turns() {
    for append in [false, true] {
        let zoned = Zoned { open: 3, append, ..Zoned::default() };
        let report = run(vec![job("randwrite", "4k", 65_535, zoned)], 3_000, 1).expect("it runs");
        assert_eq!((report.requests, report.errors.len()), (3_000, 0));
    }
}

#[test]
fn a_run_that_cannot_write_any_zone_ends_with_its_figures() {
    let faults = ["fail erase every=1".to_owned()];
    let job = JobSpec { numjobs: 3, ..job("randwrite", "4k", 4, Zoned::default()) };
    let report = run_with(&faults, vec![job], 20_000, 1).expect("it ends");
    assert!(report.requests > 100 && report.requests < 20_000, "{} requests", report.requests);
    let notes = report.notes.iter().filter(|note| note.contains("no zone can be written any more"));
    assert_eq!(notes.count(), 1, "all clones end, and one note tells it: {:?}", report.notes);
}

/// Zones to which a command failed are asked for, and used on if the drive still writes them. What fails, fails for the faults.
#[test]
fn jobs_go_on_after_planned_faults() {
    let cuts: Vec<String> = (1..=20).map(|number| format!("power_cut nth={}", number * 60)).collect();
    let other =
        ["fail erase probability=0.02", "fail program probability=0.005", "dead die=1 from=20ms", "stuck from=20ms"];
    let plans = other.map(|fault| vec![fault.to_owned()]).into_iter().chain([cuts.clone()]);
    for (faults, seed) in plans.zip(1..) {
        // With many appends at a time, one cut fails many commands to a zone.
        for (rw, depth, append) in [
            ("write", 6, false),
            ("randwrite", 6, true),
            ("randrw", 6, false),
            ("write", 64, true),
            ("randwrite", 32, true),
        ] {
            let zoned = Zoned { open: 1 + depth % 3, append, ..Zoned::default() };
            let report = run_with(&faults, vec![job(rw, "4k", depth, zoned)], 4_000, seed);
            let report = report.unwrap_or_else(|error| panic!("seed {seed}: {rw} with {faults:?}: {error}"));
            let (planned, others) = report.failures();
            assert_eq!(others, 0, "seed {seed}: {rw} with {faults:?}: {:?}", report.errors);
            if faults == cuts {
                // Resets that fail are counted, too.
                assert!(report.requests + planned >= 4_000, "seed {seed}: {rw} ended with {:?}", report.notes);
                // A cut that finds nothing in the controller fails nothing.
                assert!(planned >= 10, "seed {seed}: {rw}: {planned} failed in 20 cuts");
            }
        }
    }
    let resets = run_with(&["power_cut from=1ms".to_owned()], vec![job("randtrim", "4k", 1, Zoned::default())], 3, 1);
    assert_eq!(resets.expect("it ends").failures().1, 0);
}

#[test]
fn a_drive_that_is_dead_from_the_beginning_has_a_report() {
    for rw in ["write", "randtrim"] {
        let faults = ["dead".to_owned()];
        let report = run_with(&faults, vec![job(rw, "4k", 4, Zoned::default())], 1_000, 1).expect("it ends");
        assert_eq!(report.failures().1, 0, "{rw}: {:?}", report.errors);
    }
}
