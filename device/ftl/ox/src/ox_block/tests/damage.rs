//! Flash that is damaged at random while power is off. Whatever it holds, recovery ends, in service, in service for
//! reads, or out of service, and the drive answers all commands.

use nandscape_device_ftl_core::ftl::Milestone;
use nandscape_device_ftl_core::{Ftl, RandomWrites};
use nandscape_device_media::{BlockId, PageId};
use nandscape_drive::{Breakdown, HostMem};
use nandscape_sim::{Executor, Rng, Seed, Span, Wait};

use super::case::Case;
use super::cuts::seed;
use super::load;
use super::model::Model;
use super::rig::{Rig, units};
use std::cell::RefCell;

/// Damaged drives of each kind.
const RUNS: u64 = 12;
/// The most polls of tasks of a run.
const MOST_POLLS: u64 = 20_000_000;

/// How a recovery ended.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum End {
    Service,
    ReadOnly,
    OutOfService,
}

#[test]
fn a_recovery_of_damaged_flash_ends() {
    let mut ends = Vec::new();
    for kind in ["plain", "transactions", "tiny", "paged"] {
        for seed in seed()..seed() + RUNS {
            ends.push(
                damaged(kind, seed).unwrap_or_else(|wrong| panic!("{kind}, NANDSCAPE_TEST_SEED={seed}: {wrong}")),
            );
        }
    }
    let count = |end| ends.iter().filter(|each| **each == end).count();
    assert!(count(End::Service) > 0 && count(End::OutOfService) > 0, "{ends:?}");
}

fn damaged(kind: &'static str, seed: u64) -> Result<End, String> {
    let case = Case { steps: 150, ..Case::new(kind, seed) };
    let (mut executor, setup) = (Executor::new(), case.setup());
    let sim = executor.sim();
    let rig = Rig::new(&sim, &setup, seed, None);
    let model = RefCell::new(Model::new(setup.config.logical_units, setup.config.transactions));
    let ended = executor.block_on_within(
        async {
            let mut rng = Seed::new(seed).child("damage").rng();
            let _ = load::run(&rig, &model, &case.load(&setup), Seed::new(seed)).await;
            rig.media.cut_power(Span::from_us(1));
            rig.media.power_returns().await;
            (0..1 + rng.below(8)).for_each(|_| damage(&rig, &mut rng));
            assert!(rig.try_to_recover().await, "power was cut once");
            use_it(&rig, setup.config.logical_units, &mut rng).await;
            match (rig.ftl.has_failed(), rig.ftl.read_only().is_some()) {
                (true, _) => End::OutOfService,
                (false, true) => End::ReadOnly,
                (false, false) => End::Service,
            }
        },
        MOST_POLLS,
    );
    ended.map_err(|unended| unended.to_string())
}

/// A page that cannot be read or reads wrong, or a block that cannot be read.
fn damage(rig: &Rig, rng: &mut Rng) {
    let geometry = rig.media.geometry();
    let mut used = (0..geometry.blocks()).map(BlockId).filter(|block| rig.media.pages_programmed(*block) > 0);
    let number = rng.below(used.clone().count() as u64) as usize;
    let block = used.nth(number).expect("there are as many");
    let pages: Vec<PageId> = (0..rig.media.pages_programmed(block)).map(|page| geometry.page_at(block, page)).collect();
    let page = pages[rng.below(pages.len() as u64) as usize];
    match rng.below(5) {
        0 => pages.iter().for_each(|page| rig.media.plant_unreadable(*page)),
        1 | 2 => rig.media.plant_unreadable(page),
        _ => rig.media.plant_corrupt(page),
    }
}

/// Reads and writes everything; the results do not matter.
async fn use_it(rig: &Rig, units_of_drive: u32, rng: &mut Rng) {
    for unit in 0..units_of_drive {
        let _ = rig.read(units(unit, 1)).await;
    }
    for _ in 0..units_of_drive {
        let extent = units(rng.below(u64::from(units_of_drive - 4)) as u32, 1 + rng.below(4) as u32);
        let reservation = rig.ftl.reserve(extent, &mut Wait::default()).await;
        if rig.ftl.read_only().is_some() {
            break;
        }
        let data = HostMem::zeroed(extent.bytes() as usize);
        let forced = (rng.below(4) == 0).then_some(Milestone::Flash);
        if let Some(settling) = rig.ftl.accept(extent, Some(&data), reservation, forced) {
            let _ = settling.settled().await;
        }
        let _ = rig.ftl.deallocate(units(extent.start as u32 / 8, 1), &mut Breakdown::new()).await;
    }
    if let Some(settling) = rig.ftl.flush() {
        let _ = settling.settled().await;
    }
}
