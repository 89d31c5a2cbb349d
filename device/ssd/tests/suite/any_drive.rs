//! Odd drives: random profiles, each under the data check, some under every check, with the FTL's invariants afterwards. A
//! failure is printed with its profile and its seed.
//!
//! `NANDSCAPE_TEST_SEED` gives another seed, `NANDSCAPE_TEST_DRIVES` another number of drives.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use nandscape_device_ftl_core::{Plant, Stats};
use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{BUILTIN, Profile, Ssd};
use nandscape_drive::conformance::{self, Ask, Damaged, Deallocation, Load, Subject};
use nandscape_drive::{QueueDrive, QueueId};
use nandscape_sim::{Executor, Rng, Seed, Sim};

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn one_of<'a>(rng: &mut Rng, values: &[&'a str]) -> &'a str {
    values[rng.below(values.len() as u64) as usize]
}

/// The changes to the default profile.
fn draw(rng: &mut Rng) -> Vec<String> {
    let choices: [(&str, &[&str]); 35] = [
        ("capacity", &["1MiB", "2MiB", "4MiB", "8MiB"]),
        ("lba_size", &["512", "4096"]),
        ("geometry.channels", &["1", "2", "3"]),
        ("geometry.dies_per_channel", &["1", "2"]),
        ("geometry.planes_per_die", &["1", "2"]),
        ("geometry.pages_per_block", &["4", "16", "23", "64"]),
        ("geometry.page_size", &["32KiB", "64KiB"]),
        ("geometry.factory_bad_blocks", &["0%", "5%", "30%"]),
        ("timing.cell", &["slc", "mlc", "tlc", "qlc"]),
        ("timing.registers", &["single", "double"]),
        ("timing.partial_transfer", &["true", "false"]),
        ("controller.command_slots", &["1", "3", "64"]),
        ("controller.priority", &["fifo", "reads_first"]),
        ("controller.max_transfer", &["8KiB", "32KiB", "1MiB"]),
        // From two programs of two of the largest pages on.
        ("buffer.size", &["256KiB", "512KiB", "1MiB"]),
        ("buffer.mode", &["capacitor", "volatile", "register", "through"]),
        ("ftl.over_provisioning", &["0%", "1%", "7%", "50%"]),
        ("ftl.mapping_unit", &["4KiB", "8KiB", "32KiB"]),
        ("ftl.gc.scheme", &["controller", "channel", "plane", "none"]),
        ("ftl.gc.victim", &["greedy", "cost_benefit"]),
        ("ftl.gc.owner", &["table", "out_of_band"]),
        ("ftl.gc.admission", &["all", "all", "one_per_die", "one_per_channel", "one_per_drive"]),
        ("ftl.gc.copyback", &["true", "false"]),
        ("ftl.gc.batch", &["0", "1", "5"]),
        ("ftl.wear.static_threshold", &["0", "1", "10"]),
        ("timing.planes", &["independent", "die", "multi_plane"]),
        ("timing.interleaving", &["free", "free", "rows"]),
        ("timing.command", &["0ns", "200ns"]),
        ("timing.ecc.time", &["0ns", "2us"]),
        ("timing.ecc.engines", &["0", "1"]),
        ("timing.read_retry.probability", &["[]", "[0.1, 0.05]"]),
        ("ftl.gc.copyback_ecc", &["true", "false"]),
        ("link.duplex", &["full", "half"]),
        ("link.packet", &["128B", "4KiB"]),
        ("ftl.tables", &["saved", "saved", "rebuilt"]),
    ];
    let mut changes: Vec<String> =
        choices.iter().map(|(key, values)| format!("{key}={}", one_of(rng, values))).collect();
    changes.extend(["timing.read=30us", "timing.program=300us"].map(str::to_owned));
    let has = |change: &str| changes.iter().any(|given| given == change);
    let mut more = Vec::new();
    if has("controller.priority=reads_first") {
        more.extend(["timing.suspend.program=10us", "timing.suspend.erase=10us", "timing.suspend.min_run=20us"]);
        more.extend(has("ftl.gc.scheme=plane").then_some("ftl.gc.preempt=true"));
    }
    if has("timing.cell=tlc") {
        // Two programs of word lines of two planes need this much.
        let size = "buffer.size=1MiB";
        more.extend(["timing.program_unit=word_line", "geometry.pages_per_block=24", "ftl.gc.copyback=false", size]);
    }
    changes.extend(more.into_iter().map(str::to_owned));
    changes
}

