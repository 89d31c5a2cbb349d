//! Six SATA drives on an AHCI controller: the rates of the data sheet, the shared uplink, and a host over them.

use std::rc::Rc;

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::Profile as DriveProfile;
use nandscape_host_path::Profile;
use nandscape_lab_run::chain::{AhciReport, Chain, Section};
use nandscape_lab_run::{HostReport, Precondition, RigDrive, Simulation};
use nandscape_lab_workload::{JobSpec, Limit, Workload};
use nandscape_sim::Seed;

fn stack(layers: &str, host: Option<Profile>, (rw, bs, iodepth): (&str, &str, u32)) -> Simulation {
    let chain: Chain = layers.parse().unwrap();
    let layers = chain.resolve().unwrap();
    let mut profile = DriveProfile::load("840-pro").unwrap();
    profile.set("capacity=2GiB").unwrap();
    let profile = profile.resolve().unwrap();
    let count = nandscape_lab_run::chain::drives_below(&layers) as u64;
    let drive = |number: u64| RigDrive {
        name: format!("drive-{number}"),
        profile: profile.clone(),
        store: StoreKind::None,
        precondition: Precondition::Full,
        seed: Seed::new(7).nth(number),
    };
    let job = JobSpec { rw: rw.parse().unwrap(), bs: bs.parse().unwrap(), iodepth, ..JobSpec::default() };
    let workload = Workload { limit: Limit::Requests(3_000), warmup: 300, ..Workload::of(job) };
    Simulation { layers, check: true, host, ..Simulation::of((0..count).map(drive).collect(), workload, 5) }
}

fn run(layers: &str, host: Option<Profile>, load: (&str, &str, u32)) -> HostReport {
    let report = stack(layers, host, load).run(Rc::new(())).unwrap().into_chain().unwrap().host;
    assert!(report.errors.is_empty(), "{:?}", report.errors);
    for (way, layers) in &report.layers_us {
        let (sum, mean) = (layers.values().sum::<f64>(), report.latency_us[way].mean.unwrap());
        assert!((sum - mean).abs() < 1e-3, "{way}: {sum} {mean} {layers:?}");
    }
    report
}

fn host(changes: &[&str]) -> Option<Profile> {
    let mut profile = Profile::load("i7-4770").unwrap();
    profile.set_all(changes).unwrap();
    Some(profile)
}

fn ahci(report: &HostReport) -> AhciReport {
    *report.chain.iter().find_map(Section::part).expect("a controller")
}

fn near(what: &str, measured: f64, expected: f64, within: f64) {
    assert!((measured / expected - 1.0).abs() <= within, "{what}: {measured} instead of {expected}");
}

#[test]
fn one_drive_has_the_rates_of_its_data_sheet() {
    let rate = |load| run("ahci:1", None, load).iops.unwrap();
    near("4 KiB reads at depth 32", rate(("randread", "4k", 32)), 100_000.0, 0.05);
    near("reads of 128 KiB", rate(("read", "128k", 8)) * 131_072.0, 540e6, 0.05);
    // At depth 1 the sheet contains the path of a host, 13.5 us.
    near("4 KiB reads at depth 1", 1e6 / (1e6 / rate(("randread", "4k", 1)) + 13.5), 9_900.0, 0.05);
}

#[test]
fn six_drives_share_the_uplink() {
    let large = run("ahci:6", None, ("randread", "64k", 64));
    near("bytes a second", large.bytes_per_s.unwrap(), 1.5e9, 0.03);
    assert!(ahci(&large).uplink_to_host.unwrap() > 0.97 && ahci(&large).uplink_to_drives == Some(0.0));
    let wide = run("ahci:6,uplink=unlimited", None, ("randread", "64k", 64));
    assert!(wide.bytes_per_s.unwrap() > 2e9);
    let few = run("ahci:6,slots=1", None, ("randread", "4k", 64));
    assert!(ahci(&few).waited_for_slot > 2_000 && ahci(&few).slots == 1);
    // A request of two chunks is read from two drives, and its parts wait for each other.
    run("ahci:6,chunk=4KiB", None, ("randrw", "16k", 8));
}

#[test]
fn a_host_issues_to_the_ports_with_any_path_and_stages_sum_to_the_latency() {
    for (path, poll) in
        [("nvme", "off"), ("scsi", "off"), ("non_blocking", "off"), ("lazy", "16us"), ("cooperative", "off")]
    {
        let host = host(&[&format!("host.path={path}"), &format!("host.poll_thread={poll}")]);
        let report = run("ahci:6", host, ("randrw", "4k", 96));
        let cpu = report.cpu.as_ref().expect("a host");
        assert_eq!((cpu.queue_pairs, cpu.threads), (6, 96), "{path}");
        assert!((cpu.longest_interrupt_us > 0.0) == (poll == "off"), "{path}: {cpu:?}");
        assert_eq!(ahci(&report).waited_for_slot, 0, "{path}: requests wait in the host");
    }
}

#[test]
fn more_threads_than_tags_wait_in_the_host() {
    for path in ["scsi", "non_blocking", "cooperative"] {
        let report = run("ahci:1", host(&[&format!("host.path={path}")]), ("randread", "512", 64));
        let queued = report.layer_causes_us["read"]["host"]["queue"];
        assert!(queued > 100.0, "{path}: {queued}");
    }
}

#[test]
fn a_host_over_any_other_layer_has_its_queue_pairs() {
    let report = run("raid0:2", host(&["host.path=lazy"]), ("randread", "4k", 16));
    assert_eq!(report.cpu.expect("a host").queue_pairs, 8);
}

/// An array keeps two queue pairs of each drive for itself. The host, which has eight processors, shares the others.
#[test]
fn a_host_over_a_layer_has_as_many_queue_pairs_as_the_drives_below() {
    for (pairs, left) in [("6", 4), ("3", 1)] {
        let mut profile = DriveProfile::load("840-pro").unwrap();
        let room = format!("controller.queue_pairs={pairs}");
        ["capacity=2GiB", &room].iter().for_each(|change| profile.set(change).unwrap());
        let profile = profile.resolve().unwrap();
        let mut stack = stack("raid0:2", host(&[]), ("randread", "4k", 16));
        stack.drives.iter_mut().for_each(|drive| drive.profile = profile.clone());
        let report = stack.run(Rc::new(())).unwrap().into_chain().unwrap().host;
        assert_eq!((report.cpu.expect("a host").queue_pairs, report.requests), (left, 3_000));
    }
}

#[test]
fn rings_and_policies_issue_to_the_ports_and_stages_sum_to_the_latency() {
    for path in ["nvme", "scsi"] {
        for way in ["ring=defer_taskrun", "ring=iopoll", "ring=sqpoll", "completion=adaptive", "completion=poll"] {
            let host = host(&[&format!("host.path={path}"), &format!("host.{way}")]);
            let report = run("ahci:1", host, ("randread", "4k", 48));
            let queued = report.layer_causes_us["read"]["host"]["queue"];
            assert!(queued > 0.0, "{path}, {way}: 48 requests on 32 tags");
        }
    }
}

#[test]
fn a_host_over_a_layer_has_no_notices() {
    let host = host(&["host.completion=precompletion"]);
    let Err(error) = stack("ahci:2", host, ("randread", "4k", 1)).run(Rc::new(())) else { panic!("it ran") };
    let text = error.to_string();
    assert!(text.contains("host.completion: precompletion is not valid over a layer; valid is interrupt"), "{text}");
}
