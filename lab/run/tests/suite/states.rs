//! A run from a saved state equals the run before the save, byte for byte: report and event trace, for drives of every kind that
//! can be saved, whatever their policies. Damaged, truncated and foreign files, and files of other drives, are rejected with the
//! place and the reason. `NANDSCAPE_TEST_SEED` sets the seed, `NANDSCAPE_TEST_CASES` the number of drives.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Resolved};
use nandscape_lab_run::{Begin, Finished, Precondition, RunError, Simulation, Start, StateFile, Wanted};
use nandscape_lab_workload::{JobSpec, Limit, PlacementWords, Share, Workload, Zoned};
use nandscape_sim::{Rng, Seed};

fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

#[expect(clippy::print_stderr, reason = "a failing test tells its seed")]
fn seed() -> u64 {
    let seed = variable("NANDSCAPE_TEST_SEED", 14);
    eprintln!("NANDSCAPE_TEST_SEED={seed}");
    seed
}

fn resolve(drive: &str, changes: &[String]) -> Resolved {
    let mut profile = Profile::load(drive).unwrap();
    profile.set_all(changes).unwrap();
    profile.resolve().unwrap_or_else(|error| panic!("{drive} {changes:?}: {error}"))
}

fn simulation(profile: Resolved, precondition: Precondition, store: StoreKind, job: JobSpec, seed: u64) -> Simulation {
    let workload = Workload { limit: Limit::Requests(6_000), ..Workload::of(job) };
    let wanted = Wanted { trace: true, details: false };
    let mut run = Simulation { wanted, check: true, ..Simulation::on(profile, precondition, workload, seed) };
    run.drives[0].store = store;
    run
}

