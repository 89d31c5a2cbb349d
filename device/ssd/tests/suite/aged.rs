//! A drive that has a life behind it says so: SMART's Percentage Used, spare and media errors, and the wear figures of each kind of
//! FTL.

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Ssd};
use nandscape_drive::conformance::Host;
use nandscape_drive::{HostMem, QueueDrive, QueueId};
use nandscape_sim::{Executor, Seed, Sim};
use nandscape_wire_nvme::log::{self, Smart, WARNING_READ_ONLY, WARNING_SPARE};
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};
use zerocopy::FromBytes;

const SMALL: [&str; 7] = [
    "capacity=8MiB",
    "geometry.channels=2",
    "geometry.dies_per_channel=1",
    "geometry.planes_per_die=1",
    "geometry.pages_per_block=16",
    "buffer.size=256KiB",
    "timing.rated_erases=3000",
];

fn drive(sim: &Sim, base: &str, changes: &[&str]) -> Ssd {
    let mut profile = Profile::load(base).expect("a built-in profile");
    profile.set_all(SMALL).and_then(|()| profile.set_all(changes)).expect("valid changes");
    let resolved = profile.resolve().unwrap_or_else(|error| panic!("{changes:?}: {error}"));
    Ssd::new(sim, &resolved, StoreKind::Ram, Seed::new(4)).expect("memory for a small drive")
}

fn host(sim: &Sim, ssd: &Ssd, id: QueueId) -> Host {
    Host::new(sim, QueueDrive::new(sim, ssd.controller(), id, 33).expect("a free queue pair"))
}

async fn smart(admin: &Host) -> Smart {
    let mem = HostMem::zeroed(512);
    let entry = SubmissionEntry::get_log_page(log::SMART, 0, 512);
    assert!(admin.execute(entry, mem.clone()).await.expect("it ends once").status.is_success());
    Smart::read_from_bytes(&mem.to_vec()).expect("512 bytes")
}

/// Erases of a life before the run are known to every kind of FTL.
#[test]
fn every_ftl_knows_the_life_before_the_run() {
    for kind in [
        &["ftl.kind=page"][..],
        &["ftl.kind=ox_block", "ftl.over_provisioning=200%"],
        &["ftl.kind=zone", "lba_size=4KiB", "buffer.size=4MiB"],
        &["ftl.kind=open_channel", "lba_size=4KiB", "buffer.size=4MiB", "buffer.mode=through"],
        &["ftl.kind=pblk", "ftl.over_provisioning=200%"],
        &["ftl.kind=spdk", "ftl.over_provisioning=200%"],
    ] {
        for (cycles, used) in [("0", 0), ("1500", 50), ("6000", 200), ("60000", 255)] {
            let mut executor = Executor::new();
            let sim = executor.sim();
            let life = format!("wear.cycles={cycles}");
            let ssd = drive(&sim, "default", &[kind, &[life.as_str(), "wear.cycles_spread=2%"]].concat());
            let admin = host(&sim, &ssd, QueueId::ADMIN);
            let smart = executor
                .block_on(async {
                    ssd.in_service().await;
                    smart(&admin).await
                })
                .unwrap();
            let found = i32::from(smart.percentage_used);
            assert!((found - used).abs() <= used / 50 + 1, "{kind:?}, {cycles} erases: {found}% instead of {used}%");
            assert_eq!((smart.available_spare, smart.critical_warning), (100, 0), "{kind:?}");
            let (low, high, _) = ssd.parts()[0].stats().erases;
            let cycles: f64 = cycles.parse().expect("a number");
            let near = |erases: u32, least: f64, most: f64| {
                assert!(
                    (cycles * least..=cycles * most + 1.0).contains(&f64::from(erases)),
                    "{kind:?}: {low} to {high}"
                );
            };
            near(low, 0.85, 1.0);
            near(high, 1.0, 1.15);
        }
    }
}

