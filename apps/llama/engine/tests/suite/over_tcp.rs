//! Chains over NVMe/TCP, on connections that break around flushes: before the target has received one, and after it
//! has executed one. No delta may be stored twice, and no acknowledged change may be missing.

use std::collections::BTreeMap;
use std::rc::Rc;

use nandscape_apps_llama_engine::{AnyStore, BwTree, ChainConfig, ChainStore, Config, Host, PageStore};
use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Ssd};
use nandscape_host_driver::nvme_tcp::AdminQueue;
use nandscape_lab_crash::each;
use nandscape_sim::{Executor, Seed, Sim};
use nandscape_wire_nvme::vendor::LSS_FLUSH;

use crate::rig::Tree;

#[path = "../../../../../host/driver/tests/shared/cutter.rs"]
mod cutter;
#[path = "../../../../../host/driver/tests/shared/polled.rs"]
mod polled;
#[path = "../../../../../transport/nvme_tcp/tests/nvme_tcp/server.rs"]
#[allow(dead_code, reason = "the target's own tests use more of it")]
mod server;

use cutter::{Cuts, Cutter};
use server::{Server, SsdExport};

/// The longest chains that a page may have, so that most flushes have deltas.
const CHAINS: ChainConfig = ChainConfig { page_bytes: 4_096, pieces: 32 };
const TREE: Config = Config { memory: 64 << 12, chain: 8 };
/// Connections that break, and records.
const CUTS: u32 = 24;
const RECORDS: u64 = 500;

fn export(sim: &Sim) -> Rc<SsdExport> {
    let mut profile = Profile::load("default").expect("a built-in profile");
    for change in [
        "ftl.kind=ox_block",
        "capacity=64MiB",
        "buffer.mode=volatile",
        "controller.queue_pairs=8",
        "controller.queue_entries=256",
    ] {
        profile.set(change).expect("a valid change");
    }
    let resolved = profile.resolve().expect("valid").without_delay();
    SsdExport::of(sim, Ssd::new(sim, &resolved, StoreKind::Ram, Seed::new(1)).expect("memory"))
}

/// A host that opens the tree at an address.
async fn open(sim: &Sim, address: &str, nqn: &str, formats: bool) -> Tree {
    let (drive, host) = (polled::connected(sim, address, nqn), Host::free(sim));
    let admin = AdminQueue::of(&drive);
    if formats {
        let drive: Rc<dyn nandscape_drive::Drive> = drive.clone();
        ChainStore::format(&host, &drive, &admin).await.expect("it can be formatted");
    }
    let store = ChainStore::open(&host, drive, &admin, CHAINS).await.expect("it has chains");
    BwTree::open(&host, AnyStore::Chains(store), TREE).await.expect("a tree or nothing")
}

/// The records of a tree, and the number of its pieces that are present twice. Each value has its own version, so all
/// pieces of a page differ.
async fn found(tree: &Tree) -> (BTreeMap<Vec<u8>, Vec<u8>>, usize) {
    let pages: Vec<u64> = (0..tree.stats().pages + 64).collect();
    let mut twice = 0;
    for some in pages.chunks(16) {
        for pieces in tree.store().read(some).await.expect("pages") {
            twice += (1..pieces.len()).filter(|at| pieces[..*at].contains(&pieces[*at])).count();
        }
    }
    (tree.scan(&[], usize::MAX).await.expect("a scan").into_iter().collect(), twice)
}

#[test]
fn no_delta_is_there_twice_and_nothing_is_missing_when_connections_break_around_flushes() {
    each(2, |seed| {
        let server = Server::of(None, 1 << 30, export);
        let cutter = Cutter::start(&server.address, Cuts { opcode: LSS_FLUSH.0, every: 9, most: CUTS });
        let mut executor = Executor::new();
        let sim = executor.sim();
        let mut rng = seed.child("records").rng();
        let ran = executor.block_on(async {
            let mut known = BTreeMap::new();
            let tree = open(&sim, &cutter.address, &server.nqn, true).await;
            let mut version = 0u64;
            while cutter.lost().iter().sum::<u32>() < CUTS || version < 3_000 {
                let key = format!("{:06}", rng.below(RECORDS) * 7).into_bytes();
                version += 1;
                let value = version.to_le_bytes().repeat(1 + rng.below(12) as usize);
                tree.put(&key, &value).await.expect("it goes on");
                known.insert(key, value);
                if rng.chance(0.1) {
                    tree.commit().await.expect("it goes on");
                }
            }
            tree.commit().await.expect("it goes on");
            let (records, twice) = found(&tree).await;
            assert_eq!((records == known, twice), (true, 0), "the tree that went on");
            // Another host reads the same data from the drive.
            let tree = open(&sim, &server.address, &server.nqn, false).await;
            let (records, twice) = found(&tree).await;
            assert_eq!((records == known, twice), (true, 0), "the tree on the drive");
        });
        ran.expect("it goes on");
        assert_eq!(cutter.lost(), [CUTS / 2; 2]);
    });
}
