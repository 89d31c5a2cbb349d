//! Random commands against the model, on many seeds: each status, each report and all data. Runs have failing flash,
//! power cuts during commands, or both; one command at a time, and writes at depth.
//!
//! `NANDSCAPE_TEST_SEEDS=5000 cargo test -p nandscape-host-open_channel --test model campaign` runs more seeds, and
//! `NANDSCAPE_TEST_SEED=7` only one.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use nandscape_drive::{Completion, Drive, HostMem, Issuer};
use nandscape_host_open_channel::Means;
use nandscape_sim::rng::Rng;
use nandscape_sim::{Executor, Seed, Span};
use nandscape_wire_nvme::open_channel::{CHUNK_CLOSED, CHUNK_OFFLINE};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

use crate::rig::Rig;
use crate::table::{Chunk, Model};

/// Commands of a seed.
const COMMANDS: u32 = 120;
/// Seeds of a short run.
const SEEDS: u64 = 16;
/// Polls after which a run is stuck.
const MOST_EVENTS: u64 = 20_000_000;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}, not a number")))
}

/// The coverage of a run: the first word of each successful command, and the statuses of the others.
type Done = BTreeSet<String>;

/// Runs seeds; together they must cover all commands, and meet these statuses.
fn each_seed(run: impl Fn(u64) -> Done, statuses: &[Status]) {
    if let Some(seed) = number("NANDSCAPE_TEST_SEED") {
        return drop(run(seed));
    }
    let done: Done =
        (1..=number("NANDSCAPE_TEST_SEEDS").unwrap_or(SEEDS)).flat_map(|seed| told(seed, || run(seed))).collect();
    let commands = ["copy", "reset", "write"].map(str::to_owned);
    let missing: Vec<String> = commands
        .into_iter()
        .chain(statuses.iter().map(Status::to_string))
        .filter(|what| !done.contains(what))
        .collect();
    assert!(missing.is_empty(), "{missing:?} did not happen: {done:?}");
}

/// The faults during commands.
#[derive(Copy, Clone, PartialEq)]
enum Trouble {
    None,
    Faults,
    Cuts,
    Both,
}

impl Trouble {
    fn has_faults(self) -> bool {
        matches!(self, Trouble::Faults | Trouble::Both)
    }

    fn has_cuts(self) -> bool {
        matches!(self, Trouble::Cuts | Trouble::Both)
    }
}

/// A chunk to work on: few chunks, so that they are filled and reset.
fn chunk(rng: &mut Rng, model: &Model) -> usize {
    let all = model.chunks.len() as u64;
    let few = if rng.chance(0.85) { 5 } else { all };
    (rng.below(few) * 7 % all) as usize
}

/// Addresses to write: mostly from the write pointers of one to three chunks on.
fn to_write(rng: &mut Rng, model: &Model) -> Vec<u64> {
    let (unit, mut addresses) = (model.geometry.ws_min, Vec::new());
    for _ in 0..1 + rng.below(3) {
        let chunk = chunk(rng, model);
        // A repeated chunk mostly continues at its last address.
        let in_chunk = |address: &&u64| model.at(**address).is_ok_and(|(of, _)| of == chunk);
        let before = if rng.chance(0.8) { addresses.iter().filter(in_chunk).count() } else { 0 };
        let pointer = (model.chunks[chunk].data.len() + before) as u32;
        let at = if rng.chance(0.9) { pointer } else { rng.below(u64::from(model.geometry.sectors)) as u32 };
        let units = if rng.chance(0.9) { unit * (1 + rng.below(2) as u32) } else { 1 + rng.below(30) as u32 };
        let first = model.address(chunk, 0) + u64::from(at);
        addresses.extend(first..first + u64::from(units));
    }
    addresses.truncate(60);
    addresses
}

fn any_addresses(rng: &mut Rng, model: &Model, most: u64) -> Vec<u64> {
    let mut addresses = Vec::new();
    for _ in 0..1 + rng.below(4) {
        let first = model.address(chunk(rng, model), rng.below(u64::from(model.geometry.sectors)) as u32);
        addresses.extend(first..first + 1 + rng.below(most));
    }
    addresses
}

