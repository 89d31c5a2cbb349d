//! Tenants that own channels, or dies of shared channels: the writes of one do not affect the reads of the other, except on
//! shared resources.

use std::cell::Cell;
use std::rc::Rc;

use nandscape_device_ftl_core::Plant;
use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Ssd};
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Completion, HostMem, Issuer, Stage};
use nandscape_sim::{Executor, Seed, Span};
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

use crate::rig::{queue, resolved};

/// Two tenants by channels.
const BY_CHANNELS: &str = r#"
[[ftl.parts]]
name = "reader"
channels = "0-1"
[[ftl.parts]]
name = "writer"
channels = "2-3"
"#;

/// Two tenants by dies: each has one die of each channel.
pub(crate) const BY_DIES: &str = r#"
[[ftl.parts]]
name = "reader"
channels = "0-3"
dies = "0"
[[ftl.parts]]
name = "writer"
channels = "0-3"
dies = "1"
"#;

/// The kinds of FTL that a part may have.
const KINDS: [&str; 4] = ["page", "ox_block", "pblk", "spdk"];
const READS: u64 = 300;
/// Writes of 4 KiB during each read, and the time between two reads, in which they end.
const WRITES: usize = 96;
const SLOT: Span = Span::from_ms(60);

/// Reads of 4 KiB, one after the other, during writes if any.
struct Reads {
    all: Vec<Completion>,
    latencies: Vec<Span>,
    /// Blocks that the writer's garbage collection has erased.
    collected: u64,
}

fn reads(parts: &str, kinds: [&str; 2], changes: &[&str], with_writes: bool) -> Reads {
    let mut text = parts.to_owned();
    for (name, kind) in ["reader", "writer"].iter().zip(kinds) {
        let keys = format!("name = \"{name}\"\nftl.kind = \"{kind}\"\nftl.over_provisioning = \"100%\"\n");
        text = text.replace(&format!("name = \"{name}\"\n"), &keys);
    }
    let profile = resolved(&text, changes);
    let mut executor = Executor::new();
    let sim = executor.sim();
    let ssd = Ssd::new(&sim, &profile, StoreKind::None, Seed::new(3)).expect("memory for a small drive");
    if ssd.can_be_planted() {
        ssd.plant(Plant::Full, Seed::new(4), &mut |_| ());
    }
    // A drive with one FTL has one namespace, of which each tenant uses a half.
    let units = profile.namespaces()[0] / 4_096;
    let (nsid, first, units) = if ssd.parts().len() == 1 { (1, units / 2, units / 2) } else { (2, 0, units) };
    let (reader, writer) = (queue(&sim, &ssd, 1, 1), queue(&sim, &ssd, nsid, 2));
    let issuer = Issuer::new(&sim);
    let read = |unit: u64| SubmissionEntry::blocks(IoOpcode::READ, 1, unit * 8, 8);
    let write = |nsid, unit: u64| SubmissionEntry::blocks(IoOpcode::WRITE, nsid, unit * 8, 8);
    let (all, latencies) = executor
        .block_on(async {
            ssd.in_service().await;
            // A drive that cannot be planted is written.
            for unit in 0..units {
                if !ssd.can_be_planted() {
                    issuer.execute(&*reader, write(1, unit), HostMem::none()).await;
                }
            }
            sim.sleep(Span::from_s(1)).await;
            let mut rng = Seed::new(5).rng();
            let (mut all, mut latencies, mut writes, mut next) = (Vec::new(), Vec::new(), Vec::new(), 0u64);
            let start = sim.now();
            for number in 0..READS {
                // Each read is submitted at the same time with and without writes, while the writes are in progress.
                sim.sleep_until(start + SLOT * number).await;
                for _ in 0..if with_writes { WRITES } else { 0 } {
                    next = (next + 7_919) % units;
                    writes.push(issuer.execute(&*writer, write(nsid, first + next), HostMem::none()));
                }
                sim.sleep(Span::from_us(5 + rng.below(2_500))).await;
                let (unit, begun) = (rng.below(units), sim.now());
                let ended = issuer.execute(&*reader, read(unit), HostMem::none()).await;
                assert!(ended.status.is_success(), "read {number}");
                latencies.push(sim.now() - begun);
                all.push(ended);
                for write in writes.drain(..) {
                    assert!(write.await.status.is_success(), "write beside read {number}");
                }
            }
            (all, latencies)
        })
        .unwrap_or_else(|stalled| panic!("{stalled}: {kinds:?}"));
    ssd.check().expect("sound tables");
    Reads { all, latencies, collected: ssd.parts().last().expect("it has parts").stats().gc_blocks }
}

