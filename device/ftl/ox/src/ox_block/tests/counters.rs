//! Every page that the flash has programmed is counted once, under its purpose; recoveries and reclaimed garbage are counted. A
//! checkpoint has the reported size.

use std::cell::RefCell;

use nandscape_device_ftl_core::component::{Checkpoint as _, LogHead, LogPosition};
use nandscape_device_ftl_core::{Ftl, Stats};

use crate::ox_block::Sizes;
use crate::parts::KeyedEntries;
use nandscape_sim::{Executor, Seed, Span};

use super::case::Case;
use super::cuts::seed;
use super::kinds::Setup;
use super::load;
use super::model::Model;
use super::rig::Rig;

fn run(case: &Case) -> (Stats, u64) {
    let (mut executor, setup) = (Executor::new(), case.setup());
    let sim = executor.sim();
    let rig = Rig::new(&sim, &setup, seed(), None);
    let model = RefCell::new(Model::new(setup.config.logical_units, setup.config.transactions));
    executor
        .block_on(async {
            load::run(&rig, &model, &case.load(&setup), Seed::new(seed())).await.expect("no cut");
            // Nothing is under way after a checkpoint with all data on flash, except collections.
            rig.flush().await.expect("no cut");
            rig.ftl.checkpoint().await;
            while rig.ftl.stats().upkeep.channels_to_collect > 0 {
                sim.sleep(Span::from_ms(1)).await;
            }
            // Lets the programs under way end: a program counts for the flash when it begins, for the FTL when it ends.
            sim.sleep(Span::from_ms(100)).await;
        })
        .expect("the load ends");
    (rig.ftl.stats(), rig.media.counts().programs)
}

#[test]
fn every_program_is_counted_under_its_purpose() {
    for kind in ["plain", "paged", "transactions"] {
        let case = Case { steps: 2_000, ..Case::new(kind, seed()) };
        let units_per_page = u64::from(case.setup().flash.units_per_page);
        let (stats, programs) = run(&case);
        assert_eq!(stats.programmed_units(), programs * units_per_page, "{stats:?}");
        let upkeep = stats.upkeep;
        assert!(upkeep.checkpoints > 5 && upkeep.records > stats.host_units, "{upkeep:?}");
        let pages = upkeep.pages;
        assert!([pages.map, pages.map_small, pages.blocks, pages.log, pages.fixed].iter().all(|count| *count > 0));
        assert!(pages.fixed >= 2 * upkeep.checkpoints, "{pages:?}");
        assert!(upkeep.reclaimed_units > 0 && upkeep.garbage_units > 0, "{upkeep:?}");
    }
}

#[test]
fn recoveries_are_counted_with_what_they_read() {
    let case = Case { steps: 200, ..Case::new("transactions", seed()) };
    let (mut executor, setup) = (Executor::new(), case.setup());
    let rig = Rig::new(&executor.sim(), &setup, seed(), None);
    let model = RefCell::new(Model::new(setup.config.logical_units, true));
    executor
        .block_on(async {
            rig.ftl.in_service().await;
            assert_eq!(rig.ftl.stats().upkeep.recovered.count, 0, "formatting is no recovery");
            load::run(&rig, &model, &case.load(&setup), Seed::new(seed())).await.expect("no cut");
            let before = rig.ftl.stats().upkeep;
            rig.media.cut_power(Span::from_us(1));
            assert!(rig.try_to_recover().await, "power was cut once");
            let after = rig.ftl.stats().upkeep;
            let (recovered, last) = (after.recovered, rig.ftl.recovered());
            assert_eq!((recovered.count, recovered.records, recovered.time), (1, last.records, last.time));
            assert!(last.records > 0 && last.committed > 0 && last.time > Span::from_us(1), "{last:?}");
            assert!(after.records >= before.records, "{after:?}, {before:?}");
        })
        .expect("the load ends");
}

#[test]
fn a_checkpoint_has_the_size_that_is_told() {
    let mut executor = Executor::new();
    let setup = Setup::small();
    let rig = Rig::new(&executor.sim(), &setup, 1, None);
    executor.block_on(rig.ftl.in_service()).expect("it starts");
    let core = rig.ftl.core();
    let state = core.state.borrow();
    let head = LogHead { pages: [None; 3], number: 1, epoch: 1 };
    let mut entries = KeyedEntries::default();
    state.put_entries(&mut entries, &head, 0, LogPosition(0));
    let encoded = entries.encode();
    let sizes = Sizes::of(rig.media.geometry(), setup.config.logical_units);
    assert_eq!(encoded.len() as u64, sizes.checkpoint);
}
