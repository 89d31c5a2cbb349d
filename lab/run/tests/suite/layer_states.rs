//! States of drives under layers: a run from a file equals the run that wrote it, byte for byte. Layers continue from their saved
//! contents. A state under other arrays is rejected with both named. `NANDSCAPE_TEST_SEED` sets the seed.

use std::path::Path;
use std::rc::Rc;

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Resolved, Ssd};
use nandscape_drive::{HostMem, Issuer, Node, Role, Use};
use nandscape_lab_run::chain::{Chain, ModelNode, Named, Opened, Opening, drives_below, is_over_chunks, open_in};
use nandscape_lab_run::{Begin, Finished, Precondition, RigDrive, RunError, Simulation, Start, StateFile, Wanted};
use nandscape_lab_workload::{JobSpec, Limit, Workload};
use nandscape_sim::{Executor, Rng, Seed};
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

use crate::kinds::{self, KINDS};

/// What makes dfc-mlc small, and without a volatile write cache.
const CHUNKS: [&str; 6] = [
    "geometry.channels=2",
    "geometry.dies_per_channel=2",
    "geometry.blocks_per_plane=24",
    "geometry.pages_per_block=32",
    "geometry.factory_bad_blocks=0%",
    "buffer.mode=through",
];

#[expect(clippy::print_stderr, reason = "a failing test prints its seed")]
fn rng() -> Rng {
    let given = std::env::var("NANDSCAPE_TEST_SEED").ok().and_then(|text| text.parse().ok());
    let seed = given.unwrap_or(1);
    eprintln!("NANDSCAPE_TEST_SEED={seed}");
    Seed::new(seed).child("layer states").rng()
}

fn chain(text: &str) -> Chain {
    text.parse().expect("valid layers")
}

/// A small open-channel drive.
fn profile_of_chunks() -> Resolved {
    let mut profile = Profile::load("dfc-mlc").expect("a built-in profile");
    profile.set_all(CHUNKS).expect("valid changes");
    profile.resolve().expect("a possible drive")
}

fn drive_of(layers: &[Named]) -> Resolved {
    if is_over_chunks(layers) { profile_of_chunks() } else { profile(&[]) }
}

fn profile(changes: &[&str]) -> Resolved {
    let mut profile = Profile::load("default").expect("a built-in profile");
    let small = ["capacity=64MiB", "geometry.channels=2", "geometry.dies_per_channel=2"];
    profile.set_all(small.iter().chain(changes)).expect("valid changes");
    profile.resolve().expect("a possible drive")
}

fn stack(text: &str, store: StoreKind, precondition: Precondition, seed: u64) -> Simulation {
    let layers = chain(text).resolve().expect("valid layers");
    let drive = |number: usize| RigDrive {
        name: format!("drive-{number}"),
        profile: drive_of(&layers),
        store,
        precondition,
        seed: Seed::new(seed).nth(number as u64),
    };
    let job = JobSpec { rw: "randrw".parse().unwrap(), iodepth: 8, rwmixread: 50.0, ..JobSpec::default() };
    let workload = Workload { limit: Limit::Requests(1_500), ..Workload::of(job) };
    let (drives, wanted) = ((0..drives_below(&layers)).map(drive).collect(), Wanted { trace: true, details: false });
    Simulation { layers, wanted, check: true, ..Simulation::of(drives, workload, seed) }
}

fn run(stack: &Simulation, text: &str, begin: Begin) -> Result<Finished, RunError> {
    stack.run_begun(&Begin { chain: chain(text), ..begin }, Rc::new(()), None)
}

fn from(path: &Path) -> Begin {
    Begin { start: Start::File(Box::new(StateFile::open(path).expect("a state"))), ..Begin::default() }
}

/// Reports without what depends on the machine, and the trace.
fn bytes_of(finished: &Finished) -> (String, String) {
    let mut reports = vec![serde_json::to_value(&finished.chain().unwrap().host).unwrap()];
    for drive in finished.drives() {
        let mut report = serde_json::to_value(&drive.report).unwrap();
        report.as_object_mut().unwrap().remove("host");
        reports.push(report);
    }
    (serde_json::to_string_pretty(&reports).unwrap(), finished.trace.clone().expect("it was asked for"))
}

