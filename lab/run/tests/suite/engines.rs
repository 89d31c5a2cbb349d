//! Engines of applications over layers: a run from a saved state finds its data, a recorded run replays to the nanosecond, and the
//! report has the commands of the measured phase.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use nandscape_device_ssd::{Profile, Resolved};
use nandscape_drive::{Drive, HostMem, Issuer};
use nandscape_lab_run::chain::{Chain, is_over_chunks};
use nandscape_lab_run::{
    Below, EngineLoad, LiveReport, Observer, Recording, Replay, StateFile, Top, TowerError, Wanted, WhatIf,
};
use nandscape_lab_workload::{Direction, Served};
use nandscape_sim::signal::Signal;
use nandscape_sim::{Rng, Seed, Time};
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

use crate::chains::{FTL, profile, profile_of_chunks, seed};

/// Blocks that a task of the engine owns.
const OWN: u64 = 64;
const TASKS: u64 = 4;
/// Commands of a task.
const COMMANDS: u64 = 60;

/// The times of reads, writes and flushes, in the order in which they ended.
type Times = Vec<(Time, Time)>;

/// What the tasks of an engine share.
struct Engine {
    issuer: Issuer,
    times: RefCell<Times>,
    left: Cell<u64>,
    ended: Signal,
}

impl Engine {
    async fn command(&self, (top, drive): (&Top, &dyn Drive), entry: SubmissionEntry, mem: HostMem) {
        let begun = top.sim().now();
        let ended = self.issuer.execute(drive, entry, mem).await;
        assert!(ended.status.is_success(), "{ended:?}");
        self.times.borrow_mut().push((begun, top.sim().now()));
    }

    async fn blocks(&self, at: (&Top, &dyn Drive), opcode: IoOpcode, slba: u64, mem: HostMem) {
        let blocks = mem.len() / at.1.info().lba_bytes as usize;
        self.command(at, SubmissionEntry::blocks(opcode, 1, slba, blocks as u32), mem).await;
    }

    /// Writes and reads of a task, each block filled with its number and that of its last write.
    async fn task(&self, at: (&Top, &dyn Drive), number: u64, mut rng: Rng) {
        let bytes = at.1.info().lba_bytes as usize;
        let mut written = [0_u8; OWN as usize];
        for count in 0..COMMANDS {
            let place = rng.below(OWN);
            let (slba, last) = (number * OWN + place, &mut written[place as usize]);
            match count % 3 {
                0 => {
                    *last = count as u8 + 1;
                    self.blocks(at, IoOpcode::WRITE, slba, HostMem::from_bytes(&vec![*last; bytes])).await;
                }
                1 => {
                    let mem = HostMem::zeroed(bytes);
                    self.blocks(at, IoOpcode::READ, slba, mem.clone()).await;
                    assert_eq!(mem.to_vec(), vec![*last; bytes], "block {slba}");
                }
                _ => self.command(at, SubmissionEntry::io(IoOpcode::FLUSH, 1), HostMem::none()).await,
            }
        }
        self.left.set(self.left.get() - 1);
        self.ended.notify();
    }
}

fn load() -> EngineLoad {
    EngineLoad { name: "an engine".to_owned(), lines: vec!["four tasks".to_owned()] }
}

/// Runs the tasks as the measured phase, each with its own queue.
async fn work(top: Rc<Top>) -> Result<Times, TowerError> {
    let engine = Rc::new(Engine {
        issuer: Issuer::new(top.sim()),
        times: RefCell::default(),
        left: Cell::new(TASKS),
        ended: Signal::new(top.sim()),
    });
    top.begin();
    for number in 0..TASKS {
        let (engine, top, rng) = (engine.clone(), top.clone(), Seed::new(seed()).nth(number).rng());
        let (sim, drive) = (top.sim().clone(), top.connect(64).expect("a queue pair"));
        sim.spawn(async move { engine.task((&top, &*drive), number, rng).await });
    }
    while engine.left.get() > 0 {
        engine.ended.changed().await;
    }
    top.end(&load());
    Ok(engine.times.take())
}