fn random_job(rng: &mut Rng) -> JobSpec {
    let one = |rng: &mut Rng, of: &[&'static str]| of[rng.below(of.len() as u64) as usize];
    JobSpec {
        rw: one(rng, &["randwrite", "randrw", "write", "randtrim"]).parse().unwrap(),
        bs: one(rng, &["4k", "512", "4k/60:12k/40"]).parse().unwrap(),
        iodepth: 1 + rng.below(24) as u32,
        rwmixread: 40.0,
        distribution: one(rng, &["uniform", "zipf:0.9"]).parse().unwrap(),
        ..JobSpec::default()
    }
}

/// A random drive with one page-mapping FTL.
fn random_changes(rng: &mut Rng) -> Vec<String> {
    let mut change = |key: &str, of: &[&str]| format!("{key}={}", of[rng.below(of.len() as u64) as usize]);
    vec![
        "capacity=64MiB".to_owned(),
        "geometry.channels=2".to_owned(),
        "geometry.dies_per_channel=2".to_owned(),
        change("ftl.gc.victim", &["greedy", "cost_benefit"]),
        change("ftl.gc.admission", &["all", "one_per_die", "one_per_channel", "one_per_drive"]),
        change("ftl.gc.scheme", &["controller", "channel", "plane", "none"]),
        change("ftl.allocation", &["channel_die_plane", "plane_die_channel", "die_plane_channel"]),
        change("ftl.gc.copyback", &["true", "false"]),
        change("ftl.gc.batch", &["0", "1", "4"]),
        change("ftl.wear.dynamic", &["true", "false"]),
        change("ftl.wear.static_threshold", &["0", "2", "8"]),
        change("ftl.over_provisioning", &["10%", "28%"]),
        change("geometry.factory_bad_blocks", &["0", "3%"]),
        change("buffer.mode", &["capacitor", "volatile", "through"]),
        change("buffer.size", &["1MiB", "4MiB"]),
    ]
}

/// The report without what depends on the machine, and the trace.
fn bytes_of(finished: &Finished) -> (String, String) {
    let mut report = serde_json::to_value(finished.report()).unwrap();
    report.as_object_mut().unwrap().remove("host");
    (serde_json::to_string_pretty(&report).unwrap(), finished.trace.clone().expect("it was asked for"))
}

fn run(simulation: &Simulation, start: Start, save: Option<PathBuf>) -> Result<Finished, RunError> {
    simulation.run_begun(&Begin { start, save, ..Begin::default() }, Rc::new(()), None)
}

fn open(path: &Path) -> Start {
    Start::File(Box::new(StateFile::open(path).unwrap()))
}

/// Runs it without a save, with its state saved, and from that state: all are the same.
fn same_from_a_file(simulation: &Simulation, start: impl Fn() -> Start, what: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let plain = run(simulation, start(), None).unwrap_or_else(|error| panic!("{what}: {error}"));
    let saving = run(simulation, start(), Some(path.clone())).unwrap_or_else(|error| panic!("{what}: {error}"));
    let from_file = run(simulation, open(&path), None).unwrap_or_else(|error| panic!("{what}: {error}"));
    let expected = bytes_of(&plain);
    for (other, of) in [(saving, "the run that saves"), (from_file, "the run from the file")] {
        let found = bytes_of(&other);
        let different = found.0.lines().zip(expected.0.lines()).find(|(found, expected)| found != expected);
        assert_eq!(different, None, "{what}: the report of {of}");
        assert!(found.1 == expected.1, "{what}: the trace of {of}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "only the state is left");
}

#[test]
fn a_planted_drive_goes_on_from_a_file_as_without() {
    let mut rng = Seed::new(seed()).rng();
    for case in 0..variable("NANDSCAPE_TEST_CASES", 12) {
        let (changes, job) = (random_changes(&mut rng), random_job(&mut rng));
        let store = if case % 3 == 0 { StoreKind::Ram } else { StoreKind::None };
        let state =
            [Precondition::Steady, Precondition::Full, Precondition::Steady, Precondition::None][case as usize % 4];
        let what = format!("case {case}: {state:?}, {store:?}, {changes:?}, {job:?}");
        let simulation = simulation(resolve("default", &changes), state, store, job, rng.below(1 << 40));
        same_from_a_file(&simulation, || Start::Simulation, &what);
    }
}

#[test]
fn a_drive_that_a_load_has_settled_goes_on_from_a_file_as_without() {
    let mut rng = Seed::new(seed()).child("settled").rng();
    for case in 0..variable("NANDSCAPE_TEST_CASES", 12).div_ceil(6) {
        let changes = random_changes(&mut rng);
        let store = if case % 2 == 0 { StoreKind::Ram } else { StoreKind::None };
        let job = JobSpec { rw: "randrw".parse().unwrap(), rwmixread: 20.0, iodepth: 16, ..JobSpec::default() };
        let what = format!("case {case}: {store:?}, {changes:?}");
        let simulation = simulation(resolve("default", &changes), Precondition::Full, store, job, rng.below(1 << 40));
        same_from_a_file(&simulation, || Start::Load(Box::new(simulation.workload.clone())), &what);
    }
}

#[test]
fn drives_of_other_kinds_go_on_from_a_file_as_without() {
    let mut rng = Seed::new(seed()).child("kinds").rng();
    for (drive, changes) in [("ox-block", &["capacity=64MiB"][..]), ("two-ftls", &["capacity=256MiB"])] {
        let changes: Vec<String> = changes.iter().map(|change| (*change).to_owned()).collect();
        for state in [Precondition::Steady, Precondition::Full, Precondition::None] {
            let job = JobSpec { rw: "randwrite".parse().unwrap(), iodepth: 8, ..JobSpec::default() };
            let simulation = simulation(resolve(drive, &changes), state, StoreKind::None, job, rng.below(1 << 40));
            same_from_a_file(&simulation, || Start::Simulation, &format!("{drive} {state:?}"));
            if state == Precondition::Full {
                let load = || Start::Load(Box::new(simulation.workload.clone()));
                same_from_a_file(&simulation, load, &format!("{drive} under its load"));
            }
        }
    }
}

/// Collections find the owners of full blocks' data; otherwise moved data would mix with that of other owners.
#[test]
fn a_drive_with_handles_knows_from_a_file_whose_data_its_blocks_hold() {
    let words =
        |id: &str| PlacementWords { ids: Some(id.to_owned()), by: Some("fdp".to_owned()), ..Default::default() };
    let tenant = |rw: &str, offset, id| JobSpec {
        name: rw.to_owned(),
        rw: rw.parse().unwrap(),
        iodepth: 4,
        size: Share::Of(0.5),
        offset: Share::Of(offset),
        placing: words(id).placing().unwrap(),
        ..JobSpec::default()
    };
    for isolation in ["persistent", "initial"] {
        let changes = ["capacity=64MiB", "geometry.channels=2", "geometry.dies_per_channel=2", "ftl.fdp.handles=2"];
        let changes: Vec<String> = changes.iter().map(|change| (*change).to_owned()).collect();
        let profile = resolve("default", &[changes, vec![format!("ftl.fdp.isolation={isolation}")]].concat());
        let first = tenant("randwrite", 0.5, "1");
        let mut simulation = simulation(profile, Precondition::Full, StoreKind::None, first, 9);
        simulation.workload.jobs.push(tenant("write", 0.0, "0"));
        let load = || Start::Load(Box::new(simulation.workload.clone()));
        same_from_a_file(&simulation, load, isolation);
        let report = run(&simulation, load(), None).unwrap().into_drive().report;
        let placement = report.placement.expect("the drive has handles");
        assert!(placement.handles[1].moved_bytes > 1 << 20, "{placement:?}");
        assert_eq!(placement.mixed_moved_bytes == 0, isolation == "persistent", "{placement:?}");
    }
}

/// The job writes the zones of a planted drive again, and those of a new one.
#[test]
fn a_drive_with_zones_goes_on_from_a_file_as_without() {
    let changes = ["capacity=8GiB".to_owned()];
    for (state, rw, append) in [(Precondition::Full, "randrw", true), (Precondition::None, "write", false)] {
        let zoned = Some(Zoned { open: 3, append, fill: Share::Bytes(1 << 20), finish: false });
        let job = JobSpec { rw: rw.parse().unwrap(), size: Share::Of(0.5), iodepth: 4, zoned, ..JobSpec::default() };
        let simulation = simulation(resolve("wd-zn540", &changes), state, StoreKind::None, job, 5);
        same_from_a_file(&simulation, || Start::Simulation, &format!("zones {state:?}"));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("after");
        let begin = Begin { save_after: Some(path.clone()), ..Begin::default() };
        simulation.run_begun(&begin, Rc::new(()), None).expect("the state after the run is saved");
        let next = run(&simulation, open(&path), None).unwrap_or_else(|error| panic!("after {state:?}: {error}"));
        assert!(
            next.report().errors.is_empty() && next.report().initial_state.contains("then"),
            "{:?}",
            next.report().errors
        );
    }
}

/// A saved state of a small worn drive, and its bytes.
fn saved(path: &Path) -> (Simulation, Vec<u8>) {
    let changes = ["capacity=64MiB".to_owned()];
    let job = JobSpec { rw: "randwrite".parse().unwrap(), ..JobSpec::default() };
    let mut simulation = simulation(resolve("default", &changes), Precondition::Steady, StoreKind::None, job, 7);
    simulation.workload.limit = Limit::Requests(100);
    run(&simulation, Start::Simulation, Some(path.to_owned())).unwrap();
    (simulation, std::fs::read(path).unwrap())
}

#[test]
fn a_damaged_file_is_refused_with_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let (simulation, good) = saved(&path);
    let refused = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let loaded = StateFile::open(&path).and_then(|file| file.load());
        let problem = loaded.err().expect("it is refused").to_string();
        assert!(problem.starts_with(&path.display().to_string()), "{problem}");
        problem
    };
    for len in [0, 5, 40, 64, good.len() / 2, good.len() - 1] {
        let problem = refused(&good[..len]);
        let reasons = ["no state of a drive", "in its head", "cut short", "not in its"];
        assert!(reasons.iter().any(|reason| problem.contains(reason)), "{len} bytes: {problem}");
    }
    let mut rng = Seed::new(seed()).child("damage").rng();
    let mut places: Vec<usize> = (0..48).chain([4_096, good.len() - 1]).collect();
    places.extend((0..60).map(|_| rng.below(good.len() as u64) as usize));
    for at in places {
        let mut bytes = good.clone();
        bytes[at] ^= 1 << rng.below(8);
        // The rest of the head, what lies between sections, and chunks of zeros are not part of the state.
        std::fs::write(&path, &bytes).unwrap();
        match StateFile::open(&path).and_then(|file| file.load()) {
            Err(error) => assert!(error.to_string().starts_with(&path.display().to_string()), "byte {at}: {error}"),
            Ok(_) => {
                let goes_on = run(&simulation, open(&path), None).unwrap();
                std::fs::write(&path, &good).unwrap();
                assert_eq!(bytes_of(&goes_on), bytes_of(&run(&simulation, open(&path), None).unwrap()), "byte {at}");
            }
        }
    }
    let mut bytes = good.clone();
    bytes[8] = 9;
    assert!(refused(&bytes).contains("version 9, and this program knows versions 1 and 2"));
    let mut bytes = good;
    bytes[4_096 + 100] ^= 4;
    assert!(refused(&bytes).contains("the map, bytes 4096 to"), "it says where");
}

#[test]
fn other_policies_and_times_go_on_from_a_state_and_other_drives_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let (simulation, _) = saved(&path);
    let with = |changes: &[&str]| {
        let mut profile = StateFile::open(&path).unwrap().profile().unwrap();
        profile.set_all(changes).unwrap();
        let mut changed = simulation.clone();
        changed.drives[0].profile = profile.resolve().unwrap();
        changed
    };
    for changes in [
        &["ftl.gc.victim=cost_benefit", "ftl.gc.copyback=true", "timing.read=30us"][..],
        &["ftl.wear.dynamic=false", "buffer.mode=volatile"],
        &["buffer.mode=through", "buffer.size=1MiB", "ftl.gc.batch=0"],
        &["ftl.gc.scheme=controller", "ftl.gc.admission=one_per_drive", "ftl.allocation=plane_die_channel"],
        &["faults=[\"fail program every=500\"]"],
    ] {
        let changed = with(changes);
        run(&changed, open(&path), None).unwrap_or_else(|error| panic!("{changes:?}: {error}"));
    }
    // The life of the drive is in the state.
    for (change, told) in [
        ("wear.cycles=1500", "wear.cycles is not given there, and 1500 in the profile"),
        ("wear.age=18months", "wear.age is not given there, and \"18months\" in the profile"),
        ("wear.reads_per_day=3", "wear.reads_per_day is not given there, and 3.0 in the profile"),
    ] {
        let changed = with(&[change]);
        let Err(error) = run(&changed, open(&path), None) else { panic!("{change} has no effect") };
        let problem = error.to_string();
        let key = change.split_once('=').unwrap().0;
        assert!(error.is_input() && problem.contains(told), "{problem}");
        assert!(problem.ends_with(&format!("the state has its own age and wear: leave {key} out")), "{problem}");
    }
    let aging = with(&["wear.refresh=80%", "wear.rber=tlc-72-layers", "wear.age=0h", "wear.cycles=0"]);
    run(&aging, open(&path), None).expect("how it ages is not in the state");
    for (drive, changes, key) in [
        ("default", &["capacity=128MiB"][..], "capacity"),
        ("default", &["capacity=64MiB", "ftl.over_provisioning=20%"], "geometry.blocks_per_plane"),
        ("ox-block", &["capacity=64MiB"], "is"),
    ] {
        let changes: Vec<String> = changes.iter().map(|change| (*change).to_owned()).collect();
        let mut other = simulation.clone();
        other.drives[0].profile = resolve(drive, &changes);
        let Err(error) = run(&other, open(&path), None) else { panic!("{drive} {changes:?} is another drive") };
        let problem = error.to_string();
        assert!(error.is_input() && problem.contains("it is of another drive") && problem.contains(key), "{problem}");
    }
}