#[test]
fn a_run_from_a_state_of_layers_is_the_run_that_wrote_it() {
    let mut rng = rng();
    let cases = [
        ("cache,memory=1MiB", StoreKind::Ram, Precondition::Steady),
        ("block,deadline=2ms raid1:2 cache,memory=1MiB", StoreKind::None, Precondition::Steady),
        ("raid5:3,technique=teafa,window=20ms", StoreKind::None, Precondition::Full),
        ("low=raid0:2 raid1:2", StoreKind::Ram, Precondition::None),
        ("ftl,buffer.size=1MiB", StoreKind::Ram, Precondition::Steady),
        ("ftl,buffer.size=1MiB,moves=read-write raid1:2 cache,memory=1MiB", StoreKind::None, Precondition::Full),
    ];
    for (text, store, precondition) in cases {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let stack = stack(text, store, precondition, rng.below(1 << 40));
        let plain = bytes_of(&run(&stack, text, Begin::default()).unwrap_or_else(|error| panic!("{text}: {error}")));
        let save = || Begin { save: Some(path.clone()), ..Begin::default() };
        let both: [(&dyn Fn() -> Begin, &str); 2] =
            [(&save, "the run that saves"), (&|| from(&path), "the run from the file")];
        for (begin, of) in both {
            let found = run(&stack, text, begin()).unwrap_or_else(|error| panic!("{text}, {of}: {error}"));
            let found = bytes_of(&found);
            let other = found.0.lines().zip(plain.0.lines()).find(|(found, expected)| found != expected);
            assert_eq!(other, None, "{text}: the report of {of}");
            assert!(found.1 == plain.1, "{text}: the trace of {of}");
        }
    }
}

/// The FTL of a host, the lowest layer of a chain over open-channel drives.
const FTL: &str = "ftl,buffer.size=1MiB";

/// All ordered pairs of kinds, and twenty chains of four that are drawn, every fourth over open-channel drives; three of these without
/// `NANDSCAPE_TEST_WHOLE_GRID=1`.
fn chains(rng: &mut Rng) -> Vec<String> {
    let draw = |number: usize| kinds::drawn(rng, (number.is_multiple_of(4)).then_some(FTL)).join(" ");
    let mut drawn: Vec<String> = (0..20).map(draw).collect();
    if std::env::var_os("NANDSCAPE_TEST_WHOLE_GRID").is_none() {
        drawn.truncate(3);
        return drawn;
    }
    let lower = KINDS.iter().chain([&FTL]);
    let pairs = lower.flat_map(|below| KINDS.map(|above| format!("{below} {above}")));
    drawn
        .into_iter()
        .chain(pairs.filter(|pair| kinds::takes(&pair.split(' ').collect::<Vec<_>>()) <= kinds::MOST_DRIVES))
        .collect()
}

#[test]
fn any_chain_goes_on_from_its_state_as_without() {
    let mut rng = rng();
    for text in chains(&mut rng) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let mut stack = stack(&text, StoreKind::None, Precondition::Steady, rng.below(1 << 40));
        stack.workload.limit = Limit::Requests(300);
        let save = Begin { save: Some(path.clone()), ..Begin::default() };
        let first = bytes_of(&run(&stack, &text, save).unwrap_or_else(|error| panic!("{text}: {error}")));
        let again = bytes_of(&run(&stack, &text, from(&path)).unwrap_or_else(|error| panic!("{text}: {error}")));
        assert!(first == again, "{text}: a run from the file differs from the run that wrote it");
    }
}