/// Reads all that `work` may have written.
async fn look(top: Rc<Top>) -> Result<(Vec<u8>, Time), TowerError> {
    let drive = top.connect(64).expect("a queue pair");
    let (issuer, bytes) = (Issuer::new(top.sim()), drive.info().lba_bytes as usize);
    let mut all = Vec::new();
    for slba in 0..TASKS * OWN {
        let mem = HostMem::zeroed(bytes);
        let ended = issuer.execute(&*drive, SubmissionEntry::blocks(IoOpcode::READ, 1, slba, 1), mem.clone()).await;
        assert!(ended.status.is_success(), "{ended:?}");
        all.extend(mem.to_vec());
    }
    Ok((all, top.sim().now()))
}

fn below(text: &str) -> (Resolved, Below) {
    let chain = if text.is_empty() { Chain::default() } else { text.parse().expect("valid layers") };
    let layers = chain.resolve().expect("valid settings");
    let drive = if is_over_chunks(&layers) { profile_of_chunks() } else { profile() };
    (drive, Below { layers, chain, ..Below::default() })
}

const CHAINS: [&str; 6] =
    ["", "block", "raid1:2 cache,memory=64KiB", "raid5:3", "block,scheduler=cfq,depth=4 ahci:2", FTL];

#[derive(Default)]
struct Seen(RefCell<Times>);

impl Observer for Seen {
    fn served(&self, request: &Served<'_>) {
        self.0.borrow_mut().push((request.submitted, request.completed));
    }
}

fn sorted(mut times: Times) -> Times {
    times.sort();
    times
}

fn replayed(recording: &Path, what_if: Option<WhatIf>) -> Times {
    let seen = Rc::new(Seen::default());
    let replay = Replay { recording: recording.to_owned(), check: true, what_if, ..Replay::default() };
    let again = replay.run_observed(&(), Some(seen.clone())).unwrap_or_else(|error| panic!("{error}"));
    assert!(!again.broken_off);
    sorted(seen.0.take())
}

