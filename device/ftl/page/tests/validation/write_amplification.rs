//! Write amplification of greedy cleaning, measured by running, against the closed form and published figures.
//!
//! `fill` is the logical space over the flash that holds data or garbage. Erased pages hold neither. Their number while
//! the collectors keep up follows from the rules (`theory::erased_blocks`), and is itself compared with the programs
//! and erases of the flash. Where they do not keep up, it is taken from that count.

use nandscape_device_ftl_core::policy::{GcScheme, OwnerSource};
use nandscape_device_ftl_core::{Ftl, Stats};
use nandscape_sim::Seed;

use super::rig::{Rig, Setup, waf};
use super::theory::{erased_blocks, greedy_waf, large_block_waf};

/// Fill and write amplification of greedy cleaning under uniform random overwrites of 4 KiB, simulated by others.
pub(crate) const PUBLISHED: [(f64, f64); 4] = [(0.5, 1.254), (0.7, 1.873), (0.8, 2.689), (0.88, 4.338)];
/// Against the published figures and the form for large blocks.
const TOLERANCE: f64 = 0.03;
/// Against the form for blocks of this size.
const TOLERANCE_AT_SIZE: f64 = 0.01;

/// The measurements.
struct Measured {
    waf: f64,
    /// Erased blocks a plane, a part of a block being a part, on average.
    erased_blocks: f64,
}

/// Fills a drive in order, overwrites it at random until it is in steady state, and measures.
fn measure(setup: &Setup) -> Measured {
    let mut rig = Rig::new(setup);
    let mut rng = Seed::new(setup.seed).child("overwrites").rng();
    rig.fill();
    let logical = u64::from(setup.logical_units);
    rig.overwrite(2 * logical, &mut rng);

    const SAMPLES: u64 = 997;
    let before = rig.ftl.stats();
    let mut erased = 0.0;
    for _ in 0..SAMPLES {
        rig.overwrite(logical / SAMPLES, &mut rng);
        let ops = rig.media.counts();
        let pages = u64::from(setup.pages_per_block);
        let all = u64::from(setup.plane_count() * setup.blocks_per_plane) * pages;
        erased += (all + ops.erases * pages - ops.programs) as f64 / pages as f64;
    }
    rig.check();
    let stats = rig.ftl.stats().since(&before);
    let erased_blocks = erased / SAMPLES as f64 / f64::from(setup.plane_count());
    Measured { waf: waf(&stats), erased_blocks }
}

fn assert_near(what: &str, measured: f64, expected: f64, tolerance: f64) {
    let off = measured / expected - 1.0;
    println!("{what}: measured {measured:.4}, expected {expected:.4}, {:+.2}%", off * 100.0);
    assert!(off.abs() <= tolerance, "{what}: measured {measured:.4}, expected {expected:.4}, off by {off:.4}");
}

/// Compares with the figures at all fills; the collectors keep up, because they take no time.
fn meets_the_figures(setup: &Setup) {
    for (fill, published) in PUBLISHED {
        let setup = setup.clone().filled(fill);
        let measured = measure(&setup);
        let what =
            |against: &str| format!("{:?} planes, seed {}, fill {fill}, against {against}", setup.planes, setup.seed);
        let erased = erased_blocks(fill, setup.gc_free_blocks);
        assert_near(&what("erased blocks"), measured.erased_blocks, erased, 0.02);
        assert_near(&what("published"), measured.waf, published, TOLERANCE);
        assert_near(&what("large blocks"), measured.waf, large_block_waf(fill), TOLERANCE);
        let at_size = greedy_waf(fill, setup.units_per_block(), setup.padding());
        assert_near(&what("blocks of this size"), measured.waf, at_size, TOLERANCE_AT_SIZE);
    }
}

#[test]
fn one_plane_meets_the_published_figures() {
    meets_the_figures(&Setup::new((1, 1, 1), 512, 256));
}

#[test]
fn several_planes_meet_the_published_figures() {
    meets_the_figures(&Setup::new((2, 1, 2), 256, 256));
}

#[test]
fn pages_of_several_units_meet_the_published_figures() {
    meets_the_figures(&Setup { units_per_page: 4, ..Setup::new((1, 1, 2), 256, 128) });
}

/// Blocks that are being cleaned while the host writes on, and a count taken between host writes rather than when
/// victims are chosen, cost some accuracy: 3%.
#[test]
fn collectors_that_take_time_amplify_by_what_is_left_erased() {
    for scheme in [GcScheme::Plane, GcScheme::Channel, GcScheme::Controller] {
        for (batch, copyback) in [(None, true), (Some(1), false)] {
            let setup = Setup { scheme, batch, copyback, ..Setup::new((2, 1, 2), 128, 128) }.filled(0.8);
            let measured = measure(&setup);
            let blocks = f64::from(setup.blocks_per_plane) - measured.erased_blocks;
            let units = f64::from(setup.plane_count() * setup.units_per_block()) * blocks;
            let fill = f64::from(setup.logical_units) / units;
            let what = format!(
                "{scheme:?}, batch {batch:?}, copyback {copyback}, erased blocks {:.2}, fill {fill:.4}",
                measured.erased_blocks
            );
            assert_near(&what, measured.waf, greedy_waf(fill, setup.units_per_block(), setup.padding()), TOLERANCE);
        }
    }
}

