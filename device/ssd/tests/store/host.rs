//! A host that writes, deallocates, spoils and flushes, a few commands at a time, and reads everything back.

use std::rc::Rc;

use nandscape_device_media::durable::{MemoryFile, StoreFile};
use nandscape_device_ssd::{Profile, Resolved, Ssd};
use nandscape_drive::{HostMem, Issuer, QueueDrive, QueueId};
use nandscape_sim::{Executor, Rng, Sim};
use nandscape_wire_nvme::io::DsmRange;
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};
use zerocopy::IntoBytes as _;

use crate::model::{Content, Model};

/// A drive of 2 MiB with much garbage collection.
pub(crate) fn small(mode: &str, changes: &[&str]) -> Resolved {
    let mut profile = Profile::load("default").unwrap();
    let mode = format!("buffer.mode={mode}");
    let small = [
        "capacity=2MiB",
        "geometry.channels=2",
        "geometry.dies_per_channel=1",
        "geometry.planes_per_die=1",
        "geometry.pages_per_block=6",
        "ftl.over_provisioning=5%",
        "buffer.size=256KiB",
        "ftl.wear.static_threshold=4",
        "controller.multipath=true",
        &mode,
    ];
    profile.set_all(small.iter().chain(changes)).unwrap();
    profile.resolve().unwrap()
}

/// Opens the drive in a file.
pub(crate) fn open(sim: &Sim, profile: &Resolved, backing: &std::sync::Arc<MemoryFile>, syncs: bool) -> Rc<Ssd> {
    Rc::new(Ssd::open(sim, profile, StoreFile::open_on(backing.clone(), syncs).unwrap()).unwrap())
}

/// The next free queue pair.
fn connect(sim: &Sim, ssd: &Ssd) -> Rc<QueueDrive> {
    let mut pairs = (1..).map(|id| QueueDrive::new(sim, ssd.controller(), QueueId(id), 32));
    pairs.find_map(Result::ok).expect("the numbers never end")
}

/// Sectors of the largest mapping unit of these drives: only whole ones are deallocated.
const UNIT: usize = 16;

/// The random commands of a host.
#[derive(Copy, Clone)]
struct Step {
    content: Option<Content>,
    start: usize,
    sectors: usize,
    fua: bool,
}

/// Issues commands until they fail, or for a number of batches. `is_durable` is whether acknowledged changes are durable.
pub(crate) fn work(
    executor: &mut Executor,
    ssd: &Rc<Ssd>,
    model: &mut Model,
    rng: &mut Rng,
    (batches, is_durable): (u32, bool),
) {
    let sim = executor.sim();
    let drive = connect(&sim, ssd);
    let issuer = Issuer::new(&sim);
    for _ in 0..batches {
        let steps = draw(model, rng);
        let done = executor.block_on(async {
            let issued: Vec<_> = steps.iter().map(|step| issue(&issuer, &drive, *step)).collect();
            let mut statuses = Vec::new();
            for command in issued {
                statuses.push(command.await.status);
            }
            statuses
        });
        let mut has_failed = false;
        for (step, status) in steps.iter().zip(done.unwrap()) {
            let range = step.start..step.start + step.sectors;
            match (status, step.content) {
                // Deallocations and marks of the page FTL are durable at once; those of OX-Block are like writes.
                (Status::SUCCESS, Some(content @ (Content::Zeros | Content::Spoiled))) => {
                    model.done(range, content, is_durable || ssd.ox_block().is_none())
                }
                (Status::SUCCESS, Some(content)) => model.done(range, content, is_durable || step.fua),
                (Status::SUCCESS, None) => model.flushed(),
                (_, Some(content)) => {
                    has_failed = true;
                    model.may(range, content);
                }
                (_, None) => has_failed = true,
            }
        }
        if has_failed {
            return;
        }
    }
}

/// A batch of commands on different sectors, or a flush.
fn draw(model: &Model, rng: &mut Rng) -> Vec<Step> {
    if rng.below(8) == 0 {
        return vec![Step { content: None, start: 0, sectors: 0, fua: false }];
    }
    let mut steps: Vec<Step> = Vec::new();
    for _ in 0..1 + rng.below(5) {
        let most = if rng.below(3) == 0 { 200 } else { 12 };
        let sectors = 1 + rng.below(most) as usize;
        let start = rng.below((model.sectors() - sectors) as u64) as usize;
        let content = match rng.below(12) {
            0 => {
                // Whole units.
                let (start, end) = (start.next_multiple_of(UNIT), (start + sectors) / UNIT * UNIT);
                if start >= end || steps.iter().any(|other| end > other.start && start < other.start + other.sectors) {
                    continue;
                }
                steps.push(Step { content: Some(Content::Zeros), start, sectors: end - start, fua: false });
                continue;
            }
            1 => Content::Spoiled,
            _ => Content::Data(rng.below(1 << 31) as u32),
        };
        let overlaps = |other: &Step| start + sectors > other.start && start < other.start + other.sectors;
        if !steps.iter().any(overlaps) {
            steps.push(Step { content: Some(content), start, sectors, fua: rng.below(6) == 0 });
        }
    }
    steps
}

