//! Odd drives with OX-Block: random profiles, with as little room as accepted, filled and overwritten several times, some
//! with failing flash and power cuts. Each ends all commands and keeps its data, or its profile is rejected with a reason.
//! Drives with usual over-provisioning and blocks stay writable to the end. Others may become read-only: their tables and
//! logs use up the blocks that collections need.
//!
//! `NANDSCAPE_TEST_SEED` gives another seed, `NANDSCAPE_TEST_DRIVES` another number of drives.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use nandscape_device_ftl_core::Plant;
use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Resolved, Ssd};
use nandscape_drive::conformance::{Ask, Damaged};
use nandscape_drive::{QueueDrive, QueueId};
use nandscape_sim::{Executor, Rng, Seed};

/// Maximum of task polls in a run; sound runs take a tenth of it.
const MOST_POLLS: u64 = 40_000_000;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn one_of<'a>(rng: &mut Rng, values: &[&'a str]) -> &'a str {
    values[rng.below(values.len() as u64) as usize]
}

/// The changes to the default profile.
fn draw(rng: &mut Rng) -> Vec<String> {
    let choices: [(&str, &[&str]); 24] = [
        ("capacity", &["1MiB", "2MiB", "4MiB", "8MiB"]),
        ("lba_size", &["512", "4096"]),
        ("geometry.channels", &["1", "1", "2", "3"]),
        ("geometry.dies_per_channel", &["1", "2"]),
        ("geometry.planes_per_die", &["1", "2"]),
        ("geometry.pages_per_block", &["4", "16", "23", "64"]),
        ("geometry.factory_bad_blocks", &["0%", "0%", "5%", "30%"]),
        ("timing.registers", &["single", "double"]),
        ("controller.command_slots", &["1", "3", "64"]),
        ("controller.priority", &["fifo", "reads_first"]),
        ("controller.max_transfer", &["8KiB", "32KiB", "128KiB"]),
        ("buffer.mode", &["capacitor", "volatile", "register", "through"]),
        ("ftl.over_provisioning", &["0%", "1%", "7%", "42.86%"]),
        ("ftl.ox_block.transactions", &["true", "false"]),
        ("ftl.ox_block.checkpoint_interval", &["1us", "1ms", "50ms", "3600s"]),
        ("ftl.ox_block.map_memory", &["4KiB", "4KiB", "16MiB"]),
        ("ftl.ox_block.gc_slots", &["1", "2", "256"]),
        ("ftl.ox_block.gc_threshold", &["0", "0.7", "0.999"]),
        ("ftl.ox_block.gc_target", &["0", "0.9", "0.999"]),
        ("ftl.ox.bad_blocks", &["table", "list"]),
        ("ftl.ox.provisioning", &["lines", "planes_first"]),
        ("ftl.ox.mapping", &["paged", "paged", "whole"]),
        ("ftl.ox.gc", &["most_garbage", "oldest", "cost_benefit"]),
        ("ftl.ox.write_cache", &["eager", "half_full"]),
    ];
    // A page, a mapping unit that divides it, and a write buffer of at least two pages.
    let sizes = [
        ("4KiB", "4KiB", "8KiB"),
        ("4KiB", "4KiB", "256KiB"),
        ("16KiB", "4KiB", "32KiB"),
        ("16KiB", "16KiB", "256KiB"),
        ("32KiB", "8KiB", "64KiB"),
        ("64KiB", "4KiB", "128KiB"),
        ("64KiB", "16KiB", "1MiB"),
    ];
    let (page, unit, buffer) = sizes[rng.below(sizes.len() as u64) as usize];
    let mut changes = vec!["ftl.kind=ox_block".to_owned(), format!("geometry.page_size={page}")];
    changes.extend([format!("ftl.mapping_unit={unit}"), format!("buffer.size={buffer}")]);
    changes.extend(choices.iter().map(|(key, values)| format!("{key}={}", one_of(rng, values))));
    if rng.chance(0.3) {
        let least = one_of(rng, &["16KiB", "64KiB", "256KiB"]);
        changes.push(format!("ftl.ox_block.checkpoint_log={least}"));
    }
    changes.extend(["timing.read=30us", "timing.program=300us"].map(str::to_owned));
    changes
}

