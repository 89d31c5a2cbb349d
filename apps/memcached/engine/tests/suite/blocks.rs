//! Blocks in place on emulated drives: what was written is read, from memory and from each drive, and never at a drive with a token.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_apps_memcached_engine::policy::policy;
use nandscape_apps_memcached_engine::{Blocks, BlocksConfig, BlocksError, Given, OpenError};
use nandscape_apps_store::Host;
use nandscape_device_ssd::Ssd;
use nandscape_lab_crash::each;
use nandscape_sim::{Executor, Rng, Seed, Sim, Span};
use nandscape_wire_nvme::vendor::Attributes;

use crate::policies::{given, ssd};

const BLOCK: u64 = 64 << 10;
const CONFIG: BlocksConfig = BlocksConfig { block: BLOCK, dirty: 8 * BLOCK };
/// All policies that write to fixed places.
const POLICIES: [&str; 6] = ["mixed", "raid0", "epochs", "gc_control", "rails", "predictable_latency"];

/// Drives once they are in service.
async fn drives(sim: &Sim, ssds: &[Rc<Ssd>]) -> Vec<Given> {
    for ssd in ssds {
        ssd.in_service().await;
    }
    ssds.iter().map(|ssd| given(sim, ssd)).collect()
}

/// A test on two emulated drives that have what a policy needs.
fn on_two(name: &str, test: impl AsyncFnOnce(Sim, Vec<Given>)) {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let ssds: Vec<Rc<Ssd>> = (0..2).map(|number| ssd(&sim, number, Seed::new(1), name)).collect();
    let ran = executor.block_on(async {
        let drives = drives(&sim, &ssds).await;
        test(sim.clone(), drives).await;
    });
    ran.unwrap();
}

async fn open(sim: &Sim, drives: &[Given], name: &str, config: BlocksConfig) -> Result<Rc<Blocks>, OpenError> {
    let drives = drives.iter().map(|Given { io, admin }| Given { io: io.clone(), admin: admin.clone() });
    Blocks::open(&Host::free(sim), drives.collect(), policy(name).unwrap(), config).await
}

/// A block's bytes in a version.
fn bytes(block: u64, version: u32) -> Rc<[u8]> {
    let mark = [block as u32, version].map(u32::to_le_bytes).concat();
    mark.iter().copied().cycle().take(BLOCK as usize).collect()
}

/// The version of a block that a part of its bytes has.
fn version(block: u64, part: &[u8]) -> u32 {
    let number = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap());
    assert_eq!(number(&part[..4]), block as u32, "another block's bytes");
    assert!(part.chunks(8).all(|chunk| chunk == &part[..8]), "bytes of two versions");
    number(&part[4..8])
}

/// What clients know of blocks.
struct Known {
    blocks: Rc<Blocks>,
    /// The version of each block whose write has returned, and the newest that was begun.
    versions: RefCell<Vec<(u32, u32)>>,
    left: Cell<u32>,
}

impl Known {
    async fn write(self: Rc<Self>, mut rng: Rng, writes: u32) {
        for _ in 0..writes {
            let block = rng.below(self.blocks.count());
            let begun = {
                let begun = &mut self.versions.borrow_mut()[block as usize].1;
                *begun += 1;
                *begun
            };
            self.blocks.write(block, bytes(block, begun)).await.unwrap();
            let done = &mut self.versions.borrow_mut()[block as usize].0;
            *done = begun.max(*done);
            assert!(self.blocks.stats().waiting_bytes <= CONFIG.dirty);
        }
        self.left.set(self.left.get() - 1);
    }

    async fn read(self: Rc<Self>, mut rng: Rng, sim: Sim) {
        while self.left.get() > 0 {
            let block = rng.below(self.blocks.count());
            let first = rng.below(BLOCK / 4_096) * 4_096;
            let least = self.versions.borrow()[block as usize].0;
            let (read, _) = self.blocks.read(block, (first, first + 4_096), Attributes::default()).await.unwrap();
            let most = self.versions.borrow()[block as usize].1;
            let found = if read.iter().all(|byte| *byte == 0) { 0 } else { version(block, &read) };
            assert!((least..=most).contains(&found), "{block}: {found} of {least} to {most}");
            sim.sleep(Span::from_us(rng.below(200))).await;
        }
    }
}