async fn issue(issuer: &Issuer, drive: &Rc<QueueDrive>, step: Step) -> nandscape_drive::Completion {
    let (start, sectors) = (step.start as u64, step.sectors as u32);
    match step.content {
        None => issuer.execute(&**drive, SubmissionEntry::io(IoOpcode::FLUSH, 1), HostMem::none()).await,
        Some(Content::Data(number)) => {
            let mut write = SubmissionEntry::blocks(IoOpcode::WRITE, 1, start, sectors);
            if step.fua {
                write.cdw12 = (write.cdw12.get() | 1 << 30).into();
            }
            let data = HostMem::from_bytes(&sector(number).repeat(step.sectors));
            issuer.execute(&**drive, write, data).await
        }
        Some(Content::Spoiled) => {
            let spoil = SubmissionEntry::blocks(IoOpcode::WRITE_UNCORRECTABLE, 1, start, sectors);
            issuer.execute(&**drive, spoil, HostMem::none()).await
        }
        Some(Content::Zeros) => {
            let range = DsmRange { context_attributes: 0.into(), blocks: sectors.into(), slba: start.into() };
            let mut entry = SubmissionEntry::io(IoOpcode::DATASET_MANAGEMENT, 1);
            entry.cdw11 = 4.into();
            issuer.execute(&**drive, entry, HostMem::from_bytes(range.as_bytes())).await
        }
    }
}

/// The bytes of a sector of a number that is not zero.
fn sector(number: u32) -> Vec<u8> {
    (number | 1 << 31).to_le_bytes().repeat(128)
}

/// Reads a sector.
fn read(executor: &mut Executor, issuer: &Issuer, drive: &Rc<QueueDrive>, start: usize) -> Result<Content, String> {
    let (mem, command) = (HostMem::zeroed(512), SubmissionEntry::blocks(IoOpcode::READ, 1, start as u64, 1));
    let status = executor.block_on(issuer.execute(&**drive, command, mem.clone())).unwrap().status.meaning();
    let bytes = mem.to_vec();
    match status {
        Status::UNRECOVERED_READ_ERROR => Ok(Content::Spoiled),
        Status::SUCCESS => {
            content_of(&bytes).ok_or_else(|| format!("sector {start} holds parts of several writes: {:?}", &bytes[..8]))
        }
        other => Err(format!("sector {start}: {other}")),
    }
}

/// The number with which a sector was written; `None` if it holds parts of several writes.
fn content_of(bytes: &[u8]) -> Option<Content> {
    let number = u32::from_le_bytes(bytes[..4].try_into().unwrap());
    match bytes {
        bytes if bytes == [0; 512] => Some(Content::Zeros),
        bytes if bytes == sector(number) => Some(Content::Data(number & !(1 << 31))),
        _ => None,
    }
}

/// Checks that every sector of a restarted drive has permitted contents.
pub(crate) fn verify(executor: &mut Executor, ssd: &Rc<Ssd>, model: &mut Model) -> Result<(), String> {
    executor.block_on(ssd.in_service()).map_err(|stalled| stalled.to_string())?;
    ssd.check()?;
    each_sector(executor, ssd, model, |model, start, content| model.found(start, content))
}

/// Checks that every sector of a running drive has the last written contents.
pub(crate) fn verify_running(executor: &mut Executor, ssd: &Rc<Ssd>, model: &mut Model) -> Result<(), String> {
    each_sector(executor, ssd, model, |model, start, content| match model.now(start) {
        now if now == content => Ok(()),
        now => Err(format!("sector {start} holds {content:?}, and was written {now:?}")),
    })
}

/// The sectors that are wrongly unreadable, or the first with wrong contents. Any read error counts.
pub(crate) fn unreadable(executor: &mut Executor, ssd: &Rc<Ssd>, model: &Model) -> Result<Vec<usize>, String> {
    executor.block_on(ssd.in_service()).map_err(|stalled| stalled.to_string())?;
    let sim = executor.sim();
    let (drive, issuer) = (connect(&sim, ssd), Issuer::new(&sim));
    let mut unreadable = Vec::new();
    for start in 0..model.sectors() {
        let (mem, command) = (HostMem::zeroed(512), SubmissionEntry::blocks(IoOpcode::READ, 1, start as u64, 1));
        let done =
            executor.block_on(issuer.execute(&*drive, command, mem.clone())).map_err(|stalled| stalled.to_string())?;
        let content = if done.status == Status::SUCCESS { content_of(&mem.to_vec()) } else { Some(Content::Spoiled) };
        match content {
            Some(content) if model.allows(start, content) => {}
            Some(Content::Spoiled) => unreadable.push(start),
            other => return Err(format!("sector {start} holds {other:?}, and may not")),
        }
    }
    Ok(unreadable)
}

fn each_sector(
    executor: &mut Executor,
    ssd: &Rc<Ssd>,
    model: &mut Model,
    mut found: impl FnMut(&mut Model, usize, Content) -> Result<(), String>,
) -> Result<(), String> {
    let sim = executor.sim();
    let drive = connect(&sim, ssd);
    let issuer = Issuer::new(&sim);
    (0..model.sectors()).try_for_each(|start| {
        let content = read(executor, &issuer, &drive, start)?;
        found(model, start, content)
    })
}

/// Runs a random test for each of some seeds, or for the one in `NANDSCAPE_TEST_SEED`.
pub(crate) fn each_seed(count: u64, test: impl Fn(u64) -> Result<(), String>) {
    let given = std::env::var("NANDSCAPE_TEST_SEED").ok().and_then(|text| text.parse().ok());
    for seed in given.map_or(0..count, |seed: u64| seed..seed + 1) {
        test(seed).unwrap_or_else(|what| panic!("NANDSCAPE_TEST_SEED={seed}: {what}"));
    }
}
