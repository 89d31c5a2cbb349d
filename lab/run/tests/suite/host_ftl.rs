//! The page-mapping FTL on the host of an open-channel drive: every check of a drive, with collections through the host and in the
//! drive, and the traffic of each on the link.
//!
//! `NANDSCAPE_TEST_SEED` gives another seed.

use std::rc::Rc;

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Resolved, Ssd};
use nandscape_drive::conformance::{self, Deallocation, Load, Subject};
use nandscape_drive::{Drive, HostMem, Issuer, Node, QueueDrive, QueueId, Role, Use};
use nandscape_host_open_channel::{ChunkInfo, DieFifo, Geometry, Means, OpenChannel};
use nandscape_lab_run::chain::{Chain, ModelNode, drives_below, open};
use nandscape_lab_run::host_ftl::{self, HostFlash, Moving, Traffic};
use nandscape_sim::{Executor, Seed, Sim, Span};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

/// A drive of 4 parallel units with chunks of 16 strips of 16 KiB.
const BELOW: [&str; 10] = [
    "lba_size=4KiB",
    "geometry.channels=2",
    "geometry.dies_per_channel=2",
    "geometry.planes_per_die=1",
    "geometry.blocks_per_plane=24",
    "geometry.pages_per_block=16",
    "geometry.factory_bad_blocks=0%",
    "buffer.mode=through",
    "ftl.kind=open_channel",
    "controller.max_transfer=256KiB",
];

/// The FTL above it.
const ABOVE: [&str; 3] = ["buffer.size=256KiB", "controller.queue_pairs=2", "controller.max_transfer=256KiB"];

