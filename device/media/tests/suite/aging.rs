//! Flash that ages, against closed forms: retries, uncorrectable reads, failed blocks, and times; and that the order of operations
//! changes nothing.

use nandscape_device_media::aging::{Correction, ErrorRates, Failures, Life, Retries};
use nandscape_device_media::{Aging, AgingCounts, BlockId, Media, MediaError, PageId, PageImage};
use nandscape_device_rig::TestFlash;
use nandscape_drive::Breakdown;
use nandscape_drive::breakdown::cause;

use nandscape_sim::account::Class;
use nandscape_sim::{Executor, Seed, Span, Who};

const BLOCKS: u32 = 256;
const PAGES: u32 = 64;

fn aging() -> Aging {
    Aging {
        rates: ErrorRates::TLC_72_LAYERS,
        page_types: vec![1.0; 3],
        layer_spread: 0.0,
        block_spread: 0.0,
        die_spread: 0.0,
        correction: Correction { bits: 8 << 10, correctable: 72, codewords: 4 },
        retries: Retries { steps: 8, keeps: 0.5 },
        rated: 3_000,
        erase_growth: 0.0,
        failures: Failures { erase: 0.0, program: 0.0, shape: 3.0 },
        refresh: None,
        scrub: None,
        life: Life::NONE,
    }
}

fn flash(aging: Aging, seed: u64) -> TestFlash {
    TestFlash { blocks: BLOCKS, pages: PAGES, aging: Some(aging), seed: Seed::new(seed), ..TestFlash::default() }
}

const READER: Who = Who::new(cause::HOST_READ, Class::new(0));

/// All pages of all blocks are programmed in no time.
fn plant(media: &Media) {
    for block in (0..BLOCKS).map(BlockId) {
        (0..PAGES).for_each(|page| media.plant_program(media.geometry().page_at(block, page), [0]));
    }
}

/// How a read ended, and the time that it took.
type Ended = (Result<(), MediaError>, Span);

/// Reads pages of planted flash one after the other. Returns how each ended, and the time that it took.
fn read(flash: &TestFlash, pages: impl Iterator<Item = u32>) -> (Vec<Ended>, AgingCounts) {
    let mut executor = Executor::new();
    let media = flash.media(&executor.sim());
    plant(&media);
    let mut read = |page| {
        let begun = executor.sim().now();
        let ended = executor.block_on(media.read(PageId(page), 4096, READER, &mut Breakdown::new())).unwrap();
        (ended, executor.sim().now() - begun)
    };
    let ended = pages.map(&mut read).collect();
    (ended, media.aging_counts().expect("it ages"))
}

const DAY: Span = Span::from_s(86_400);

fn lived(cycles: f64, days: u64) -> Aging {
    Aging { life: Life { cycles, shelf: DAY * days, ..Life::NONE }, ..aging() }
}

/// Each step occurs in the share of reads that the binomial tail at its error rate predicts, within five standard
/// deviations.
#[test]
fn reads_take_the_retries_that_the_binomial_tail_gives() {
    for (cycles, days) in [(0, 0), (1_500, 3), (2_500, 30), (3_000, 365), (6_000, 90)] {
        let aging = lived(f64::from(cycles), days);
        let (ended, counts) = read(&flash(aging.clone(), 7), 0..BLOCKS * PAGES);
        let parts = aging.rates.parts(cycles, 24.0 * days as f64, 0.0);
        let fails = |step| aging.correction.page_fails(aging.rate_at(parts, step));
        let pages = f64::from(BLOCKS * PAGES);
        let near = |count: u64, share: f64, what: &str| {
            let (mean, deviation) = (pages * share, (pages * share * (1.0 - share)).sqrt());
            let off = (count as f64 - mean).abs();
            assert!(off <= 5.0 * deviation + 1.0, "{cycles} cycles, {days} days, {what}: {count} instead of {mean}");
        };
        for step in 0..=8u32 {
            let before = if step == 0 { 1.0 } else { fails(step - 1) };
            let count = counts.retries.get(step as usize).copied().unwrap_or(0);
            near(count, before - fails(step), &format!("{step} retries"));
        }
        near(counts.uncorrectable, fails(8), "uncorrectable");
        let failed = ended.iter().filter(|(ended, _)| *ended == Err(MediaError::Uncorrectable)).count() as u64;
        assert_eq!((failed, counts.reads()), (counts.uncorrectable, u64::from(BLOCKS * PAGES)));
        let sum: u64 = counts.retries.iter().zip(1..).map(|(count, reads)| count * reads).sum();
        let taken: u64 = ended.iter().map(|(_, time)| time.ns()).sum();
        // Each attempt senses and transfers: 50 us and 10 us. A page that cannot be corrected has made all nine.
        assert_eq!(taken, 60_000 * (sum + 9 * counts.uncorrectable), "{cycles} cycles, {days} days");
    }
}

