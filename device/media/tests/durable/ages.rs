//! A life before the first start, and the ages of data, in a file: kept over stops, and over kills except for the last
//! minute.

use std::sync::Arc;

use nandscape_device_media::aging::{Correction, ErrorRates, Failures, Life, Retries};
use nandscape_device_media::durable::{Backing as _, MemoryFile, StoreError, StoreFile, StoreSpec};
use nandscape_device_media::{Aging, BlockId, Media, PageId};
use nandscape_device_rig::{TestFlash, UNIT};
use nandscape_drive::Breakdown;
use nandscape_sim::{Executor, Rng, Seed, Span};

use crate::rig::{each_seed, image, who};

const BLOCKS: u32 = 6;
const PAGES: u32 = 4;
const DAY: Span = Span::from_s(86_400);
/// Drive time after which ages are written again.
const MINUTE: u64 = 60_000_000_000;

/// Blocks that differ in wear, age and quality, some of which went bad; reads that take retries, and some that fail.
fn lived() -> Life {
    Life { cycles: 3_000.0, spread: 0.1, age: DAY * 500, shelf: DAY * 30, reads_a_day: 2.0, amplification: 2.0 }
}

fn aged(life: Life, seed: u64) -> TestFlash {
    let aging = Aging {
        rates: ErrorRates::TLC_72_LAYERS,
        page_types: vec![1.0],
        layer_spread: 0.1,
        block_spread: 0.2,
        die_spread: 0.1,
        correction: Correction { bits: 8 << 10, correctable: 72, codewords: 4 },
        retries: Retries { steps: 8, keeps: 0.5 },
        rated: 3_000,
        erase_growth: 0.5,
        failures: Failures { erase: 0.2, program: 0.1, shape: 3.0 },
        refresh: None,
        scrub: None,
        life,
    };
    TestFlash { aging: Some(aging), seed: Seed::new(seed), ..crate::rig::flash() }
}

fn new_file(syncs: bool) -> Arc<MemoryFile> {
    let backing = Arc::new(MemoryFile::new());
    drop(StoreFile::create_on(backing.clone(), spec(), syncs).unwrap());
    backing
}

fn spec() -> StoreSpec {
    crate::rig::spec()
}

fn open(executor: &Executor, flash: &TestFlash, backing: &Arc<MemoryFile>) -> Result<Media, StoreError> {
    Ok(Media::open(&executor.sim(), flash.config(), StoreFile::open_on(backing.clone(), false)?)?)
}

fn blocks() -> impl Iterator<Item = BlockId> {
    (0..BLOCKS).map(BlockId)
}

/// The whole aging state of a drive: of each block its erases, whether it went bad, and the bits of its health; of each page
/// the decoder's result.
fn known(media: &Media) -> Vec<String> {
    let of_block = |block| {
        let pages = (0..PAGES).map(|page| media.decoded(media.geometry().page_at(block, page)));
        let (bad, health) = (media.is_grown_bad(block), media.block_health(block).expect("it ages"));
        let bits = [health.floor, health.shift, health.hours, health.reads].map(f64::to_bits);
        format!("{} {bad} {bits:?} {:?}", media.erases(block), pages.collect::<Vec<_>>())
    };
    let past = media.past();
    let totals = (past.starts, past.written_bytes, past.read_bytes, past.programmed_bytes, media.powered());
    blocks().map(of_block).chain([format!("{totals:?}")]).collect()
}

/// An operation, and the time that passes after it.
#[derive(Copy, Clone, Debug)]
enum Step {
    Erase(BlockId),
    Program(BlockId),
    Read(PageId),
}

fn draw(rng: &mut Rng) -> (Step, Span) {
    let block = BlockId(rng.below(BLOCKS.into()) as u32);
    let step = match rng.below(8) {
        0 => Step::Erase(block),
        1..=4 => Step::Program(block),
        _ => Step::Read(PageId(block.0 * PAGES + rng.below(PAGES.into()) as u32)),
    };
    (step, Span::from_s(rng.below(100) * rng.below(100)))
}

/// A step that the flash cannot do.
const IDLE: &str = "nothing to do";

/// Does a step, and returns its end and its duration.
fn act(executor: &mut Executor, media: &Media, step: Step) -> String {
    let (begun, breakdown) = (executor.sim().now(), &mut Breakdown::new());
    let ended = match step {
        Step::Erase(block) => format!("{:?}", executor.block_on(media.erase(block, who(), breakdown)).unwrap()),
        Step::Program(block) => {
            let next = media.pages_programmed(block);
            if next == PAGES {
                return IDLE.to_owned();
            }
            let page = media.geometry().page_at(block, next);
            format!("{:?}", executor.block_on(media.program(page, image(next), who(), breakdown)).unwrap())
        }
        Step::Read(page) if !media.is_readable(page) => return IDLE.to_owned(),
        Step::Read(page) => format!("{:?}", executor.block_on(media.read(page, UNIT, who(), breakdown)).unwrap()),
    };
    format!("{ended} in {}", executor.sim().now() - begun)
}

