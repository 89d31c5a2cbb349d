//! Random operations on flash in a file, and the states that may be found afterwards.

use std::sync::Arc;

use nandscape_device_media::durable::{MemoryFile, StoreError, StoreFile, StoreSpec};
use nandscape_device_media::store::UnitData;
use nandscape_device_media::{
    BlockId, Broken, Media, MediaError, Oob, OobBytes, PageId, PageImage, Priority, Registers, UnitId,
};
use nandscape_device_rig::{TestFlash, UNIT};
use nandscape_drive::Breakdown;
use nandscape_drive::breakdown::cause;
use nandscape_sim::{Executor, Rng, Seed, Who};

pub(crate) const BLOCKS: u32 = 6;
pub(crate) const PAGES: u32 = 4;
pub(crate) const UNITS: u32 = 2;

pub(crate) fn flash() -> TestFlash {
    TestFlash {
        planes: 2,
        blocks: BLOCKS / 2,
        pages: PAGES,
        units_per_page: UNITS,
        registers: Registers::Double,
        ..TestFlash::default()
    }
}

pub(crate) fn spec() -> StoreSpec {
    StoreSpec {
        geometry: *flash().geometry().counts(),
        keeps_data: true,
        pages_per_program: 1,
        logical_units: 8,
        slots: 2,
        snapshot_bytes: 1,
        seed: 1,
        text: "test".to_owned(),
        following: 0,
    }
}

/// A page as it was written: a number, which its tags, its out-of-band bytes and its data contain.
pub(crate) fn image(number: u32) -> PageImage {
    let mut image = PageImage::default();
    (0..UNITS).for_each(|unit| image.push_with_oob(oob(number, unit), Some(data(number, unit))));
    image
}

fn oob(number: u32, unit: u32) -> Oob {
    let mut bytes = OobBytes::default();
    bytes[..4].copy_from_slice(&number.to_le_bytes());
    Oob { tag: number * UNITS + unit, bytes }
}

/// With the metadata of a sector behind the unit, every now and then.
fn data(number: u32, unit: u32) -> UnitData {
    let len = UNIT as usize + if number.is_multiple_of(3) { 64 } else { 0 };
    vec![(number * 7 + unit) as u8; len].into()
}

/// The expected state of a page.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Page {
    /// It holds this number.
    Holds(u32),
    /// It may hold this number, or be torn, or not be programmed.
    May(u32),
    /// It is torn.
    Torn,
}

/// The expected state of a block: its erases, and its pages.
#[derive(Clone, Default, Debug)]
pub(crate) struct Block {
    pub(crate) erases: u32,
    pub(crate) pages: Vec<Page>,
    /// Whether an erase did not end.
    pub(crate) may_be_erased: bool,
}

pub(crate) type Model = Vec<Block>;

pub(crate) fn who() -> Who {
    Priority::Fifo.who(cause::HOST_WRITE)
}

/// Opens flash over a file in memory.
pub(crate) fn open(executor: &Executor, backing: &Arc<MemoryFile>, syncs: bool) -> Result<Media, StoreError> {
    Ok(Media::open(&executor.sim(), flash().config(), StoreFile::open_on(backing.clone(), syncs)?)?)
}

/// Programs, copies, erases, snapshots and reads until the file fails, or `count` times. Returns whether it failed.
pub(crate) fn work(executor: &mut Executor, media: &Media, model: &mut Model, rng: &mut Rng, count: u32) -> bool {
    for _ in 0..count {
        let number = rng.below(1 << 20) as u32;
        let block = BlockId(rng.below(BLOCKS.into()) as u32);
        let known = &mut model[block.0 as usize];
        let breakdown = &mut Breakdown::new();
        let failed = match rng.below(10) {
            0 => match executor.block_on(media.erase(block, who(), breakdown)).unwrap() {
                Ok(()) => {
                    *known = Block { erases: known.erases + 1, ..Block::default() };
                    false
                }
                Err(error) => {
                    assert_eq!(error, MediaError::Store);
                    known.may_be_erased = true;
                    true
                }
            },
            1 => media.save_snapshot(&[], &mut |_, _| ()).is_err(),
            _ if known.pages.len() as u32 == PAGES => continue,
            _ => {
                let page = PageId(block.0 * PAGES + known.pages.len() as u32);
                match executor.block_on(media.program(page, image(number), who(), breakdown)).unwrap() {
                    Ok(()) => {
                        known.pages.push(Page::Holds(number));
                        false
                    }
                    Err(Broken { error, .. }) => {
                        assert_eq!(error, MediaError::Store);
                        known.pages.push(Page::May(number));
                        true
                    }
                }
            }
        };
        if failed {
            return true;
        }
    }
    false
}

/// Asserts that the flash is in a state that the model allows. From then on the model is what was found.
pub(crate) fn agree(executor: &mut Executor, media: &Media, model: &mut Model) {
    for (number, known) in (0..).zip(model.iter_mut()) {
        let block = BlockId(number);
        if known.may_be_erased && media.erases(block) == known.erases + 1 {
            *known = Block { erases: known.erases + 1, ..Block::default() };
        }
        known.may_be_erased = false;
        assert_eq!(media.erases(block), known.erases, "{block:?}");
        let programmed = media.pages_programmed(block) as usize;
        let mut found = Vec::new();
        for page in 0..programmed {
            let expected = known.pages.get(page).copied().unwrap_or(Page::Torn);
            let place = PageId(number * PAGES + page as u32);
            found.push(check_page(executor, media, place, expected));
        }
        let lost = known.pages.get(programmed..).unwrap_or_default();
        assert!(lost.iter().all(|page| matches!(page, Page::May(_))), "{block:?}: {programmed} of {known:?}");
        assert!(programmed <= known.pages.len() + 1, "{block:?}: {programmed} of {known:?}");
        known.pages = found;
    }
}

fn check_page(executor: &mut Executor, media: &Media, page: PageId, expected: Page) -> Page {
    let read = executor.block_on(media.read(page, UNIT, who(), &mut Breakdown::new())).unwrap();
    let sound = read.and_then(|()| media.check_sound(page));
    let number = match (expected, sound) {
        (Page::Holds(number) | Page::May(number), Ok(())) => number,
        (Page::May(_) | Page::Torn, Err(MediaError::Uncorrectable)) => return Page::Torn,
        (expected, sound) => panic!("{page:?}: {expected:?}, and reading it gives {sound:?}"),
    };
    for unit in 0..UNITS {
        let place = UnitId(page.0 * UNITS + unit);
        assert_eq!(media.oob(place), oob(number, unit));
        assert_eq!(media.data(place), Some(data(number, unit)));
    }
    assert!(!media.take_read_failure());
    Page::Holds(number)
}

/// The seed of a random test, which it prints when it fails.
pub(crate) fn each_seed(count: u64, test: impl Fn(Seed)) {
    let given = std::env::var("NANDSCAPE_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = given.map_or(0..count, |seed: u64| seed..seed + 1);
    for seed in seeds {
        let told = Told(seed);
        test(Seed::new(seed));
        std::mem::forget(told);
    }
}

struct Told(u64);

impl Drop for Told {
    #[expect(clippy::print_stderr, reason = "a failing test tells its seed")]
    fn drop(&mut self) {
        eprintln!("this was NANDSCAPE_SEED={}", self.0);
    }
}
