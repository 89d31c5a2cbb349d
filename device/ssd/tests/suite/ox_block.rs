//! Drives with OX-Block pass the checks that every drive must, report every loss of data over power cuts and failing flash,
//! and reject what they cannot do.
//!
//! `NANDSCAPE_TEST_SEED` gives another seed.

use std::rc::Rc;

use nandscape_device_ftl_core::Plant;
use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Resolved, Ssd};
use nandscape_drive::conformance::{self, Ask, Damaged, Deallocation, Load, Subject};
use nandscape_drive::testing::tenant::{Tenant, run};
use nandscape_drive::{HostIdentity, HostMem, Issuer, QueueDrive, QueueId, TransportModel};
use nandscape_sim::{Executor, Seed, Sim, Span};
use nandscape_wire_nvme::manage::{self, SanitizeStatus};
use nandscape_wire_nvme::register::{self, CC_EN};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry, log};
use zerocopy::FromBytes as _;

const SMALL: [&str; 11] = [
    "ftl.kind=ox_block",
    "capacity=8MiB",
    "geometry.channels=2",
    "geometry.dies_per_channel=1",
    "geometry.planes_per_die=2",
    "geometry.pages_per_block=16",
    "buffer.size=256KiB",
    "controller.queue_pairs=2",
    "controller.max_transfer=128KiB",
    "ftl.over_provisioning=42.86%",
    "ftl.ox_block.checkpoint_interval=50ms",
];

const DEAD_PLANE: &str = "dead channel=0 die=0 plane=0";

fn seed() -> u64 {
    std::env::var("NANDSCAPE_TEST_SEED").map_or(1, |text| text.parse().expect("NANDSCAPE_TEST_SEED is a number"))
}

fn resolved(changes: &[&str]) -> Resolved {
    let mut profile = Profile::load("default").expect("a built-in profile");
    SMALL.iter().chain(changes).for_each(|change| profile.set(change).expect("a valid change"));
    profile.resolve().unwrap_or_else(|error| panic!("{changes:?}: {error}"))
}

fn ssd(sim: &Sim, changes: &[&str]) -> Rc<Ssd> {
    let ssd = Rc::new(Ssd::new(sim, &resolved(changes), StoreKind::Ram, Seed::new(9)).expect("memory"));
    assert!(ssd.ox_block().is_some());
    ssd
}

fn subject(sim: &Sim, changes: &[&str]) -> Subject {
    let ssd = ssd(sim, changes);
    let drive = QueueDrive::new(sim, ssd.controller(), QueueId(1), 17).expect("a free queue pair");
    Subject { drive, deallocation: Deallocation::WholeUnitsReadZeros, check: Box::new(move || ssd.check()) }
}

#[test]
fn passes_every_check_with_each_buffer_mode() {
    for mode in ["capacitor", "volatile", "register", "programmed", "through"] {
        let mode = format!("buffer.mode={mode}");
        let passed = conformance::all(&|sim| subject(sim, &[&mode]), seed());
        passed.unwrap_or_else(|what| panic!("{mode}: {what}"));
    }
}

#[test]
fn keeps_its_data_with_transactions_and_a_map_that_is_not_in_memory() {
    let load = Load { steps: 2_500, depth: 16, most_blocks: 96, span: u64::MAX, reads: 0.2, trims: 0.1 };
    for changes in [
        &["ftl.ox_block.transactions=true", "buffer.mode=volatile"][..],
        &["ftl.ox_block.map_memory=4KiB", "geometry.page_size=4KiB", "ftl.mapping_unit=4KiB"],
        &["geometry.factory_bad_blocks=5%", "lba_size=512", "buffer.mode=volatile"],
        &["ftl.over_provisioning=12%", "ftl.ox_block.gc_slots=1"],
        &["ftl.ox.bad_blocks=list", "ftl.ox.provisioning=planes_first", "ftl.ox.mapping=whole", "ftl.ox.gc=oldest"],
        &["ftl.ox.provisioning=channel_lines", "buffer.mode=programmed"],
        &["ftl.ox.gc=cost_benefit", "ftl.ox.write_cache=half_full", "buffer.mode=volatile"],
    ] {
        let passed = conformance::data(&|sim| subject(sim, changes), &load, seed());
        passed.unwrap_or_else(|what| panic!("{changes:?}: {what}"));
    }
}