/// Write amplification stays constant while the same load continues, and the report names the origin of the state.
#[test]
fn a_load_that_has_settled_goes_on_with_the_same_write_amplification() {
    let changes = ["capacity=128MiB".to_owned(), "buffer.size=1MiB".to_owned()];
    let job = JobSpec {
        rw: "randwrite".parse().unwrap(),
        distribution: "zipf:1.1".parse().unwrap(),
        iodepth: 32,
        ..JobSpec::default()
    };
    let mut simulation = simulation(resolve("default", &changes), Precondition::Load, StoreKind::None, job, seed());
    simulation.wanted.trace = false;
    simulation.workload.limit = Limit::Requests(150_000);
    let load = || Start::Load(Box::new(simulation.workload.clone()));
    let report = run(&simulation, load(), None).unwrap().into_drive().report;
    let settled = report.settled.as_ref().expect("it was settled");
    let (last, waf) = (*settled.waf.last().unwrap(), report.waf.unwrap());
    assert!(settled.stood_still && settled.waf.len() >= 3, "{settled:?}");
    assert!((waf / last - 1.0).abs() < 0.04, "{waf} after {:?}", settled.waf);
    assert_eq!(report.precondition, "load");
    assert!(report.initial_state.contains("stood still at"), "{}", report.initial_state);
}