fn seed() -> u64 {
    std::env::var("NANDSCAPE_TEST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

fn below(changes: &[&str]) -> Resolved {
    let mut profile = Profile::load("default").expect("a built-in profile");
    profile.set_all(BELOW.iter().chain(changes)).expect("valid changes");
    profile.resolve().unwrap_or_else(|error| panic!("{changes:?}: {error}"))
}

fn queues(sim: &Sim, ssd: &Ssd) -> (Rc<dyn Drive>, Rc<dyn Drive>) {
    let queue = |id| QueueDrive::new(sim, ssd.controller(), id, 256).expect("a free queue pair");
    (queue(QueueId::ADMIN), queue(QueueId(1)))
}

/// The geometry and the chunks that a new drive reports.
fn told(profile: &Resolved) -> (Geometry, Vec<ChunkInfo>) {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let asked = async {
        let ssd = Ssd::new(&sim, profile, StoreKind::Ram, Seed::new(3)).expect("memory");
        let (admin, drive) = queues(&sim, &ssd);
        let host = OpenChannel::open(&sim, admin, drive, Means::Vector).await.expect("an open-channel drive");
        (*host.geometry(), host.report().await.expect("a report"))
    };
    executor.block_on(asked).expect("it ends")
}

/// An open-channel drive, and an FTL on its host.
struct Stacked {
    below: Rc<Ssd>,
    ssd: Rc<Ssd>,
    profile: Resolved,
    flash: Rc<HostFlash>,
    way: (Means, Moving),
}

fn stacked(sim: &Sim, changes: &[&str], above: &[&str], way: (Means, Moving)) -> Stacked {
    stacked_over(sim, changes, above, way, |host| host)
}

fn stacked_over(
    sim: &Sim,
    changes: &[&str],
    above: &[&str],
    way: (Means, Moving),
    with: impl Fn(OpenChannel) -> OpenChannel,
) -> Stacked {
    let (means, moving) = way;
    let profile = below(changes);
    let (geometry, report) = told(&profile);
    let below = Rc::new(Ssd::new(sim, &profile, StoreKind::Ram, Seed::new(3)).expect("memory"));
    let host = with(OpenChannel::with_geometry(sim, queues(sim, &below), geometry, means));
    let above: Vec<&str> = ABOVE.iter().chain(above).copied().collect();
    let profile = host_ftl::profile("default", &geometry, &above).expect("a profile");
    let (ssd, flash) = host_ftl::over(sim, (host, &report), &profile, moving, Seed::new(9)).expect("an empty drive");
    Stacked { below, ssd, profile, flash, way }
}

fn make(sim: &Sim, changes: &[&str], above: &[&str], way: (Means, Moving)) -> Subject {
    subject(sim, stacked(sim, changes, above, way))
}

fn subject(sim: &Sim, Stacked { below, ssd, .. }: Stacked) -> Subject {
    let drive = QueueDrive::new(sim, ssd.controller(), QueueId(1), 33).expect("a free queue pair");
    let check = move || below.check().and_then(|()| ssd.check());
    Subject { drive, deallocation: Deallocation::WholeUnitsReadZeros, check: Box::new(check) }
}

const WAYS: [(Means, Moving); 4] = [
    (Means::Vector, Moving::ReadWrite),
    (Means::Vector, Moving::Copy),
    (Means::Rows, Moving::ReadWrite),
    (Means::Rows, Moving::Copy),
];

/// Layers of a host over such FTLs: a block layer, a mirror of two, and stripes over block layers under a page cache.
#[test]
fn layers_over_such_ftls_pass_the_checks_of_a_drive() {
    for text in
        ["block,depth=8,predictor=none", "raid1:2,technique=tea2", "block,predictor=none raid0:2 cache,memory=64KiB"]
    {
        let layers = text.parse::<Chain>().expect("valid layers").resolve().expect("valid layers");
        let make = |sim: &Sim| {
            let ftl = |_| stacked(sim, &[], &["controller.queue_pairs=8"], WAYS[1]);
            let ftls: Vec<Stacked> = (0..drives_below(&layers)).map(ftl).collect();
            let node = |(number, ftl): (usize, &Stacked)| -> (String, Rc<dyn Node>) {
                (format!("drive-{number}"), Rc::new(ModelNode::new(sim, &ftl.ssd, &ftl.profile)))
            };
            let opened = open(sim, &layers, ftls.iter().enumerate().map(node).collect()).expect("it fits");
            let drive = opened.tops[0].connect(Use { role: Role::Any, entries: 33 }).expect("a free queue pair");
            let check = move || ftls.iter().try_for_each(|ftl| ftl.below.check().and_then(|()| ftl.ssd.check()));
            Subject { check: Box::new(check), ..Subject::new(drive) }
        };
        let load = Load { steps: 300, ..Load::default() };
        conformance::fields(&make, seed())
            .and_then(|()| conformance::data(&make, &load, seed()))
            .and_then(|()| conformance::once_each(&make, seed()))
            .unwrap_or_else(|what| panic!("{text}, seed {}: {what}", seed()));
    }
}

#[test]
fn every_check_of_a_drive() {
    for way in WAYS {
        conformance::all(&|sim| make(sim, &[], &[], way), seed()).unwrap_or_else(|what| panic!("{way:?}: {what}"));
    }
}

#[test]
fn data_is_kept_where_the_commands_of_each_die_have_an_order() {
    for way in WAYS {
        let make = |sim: &Sim| {
            let changes = ["controller.priority=reads_first"];
            subject(sim, stacked_over(sim, &changes, &[], way, |host| host.with_order(sim, Box::new(DieFifo))))
        };
        conformance::data(&make, &HEAVY, seed()).unwrap_or_else(|what| panic!("{way:?}: {what}"));
    }
}

/// Enough to write the drive many times over.
const HEAVY: Load = Load { steps: 6_000, depth: 16, most_blocks: 96, span: u64::MAX, reads: 0.2, trims: 0.2 };

#[test]
fn data_is_kept_while_chunks_are_collected() {
    for way in WAYS {
        let changes: [(&[&str], &[&str]); 3] = [
            (&[], &["buffer.mode=volatile"]),
            (&["ftl.open_channel.mw_cunits=8"], &["ftl.gc.copyback=true"]),
            (&["ftl.open_channel.early_reset=false"], &["buffer.mode=through", "lba_size=4KiB"]),
        ];
        for (below, above) in changes {
            conformance::data(&|sim| make(sim, below, above, way), &HEAVY, seed())
                .unwrap_or_else(|what| panic!("{way:?}, {below:?}, {above:?}: {what}"));
        }
    }
}

/// Bytes that a host writes in random blocks, what crosses the link for them, and the bytes of flash programmed below.
fn measured(moving: Moving) -> (u64, Traffic, u64) {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let stacked = stacked(&sim, &[], &["lba_size=4KiB"], (Means::Vector, moving));
    let drive = QueueDrive::new(&sim, stacked.ssd.controller(), QueueId(1), 33).expect("a free queue pair");
    let (issuer, info) = (Issuer::new(&sim), drive.info());
    let writes = async {
        let (mut rng, blocks) = (Seed::new(seed()).rng(), info.bytes() / 4_096);
        for number in 0..6 * blocks {
            let block = if number < blocks { number } else { rng.below(blocks) };
            let mem = HostMem::from_bytes(&number.to_le_bytes().repeat(512));
            let entry = SubmissionEntry::blocks(IoOpcode::WRITE, info.nsid, block, 1);
            assert!(issuer.execute(&*drive, entry, mem).await.status.is_success());
        }
        // Collections that have begun end.
        sim.sleep(Span::from_s(1)).await;
        6 * blocks * 4_096
    };
    let written = executor.block_on(writes).expect("it ends");
    stacked.ssd.check().and_then(|()| stacked.below.check()).expect("sound tables");
    let programmed = stacked.below.parts()[0].op_counts().programs * 16_384;
    (written, stacked.flash.traffic(), programmed)
}

#[test]
fn copies_in_the_drive_spare_the_link() {
    let (written, through, programmed) = measured(Moving::ReadWrite);
    let (same, copied, programmed_by_copies) = measured(Moving::Copy);
    let told = format!(
        "{written} bytes: {through:?}, {programmed} programmed; {same} bytes: {copied:?}, {programmed_by_copies}"
    );
    assert!(through.read > 0 && through.copied == 0 && copied.copied > 0 && copied.read == 0, "{told}");
    // All that is programmed came over the link, or was copied.
    assert_eq!(programmed, through.written, "{told}");
    assert_eq!(programmed_by_copies, copied.written + copied.copied, "{told}");
    // The copies take the place of reads and writes: the write amplification is the same but for where pages go.
    let share = |bytes: u64| bytes as f64 / written as f64;
    assert!((share(programmed) / share(programmed_by_copies) - 1.0).abs() < 0.1);
    assert!(share(through.read + through.written) > share(copied.read + copied.written) + share(through.read));
}

/// Occasional failing reads below: the data that the FTL cannot move is lost, and nothing else.
async fn with_reads_that_fail(sim: &Sim, stacked: &Stacked, seed: u64) -> (u32, u32) {
    let drive = QueueDrive::new(sim, stacked.ssd.controller(), QueueId(1), 33).expect("a free queue pair");
    let (issuer, info) = (Issuer::new(sim), drive.info());
    let (mut rng, blocks) = (Seed::new(seed).rng(), info.bytes() / 4_096);
    let mut newest = vec![0; blocks as usize];
    for number in 0..4 * blocks {
        let block = if number < blocks { number } else { rng.below(blocks) };
        newest[block as usize] = number + 1;
        let mem = HostMem::from_bytes(&(number + 1).to_le_bytes().repeat(512));
        let entry = SubmissionEntry::blocks(IoOpcode::WRITE, info.nsid, block, 1);
        assert!(issuer.execute(&*drive, entry, mem).await.status.is_success(), "write {number}");
    }
    let (mut lost, mut found) = (0, 0);
    for (block, number) in (0..).zip(newest) {
        let mem = HostMem::zeroed(4_096);
        let entry = SubmissionEntry::blocks(IoOpcode::READ, info.nsid, block, 1);
        let mut ended = issuer.execute(&*drive, entry, mem.clone()).await.status;
        // The next try may succeed, unless the data is lost.
        for _ in 0..8 {
            if !ended.is_success() {
                ended = issuer.execute(&*drive, entry, mem.clone()).await.status;
            }
        }
        match ended.is_success() {
            true => {
                found += 1;
                let is_right = mem.to_vec() == u64::to_le_bytes(number).repeat(512);
                assert!(is_right, "{:?}, block {block}, write {number}: {:?}", stacked.way, &mem.to_vec()[..8]);
            }
            false => {
                lost += 1;
                assert_eq!(ended.meaning(), Status::UNRECOVERED_READ_ERROR, "block {block}");
            }
        }
    }
    (lost, found)
}

#[test]
fn what_cannot_be_read_below_is_lost_alone() {
    for way in WAYS {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let faults = ["faults=[\"uncorrectable probability=0.03\"]"];
        let stacked = stacked(&sim, &faults, &["lba_size=4KiB"], way);
        let (lost, found) = executor.block_on(with_reads_that_fail(&sim, &stacked, seed())).expect("it ends");
        stacked.ssd.check().and_then(|()| stacked.below.check()).unwrap_or_else(|what| panic!("{way:?}: {what}"));
        assert!(lost > 0 && found > 20 * lost, "{way:?}: {lost} blocks lost, {found} found");
        let stats = stacked.ssd.ftl_stats();
        // Some were lost and then written again.
        assert!(stats.lost_units >= lost.into() && stats.retired_blocks == 0, "{way:?}: {stats:?}");
    }
}

#[test]
fn a_drive_that_may_forget_writes_is_refused() {
    let (mut executor, profile) = (Executor::new(), below(&["buffer.mode=register"]));
    let sim = executor.sim();
    let asked = async {
        let ssd = Ssd::new(&sim, &profile, StoreKind::Ram, Seed::new(3)).expect("memory");
        let (admin, drive) = queues(&sim, &ssd);
        let host = OpenChannel::open(&sim, admin, drive, Means::Vector).await.expect("an open-channel drive");
        let report = host.report().await.expect("a report");
        let above = host_ftl::profile("default", host.geometry(), &ABOVE).expect("a profile");
        host_ftl::over(&sim, (host, &report), &above, Moving::Copy, Seed::new(9)).err().expect("a refusal").to_string()
    };
    let problem = executor.block_on(asked).expect("it ends");
    assert!(problem.contains("volatile write cache") && problem.contains("through"), "{problem}");
}
