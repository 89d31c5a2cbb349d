//! The planted steady state against one reached by running: a drive filled in order and then overwritten at random,
//! three times over, by a host that never pauses.

use nandscape_device_ftl_core::policy::GcScheme;
use nandscape_device_ftl_core::{Ftl, Plant};
use nandscape_sim::Seed;

use super::rig::{Rig, Setup, waf};

/// Write amplification differs by no more: means of three seeds, of which one varies by up to 2% on the smallest drive.
const WAF_TOLERANCE: f64 = 0.015;
/// Free blocks of a plane differ by no more: they rise and fall by about one around each collection.
const FREE_BLOCKS_TOLERANCE: f64 = 1.5;
const SEEDS: u64 = 3;

/// A drive in its steady state.
#[derive(Default)]
struct State {
    /// Current units of each block.
    valid: Vec<u32>,
    /// Free blocks of a plane, on average.
    free: f64,
    /// Write amplification of the next drive-fill of overwrites.
    waf: f64,
}

fn reach_state(setup: &Setup, planted: bool) -> State {
    let mut rig = Rig::new(setup);
    let mut rng = Seed::new(setup.seed).child("overwrites").rng();
    let logical = u64::from(setup.logical_units);
    if planted {
        rig.ftl.plant(Plant::Steady, Seed::new(setup.seed).child("plant"), &mut |_| ());
    } else {
        rig.fill();
        rig.overwrite(3 * logical, &mut rng);
    }
    rig.check();
    let valid = rig.valid_counts();
    let free = rig.ftl.stats().free_blocks as f64 / f64::from(setup.plane_count());
    let waf = waf(&rig.overwrite(logical, &mut rng).0);
    rig.check();
    State { valid, free, waf }
}

/// The largest difference between two cumulative distributions of current units a block.
fn kolmogorov(a: &[u32], b: &[u32]) -> f64 {
    let share =
        |sample: &[u32], most: u32| sample.iter().filter(|count| **count <= most).count() as f64 / sample.len() as f64;
    let most = a.iter().chain(b).copied().max().unwrap_or(0);
    (0..=most).map(|most| (share(a, most) - share(b, most)).abs()).fold(0.0, f64::max)
}

fn pool<'a>(states: impl Iterator<Item = &'a State>) -> Vec<u32> {
    states.flat_map(|state| state.valid.iter().copied()).collect()
}

/// Compares over several seeds. Distributions are pooled, and may differ by as much as a single run differs from the
/// others, plus the blocks by which free ones may differ.
fn planted_is_as_run(setup: &Setup) {
    let reach_all = |planted: bool| -> Vec<State> {
        (0..SEEDS).map(|nth| reach_state(&Setup { seed: setup.seed + nth, ..setup.clone() }, planted)).collect()
    };
    let (planted, run) = (reach_all(true), reach_all(false));
    let others = |nth: usize| pool(run.iter().enumerate().filter(|(each, _)| *each != nth).map(|(_, state)| state));
    let scatter = (0..run.len()).map(|nth| kolmogorov(&run[nth].valid, &others(nth))).fold(0.0, f64::max);
    let distance = kolmogorov(&pool(planted.iter()), &pool(run.iter()));
    let mean = |states: &[State], what: fn(&State) -> f64| states.iter().map(what).sum::<f64>() / states.len() as f64;
    let (planted_waf, run_waf) = (mean(&planted, |state| state.waf), mean(&run, |state| state.waf));
    let (planted_free, run_free) = (mean(&planted, |state| state.free), mean(&run, |state| state.free));
    let what = format!(
        "waf {planted_waf:.3} planted, {run_waf:.3} run; free blocks a plane {planted_free:.2}, {run_free:.2}; \
         Kolmogorov distance {distance:.3}, of a run from the others {scatter:.3}; {:?}, {:?}, batch {:?}, \
         cost_benefit {}",
        setup.planes, setup.scheme, setup.batch, setup.cost_benefit
    );
    println!("{what}");
    assert!((planted_waf / run_waf - 1.0).abs() <= WAF_TOLERANCE, "{what}: {setup:?}");
    assert!((planted_free - run_free).abs() <= FREE_BLOCKS_TOLERANCE, "{what}: {setup:?}");
    let by_free_blocks = FREE_BLOCKS_TOLERANCE / f64::from(setup.blocks_per_plane);
    assert!(distance <= scatter + by_free_blocks, "{what}: {setup:?}");
}

#[test]
fn of_one_plane() {
    for cost_benefit in [false, true] {
        let setup = Setup { cost_benefit, scheme: GcScheme::Plane, ..Setup::new((1, 1, 1), 192, 128) }.filled(0.8);
        planted_is_as_run(&setup);
        planted_is_as_run(&Setup { batch: Some(1), ..setup });
    }
}

#[test]
fn of_pages_of_several_units() {
    for cost_benefit in [false, true] {
        let setup = Setup { cost_benefit, units_per_page: 4, ..Setup::new((2, 1, 2), 64, 32) }.filled(0.85);
        planted_is_as_run(&Setup { scheme: GcScheme::Channel, ..setup.clone() });
        planted_is_as_run(&Setup { scheme: GcScheme::Plane, batch: Some(1), ..setup });
    }
}

#[test]
fn of_many_small_planes() {
    for cost_benefit in [false, true] {
        let setup = Setup { cost_benefit, ..Setup::new((4, 2, 2), 24, 32) }.filled(0.75);
        planted_is_as_run(&setup);
        planted_is_as_run(&Setup { scheme: GcScheme::Plane, batch: Some(1), ..setup });
    }
}
