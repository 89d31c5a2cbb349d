//! Notices ahead of completions and classes of jobs in whole runs: the counts of the report add up, neither feature changes a
//! drive without it, and an arbiter by class serves the urgent job first.

use std::rc::Rc;

use nandscape_device_ssd::Profile;
use nandscape_lab_run::{PrecompletionReport, Precondition, Report, Simulation};
use nandscape_lab_workload::{JobSpec, Limit, Workload};

fn run(changes: &[&str], precondition: Precondition, jobs: Vec<JobSpec>, requests: u64) -> Report {
    let mut profile = Profile::load("default").unwrap();
    ["capacity=1GiB", "buffer.size=1MiB"].iter().chain(changes).for_each(|change| profile.set(change).unwrap());
    let workload = Workload { limit: Limit::Requests(requests), jobs, ..Workload::of(JobSpec::default()) };
    let simulation =
        Simulation { check: true, ..Simulation::on(profile.resolve().unwrap(), precondition, workload, 1) };
    simulation.run(Rc::new(())).unwrap().into_drive().report
}

fn job(rw: &str, iodepth: u32) -> JobSpec {
    JobSpec { rw: rw.parse().unwrap(), iodepth, rwmixread: 70.0, ..JobSpec::default() }
}

const WINDOW: &str = "controller.precompletion.window=16us";

fn noticed(changes: &[&str], precondition: Precondition, job: JobSpec, requests: u64) -> PrecompletionReport {
    let report = run(&[changes, &[WINDOW]].concat(), precondition, vec![job], requests);
    let reads = report.latency_us["read"].count;
    let notices = report.precompletion.expect("the drive has notices");
    let all = notices.in_time + notices.early + notices.late + notices.missing + notices.unissued + notices.large;
    // Reads that were submitted before the measured phase count when they end.
    assert_eq!((all, notices.reads), (reads, reads));
    notices
}

/// One read at a time on pages of one kind: each takes as long as the one before it in its chip, and once a chip is known all notices
/// are in time.
#[test]
fn single_reads_of_equal_pages_are_announced_in_time() {
    let equal = ["timing.cell=slc", "timing.read=40us", "timing.program=200us"];
    let notices = noticed(&equal, Precondition::Full, job("randread", 1), 20_000);
    assert_eq!((notices.early, notices.late, notices.large), (0, 0, 0), "{notices:?}");
    assert!(notices.missing <= 1_024 && notices.in_time > 18_000, "{notices:?}");
    assert_eq!((notices.error_max_us, notices.flash.deviation_us), (Some(0.0), Some(0.0)), "{notices:?}");
    // Where nothing is known nothing is predicted, and reads of 8 KiB are not.
    let large = JobSpec { bs: "8k".parse().unwrap(), ..job("randread", 1) };
    let notices = noticed(&equal, Precondition::Full, large, 1_000);
    assert_eq!((notices.large, notices.in_time), (1_000, 0));
}

/// On a full drive with collections, writes and depth, predictions are sometimes wrong, and the report counts them.
#[test]
fn a_busy_drive_has_notices_of_all_kinds() {
    let notices = noticed(&[], Precondition::Steady, job("randrw", 16), 60_000);
    assert!(notices.in_time > 0 && notices.early > 0 && notices.late > 0, "{notices:?}");
    assert!(notices.error_mean_us.unwrap() > 0.0 && notices.flash.error_us.unwrap() > 1.0, "{notices:?}");
    let writes = notices.buffer.hits + notices.buffer.missed + notices.buffer.waits + notices.buffer.unexpected_hits;
    assert!(writes > 15_000, "{notices:?}");
}

/// Reads alone take as long with notices as without, and a drive without a window reports none.
#[test]
fn notices_change_no_latency() {
    let of = |changes: &[&str]| run(changes, Precondition::Full, vec![job("randread", 8)], 20_000);
    let (plain, noticed) = (of(&[]), of(&[WINDOW]));
    assert!(plain.precompletion.is_none());
    let json = |report: &Report| serde_json::to_string(&(&report.latency_us, &report.breakdown_us)).unwrap();
    assert_eq!(json(&plain), json(&noticed));
    assert!(!serde_json::to_string(&plain).unwrap().contains("precompletion"));
}

#[test]
fn an_arbiter_by_class_serves_the_urgent_job_first() {
    let jobs = || {
        let urgent = JobSpec { name: "urgent".into(), class: 1, tenant: 7, ..job("randread", 4) };
        vec![urgent, JobSpec { name: "bulk".into(), class: 15, ..job("randread", 256) }]
    };
    let of = |arbiter: &str| {
        let changes = ["controller.command_slots=8", &format!("controller.arbiter={arbiter}")];
        let flows = run(&changes, Precondition::Full, jobs(), 40_000).flows;
        assert_eq!(
            (flows[0].class, flows[0].tenant, flows[1].class, flows[1].tenant),
            (Some(1), Some(7), Some(15), None)
        );
        (flows[0].mean_us.unwrap(), flows[1].mean_us.unwrap())
    };
    let (turns, class, oldest) = (of("round_robin"), of("class"), of("oldest"));
    assert!(class.0 < 0.8 * turns.0, "by class {class:?}, in turn {turns:?}");
    // In order of age both wait alike.
    assert!(oldest.0 > 2.0 * turns.0 && oldest.0 > 0.8 * oldest.1, "by age {oldest:?}, in turn {turns:?}");
    // A drive of one job has no rows, and the default is in turn.
    let report = run(&["controller.command_slots=8"], Precondition::Full, jobs(), 40_000);
    assert_eq!((report.flows[0].mean_us, report.flows[1].mean_us), (Some(turns.0), Some(turns.1)));
}