/// Runs in turn, each from the state after the one before.
#[test]
fn the_state_after_a_run_is_one_to_begin_in() {
    let folder = tempfile::tempdir().unwrap();
    let [first, second] = ["first", "second"].map(|name| folder.path().join(name));
    let mut rng = Seed::new(seed()).child("after").rng();
    for case in 0..variable("NANDSCAPE_TEST_CASES", 12).div_ceil(3) {
        let (changes, job) = (random_changes(&mut rng), random_job(&mut rng));
        let store = if case % 2 == 0 { StoreKind::Ram } else { StoreKind::None };
        let what = format!("case {case}: {store:?}, {changes:?}, {job:?}");
        let simulation = simulation(resolve("default", &changes), Precondition::Steady, store, job, rng.below(1 << 40));
        let go = |start: Start, save_after: &Path| {
            let begin = Begin { start, save_after: Some(save_after.to_owned()), ..Begin::default() };
            let finished = simulation.run_begun(&begin, Rc::new(()), None);
            let finished = finished.unwrap_or_else(|error| panic!("{what}: {error}"));
            finished.saved.as_ref().unwrap_or_else(|error| panic!("{what}: {error}"));
            finished
        };
        let plain = run(&simulation, Start::Simulation, None).unwrap();
        assert!(bytes_of(&plain) == bytes_of(&go(Start::Simulation, &first)), "{what}: saving changes nothing");
        let words = |path: &Path| StateFile::open(path).unwrap().history().words.clone();
        let next = go(open(&first), &second);
        assert!(
            next.report().initial_state.contains(", then ") && words(&second).matches(", then ").count() == 2,
            "{what}"
        );
        assert!(next.report().notes.iter().all(|note| !note.contains("the drive starts in the")), "{what}");
    }
}

