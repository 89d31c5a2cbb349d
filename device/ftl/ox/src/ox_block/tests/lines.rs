//! The layouts without a log: power cuts at every operation of short runs and at random ones of long runs, as for OX-Block. Without
//! deallocations, which a power cut undoes there. With `NANDSCAPE_TEST_CUTS` the runs of each layout continue to that
//! many cuts.

use nandscape_device_ftl_core::Ftl;
use nandscape_sim::{Executor, Seed};

use super::case::Case;
use super::cuts::{every_operation, number, seed};
use super::kinds::LINES;
use super::model::Model;
use super::rig::Rig;

/// Runs of each kind.
const RUNS: u64 = 6;

#[test]
fn at_every_operation_of_a_short_run() {
    for kind in ["pblk", "spdk"] {
        let cuts = every_operation(kind, "unreadable");
        assert!(cuts > 80, "{kind}: only {cuts} cuts");
    }
}

#[test]
fn at_random_operations_of_long_runs_of_lines() {
    for kind in LINES {
        let (mut collected, mut cuts) = (0, 0);
        for run in 0.. {
            if run >= RUNS && cuts >= number("NANDSCAPE_TEST_CUTS").unwrap_or(0) {
                break;
            }
            let seed = seed() + run;
            let mut rng = Seed::new(seed).child("cuts").rng();
            let mut faults: Vec<String> = (0..4).map(|_| format!("power_cut nth={}", 1 + rng.below(6_000))).collect();
            if rng.chance(0.5) {
                faults.push("fail program probability=0.2% count=3".to_owned());
                faults.push("fail erase probability=2% count=2".to_owned());
            }
            let case = Case { steps: 900, rounds: 5, faults, ..Case::new(kind, seed) };
            let outcome = case.run().unwrap_or_else(|wrong| panic!("{wrong}"));
            collected += outcome.gc_blocks;
            cuts += u64::from(outcome.cuts);
        }
        assert!(collected > 0, "{kind}: nothing was collected");
    }
}

/// Loads with deallocations, without cuts.
#[test]
fn data_is_kept_under_load() {
    for kind in LINES {
        let case = Case { steps: 4_000, trims: true, ..Case::new(kind, seed()) };
        let (mut executor, setup) = (Executor::new(), case.setup());
        let rig = Rig::new(&executor.sim(), &setup, seed(), None);
        let model = std::cell::RefCell::new(Model::new(setup.config.logical_units, false));
        let ended = executor.block_on(super::load::run(&rig, &model, &case.load(&setup), Seed::new(seed())));
        assert_eq!(ended, Ok(Ok(())), "{kind}");
        rig.ftl.check().unwrap_or_else(|wrong| panic!("{kind}: {wrong}"));
        let stats = rig.ftl.stats();
        assert!(rig.ftl.offers().transactions.is_none(), "{kind}");
        assert!(stats.gc_blocks > 20 && stats.upkeep.pages.blocks > 20, "{kind}: {stats:?}");
    }
}