/// Executes a command and checks that both sides agree. With faults, the model adopts the drive's reports of the
/// chunks.
async fn step(
    rig: &Rig,
    model: &mut Model,
    rng: &mut Rng,
    stamp: &mut u64,
    trouble: Trouble,
) -> (&'static str, Result<(), Status>) {
    match rng.below(10) {
        0..=4 => {
            let addresses = to_write(rng, model);
            let stamps: Vec<u64> = (0..addresses.len() as u64).map(|index| *stamp + index).collect();
            *stamp += 100;
            let expected = model.check_write(&addresses);
            let got = rig.write(&addresses, &stamps).await;
            settle(rig, model, got, expected, trouble, |model| model.write(&addresses, &stamps)).await;
            ("write", got)
        }
        5..=6 => {
            let addresses = any_addresses(rng, model, 12);
            assert_eq!(rig.read(&addresses).await, model.read(&addresses), "read {addresses:?}");
            ("read", Ok(()))
        }
        7 => {
            let to = to_write(rng, model);
            let mut from = any_addresses(rng, model, 8);
            from = from.iter().cycle().take(to.len()).copied().collect();
            let stamps = model.read(&from);
            let missing = |addresses: &[u64]| addresses.iter().any(|address| model.geometry.place(*address).is_none());
            let expected = match missing(&from) || missing(&to) {
                true => Err(Status::LBA_OUT_OF_RANGE),
                false => model.check_write(&to),
            };
            let got = rig.host.copy(&from, &to).await.map_err(|error| error.status);
            settle(rig, model, got, expected, trouble, |model| model.write(&to, &stamps?)).await;
            ("copy", got)
        }
        _ => {
            let addresses: Vec<u64> = (0..1 + rng.below(3)).map(|_| model.address(chunk(rng, model), 0)).collect();
            let mut after = Model::new(model.geometry);
            after.chunks.clone_from(&model.chunks);
            let expected = after.reset(&addresses);
            let got = rig.host.reset(&addresses).await.map_err(|error| error.status);
            settle(rig, model, got, expected, trouble, |model| model.reset(&addresses)).await;
            ("reset", got)
        }
    }
}

/// Applies the command to the model as the drive has executed it. After a flash failure, the model adopts the drive's
/// reports of chunks, within the limits of the specification.
async fn settle(
    rig: &Rig,
    model: &mut Model,
    got: Result<(), Status>,
    expected: Result<(), Status>,
    trouble: Trouble,
    change: impl FnOnce(&mut Model) -> Result<(), Status>,
) {
    let mut failed = vec![Status::CHUNK_EARLY_CLOSE, Status::OFFLINE_CHUNK];
    if rig.drive.info().volatile_cache {
        // The part before it had ended when its program failed.
        failed.push(Status::OUT_OF_ORDER_WRITE);
    }
    if trouble.has_faults() && expected.is_ok() && got.is_err_and(|status| failed.contains(&status)) {
        let before = model.chunks.clone();
        change(model).expect("it was checked");
        return adopt(rig, model, &before).await;
    }
    assert_eq!(got, expected);
    if expected.is_ok() {
        change(model).expect("it was checked");
    }
}

/// Adopts the drive's reports of chunks that differ from the expected state. `before` is their state before the
/// failed command: all of that data is still present, or the chunk was reset.
async fn adopt(rig: &Rig, model: &mut Model, before: &[Chunk]) {
    let report = rig.host.report().await.expect("a report");
    for ((info, chunk), before) in report.iter().zip(&mut model.chunks).zip(before) {
        let written = info.written as usize;
        if (info.state, written) == (chunk.state, chunk.data.len()) {
            continue;
        }
        match info.state {
            CHUNK_OFFLINE => *chunk = Chunk { state: CHUNK_OFFLINE, data: Vec::new() },
            // A failed reset: the data is all present or all lost.
            CHUNK_CLOSED if chunk.data.is_empty() => {
                assert!(written == 0 || written == before.data.len(), "{info:?}");
                *chunk = Chunk { state: CHUNK_CLOSED, data: before.data[..written].to_vec() };
            }
            _ => {
                let data = if chunk.data.len() >= before.data.len() { &chunk.data } else { &before.data };
                assert!((before.data.len()..=data.len()).contains(&written), "{info:?}, before {}", before.data.len());
                *chunk = Chunk { state: info.state, data: data[..written].to_vec() };
            }
        }
    }
}