fn wait(executor: &mut Executor, time: Span) {
    executor.block_on(executor.sim().sleep(time)).unwrap();
}

/// A new drive in a file has the life of one in memory, and continues as that drive does, over any number of stops.
/// Erases, bad blocks, ages, reads, error rates, retries and errors are the same to the last bit.
#[test]
fn a_drive_in_a_file_ages_as_one_in_memory() {
    each_seed(60, |seed| {
        let mut rng = seed.rng();
        let flash = aged(lived(), rng.below(1 << 20));
        let (mut in_memory, mut in_file) = (Executor::new(), Executor::new());
        let media = flash.media(&in_memory.sim());
        let backing = new_file(false);
        let mut filed = open(&in_file, &flash, &backing).unwrap();
        assert!(media.past().written_bytes > 0);
        for _ in 0..6 {
            assert_eq!(known(&filed), known(&media));
            for _ in 0..40 {
                let (step, time) = draw(&mut rng);
                assert_eq!(act(&mut in_file, &filed, step), act(&mut in_memory, &media, step), "{step:?}");
                wait(&mut in_file, time);
                wait(&mut in_memory, time);
            }
            assert_eq!(known(&filed), known(&media));
            filed.close().unwrap();
            in_file = Executor::new();
            // A drive may be assembled at any time of its clock.
            wait(&mut in_file, Span::from_s(rng.below(3)));
            filed = Media::open(&in_file.sim(), flash.config(), StoreFile::open_on(backing.clone(), false).unwrap())
                .unwrap();
            assert_eq!(filed.check_file(), [""; 0]);
        }
    });
}

/// A later start does not need the keys of the life, and takes none.
#[test]
fn a_later_start_takes_the_life_of_the_file() {
    let (executor, backing) = (Executor::new(), new_file(false));
    let media = open(&executor, &aged(lived(), 3), &backing).unwrap();
    let before = known(&media);
    media.close().unwrap();
    for life in [Life::NONE, Life { cycles: 10.0, ..Life::NONE }] {
        let media = open(&Executor::new(), &aged(life, 3), &backing).unwrap();
        assert_eq!(known(&media), before);
        media.close().unwrap();
    }
}

/// A new drive killed at any write before its first use is still new, or already has its life.
#[test]
fn a_kill_at_the_first_start_leaves_all_of_the_life() {
    let flash = aged(lived(), 5);
    let expected = known(&flash.media(&Executor::new().sim()));
    let backing = new_file(false);
    let made = backing.writes();
    drop(open(&Executor::new(), &flash, &backing).unwrap());
    let writes = backing.writes() - made;
    assert!(writes > 6, "records of blocks, ages and a superblock");
    for cut in 0..=writes {
        let backing = new_file(false);
        backing.cut_off_after(cut);
        let _ = open(&Executor::new(), &flash, &backing);
        let backing = Arc::new(backing.survivor());
        let media = open(&Executor::new(), &flash, &backing).unwrap_or_else(|error| panic!("write {cut}: {error}"));
        assert_eq!(known(&media), expected, "write {cut}");
        media.close().unwrap();
        assert_eq!(known(&open(&Executor::new(), &flash, &backing).unwrap()), expected, "write {cut}");
    }
}

/// The age and reads of a block's data, in nanoseconds of the drive's clock.
#[derive(Clone, Default)]
struct Data {
    /// When its first program began, or may have.
    written: Vec<i64>,
    reads: Vec<i64>,
}