/// Nothing is drawn from a stream: backwards, every page ends as it did forwards.
#[test]
fn the_order_of_reads_changes_nothing() {
    let mut aging = lived(3_000.0, 300);
    (aging.block_spread, aging.die_spread, aging.layer_spread, aging.life.spread) = (0.3, 0.1, 0.2, 0.1);
    // Reads disturb, which depends on the order by its nature.
    aging.rates.disturb.0 = 0.0;
    let (forwards, one) = read(&flash(aging.clone(), 3), 0..2_000);
    let (mut backwards, other) = read(&flash(aging.clone(), 3), (0..2_000).rev());
    backwards.reverse();
    // The clock continues meanwhile, by less than a second.
    assert_eq!(forwards, backwards);
    assert_eq!((one.retries, one.uncorrectable), (other.retries, other.uncorrectable));
    assert_ne!(forwards, read(&flash(aging, 4), 0..2_000).0, "another seed is another drive");
}

/// The spread of quality is log-normal, and layers and page types have their factors.
#[test]
fn blocks_and_layers_differ_as_told() {
    let spread = |aging: Aging| read(&flash(aging, 5), 0..BLOCKS * PAGES).1;
    let plain = spread(lived(1_000.0, 10));
    let expected = aging().rates.rber(1_000, 240.0, 0.0);
    let mean = |counts: &AgingCounts| counts.rate_sum / counts.reads() as f64;
    assert!((mean(&plain) / expected - 1.0).abs() < 1e-3);
    let blocks = spread(Aging { block_spread: 0.2, ..lived(1_000.0, 10) });
    // The mean of a log-normal factor is exp(s^2 / 2); 256 blocks of it have a standard error of 1.3%.
    assert!((mean(&blocks) / mean(&plain) / libm::exp(0.2 * 0.2 / 2.0) - 1.0).abs() < 0.06);
    assert!(blocks.rate_max > 1.3 * plain.rate_max);
    let layers = spread(Aging { layer_spread: 0.5, ..lived(1_000.0, 10) });
    // At the ends 1 + 0.5, and 1 in the mean but for the ends of the sum.
    assert!((layers.rate_max / plain.rate_max - 1.5).abs() < 1e-3);
    assert!((mean(&layers) / mean(&plain) - 1.0).abs() < 0.02);
}

/// Reads of a block disturb it until it is rewritten.
#[test]
fn reads_disturb_until_the_block_is_written_again() {
    let mut aging = lived(3_000.0, 0);
    aging.rates.disturb = (1e-3, 0.0, 1.0);
    aging.retries.steps = 0;
    let mut executor = Executor::new();
    let media = flash(aging, 6).media(&executor.sim());
    plant(&media);
    let mut breakdown = Breakdown::new();
    let mut read = |executor: &mut Executor| {
        executor.block_on(media.read(PageId(3), 4096, READER, &mut breakdown)).unwrap().is_ok()
    };
    // 0.1% for each read of each of 64 pages: at 64 times 5 reads, past the correctable limit.
    assert!(read(&mut executor) && (0..64).all(|_| read(&mut executor)));
    (0..64 * 5).for_each(|_| _ = read(&mut executor));
    assert!(!read(&mut executor));
    let block = BlockId(0);
    executor.block_on(media.erase(block, READER, &mut Breakdown::new())).unwrap().unwrap();
    for page in 0..4 {
        let mut image = PageImage::default();
        image.push(0, None);
        let program = media.program(PageId(page), image, READER, &mut breakdown);
        executor.block_on(program).unwrap().unwrap();
    }
    let ended = executor.block_on(media.read(PageId(3), 4096, READER, &mut breakdown)).unwrap();
    assert_eq!(ended, Ok(()), "the block has been written anew");
}

