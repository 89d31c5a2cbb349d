//! A drive is written until it is read-only: its life under uniform wear against the closed form.
//!
//! The share of blocks that have failed after `e` erases each is `F(e) = 1 - (1 - share)^((e / rated)^shape)`. A drive of `N` blocks
//! with `s` spare ones ends when `s + 1` have failed, at `F(e) = (s + 1) / N` of them. It has then made `N` times the
//! sum of `1 - F` over the erases before. Written in order, nothing has to be moved, so each erase makes room for a
//! block of the host's data.
//!
//! This is of one plane. Of several planes, one that loses more blocks still gets its share of the writes and wears
//! sooner, and one whose collector has no room left is given up with all its blocks; only how such a drive ends is
//! checked.
//!
//! Left out: failed programs, whose data needs room elsewhere.

use nandscape_device_ftl_core::policy::GcScheme;
use nandscape_device_ftl_core::{Ftl, RandomWrites, ReadOnly};
use nandscape_device_media::Aging;
use nandscape_device_media::aging::{Correction, ErrorRates, Failures, Life, Retries};
use nandscape_sim::{Rng, Seed, Span, Wait};

use super::rig::{Rig, Setup, unit_extent};

const RATED: u32 = 60;
const FAILURES: Failures = Failures { erase: 0.5, program: 0.0, shape: 3.0 };
const PAGES: u32 = 8;

/// Flash whose reads never fail, and whose blocks wear out.
fn aging(life: Life) -> Aging {
    Aging {
        rates: ErrorRates::of([0.0; 9]),
        page_types: vec![1.0],
        layer_spread: 0.0,
        block_spread: 0.0,
        die_spread: 0.0,
        correction: Correction { bits: 8 << 10, correctable: 72, codewords: 4 },
        retries: Retries { steps: 0, keeps: 1.0 },
        rated: RATED,
        erase_growth: 0.0,
        failures: FAILURES,
        refresh: None,
        scrub: None,
        life,
    }
}

/// The share of blocks that have failed after so many erases.
fn failed(erases: f64) -> f64 {
    1.0 - libm::pow(1.0 - FAILURES.erase, libm::pow(erases / f64::from(RATED), FAILURES.shape))
}

/// The erases after which a share of blocks has failed.
fn erases_until(share: f64) -> f64 {
    f64::from(RATED) * libm::pow(libm::log1p(-share) / libm::log1p(-FAILURES.erase), 1.0 / FAILURES.shape)
}

/// The work of a drive until it is read-only.
struct Ended {
    /// Blocks of the drive.
    blocks: f64,
    /// Blocks that had to fail.
    failures: f64,
    /// Erases of the most erased block in use.
    most: f64,
    /// Successful erases.
    erases: f64,
    /// Blocks of data that the host has written.
    written: f64,
}

/// Writes a drive, in order or at random, until it is read-only.
fn write_until_it_ends(planes: (u32, u32, u32), blocks: u32, in_order: bool, life: Life, seed: u64) -> Ended {
    let setup = Setup { scheme: GcScheme::Plane, aging: Some(aging(life)), seed, ..Setup::new(planes, blocks, PAGES) };
    let mut rig = Rig::new(&setup.filled(0.6));
    let (_, spare) = rig.ftl.spare_blocks();
    let blocks = u64::from(rig.media.geometry().blocks());
    assert!((blocks / 10..blocks / 2).contains(&spare), "{spare} of {blocks} are spare");
    let (ftl, logical) = (rig.ftl.clone(), rig.setup.logical_units);
    let mut rng: Rng = Seed::new(seed).child("lifetime").rng();
    rig.run(async move {
        let mut next = 0;
        while ftl.read_only().is_none() {
            let lpn = if in_order { next } else { rng.below(logical.into()) as u32 };
            next = (next + 1) % logical;
            let reservation = ftl.reserve(unit_extent(lpn), &mut Wait::default()).await;
            if ftl.read_only().is_none() {
                ftl.accept(unit_extent(lpn), None, reservation, None);
            }
        }
    });
    // Erases that have begun end.
    let sim = rig.sim.clone();
    rig.run(async move { sim.sleep(Span::from_s(1)).await });
    assert_eq!(rig.ftl.read_only(), Some(ReadOnly::FewBlocks));
    assert_eq!(rig.ftl.read_only().unwrap().to_string(), "no spare blocks are left");
    let (stats, counts, grown) = (rig.ftl.stats(), rig.media.aging_counts().unwrap(), rig.media.grown_bad_blocks());
    // The last of the spare blocks and one more; a few more of each plane, because collections continue until blocks
    // are free again; or all of a plane that has no room left at once.
    let count = u64::from(planes.0 * planes.1 * planes.2);
    let ended = (spare + 1..=spare + 4 * count).contains(&stats.retired_blocks) || stats.planes_out_of_use > 0;
    assert!(ended, "{stats:?}");
    assert_eq!((stats.spare_blocks, counts.failed_erases), ((0, spare), stats.retired_blocks - grown));
    assert_eq!((stats.lost_units, stats.dropped_units), (0, 0));
    rig.check();
    rig.places();
    println!("seed {seed}, {planes:?}, in order {in_order}: {stats:?}");
    Ended {
        blocks: blocks as f64,
        failures: (spare + 1) as f64,
        most: f64::from(stats.erases.1),
        erases: rig.media.counts().erases as f64,
        written: (stats.host_bytes / u64::from(super::rig::UNIT * PAGES)) as f64,
    }
}

