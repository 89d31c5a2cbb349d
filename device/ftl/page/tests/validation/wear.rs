//! Wear: the spread of erases, the moves of levelling, and unused bad blocks.

use nandscape_device_ftl_core::policy::GcScheme;
use nandscape_device_ftl_core::{Ftl, Stats};
use nandscape_device_ftl_page::WearConfig;
use nandscape_device_media::BlockId;
use nandscape_sim::Seed;

use super::rig::{Rig, Setup};

fn setup(gc_free_blocks: u32, dynamic: bool, static_threshold: u32) -> Setup {
    let wear = WearConfig { dynamic, static_threshold };
    Setup { gc_free_blocks, wear, scheme: GcScheme::Plane, ..Setup::new((1, 1, 1), 64, 32) }.filled(0.8)
}

/// Overwrites the first share of a full drive, twenty times the drive's size a round; returns the state and counts
/// after each round.
fn wear_out(gc_free_blocks: u32, dynamic: bool, static_threshold: u32, hot: f64, rounds: u32) -> Vec<Stats> {
    let setup = setup(gc_free_blocks, dynamic, static_threshold);
    let mut rig = Rig::new(&setup);
    let mut rng = Seed::new(setup.seed).child("wear").rng();
    rig.fill();
    let hot = (f64::from(setup.logical_units) * hot) as u64;
    let mut after_round = || {
        rig.write_units((0..setup.logical_units * 20).map(|_| rng.below(hot) as u32));
        let stats = rig.ftl.stats();
        assert_eq!(stats.erases.2, rig.media.counts().erases, "{setup:?}");
        assert_eq!(stats.erases.2, stats.gc_blocks + stats.wear_blocks, "{setup:?}");
        stats
    };
    let stats = (0..rounds).map(|_| after_round()).collect();
    rig.settle();
    rig.check();
    let (stats_end, ops) = (rig.ftl.stats(), rig.media.counts());
    assert_eq!(stats_end.programmed_units(), ops.programs, "{setup:?}");
    assert_eq!(stats_end.gc_units + stats_end.wear_units, ops.reads, "each unit moved is a page read: {setup:?}");
    stats
}

fn spread(stats: &Stats) -> u32 {
    stats.erases.1 - stats.erases.0
}

/// A dozen free blocks, to have a choice among.
#[test]
fn dynamic_levelling_narrows_the_spread_of_a_uniform_load() {
    let fifo = wear_out(12, false, 0, 1.0, 4);
    let levelled = wear_out(12, true, 0, 1.0, 4);
    let (fifo, levelled) = (fifo[3], levelled[3]);
    println!("erases {:?} in the order of freeing, {:?} least erased first", fifo.erases, levelled.erases);
    assert!(2 * spread(&levelled) <= spread(&fifo), "{:?} levelled, {:?} not", levelled.erases, fifo.erases);
    assert_eq!((levelled.wear_units, levelled.gc_units), (0, fifo.gc_units), "the order of free blocks moves nothing");
}

/// Blocks of cold data are never erased without static levelling, however the free ones are ordered.
#[test]
fn without_static_levelling_cold_data_keeps_its_blocks() {
    for dynamic in [false, true] {
        let rounds = wear_out(2, dynamic, 0, 0.5, 3);
        let spreads: Vec<u32> = rounds.iter().map(spread).collect();
        assert!(rounds.iter().all(|stats| stats.erases.0 == 0 && stats.wear_units == 0), "{rounds:?}");
        assert!(spreads.windows(2).all(|pair| pair[1] >= pair[0] + 30), "it grows without bound: {spreads:?}");
    }
}

/// One block is levelled for each that is cleaned, so that the spread overshoots the threshold by the erases of one
/// cleaning: two blocks.
#[test]
fn static_levelling_bounds_the_spread_by_its_threshold() {
    for (dynamic, threshold) in [(false, 10), (true, 4)] {
        for stats in wear_out(2, dynamic, threshold, 0.5, 3) {
            let what = format!("dynamic {dynamic}, threshold {threshold}: {stats:?}");
            println!("{what}");
            assert!(spread(&stats) <= threshold + 2, "{what}");
            assert!(stats.wear_blocks > 0 && stats.wear_units > 0, "{what}");
        }
    }
}

/// Cold data put on a block with the highest wear lags again only after the others have been erased as often as the
/// threshold. In the time in which the blocks in use are erased E times, each cold block is therefore moved E /
/// threshold times, and once to begin with. Half as much again is left for blocks that lag with data that is not cold.
#[test]
fn static_levelling_moves_each_cold_block_once_a_threshold() {
    for threshold in [4, 10] {
        let (setup, stats) = (setup(2, true, threshold), wear_out(2, true, threshold, 0.5, 3)[2]);
        // One is shared with data that is not cold, and one is open.
        let cold_blocks = f64::from((setup.logical_units / 2).div_ceil(setup.units_per_block()) + 1);
        let moves = stats.wear_blocks as f64 / cold_blocks;
        let most = 1.5 * f64::from(stats.erases.1) / f64::from(threshold) + 1.0;
        println!("threshold {threshold}: moved {moves:.1} times, at most {most:.1}; {stats:?}");
        assert!(moves <= most, "threshold {threshold}: {moves} moves, {most} at most: {stats:?}");
    }
}

/// Tags are zeros on flash that was never programmed, and here no unit with data has that tag but unit 0.
#[test]
fn bad_blocks_are_never_programmed_or_mapped() {
    let wear = WearConfig { dynamic: true, static_threshold: 4 };
    let setup = Setup { factory_bad: 3, wear, scheme: GcScheme::Plane, ..Setup::new((2, 1, 2), 24, 16) }.filled(0.8);
    let mut rig = Rig::new(&setup);
    let mut rng = Seed::new(setup.seed).child("bad").rng();
    rig.fill();
    rig.overwrite(10 * u64::from(setup.logical_units), &mut rng);
    rig.settle();
    rig.check();
    let geometry = *rig.media.geometry();
    let bad: Vec<BlockId> =
        (0..geometry.blocks()).map(BlockId).filter(|block| rig.media.is_factory_bad(*block)).collect();
    assert_eq!(bad.len() as u32, setup.factory_bad * setup.plane_count());
    for block in &bad {
        let pages = (0..setup.pages_per_block).map(|page| geometry.page_at(*block, page));
        let tags: Vec<u32> = pages.map(|page| rig.media.tag(geometry.unit_at(page, 0))).collect();
        assert!(tags.iter().all(|tag| *tag == 0), "{block:?} was programmed: {tags:?}");
    }
    let blocks: Vec<BlockId> =
        rig.places().into_iter().flatten().map(|unit| geometry.block_of(geometry.page_of(unit))).collect();
    assert_eq!(blocks.len() as u32, setup.logical_units);
    assert!(blocks.iter().all(|block| !bad.contains(block)));
    // Every good block was used: those that were not would have a tag of 0 all over.
    let used = |block: &BlockId| {
        (0..setup.pages_per_block).any(|page| rig.media.tag(geometry.unit_at(geometry.page_at(*block, page), 0)) != 0)
    };
    let used = (0..geometry.blocks()).map(BlockId).filter(used).count() as u32;
    assert_eq!(used, geometry.blocks() - bad.len() as u32);
}
