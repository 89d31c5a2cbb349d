//! The content of the flash: random programs, copies, collections, plants and erases against a plain map of units,
//! counts against a tally, and the ordering rules of NAND.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use nandscape_device_media::durable::{MemoryFile, StoreFile, StoreSpec};
use nandscape_device_media::store::UnitData;
use nandscape_device_media::{
    BlockId, Crossing, Holding, Media, MediaError, Misuse, Oob, OobBytes, OpCounts, PageId, PageImage, PlaneId,
    Priority, Registers, StoreKind, UnitId,
};
use nandscape_device_rig::TestFlash;
use nandscape_drive::Breakdown;
use nandscape_drive::breakdown::cause;
use nandscape_sim::units::Rate;
use nandscape_sim::{Executor, Sim, Span, Who};
use proptest::prelude::*;

const PLANES: u32 = 2;
const BLOCKS: u32 = 3;
const PAGES: u32 = 5;
const UNITS: u32 = 2;

fn media(sim: &Sim, store: StoreKind, factory_bad: u32, bus: Rate) -> Rc<Media> {
    flash(store, factory_bad, bus).media(sim)
}

fn flash(store: StoreKind, factory_bad: u32, bus: Rate) -> TestFlash {
    TestFlash {
        planes: PLANES,
        blocks: BLOCKS,
        pages: PAGES,
        units_per_page: UNITS,
        read: vec![Span::from_ns(3)],
        program: vec![Span::from_ns(5)],
        erase: Span::from_ns(7),
        bus,
        registers: Registers::Double,
        store,
        factory_bad,
        ..TestFlash::default()
    }
}

fn gc() -> Who {
    Priority::Fifo.who(cause::GC)
}

/// A page of units with tags from `tag` on; the data contains the tag as well, and is missing where the tag is a
/// multiple of 5.
fn image(tag: u32, content: Content) -> PageImage {
    let mut image = if content.is_metadata { PageImage::metadata() } else { PageImage::default() };
    for tag in tag..tag + UNITS {
        match content.has_oob {
            true => image.push_with_oob(oob(tag, content), data(tag)),
            false => image.push(tag, data(tag)),
        }
    }
    image
}

/// The out-of-band area of a unit: its tag, and where the FTL gives further bytes, these repeat the tag.
fn oob(tag: u32, content: Content) -> Oob {
    let mut bytes = OobBytes::default();
    if content.has_oob {
        bytes[..4].copy_from_slice(&tag.to_be_bytes());
    }
    Oob { tag, bytes }
}

fn data(tag: u32) -> Option<UnitData> {
    (!tag.is_multiple_of(5)).then(|| Rc::from(tag.to_le_bytes()))
}

/// The content of a page in addition to its tags.
#[derive(Copy, Clone, Default, Debug)]
struct Content {
    has_data: bool,
    is_metadata: bool,
    has_oob: bool,
}

#[derive(Clone, Debug)]
enum Act {
    Program {
        block: u32,
        content: Content,
    },
    PlantProgram {
        block: u32,
    },
    /// Through a collection: copies within the plane, or reads and programs.
    Copy {
        from: u32,
        block: u32,
    },
    Collect {
        block: u32,
        scheme: usize,
    },
    Read {
        page: u32,
    },
    Erase {
        block: u32,
    },
    PlantErase {
        block: u32,
    },
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let block = 0..PLANES * BLOCKS;
    let page = 0..PLANES * BLOCKS * PAGES;
    let act = prop_oneof![
        6 => (block.clone(), any::<bool>(), any::<bool>()).prop_map(|(block, is_metadata, has_oob)| {
            Act::Program { block, content: Content { has_data: true, is_metadata, has_oob } }
        }),
        1 => block.clone().prop_map(|block| Act::PlantProgram { block }),
        3 => (page.clone(), block.clone()).prop_map(|(from, block)| Act::Copy { from, block }),
        2 => (block.clone(), 0..Holding::ALL.len()).prop_map(|(block, scheme)| Act::Collect { block, scheme }),
        2 => page.prop_map(|page| Act::Read { page }),
        1 => block.clone().prop_map(|block| Act::Erase { block }),
        1 => block.prop_map(|block| Act::PlantErase { block }),
    ];
    prop::collection::vec(act, 0..80)
}

/// The oracle: for each block the pages programmed since its erase, for each of those its first tag and its content.
#[derive(Default)]
struct Oracle {
    pages: BTreeMap<u32, Vec<(u32, Content)>>,
    counts: OpCounts,
    last_tag: u32,
}

impl Oracle {
    fn tag(&mut self) -> u32 {
        self.last_tag += UNITS;
        self.last_tag
    }