/// Compares all chunks and all data.
async fn compare(rig: &Rig, model: &Model) {
    let report = rig.host.report().await.expect("a report");
    assert_eq!(report.len(), model.chunks.len());
    for ((info, expected), number) in report.iter().zip(&model.chunks).zip(0..) {
        assert_eq!((info.state, info.written), (expected.state, expected.data.len() as u64), "chunk {number}");
        assert_eq!((info.address, info.blocks), (model.address(number, 0), model.geometry.sectors.into()));
        let addresses: Vec<u64> = (info.address..info.address + info.blocks).collect();
        for part in addresses.chunks(48) {
            assert_eq!(rig.read(part).await, model.read(part), "chunk {number}");
        }
    }
}

/// The statuses of commands when the flash fails before the power does.
const FAILED: [Status; 2] = [Status::CHUNK_EARLY_CLOSE, Status::OUT_OF_ORDER_WRITE];

/// Begins concurrent writes to several chunks, some to the same one: for each the chunk, its end afterwards, and the
/// command.
fn begin_writes<'a>(
    rig: &'a Rig,
    issuer: &'a Issuer,
    model: &mut Model,
    rng: &mut Rng,
    stamp: &mut u64,
) -> Vec<(usize, usize, impl Future<Output = Completion> + use<'a>)> {
    let (nsid, mut under_way) = (rig.drive.info().nsid, Vec::new());
    for _ in 0..6 {
        let chunk = chunk(rng, model);
        let first = model.address(chunk, model.chunks[chunk].data.len() as u32);
        let addresses: Vec<u64> = (first..first + u64::from(model.geometry.ws_min)).collect();
        let stamps: Vec<u64> = (0..addresses.len() as u64).map(|index| *stamp + index).collect();
        *stamp += 100;
        if model.write(&addresses, &stamps).is_ok() {
            let entry = SubmissionEntry::blocks(IoOpcode::WRITE, nsid, first, addresses.len() as u32);
            let mem = HostMem::from_bytes(&crate::rig::bytes_of(&stamps));
            under_way.push((chunk, model.chunks[chunk].data.len(), issuer.execute(&*rig.drive, entry, mem)));
        }
    }
    under_way
}

/// Concurrent writes to several chunks: a queue's commands are served in order, so the model predicts all of them.
async fn write_at_depth(rig: &Rig, model: &mut Model, rng: &mut Rng, stamp: &mut u64) {
    let issuer = Issuer::new(&rig.sim);
    for (chunk, end, ended) in begin_writes(rig, &issuer, model, rng, stamp) {
        assert_eq!(ended.await.status.meaning(), Status::SUCCESS, "up to {end} of chunk {chunk}");
    }
    // With every write flushed, a cut can only lose the writes that it interrupts.
    if rig.drive.info().volatile_cache {
        rig.host.flush().await.expect("no program fails");
    }
}

/// Writes to several chunks at depth, cuts power meanwhile, and checks the rest.
async fn cut(rig: &Rig, model: &mut Model, rng: &mut Rng, stamp: &mut u64, trouble: Trouble) {
    let (before, issuer) = (model.chunks.clone(), Issuer::new(&rig.sim));
    let under_way = begin_writes(rig, &issuer, model, rng, stamp);
    rig.sim.sleep(Span::from_us(rng.below(8_000))).await;
    rig.ssd.media().cut_power(Span::from_ms(1));
    let mut kept: Vec<usize> = before.iter().map(|chunk| chunk.data.len()).collect();
    for (chunk, end, ended) in under_way {
        let status = ended.await.status;
        match status.is_success() {
            true if rig.drive.info().volatile_cache => {}
            true => kept[chunk] = kept[chunk].max(end),
            // The flash may have failed before the cut: that closes a chunk, and writes behind it do not begin at its end.
            false if trouble.has_faults() && FAILED.contains(&status.meaning()) => {}
            false => assert_eq!(status.meaning(), Status::ABORTED_POWER_LOSS),
        }
    }
    // Acknowledged data is present, unless it may still be in registers.
    let acknowledged: Vec<Chunk> = model
        .chunks
        .iter()
        .zip(&kept)
        .map(|(chunk, kept)| Chunk { data: chunk.data[..*kept].to_vec(), ..chunk.clone() })
        .collect();
    adopt(rig, model, &acknowledged).await;
    rig.ssd.check().unwrap_or_else(|problem| panic!("after a cut: {problem}"));
}