/// Erases of each block until it fails: the share of those that fail in the rated life is as given, under uniform wear.
#[test]
fn blocks_wear_out_in_the_share_given() {
    let failures = Failures { erase: 0.4, program: 0.0, shape: 2.0 };
    let aging = Aging { rated: 100, failures, erase_growth: 1.0, ..aging() };
    let mut executor = Executor::new();
    let media = flash(aging, 8).media(&executor.sim());
    let mut failed_by = [0u32; 2];
    for block in (0..BLOCKS).map(BlockId) {
        for cycle in 0..100u64 {
            let begun = executor.sim().now();
            let ended = executor.block_on(media.erase(block, READER, &mut Breakdown::new())).unwrap();
            // 2 ms, and as much again after the rated erases.
            assert_eq!((executor.sim().now() - begun).ns(), 2_000_000 + cycle * 20_000);
            if ended.is_err() {
                failed_by[usize::from(cycle >= 50)] += 1;
                break;
            }
        }
    }
    // 1 - 0.6^(1/4) by half of the life, 0.4 by all of it: 256 blocks, within five standard deviations.
    let expected = [0.1199, 0.2801].map(|share| 256.0 * share);
    for (failed, mean) in failed_by.into_iter().zip(expected) {
        assert!((f64::from(failed) - mean).abs() < 5.0 * mean.sqrt(), "{failed} instead of {mean}");
    }
    assert_eq!(media.aging_counts().unwrap().failed_erases, u64::from(failed_by.iter().sum::<u32>()));
}

/// State that is saved and put into other flash reads as it would have.
#[test]
fn the_ages_of_blocks_are_part_of_the_saved_state() {
    let aging =
        Aging { life: Life { cycles: 2_000.0, spread: 0.2, age: DAY * 900, shelf: DAY * 30, ..Life::NONE }, ..aging() };
    let flash = flash(aging, 9);
    let mut executor = Executor::new();
    let media = flash.media(&executor.sim());
    plant(&media);
    let saved = media.take_saved().unwrap();
    let new = TestFlash { aging: Some(lived(0.0, 0)), ..flash.clone() };
    let mut restored = Media::new(&executor.sim(), new.config()).unwrap();
    restored.put_saved(saved).unwrap();
    let mut one_by_one = |media: &Media| {
        let read = |page| executor.block_on(media.read(PageId(page), 4096, READER, &mut Breakdown::new())).unwrap();
        let ended: Vec<_> = (0..3_000).map(read).collect();
        (ended, media.aging_counts().unwrap().retries)
    };
    let found = one_by_one(&restored);
    assert!(found.1[1..].iter().sum::<u64>() > 0, "some are retried");
    let again = flash.media(&Executor::new().sim());
    plant(&again);
    assert_eq!(again.erases(BlockId(17)), restored.erases(BlockId(17)));
    let mut executor = Executor::new();
    let fresh = flash.media(&executor.sim());
    plant(&fresh);
    let read = |page| executor.block_on(fresh.read(PageId(page), 4096, READER, &mut Breakdown::new())).unwrap();
    let ended: Vec<_> = (0..3_000).map(read).collect();
    assert_eq!((ended, fresh.aging_counts().unwrap().retries), found);
}

/// A state brings its bad blocks and its totals with it, into a drive that would have had others.
#[test]
fn what_a_life_has_left_is_part_of_the_saved_state() {
    let failures = Failures { erase: 0.2, program: 0.0, shape: 3.0 };
    let mut aging = Aging { failures, ..lived(3_000.0, 10) };
    (aging.life.age, aging.life.amplification, aging.life.reads_a_day) = (DAY * 500, 2.0, 1.0);
    let flash = flash(aging, 9);
    let sim = Executor::new().sim();
    let media = flash.media(&sim);
    let bad = |media: &Media| (0..BLOCKS).map(|block| media.is_grown_bad(BlockId(block))).collect::<Vec<bool>>();
    let (grown, past, reads) = (bad(&media), media.past(), media.block_health(BlockId(5)).expect("it ages").reads);
    assert!(media.grown_bad_blocks() > 30 && past.written_bytes > 0 && past.read_bytes > 0 && reads > 0.0);
    let saved = media.take_saved().expect("it is at rest");
    let other = TestFlash { aging: Some(Aging { failures, ..lived(6_000.0, 0) }), seed: Seed::new(77), ..flash };
    let mut restored = Media::new(&sim, other.config()).expect("memory for small tables");
    assert_ne!((bad(&restored), restored.past()), (grown.clone(), past));
    restored.put_saved(saved).expect("it is of such flash");
    assert_eq!((bad(&restored), restored.past()), (grown, past));
    assert_eq!(restored.block_health(BlockId(5)).expect("it ages").reads, reads);
}

