//! Random commands against the model, on many seeds: each status, each report and all data. With faults of the flash, and with
//! power cuts between commands, while programs and erases are under way.
//!
//! `NANDSCAPE_TEST_SEEDS=5000 cargo test -p nandscape-device-ssd --test zones campaign` runs more seeds, and `NANDSCAPE_TEST_SEED=7`
//! only one.

use std::cell::RefCell;
use std::collections::BTreeSet;

use nandscape_drive::HostMem;
use nandscape_sim::rng::Rng;
use nandscape_sim::{Executor, Seed, Span};
use nandscape_wire_nvme::IoOpcode;
use nandscape_wire_nvme::zns::{EXTENSION_VALID, ZRWA_VALID, send};

use crate::model::{CLOSED, FULL, Model};
use crate::rig::{AREA, CAPACITY, GRANULARITY, Rig, SIZE, ZONES, send as send_of};

/// Commands of a seed.
const COMMANDS: u32 = 150;
/// Seeds of a short run.
const SEEDS: u64 = 60;
/// Polls after which a run is stuck.
const MOST_EVENTS: u64 = 20_000_000;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}, not a number")))
}

/// Runs seeds; together they must have done all that there is.
fn each_seed(run: impl Fn(u64) -> Done) {
    if let Some(seed) = number("NANDSCAPE_TEST_SEED") {
        return drop(run(seed));
    }
    let done: Done = (1..=number("NANDSCAPE_TEST_SEEDS").unwrap_or(SEEDS)).flat_map(run).collect();
    let all = ["action", "append", "copy", "extension", "flush", "random", "write"];
    assert!(done.iter().eq(all), "{done:?}");
}

/// A block to write at: mostly where a zone ends, or in its random write area, as a host that keeps count would.
fn target(rng: &mut Rng, model: &Model) -> u64 {
    let among = if rng.chance(0.7) { 5 } else { ZONES };
    let zone = rng.below(among);
    match rng.below(20) {
        0 => rng.below(ZONES * SIZE + 10),
        _ => {
            let zone_of = &model.zones[zone as usize];
            zone * SIZE + zone_of.pointer + if zone_of.is_random { rng.below(2 * AREA) } else { 0 }
        }
    }
}

/// A command of chance, whose status is that of the model. Tells it.
pub(crate) async fn step(rig: &Rig, model: &mut Model, rng: &mut Rng, stamp: &mut u64) -> String {
    let among = if rng.chance(0.7) { 5 } else { ZONES };
    let zone = rng.below(among) * SIZE;
    let stamps: Vec<u64> = (0..1 + rng.below(16)).map(|index| *stamp + index).collect();
    *stamp += 16;
    match rng.below(26) {
        20 | 21 => {
            let expected = model.open_random(zone / SIZE).map(|()| 0);
            assert_eq!(rig.open_random(zone).await, expected, "random write area of {zone}");
            format!("random write area of {zone}: {expected:?}")
        }
        22 | 23 => {
            let last = flush_to(rng, model);
            let expected = model.flush(last).map(|()| 0);
            assert_eq!(
                rig.run(send_of(last, send::FLUSH_RANGE.into()), HostMem::none()).await,
                expected,
                "flush {last}"
            );
            format!("flush {last}: {expected:?}")
        }
        24 => {
            let (to, parts) = (target(rng, model), 1 + rng.below(3));
            let sources: Vec<_> = (0..parts).map(|_| (rng.below(5 * SIZE), 1 + rng.below(5))).collect();
            let expected = model.copy(&sources, to).map(|()| 0);
            assert_eq!(rig.copy(&sources, to).await, expected, "copy {sources:?} to {to}");
            format!("copy {sources:?} to {to}: {expected:?}")
        }
        25 => {
            let byte = 1 + rng.below(255) as u8;
            let expected = model.set_extension(zone / SIZE, byte).map(|()| 0);
            assert_eq!(rig.set_extension(zone, byte).await, expected, "extension of {zone}");
            format!("extension of {zone}: {expected:?}")
        }
        0..=6 => {
            let slba = target(rng, model);
            let expected = model.write(slba, &stamps, false).map(|_| 0);
            let got = rig.put(IoOpcode::WRITE, slba, &stamps).await;
            assert_eq!(got, expected, "write {slba}+{}", stamps.len());
            format!("write {slba}+{}: {expected:?}", stamps.len())
        }
        7..=10 => {
            let slba = zone + u64::from(rng.chance(0.05));
            let expected = model.write(slba, &stamps, true);
            assert_eq!(rig.put(IoOpcode::ZONE_APPEND, slba, &stamps).await, expected, "append {slba}+{}", stamps.len());
            format!("append {slba}+{}: {expected:?}", stamps.len())
        }
        11..=14 => {
            let (slba, blocks) = (rng.below(5 * SIZE), 1 + rng.below(16));
            assert_eq!(rig.read(slba, blocks as u32).await, model.read(slba, blocks), "read {slba}+{blocks}");
            format!("read {slba}+{blocks}")
        }
        _ => {
            let actions = [send::CLOSE, send::FINISH, send::OPEN, send::RESET, send::OFFLINE];
            let action = actions[rng.below(5) as usize];
            let (slba, all) = (zone + u64::from(rng.chance(0.05)), rng.chance(0.1));
            let expected = model.send(slba, action, all).map(|()| 0);
            assert_eq!(rig.send(slba, action, all).await, expected, "action {action} on {slba}, all {all}");
            format!("action {action} on {slba}, all {all}: {expected:?}")
        }
    }
}