    /// The next page of a block, if there is one.
    fn next(&self, block: u32) -> Option<PageId> {
        let programmed = self.pages.get(&block).map_or(0, Vec::len) as u32;
        (programmed < PAGES).then_some(PageId(block * PAGES + programmed))
    }

    fn program(&mut self, block: u32, tag: u32, content: Content) {
        self.pages.entry(block).or_default().push((tag, content));
        self.counts.programs += 1;
    }

    fn page(&self, page: u32) -> Option<(u32, Content)> {
        self.pages.get(&(page / PAGES))?.get((page % PAGES) as usize).copied()
    }

    fn erase(&mut self, block: u32) {
        self.pages.remove(&block);
        self.counts.erases += 1;
    }

    /// Takes over which pages are torn.
    fn forget_torn(&mut self, media: &Media) {
        for (block, pages) in &mut self.pages {
            let programmed = media.pages_programmed(BlockId(*block)) as usize;
            if programmed > pages.len() {
                assert_eq!(programmed, pages.len() + 1);
                pages.push((u32::MAX, Content::default()));
            }
        }
    }

    fn agrees(&self, media: &Media, keeps: bool) -> Result<(), TestCaseError> {
        prop_assert_eq!(media.counts(), self.counts);
        for page in 0..PLANES * BLOCKS * PAGES {
            for unit in 0..UNITS {
                let place = UnitId(page * UNITS + unit);
                let expected = self.page(page);
                if expected.is_some_and(|(tag, _)| tag == u32::MAX) {
                    prop_assert_eq!(media.data(place), None);
                    prop_assert!(media.take_read_failure());
                    continue;
                }
                if let Some((tag, content)) = expected {
                    prop_assert_eq!(media.tag(place), tag + unit);
                    prop_assert_eq!(media.oob(place), oob(tag + unit, content));
                }
                let is_kept = |content: Content| content.has_data && (keeps || content.is_metadata);
                let held = expected.filter(|(_, content)| is_kept(*content)).and_then(|(tag, _)| data(tag + unit));
                prop_assert_eq!(media.data(place), held, "{:?}", place);
            }
        }
        Ok(())
    }
}

async fn act(media: &Media, oracle: &mut Oracle, act: Act) {
    let breakdown = &mut Breakdown::new();
    match act {
        Act::Program { block, content } => {
            let (Some(page), tag) = (oracle.next(block), oracle.tag()) else { return };
            media.program(page, image(tag, content), gc(), breakdown).await.unwrap();
            oracle.program(block, tag, content);
        }
        Act::PlantProgram { block } => {
            let (Some(page), tag) = (oracle.next(block), oracle.tag()) else { return };
            media.plant_program(page, tag..tag + UNITS);
            oracle.program(block, tag, Content::default());
        }
        Act::Copy { from, block } => {
            // Within the plane, from a page that was programmed.
            let block = from / (BLOCKS * PAGES) * BLOCKS + block % BLOCKS;
            let (Some(to), Some((tag, content))) = (oracle.next(block), oracle.page(from)) else { return };
            let mut seized = media.seize(PlaneId(block / BLOCKS), Holding::Plane, gc()).await;
            seized.copyback(&[(PageId(from), to)], Crossing::Nothing).await.unwrap();
            oracle.program(block, tag, content);
            oracle.counts.copybacks += 1;
        }
        Act::Collect { block, scheme } => {
            let (Some(page), tag) = (oracle.next(block), oracle.tag()) else { return };
            let mut seized = media.seize(PlaneId(block / BLOCKS), Holding::ALL[scheme], gc()).await;
            let content = Content { has_data: true, ..Content::default() };
            seized.program(page, image(tag, content)).await.unwrap();
            seized.read(&[(page, 4_096), (page, 8_192)]).await.unwrap();
            let other = block / BLOCKS * BLOCKS + (block + 1) % BLOCKS;
            seized.erase(BlockId(other)).await.unwrap();
            oracle.program(block, tag, content);
            oracle.erase(other);
            oracle.counts.reads += 2;
        }
        Act::Read { page } => {
            let ended = media.read(PageId(page), 4_096, gc(), breakdown).await;
            let expected = match oracle.page(page) {
                None => Err(MediaError::Misuse(Misuse::NotProgrammed)),
                Some((u32::MAX, _)) => Err(MediaError::Uncorrectable),
                Some(_) => Ok(()),
            };
            assert_eq!(ended, expected);
            oracle.counts.reads += 1;
        }
        Act::Erase { block } => {
            media.erase(BlockId(block), gc(), breakdown).await.unwrap();
            oracle.erase(block);
        }
        Act::PlantErase { block } => {
            media.plant_erase(BlockId(block));
            oracle.erase(block);
        }
    }
}

/// The flash of these tests in a file.
fn in_file(sim: &Sim, file: StoreFile) -> Media {
    Media::open(sim, flash(StoreKind::None, 0, Rate::UNLIMITED).config(), file).unwrap()
}