impl Reads {
    fn waited(&self, stage: Stage) -> Span {
        self.all.iter().map(|read| read.breakdown.stage(stage)).sum()
    }

    fn sum(&self) -> Span {
        self.latencies.iter().copied().sum()
    }
}

/// Each pair of kinds: no read waits for flash that the other uses, and each takes exactly the same time as alone, to the
/// nanosecond.
#[test]
fn tenants_with_channels_of_their_own_do_not_meet() {
    for reader in KINDS {
        for writer in KINDS {
            let (alone, beside) =
                (reads(BY_CHANNELS, [reader, writer], &[], false), reads(BY_CHANNELS, [reader, writer], &[], true));
            let what = format!("{reader} beside {writer}");
            assert_eq!(beside.latencies, alone.latencies, "{what}");
            assert_eq!(beside.waited(Stage::DieWait) + beside.waited(Stage::ChannelWait), Span::ZERO, "{what}");
        }
    }
}

/// The array of a die belongs to one tenant; both share the channel.
#[test]
fn tenants_with_dies_of_their_own_meet_on_channels_only() {
    for reader in KINDS {
        for writer in KINDS {
            let (alone, beside) =
                (reads(BY_DIES, [reader, writer], &[], false), reads(BY_DIES, [reader, writer], &[], true));
            let what = format!("{reader} beside {writer}");
            assert_eq!(beside.waited(Stage::DieWait), Span::ZERO, "{what}");
            let later = beside.sum() - alone.sum();
            assert_eq!(beside.waited(Stage::ChannelWait), later, "{what}: all of the difference");
            assert!(beside.waited(Stage::ChannelWait) > Span::ZERO, "{what}: the channels are shared");
            assert!(later < Span::from_us(40) * READS, "{what}: transfers of pages, not programs: {later}");
        }
    }
}

/// Without parts both use all dies, and reads wait for programs and erases.
#[test]
fn without_parts_reads_wait_for_the_others_writes() {
    let whole = |with_writes| reads("", ["page", "page"], &["ftl.over_provisioning=100%"], with_writes);
    let (alone, beside) = (whole(false), whole(true));
    assert!(beside.waited(Stage::DieWait) > Span::ZERO);
    let behind_writes: Span =
        beside.all.iter().map(|read| read.breakdown.waited(Stage::DieWait, cause::HOST_WRITE)).sum();
    assert!(behind_writes > Span::ZERO && beside.sum() > alone.sum() + Span::from_us(10) * READS);
}

/// Continuous collections of one tenant do not affect the other.
#[test]
fn garbage_collection_stays_with_its_tenant() {
    for (parts, scheme) in [(BY_CHANNELS, "controller"), (BY_CHANNELS, "channel"), (BY_DIES, "plane")] {
        let scheme = format!("ftl.gc.scheme={scheme}");
        let beside = reads(parts, ["page", "page"], &[&scheme, "capacity=8MiB"], true);
        assert!(beside.collected > 0, "{scheme}");
        let waits = |stage| -> Span { beside.all.iter().map(|read| read.breakdown.waited(stage, cause::GC)).sum() };
        assert_eq!(waits(Stage::DieWait), Span::ZERO, "{scheme}");
        assert_eq!(waits(Stage::Queue), Span::ZERO, "{scheme}");
    }
}

/// The flash of each tenant has the drive's numbers of its dies.
#[test]
fn dies_have_their_numbers_in_the_drive() {
    let parts = BY_DIES.replace("dies = \"1\"", "dies = \"1,3\"").replace("dies = \"0\"", "dies = \"0,2\"");
    let sim = Executor::new().sim();
    let ssd =
        Ssd::new(&sim, &resolved(&parts, &["geometry.dies_per_channel=4"]), StoreKind::None, Seed::new(1)).unwrap();
    let dies: Vec<&[u32]> = ssd.parts().iter().map(|part| part.media().dies_of_drive()).collect();
    assert_eq!(dies, [&[0, 2][..], &[1, 3]]);
    assert_eq!(ssd.usage().channels.len(), 4, "a channel that both use is told of once");
    assert_eq!(ssd.usage().planes.len(), 16);
    let mut names: Vec<String> =
        ssd.parts().iter().flat_map(|part| part.media().plane_tracks()).map(|track| sim.trace().name(*track)).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 16, "{names:?}");
}

