//! Jobs in the threads of a host: what the host adds to latencies, and what its processors do.

use std::rc::Rc;

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::Profile as DriveProfile;
use nandscape_host_machine::Config as MachineConfig;
use nandscape_host_path::{Config, Profile};
use nandscape_lab_run::{CpuReport, Precondition, Report, Simulation};
use nandscape_lab_workload::{JobSpec, Limit, Workload};

fn run(host: Option<Profile>, jobs: &[JobSpec], changes: &[&str]) -> Report {
    let mut profile = DriveProfile::load("default").unwrap();
    profile.set_all([&["capacity=256MiB"], changes].concat()).unwrap();
    let workload = Workload { jobs: jobs.to_vec(), limit: Limit::Requests(2_000), ..Workload::of(jobs[0].clone()) };
    let simulation = Simulation {
        profile: profile.resolve().unwrap(),
        store: StoreKind::None,
        precondition: Precondition::Full,
        workload,
        seed: 3,
        trace: false,
        check: true,
        block: None,
        host,
    };
    simulation.run(Rc::new(())).unwrap().report
}

fn job(rw: &str, iodepth: u32) -> JobSpec {
    JobSpec { rw: rw.parse().unwrap(), iodepth, ..JobSpec::default() }
}

fn server(changes: &[&str]) -> Profile {
    let mut profile = Profile::load("server").unwrap();
    profile.set_all(changes).unwrap();
    profile
}

fn mean(report: &Report, way: &str) -> f64 {
    report.latency_us[way].mean.unwrap()
}

/// The stages of a mean, without their parts.
fn sum(report: &Report, way: &str) -> f64 {
    report.breakdown_us[way].iter().filter(|(name, _)| !name.ends_with("_by")).filter_map(|(_, us)| us.as_f64()).sum()
}

fn stage(report: &Report, way: &str, stage: &str) -> f64 {
    report.breakdown_us[way]["host_by"][stage].as_f64().unwrap_or(0.0)
}

fn cpu(report: &Report) -> &CpuReport {
    report.cpu.as_ref().expect("a host")
}

#[test]
fn a_host_on_which_nothing_takes_time_changes_no_latency() {
    let free = |completion: &str| {
        let mut config = Config::free(MachineConfig::free(64));
        config.set(&format!("host.completion={completion}")).unwrap();
        Profile { name: "free".to_owned(), config, ..Profile::default() }
    };
    let without = run(None, &[job("randread", 8)], &[]);
    assert!(without.cpu.is_none() && without.inputs.host.is_none());
    assert!(!without.breakdown_us["read"].contains_key("host"));
    for completion in ["interrupt", "poll"] {
        let with = run(Some(free(completion)), &[job("randread", 8)], &[]);
        assert_eq!(serde_json::to_value(&with.latency_us).unwrap(), serde_json::to_value(&without.latency_us).unwrap());
        assert_eq!(with.virtual_s, without.virtual_s, "{completion}");
    }
}

#[test]
fn stages_of_host_and_drive_sum_to_the_mean_latency_with_every_policy() {
    for completion in ["interrupt", "poll", "hybrid"] {
        for path in ["nvme", "scsi"] {
            let host =
                server(&[&format!("host.completion={completion}"), &format!("host.path={path}"), "host.cores=2"]);
            let report = run(Some(host), &[job("randrw", 6), job("randwrite", 2)], &[]);
            for way in ["read", "write"] {
                let (sum, mean) = (sum(&report, way), mean(&report, way));
                assert!((sum - mean).abs() < 1e-6, "{completion}, {path}, {way}: {sum} of {mean}");
                let of_host: f64 = report.breakdown_us[way]["host_by"]
                    .as_object()
                    .unwrap()
                    .values()
                    .filter_map(|us| us.as_f64())
                    .sum();
                assert!((of_host - report.breakdown_us[way]["host"].as_f64().unwrap()).abs() < 1e-6);
            }
            let cpu = cpu(&report);
            let kinds: f64 = cpu.request_us_by.as_ref().unwrap().values().sum();
            let total = cpu.request_us.unwrap();
            assert!((kinds - total).abs() < 1e-9);
            // Busy time is the requests' time.
            let busy = total * report.requests as f64 / (report.virtual_s * 1e6 * cpu.processors as f64);
            assert!((busy - cpu.busy).abs() < 1e-6, "{busy} {}", cpu.busy);
            assert_eq!((cpu.threads, cpu.processors), (8, 2));
        }
    }
}

#[test]
fn one_read_at_a_time_takes_what_its_policy_costs() {
    let host = |completion: &str| server(&[&format!("host.completion={completion}"), "host.cores=1"]);
    let without = mean(&run(None, &[job("randread", 1)], &[]), "read");
    let of = |completion| run(Some(host(completion)), &[job("randread", 1)], &[]);
    let (interrupt, poll, hybrid) = (of("interrupt"), of("poll"), of("hybrid"));
    // In the order of `host.*`: system call, block layer, driver; then entry, handler, completion, wake-up and switch.
    let added = |report: &Report| mean(report, "read") - without;
    let near = |is: f64, expected: f64| assert!((is - expected).abs() < 0.02, "{is} is not {expected}");
    near(added(&interrupt), 0.550 + 0.379 + 0.113 + 0.600 + 0.100 + 0.200 + 0.300 + 1.200);
    near(added(&poll), 0.550 + 0.379 + 0.113 + 0.100 + 0.100 + 0.200);
    near(added(&hybrid), added(&poll));
    near(stage(&interrupt, "read", "interrupt"), 0.700);
    let [interrupt, poll, hybrid] = [&interrupt, &poll, &hybrid].map(cpu);
    near(interrupt.interrupts_per_request.unwrap(), 1.0);
    assert!(poll.busy > 0.999 && interrupt.busy < 0.06, "{} {}", poll.busy, interrupt.busy);
    assert!((0.45..0.6).contains(&hybrid.busy), "{}", hybrid.busy);
    assert_eq!(poll.interrupts_per_request, Some(0.0));
}

#[test]
fn a_drive_with_few_queue_pairs_is_shared_by_the_processors() {
    let report = run(Some(server(&["host.cores=8"])), &[job("randread", 16)], &["controller.queue_pairs=3"]);
    assert_eq!((cpu(&report).queue_pairs, cpu(&report).processors), (3, 8));
    assert!(stage(&report, "read", "ipi") > 0.0 && stage(&report, "read", "softirq") > 0.0);
    let report = run(Some(server(&["host.cores=8"])), &[job("randread", 16)], &[]);
    assert_eq!((cpu(&report).queue_pairs, stage(&report, "read", "ipi")), (8, 0.0));
}

#[test]
fn computing_threads_delay_what_sleeps_and_their_share_is_reported() {
    let host = |changes: &[&str]| server(&[&["host.cores=1"], changes].concat());
    let busy = run(Some(host(&["host.load=1"])), &[job("randread", 1)], &[]);
    let alone = run(Some(host(&[])), &[job("randread", 1)], &[]);
    assert!(cpu(&busy).load.unwrap() > 0.5 && cpu(&alone).load.is_none());
    assert!(cpu(&busy).busy < 0.2, "the load is not the requests': {}", cpu(&busy).busy);
    assert!(mean(&busy, "read") > mean(&alone, "read"));
}
