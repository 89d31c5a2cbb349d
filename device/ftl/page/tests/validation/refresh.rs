//! Refresh: blocks near the correctable limit are rewritten, no others are, and nothing is lost during garbage
//! collection.

use nandscape_device_ftl_core::policy::GcScheme;
use nandscape_device_ftl_core::{Ftl, Plant};
use nandscape_device_media::aging::{Correction, ErrorRates, Failures, Life, Retries};
use nandscape_device_media::{Aging, BlockId, MediaError, PageId};
use nandscape_drive::Breakdown;
use nandscape_drive::breakdown::cause;
use nandscape_sim::{Class, Seed, Span, Who};

use super::rig::{Rig, Setup};

const READER: Who = Who::new(cause::HOST_READ, Class::new(0));
const HOUR: Span = Span::from_s(3_600);

/// Flash whose errors are by retention and disturb: 0.1% for each hour, and for each read of each page.
fn aging(shelf: Span) -> Aging {
    Aging {
        rates: ErrorRates::of([1e-5, 0.0, 1.0, 1e-3, 0.0, 1.0, 1e-3, 0.0, 1.0]),
        page_types: vec![1.0],
        layer_spread: 0.0,
        block_spread: 0.0,
        die_spread: 0.0,
        correction: Correction { bits: 8 << 10, correctable: 82, codewords: 4 },
        retries: Retries { steps: 4, keeps: 0.5 },
        rated: 3_000,
        erase_growth: 0.0,
        failures: Failures { erase: 0.0, program: 0.0, shape: 3.0 },
        refresh: Some(0.5),
        scrub: None,
        life: Life { shelf, ..Life::NONE },
    }
}

fn setup(shelf: Span, batch: Option<u32>) -> Setup {
    let setup = Setup::new((1, 2, 1), 32, 16).filled(0.7);
    Setup { scheme: GcScheme::Plane, batch, aging: Some(aging(shelf)), ..setup }
}

/// Reads a page. Its block may have been refreshed since it was looked up.
fn read(rig: &mut Rig, page: PageId) -> Result<(), MediaError> {
    let media = rig.media.clone();
    rig.run(async move { media.read(page, 4096, READER, &mut Breakdown::new()).await })
}

/// The page that holds a logical unit.
fn page_of(rig: &Rig, lpn: usize) -> PageId {
    rig.media.geometry().page_of(rig.places()[lpn].expect("it is on flash"))
}

/// 82 errors of 8192 bits are 1%, of which a half is five reads of each of 16 pages.
#[test]
fn a_block_that_is_read_often_is_written_anew_and_no_other() {
    let mut rig = Rig::new(&setup(Span::ZERO, Some(1)));
    rig.fill();
    rig.settle();
    let (page, geometry) = (page_of(&rig, 0), *rig.media.geometry());
    let block = geometry.block_of(page);
    for reads in 1..=79 {
        assert_eq!(read(&mut rig, page), Ok(()));
        assert_eq!(rig.ftl.stats().wear_blocks, 0, "after {reads} reads");
    }
    assert_eq!(page_of(&rig, 0), page);
    (0..2).for_each(|_| assert_eq!(read(&mut rig, page), Ok(())));
    rig.settle();
    assert_eq!((rig.ftl.stats().wear_blocks, rig.media.erases(block)), (1, 1));
    assert_ne!(geometry.block_of(page_of(&rig, 0)), block);
    assert_eq!(rig.ftl.stats().wear_units, u64::from(geometry.units_per_block()), "all of it was current");
    rig.check();
}

/// Data of six hours is at 0.6%. Reads of one page make every block checked in turn.
#[test]
fn old_data_is_written_anew_once() {
    for batch in [None, Some(1), Some(4)] {
        let mut rig = Rig::new(&setup(HOUR * 6, batch));
        rig.ftl.plant(Plant::Full, Seed::new(5), &mut |_| ());
        let blocks = rig.media.geometry().blocks();
        let old = |rig: &Rig| {
            let full = (0..blocks).map(BlockId).filter(|block| rig.valid_counts()[block.0 as usize] == 16);
            full.filter(|block| rig.media.block_health(*block).unwrap().hours >= 6.0).count() as u64
        };
        let before = old(&rig);
        assert!(before > 20, "{before}");
        for _ in 0..u64::from(blocks) * 16 {
            let page = page_of(&rig, 7);
            let _ = read(&mut rig, page);
        }
        rig.settle();
        assert_eq!(old(&rig), 0, "batch {batch:?}");
        let refreshed = rig.ftl.stats().wear_blocks;
        assert!(refreshed >= before, "{refreshed} of {before}");
        assert_eq!(rig.ftl.stats().lost_units, 0);
        rig.check();
    }
}

/// Writes at random, which garbage collection makes room for, and reads, which refresh follows.
#[test]
fn refresh_goes_beside_garbage_collection() {
    let seed = std::env::var("NANDSCAPE_TEST_SEED").map_or(1, |text| text.parse().expect("a number"));
    for (batch, seed) in [None, Some(1)].into_iter().zip([seed, seed + 1]) {
        let mut rig = Rig::new(&setup(HOUR * 6, batch));
        let mut rng = Seed::new(seed).child("refresh").rng();
        rig.ftl.plant(Plant::Steady, Seed::new(seed), &mut |_| ());
        for _ in 0..400 {
            rig.overwrite(rng.below(20), &mut rng);
            rig.settle();
            let places = rig.places();
            for _ in 0..20 {
                let unit = places[rng.below(places.len() as u64) as usize].expect("it is on flash");
                let page = rig.media.geometry().page_of(unit);
                let _ = read(&mut rig, page);
            }
        }
        rig.settle();
        rig.places();
        rig.check();
        let stats = rig.ftl.stats();
        println!("seed {seed}: {} blocks collected, {} refreshed", stats.gc_blocks, stats.wear_blocks);
        assert!(stats.wear_blocks > 0 && stats.gc_blocks > 0 && stats.lost_units == 0, "seed {seed}: {stats:?}");
    }
}