#[test]
fn a_load_settles_drives_under_layers_and_a_run_from_the_file_is_the_same() {
    let mut rng = rng();
    let text = "raid1:2 cache,memory=1MiB";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let stack = stack(text, StoreKind::None, Precondition::Load, rng.below(1 << 40));
    let job =
        JobSpec { rw: "randwrite".parse().unwrap(), bs: "64k".parse().unwrap(), iodepth: 4, ..JobSpec::default() };
    let load = Workload { limit: Limit::Requests(20_000), ..Workload::of(job) };
    let begin = Begin { start: Start::Load(Box::new(load)), save: Some(path.clone()), ..Begin::default() };
    let settled = run(&stack, text, begin).unwrap_or_else(|error| panic!("{text}: {error}"));
    let history = StateFile::open(&path).unwrap().history().clone();
    let windows = history.settled.as_ref().expect("a load has brought it about");
    assert!(windows.waf.len() >= 3 && windows.waf.iter().all(|waf| *waf >= 1.0), "{windows:?}");
    assert_eq!(history.precondition, Precondition::Load);
    let (from_load, from_file) = (bytes_of(&settled), bytes_of(&run(&stack, text, from(&path)).unwrap()));
    assert!(from_load == from_file, "a run from the file differs from the run that wrote it");
}

#[test]
fn layers_and_drives_go_on_from_the_state_after_a_run() {
    let mut rng = rng();
    for text in [
        "cache,memory=4MiB",
        "raid1:2,technique=tea2 cache,memory=4MiB,replacement=clock",
        "raid1:2,technique=rails,swap=50ms",
        "ftl,buffer.size=1MiB cache,memory=4MiB",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let mut stack = stack(text, StoreKind::Ram, Precondition::Full, rng.below(1 << 40));
        // Few pages, so that all are in memory at the end; a page with two overlapping writes would not be.
        stack.workload.jobs[0].size = nandscape_lab_workload::Share::Bytes(1 << 18);
        if text.contains("cache") {
            stack.workload.jobs[0].rw = "randread".parse().unwrap();
        }
        let begin = Begin { save_after: Some(path.clone()), ..Begin::default() };
        let first = run(&stack, text, begin).unwrap_or_else(|error| panic!("{text}: {error}"));
        first.saved.as_ref().unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(
            bytes_of(&first),
            bytes_of(&run(&stack, text, Begin::default()).unwrap()),
            "{text}: saving changes nothing"
        );
        let words = StateFile::open(&path).unwrap().history().words.clone();
        assert!(words.contains(", then ") && words.contains("1500 requests measured"), "{text}: {words}");
        let next = run(&stack, text, from(&path)).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!((next.chain().unwrap().host.requests, next.failures().1), (1_500, 0), "{text}");
        assert_eq!(bytes_of(&next), bytes_of(&run(&stack, text, from(&path)).unwrap()), "{text}");
        let misses = |finished: &Finished| {
            let of = |json: serde_json::Value| json.pointer("/cache/misses").and_then(serde_json::Value::as_u64);
            finished.chain().unwrap().host.chain.iter().find_map(|one| of(serde_json::to_value(one).unwrap()))
        };
        if let (Some(cold), Some(warm)) = (misses(&first), misses(&next)) {
            assert!(cold > 0 && warm == 0, "{text}: {cold} misses, then {warm}");
        }
    }
}

/// A chain over drives that keep data, whose lowest layer continues from what another held.
fn opened(executor: &Executor, text: &str, store: StoreKind, held: &[u8]) -> Result<Opened, String> {
    let (sim, layers) = (executor.sim(), chain(text).resolve().unwrap());
    let node = |number: usize| -> (String, Rc<dyn Node>) {
        let ssd = Rc::new(Ssd::new(&sim, &profile(&[]), store, Seed::new(3)).expect("memory"));
        (format!("drive-{number}"), Rc::new(ModelNode::new(&sim, &ssd, &profile(&[]))))
    };
    let drives = (0..drives_below(&layers)).map(node).collect();
    open_in(&Opening::new(&sim, ""), &layers, drives, &[held.to_vec()])
}

