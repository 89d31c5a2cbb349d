//! Scrubbing: an idle drive and a drive that is only written are read once in each interval, in the time that reads
//! take. Blocks near the correctable limit are found in one interval, also those of bad quality. Scrubbing does not
//! keep a run alive.

use nandscape_device_ftl_core::policy::{GcScheme, NearLimit, RefreshPolicy};
use nandscape_device_ftl_core::{Ftl, Inspection, Plant};
use nandscape_device_media::aging::{Correction, ErrorRates, Failures, Life, Retries};
use nandscape_device_media::{Aging, BlockId, PageId, Priority};
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, Stage};
use nandscape_sim::{Class, Seed, Span, Who};

use super::rig::{Rig, Setup};

const INTERVAL: Span = Span::from_s(10);
const SHARE: f64 = 0.5;
const PAGES: u32 = 16;

/// Flash with 0.1% of errors per hour, without read disturb; 1% of errors can be corrected.
fn aging(hours: u64, block_spread: f64) -> Aging {
    Aging {
        rates: ErrorRates::of([1e-5, 0.0, 1.0, 1e-3, 0.0, 1.0, 0.0, 0.0, 1.0]),
        page_types: vec![1.0],
        layer_spread: 0.0,
        block_spread,
        die_spread: 0.0,
        correction: Correction { bits: 8 << 10, correctable: 82, codewords: 4 },
        retries: Retries { steps: 0, keeps: 0.5 },
        rated: 3_000,
        erase_growth: 0.0,
        failures: Failures { erase: 0.0, program: 0.0, shape: 3.0 },
        refresh: Some(SHARE),
        scrub: Some(INTERVAL),
        life: Life { shelf: Span::from_s(hours * 3_600), ..Life::NONE },
    }
}

fn rig(aging: Aging) -> Rig {
    let setup = Setup::new((1, 2, 2), 32, PAGES).filled(0.7);
    Rig::new(&Setup { scheme: GcScheme::Plane, aging: Some(aging), priority: Priority::ReadsFirst, ..setup })
}

fn idle(rig: &mut Rig, time: Span) {
    let sim = rig.sim.clone();
    rig.run(async move { sim.sleep(time).await });
}

/// Full blocks, and the pages that are read of them.
fn full(rig: &Rig) -> Vec<BlockId> {
    let blocks = (0..rig.media.geometry().blocks()).map(BlockId);
    blocks.filter(|block| rig.ftl.block(*block).programmed == PAGES).collect()
}

fn scrub_reads(rig: &Rig) -> u64 {
    rig.media.aging_counts().expect("it ages").scrub_reads
}

/// Without reads and writes: every page of every full block is read once in each interval, and the flash is busy for as
/// long as that takes.
#[test]
fn an_idle_drive_is_scrubbed_in_the_time_that_reads_take() {
    let mut rig = rig(aging(0, 0.0));
    rig.ftl.plant(Plant::Full, Seed::new(3), &mut |_| ());
    let pages = full(&rig).len() as u64 * u64::from(PAGES);
    assert!(pages > 1_000, "{pages} pages");
    for intervals in 1..=3 {
        idle(&mut rig, INTERVAL);
        // The turn of the last block of an interval is at its end.
        let reads = scrub_reads(&rig);
        assert!(
            (pages * intervals - u64::from(PAGES)..=pages * intervals).contains(&reads),
            "{reads} of {pages} reads"
        );
        assert_eq!(rig.media.counts().reads, reads);
        let arrays: Span =
            rig.media.array_usage().iter().map(|usage| usage.by(cause::WEAR)).fold(Span::ZERO, |sum, time| sum + time);
        assert_eq!(arrays, Span::from_us(40) * reads, "sensing, for nobody else");
        let all: Span =
            rig.media.array_usage().iter().map(|usage| usage.total()).fold(Span::ZERO, |sum, time| sum + time);
        assert_eq!(all, arrays);
    }
    assert_eq!(rig.ftl.stats().wear_blocks, 0, "none is near what can be corrected");
    rig.check();
}

/// Without reads, while the drive is written: blocks that are full for long are read once in each interval.
#[test]
fn a_drive_that_is_only_written_is_scrubbed() {
    let mut rig = rig(aging(0, 0.0));
    rig.ftl.plant(Plant::Steady, Seed::new(3), &mut |_| ());
    let (before, begun) = (rig.ftl.stats(), rig.sim.now());
    let mut rng = Seed::new(1).child("writes").rng();
    while rig.sim.now().since(begun) < INTERVAL {
        rig.overwrite(20, &mut rng);
        idle(&mut rig, Span::from_ms(50));
    }
    let pages = full(&rig).len() as u64 * u64::from(PAGES);
    let reads = scrub_reads(&rig);
    // A block that is collected in its turn, or is being written then, is read in part or not at all.
    assert!((pages * 9 / 10..=pages * 11 / 10).contains(&reads), "{reads} reads, and {pages} pages");
    let stats = rig.ftl.stats().since(&before);
    assert!(stats.gc_blocks > 20 && stats.host_units > 3_000, "{stats:?}");
    rig.settle();
    rig.check();
}