/// A normal shutdown takes a checkpoint, an abrupt one does not (Base 3.6.1 and 3.6.2).
#[test]
fn a_normal_shutdown_takes_a_checkpoint_and_an_abrupt_one_does_not() {
    const READY: u32 = CC_EN | 6 << 16 | 4 << 20;
    for (notification, checkpoints) in [(0b01, 1), (0b10, 0)] {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let ssd = ssd(&sim, &["buffer.mode=volatile", "ftl.ox_block.checkpoint_interval=10s"]);
        let identity = HostIdentity {
            hostid: [1; 16],
            hostnqn: "nqn.2026-11.org.example:1".to_owned(),
            ..HostIdentity::default()
        };
        let controller = ssd.subsystem().new_controller(identity, TransportModel::Message).expect("a free controller");
        controller.set_register(register::CC, READY);
        let drive = QueueDrive::new(&sim, controller.clone(), QueueId(1), 8).expect("a free queue pair");
        let issuer = Issuer::new(&sim);
        let taken = executor.block_on(async {
            let write = SubmissionEntry::blocks(IoOpcode::WRITE, 1, 0, 8);
            assert_eq!(issuer.execute(&*drive, write, HostMem::zeroed(4_096)).await.status, Status::SUCCESS);
            let before = ssd.ox_block().expect("it is one").checkpoints();
            controller.set_register(register::CC, READY | notification << 14);
            let begun = sim.now();
            while controller.register(register::CSTS) >> 2 & 0b11 != 0b10 {
                assert!(sim.now() - begun < Span::from_ms(1_000), "SHN {notification}: the shutdown does not end");
                sim.sleep(Span::from_us(100)).await;
            }
            ssd.ox_block().expect("it is one").checkpoints() - before
        });
        assert_eq!(taken, Ok(checkpoints), "SHN {notification}");
    }
}

/// A plane that dies under load takes its blocks with it. The other planes continue, including those of its channel, and
/// tables agree.
#[test]
fn a_drive_goes_on_when_a_plane_dies() {
    for provisioning in ["lines", "planes_first", "channel_lines"] {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let provisioning = format!("ftl.ox.provisioning={provisioning}");
        let ssd = ssd(&sim, &[&provisioning, "ftl.over_provisioning=200%", "buffer.mode=volatile", "lba_size=4KiB"]);
        let (drive, issuer) = (QueueDrive::new(&sim, ssd.controller(), QueueId(1), 17).unwrap(), Issuer::new(&sim));
        let mut rng = Seed::new(seed()).rng();
        let (spare, blocks) = (ssd.ftl_stats().spare_blocks, ssd.media().geometry().blocks_per_plane());
        let written = executor.block_on(async {
            for number in 0..20_000 {
                if number == 5_000 {
                    ssd.media().faults().add(DEAD_PLANE.parse().expect("a rule"));
                }
                let write = SubmissionEntry::blocks(IoOpcode::WRITE, 1, rng.below(2_000), 1);
                let status = issuer.execute(&*drive, write, HostMem::zeroed(4_096)).await.status;
                assert_eq!(status, Status::SUCCESS, "{provisioning}: write {number}");
            }
        });
        written.expect("the writes end");
        let stats = ssd.ftl_stats();
        assert!(stats.planes_out_of_use == 1 && stats.gc_blocks > 0 && !ssd.is_read_only(), "{provisioning}");
        assert_eq!(
            stats.spare_blocks,
            (spare.0 - u64::from(blocks), spare.1),
            "{provisioning}: its blocks are no spare ones"
        );
        ssd.check().unwrap_or_else(|wrong| panic!("{provisioning}: {wrong}"));
    }
}

/// With too few blocks on the other planes, all data is readable, and the drive is read-only.
#[test]
fn a_drive_without_spare_blocks_for_a_dead_plane_becomes_read_only() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let ssd = ssd(&sim, &["ftl.over_provisioning=20%", "buffer.mode=volatile", "lba_size=4KiB"]);
    let (drive, issuer) = (QueueDrive::new(&sim, ssd.controller(), QueueId(1), 17).unwrap(), Issuer::new(&sim));
    let refused = executor.block_on(async {
        ssd.media().faults().add(DEAD_PLANE.parse().expect("a rule"));
        for block in (0..2_000).cycle().take(20_000) {
            let write = SubmissionEntry::blocks(IoOpcode::WRITE, 1, block, 1);
            let status = issuer.execute(&*drive, write, HostMem::zeroed(4_096)).await.status;
            if status != Status::SUCCESS {
                return Some(status);
            }
        }
        None
    });
    assert!(refused.expect("the writes end").is_some(), "a dead plane is not noticed");
    assert_eq!(ssd.ftl_stats().spare_blocks.0, 0);
    let why = ssd.read_only().expect("it is read-only");
    assert!(why.contains("blocks"), "{why}");
}