#[test]
fn a_cache_holds_the_bytes_that_another_held() {
    let (mut executor, mut other) = (Executor::new(), Executor::new());
    let first = opened(&executor, "cache", StoreKind::Ram, &[]).unwrap();
    let entry = |opcode| SubmissionEntry::blocks(opcode, 1, 8, 8);
    let drive = |opened: &Opened| opened.tops[0].connect(Use { role: Role::Any, entries: 9 }).unwrap();
    let written: Vec<u8> = (0..4_096_u32).map(|at| (at * 7 % 251) as u8).collect();
    let (drive_of_first, mem) = (drive(&first), HostMem::from_bytes(&written));
    let issuer = Issuer::new(&executor.sim());
    let ended = executor.block_on(issuer.execute(&*drive_of_first, entry(IoOpcode::WRITE), mem)).unwrap();
    assert!(ended.status.is_success());
    let held = first.layers[0].node.take_held().unwrap();
    assert_eq!(held.len(), 9 + 4_096);
    let second = opened(&other, "cache", StoreKind::Ram, &held).unwrap();
    let (drive_of_second, mem) = (drive(&second), HostMem::zeroed(4_096));
    let issuer = Issuer::new(&other.sim());
    let ended = other.block_on(issuer.execute(&*drive_of_second, entry(IoOpcode::READ), mem.clone())).unwrap();
    assert!(ended.status.is_success() && mem.to_vec() == written, "they are read from memory");
    for cut in [1, 9, 4_000] {
        let problem = opened(&other, "cache", StoreKind::Ram, &held[..cut]).map(drop).unwrap_err();
        assert!(problem.contains("cut short"), "{cut}: {problem}");
    }
    let problem = opened(&other, "block", StoreKind::None, &held).map(drop).unwrap_err();
    assert!(problem.contains("holds nothing"), "{problem}");
}

#[test]
fn a_state_under_other_arrays_or_of_other_drives_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let text = "raid1:2 cache";
    let stack = stack(text, StoreKind::None, Precondition::Full, 5);
    run(&stack, text, Begin { save: Some(path.clone()), ..Begin::default() }).unwrap();
    let file = StateFile::open(&path).unwrap();
    assert_eq!(file.chain(), Some(&chain(text)));
    let two = [&stack.drives[0].profile, &stack.drives[1].profile];
    let fits = |text: &str, profiles: &[&Resolved]| file.check_fits_layers(&chain(text).resolve().unwrap(), profiles);
    for text in ["raid1:2", "block raid1:2 cache", "raid1:2,technique=tea2 cache,memory=1MiB"] {
        fits(text, &two).unwrap_or_else(|error| panic!("{text}: {error}"));
    }
    for (text, parts) in [
        ("raid0:2 cache", ["it has raid1:2 with chunk=4KiB", "the run has raid0:2 with chunk=4KiB"]),
        ("raid1:2,chunk=8KiB cache", ["raid1:2 with chunk=4KiB", "raid1:2 with chunk=8KiB"]),
        ("cache", ["raid1:2 with chunk=4KiB", "the run has no array"]),
    ] {
        let problem = fits(text, &two).unwrap_err().to_string();
        assert!(parts.iter().all(|part| problem.contains(part)), "{text}: {problem}");
    }
    let problem = file.check_fits(two[0]).unwrap_err().to_string();
    assert!(problem.contains("the run has no array"), "{problem}");
    let larger = profile(&["capacity=128MiB"]);
    let problem = fits(text, &[two[0], &larger]).unwrap_err().to_string();
    assert!(problem.contains("it is of another drive: capacity"), "{problem}");
    assert_eq!(file.load_held(&chain("block raid1:2").resolve().unwrap()).unwrap(), Vec::<Vec<u8>>::new());
}

#[test]
fn an_array_that_lacks_a_member_is_not_saved() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let mut stack = stack("raid1:2", StoreKind::None, Precondition::Full, 5);
    let faults = ["buffer.mode=through", "faults=[\"fail program\"]"];
    stack.drives[1].profile = profile(&faults);
    let begin = Begin { save_after: Some(path.clone()), ..Begin::default() };
    let finished = run(&stack, "raid1:2", begin).unwrap();
    let problem = finished.saved.unwrap_err().to_string();
    assert!(problem.contains("the state after the run cannot be saved: "), "{problem}");
    assert!(!path.exists());
}