fn spec(keeps_data: bool) -> StoreSpec {
    StoreSpec {
        geometry: *flash(StoreKind::None, 0, Rate::UNLIMITED).geometry().counts(),
        keeps_data,
        pages_per_program: 1,
        logical_units: 1,
        slots: 0,
        snapshot_bytes: 0,
        seed: 1,
        text: String::new(),
        following: 0,
    }
}

proptest! {
    #[test]
    fn units_hold_what_was_programmed_last(acts in acts(), keeps in any::<bool>(), is_file in any::<bool>()) {
        let mut executor = Executor::new();
        let media = match is_file {
            true => Rc::new(in_file(&executor.sim(), StoreFile::in_memory(spec(keeps)).unwrap())),
            false => media(&executor.sim(), if keeps { StoreKind::Ram } else { StoreKind::None }, 0, Rate::UNLIMITED),
        };
        prop_assert_eq!(media.keeps_data(), keeps);
        let mut oracle = Oracle::default();
        for each in acts {
            executor.block_on(act(&media, &mut oracle, each)).unwrap();
            oracle.agrees(&media, keeps)?;
        }
    }

    /// Closed with a snapshot, closed without one, or killed: the content of the file is recovered, and so are the
    /// erase counts.
    #[test]
    fn a_file_that_is_opened_again_holds_what_it_held(sessions in prop::collection::vec((acts(), 0..3u8), 1..4)) {
        let backing = Arc::new(MemoryFile::new());
        let mut file = StoreFile::create_on(backing.clone(), spec(true), false).unwrap();
        let (mut oracle, mut backing) = (Oracle::default(), backing);
        for (acts, end) in sessions {
            let mut executor = Executor::new();
            let media = in_file(&executor.sim(), file);
            oracle.counts = OpCounts::default();
            // Operations under way when the process was killed are torn.
            oracle.forget_torn(&media);
            oracle.agrees(&media, true)?;
            for each in acts {
                executor.block_on(act(&media, &mut oracle, each)).unwrap();
            }
            if end > 0 {
                media.save_snapshot(&[], &mut |_, _| ()).unwrap();
            }
            if end > 1 {
                media.close().unwrap();
            }
            let erases: Vec<u32> = (0..PLANES * BLOCKS).map(|block| media.erases(BlockId(block))).collect();
            backing = Arc::new(backing.survivor());
            file = StoreFile::open_on(backing.clone(), false).unwrap();
            prop_assert_eq!(file.before().in_use, end < 2);
            let again = in_file(&executor.sim(), StoreFile::open_on(Arc::new(backing.survivor()), false).unwrap());
            let found: Vec<u32> = (0..PLANES * BLOCKS).map(|block| again.erases(BlockId(block))).collect();
            prop_assert_eq!(found, erases);
        }
    }
}

/// A page sensed, and 16 bytes for each of its two units over the channel, with a byte a nanosecond.
#[test]
fn reading_out_of_band_areas_takes_time_and_needs_a_programmed_page() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let media = media(&sim, StoreKind::None, 0, Rate::new(1, Span::from_ns(1)));
    let content = Content { has_oob: true, ..Content::default() };
    let run = async {
        media.program(PageId(0), image(7, content), gc(), &mut Breakdown::new()).await.unwrap();
        let begun = sim.now();
        let areas = media.read_oob(PageId(0), gc(), &mut Breakdown::new()).await.unwrap();
        assert_eq!(areas.to_vec(), [oob(7, content), oob(8, content)]);
        assert_eq!((sim.now() - begun).ns(), 3 + 2 * 16);
        let beyond = media.read_oob(PageId(1), gc(), &mut Breakdown::new()).await;
        assert_eq!(beyond, Err(MediaError::Misuse(Misuse::NotProgrammed)));
    };
    executor.block_on(run).unwrap();
}

#[test]
#[should_panic(expected = "a page is programmed whole")]
fn a_page_is_programmed_whole() {
    let mut executor = Executor::new();
    let media = media(&executor.sim(), StoreKind::None, 0, Rate::UNLIMITED);
    executor.block_on(media.program(PageId(0), PageImage::default(), gc(), &mut Breakdown::new())).unwrap().unwrap();
}

#[test]
fn so_many_blocks_of_each_plane_are_bad_from_the_factory() {
    for count in 0..=BLOCKS {
        let executor = Executor::new();
        let media = media(&executor.sim(), StoreKind::None, count, Rate::UNLIMITED);
        for plane in 0..PLANES {
            let bad = media.geometry().blocks_of(PlaneId(plane)).filter(|block| media.is_factory_bad(*block)).count();
            assert_eq!(bad, count as usize);
        }
    }
}