#[test]
fn the_state_of_a_drive_that_takes_no_writes_is_not_saved() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let changes = ["capacity=64MiB".to_owned(), "faults=[\"fail program\"]".to_owned()];
    let job = JobSpec { rw: "randwrite".parse().unwrap(), ..JobSpec::default() };
    let mut simulation = simulation(resolve("default", &changes), Precondition::Full, StoreKind::None, job, 1);
    simulation.workload.limit = Limit::Requests(20_000);
    let begin = Begin { save_after: Some(path.clone()), ..Begin::default() };
    let finished = simulation.run_begun(&begin, Rc::new(()), None).unwrap();
    let problem = finished.saved.as_ref().unwrap_err().to_string();
    assert!(problem.contains("cannot be saved: the drive takes no writes any more"), "{problem}");
    assert!(!path.exists() && finished.report().damage.is_some());
}

#[test]
fn a_load_that_writes_nothing_cannot_settle() {
    let changes = ["capacity=64MiB".to_owned()];
    let job = JobSpec { rw: "randread".parse().unwrap(), iodepth: 64, ..JobSpec::default() };
    let simulation = simulation(resolve("default", &changes), Precondition::Load, StoreKind::None, job, 1);
    let begun = run(&simulation, Start::Load(Box::new(simulation.workload.clone())), None);
    let Err(error) = begun else { panic!("nothing is written") };
    assert!(error.is_input() && error.to_string().contains("writes nothing"), "{error}");
}

#[test]
fn drives_whose_state_cannot_be_saved_say_which_can() {
    let folder = tempfile::tempdir().unwrap();
    let changes = ["capacity=64MiB".to_owned(), "ftl.tables=rebuilt".to_owned()];
    let job = JobSpec { rw: "randread".parse().unwrap(), ..JobSpec::default() };
    let simulation = simulation(resolve("default", &changes), Precondition::Full, StoreKind::None, job, 1);
    let Err(error) = run(&simulation, Start::Simulation, Some(folder.path().join("state"))) else {
        panic!("tables are found again in the data");
    };
    let problem = error.to_string();
    assert!(error.is_input() && problem.contains("\"rebuilt\" cannot be saved; that of"), "{problem}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