/// A kill at any write, even a torn one, loses at most the last minute before the last operation that began, and everything
/// after it. Lost are time, reads, and when blocks were rewritten.
#[test]
fn a_kill_loses_a_minute_of_ages_at_most() {
    each_seed(400, |seed| {
        let mut rng = seed.rng();
        let mut aging = aged(Life { age: DAY * 3, ..Life::NONE }, rng.below(1 << 20));
        aging.aging.as_mut().unwrap().failures = Failures { erase: 0.0, program: 0.0, shape: 3.0 };
        let backing = new_file(false);
        let mut executor = Executor::new();
        let media = open(&executor, &aging, &backing).unwrap();
        backing.cut_off_after(rng.below(200));
        let mut model = vec![Data::default(); BLOCKS as usize];
        let (mut last, mut pages) = (0, [0; BLOCKS as usize]);
        for _ in 0..80 {
            let (step, time) = draw(&mut rng);
            let now = executor.sim().now().ns() as i64;
            match step {
                Step::Program(block) if pages[block.0 as usize] == 0 => model[block.0 as usize].written.push(now),
                Step::Read(page) if media.is_readable(page) => model[(page.0 / PAGES) as usize].reads.push(now),
                Step::Read(_) | Step::Program(_) | Step::Erase(_) => {}
            }
            let ended = act(&mut executor, &media, step);
            match step {
                Step::Erase(block) => pages[block.0 as usize] = 0,
                Step::Program(block) => pages[block.0 as usize] = media.pages_programmed(block),
                Step::Read(_) => {}
            }
            if ended.contains("Store") || media.store_has_failed() {
                break;
            }
            if ended != IDLE {
                last = now;
            }
            wait(&mut executor, time);
        }
        let now = executor.sim().now().ns() as i64;
        let again = open(&Executor::new(), &aging, &Arc::new(backing.survivor())).unwrap();
        let clock = (again.powered().unwrap() - DAY * 3).ns() as i64;
        let known_until = last - MINUTE as i64;
        assert!((known_until..=now).contains(&clock), "{clock} instead of {known_until} to {now}");
        for (block, data) in blocks().zip(&model).filter(|(block, _)| again.pages_programmed(*block) > 0) {
            let health = again.block_health(block).unwrap();
            let age_of = |written: i64| (clock - written) as f64 / 3.6e12;
            let is_exact = data.written.iter().find(|written| age_of(**written) == health.hours);
            let reads_since =
                |written: i64, until: i64| data.reads.iter().filter(|at| (written..=until).contains(at)).count();
            let reads = (health.reads * f64::from(PAGES)).round() as usize;
            match is_exact {
                Some(written) => {
                    let (least, most) = (reads_since(*written, known_until), reads_since(*written, now));
                    assert!((least..=most).contains(&reads), "{block:?}: {reads} reads instead of {least} to {most}");
                }
                None => {
                    let (written, latest) =
                        (clock - (health.hours * 3.6e12).round() as i64, *data.written.last().unwrap());
                    assert!(written >= known_until && latest >= written && reads == 0, "{block:?}: {health:?}");
                }
            }
        }
    });
}

/// Where both copies of the ages of a used file lie: each a head and one chunk, the last regions of the store. A store has a multiple of
/// 64 KiB, and a redo log of 2 MiB follows.
fn regions(backing: &MemoryFile) -> [u64; 2] {
    let end = backing.len().unwrap() - REDO;
    let is_used = |at: &u64| {
        let mut bytes = [0; 4_096];
        backing.read_at(*at, &mut bytes).unwrap();
        bytes != [0; 4_096]
    };
    let last = (0..end / 4_096).rev().map(|number| number * 4_096).find(is_used).expect("it has ages");
    [last - 3 * 4_096, last - 4_096]
}

const REDO: u64 = 2 << 20;

#[test]
fn damage_to_a_copy_of_ages_loses_nothing_and_to_both_is_told() {
    let flash = aged(lived(), 8);
    let used = || {
        let backing = new_file(false);
        let mut executor = Executor::new();
        let media = open(&executor, &flash, &backing).unwrap();
        (0..30).for_each(|step| _ = act(&mut executor, &media, draw(&mut Seed::new(step).rng()).0));
        media.close().unwrap();
        let known = known(&open(&Executor::new(), &flash, &Arc::new(backing.survivor())).unwrap());
        (backing, known)
    };
    for (chunk, name) in [(0, "the head of the ages of data"), (4_096, "the ages of the data of blocks from 0 on")] {
        for offset in [0, 5, 9, 20, 44] {
            let (backing, expected) = used();
            let copies = regions(&backing).map(|at| at + chunk);
            for copy in copies {
                let damaged = Arc::new(backing.survivor());
                damaged.flip(copy + offset, 3);
                let media = open(&Executor::new(), &flash, &damaged).unwrap();
                assert_eq!(known(&media), expected);
                assert_eq!(media.check_file(), [format!("{name} at byte {copy}: the other copy is whole")]);
                media.close().unwrap();
                assert_eq!(open(&Executor::new(), &flash, &damaged).unwrap().check_file(), [""; 0], "it was repaired");
            }
            copies.iter().for_each(|copy| backing.flip(copy + offset, 3));
            let error = open(&Executor::new(), &flash, &backing).err().expect("both copies are damaged").to_string();
            assert_eq!(error, format!("both copies of {name} are damaged, at bytes {} and {}", copies[0], copies[1]));
        }
    }
}