#[test]
fn a_planted_drive_is_not_reported_as_erased() {
    for (plant, expected) in [(None, manage::GLOBAL_DATA_ERASED), (Some(Plant::Full), 0)] {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let ssd = ssd(&sim, &[]);
        if let Some(plant) = plant {
            ssd.plant(plant, Seed::new(seed()), &mut |_| ());
        }
        let mem = HostMem::zeroed(512);
        let host = Tenant::new(&sim, &*ssd.subsystem(), 1);
        let get = SubmissionEntry::get_log_page(log::SANITIZE_STATUS, 0, 512);
        executor.block_on(run(&host.admin, get, mem.clone())).unwrap().unwrap();
        let status = SanitizeStatus::read_from_prefix(&mem.to_vec()).unwrap().0.status.get();
        assert_eq!(status, manage::SANITIZE_NEVER | expected, "{plant:?}");
    }
}

/// A planted drive starts, its tables agree, and it behaves like a written one: further overwrites have the same write
/// amplification.
#[test]
fn a_planted_drive_is_as_one_that_was_written() {
    for (plant, changes) in [
        (Plant::Full, &["geometry.factory_bad_blocks=5%"][..]),
        (Plant::Steady, &[]),
        (Plant::Steady, &["ftl.ox_block.map_memory=4KiB", "geometry.page_size=4KiB", "ftl.mapping_unit=4KiB"]),
    ] {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let ssd = ssd(&sim, changes);
        let report = ssd.plant(plant, Seed::new(seed()), &mut |_| ());
        executor.block_on(ssd.in_service()).unwrap();
        ssd.check().unwrap_or_else(|what| panic!("{plant:?} {changes:?}: {what}"));
        let (units, tables) = (2_048, ssd.tables());
        assert_eq!(tables.on_flash, units);
        let drive = QueueDrive::new(&sim, ssd.controller(), QueueId(1), 17).expect("a free queue pair");
        let issuer = Issuer::new(&sim);
        let mut rng = Seed::new(seed()).child("overwrites").rng();
        let before = ssd.ftl_stats();
        let blocks = 8 << 20 >> 12;
        executor
            .block_on(async {
                for _ in 0..3 * blocks {
                    let slba = rng.below(blocks) * 8;
                    let write = SubmissionEntry::blocks(IoOpcode::WRITE, 1, slba, 8);
                    let done = issuer.execute(&*drive, write, HostMem::zeroed(4_096)).await;
                    assert_eq!(done.status, Status::SUCCESS);
                }
            })
            .unwrap();
        let counted = ssd.ftl_stats().since(&before);
        let waf = (counted.host_units + counted.gc_units) as f64 / counted.host_units as f64;
        if plant == Plant::Steady {
            assert!((waf / report.waf - 1.0).abs() < 0.25, "{changes:?}: planted {}, run {waf}", report.waf);
        }
        ssd.check().unwrap_or_else(|what| panic!("{plant:?} {changes:?}: {what}"));
    }
}

/// A host uses a drive with faults.
fn survive(changes: &[&str], asks: &[Ask], seed: u64) -> Result<(), String> {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let ssd = ssd(&sim, changes);
    let drive = QueueDrive::new(&sim, ssd.controller(), QueueId(1), 32).expect("a free queue pair");
    let counted = ssd.clone();
    let mut host = Damaged::new(&sim, drive, move || counted.media().power_cuts(), seed);
    let ended = executor.block_on(async {
        for _ in 0..30 {
            host.round(asks).await?;
        }
        host.read_all().await
    });
    ended.map_err(|stalled| format!("{stalled}: {:?}", ssd.ftl_stats()))??;
    ssd.check()
}