fn run(seed: u64, changes: &[&str], means: Means, trouble: Trouble) -> Done {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let mut rng = Seed::new(seed).child("open_channel").rng();
    let (last, done) = (Cell::new((0, "")), RefCell::new(Done::new()));
    let ended = executor.block_on_within(
        async {
            let rows: &[&str] = if seed.is_multiple_of(3) { &["timing.interleaving=rows"] } else { &[] };
            let rig = Rig::seeded(&sim, &[changes, rows].concat(), means, Seed::new(seed)).await;
            let rig = if trouble == Trouble::None { rig } else { rig.flushing() };
            let (mut model, mut stamp) = (Model::new(*rig.host.geometry()), 1);
            for number in 0..COMMANDS {
                let (what, ended) = step(&rig, &mut model, &mut rng, &mut stamp, trouble).await;
                done.borrow_mut().insert(ended.map_or_else(|status| status.to_string(), |()| what.to_owned()));
                last.set((number, what));
                if !trouble.has_faults() && rng.chance(0.05) {
                    write_at_depth(&rig, &mut model, &mut rng, &mut stamp).await;
                }
                if trouble.has_cuts() && rng.chance(0.05) {
                    cut(&rig, &mut model, &mut rng, &mut stamp, trouble).await;
                }
            }
            compare(&rig, &model).await;
            rig.ssd.check().unwrap_or_else(|problem| panic!("{problem}"));
        },
        MOST_EVENTS,
    );
    ended.unwrap_or_else(|_| panic!("it does not end; the last command was {:?}", last.get()));
    done.into_inner()
}

/// Prints the failing seed.
fn told<T>(seed: u64, run: impl FnOnce() -> T) -> T {
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
    ended.unwrap_or_else(|panic| {
        panic!("seed {seed}: {}", panic.downcast_ref::<String>().map_or("it failed", String::as_str))
    })
}

/// Commands that a drive refuses.
const REFUSED: [Status; 3] = [Status::OUT_OF_ORDER_WRITE, Status::INVALID_FIELD, Status::INVALID_RESET];

#[test]
fn campaign_of_vector_commands() {
    let refused = [&REFUSED[..], &[Status::LBA_OUT_OF_RANGE]].concat();
    each_seed(|seed| run(seed, &[], Means::Vector, Trouble::None), &refused);
}

#[test]
fn campaign_with_blocks_that_cannot_be_read_yet() {
    let changes = ["ftl.open_channel.mw_cunits=24", "timing.program_unit=page"];
    each_seed(|seed| run(seed, &changes, Means::Vector, Trouble::None), &REFUSED);
}

#[test]
fn campaign_with_failing_programs_and_erases() {
    let faults = "faults=[\"fail program probability=0.01\", \"fail erase probability=0.03\"]";
    let statuses = [Status::CHUNK_EARLY_CLOSE, Status::OFFLINE_CHUNK];
    each_seed(|seed| run(seed, &[faults], Means::Vector, Trouble::Faults), &statuses);
}

#[test]
fn campaign_with_power_cuts() {
    each_seed(|seed| run(seed, &[], Means::Vector, Trouble::Cuts), &REFUSED);
}

/// Writes end when their data is in registers.
const WRITE_BACK: &str = "buffer.mode=register";

#[test]
fn campaign_with_write_back() {
    each_seed(|seed| run(seed, &[WRITE_BACK], Means::Vector, Trouble::None), &REFUSED);
    each_seed(|seed| run(seed, &[WRITE_BACK, "timing.registers=single"], Means::Vector, Trouble::None), &REFUSED);
}

#[test]
fn campaign_with_write_back_and_failing_programs_and_erases() {
    let faults = "faults=[\"fail program probability=0.01\", \"fail erase probability=0.03\"]";
    let statuses = [Status::CHUNK_EARLY_CLOSE, Status::OFFLINE_CHUNK];
    each_seed(|seed| run(seed, &[WRITE_BACK, faults], Means::Vector, Trouble::Faults), &statuses);
}

#[test]
fn campaign_with_write_back_and_power_cuts() {
    each_seed(|seed| run(seed, &[WRITE_BACK], Means::Vector, Trouble::Cuts), &REFUSED);
}

/// Programs and erases that fail.
const FAULTS: &str = "faults=[\"fail program probability=0.03\", \"fail erase probability=0.05\"]";

#[test]
fn campaign_with_failing_flash_and_power_cuts() {
    let statuses = [Status::CHUNK_EARLY_CLOSE, Status::OFFLINE_CHUNK];
    each_seed(|seed| run(seed, &[FAULTS], Means::Vector, Trouble::Both), &statuses);
    each_seed(|seed| run(seed, &[WRITE_BACK, FAULTS], Means::Vector, Trouble::Both), &statuses);
}