fn run(name: &'static str, seed: Seed) {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let ssds: Vec<Rc<Ssd>> = (0..4).map(|number| ssd(&sim, number, seed, name)).collect();
    let ran = executor.block_on(async {
        let drives = drives(&sim, &ssds).await;
        let blocks = open(&sim, &drives, name, CONFIG).await.unwrap();
        let versions = RefCell::new(vec![(0, 0); blocks.count() as usize]);
        let known = Rc::new(Known { blocks: blocks.clone(), versions, left: Cell::new(1) });
        let reader = |number| known.clone().read(seed.child("reader").nth(number).rng(), sim.clone());
        (0..4).for_each(|number| sim.spawn(reader(number)));
        // One writer, so that the versions of a block are in order.
        known.clone().write(seed.child("writer").rng(), 2_000).await;
        blocks.close().await.unwrap();
        let stats = blocks.stats();
        assert_eq!((stats.waiting_bytes, stats.reads_at_tokens), (0, 0), "{stats:?}");
        assert!(stats.epochs > 10 && stats.throttled > 0 && stats.drive_hits > 0, "{stats:?}");
        assert!(ssds.iter().all(|ssd| ssd.ftl_stats().gc_blocks > 0), "nothing was collected");
        // Each drive has the last version of each block: reads of an idle store are at the drives of a group in turn.
        let as_before = if name == "raid0" { name } else { "mixed" };
        let again = open(&sim, &drives, as_before, CONFIG).await.unwrap();
        let versions = known.versions.take();
        for (block, (done, begun)) in (0..).zip(&versions) {
            assert_eq!(done, begun);
            for _ in 0..2 {
                let (read, _) = again.read(block, (0, BLOCK), Attributes::default()).await.unwrap();
                let found = if *done == 0 { 0 } else { version(block, &read) };
                assert_eq!(found, *done, "block {block}");
            }
        }
    });
    ran.unwrap();
}

#[test]
fn what_was_written_is_read_under_every_policy() {
    each(1, |seed| POLICIES.into_iter().for_each(|name| run(name, seed)));
}

/// A newer version takes the place of one that no drive has begun to write; each drive is written the newer one alone.
#[test]
fn writes_of_older_versions_are_cancelled() {
    on_two("epochs", async |sim, drives| {
        let blocks = open(&sim, &drives, "epochs", CONFIG).await.unwrap();
        for version in 1..=5 {
            blocks.write(3, bytes(3, version)).await.unwrap();
        }
        let (read, _) = blocks.read(3, (0, 8), Attributes::default()).await.unwrap();
        assert_eq!(version(3, &read), 5);
        blocks.close().await.unwrap();
        let stats = blocks.stats();
        assert_eq!((stats.cancelled, stats.written_bytes, stats.memory_hits), (8, 2 * BLOCK, 1));
        assert_eq!(blocks.write(3, bytes(3, 6)).await, Err(BlocksError::Closed));
    });
}

#[test]
fn what_is_not_possible_is_named() {
    on_two("epochs", async |sim, drives| {
        let refused = async |name, config| open(&sim, &drives, name, config).await.err();
        assert_eq!(refused("zoned", CONFIG).await, Some(OpenError::InPlace("zoned")));
        let odd = BlocksConfig { block: 1_000, ..CONFIG };
        assert!(matches!(refused("epochs", odd).await, Some(OpenError::Block { block: 1_000, .. })));
        let most = BlocksConfig { dirty: 1 << 30, ..CONFIG };
        assert!(matches!(refused("epochs", most).await, Some(OpenError::Dirty { dirty: 0x4000_0000, .. })));
        let large = BlocksConfig { block: 1 << 30, ..CONFIG };
        assert!(matches!(refused("epochs", large).await, Some(OpenError::Block { .. })));
        let blocks = open(&sim, &drives, "epochs", CONFIG).await.unwrap();
        let beyond = blocks.read(blocks.count(), (0, 1), Attributes::default()).await;
        assert!(matches!(beyond, Err(BlocksError::Outside { .. })));
        for bytes in [BLOCK + 1, 8] {
            let other = blocks.write(0, vec![0; bytes as usize].into()).await;
            assert_eq!(other, Err(BlocksError::Length { bytes, block: BLOCK }));
        }
    });
}

/// A block that is overwritten more often than a version may wait is written in time.
#[test]
fn a_block_that_is_always_overwritten_reaches_its_drives() {
    on_two("epochs", async |sim, drives| {
        let blocks = open(&sim, &drives, "epochs", CONFIG).await.unwrap();
        for version in 1..=10 {
            blocks.write(3, bytes(3, version)).await.unwrap();
            sim.sleep(Span::from_ms(50)).await;
        }
        assert!(blocks.stats().written_bytes >= 2 * BLOCK, "{:?}", blocks.stats());
    });
}

/// Writes that have not returned when the store closes are rejected, or both drives have them.
#[test]
fn a_write_that_meets_the_close_is_on_both_drives_or_rejected() {
    for name in ["mixed", "epochs"] {
        on_two(name, async |sim, drives| {
            let blocks = open(&sim, &drives, name, CONFIG).await.unwrap();
            let ended = Rc::new(RefCell::new(Vec::new()));
            for block in 0..30 {
                let (blocks, ended) = (blocks.clone(), ended.clone());
                sim.spawn(async move {
                    let written = blocks.write(block, bytes(block, 1)).await;
                    ended.borrow_mut().push((block, written));
                });
            }
            sim.sleep(Span::from_us(1)).await;
            blocks.close().await.unwrap();
            sim.sleep(Span::from_ms(1)).await;
            let ended = ended.take();
            assert_eq!(ended.len(), 30, "a write waits for a closed store");
            let again = open(&sim, &drives, "mixed", CONFIG).await.unwrap();
            for (block, written) in ended {
                let is_there = written == Ok(());
                assert!(is_there || written == Err(BlocksError::Closed));
                for _ in 0..2 {
                    let (read, _) = again.read(block, (0, BLOCK), Attributes::default()).await.unwrap();
                    assert_eq!(read == bytes(block, 1)[..], is_there, "{name}, block {block}");
                }
            }
        });
    }
}
