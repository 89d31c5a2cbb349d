//! Changes of OX-Block settings while the drive runs take effect at once, and other settings are rejected.

use std::rc::Rc;

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Resolved, Ssd};
use nandscape_drive::{HostMem, Issuer, QueueDrive, QueueId};
use nandscape_sim::{Executor, Seed, Sim, Span};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

const SMALL: [&str; 11] = [
    "ftl.kind=ox_block",
    "capacity=16MiB",
    "geometry.channels=8",
    "geometry.dies_per_channel=1",
    "geometry.planes_per_die=1",
    "geometry.pages_per_block=16",
    "buffer.size=256KiB",
    "buffer.mode=volatile",
    "ftl.over_provisioning=200%",
    "ftl.ox_block.gc_threshold=10%",
    "ftl.ox_block.gc_slots=1",
];
/// Blocks of 512 bytes in 4 KiB.
const UNIT: u64 = 8;

fn profile(changes: &[&str]) -> Profile {
    let mut profile = Profile::load("default").expect("a built-in profile");
    SMALL.iter().chain(changes).for_each(|change| profile.set(change).expect("a valid change"));
    profile
}

fn resolved(changes: &[&str]) -> Resolved {
    profile(changes).resolve().unwrap_or_else(|error| panic!("{changes:?}: {error}"))
}

/// An amount of flash is a share of the whole.
#[test]
fn a_threshold_in_bytes_is_a_share_of_the_flash() {
    let threshold = |value: &str| {
        let resolved = resolved(&[&format!("ftl.ox_block.gc_threshold={value}")]);
        let keys = &resolved.keys.geometry;
        let counts =
            [keys.channels, keys.dies_per_channel, keys.planes_per_die, keys.blocks_per_plane, keys.pages_per_block];
        let pages: u64 = counts.iter().map(|count| u64::from(count.expect("it is resolved"))).product();
        let page = keys.page_size.expect("it is resolved").0.0;
        (resolved.ox_block().expect("an OX-Block").gc.threshold, pages * page)
    };
    let (_, flash) = threshold("70%");
    for (value, thousandths) in [(flash / 4, 250), (flash / 2, 500), (flash / 100, 10), (0, 0), (flash - 1, 999)] {
        assert_eq!(threshold(&format!("{value}B")).0, thousandths, "{value} of {flash}");
    }
    let mut drive = Bench::new(&[], Span::from_ms(1));
    let set = |value: &str| drive.ssd.change(&format!("ftl.ox_block.gc_threshold={value}"));
    assert!(set("4MiB").is_ok());
    let wrong = set("1TiB").unwrap_err().to_string();
    assert!(wrong.contains("1TiB is out of range"), "{wrong}");
    let wrong = set("many").unwrap_err().to_string();
    assert!(wrong.contains("a size such as"), "{wrong}");
    drive.run(Span::from_ms(1));
}

/// A drive under a steady load of random writes.
struct Bench {
    executor: Executor,
    sim: Sim,
    ssd: Rc<Ssd>,
}

impl Bench {
    /// Four writers that pause after each write; the whole drive is written first.
    fn new(changes: &[&str], pause: Span) -> Bench {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let ssd = Rc::new(Ssd::new(&sim, &resolved(changes), StoreKind::None, Seed::new(9)).expect("memory"));
        let drive = QueueDrive::new(&sim, ssd.controller(), QueueId(1), 17).expect("a free queue pair");
        let issuer = Rc::new(Issuer::new(&sim));
        let units = (16 << 20) / 4_096;
        let write = move |unit: u64| SubmissionEntry::blocks(IoOpcode::WRITE, 1, unit * UNIT, UNIT as u32);
        executor
            .block_on(async {
                for unit in 0..units {
                    let written = issuer.execute(&*drive, write(unit), HostMem::zeroed(4_096)).await;
                    assert_eq!(written.status, Status::SUCCESS);
                }
            })
            .expect("the drive is written");
        for writer in 0..4 {
            let (sim, drive, issuer) = (sim.clone(), drive.clone(), issuer.clone());
            sim.clone().spawn(async move {
                let mut rng = Seed::new(1).nth(writer).rng();
                loop {
                    let entry = write(rng.below(units));
                    assert_eq!(issuer.execute(&*drive, entry, HostMem::zeroed(4_096)).await.status, Status::SUCCESS);
                    sim.sleep(pause).await;
                }
            });
        }
        Bench { executor, sim, ssd }
    }