thread_local! {
    /// What runs of this thread have warned of.
    static WARNED: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

fn recording(path: &Path) -> Option<Recording> {
    let warn = |text: &str| WARNED.with_borrow_mut(|warned| warned.push(text.to_owned()));
    Some(Recording { path: path.to_owned(), warn })
}

#[test]
fn a_recorded_engine_replays_to_the_nanosecond_and_on_changed_drives() {
    let folder = tempfile::tempdir().expect("a folder");
    for text in CHAINS {
        let (drive, plain) = below(text);
        let path = folder.path().join("engine.rec");
        let recorded = Below { record: recording(&path), ..plain.clone() };
        let run = |below: &Below| below.run(&drive, (seed(), &load()), work).expect(text).outcome;
        let (alone, times) = (run(&plain), run(&recorded));
        assert_eq!(times.len() as u64, TASKS * COMMANDS, "{text}");
        assert_eq!(replayed(&path, None), sorted(times.clone()), "{text}: a replay");
        assert_eq!(alone, times, "{text}: a recording changes no time");
        let slower = WhatIf { set: vec!["timing.read=400us".to_owned()], ..WhatIf::default() };
        let slow = replayed(&path, Some(slower));
        let took = |times: &Times| times.iter().map(|(begun, ended)| ended.since(*begun).ns()).sum::<u64>();
        assert_eq!(slow.len(), times.len(), "{text}");
        assert!(text.contains("ftl") || took(&slow) >= took(&times), "{text}: slower flash");
        let wanted = Wanted { details: true, trace: false };
        let both = Below { wanted, ..recorded.clone() }.run(&drive, (seed(), &load()), work).expect(text);
        assert!(both.report.is_some() && both.outcome == alone, "{text}: a report next to a recording");
    }
}

/// A queue of two entries has one command at a time: a replay by fewer queues would take longer.
#[test]
fn a_replay_has_as_many_queues_as_the_engine() {
    let folder = tempfile::tempdir().expect("a folder");
    let keys = Profile::parse("default", &profile().to_toml()).expect("a profile").keys;
    let mut small = Profile::of_keys("default", keys);
    small.set("controller.queue_entries=2").expect("a valid change");
    let drive = small.resolve().expect("a possible drive");
    for text in ["", "block", "cache,memory=64KiB"] {
        let path = folder.path().join("engine.rec");
        let recorded = Below { record: recording(&path), ..below(text).1 };
        let times = recorded.run(&drive, (seed(), &load()), work).expect(text).outcome;
        assert_eq!(replayed(&path, None), sorted(times), "{text}");
    }
}

/// Reads through a queue of two entries, and cancels one that waits. Returns the times of the reads before.
async fn cancel(top: Rc<Top>) -> Result<Times, TowerError> {
    let (drive, issuer) = (top.connect(2).expect("a queue pair"), Issuer::new(top.sim()));
    let read = |slba| issuer.execute(&*drive, SubmissionEntry::blocks(IoOpcode::READ, 1, slba, 1), HostMem::none());
    let mut times = Times::new();
    for slba in 0..8 {
        let begun = top.sim().now();
        assert!(read(slba).await.status.is_success());
        times.push((begun, top.sim().now()));
    }
    let several: Vec<_> = (0..4).map(read).collect();
    assert!(several[3].cancel(&*drive), "it waits in the host");
    let warned = WARNED.take();
    assert!(warned.len() == 1 && warned[0].contains("its host has cancelled a command"), "{warned:?}");
    for read in several {
        let _ = read.await;
    }
    assert!(read(9).await.status.is_success(), "the run continues");
    Ok(times)
}

/// A replay cannot repeat a cancel: the recording ends with it, and is valid up to there.
#[test]
fn a_recording_ends_with_the_first_cancel_and_is_replayed_up_to_there() {
    let folder = tempfile::tempdir().expect("a folder");
    for text in ["", "block"] {
        let (drive, plain) = below(text);
        let path = folder.path().join("engine.rec");
        let recorded = Below { record: recording(&path), ..plain };
        let before = recorded.run(&drive, (seed(), &load()), cancel).expect(text).outcome;
        assert_eq!(replayed(&path, None), before, "{text}");
        assert_eq!(WARNED.take(), [""; 0], "{text}: one warning");
    }
}

#[test]
fn an_engine_finds_its_data_in_a_state_that_was_saved_after_it() {
    let folder = tempfile::tempdir().expect("a folder");
    for text in CHAINS {
        let (drive, plain) = below(text);
        let path = folder.path().join("engine.state");
        let saving = Below { save_after: Some(path.clone()), ..plain.clone() };
        saving.run(&drive, (seed(), &load()), work).expect(text);
        let file = Arc::new(StateFile::open(&path).expect("a state"));
        assert!(file.history().words.contains("an engine"), "{}", file.history().words);
        let from = Below { from: Some(file), ..plain.clone() };
        let look = || from.run(&drive, (seed(), &load()), look).expect(text).outcome;
        let (data, at) = look();
        assert!(data.iter().any(|byte| *byte > 0), "{text}: something was written");
        assert_eq!(look(), (data, at), "{text}: the same again");
    }
}

#[test]
fn the_report_has_the_commands_of_the_measured_phase() {
    for text in CHAINS {
        let (drive, plain) = below(text);
        let wanted = Wanted { details: true, trace: true };
        let below = Below { wanted, ..plain };
        let ran = below.run(&drive, (seed(), &load()), work).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert!(ran.trace.is_some_and(|trace| trace.contains("traceEvents")), "{text}");
        let (latency, lines, layers) = match ran.report.expect("details were wanted") {
            LiveReport::Drive(live) => (live.report.latency_us, live.report.inputs.workload_lines, 0),
            LiveReport::Group(_, live) => {
                let of_drives = live.finished.drives.iter().map(|drive| &drive.report.inputs.workload_lines);
                assert!(
                    of_drives.clone().count() > 0 && of_drives.clone().all(|lines| *lines == ["four tasks"]),
                    "{text}"
                );
                let host = live.finished.host;
                for (direction, of) in &host.layers_us {
                    let mean = host.latency_us[direction].mean.expect("there were some");
                    assert!((of.values().sum::<f64>() - mean).abs() < 1e-6, "{text} {direction}: {of:?} of {mean}");
                }
                (host.latency_us, host.workload_lines, host.chain.len())
            }
        };
        assert_eq!(layers > 0, !text.is_empty(), "{text}");
        assert_eq!(lines, ["four tasks"], "{text}");
        let count = |way: Direction| latency.get(way.name()).map_or(0, |latency| latency.count);
        let ways = [Direction::Read, Direction::Write, Direction::Flush];
        assert_eq!(ways.map(count), [TASKS * COMMANDS / 3; 3], "{text}");
    }
}