/// Faults of a drive after which it is still writable.
fn draw_faults(rng: &mut Rng) -> Vec<String> {
    let harmless = [
        "fail program every=200 count=2",
        "fail erase probability=3% count=2",
        "slow by=3ms probability=1%",
        "power_cut every=411 count=6",
        "power_cut erase off=5ms every=5 count=4",
        "power_cut program probability=1% count=6 torn=any",
    ];
    (0..=rng.below(2)).map(|_| one_of(rng, &harmless).to_owned()).collect()
}

/// The drive, or why it is rejected.
fn resolve(changes: &[String], faults: &[String]) -> Result<Resolved, String> {
    let mut profile = Profile::load("default").expect("a built-in profile");
    changes.iter().for_each(|change| profile.set(change).unwrap_or_else(|error| panic!("{change}: {error}")));
    profile.set(&format!("faults={faults:?}")).expect("rules of faults");
    profile.resolve().map_err(|error| error.to_string())
}

/// A host uses a drive. Returns the failure, if any.
fn use_drive(resolved: &Resolved, plant: Option<Plant>, seed: u64, may_be_read_only: bool) -> Result<(), String> {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let ssd = Rc::new(Ssd::new(&sim, resolved, StoreKind::Ram, Seed::new(9)).expect("memory"));
    if let Some(plant) = plant {
        ssd.plant(plant, Seed::new(seed), &mut |_| ());
    }
    let drive = QueueDrive::new(&sim, ssd.controller(), QueueId(1), 32).expect("a free queue pair");
    let counted = ssd.clone();
    let mut host = Damaged::new(&sim, drive, move || counted.media().power_cuts(), seed);
    let load = async {
        host.write_all().await?;
        for round in 0..60 {
            let asks: &[Ask] = if round % 20 < 10 { &[Ask::Write, Ask::Flush] } else { &Ask::ALL };
            host.round(asks).await?;
        }
        host.read_all().await
    };
    let ended = executor.block_on_within(load, MOST_POLLS);
    ended.map_err(|unended| format!("{unended}: {:?}", ssd.ftl_stats()))??;
    ssd.check()?;
    match ssd.is_read_only() && !may_be_read_only {
        true => Err(format!("it has become read-only: {:?}", ssd.ftl_stats())),
        false => Ok(()),
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "which drives are refused, for --nocapture")]
fn any_ox_block_keeps_its_data_and_ends_its_commands() {
    let (seed, drives) = (number("NANDSCAPE_TEST_SEED", 1), number("NANDSCAPE_TEST_DRIVES", 40));
    let mut used = 0;
    for index in 0..drives {
        let mut rng = Seed::new(seed).child("any_ox_block").nth(index).rng();
        let changes = draw(&mut rng);
        let plant = [None, Some(Plant::Full), Some(Plant::Steady)][rng.below(3) as usize];
        let faults = if rng.chance(0.5) { draw_faults(&mut rng) } else { Vec::new() };
        let resolved = match resolve(&changes, &faults) {
            Ok(resolved) => resolved,
            Err(why) => {
                println!("drive {index} is refused: {why}");
                continue;
            }
        };
        used += 1;
        let has = |change: &str| changes.iter().any(|given| given == change);
        let has_room = has("ftl.over_provisioning=42.86%") && !has("geometry.pages_per_block=4");
        let may_be_read_only = !has_room || faults.iter().any(|fault| fault.starts_with("fail"));
        let run = || use_drive(&resolved, plant, seed + index, may_be_read_only);
        // A panic of the model does not name its drive.
        let result = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| Err("panicked, see above".to_owned()));
        result.unwrap_or_else(|what| panic!("seed {seed}, drive {index}, {plant:?}, {changes:?}, {faults:?}: {what}"));
    }
    assert!(used > 0, "every profile was refused");
}
