//! Jobs in the threads of a host: the host's part of latencies, and the work of its processors.

use std::rc::Rc;

use nandscape_device_ssd::Profile as DriveProfile;
use nandscape_host_machine::Config as MachineConfig;
use nandscape_host_path::{Config, Profile};
use nandscape_lab_run::{CpuReport, Precondition, Report, RunError, Simulation};
use nandscape_lab_workload::{JobSpec, Limit, Rate, RateProcess, Scheduling, Workload};

fn run(host: Option<Profile>, jobs: &[JobSpec], changes: &[&str]) -> Report {
    try_run(host, jobs, changes).unwrap()
}

fn try_run(host: Option<Profile>, jobs: &[JobSpec], changes: &[&str]) -> Result<Report, RunError> {
    let mut profile = DriveProfile::load("default").unwrap();
    profile.set_all([&["capacity=256MiB"], changes].concat()).unwrap();
    let workload = Workload { jobs: jobs.to_vec(), limit: Limit::Requests(2_000), ..Workload::of(jobs[0].clone()) };
    let simulation =
        Simulation { check: true, host, ..Simulation::on(profile.resolve().unwrap(), Precondition::Full, workload, 3) };
    simulation.run(Rc::new(())).map(|finished| finished.into_drive().report)
}

fn job(rw: &str, iodepth: u32) -> JobSpec {
    JobSpec { rw: rw.parse().unwrap(), iodepth, ..JobSpec::default() }
}

fn server(changes: &[&str]) -> Profile {
    let mut profile = Profile::load("server").unwrap();
    profile.set_all(changes).unwrap();
    profile
}