/// The changes for a drive with parity stripes: those of any drive, except incompatible ones.
fn draw_stripes(rng: &mut Rng) -> Vec<String> {
    let mut changes = draw(rng);
    let width = 2 + rng.below(3);
    let channels = width * (1 + rng.below(2));
    let size = one_of(rng, &["4KiB", "8KiB", "32KiB"]);
    let fixed = ["buffer.mode=capacitor", "ftl.gc.copyback=true", "ftl.gc.copyback_ecc=false", "ftl.tables=saved"];
    let flash = ["timing.planes=independent", "timing.program_unit=page"];
    changes.extend(fixed.into_iter().chain(flash).map(str::to_owned));
    changes.push(format!("geometry.channels={channels}"));
    changes.push(format!("geometry.page_size={size}"));
    changes.push(format!("ftl.mapping_unit={size}"));
    changes.push(format!("ftl.rain.width={width}"));
    changes.push(format!("ftl.rain.flush={}", one_of(rng, &["in_order", "gc_tolerant"])));
    changes.push(format!("ftl.rain.flush_above={}", one_of(rng, &["0%", "50%", "80%"])));
    changes.push(format!("ftl.read.policy={}", one_of(rng, &["serve", "reconstruct"])));
    changes.push(format!("ftl.gc.admission={}", one_of(rng, &["all", "rotating", "rotating"])));
    changes
}

/// Faults of a drive, with failing reads only if `may_lose`.
fn draw_faults(rng: &mut Rng, may_lose: bool) -> Vec<String> {
    let harmless = [
        "fail program every=70 count=5",
        "fail erase probability=3% count=5",
        "slow by=3ms probability=1%",
        "stuck program timeout=2ms every=150 count=3",
        "power_cut every=211 count=10",
        "power_cut erase off=5ms every=5 count=6",
        "power_cut program probability=1% count=10",
    ];
    let harmful = [
        "uncorrectable probability=1%",
        "stuck read timeout=2ms probability=1%",
        "uncorrectable page=1-2 probability=10% count=40",
        "dead channel=0 die=0 plane=0 nth=500",
        "fail program every=2",
    ];
    let mut faults: Vec<&str> = (0..=rng.below(3)).map(|_| one_of(rng, &harmless)).collect();
    faults.extend(may_lose.then(|| one_of(rng, &harmful)));
    faults.into_iter().map(str::to_owned).collect()
}

/// A host uses a drive with faults. Returns the drive's counters, or the failure.
fn survive(changes: &[String], faults: &[String], plant: Option<Plant>, seed: u64) -> Result<Stats, String> {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let mut profile = Profile::load("default").expect("a built-in profile");
    changes.iter().for_each(|change| profile.set(change).expect("a valid change"));
    profile.set(&format!("faults={faults:?}")).expect("rules of faults");
    let resolved = profile.resolve().unwrap_or_else(|error| panic!("{changes:?}: {error}"));
    let ssd = Rc::new(Ssd::new(&sim, &resolved, StoreKind::Ram, Seed::new(9)).expect("memory"));
    if let Some(plant) = plant {
        ssd.plant(plant, Seed::new(seed), &mut |_| ());
    }
    let drive = QueueDrive::new(&sim, ssd.controller(), QueueId(1), 32).expect("a free queue pair");
    let counted = ssd.clone();
    let mut host = Damaged::new(&sim, drive, move || counted.media().power_cuts(), seed);
    let ended = executor.block_on(async {
        for _ in 0..60 {
            host.round(&Ask::ALL).await?;
        }
        host.read_all().await
    });
    ended.map_err(|stalled| format!("{stalled}: {:?}", ssd.ftl_stats()))??;
    ssd.check()?;
    Ok(ssd.ftl_stats())
}