/// An OX-Block finds them again in its tables when power has been cut.
#[test]
fn the_life_is_in_the_tables_of_an_ox_block() {
    for kind in ["ox_block", "pblk", "spdk"] {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let kind = format!("ftl.kind={kind}");
        let changes = [kind.as_str(), "ftl.over_provisioning=200%", "wear.cycles=1000"];
        let ssd = drive(&sim, "default", &[&changes[..], &["faults=['power_cut nth=40']"]].concat());
        let io = host(&sim, &ssd, QueueId(1));
        executor
            .block_on(async {
                ssd.in_service().await;
                for block in 0..200u64 {
                    let entry = SubmissionEntry::blocks(IoOpcode::WRITE, 1, block * 8, 8);
                    let _ = io.execute(entry, HostMem::from_bytes(&[7; 4_096])).await;
                }
                ssd.in_service().await;
            })
            .unwrap();
        let part = &ssd.parts()[0];
        assert!(part.media().power_cuts() > 0, "{kind}");
        let (low, high, _) = part.stats().erases;
        assert!((1_000..=1_000).contains(&low) && (1_000..1_010).contains(&high), "{kind}: {low} to {high} erases");
    }
}

/// Written until it takes no more: SMART's figures of the end of a life.
#[test]
fn smart_tells_of_the_end_of_a_life() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let worn =
        ["wear.cycles=3000", "wear.erase_failures=90%", "wear.failure_shape=12", "wear.rber=[0,0,0,0,0,0,0,0,0]"];
    let ssd = drive(&sim, "default", &worn);
    let (admin, io) = (host(&sim, &ssd, QueueId::ADMIN), host(&sim, &ssd, QueueId(1)));
    executor
        .block_on(async {
            let mut spare = smart(&admin).await.available_spare;
            let mut warned = false;
            assert_eq!(spare, 100);
            let mut block = 0;
            while !ssd.is_read_only() {
                let entry = SubmissionEntry::blocks(IoOpcode::WRITE, 1, block % 16_384, 256);
                let _ = io.execute(entry, HostMem::zeroed(128 << 10)).await;
                block += 256;
                let now = smart(&admin).await;
                assert!(now.available_spare <= spare && now.percentage_used >= 100);
                warned |= now.critical_warning == WARNING_SPARE;
                spare = now.available_spare;
            }
            let end = smart(&admin).await;
            assert!(warned, "of little spare, before the end");
            assert_eq!((end.available_spare, end.critical_warning), (0, WARNING_SPARE | WARNING_READ_ONLY));
            assert_eq!(ssd.read_only().as_deref(), Some("no spare blocks are left"));
            assert_eq!(end.media_errors.low.get(), 0, "all data can be read");
        })
        .unwrap();
}

/// Media and Data Integrity Errors counts the reads that no retry has corrected.
#[test]
fn reads_that_cannot_be_corrected_are_media_errors() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let ssd = drive(&sim, "default", &["wear.cycles=9000", "wear.shelf=3years", "wear.retry_steps=1"]);
    ssd.plant(nandscape_device_ftl::Plant::Full, Seed::new(1), &mut |_| ());
    let (admin, io) = (host(&sim, &ssd, QueueId::ADMIN), host(&sim, &ssd, QueueId(1)));
    let (failed, smart) = executor
        .block_on(async {
            let mut failed = 0;
            for block in 0..500 {
                let entry = SubmissionEntry::blocks(IoOpcode::READ, 1, block * 8, 8);
                let ended = io.execute(entry, HostMem::zeroed(4_096)).await.expect("it ends once");
                failed += u64::from(!ended.status.is_success());
            }
            (failed, smart(&admin).await)
        })
        .unwrap();
    assert!(failed > 0);
    assert_eq!(smart.media_errors.low.get(), failed);
    let counts = ssd.aging_counts().expect("it ages");
    assert!(counts.uncorrectable >= failed, "a read of the host is one of a page: {counts:?}");
}