#[test]
fn power_cuts_and_failing_flash_lose_nothing_but_what_is_told() {
    let faults = [
        r#"faults=["power_cut every=311 count=8"]"#,
        r#"faults=["power_cut program probability=1% count=6", "fail program every=170 count=4"]"#,
        r#"faults=["power_cut erase off=5ms every=5 count=5", "fail erase probability=3% count=3"]"#,
    ];
    for mode in ["capacitor", "volatile", "register", "programmed", "through"] {
        let mode = format!("buffer.mode={mode}");
        for fault in faults {
            let changes = [&mode[..], fault, "ftl.over_provisioning=100%"];
            survive(&changes, &Ask::ALL, seed()).unwrap_or_else(|what| panic!("{changes:?}, seed {}: {what}", seed()));
        }
    }
}

const RIVALS: [&str; 2] = ["ftl.kind=pblk", "ftl.kind=spdk"];

#[test]
fn the_rivals_pass_every_check_with_each_buffer_mode() {
    for kind in RIVALS {
        for mode in ["capacitor", "volatile", "register", "through"] {
            let mode = format!("buffer.mode={mode}");
            let passed = conformance::all(&|sim| subject(sim, &[kind, &mode]), seed());
            passed.unwrap_or_else(|what| panic!("{kind}, {mode}: {what}"));
        }
    }
}

/// A power cut undoes deallocations there, so none is issued.
#[test]
fn the_rivals_lose_nothing_but_what_is_told() {
    let faults = [
        r#"faults=["power_cut every=311 count=8"]"#,
        r#"faults=["power_cut program probability=1% count=6", "fail program every=170 count=4"]"#,
        r#"faults=["power_cut erase off=5ms every=5 count=5", "fail erase probability=3% count=3"]"#,
    ];
    for kind in RIVALS {
        for mode in ["capacitor", "volatile", "through"] {
            for fault in faults {
                let mode = format!("buffer.mode={mode}");
                let changes = [kind, &mode, fault, "ftl.over_provisioning=100%"];
                let asks = [Ask::Write, Ask::Read, Ask::Flush];
                survive(&changes, &asks, seed()).unwrap_or_else(|what| panic!("{changes:?}, seed {}: {what}", seed()));
            }
        }
    }
}

#[test]
fn what_it_cannot_do_is_refused() {
    let error = |changes: &[&str]| {
        let mut profile = Profile::load("default").unwrap();
        SMALL.iter().chain(changes).for_each(|change| profile.set(change).expect("a valid change"));
        profile.resolve().unwrap_err().to_string()
    };
    for (changes, expected) in [
        (
            &["ftl.mapping_unit=32KiB", "geometry.page_size=32KiB"][..],
            "ftl.kind: \"ox_block\": mapping units are 16KiB",
        ),
        (&["ftl.kind=page", "buffer.mode=programmed"], "buffer.mode: \"programmed\" is for ftl.kind = \"ox_block\""),
        (&["ftl.kind=pblk", "buffer.mode=programmed"], "buffer.mode: \"programmed\" is for ftl.kind = \"ox_block\""),
        (&["ftl.ox_block.gc_threshold=1TiB"], "ftl.ox_block.gc_threshold: 1TiB is out of range; below"),
        (&["ftl.ox_block.gc_threshold=100%"], "ftl.ox_block.gc_threshold: 1 is out of range"),
        (&["ftl.ox.gc=worst"], "ftl.ox.gc: \"worst\" is none of most_garbage, cost_benefit, oldest"),
        (&["ftl.kind=pblk", "ftl.ox_block.transactions=true"], "ftl.kind: \"pblk\": transactions need a log"),
        (&["ftl.ox_block.gc_slots=0"], "ftl.ox_block.gc_slots: 0 is out of range"),
        (
            &["timing.program_unit=word_line", "timing.program=1ms", "geometry.pages_per_block=18"],
            "timing.program_unit: \"word_line\" does not go with",
        ),
    ] {
        let found = error(changes);
        assert!(found.starts_with(expected), "{changes:?}: {found}");
    }
    let resolved = resolved(&[]);
    let mut again = Profile::parse("default", &resolved.to_toml()).unwrap().resolve().unwrap();
    // The text alone asks for its over-provisioning; with the changes, it was compared with that of the profile.
    again.notes.clone_from(&resolved.notes);
    assert_eq!(again, resolved);
}