/// A block to flush a random write area to: mostly of a zone that has one.
fn flush_to(rng: &mut Rng, model: &Model) -> u64 {
    let random: Vec<u64> = (0..ZONES).filter(|zone| model.zones[*zone as usize].is_random).collect();
    let zone = if random.is_empty() { rng.below(ZONES) } else { random[rng.below(random.len() as u64) as usize] };
    let blocks = if rng.chance(0.8) { GRANULARITY * (1 + rng.below(3)) } else { rng.below(20) };
    (zone * SIZE + model.zones[zone as usize].pointer + blocks).saturating_sub(1)
}

/// Compares all zones and all data.
pub(crate) async fn compare(rig: &Rig, model: &Model) {
    let extensions = model.zones.iter().map(|zone| zone.extension.unwrap_or(0));
    assert_eq!(rig.extensions().await, extensions.collect::<Vec<_>>());
    let (count, zones) = rig.report(0, 0, 64 * (ZONES as u32 + 1)).await.expect("a report");
    assert_eq!((count, zones.len()), (ZONES, ZONES as usize));
    for ((number, zone), expected) in (0u64..).zip(&zones).zip(&model.zones) {
        assert_eq!(zone.zs >> 4, expected.state, "zone {number}");
        assert_eq!((zone.zslba.get(), zone.zcap.get(), zone.zt), (number * SIZE, CAPACITY, 2));
        let pointer = if expected.state == FULL { u64::MAX } else { number * SIZE + expected.pointer };
        assert_eq!(zone.wp.get(), pointer, "zone {number}");
        let attributes = [(expected.is_random, ZRWA_VALID), (expected.extension.is_some(), EXTENSION_VALID)];
        let attributes = attributes.iter().filter(|(is, _)| *is).map(|(_, bit)| bit).sum::<u8>();
        assert_eq!(zone.za, attributes, "zone {number}");
        for at in (0..expected.data.len() as u64).step_by(16) {
            let slba = number * SIZE + at;
            assert_eq!(rig.read(slba, 16).await, model.read(slba, 16), "read {slba}");
        }
    }
}

/// What a run did, by the first word of each command that succeeded.
type Done = BTreeSet<String>;

fn run(seed: u64, changes: &[&str], cuts: bool) -> Done {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let rig = Rig::new(&sim, changes);
    let mut rng = Seed::new(seed).child("zones").rng();
    let (last, all) = (RefCell::new(String::new()), RefCell::new(Done::new()));
    let ended = executor.block_on_within(
        async {
            let (mut model, mut stamp) = (Model::new(), 1);
            for number in 0..COMMANDS {
                let done = step(&rig, &mut model, &mut rng, &mut stamp).await;
                if done.contains("Ok") {
                    all.borrow_mut().extend(done.split(' ').next().map(str::to_owned));
                }
                *last.borrow_mut() = format!("{number}: {done}");
                if cuts && rng.chance(0.02) {
                    rig.ssd.media().cut_power(Span::from_ms(1));
                    rig.sim.sleep(Span::from_ms(20)).await;
                    model.close_open();
                    rig.ssd.check().unwrap_or_else(|problem| panic!("seed {seed}, after a cut: {problem}"));
                }
            }
            compare(&rig, &model).await;
            // What was under way has ended.
            rig.sim.sleep(Span::from_ms(1_000)).await;
            rig.ssd.check().unwrap_or_else(|problem| panic!("seed {seed}: {problem}"));
            compare(&rig, &model).await;
            assert!(model.zones.iter().all(|zone| zone.state != CLOSED || zone.pointer < CAPACITY));
        },
        MOST_EVENTS,
    );
    ended.unwrap_or_else(|_| panic!("seed {seed} does not end; the last command was {}", last.borrow()));
    all.into_inner()
}

#[test]
fn campaign_of_random_commands() {
    for mapping in ["superblock", "plane_group", "dies"] {
        // The number of zones and what a zone holds stay the same.
        let changes: &[&str] = match mapping {
            "superblock" => &["ftl.zone.mapping=superblock"],
            "plane_group" => &["ftl.zone.mapping=plane_group", "ftl.zone.depth=2"],
            _ => &["ftl.zone.mapping=dies", "ftl.zone.depth=4"],
        };
        each_seed(|seed| run(seed, changes, false));
    }
}

#[test]
fn campaign_with_failing_programs_and_erases() {
    let faults = "faults=[\"fail program probability=0.003\", \"fail erase probability=0.01\"]";
    each_seed(|seed| run(seed, &["ftl.over_provisioning=400%", faults], false));
}

#[test]
fn campaign_with_power_cuts() {
    each_seed(|seed| run(seed, &["ftl.over_provisioning=400%"], true));
}