/// Much of the drive is in its buffer while collectors find the replaced data unreadable; then a power cut empties the
/// buffer. Data that is neither on flash nor in the buffer is reported as lost.
#[test]
fn what_the_buffer_was_to_replace_is_lost_with_it_and_not_made_up() {
    let changes = ["capacity=4MiB", "geometry.channels=1", "geometry.dies_per_channel=1", "geometry.planes_per_die=2"];
    let more = ["geometry.page_size=16KiB", "buffer.size=1MiB", "buffer.mode=volatile", "ftl.over_provisioning=10%"];
    let faults =
        ["slow program by=4ms", "uncorrectable probability=30%", "power_cut program probability=2% count=1000"];
    let changes: Vec<String> = changes.into_iter().chain(more).map(str::to_owned).collect();
    for index in 0..10 {
        let seed = number("NANDSCAPE_TEST_SEED", 1) + index;
        let stats = survive(&changes, &faults.map(str::to_owned), Some(Plant::Full), seed);
        let stats = stats.unwrap_or_else(|what| panic!("seed {seed}: {what}"));
        assert!(stats.lost_units > 20 && stats.dropped_units > 200, "seed {seed}: {stats:?}");
    }
}

/// Drives with failing flash and power cuts report every loss of data, and never return wrong data.
#[test]
fn any_drive_survives_faults() {
    survives_faults("any_faults", draw);
}

/// The same of drives with stripes.
#[test]
fn any_drive_with_stripes_survives_faults() {
    survives_faults("stripes_faults", draw_stripes);
}

fn survives_faults(name: &str, draw: fn(&mut Rng) -> Vec<String>) {
    let (seed, drives) = (number("NANDSCAPE_TEST_SEED", 1), number("NANDSCAPE_TEST_DRIVES", 24));
    for index in 0..drives {
        let mut rng = Seed::new(seed).child(name).nth(index).rng();
        let mut changes = draw(&mut rng);
        // Room for blocks to go bad.
        changes.push("ftl.over_provisioning=100%".to_owned());
        let plant = [None, Some(Plant::Full)][rng.below(2) as usize];
        let may_lose = rng.chance(0.5);
        let faults = draw_faults(&mut rng, may_lose);
        let run = || survive(&changes, &faults, plant, seed + index).map(drop);
        let result = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| Err("panicked, see above".to_owned()));
        result.unwrap_or_else(|what| panic!("seed {seed}, drive {index}, {plant:?}, {changes:?}, {faults:?}: {what}"));
    }
}

/// The same of drives whose flash ages, with blocks that are refreshed because of retention and disturb, and go bad.
#[test]
fn any_drive_that_ages_survives() {
    let (seed, drives) = (number("NANDSCAPE_TEST_SEED", 1), number("NANDSCAPE_TEST_DRIVES", 16));
    let mut moved = 0;
    for index in 0..drives {
        let mut rng = Seed::new(seed).child("any_aging").nth(index).rng();
        let mut changes = draw(&mut rng);
        let ages = [
            // 0.1% for each hour, and for each read of each page of a block.
            "wear.rber=[1e-5, 0, 1, 1e-3, 0, 1, 1e-3, 0, 1]",
            "wear.shelf=6h",
            "wear.refresh=50%",
            "timing.read_retry.probability=[]",
            "timing.rated_erases=40",
            "wear.erase_growth=100%",
            "ftl.over_provisioning=100%",
        ];
        changes.extend(ages.map(str::to_owned));
        changes.push(format!("wear.scrub={}", one_of(&mut rng, &["0s", "2s", "20s"])));
        changes.push(format!("wear.program_failures={}", one_of(&mut rng, &["0%", "5%"])));
        changes.push(format!("wear.erase_failures={}", one_of(&mut rng, &["0%", "5%"])));
        changes.push(format!("wear.block_spread={}", one_of(&mut rng, &["0%", "50%"])));
        let plant = [None, Some(Plant::Full), Some(Plant::Steady)][rng.below(3) as usize];
        let faults = if rng.chance(0.5) { draw_faults(&mut rng, false) } else { Vec::new() };
        let run = || survive(&changes, &faults, plant, seed + index);
        let result = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| Err("panicked, see above".to_owned()));
        let stats = result
            .unwrap_or_else(|what| panic!("seed {seed}, drive {index}, {plant:?}, {changes:?}, {faults:?}: {what}"));
        moved += stats.wear_blocks;
    }
    assert!(moved > 0, "no block was refreshed");
}