    /// Runs for a while. Returns the checkpoints, the units moved per unit programmed for the host, and the maximum of
    /// channels collected at a time.
    fn run(&mut self, span: Span) -> (u64, f64, u32) {
        let before = self.ssd.ftl_stats();
        let (sim, ssd, end) = (self.sim.clone(), self.ssd.clone(), self.sim.now() + span);
        let most = self.executor.block_on(async move {
            let mut most = 0;
            while sim.now() < end {
                sim.sleep(Span::from_us(100)).await;
                most = most.max(ssd.ftl_stats().upkeep.channels_to_collect);
            }
            most
        });
        let stats = self.ssd.ftl_stats().since(&before);
        let moved = stats.gc_units as f64 / stats.host_units.max(1) as f64;
        (stats.upkeep.checkpoints, moved, most.expect("the load goes on"))
    }
}

#[test]
fn a_shorter_interval_takes_more_checkpoints() {
    let mut bench = Bench::new(&["ftl.ox_block.checkpoint_interval=500ms"], Span::from_ms(4));
    let (before, ..) = bench.run(Span::from_ms(1_000));
    bench.ssd.change("ftl.ox_block.checkpoint_interval=20ms").expect("it can be changed");
    let (after, ..) = bench.run(Span::from_ms(1_000));
    // One for each interval, which begins when the last one has ended; more where only a checkpoint makes room.
    assert!((40..60).contains(&after) && after >= 5 * before, "{before} checkpoints, then {after}");
}

/// A drive with one change to checkpoint has one timer, however often its settings change.
#[test]
fn a_setting_that_changes_often_leaves_no_timers() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let ssd = Ssd::new(&sim, &resolved(&[]), StoreKind::None, Seed::new(9)).expect("memory");
    let drive = QueueDrive::new(&sim, ssd.controller(), QueueId(1), 17).expect("a free queue pair");
    let issuer = Issuer::new(&sim);
    executor
        .block_on(async {
            let write = SubmissionEntry::blocks(IoOpcode::WRITE, 1, 0, UNIT as u32);
            assert_eq!(issuer.execute(&*drive, write, HostMem::zeroed(4_096)).await.status, Status::SUCCESS);
            let flush = SubmissionEntry::io(IoOpcode::FLUSH, 1);
            assert_eq!(issuer.execute(&*drive, flush, HostMem::none()).await.status, Status::SUCCESS);
        })
        .expect("it is written");
    for number in 0..2_000 {
        let change = ["ftl.ox_block.checkpoint_interval=5s", "ftl.ox_block.gc_slots=2"][number % 2];
        ssd.change(change).expect("it can be changed");
    }
    let before = ssd.ftl_stats().upkeep.checkpoints;
    assert!(executor.advance(sim.now() + Span::from_ms(10_000), 1_000), "timers are left");
    assert_eq!(ssd.ftl_stats().upkeep.checkpoints - before, 1);
    let wrong = ssd.change("ftl.ox_block.checkpoint_interval=0ns").unwrap_err().to_string();
    assert!(wrong.contains("0ns is out of range; from 1us to 3600s is valid"), "{wrong}");
}

#[test]
fn more_slots_collect_more_channels_at_a_time() {
    let mut bench = Bench::new(&[], Span::from_ms(1));
    bench.run(Span::from_ms(2_000));
    let (.., before) = bench.run(Span::from_ms(1_000));
    bench.ssd.change("ftl.ox_block.gc_slots=3").expect("it can be changed");
    let (.., after) = bench.run(Span::from_ms(1_000));
    bench.ssd.change("ftl.ox_block.gc_slots=1").expect("it can be changed");
    // Collections under way end as they began.
    bench.run(Span::from_ms(100));
    let (.., again) = bench.run(Span::from_ms(1_000));
    assert_eq!((before, after, again), (1, 3, 1));
}

/// Blocks with less garbage are collected: more data is moved.
#[test]
fn a_lower_target_moves_more_data() {
    let mut bench = Bench::new(&["ftl.ox_block.gc_slots=3"], Span::from_ms(2));
    bench.run(Span::from_ms(500));
    let (_, before, _) = bench.run(Span::from_ms(1_000));
    bench.ssd.change("ftl.ox_block.gc_target=10%").expect("it can be changed");
    let (_, after, _) = bench.run(Span::from_ms(1_000));
    assert!(after > 1.5 * before, "{before} units moved for each written, then {after}");
}