/// Blocks differ in quality, which no estimate knows. Blocks with a page near the correctable limit are moved within an
/// interval, all others stay.
#[test]
fn blocks_of_bad_quality_are_found_within_an_interval() {
    let mut rig = rig(aging(2, 0.5));
    rig.ftl.plant(Plant::Full, Seed::new(3), &mut |_| ());
    let (media, policy, geometry) = (rig.media.clone(), NearLimit { share: SHARE }, *rig.media.geometry());
    let is_near = |block: BlockId| {
        (0..PAGES).any(|page| policy.is_due_by(&media.decoded(geometry.page_at(block, page)).expect("it ages")))
    };
    let full = full(&rig);
    // An hour makes 0.2% of errors: the estimate is below the 0.5% at which a block is moved.
    assert!(full.iter().all(|block| !policy.is_due(&media.block_health(*block).expect("it ages"))));
    let (near, far): (Vec<BlockId>, Vec<BlockId>) = full.into_iter().partition(|block| is_near(*block));
    assert!(near.len() >= 5 && far.len() >= 20, "{} near, {} far", near.len(), far.len());
    idle(&mut rig, INTERVAL + Span::from_ms(100));
    assert!(near.iter().all(|block| rig.media.erases(*block) == 1), "all that are near are moved");
    assert!(far.iter().all(|block| rig.media.erases(*block) == 0), "and no others");
    let stats = rig.ftl.stats();
    assert_eq!((stats.wear_blocks, stats.lost_units), (near.len() as u64, 0));
    idle(&mut rig, INTERVAL);
    assert_eq!(rig.ftl.stats().wear_blocks, stats.wear_blocks, "what was written anew is young");
    rig.check();
}

/// The decoder's count agrees with the end of a read, and on average with the error rate.
#[test]
fn a_decoder_counts_the_errors_of_the_model() {
    for hours in [2, 8, 9] {
        let mut rig = rig(Aging { refresh: None, scrub: None, ..aging(hours, 0.0) });
        rig.ftl.plant(Plant::Full, Seed::new(3), &mut |_| ());
        let (media, pages) = (rig.media.clone(), full(&rig).len() as u32 * PAGES);
        let mut sum = 0.0;
        for block in full(&rig) {
            for page in (0..PAGES).map(|page| media.geometry().page_at(block, page)) {
                let decoded = media.decoded(page).expect("it ages");
                let read = read(&mut rig, page);
                assert_eq!(read, decoded.errors <= decoded.correctable, "{decoded:?}");
                assert!(decoded.shifted > 0.99);
                sum += f64::from(decoded.errors);
            }
        }
        // The largest of four codewords of a binomial distribution is 1.029 standard deviations above the mean, about.
        let mean = 8_192.0 * (1e-3 * hours as f64 + 1e-5);
        let (expected, found) = (mean + 1.029 * libm::sqrt(mean), sum / f64::from(pages));
        assert!((found - expected).abs() < 0.6, "{hours} hours: {found} errors instead of {expected}");
    }
}

fn read(rig: &mut Rig, page: PageId) -> bool {
    let media = rig.media.clone();
    let reader = Who::new(cause::HOST_READ, Class::new(0));
    rig.run(async move { media.read(page, 4096, reader, &mut Breakdown::new()).await }).is_ok()
}

/// A run in which nothing else happens has ended.
#[test]
fn no_run_goes_on_for_scrubbing() {
    let mut rig = rig(aging(0, 0.0));
    rig.ftl.plant(Plant::Full, Seed::new(3), &mut |_| ());
    assert!(rig.executor.block_on(std::future::pending::<()>()).is_err());
    assert!(rig.sim.now().since(nandscape_sim::Time::ZERO) < INTERVAL);
}

/// During a host's reads, scrubbing waits: a read waits at most for the scrub read under way, sensing and transfer.
#[test]
fn reads_of_hosts_go_before_those_of_the_patrol() {
    let mut rig = rig(aging(0, 0.0));
    rig.ftl.plant(Plant::Full, Seed::new(3), &mut |_| ());
    let (mut waited, mut most, full) = (0, Span::ZERO, full(&rig));
    for count in 0..60_000u32 {
        let media = rig.media.clone();
        let page = media.geometry().page_at(full[count as usize % full.len()], count % PAGES);
        let breakdown = rig.run(async move {
            let mut breakdown = Breakdown::new();
            let reader = Priority::ReadsFirst.who(cause::HOST_READ);
            media.read(page, 4096, reader, &mut breakdown).await.map(|()| breakdown)
        });
        let breakdown = breakdown.expect("it can be read");
        let wait = Stage::WAITS.iter().fold(Span::ZERO, |sum, stage| sum + breakdown.waited(*stage, cause::WEAR));
        waited += u32::from(!wait.is_zero());
        most = most.max(wait);
    }
    assert!(waited > 0, "some meet a read of the patrol");
    assert!(most <= Span::from_us(50), "{most}");
}
