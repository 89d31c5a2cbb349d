//! Notes of a report on the limits of its figures: which part of the drive bounds the rate, and reads that met no flash.

use std::rc::Rc;

use nandscape_device_ssd::Profile;
use nandscape_lab_run::{Precondition, Report, Simulation};
use nandscape_lab_workload::{JobSpec, Limit, Workload};

fn reads(drive: &str, precondition: Precondition, bs: &str, iodepth: u32, requests: u64) -> Report {
    let mut profile = Profile::load(drive).unwrap();
    profile.set("capacity=1GiB").unwrap();
    let job = JobSpec { bs: bs.parse().unwrap(), rw: "randread".parse().unwrap(), iodepth, ..JobSpec::default() };
    let workload = Workload { limit: Limit::Requests(requests), ..Workload::of(job) };
    let simulation =
        Simulation { check: true, ..Simulation::on(profile.resolve().unwrap(), precondition, workload, 3) };
    simulation.run(Rc::new(())).unwrap().into_drive().report
}

#[test]
fn a_register_that_waits_for_its_channel_bounds_the_rate_and_is_named() {
    let report = reads("wd-zn540-block", Precondition::Full, "16k", 64, 3_000);
    let mean = |kind: &str| report.busy[kind].mean;
    assert!(mean("register") > 0.9, "{:?}", report.busy);
    assert!(mean("die") < 0.9 && mean("channel") < 0.9 && mean("link_to_host") < 0.9, "{:?}", report.busy);
    assert_eq!(report.limited_by, Some("register"), "{:?}", report.busy);
    let alone = reads("wd-zn540-block", Precondition::Full, "16k", 1, 300);
    assert_eq!(alone.limited_by, None, "{:?}", alone.busy);
    assert!(alone.busy["register"].mean >= alone.busy["die"].mean, "{:?}", alone.busy);
}

#[test]
fn reads_of_what_was_not_written_are_a_note() {
    let told = |report: &Report| report.notes.iter().find(|note| note.contains("never written")).cloned();
    let unwritten = reads("default", Precondition::None, "4k", 4, 300);
    let note = told(&unwritten).expect("a note");
    assert!(
        note.starts_with("100% of what was read")
            && note.ends_with("--precondition full writes all of the drive before the run"),
        "{note}"
    );
    assert_eq!((unwritten.flash.unwritten_units_read, unwritten.flash.page_reads), (300, 0));
    let written = reads("default", Precondition::Full, "4k", 4, 300);
    assert_eq!((told(&written), written.flash.unwritten_units_read), (None, 0));
}
