//! Jobs that place their writes, on a small drive: the figures of handles agree with those of the drive, and two mixed tenants
//! have a lower write amplification with placement.

use std::rc::Rc;

use nandscape_device_ssd::{Profile, Resolved};
use nandscape_lab_run::{PlacementFigures, Precondition, Report, RunError, Simulation};
use nandscape_lab_workload::{JobSpec, Limit, PlacementWords, Share, Workload};

fn drive(changes: &[&str]) -> Resolved {
    let mut profile = Profile::load("default").unwrap();
    let small = ["capacity=64MiB", "geometry.channels=2", "geometry.dies_per_channel=2", "geometry.pages_per_block=48"];
    profile.set_all(small).unwrap();
    profile.set_all(changes).unwrap();
    profile.resolve().expect("a valid one")
}

fn run(profile: Resolved, jobs: Vec<JobSpec>, requests: u64) -> Result<Report, RunError> {
    let workload = Workload { jobs, limit: Limit::Requests(requests), ..Workload::of(JobSpec::default()) };
    let simulation = Simulation { check: true, ..Simulation::on(profile, Precondition::Full, workload, 3) };
    Ok(simulation.run(Rc::new(()))?.into_drive().report)
}

/// A writer of a half of the drive, placed by `how` and identifiers.
fn writer(rw: &str, offset: f64, how: &str, ids: Option<&str>) -> JobSpec {
    let words = PlacementWords { by: Some(how.to_owned()), ids: ids.map(str::to_owned), ..PlacementWords::default() };
    JobSpec {
        name: rw.to_owned(),
        rw: rw.parse().unwrap(),
        iodepth: 4,
        size: Share::Of(0.5),
        offset: Share::Of(offset),
        placing: words.placing().unwrap(),
        ..JobSpec::default()
    }
}

fn tenants(how: &str, [ordered, random]: [Option<&str>; 2]) -> Vec<JobSpec> {
    vec![writer("write", 0.0, how, ordered), writer("randwrite", 0.5, how, random)]
}

#[test]
fn figures_of_handles_agree_with_those_of_the_drive() {
    for (changes, how, ids) in [
        (["ftl.fdp.handles=2", "ftl.fdp.isolation=initial"], "fdp", [Some("0"), Some("1")]),
        (["ftl.fdp.handles=2", "ftl.fdp.isolation=persistent"], "fdp", [Some("1"), None]),
        (["ftl.streams.count=2", "ftl.streams.isolation=initial"], "streams", [Some("700"), Some("1,2,3")]),
    ] {
        let report = run(drive(&changes), tenants(how, ids), 60_000).expect(how);
        assert_eq!((report.requests, report.errors.len()), (60_000, 0), "{changes:?}");
        let PlacementFigures {
            interface,
            host_written_bytes,
            media_written_bytes,
            handles,
            mixed_moved_bytes,
            planted_moved_bytes,
            ..
        } = report.placement.clone().unwrap();
        assert_eq!((interface, host_written_bytes), (how, report.bytes), "{changes:?}");
        let flash = &report.flash;
        assert_eq!(media_written_bytes, flash.units_programmed * 4_096, "{changes:?}");
        let moved =
            handles.iter().map(|handle| handle.moved_bytes).sum::<u64>() + mixed_moved_bytes + planted_moved_bytes;
        let programmed = handles.iter().map(|handle| handle.programmed_bytes).sum::<u64>();
        assert_eq!(programmed + moved, (flash.units_programmed - flash.units_padding) * 4_096, "{changes:?}");
        assert!(handles.iter().skip(1).all(|handle| handle.host_written_bytes > 0), "{changes:?}: {handles:?}");
        assert_eq!(how == "streams", handles[0].host_written_bytes == 0, "{changes:?}");
    }
}

#[test]
fn tenants_of_their_own_handles_have_a_lower_write_amplification() {
    for (changes, how, [one, apart]) in [
        ("ftl.fdp.handles=2", "fdp", [["0", "0"], ["0", "1"]]),
        ("ftl.streams.count=2", "streams", [["1", "1"], ["1", "2"]]),
    ] {
        let waf = |ids: [&str; 2]| run(drive(&[changes]), tenants(how, ids.map(Some)), 120_000).unwrap().waf.unwrap();
        let (one, apart) = (waf(one), waf(apart));
        assert!(apart < one, "{how}: {apart} apart, {one} together");
    }
}

#[test]
fn a_drive_without_placement_refuses_the_jobs() {
    let error = |changes: &[&str], how, ids| match run(drive(changes), vec![writer("write", 0.0, how, ids)], 10) {
        Err(RunError::Workload(problem)) => problem,
        other => panic!("{:?}", other.map(|report| report.requests)),
    };
    assert!(error(&[], "fdp", None).contains("the drive has no reclaim unit handles"));
    assert!(
        error(&["ftl.fdp.handles=2"], "fdp", Some("0,2"))
            .contains("2 is out of range; the drive has the handles 0 to 1")
    );
    assert!(error(&["ftl.fdp.handles=2"], "streams", Some("1")).contains("the drive has no streams"));
}

#[test]
fn blocks_that_have_gone_bad_count_among_what_was_erased() {
    let drive = drive(&["ftl.fdp.handles=2", "faults=[\"fail erase every=40\"]"]);
    let block = u64::from(drive.geometry().units_per_block()) * u64::from(drive.geometry().unit_size());
    let report = run(drive, vec![writer("randwrite", 0.0, "fdp", Some("1"))], 60_000).expect("it runs");
    let erased = report.placement.expect("a drive with handles").media_erased_bytes / block;
    assert_eq!(erased, report.flash.block_erases);
    assert!(report.damage.is_some_and(|damage| damage.retired_blocks > 0), "blocks have gone bad");
}