#[test]
fn any_drive_keeps_its_data() {
    keeps_its_data("any_drive", draw);
}

#[test]
fn any_drive_with_stripes_keeps_its_data() {
    keeps_its_data("any_stripes", draw_stripes);
}

fn keeps_its_data(name: &str, draw: fn(&mut Rng) -> Vec<String>) {
    let (seed, drives) = (number("NANDSCAPE_TEST_SEED", 1), number("NANDSCAPE_TEST_DRIVES", 16));
    for index in 0..drives {
        let mut rng = Seed::new(seed).child(name).nth(index).rng();
        let changes = draw(&mut rng);
        let entries = 2 + rng.below(40) as u32;
        let plant = [None, Some(Plant::Full), Some(Plant::Steady)][rng.below(3) as usize];
        let load = Load {
            steps: 1_500,
            depth: 1 + rng.below(40) as usize,
            most_blocks: 1 << rng.below(11),
            span: u64::MAX,
            reads: 0.2,
            trims: if rng.chance(0.5) { 0.01 } else { 0.3 },
        };
        let make = |sim: &Sim| {
            let mut profile = Profile::load("default").expect("a built-in profile");
            changes.iter().for_each(|change| profile.set(change).expect("a valid change"));
            let resolved = profile.resolve().unwrap_or_else(|error| panic!("{changes:?}: {error}"));
            let ssd = Rc::new(Ssd::new(sim, &resolved, StoreKind::Ram, Seed::new(9)).expect("memory"));
            if let Some(plant) = plant {
                ssd.plant(plant, Seed::new(seed), &mut |_| ());
            }
            let drive = QueueDrive::new(sim, ssd.controller(), QueueId(1), entries).expect("a free queue pair");
            Subject { drive, deallocation: Deallocation::WholeUnitsReadZeros, check: Box::new(move || ssd.check()) }
        };
        let check = || match index % 4 == 0 {
            true => conformance::all(&make, seed),
            false => conformance::data(&make, &load, seed),
        };
        // A panic of the model does not name its drive.
        let result = catch_unwind(AssertUnwindSafe(check)).unwrap_or_else(|_| Err("panicked, see above".to_owned()));
        result.unwrap_or_else(|what| {
            panic!("seed {seed}, drive {index}, {plant:?}, {entries} entries, {load:?}, {changes:?}: {what}")
        });
    }
}

/// Every built-in drive of any size can lose some blocks before it is read-only.
#[test]
fn every_builtin_drive_has_spare_blocks() {
    for builtin in BUILTIN {
        for capacity in ["64MiB", "1GiB"] {
            let mut profile = Profile::load(builtin.name).expect("a built-in profile");
            profile.set(&format!("capacity={capacity}")).expect("a valid change");
            let resolved = profile.resolve().expect("any size works");
            let ssd = Ssd::new(&Executor::new().sim(), &resolved, StoreKind::None, Seed::new(1)).expect("memory");
            let (left, new) = ssd.ftl_stats().spare_blocks;
            assert!(left == new && new >= 1, "{} {capacity}: {new}", builtin.name);
        }
    }
}
