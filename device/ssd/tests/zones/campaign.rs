//! Random commands against the model, on many seeds: each status, each report and all data; one at a time, and several at
//! once. Variants: flash faults; power cuts between commands, during programs and erases; so few spare blocks that zones
//! become read-only; both.
//!
//! `NANDSCAPE_TEST_SEEDS=5000 cargo test -p nandscape-device-ssd --test zones campaign` runs more seeds, and `NANDSCAPE_TEST_SEED=7`
//! only one.

use std::cell::RefCell;
use std::collections::BTreeSet;

use nandscape_sim::rng::Rng;
use nandscape_sim::{Executor, Seed, Span};
use nandscape_wire_nvme::Status;
use nandscape_wire_nvme::zns::{EXTENSION_VALID, ZRWA_VALID};

use crate::model::{CLOSED, FULL, Model, OFFLINE, READ_ONLY};
use crate::order::{Order, perform};
use crate::rig::{CAPACITY, Rig, SIZE, ZONES};

/// Commands of a seed.
const COMMANDS: u32 = 150;
/// Seeds of a short run.
const SEEDS: u64 = 20;
/// Polls after which a run is stuck.
const MOST_EVENTS: u64 = 20_000_000;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}, not a number")))
}

/// Runs seeds; together they must have issued every kind of command, and met these statuses.
fn each_seed(run: impl Fn(u64) -> Done, statuses: &[Status]) {
    if let Some(seed) = number("NANDSCAPE_TEST_SEED") {
        return drop(run(seed));
    }
    let done: Done =
        (1..=number("NANDSCAPE_TEST_SEEDS").unwrap_or(SEEDS)).flat_map(|seed| told(seed, || run(seed))).collect();
    let all = ["action", "append", "copy", "extension", "flush", "random", "read", "write"].map(str::to_owned);
    let wanted = all.into_iter().chain(statuses.iter().map(Status::to_string));
    let missing: Vec<String> = wanted.filter(|what| !done.contains(what)).collect();
    assert!(missing.is_empty(), "{missing:?} did not happen: {done:?}");
}

/// Prints the failing seed.
fn told<T>(seed: u64, run: impl FnOnce() -> T) -> T {
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
    ended.unwrap_or_else(|panic| {
        panic!("seed {seed}: {}", panic.downcast_ref::<String>().map_or("it failed", String::as_str))
    })
}