/// A rule of the fault plan names a die by its number in the drive.
#[test]
fn faults_strike_the_die_that_they_name() {
    for (die, nsid) in [(0, 1), (1, 2)] {
        let fault = format!("faults=['uncorrectable die={die}']");
        let mut executor = Executor::new();
        let sim = executor.sim();
        let ssd = Ssd::new(&sim, &resolved(BY_DIES, &[&fault]), StoreKind::None, Seed::new(1)).unwrap();
        ssd.plant(Plant::Full, Seed::new(2), &mut |_| ());
        let issuer = Issuer::new(&sim);
        for (number, id) in [(1, 1), (2, 2)] {
            let drive = queue(&sim, &ssd, number, id);
            let entry = SubmissionEntry::blocks(IoOpcode::READ, number, 0, 8);
            let ended = executor.block_on(issuer.execute(&*drive, entry, HostMem::none())).unwrap();
            assert_eq!(ended.status.is_success(), number != nsid, "die {die}, namespace {number}");
        }
    }
}

#[test]
fn parts_by_dies_share_capacity_and_buffer_by_dies() {
    let parts = BY_DIES.replace("dies = \"1\"", "dies = \"1-3\"");
    let resolved = resolved(&parts, &["geometry.dies_per_channel=4"]);
    let mib: Vec<u64> = resolved.namespaces().iter().map(|bytes| bytes >> 20).collect();
    assert_eq!(mib, [3, 9]);
    // A resolved profile resolves to the same values again.
    let keys = Profile::parse("again", &resolved.to_toml()).unwrap().keys;
    let again = Profile::of_keys("parts", keys).resolve().unwrap();
    assert_eq!((again.parts(), &again.keys), (resolved.parts(), &resolved.keys));
}

/// When writes of a tenant end that come once its programs on all channels have ended, while those of the other tenant still last: at
/// 1.1 ms, where programs take 1 ms and the other tenant's began at 0.5 ms.
fn second_writes_end(order: &str) -> Span {
    let order = format!("timing.interleaving={order}");
    let profile = resolved(BY_DIES, &["buffer.mode=through", "timing.program=1ms", "geometry.page_size=16KiB", &order]);
    let mut executor = Executor::new();
    let sim = executor.sim();
    let ssd = Ssd::new(&sim, &profile, StoreKind::None, Seed::new(3)).expect("memory for a small drive");
    let queues = [queue(&sim, &ssd, 1, 1), queue(&sim, &ssd, 2, 2)];
    let ended = Rc::new(Cell::new(Span::ZERO));
    let done = executor.block_on(async {
        ssd.in_service().await;
        let begun = sim.now();
        for (at, nsid, first) in [(0, 1, 0), (500, 2, 0), (1_100, 1, 4)] {
            sim.sleep_until(begun + Span::from_us(at)).await;
            // A page for each channel.
            for page in first..first + 4_u64 {
                let (sim, queue, ended) = (sim.clone(), queues[nsid as usize - 1].clone(), ended.clone());
                let entry = SubmissionEntry::blocks(IoOpcode::WRITE, nsid, page * 32, 32);
                sim.clone().spawn(async move {
                    let done = Issuer::new(&sim).execute(&*queue, entry, HostMem::none()).await;
                    assert!(done.status.is_success());
                    ended.set(sim.now() - begun);
                });
            }
        }
        sim.sleep(Span::from_ms(10)).await;
    });
    done.expect("it ends");
    ended.get()
}

/// Rows belong to channels, and dies of one channel to two tenants: where channels program in rows, programs of one tenant wait for
/// those of the other, here until 1.5 ms.
#[test]
fn tenants_of_a_channel_share_its_rows() {
    let (free, rows) = (second_writes_end("free"), second_writes_end("rows"));
    let around = |span: Span, us: u64| (us..us + 150).contains(&(span.ns() / 1_000));
    assert!(around(free, 2_100) && around(rows, 2_500), "{free} free, {rows} in rows");
}