#[test]
fn a_profile_names_changes_with_their_times() {
    let changes = "changes=[\"3s ftl.ox_block.gc_target=30%\", \"2s ftl.ox_block.gc_slots=2\"]";
    let mut executor = Executor::new();
    let sim = executor.sim();
    let ssd = Ssd::new(&sim, &resolved(&[changes]), StoreKind::None, Seed::new(9)).expect("memory");
    let mut seen = Vec::new();
    for seconds in [1, 2, 3] {
        executor.block_on(sim.sleep(Span::from_ms(1_000))).expect("time passes");
        executor.block_on(sim.after_what_is_due()).expect("no time passes");
        let now = ssd.settings();
        let value = |key: &str| now.iter().find(|(known, _)| *known == key).expect("a key").1.clone();
        seen.push((seconds, value("ftl.ox_block.gc_slots"), value("ftl.ox_block.gc_target")));
    }
    let seen: Vec<_> = seen.iter().map(|(at, slots, target)| (*at, slots.as_str(), target.as_str())).collect();
    assert_eq!(seen, [(1, "1", "0.9"), (2, "2", "0.9"), (3, "2", "0.3")]);
    let text = resolved(&[changes]).to_toml();
    assert_eq!(Profile::parse("again", &text).unwrap().resolve().unwrap().to_toml(), text);
}

#[test]
fn what_cannot_be_changed_is_refused() {
    let executor = Executor::new();
    let ssd = |changes: &[&str]| {
        Ssd::new(&executor.sim(), &resolved(changes), StoreKind::None, Seed::new(9)).expect("memory")
    };
    let ox_block = ssd(&[]);
    for (setting, problem) in [
        (
            "capacity=1GiB",
            "capacity: cannot be changed while a drive runs; these can: ftl.ox_block.checkpoint_interval, ",
        ),
        ("ftl.ox_block.gc_slots", "ftl.ox_block.gc_slots: a change is KEY=VALUE"),
        ("ftl.ox_block.gc_slots=0", "ftl.ox_block.gc_slots: 0 is out of range"),
        ("ftl.ox_block.gc_slots=many", "ftl.ox_block.gc_slots=many: "),
        ("ftl.ox_block.gc_target=100%", "ftl.ox_block.gc_target: 1 is out of range"),
        ("ftl.ox_block.checkpoint_interval=2h", "ftl.ox_block.checkpoint_interval"),
    ] {
        let error = ox_block.change(setting).expect_err(setting).to_string();
        assert!(error.starts_with(problem), "{setting}: {error}");
    }
    assert_eq!(ox_block.settings().len(), 5);
    let page = "{channels=\"4-7\", name=\"fast\", ftl={kind=\"page\"}}";
    let several = ssd(&[&format!("ftl.parts=[{{channels=\"0-3\", name=\"archive\"}}, {page}]")]);
    for (setting, problem) in [
        ("ftl.ox_block.gc_slots=2", "names no part; of a drive with several FTLs it is PART:KEY=VALUE, with a part of"),
        ("fast:ftl.ox_block.gc_slots=2", "is for ftl.kind = \"ox_block\""),
        ("archive:capacity=1GiB", "cannot be changed while a drive runs"),
        ("archive:ftl.ox_block.gc_slots=0", "0 is out of range"),
    ] {
        let error = several.change(setting).expect_err(setting).to_string();
        assert!(error.contains(problem), "{setting}: {error}");
    }
    several.change("archive:ftl.ox_block.gc_slots=2").expect("it can be changed");
    let now = several.settings();
    let slots = now.iter().find(|(key, _)| key == "archive:ftl.ox_block.gc_slots");
    assert_eq!((now.len(), slots.map(|(_, value)| value.as_str())), (6, Some("2")), "{now:?}");
    for kind in ["ftl.kind=page", "ftl.kind=pblk"] {
        let other = ssd(&[kind]);
        let error = other.change("ftl.ox_block.gc_slots=2").unwrap_err().to_string();
        let has_some = other.settings().iter().any(|(key, _)| key.starts_with("ftl."));
        assert!(error.contains("is for ftl.kind = \"ox_block\"") && !has_some, "{kind}: {error}");
    }
    for (changes, problem) in [
        ("changes=[\"ftl.ox_block.gc_slots=2\"]", "is no change"),
        ("changes=[\"1s capacity=1GiB\"]", "changes: \"1s capacity=1GiB\": capacity: cannot be changed"),
        (
            "changes=[\"1s ftl.ox_block.gc_slots=0\"]",
            "changes: \"1s ftl.ox_block.gc_slots=0\": ftl.ox_block.gc_slots: 0 is",
        ),
    ] {
        let mut profile = profile(&[]);
        let error = profile.set(changes).err().or_else(|| profile.resolve().err()).expect("it is refused").to_string();
        assert!(error.contains(problem), "{changes}: {error}");
    }
}
