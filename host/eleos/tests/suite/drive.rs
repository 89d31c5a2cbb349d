//! Through the queue of a drive in simulated time, whose power is cut at random times.

use std::rc::Rc;

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Resolved, Ssd};
use nandscape_drive::{Drive, HostMem, Issuer, QueueDrive, QueueId};
use nandscape_host_eleos::{Buffer, Error, Limits, read};
use nandscape_sim::{Executor, Seed, Sim, Span};
use nandscape_wire_nvme::lss::{Entry, Head, LIST, METADATA, PAGE};
use nandscape_wire_nvme::vendor::{BATCHED_READ, LSS_FLUSH};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};
use zerocopy::IntoBytes;

use crate::common::{Known, Way, page};

const SMALL: [&str; 9] = [
    "ftl.kind=ox_block",
    "capacity=8MiB",
    "geometry.channels=2",
    "geometry.dies_per_channel=1",
    "geometry.planes_per_die=2",
    "geometry.pages_per_block=16",
    "buffer.size=256KiB",
    "controller.queue_pairs=2",
    "ftl.ox_block.checkpoint_interval=50ms",
];
/// Pages of such a drive that are used: half of them, so that they are often rewritten.
const PAGES: u64 = 1_024;

/// Room for blocks that fail, and programs that do; each takes a block.
pub(crate) const FAILING: [&str; 2] = ["ftl.over_provisioning=200%", r#"faults=["fail program every=12 count=12"]"#];

pub(crate) fn number(name: &str) -> u64 {
    std::env::var(name).map_or(1, |text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

/// A small drive.
pub(crate) fn profile(changes: &[&str]) -> Resolved {
    let mut profile = Profile::load("default").expect("a built-in profile");
    SMALL.iter().chain(changes).for_each(|change| profile.set(change).expect("a valid change"));
    profile.resolve().expect("valid")
}

pub(crate) struct Rig {
    pub(crate) ssd: Rc<Ssd>,
    pub(crate) drive: Rc<QueueDrive>,
    pub(crate) issuer: Issuer,
}

impl Rig {
    pub(crate) fn new(sim: &Sim, changes: &[&str]) -> Rig {
        Rig::of(sim, Rc::new(Ssd::new(sim, &profile(changes), StoreKind::Ram, Seed::new(9)).expect("memory")))
    }

    pub(crate) fn of(sim: &Sim, ssd: Rc<Ssd>) -> Rig {
        let drive = QueueDrive::new(sim, ssd.controller(), QueueId(1), 32).expect("a free queue pair");
        Rig { ssd, drive, issuer: Issuer::new(sim) }
    }

    pub(crate) async fn limits(&self, sim: &Sim) -> Option<Limits> {
        let admin = QueueDrive::new(sim, self.ssd.controller(), QueueId::ADMIN, 32).expect("an admin queue");
        Limits::ask(&self.issuer, &*admin, &self.drive.info()).await.expect("it answers")
    }
}

impl Rig {
    /// Programs that failed.
    pub(crate) fn failed(&self) -> u64 {
        self.ssd.media().faults().counts().iter().map(|rule| rule.struck).sum()
    }
}

/// Flushes and reads at random, with power cut at random times; how many flushes met a cut.
fn cut(changes: &[&str], seed: u64) -> u32 {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let rig = Rig::new(&sim, changes);
    let (clock, cutter) = (sim.clone(), rig.ssd.clone());
    let mut times = Seed::new(seed).child("cuts").rng();
    let mut rng = Seed::new(seed).child("pages").rng();
    executor
        .block_on(async {
            let limits = rig.limits(&sim).await.expect("it knows buffers");
            assert_eq!(limits, Limits { buffered: 64, batched: 511 });
            sim.spawn(async move {
                for _ in 0..25 {
                    clock.sleep(Span::from_us(200 + times.below(60_000))).await;
                    cutter.media().cut_power(Span::from_us(50));
                }
            });
            let way = Way { issuer: &rig.issuer, drive: &*rig.drive, limits };
            let mut known = Known::new(format!("seed {seed}, {changes:?}"));
            while rig.ssd.media().power_cuts() < 25 {
                known.flush(&way, &mut rng, PAGES).await;
                let some: Vec<u64> = (0..1 + rng.below(40)).map(|_| rng.below(PAGES)).collect();
                known.check(&way, &some).await;
            }
            let all: Vec<u64> = (0..PAGES).collect();
            known.check(&way, &all).await;
            let fails = changes.contains(&FAILING[1]);
            assert_eq!(rig.failed() > 3, fails, "seed {seed}, {changes:?}: {} programs failed", rig.failed());
            known.cuts
        })
        .unwrap_or_else(|_| panic!("seed {seed}: the drive stands still"))
}

#[test]
fn a_buffer_is_there_as_a_whole_or_not_at_all_and_what_was_acknowledged_is() {
    let first = number("NANDSCAPE_TEST_SEED");
    for seed in first..first + number("NANDSCAPE_TEST_SEEDS") {
        let mut cuts = 0;
        for changes in [
            &["buffer.mode=volatile"][..],
            &["buffer.mode=programmed"],
            &["buffer.mode=through"],
            &["buffer.mode=capacitor"],
            &["lba_size=4KiB", "ftl.ox_block.transactions=true", "buffer.mode=volatile"],
            &["lba_size=4KiB", "ftl.ox_block.transactions=true", "buffer.mode=capacitor"],
            &["ftl.ox_block.transactions=true", "buffer.mode=capacitor"],
            &["buffer.mode=volatile", FAILING[0], FAILING[1]],
            &["buffer.mode=through", FAILING[0], FAILING[1]],
            &["buffer.mode=capacitor", FAILING[0], FAILING[1]],
        ] {
            cuts += cut(changes, seed);
        }
        assert!(cuts > 0, "seed {seed}: no flush met a power cut");
    }
}

/// Flushes pages all over a drive while batches read the same pages, and checks that every batch has all of one
/// flush. Memory has room for a few parts of the map, and the drive restarts before each flush, so that batches have
/// to load parts. Returns how many versions the batches had.
fn batches_beside_flushes(changes: &[&str], seed: u64) -> usize {
    const APART: u64 = 4_096;
    let mut executor = Executor::new();
    let sim = executor.sim();
    let map = ["capacity=256MiB", "ftl.ox_block.map_memory=32KiB"];
    let rig = Rc::new(Rig::new(&sim, &[&map[..], changes].concat()));
    let mut rng = Seed::new(seed).child("batches").rng();
    executor
        .block_on(async {
            let limits = rig.limits(&sim).await.expect("it knows buffers");
            // One page of each part of the map.
            let lpids: Vec<u64> = (0..12).map(|part| part * APART + rng.below(APART)).collect();
            let flush = async move |rig: &Rig, lpids: &[u64], version| {
                let mut buffer = Buffer::new(&rig.drive.info(), &limits);
                lpids.iter().for_each(|lpid| buffer.put(*lpid, &page(*lpid, version)).expect("it fits"));
                buffer.flush(&rig.issuer, &*rig.drive).await.expect("it is durable");
            };
            flush(&rig, &lpids, 0).await;
            let mut seen = std::collections::BTreeSet::new();
            for round in 1..60 {
                // If the cache is lost, the whole map is on flash after a restart.
                rig.ssd.media().cut_power(Span::from_us(50));
                sim.sleep(Span::from_ms(1)).await;
                rig.ssd.in_service().await;
                let (written, clock, ended) = (rig.clone(), sim.clone(), Rc::new(std::cell::Cell::new(false)));
                let (all, told, after) = (lpids.clone(), ended.clone(), Span::from_us(rng.below(800)));
                sim.spawn(async move {
                    clock.sleep(after).await;
                    flush(&written, &all, round).await;
                    told.set(true);
                });
                while !ended.get() {
                    let found = read(&rig.issuer, &*rig.drive, &limits, &lpids).await.expect("it answers");
                    let first = found[0].as_ref().expect("it was written").as_chunks().0[0];
                    let version = u64::from_le_bytes(first) >> 32;
                    for (lpid, found) in lpids.iter().zip(&found) {
                        let right = found.as_deref() == Some(&page(*lpid, version));
                        assert!(right, "seed {seed}, {changes:?}: page {lpid} is not that of flush {version}");
                    }
                    seen.insert(version);
                }
            }
            seen.len()
        })
        .expect("it ends")
}

/// Flushes pages whose parts of the map are not in memory, during one batch each, on a drive with capacitors. A flush
/// is visible once it is in the cache, even while a batch waits for one part and has another. Returns how many
/// batches had the version before, the flush, and both.
fn batches_beside_flushes_into_the_cache(seed: u64) -> [u32; 3] {
    const APART: u64 = 4_096;
    let mut executor = Executor::new();
    let sim = executor.sim();
    let changes = ["capacity=256MiB", "ftl.ox_block.map_memory=32KiB", "buffer.mode=capacitor"];
    let rig = Rc::new(Rig::new(&sim, &changes));
    let mut rng = Seed::new(seed).child("batches").rng();
    executor
        .block_on(async {
            let limits = rig.limits(&sim).await.expect("it knows buffers");
            let flush = async move |rig: &Rig, lpids: &[u64], version| {
                let mut buffer = Buffer::new(&rig.drive.info(), &limits);
                lpids.iter().for_each(|lpid| buffer.put(*lpid, &page(*lpid, version)).expect("it fits"));
                buffer.flush(&rig.issuer, &*rig.drive).await.expect("it is durable");
            };
            let lpids: Vec<u64> = (0..4).map(|part| part * APART + rng.below(APART)).collect();
            let of_other_parts: Vec<u64> = (4..16).map(|part| part * APART).collect();
            // These pages displace the contents of the cache.
            let many: Vec<u64> = (0..24).map(|page| 12 * APART + page).collect();
            flush(&rig, &[&lpids[..], &of_other_parts].concat(), 0).await;
            for _ in 0..100 {
                flush(&rig, &many, 0).await;
                sim.sleep(Span::from_ms(10)).await;
            }
            // After checkpoints and a restart the map is on flash. Parts that were never loaded are not written out
            // of memory.
            rig.ssd.media().cut_power(Span::from_us(50));
            sim.sleep(Span::from_ms(500)).await;
            let mut had = [0; 3];
            for version in 1..=60 {
                for _ in 0..8 {
                    flush(&rig, &many, version).await;
                }
                sim.sleep(Span::from_ms(20)).await;
                for lpid in of_other_parts.iter().cycle().take(3 * of_other_parts.len()) {
                    read(&rig.issuer, &*rig.drive, &limits, &[*lpid]).await.expect("it answers");
                }
                let (written, clock, pages) = (rig.clone(), sim.clone(), lpids.clone());
                let after = Span::from_us(rng.below([200, 600, 3_000][version as usize % 3]));
                sim.spawn(async move {
                    clock.sleep(after).await;
                    flush(&written, &pages, version).await;
                });
                let found = read(&rig.issuer, &*rig.drive, &limits, &lpids).await.expect("it answers");
                let has = |version| {
                    let right = |(lpid, found): (&u64, &Option<_>)| found.as_deref() == Some(&page(*lpid, version));
                    lpids.iter().zip(&found).all(right)
                };
                had[if has(version - 1) { 0 } else { 2 - usize::from(has(version)) }] += 1;
                sim.sleep(Span::from_ms(5)).await;
            }
            had
        })
        .expect("it ends")
}

#[test]
fn a_batch_has_all_of_a_flush_that_is_seen_in_the_cache_or_nothing() {
    let first = number("NANDSCAPE_TEST_SEED");
    for seed in first..first + number("NANDSCAPE_TEST_SEEDS") {
        let [before, after, both] = batches_beside_flushes_into_the_cache(seed);
        assert!(both == 0 && before > 0 && after > 0, "seed {seed}: {before}, {after} and {both} batches");
    }
}

#[test]
fn a_batch_has_all_of_a_flush_or_nothing() {
    let first = number("NANDSCAPE_TEST_SEED");
    for seed in first..first + number("NANDSCAPE_TEST_SEEDS") {
        for changes in [
            &["buffer.mode=volatile"][..],
            &["buffer.mode=capacitor"],
            &["buffer.mode=through", "lba_size=4KiB"],
            &["buffer.mode=volatile", "ftl.ox.mapping=whole"],
        ] {
            let versions = batches_beside_flushes(changes, seed);
            assert!(versions > 10, "seed {seed}, {changes:?}: batches had {versions} versions only");
        }
    }
}

#[test]
fn pages_are_the_blocks_of_ordinary_commands() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let rig = Rig::new(&sim, &[]);
    executor
        .block_on(async {
            let limits = rig.limits(&sim).await.expect("it knows buffers");
            let mut buffer = Buffer::new(&rig.drive.info(), &limits);
            buffer.put(7, &page(7, 1)).unwrap();
            buffer.flush(&rig.issuer, &*rig.drive).await.unwrap();
            let mem = HostMem::zeroed(PAGE);
            let blocks = SubmissionEntry::blocks(IoOpcode::READ, 1, 7 * 8, 8);
            assert!(rig.issuer.execute(&*rig.drive, blocks, mem.clone()).await.status.is_success());
            assert_eq!(mem.to_vec(), page(7, 1));
            let write = SubmissionEntry::blocks(IoOpcode::WRITE, 1, 9 * 8, 8);
            let new = HostMem::from_bytes(&page(9, 2));
            assert!(rig.issuer.execute(&*rig.drive, write, new).await.status.is_success());
            let found = read(&rig.issuer, &*rig.drive, &limits, &[9, 8, 7, 9]).await.unwrap();
            let versions: Vec<_> = found.iter().map(Option::as_deref).collect();
            assert_eq!(versions, [Some(&page(9, 2)), None, Some(&page(7, 1)), Some(&page(9, 2))]);
        })
        .expect("it ends");
}

#[test]
fn a_drive_of_another_kind_does_not_know_them() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let rig = Rig::new(&sim, &["ftl.kind=page"]);
    executor
        .block_on(async {
            assert_eq!(rig.limits(&sim).await, None);
            let limits = Limits { buffered: 4, batched: 4 };
            let mut buffer = Buffer::new(&rig.drive.info(), &limits);
            buffer.put(0, &page(0, 1)).unwrap();
            assert_eq!(buffer.flush(&rig.issuer, &*rig.drive).await, Err(Error::Unsupported));
            assert_eq!(buffer.len(), 1, "it can be flushed elsewhere");
            assert_eq!(read(&rig.issuer, &*rig.drive, &limits, &[0]).await, Err(Error::Unsupported));
        })
        .expect("it ends");
}

/// A flush of a buffer with these entries (page, offset, bytes). Its head gives their number, and the buffer has room
/// for `pages`.
fn raw(head: Head, entries: &[(u64, usize, usize)], pages: usize) -> (SubmissionEntry, HostMem) {
    let entry = |(lpid, offset, bytes): &(u64, usize, usize)| Entry {
        lpid: (*lpid).into(),
        offset: (*offset as u32).into(),
        bytes: (*bytes as u32).into(),
    };
    let list: Vec<Entry> = entries.iter().map(entry).collect();
    let mut data = [head.as_bytes(), list.as_bytes()].concat();
    data.resize(METADATA + pages * PAGE, 9);
    let mut entry = SubmissionEntry::io(LSS_FLUSH, 1);
    entry.cdw10 = ((data.len() / PAGE) as u32 - 1).into();
    (entry, HostMem::from_bytes(&data))
}

#[test]
fn each_bad_field_has_its_status_and_changes_nothing() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let rig = Rig::new(&sim, &[]);
    let pages = rig.drive.info().blocks / 8;
    executor
        .block_on(async {
            let execute = async |(entry, mem)| rig.issuer.execute(&*rig.drive, entry, mem).await.status.meaning();
            let one = (3, METADATA, PAGE);
            for (bad, right) in [
                (raw(Head::of(0), &[one], 1), Status::INVALID_FIELD),
                (raw(Head::of(u32::MAX), &[one], 1), Status::INVALID_FIELD),
                (raw(Head { magic: *b"NONE", ..Head::of(1) }, &[one], 1), Status::INVALID_FIELD),
                (raw(Head { reserved_12: 1.into(), ..Head::of(1) }, &[one], 1), Status::INVALID_FIELD),
                // An entry too many is zeros.
                (raw(Head::of(2), &[one], 1), Status::INVALID_FIELD),
                (raw(Head::of(1), &[(3, METADATA - 1, PAGE)], 1), Status::INVALID_FIELD),
                (raw(Head::of(1), &[(3, METADATA + 1, PAGE)], 1), Status::INVALID_FIELD),
                (raw(Head::of(1), &[(3, u32::MAX as usize, PAGE)], 1), Status::INVALID_FIELD),
                (raw(Head::of(1), &[(3, METADATA, PAGE - 1)], 1), Status::INVALID_FIELD),
                (raw(Head::of(1), &[(3, METADATA, 2 * PAGE)], 2), Status::INVALID_FIELD),
                (raw(Head::of(1), &[one], 0), Status::INVALID_FIELD),
                (raw(Head::of(1), &[(pages, METADATA, PAGE)], 1), Status::LBA_OUT_OF_RANGE),
                (raw(Head::of(1), &[(u64::MAX, METADATA, PAGE)], 1), Status::LBA_OUT_OF_RANGE),
                (raw(Head::of(1), &[(u64::MAX / 8 + 1, METADATA, PAGE)], 1), Status::LBA_OUT_OF_RANGE),
                // The second page is invalid: the first is not stored.
                (raw(Head::of(2), &[one, (pages, METADATA, PAGE)], 1), Status::LBA_OUT_OF_RANGE),
                (raw(Head::of(1), &[one], 600), Status::COMMAND_SIZE_LIMIT_EXCEEDED),
                (raw(Head::of(65), &[one; 65], 65), Status::COMMAND_SIZE_LIMIT_EXCEEDED),
            ] {
                let what = format!("{:?} {right}", bad.0);
                assert_eq!(execute(bad).await, right, "{what}");
            }
            let (entry, mem) = raw(Head::of(1), &[one], 1);
            assert_eq!(execute((entry, HostMem::none())).await, Status::DATA_SGL_LENGTH_INVALID);
            assert_eq!(execute((entry, mem.part(0, METADATA))).await, Status::DATA_SGL_LENGTH_INVALID);
            let limits = rig.limits(&sim).await.expect("it knows buffers");
            assert_eq!(read(&rig.issuer, &*rig.drive, &limits, &[3]).await, Ok(vec![None]), "nothing was changed");
            // The later of two entries counts, and pages may be anywhere in the buffer.
            let twice = [(3, METADATA + 7, PAGE), (3, METADATA + 5, PAGE)];
            assert_eq!(execute(raw(Head::of(2), &twice, 3)).await, Status::SUCCESS);
            let found = read(&rig.issuer, &*rig.drive, &limits, &[3]).await.unwrap();
            assert_eq!(found[0].as_deref(), Some(&[9; PAGE]));
        })
        .expect("it ends");
}