#[test]
fn trimmed_space_amplifies_as_a_smaller_drive() {
    let setup = Setup::new((1, 1, 2), 192, 256).filled(0.88);
    let mut rig = Rig::new(&setup);
    let mut rng = Seed::new(setup.seed).child("overwrites").rng();
    rig.fill();
    let kept = setup.logical_units / 4 * 3;
    rig.deallocate(kept..setup.logical_units);
    rig.write_units((0..4 * kept).map(|_| rng.below(kept.into()) as u32));
    let before = rig.ftl.stats();
    rig.write_units((0..3 * kept).map(|_| rng.below(kept.into()) as u32));
    let expected = greedy_waf(0.88 * 0.75, setup.units_per_block(), 0.0);
    assert_near("fill 0.88 with a quarter trimmed", waf(&rig.ftl.stats().since(&before)), expected, TOLERANCE_AT_SIZE);
    rig.check();
}

/// Counts of the flash, and of the test itself, against the FTL's.
#[test]
fn what_is_counted_is_what_the_flash_did() {
    for (copyback, units_per_page) in [(false, 1), (true, 1), (false, 4), (true, 4)] {
        let setup = Setup {
            copyback,
            units_per_page,
            buffer_units: 32,
            scheme: GcScheme::Plane,
            ..Setup::new((2, 1, 1), 40, 32)
        }
        .filled(0.8);
        let mut rig = Rig::new(&setup);
        let mut rng = Seed::new(setup.seed).child("accounting").rng();
        rig.fill();
        rig.settle();
        let (stats, ops) = (rig.ftl.stats(), rig.media.counts());
        // A unit still in the write buffer is not drawn again: every write is programmed.
        let written: Vec<u32> = (0..20_000)
            .scan(Vec::new(), |recent: &mut Vec<u32>, _| {
                let lpn = std::iter::repeat_with(|| rng.below(u64::from(setup.logical_units)) as u32)
                    .find(|lpn| !recent.contains(lpn))?;
                recent.push(lpn);
                if recent.len() > 64 {
                    recent.remove(0);
                }
                Some(lpn)
            })
            .collect();
        rig.write_units(written.iter().copied());
        rig.settle();
        rig.check();
        let (stats, ops) = (rig.ftl.stats().since(&stats), rig.media.counts().since(&ops));
        let what = format!("copyback {copyback}, {units_per_page} units a page: {stats:?}, {ops:?}");
        let per_page = u64::from(units_per_page);
        let programmed = ops.programs * per_page;
        assert_eq!(stats.host_units, written.len() as u64, "{what}");
        assert_eq!(stats.host_bytes, written.len() as u64 * 4_096, "{what}");
        assert_eq!((stats.buffer_merges, stats.read_modify_writes, stats.wear_units), (0, 0, 0), "{what}");
        assert_eq!(stats.gc_units, programmed - written.len() as u64 - stats.padding_units, "{what}");
        assert_eq!(stats.gc_blocks, ops.erases, "{what}");
        assert!((waf(&stats) - programmed as f64 / written.len() as f64).abs() < 1e-12, "{what}");
        assert_reads_and_copies(&stats, &ops, &setup, &what);
    }
}

/// Where a page is a unit, each moved unit is a page read or a page copied, and nothing needs filling up.
fn assert_reads_and_copies(stats: &Stats, ops: &nandscape_device_media::OpCounts, setup: &Setup, what: &str) {
    match (setup.units_per_page, setup.copyback) {
        (1, false) => assert_eq!((ops.reads, ops.copybacks, stats.padding_units), (stats.gc_units, 0, 0), "{what}"),
        (1, true) => assert_eq!((ops.reads, ops.copybacks, stats.padding_units), (0, stats.gc_units, 0), "{what}"),
        (per_page, _) => {
            let per_page = u64::from(per_page);
            assert!(stats.padding_units <= (per_page - 1) * (stats.gc_blocks + 1), "{what}");
            assert!(ops.reads + ops.copybacks * per_page <= stats.gc_units, "{what}");
        }
    }
}

/// A collector that reads out-of-band areas moves the same units, and takes longer: 16 bytes of each unit cross the channel,
/// alone where pages are copied within their plane.
#[test]
fn owners_from_out_of_band_areas_take_time() {
    for copyback in [false, true] {
        let run = |owner| {
            let setup = Setup { copyback, owner, scheme: GcScheme::Plane, ..Setup::new((1, 1, 1), 64, 64) }.filled(0.8);
            let mut rig = Rig::new(&setup);
            rig.fill();
            let (stats, counts) = rig.overwrite(5_000, &mut Seed::new(setup.seed).child("owners").rng());
            rig.check();
            (stats.gc_units, counts.copybacks, rig.sim.now())
        };
        let (table, out_of_band) = (run(OwnerSource::Table), run(OwnerSource::OutOfBand));
        assert_eq!((table.0, table.1), (out_of_band.0, out_of_band.1), "copyback {copyback}");
        // 40 ns a unit at 10 us for 4 KiB.
        let longer = (out_of_band.2 - table.2).ns() as f64 / (40.0 * table.0 as f64);
        assert!((0.8..1.2).contains(&longer), "copyback {copyback}: {longer} times what the bytes take");
    }
}
