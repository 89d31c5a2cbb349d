//! Ordered keys and values in a log-structured store (LLAMA) on a simulated drive, in both forms: the log is in the host, or in
//! the drive (OX-ELEOS). The power fails, and the store reopens with all committed data.
//!
//! Run it with `cargo run --release -p nandscape --example bw_tree`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::rc::Rc;

use nandscape::drive::{QueueDrive, QueueId};
use nandscape::host::llama::{AnyStore, BwTree, Change, Config, EleosStore, Host, LogConfig, LogStore};
use nandscape::sim::{Executor, Seed, Sim, Span};
use nandscape::ssd::{Profile, Ssd, StoreKind};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Opens the tree on the drive, or makes one where nothing is.
async fn open(sim: &Sim, ssd: &Ssd, is_offloaded: bool, number: u16) -> Result<BwTree<AnyStore>> {
    let queue = |id| QueueDrive::new(sim, ssd.controller(), id, 64).map_err(|status| status.to_string());
    let (host, drive) = (Host::free(sim), queue(QueueId(number))?);
    let store = if is_offloaded {
        AnyStore::Eleos(EleosStore::open(&host, drive, &*queue(QueueId::ADMIN)?).await?)
    } else {
        let config = LogConfig { segment_bytes: 2 << 20, ..LogConfig::default() };
        AnyStore::Log(Box::new(LogStore::open(&host, drive, config).await?))
    };
    Ok(BwTree::open(&host, store, Config { memory: 1 << 20, ..Config::default() }).await?)
}

fn account(number: u64) -> Vec<u8> {
    format!("account {number:06}").into_bytes()
}

async fn work(sim: &Sim, ssd: &Rc<Ssd>, is_offloaded: bool) -> Result<()> {
    let tree = open(sim, ssd, is_offloaded, 1).await?;
    for number in 0..5_000 {
        tree.put(&account(number), &100u64.to_le_bytes().repeat(20)).await?;
    }
    // A transfer survives as a whole or not at all.
    let (less, more) = (90u64.to_le_bytes().repeat(20), 110u64.to_le_bytes().repeat(20));
    tree.apply(&[Change::Put(account(17), less.clone()), Change::Put(account(4_000), more)]).await?;
    tree.commit().await?;
    tree.delete(&account(20)).await?;
    let stats = tree.stats();
    drop(tree);

    ssd.media().cut_power(Span::from_ms(1));
    sim.sleep(Span::from_ms(200)).await;

    let tree = open(sim, ssd, is_offloaded, 2).await?;
    assert_eq!(tree.get(&account(17)).await?, Some(less), "it was committed");
    let some = tree.scan(&account(18), 3).await?;
    let names: Vec<_> = some.iter().map(|(key, _)| String::from_utf8_lossy(key)).collect();
    let form = if is_offloaded { "offloaded" } else { "conventional" };
    println!("{form}: {} pages, {} flushes; after a power cut {names:?}", stats.pages, stats.store.flushes);
    println!("    memory of the host that says where pages lie: {} bytes", stats.store.memory);
    Ok(())
}

fn main() -> Result<()> {
    for is_offloaded in [false, true] {
        let mut profile = Profile::load("default")?;
        for change in ["capacity=64MiB", "ftl.kind=ox_block", "buffer.mode=volatile"] {
            profile.set(change)?;
        }
        let mut executor = Executor::new();
        let sim = executor.sim();
        let ssd = Rc::new(Ssd::new(&sim, &profile.resolve()?, StoreKind::Ram, Seed::new(1))?);
        executor.block_on(work(&sim, &ssd, is_offloaded))??;
    }
    Ok(())
}