#[test]
fn each_bad_batch_has_its_status() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let rig = Rig::new(&sim, &[]);
    let pages = rig.drive.info().blocks / 8;
    executor
        .block_on(async {
            let batch = async |lpids: &[u64], count: u32, bytes: usize| {
                let list: Vec<u8> = lpids.iter().flat_map(|lpid| lpid.to_le_bytes()).collect();
                let mem = HostMem::zeroed(bytes);
                mem.write(0, &list);
                let mut entry = SubmissionEntry::io(BATCHED_READ, 1);
                entry.cdw10 = (count - 1).into();
                rig.issuer.execute(&*rig.drive, entry, mem).await.status.meaning()
            };
            assert_eq!(batch(&[0, 1], 2, LIST + 2 * PAGE).await, Status::SUCCESS);
            assert_eq!(batch(&[0, pages], 2, LIST + 2 * PAGE).await, Status::LBA_OUT_OF_RANGE);
            assert_eq!(batch(&[u64::MAX], 1, LIST + PAGE).await, Status::LBA_OUT_OF_RANGE);
            assert_eq!(batch(&[0, 1], 2, LIST + 2 * PAGE - 1).await, Status::DATA_SGL_LENGTH_INVALID);
            assert_eq!(batch(&[0], 1, 8).await, Status::DATA_SGL_LENGTH_INVALID);
            assert_eq!(batch(&[0], 513, 4 << 20).await, Status::INVALID_FIELD);
            assert_eq!(batch(&[0], 0x1_0000, 4 << 20).await, Status::INVALID_FIELD);
            assert_eq!(batch(&[0], 512, 4 << 20).await, Status::COMMAND_SIZE_LIMIT_EXCEEDED);
            let mut entry = SubmissionEntry::io(BATCHED_READ, 1);
            entry.cdw10 = 0.into();
            let none = rig.issuer.execute(&*rig.drive, entry, HostMem::none()).await;
            assert_eq!(none.status.meaning(), Status::DATA_SGL_LENGTH_INVALID);
        })
        .expect("it ends");
}