/// In a life before the run, blocks have gone bad in the share that the Weibull distribution predicts, whatever mix of
/// erases and programs failed. Over seeds each is within five standard deviations, and all together pass a chi-square
/// test.
#[test]
fn a_life_leaves_the_bad_blocks_of_its_distribution() {
    for (cycles, erase, program, shape) in
        [(1_500, 0.02, 0.0, 3.0), (3_000, 0.3, 0.2, 2.0), (6_000, 0.05, 0.05, 3.0), (9_000, 0.0, 0.02, 1.0)]
    {
        let failures = Failures { erase, program, shape };
        let (mut square, seeds) = (0.0, 40);
        for seed in 0..seeds {
            let aging = Aging { failures, ..lived(f64::from(cycles), 0) };
            let rated = aging.rated;
            let media = flash(aging, seed).media(&Executor::new().sim());
            let hazard = |share: f64| -libm::log1p(-share) * libm::pow(f64::from(cycles) / f64::from(rated), shape);
            let expected = -libm::expm1(-hazard(erase) - hazard(program));
            assert!((failures.within(cycles.into(), rated) - expected).abs() < 1e-12);
            let (mean, bad) = (f64::from(BLOCKS) * expected, media.grown_bad_blocks() as f64);
            let variance = mean * (1.0 - expected);
            assert!((bad - mean).powi(2) <= 25.0 * variance + 1.0, "seed {seed}: {bad} blocks instead of {mean}");
            square += (bad - mean).powi(2) / variance;
            for block in (0..BLOCKS).map(BlockId) {
                let (erases, is_bad) = (media.erases(block), media.is_grown_bad(block));
                assert!(if is_bad { erases < cycles } else { erases == cycles }, "{erases} erases, bad: {is_bad}");
                assert_eq!(media.is_bad_at_start(block), is_bad);
            }
        }
        // Chi-square with as many degrees of freedom as seeds: five standard deviations.
        let (freedom, deviation) = (seeds as f64, libm::sqrt(2.0 * seeds as f64));
        assert!((square - freedom).abs() < 5.0 * deviation, "{cycles} erases: chi-square {square} of {freedom}");
    }
}

/// The erases that bad blocks had survived are those of the distribution too: a chi-square test over ten classes that are equally
/// likely.
#[test]
fn blocks_went_bad_at_the_erases_of_the_distribution() {
    let failures = Failures { erase: 0.9, program: 0.0, shape: 3.0 };
    let (cycles, mut classes, mut count) = (3_000.0, [0.0_f64; 10], 0.0);
    let all = failures.within(cycles, 3_000);
    for seed in 0..40 {
        let media = flash(Aging { failures, ..lived(cycles, 0) }, seed).media(&Executor::new().sim());
        for block in (0..BLOCKS).map(BlockId).filter(|block| media.is_grown_bad(*block)) {
            let share = failures.within(f64::from(media.erases(block)) + 0.5, 3_000) / all;
            classes[((share * 10.0) as usize).min(9)] += 1.0;
            count += 1.0;
        }
    }
    let expected = count / 10.0;
    let square: f64 = classes.iter().map(|found| (found - expected).powi(2) / expected).sum();
    // Nine degrees of freedom: above 33.7 in one of ten thousand.
    assert!(square < 33.7, "{classes:?}: chi-square {square}");
}

/// Reads before, and what they disturb.
#[test]
fn a_life_leaves_reads_of_its_data() {
    let life = Life { age: DAY * 30, shelf: DAY * 10, reads_a_day: 2.0, ..Life::NONE };
    let media = flash(Aging { life, ..aging() }, 1).media(&Executor::new().sim());
    let health = media.block_health(BlockId(3)).expect("it ages");
    assert!((health.hours - 40.0 * 24.0).abs() < 1e-9 && (health.reads - 60.0).abs() < 1e-9, "{health:?}");
    let past = media.past();
    assert_eq!((past.powered, past.starts, past.written_bytes), (DAY * 30, 1, 0));
}