/// The erases at the end are an order statistic: so many of all blocks have failed. Within five standard deviations, and an erase by
/// which blocks differ. At random they differ by more, and the erases of all count.
#[test]
fn a_drive_lives_as_long_as_its_spare_blocks() {
    let seed = super::rig::seed();
    for (in_order, seed) in [(true, seed), (false, seed), (true, seed + 1), (false, seed + 1)] {
        let ended = write_until_it_ends((1, 1, 1), 1_024, in_order, Life::NONE, seed);
        let share = ended.failures / ended.blocks;
        let last = erases_until(share);
        let slope = failed(last + 0.5) - failed(last - 0.5);
        let off = 5.0 * libm::sqrt(share * (1.0 - share) / ended.blocks) / slope + 1.0;
        let total =
            |until: f64| (1..=until as u32).map(|erases| 1.0 - failed(erases.into())).sum::<f64>() * ended.blocks;
        println!("erases {} of {last:.1} within {off:.1}; in all {} of {:.0}", ended.most, ended.erases, total(last));
        let range = total(last - off)..total(last + off);
        assert!(range.contains(&ended.erases), "seed {seed}: {} erases in all instead of {range:?}", ended.erases);
        if in_order {
            assert!((ended.most - last).abs() <= off, "seed {seed}: {} erases instead of {last}", ended.most);
            // Each erase made room for a block of data, and all blocks were erased to begin with; a few of a plane are kept free.
            let made = ended.erases + 0.96 * ended.blocks..=ended.erases + ended.blocks;
            assert!(made.contains(&ended.written), "seed {seed}: {} blocks written of {made:?}", ended.written);
        }
    }
}

/// A life before the run counts: the rest of the erases remains, and of the blocks as well. The drive ends after the
/// erases of a new one, its life included.
#[test]
fn a_drive_that_has_lived_ends_sooner() {
    let seed = super::rig::seed();
    let lived = 30.0;
    let life = Life { cycles: lived, ..Life::NONE };
    let (new, old) = (
        write_until_it_ends((1, 1, 1), 1_024, true, Life::NONE, seed),
        write_until_it_ends((1, 1, 1), 1_024, true, life, seed),
    );
    let share = old.failures / old.blocks;
    let last = erases_until(share);
    let slope = failed(last + 0.5) - failed(last - 0.5);
    let off = 5.0 * libm::sqrt(share * (1.0 - share) / old.blocks) / slope + 1.0;
    assert!((old.most - last).abs() <= off, "{} erases instead of {last} within {off}", old.most);
    assert!(
        old.erases < new.erases - old.blocks * lived / 2.0,
        "{} erases, and {} of a new one",
        old.erases,
        new.erases
    );
}

/// Nothing is lost, and no write waits forever.
#[test]
fn a_drive_of_several_planes_ends_in_order() {
    let seed = super::rig::seed();
    for (planes, in_order) in [((2, 1, 2), true), ((2, 1, 2), false), ((1, 4, 1), false)] {
        let ended = write_until_it_ends(planes, 128, in_order, Life::NONE, seed);
        assert!(ended.failures > 0.0 && ended.erases > 10.0 * ended.blocks);
    }
}
