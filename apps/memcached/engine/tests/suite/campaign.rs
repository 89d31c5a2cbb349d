//! Crashes of engines on drives of the model: hosts die with and without their drives, also while they open, and drives lose power under hosts
//! that live. The default configuration first, then each policy with copies and with parity.

use nandscape_apps_memcached_engine::policy::POLICIES;
use nandscape_apps_memcached_engine::{Ack, Config};
use nandscape_lab_crash::each;
use nandscape_sim::{Rng, Seed, Span};

use crate::crash::at_command;
use crate::load::{Load, Sizes};
use crate::rig::{DISKS, Plan, Seen};
use crate::stand::Kind;

const MODES: [&str; 3] = ["volatile", "through", "capacitor"];
const ACKS: [Ack; 3] = [Ack::Cache, Ack::One, Ack::All];

/// A plan on drives of the model, with what is drawn of its settings.
fn drawn(policy: &'static str, has_parity: bool, rng: &mut Rng) -> Plan {
    let ack = ACKS[rng.below(3) as usize];
    // Zones need a buffer that outlasts power cuts.
    let mode = if policy == "zoned" { "capacitor" } else { MODES[rng.below(3) as usize] };
    let plan = Plan { policy, kind: Kind::Model(mode), ..DISKS.with_ack(ack) };
    let plan = if has_parity { plan.with_parity() } else { plan };
    let drives = match (has_parity, rng.chance(0.3)) {
        (_, false) => plan.drives,
        (true, true) => 4,
        (false, true) => 2 * plan.drives,
    };
    // With a drive less, a row is there that all others have.
    let may_miss = policy != "raid0" && !(has_parity && ack == Ack::One);
    let limits: &[u64] = if rng.chance(0.4) { &[0, 200, 600] } else { &[] };
    let segment = if policy == "zoned" && rng.chance(0.5) { 512 << 10 } else { 64 << 10 };
    // Large items have the engine give up segments.
    let (load, dirty) = match rng.chance(0.5) {
        true => (Load { sizes: Sizes::Large, ..Load::of(100) }, 400 << 10),
        false => (plan.load, plan.config.dirty),
    };
    let config = Config { caches: rng.chance(0.5), segment: Some(segment), dirty, ..plan.config };
    Plan { config, drives, load, misses: may_miss && rng.chance(0.4), limits, ..plan }
}

fn run(policy: &'static str, has_parity: bool, seed: Seed) -> Seen {
    let plan = drawn(policy, has_parity, &mut seed.child("plan").rng());
    plan.passes(plan.points(5, Span::from_ms(300), seed), seed)
}

#[test]
fn copies_under_gc_control_lose_nothing() {
    let mut seen = Seen::default();
    each(10, |seed| seen += run("gc_control", false, seed));
    assert!(seen.changes > 0 && seen.collected > 0, "{seen:?}");
}

/// Also while the store is made and opened.
#[test]
fn copies_under_gc_control_lose_nothing_at_each_fifth_command() {
    for command in (1..=150).step_by(5) {
        let seed = Seed::new(command);
        let mode = MODES[command as usize % 3];
        let plan = Plan { policy: "gc_control", kind: Kind::Model(mode), ..DISKS.with_ack(Ack::All) };
        plan.passes(at_command(command, Seed::new(1)), seed);
    }
}

#[test]
fn copies_under_each_policy_lose_nothing() {
    each(1, |seed| {
        for policy in POLICIES {
            let seen = run(policy, false, seed.child(policy));
            assert!(seen.changes > 0, "{policy}: {seen:?}");
        }
    });
}

#[test]
fn parity_under_each_policy_loses_nothing() {
    each(1, |seed| {
        for policy in ["mixed", "epochs", "gc_control", "rails", "predictable_latency", "fdp"] {
            let seen = run(policy, true, seed.child(policy));
            assert!(seen.changes > 0, "{policy}: {seen:?}");
        }
    });
}