/// With syncs, a loss of the host's power leaves ages of one moment too.
#[test]
fn ages_outlast_a_loss_of_the_hosts_power() {
    each_seed(40, |seed| {
        let mut rng = seed.rng();
        let flash = aged(lived(), 9);
        let backing = new_file(true);
        backing.track_syncs();
        let mut executor = Executor::new();
        let file = StoreFile::open_on(backing.clone(), true).unwrap();
        let media = Media::open(&executor.sim(), flash.config(), file).unwrap();
        for _ in 0..30 {
            let (step, time) = draw(&mut rng);
            act(&mut executor, &media, step);
            wait(&mut executor, time);
        }
        media.keep_ages().unwrap();
        media.sync().unwrap();
        let expected = known(&media);
        act(&mut executor, &media, Step::Read(PageId(0)));
        let left = Arc::new(backing.after_power_loss(seed.child("loss")));
        let again = StoreFile::open_on(left, true).unwrap();
        assert_eq!(known(&Media::open(&Executor::new().sim(), flash.config(), again).unwrap()), expected);
    });
}

/// The file in the previous format, without the regions of ages.
fn older(backing: &MemoryFile) -> Arc<MemoryFile> {
    let older = Arc::new(backing.survivor());
    let mut superblock = vec![0; 64 << 10];
    for at in [0, 64 << 10] {
        older.read_at(at, &mut superblock).unwrap();
        superblock[8..12].copy_from_slice(&4_u32.to_le_bytes());
        superblock[12..16].fill(0);
        let sum = crc32fast::hash(&superblock);
        superblock[12..16].copy_from_slice(&sum.to_le_bytes());
        older.write_at(at, &superblock).unwrap();
    }
    let used = new_file(false);
    drop(open(&Executor::new(), &aged(lived(), 1), &used).unwrap());
    older.truncate(regions(&used)[0].next_multiple_of(64 << 10) + REDO);
    older
}

#[test]
fn a_file_of_the_format_before_opens_and_keeps_no_ages() {
    let backing = older(&new_file(false));
    let flash = aged(Life::NONE, 4);
    let mut executor = Executor::new();
    let media = open(&executor, &flash, &backing).unwrap();
    for step in [Step::Erase(BlockId(1)), Step::Program(BlockId(1)), Step::Program(BlockId(2))] {
        assert!(act(&mut executor, &media, step).starts_with("Ok"));
    }
    wait(&mut executor, DAY * 9);
    assert_eq!(media.block_health(BlockId(2)).unwrap().hours.round(), 216.0);
    media.close().unwrap();
    let len = backing.len().unwrap();
    let again = open(&Executor::new(), &flash, &backing).unwrap();
    assert_eq!((again.erases(BlockId(1)), again.pages_programmed(BlockId(2))), (1, 1));
    assert_eq!((again.block_health(BlockId(2)).unwrap().hours, again.powered()), (0.0, Some(Span::ZERO)));
    assert_eq!((again.check_file(), backing.len().unwrap()), (Vec::new(), len));
}

#[test]
fn a_file_of_another_format_is_refused() {
    for (format, what) in [(3_u32, "older"), (6, "newer")] {
        let backing = new_file(false);
        let mut superblock = vec![0; 64 << 10];
        backing.read_at(0, &mut superblock).unwrap();
        superblock[8..12].copy_from_slice(&format.to_le_bytes());
        superblock[12..16].fill(0);
        let sum = crc32fast::hash(&superblock);
        superblock[12..16].copy_from_slice(&sum.to_le_bytes());
        [0, 64 << 10].iter().for_each(|at| backing.write_at(*at, &superblock).unwrap());
        let error = StoreFile::open_on(backing, false).err().expect("another format").to_string();
        let told = format!("it has format {format}, which is {what}, and this program reads formats 4 to 5");
        assert!(error.starts_with(&told), "{error}");
    }
}

/// Flash that does not age for a while: data written meanwhile is as old as the last time of the clock, and the rest as
/// it was.
#[test]
fn a_start_without_aging_leaves_ages_as_they_were() {
    let (backing, flash) = (new_file(false), aged(Life::NONE, 4));
    let mut executor = Executor::new();
    let media = open(&executor, &flash, &backing).unwrap();
    (0..3).for_each(|block| _ = act(&mut executor, &media, Step::Program(BlockId(block))));
    wait(&mut executor, DAY * 2);
    media.close().unwrap();
    let mut executor = Executor::new();
    let plain = open(&executor, &TestFlash { aging: None, ..flash.clone() }, &backing).unwrap();
    wait(&mut executor, DAY * 5);
    act(&mut executor, &plain, Step::Erase(BlockId(1)));
    act(&mut executor, &plain, Step::Program(BlockId(1)));
    plain.close().unwrap();
    let again = open(&Executor::new(), &flash, &backing).unwrap();
    let days = |block| (again.block_health(BlockId(block)).unwrap().hours / 24.0 * 1e3).round() / 1e3;
    assert_eq!((days(0), days(1), days(2)), (2.0, 0.0, 2.0));
    assert_eq!((again.powered().unwrap().as_s() / 86_400.0).floor(), 2.0, "the clock stood still");
}