const WINDOW: &str = "controller.precompletion.window=16us";

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
    for completion in ["interrupt", "poll", "hybrid", "adaptive", "precompletion"] {
        for path in ["nvme", "scsi"] {
            let host =
                server(&[&format!("host.completion={completion}"), &format!("host.path={path}"), "host.cores=2"]);
            let report = run(Some(host), &[job("randrw", 6), job("randwrite", 2)], &[WINDOW]);
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
                let behind = |by: &serde_json::Value| -> f64 {
                    by.as_object().unwrap().values().filter_map(|us| us.as_f64()).sum()
                };
                let behind = report.breakdown_us[way].get("run_delay_by").map_or(0.0, behind);
                assert!((behind - stage(&report, way, "run_delay")).abs() < 1e-6);
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
fn completion_queues_are_fewer_than_submission_queues_and_interrupt_their_processors() {
    let jobs = [JobSpec { numjobs: 8, ..job("randread", 4) }];
    let of = |changes: &[&str]| run(Some(server(&[&["host.cores=8"], changes].concat())), &jobs, &[]);
    let plain = of(&[]);
    assert!(cpu(&plain).completion_queues.is_none());
    for (changes, processors) in [
        (&["host.completion_queues=1"][..], &[0][..]),
        (&["host.completion_queues=1", "host.affinity=5"], &[5]),
        (&["host.completion_queues=2", "host.affinity=6:3"], &[6, 3]),
        (&["host.path=cooperative", "host.completion_queues=2"], &[0, 1]),
        (&["host.path=non_blocking", "host.completion_queues=1", "host.affinity=7"], &[7]),
        (&["host.ring=defer_taskrun", "host.completion_queues=3"], &[0, 1, 2]),
    ] {
        let report = of(changes);
        let queues = cpu(&report).completion_queues.as_ref().expect("the settings name them");
        let there: Vec<u64> = queues.iter().map(|queue| queue.processor).collect();
        assert_eq!(there, processors, "{changes:?}");
        assert!(queues.iter().all(|queue| queue.interrupts_per_request > Some(0.0)), "{queues:?} of {changes:?}");
        let raised: f64 = queues.iter().filter_map(|queue| queue.interrupts_per_request).sum();
        assert!((raised - cpu(&report).interrupts_per_request.unwrap()).abs() < 1e-9, "{changes:?}");
        assert_eq!((cpu(&report).queue_pairs, report.errors.len()), (8, 0), "{changes:?}");
        assert!((mean(&report, "read") - sum(&report, "read")).abs() < 0.01, "{changes:?}");
    }
    // One processor takes all completions, and passes them to the others.
    let one = of(&["host.completion_queues=1"]);
    assert!(stage(&one, "read", "ipi") > 0.0 && stage(&plain, "read", "ipi") == 0.0);
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

/// Pages of one kind: once a chip is known, all notices are in time, and the host is awake when the data arrives.
#[test]
fn notices_save_what_an_interrupt_costs_for_less_than_polling_takes() {
    let equal = ["timing.cell=slc", "timing.read=80us", "timing.program=200us", WINDOW];
    let of = |changes: &[&str]| run(Some(server(changes)), &[job("randread", 1)], &equal);
    let (interrupt, poll) = (of(&[]), of(&["host.completion=poll"]));
    let precompletion = |window: &str| of(&["host.completion=precompletion", &format!("host.window={window}")]);
    let woken = |report: &Report| cpu(report).woken.clone().expect("the host asks");
    assert!(cpu(&interrupt).woken.is_none());
    let wide = precompletion("16us");
    assert!(woken(&wide).ready > 1_800 && woken(&wide).gave_up == 0, "{:?}", woken(&wide));
    assert!(mean(&wide, "read") < mean(&poll, "read") + 0.3 * (mean(&interrupt, "read") - mean(&poll, "read")));
    let narrow = precompletion("1us");
    assert!(woken(&narrow).ready == 0 && mean(&narrow, "read") > mean(&wide, "read"), "{:?}", woken(&narrow));
    let adaptive = precompletion("adaptive");
    let [polls, wide_us, adaptive_us] = [&poll, &wide, &adaptive].map(|report| cpu(report).request_us.unwrap());
    assert!(adaptive_us < wide_us && wide_us < 0.4 * polls, "{adaptive_us} {wide_us} {polls}");
    assert!(mean(&adaptive, "read") < 1.01 * mean(&wide, "read"));
    let own = of(&["host.completion=precompletion"]);
    assert_eq!((woken(&own).window_us, mean(&own, "read")), (None, mean(&wide, "read")));
}

#[test]
fn a_write_that_finds_room_is_polled_for_and_a_full_buffer_takes_interrupts() {
    let of = |completion: &str, changes: &[&str]| {
        run(Some(server(&[completion])), &[job("randwrite", 1)], &[&[WINDOW], changes].concat())
    };
    let (interrupt, polled) = (of("host.completion=interrupt", &[]), of("host.completion=precompletion", &[]));
    let woken = cpu(&polled).woken.clone().unwrap();
    assert!(woken.polled_writes > 1_900, "{woken:?}");
    assert!(mean(&polled, "write") < mean(&interrupt, "write") - 1.5);
    let full = of(
        "host.completion=precompletion",
        &["buffer.size=256KiB", "geometry.channels=1", "geometry.dies_per_channel=1"],
    );
    let woken = cpu(&full).woken.clone().unwrap();
    // A program makes room for several writes, and each that finds none takes the interrupt.
    assert!((1_000..1_700).contains(&woken.polled_writes) && woken.polled_writes_waited < 20, "{woken:?}");
}

#[test]
fn processors_that_have_no_room_are_what_bounds_the_rate() {
    let fast = ["timing.cell=slc", "timing.read=3us", "controller.firmware_time=1us"];
    let of = |changes: &[&str], threads| run(Some(server(changes)), &[job("randread", threads)], &fast).limited_by;
    assert_eq!(of(&["host.cores=1"], 16), Some("host_processors"));
    assert_eq!(of(&["host.cores=1", "host.completion=poll"], 4), Some("host_processors"));
    let polling = of(&["host.cores=1", "host.completion=poll"], 1);
    assert_ne!(polling, Some("host_processors"), "polling takes what nothing else wants");
    assert_ne!(of(&["host.cores=16"], 4), Some("host_processors"));
}

/// What waits for its thread to be woken is no request without a thread.
#[test]
fn waking_an_idle_thread_is_a_wait_for_the_processor_and_a_switch() {
    let rate = Some(Rate { iops: 500.0, process: RateProcess::Linear });
    let rate = JobSpec { rate, ..job("randread", 32) };
    let report = run(Some(server(&["host.cores=1", "host.load=1"])), &[rate], &[]);
    assert_eq!(stage(&report, "read", "thread"), 0.0);
    assert!(stage(&report, "read", "run_delay") + stage(&report, "read", "switch") > 1.0);
}

#[test]
fn a_ring_serves_many_requests_with_one_thread_and_stages_sum() {
    let of = |ring: &str| {
        let report = run(Some(server(&[&format!("host.ring={ring}"), "host.cores=2"])), &[job("randrw", 16)], &[]);
        for way in ["read", "write"] {
            let (sum, mean) = (sum(&report, way), mean(&report, way));
            assert!((sum - mean).abs() < 1e-6, "{ring}, {way}: {sum} of {mean}");
        }
        report
    };
    let (threads, ring, poll, kernel) = (of("off"), of("defer_taskrun"), of("iopoll"), of("sqpoll"));
    let reactor = of("reactor");
    assert_eq!((cpu(&reactor).threads, cpu(&reactor).interrupts_per_request), (1, Some(0.0)));
    let in_host = |report: &Report| report.breakdown_us["read"]["host"].as_f64().unwrap();
    assert!(in_host(&reactor) < 0.8 * in_host(&poll), "no system call, no block layer");
    let counts = [&threads, &ring, &poll, &kernel].map(|report| (cpu(report).threads, cpu(report).completion));
    assert_eq!(counts, [(16, "interrupt"), (1, "defer_taskrun"), (1, "iopoll"), (2, "sqpoll")]);
    let time = |report: &Report| cpu(report).request_us.unwrap();
    assert!(time(&ring) < 0.8 * time(&threads), "{} {}", time(&ring), time(&threads));
    assert_eq!(cpu(&poll).interrupts_per_request, Some(0.0));
    assert!(cpu(&kernel).request_us_by.as_ref().unwrap()["spin"] > 0.0);
}

#[test]
fn jobs_beyond_the_processors_share_reactors() {
    let jobs = JobSpec { numjobs: 3, ..job("randread", 2) };
    let report = run(Some(server(&["host.ring=reactor", "host.cores=2"])), &[jobs], &[]);
    assert_eq!(cpu(&report).threads, 2);
    assert!(cpu(&report).busy > 0.99, "reactors never sleep: {}", cpu(&report).busy);
}

/// Other paths take no lock of the block layer or of the driver.
#[test]
fn the_cost_of_locks_counts_on_the_path_of_scsi_alone() {
    let thesis = |changes: &[&str]| {
        let mut profile = Profile::load("i7-4770").unwrap();
        profile.set_all(changes).unwrap();
        run(Some(profile), &[job("randread", 8)], &[])
    };
    let [free, dear] = [["host.lock=0", "host.lock_transfer=0"], ["host.lock=100us", "host.lock_transfer=100us"]];
    let of = |path: &str, locks: [&str; 2]| thesis(&[&[path][..], &locks].concat());
    let [scsi, slow] = [free, dear].map(|locks| of("host.path=scsi", locks));
    assert!(mean(&slow, "read") > mean(&scsi, "read") + 400.0, "{} {}", mean(&slow, "read"), mean(&scsi, "read"));
    assert!(stage(&slow, "read", "lock") > 400.0, "four locks at least");
    let [nvme, same] = [free, dear].map(|locks| of("host.path=nvme", locks));
    assert_eq!(serde_json::to_value(&nvme.latency_us).unwrap(), serde_json::to_value(&same.latency_us).unwrap());
}

fn on(scheduling: Scheduling) -> JobSpec {
    JobSpec { scheduling, ..job("randread", 4) }
}

#[test]
fn the_wait_for_a_processor_has_the_causes_of_the_load() {
    let of = |changes: &[&str]| {
        let report = run(Some(server(&[&["host.cores=1"], changes].concat())), &[job("randread", 2)], &[]);
        let by = report.breakdown_us["read"]["run_delay_by"].clone();
        let most =
            by.as_object().unwrap().iter().max_by(|one, other| one.1.as_f64().partial_cmp(&other.1.as_f64()).unwrap());
        most.unwrap().0.clone()
    };
    assert_eq!(of(&["host.load=2", "host.slice=200us"]), "load");
    assert_eq!(of(&["host.completion=poll", "host.slice=200us"]), "polling");
    assert_eq!(of(&["host.user=200us"]), "application");
    assert_eq!(of(&["host.path=cooperative", "host.poll_thread=0", "host.slice=200us"]), "kernel");
}

#[test]
fn jobs_have_their_weights_and_their_processors() {
    let nice = |nice: i8| {
        let host = server(&["host.cores=1", "host.load=2", "host.user=200us", "host.slice=100us"]);
        let scheduling = Scheduling { nice, ..Scheduling::default() };
        mean(&run(Some(host), &[JobSpec { iodepth: 1, ..on(scheduling) }], &[]), "read")
    };
    let of = [nice(-10), nice(0), nice(10)];
    assert!(of[0] < 0.6 * of[1] && of[1] < 0.6 * of[2], "{of:?}");

    let busy = |cpus: Vec<usize>, split: bool, ring: &str| {
        let host = server(&["host.cores=4", "host.user=100us", &format!("host.ring={ring}")]);
        let scheduling = Scheduling { cpus, split, ..Scheduling::default() };
        cpu(&run(Some(host), &[JobSpec { numjobs: 2, ..on(scheduling) }], &[])).busy
    };
    for ring in ["off", "defer_taskrun"] {
        let [one, two, split] =
            [(vec![3], false), (vec![1, 2], false), (vec![1, 2], true)].map(|(cpus, split)| busy(cpus, split, ring));
        assert!(
            (0.2..0.26).contains(&one) && two > 1.5 * one && two < 0.51 && split > 1.5 * one,
            "{ring}: {one} {two} {split}"
        );
    }
    // A reactor keeps its processor busy.
    assert!(
        (busy(vec![2], false, "reactor") - 0.25).abs() < 0.01
            && (busy(vec![1, 3], false, "reactor") - 0.5).abs() < 0.01
    );
}

#[test]
fn processors_and_weights_that_cannot_be_are_refused_with_the_job() {
    let of = |scheduling, changes: &[&str]| {
        let named = JobSpec { name: "reads".to_owned(), ..on(scheduling) };
        try_run(Some(server(&[&["host.cores=2"], changes].concat())), &[named], &[]).unwrap_err().to_string()
    };
    let missing = of(Scheduling { cpus: vec![0, 2], ..Scheduling::default() }, &[]);
    assert!(
        missing.contains("job \"reads\": cpus_allowed: host server has no processor 2; valid are 0 to 1"),
        "{missing}"
    );
    let nice = of(Scheduling { nice: 5, ..Scheduling::default() }, &["host.ring=reactor"]);
    assert!(nice.contains("job \"reads\": nice: 5 is not valid with host.ring=reactor"), "{nice}");
    let without = run(None, &[on(Scheduling { nice: 5, cpus: vec![900], split: false })], &[]);
    assert!(
        without.notes.iter().any(|note| note.starts_with("nice and the choice of processors have no effect")),
        "{:?}",
        without.notes
    );
}
