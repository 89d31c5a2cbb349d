//! The layouts without a log: power cuts at every operation of short runs and at random ones of long runs, as for OX-Block. Without
//! deallocations, which a power cut undoes there.

use nandscape_sim::{Executor, Seed};

use super::crash::Case;
use super::cuts::{every_operation, load, number, seed};
use super::load::Load;
use super::model::Model;
use super::rig::{Rig, Setup};
use crate::Ftl;
use crate::ox_block::Layout;

fn kinds() -> [(&'static str, Setup); 4] {
    [
        ("pblk", Setup::small().layout(Layout::PBLK)),
        ("spdk", Setup::small().layout(Layout::SPDK)),
        ("pblk, through", Setup::small().layout(Layout::PBLK).through()),
        ("spdk, capacitors", Setup::small().layout(Layout::SPDK).capacitors()),
    ]
}

fn without_deallocations(setup: &Setup, steps: u32) -> Load {
    Load { deallocates: false, ..load(setup, steps) }
}

#[test]
fn at_every_operation_of_a_short_run() {
    for (name, setup) in kinds().into_iter().take(2) {
        let load = without_deallocations(&setup, 50);
        let cuts = every_operation(&setup, load, &[]).unwrap_or_else(|wrong| panic!("{name}: {wrong}"));
        assert!(cuts > 80, "{name}: only {cuts} cuts");
    }
}

#[test]
fn at_random_operations_of_long_runs_of_lines() {
    let cases = number("NANDSCAPE_TEST_CUTS").unwrap_or(6);
    for (name, setup) in kinds() {
        let mut collected = 0;
        for number in 0..cases {
            let seed = seed() + number;
            let mut rng = Seed::new(seed).child("cuts").rng();
            let mut faults: Vec<String> = (0..4).map(|_| format!("power_cut nth={}", 1 + rng.below(6_000))).collect();
            if rng.chance(0.5) {
                faults.push("fail program probability=0.2% count=3".to_owned());
                faults.push("fail erase probability=2% count=2".to_owned());
            }
            let load = without_deallocations(&setup, 900);
            let case = Case { setup: setup.clone(), load, seed, faults, rounds: 5, lost: None };
            let outcome = case.run().unwrap_or_else(|wrong| {
                panic!("{name}: {wrong}\nNANDSCAPE_TEST_SEED={seed} NANDSCAPE_TEST_CUTS=1 cargo test -p nandscape-device-ftl --lib runs_of_lines")
            });
            collected += outcome.gc_blocks;
        }
        assert!(collected > 0, "{name}: nothing was collected");
    }
}

/// Loads with deallocations, without cuts.
#[test]
fn data_is_kept_under_load() {
    for (name, setup) in kinds() {
        let mut executor = Executor::new();
        let rig = Rig::new(&executor, &setup, seed());
        let model = std::cell::RefCell::new(Model::new(setup.config.logical_units, false));
        let ended = executor.block_on(super::load::run(&rig, &model, &load(&setup, 4_000), Seed::new(seed())));
        assert_eq!(ended, Ok(Ok(())), "{name}");
        rig.ftl.check().unwrap_or_else(|wrong| panic!("{name}: {wrong}"));
        let stats = rig.ftl.stats();
        assert_eq!(rig.ftl.max_transaction(), None, "{name}");
        assert!(stats.gc_blocks > 20 && stats.upkeep.pages.blocks > 20, "{name}: {stats:?}");
    }
}
