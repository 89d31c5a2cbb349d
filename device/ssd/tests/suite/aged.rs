//! Reports of a drive with a life before the run: Percentage Used, spare and media errors of SMART, and the wear figures of
//! each kind of FTL.

use std::io;

use nandscape_device_ftl_core::Plant;
use nandscape_device_ftl_core::component::BlockState;
use nandscape_device_media::{BlockId, StoreKind};
use nandscape_device_ssd::{Profile, Resolved, Ssd};
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

fn resolved(base: &str, changes: &[&str]) -> Resolved {
    let mut profile = Profile::load(base).expect("a built-in profile");
    profile.set_all(SMALL).and_then(|()| profile.set_all(changes)).expect("valid changes");
    profile.resolve().unwrap_or_else(|error| panic!("{changes:?}: {error}"))
}

fn drive(sim: &Sim, base: &str, changes: &[&str]) -> Ssd {
    Ssd::new(sim, &resolved(base, changes), StoreKind::Ram, Seed::new(4)).expect("memory for a small drive")
}

fn drive_of(sim: &Sim, changes: &[&str], seed: u64) -> io::Result<Ssd> {
    Ssd::new(sim, &resolved("default", changes), StoreKind::None, Seed::new(seed))
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

/// Every kind of FTL.
const KINDS: [&[&str]; 6] = [
    &["ftl.kind=page"],
    &["ftl.kind=ox_block", "ftl.over_provisioning=200%"],
    &["ftl.kind=zone", "lba_size=4KiB", "buffer.size=4MiB"],
    &["ftl.kind=open_channel", "lba_size=4KiB", "buffer.size=4MiB", "buffer.mode=through"],
    &["ftl.kind=pblk", "ftl.over_provisioning=200%"],
    &["ftl.kind=spdk", "ftl.over_provisioning=200%"],
];

/// Every kind of FTL includes the erases of a life before the run. Without a failure share, no block has failed.
#[test]
fn every_ftl_knows_the_life_before_the_run() {
    for kind in KINDS {
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

/// A life in which more blocks fail than the drive has outside its zones: the message counts the spare blocks of the new
/// drive.
#[test]
fn a_life_that_is_too_long_for_zones_is_told() {
    let error = |life: &[&str]| {
        let sim = Executor::new().sim();
        drive_of(
            &sim,
            &[&["ftl.kind=zone", "lba_size=4KiB", "buffer.size=4MiB", "geometry.blocks_per_plane=128"], life].concat(),
            1,
        )
        .err()
    };
    let spare = |told: &str| -> u64 {
        let (_, rest) = told.split_once("and the drive has ").expect("it tells");
        rest.split(' ').next().and_then(|count| count.parse().ok()).expect("a number")
    };
    let told = ["wear.erase_failures=30%", "wear.erase_failures=90%"]
        .map(|failures| error(&["wear.cycles=10000", failures]).expect("too many fail").to_string());
    assert_eq!(spare(&told[0]), spare(&told[1]), "{told:?}");
}

/// Blocks that failed in the life before the run are unusable for every kind of FTL: as many as the flash and SMART report.
/// The drive works with the rest.
#[test]
fn a_life_before_the_run_leaves_bad_blocks() {
    for (kind, seed) in KINDS.into_iter().flat_map(|kind| (4..12).map(move |seed| (kind, seed))) {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let life =
            ["wear.cycles=3000", "wear.erase_failures=4%", "wear.program_failures=4%", "geometry.blocks_per_plane=128"];
        let life = if kind.len() == 1 { [&life[..], &["ftl.over_provisioning=60%"]].concat() } else { life.to_vec() };
        let ssd = drive_of(&sim, &[kind, &life[..]].concat(), seed).expect("it has blocks to spare");
        let (admin, part) = (host(&sim, &ssd, QueueId::ADMIN), &ssd.parts()[0]);
        let smart = executor
            .block_on(async {
                ssd.in_service().await;
                smart(&admin).await
            })
            .unwrap();
        let (media, stats) = (part.media(), part.stats());
        let (grown, (left, new)) = (media.grown_bad_blocks(), stats.spare_blocks);
        // 7.84% of 256 blocks.
        assert!((3..=45).contains(&grown), "{kind:?}: {grown} blocks");
        let chunks = part.open_channel().is_some();
        if chunks {
            assert!(stats.retired_blocks >= grown, "whole chunks go out of use");
        } else {
            assert_eq!(stats.retired_blocks, grown, "{kind:?}");
            assert_eq!(new - left, grown, "{kind:?}: {left} of {new} spare blocks are left");
            assert_eq!(u64::from(smart.available_spare), left * 100 / new, "{kind:?}");
            assert_eq!(smart.critical_warning != 0, left * 10 < new, "{kind:?}: {left} of {new}");
        }
        for block in (0..media.geometry().blocks()).map(BlockId).filter(|block| media.is_grown_bad(*block)) {
            assert_eq!(part.block(block).state, BlockState::Bad, "{kind:?}");
        }
        assert_eq!(smart.percentage_used, 100, "{kind:?}: of the blocks that are left");
        ssd.check().unwrap_or_else(|problem| panic!("{kind:?}: {problem}"));
        if ssd.can_be_planted() {
            let fresh = drive_of(&sim, &[kind, &life[..]].concat(), seed).expect("as before");
            fresh.plant(Plant::Full, Seed::new(1), &mut |_| ());
            fresh.check().unwrap_or_else(|problem| panic!("{kind:?}, full: {problem}"));
        }
    }
}

/// A drive whose life used up its spare blocks is rejected, with the key to change; one with a few left can be filled and
/// worn in.
#[test]
fn a_drive_that_is_at_its_end_before_the_run_is_refused() {
    let (mut refused, mut taken) = (0, 0);
    for seed in 0..40 {
        for failures in
            ["wear.erase_failures=5%", "wear.erase_failures=10%", "wear.erase_failures=15%", "wear.erase_failures=40%"]
        {
            let sim = Executor::new().sim();
            match drive_of(
                &sim,
                &["wear.cycles=3000", failures, "geometry.planes_per_die=2", "ftl.over_provisioning=40%"],
                seed,
            ) {
                Ok(ssd) => {
                    assert!(ssd.parts()[0].stats().spare_blocks.0 > 0 && !ssd.is_read_only());
                    ssd.plant(Plant::Steady, Seed::new(seed), &mut |_| ());
                    ssd.check().unwrap_or_else(|problem| panic!("seed {seed}, {failures}: {problem}"));
                    taken += 1;
                }
                Err(problem) => {
                    let problem = problem.to_string();
                    assert!(problem.contains("wear.cycles") && problem.contains("spare"), "{problem}");
                    refused += 1;
                }
            }
        }
    }
    assert!(refused >= 40 && taken >= 20, "{refused} refused, {taken} taken");
}

/// SMART's totals are those of the life: one drive write per day for 18 months, with a write amplification of two.
#[test]
fn smart_totals_begin_with_the_life_before_the_run() {
    for kind in KINDS {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let life = ["wear.age=18months", "wear.write_amplification=2", "wear.reads_per_day=3", "wear.shelf=1month"];
        let ssd = drive(&sim, "default", &[kind, &life[..]].concat());
        let (admin, media) = (host(&sim, &ssd, QueueId::ADMIN), ssd.parts()[0].media());
        let smart = executor
            .block_on(async {
                ssd.in_service().await;
                smart(&admin).await
            })
            .unwrap();
        let past = media.past();
        let hours = past.powered.as_s() / 3_600.0;
        assert!((hours - 18.0 * 30.4 * 24.0).abs() < 200.0, "{hours} hours");
        assert_eq!(smart.power_on_hours.low.get(), hours as u64, "{kind:?}: without the time on the shelf");
        let geometry = media.geometry();
        let block = u64::from(geometry.page_size()) * u64::from(geometry.pages_per_block());
        let erases: u64 = (0..geometry.blocks()).map(|block| u64::from(media.erases(BlockId(block)))).sum();
        assert_eq!(past.programmed_bytes, erases * block);
        assert_eq!(smart.data_units_written.low.get(), (erases * block / 2).div_ceil(512_000), "{kind:?}");
        assert_eq!(smart.data_units_read.low.get(), past.read_bytes.div_ceil(512_000), "{kind:?}");
        assert_eq!((smart.power_cycles.low.get(), smart.unsafe_shutdowns.low.get()), (2, 0), "{kind:?}");
        // As many bytes as days and capacity make, up to the rounding of the erases of a block and blocks that are bad from the factory.
        let days = past.powered.as_s() / 86_400.0;
        let written = days * resolved("default", &[kind, &life[..]].concat()).capacity() as f64;
        assert!(
            (past.written_bytes as f64 / written - 1.0).abs() < 0.05,
            "{kind:?}: {} of {written}",
            past.written_bytes
        );
        assert!((past.read_bytes as f64 / written / 3.0 - 1.0).abs() < 0.05, "{kind:?}: {}", past.read_bytes);
    }
}

/// An OX-Block recovers them from its tables after a power cut.
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

/// SMART's figures at the end of life, on a drive written until it is read-only.
#[test]
fn smart_tells_of_the_end_of_a_life() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let worn = [
        "timing.rated_erases=100",
        "wear.cycles=50",
        "wear.erase_failures=90%",
        "wear.failure_shape=12",
        "wear.rber=[0,0,0,0,0,0,0,0,0]",
    ];
    let ssd = drive(&sim, "default", &worn);
    let (admin, io) = (host(&sim, &ssd, QueueId::ADMIN), host(&sim, &ssd, QueueId(1)));
    executor
        .block_on(async {
            let mut spare = smart(&admin).await.available_spare;
            let mut warned = false;
            assert!(spare > 0);
            let mut block = 0;
            while !ssd.is_read_only() {
                let entry = SubmissionEntry::blocks(IoOpcode::WRITE, 1, block % 16_384, 256);
                let _ = io.execute(entry, HostMem::zeroed(128 << 10)).await;
                block += 256;
                let now = smart(&admin).await;
                assert!(now.available_spare <= spare && now.percentage_used >= 50);
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

/// Media and Data Integrity Errors counts the reads that no retry corrected.
#[test]
fn reads_that_cannot_be_corrected_are_media_errors() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let ssd = drive(&sim, "default", &["wear.cycles=9000", "wear.shelf=3years", "wear.retry_steps=1"]);
    ssd.plant(nandscape_device_ftl_core::Plant::Full, Seed::new(1), &mut |_| ());
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