/// A random command, whose status must be that of the model.
pub(crate) async fn step(rig: &Rig, model: &mut Model, rng: &mut Rng, stamp: &mut u64) {
    let order = Order::draw(rng, model, stamp);
    perform(rig, model, &[order], false).await;
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
        let pointer = if [READ_ONLY, FULL, OFFLINE].contains(&expected.state) {
            u64::MAX
        } else {
            number * SIZE + expected.pointer
        };
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

/// The results of a run: the names of successful commands, and the statuses of failed ones.
type Done = BTreeSet<String>;

/// Events between commands.
#[derive(Copy, Clone, Default)]
struct Beside {
    /// Power is cut between commands.
    cuts: bool,
    /// The flash fails, and zones may become read-only.
    fails: bool,
}

fn run(seed: u64, changes: &[&str], Beside { cuts, fails }: Beside) -> Done {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let rows: &[&str] = if seed.is_multiple_of(3) { &["timing.interleaving=rows"] } else { &[] };
    let changes = [changes, rows].concat();
    let rig = if fails { Rig::seeded(&sim, &changes, Seed::new(seed)) } else { Rig::new(&sim, &changes) };
    let mut rng = Seed::new(seed).child("zones").rng();
    let (last, all) = (RefCell::new(String::new()), RefCell::new(Done::new()));
    let ended = executor.block_on_within(
        async {
            let (mut model, mut stamp) = (Model::new(), 1);
            for number in 0..COMMANDS {
                let orders = match rng.chance(0.1) {
                    true => Order::draw_several(&mut rng, &model, &mut stamp),
                    false => vec![Order::draw(&mut rng, &model, &mut stamp)],
                };
                *last.borrow_mut() = format!("{number}: {orders:?}");
                let ended = perform(&rig, &mut model, &orders, fails).await;
                let told = orders.iter().zip(ended).map(|(order, ended)| match ended {
                    Ok(_) => order.name().to_owned(),
                    Err(status) => status.to_string(),
                });
                all.borrow_mut().extend(told);
                if cuts && rng.chance(0.02) {
                    rig.ssd.media().cut_power(Span::from_ms(1));
                    rig.sim.sleep(Span::from_ms(20)).await;
                    model.close_open();
                    rig.ssd.check().unwrap_or_else(|problem| panic!("seed {seed}, after a cut: {problem}"));
                }
            }
            if fails {
                // Operations in progress make the last zones read-only.
                rig.sim.sleep(Span::from_ms(1_000)).await;
                perform(&rig, &mut model, &[], fails).await;
            }
            compare(&rig, &model).await;
            // Operations in progress have ended.
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

/// Statuses that also occur with healthy zones.
const REFUSED: [Status; 6] = [
    Status::ZONE_IS_FULL,
    Status::ZONE_INVALID_WRITE,
    Status::ZONE_BOUNDARY_ERROR,
    Status::TOO_MANY_ACTIVE_ZONES,
    Status::INVALID_ZONE_STATE_TRANSITION,
    Status::INVALID_ZONE_OPERATION,
];

#[test]
fn campaign_of_random_commands() {
    for mapping in ["superblock", "plane_group", "dies"] {
        // The number and the capacity of zones stay the same.
        let changes: &[&str] = match mapping {
            "superblock" => &["ftl.zone.mapping=superblock"],
            "plane_group" => &["ftl.zone.mapping=plane_group", "ftl.zone.depth=2"],
            _ => &["ftl.zone.mapping=dies", "ftl.zone.depth=4"],
        };
        each_seed(|seed| run(seed, changes, Beside::default()), &REFUSED);
    }
}

#[test]
fn campaign_with_failing_programs_and_erases() {
    let faults = "faults=[\"fail program probability=0.003\", \"fail erase probability=0.01\"]";
    each_seed(|seed| run(seed, &["ftl.over_provisioning=400%", faults], Beside::default()), &REFUSED);
}

#[test]
fn campaign_with_power_cuts() {
    let cuts = Beside { cuts: true, fails: false };
    each_seed(|seed| run(seed, &["ftl.over_provisioning=400%"], cuts), &REFUSED);
}

/// Flash that fails often, and blocks that are soon used up: zones become read-only, and offline.
const SCARCE: [&str; 2] =
    ["ftl.over_provisioning=20%", "faults=[\"fail program probability=0.25\", \"fail erase probability=0.4\"]"];
/// The expected statuses.
const LOST: [Status; 2] = [Status::ZONE_IS_READ_ONLY, Status::ZONE_IS_OFFLINE];

#[test]
fn campaign_with_too_few_spare_blocks() {
    for mapping in [&["ftl.zone.mapping=superblock"][..], &["ftl.zone.mapping=dies", "ftl.zone.depth=4"]] {
        let changes = [&SCARCE[..], mapping].concat();
        each_seed(|seed| run(seed, &changes, Beside { cuts: false, fails: true }), &LOST);
    }
}

#[test]
fn campaign_with_too_few_spare_blocks_and_power_cuts() {
    each_seed(|seed| run(seed, &SCARCE, Beside { cuts: true, fails: true }), &LOST);
}

/// As many planes as otherwise, two per die: zones have the same capacity, and a reset erases both planes of a die at once.
const TWO_PLANES: [&str; 4] =
    ["geometry.dies_per_channel=1", "geometry.planes_per_die=2", "timing.planes=multi_plane", "buffer.size=256KiB"];

#[test]
fn campaign_of_dies_with_two_planes() {
    each_seed(|seed| run(seed, &TWO_PLANES, Beside::default()), &REFUSED);
    let cuts = Beside { cuts: true, fails: false };
    each_seed(|seed| run(seed, &[&TWO_PLANES[..], &["ftl.over_provisioning=400%"]].concat(), cuts), &REFUSED);
    let scarce = [&TWO_PLANES[..], &SCARCE].concat();
    each_seed(|seed| run(seed, &scarce, Beside { cuts: false, fails: true }), &LOST);
    each_seed(|seed| run(seed, &scarce, Beside { cuts: true, fails: true }), &LOST);
}
