//! Flash for the tests of media, FTLs and controllers: small, with round times. A test sets only what matters to it:
//!
//! ```
//! # use nandscape_device_rig::TestFlash;
//! # use nandscape_sim::Executor;
//! let executor = Executor::new();
//! let media = TestFlash { planes: 2, blocks: 8, ..TestFlash::default() }.media(&executor.sim());
//! assert_eq!(media.geometry().planes(), 2);
//! ```
//!
//! Left out: FTLs and controllers, whose tests build them over this flash.

use std::rc::Rc;

use nandscape_device_media::geometry::Counts;
use nandscape_device_media::{
    Aging, BlockId, Cell, Features, Geometry, Media, MediaConfig, PageImage, Registers, StoreKind, Timing,
};
use nandscape_sim::units::Rate;
use nandscape_sim::{Seed, Sim, Span};

/// Bytes of a mapping unit.
pub const UNIT: u32 = 4_096;
/// Bytes of a logical block, by which faults may be placed.
pub const LBA: u32 = 512;

/// A flash to be made. The default is one plane of 4 blocks of 8 pages of one unit, SLC with a single register: 50 us to
/// sense, 300 us to program, 2 ms to erase, 10 us for a unit on the channel; it keeps no data, and has no faults.
#[derive(Clone, Debug)]
pub struct TestFlash {
    /// Channels.
    pub channels: u32,
    /// Dies on each channel.
    pub dies: u32,
    /// Planes of each die.
    pub planes: u32,
    /// Blocks of each plane.
    pub blocks: u32,
    /// Pages of each block.
    pub pages: u32,
    /// Units of each page.
    pub units_per_page: u32,
    /// The page types of a block.
    pub cell: Cell,
    /// Time to sense a page, of each page type, or one for all.
    pub read: Vec<Span>,
    /// Time to program a page, of each page type, or one for all.
    pub program: Vec<Span>,
    /// Time to erase a block.
    pub erase: Span,
    /// Data rate of a channel.
    pub bus: Rate,
    /// Registers of a LUN.
    pub registers: Registers,
    /// Whether a read moves only the requested units, instead of the page.
    pub partial_transfer: bool,
    /// Options beyond the plain operations.
    pub features: Features,
    /// Where data is kept.
    pub store: StoreKind,
    /// Blocks of each plane that are bad from the factory.
    pub factory_bad: u32,
    /// Faults, as rules.
    pub faults: Vec<String>,
    /// Its aging.
    pub aging: Option<Aging>,
    /// The seed of random choices.
    pub seed: Seed,
}

impl Default for TestFlash {
    fn default() -> TestFlash {
        TestFlash {
            channels: 1,
            dies: 1,
            planes: 1,
            blocks: 4,
            pages: 8,
            units_per_page: 1,
            cell: Cell::Slc,
            read: vec![Span::from_us(50)],
            program: vec![Span::from_us(300)],
            erase: Span::from_ms(2),
            bus: Rate::new(UNIT.into(), Span::from_us(10)),
            registers: Registers::Single,
            partial_transfer: true,
            features: Features::default(),
            store: StoreKind::None,
            factory_bad: 0,
            faults: Vec::new(),
            aging: None,
            seed: Seed::new(1),
        }
    }
}

impl TestFlash {
    /// The geometry.
    ///
    /// # Panics
    /// If it is not a valid geometry.
    pub fn geometry(&self) -> Geometry {
        let counts = Counts {
            channels: self.channels,
            dies_per_channel: self.dies,
            planes_per_die: self.planes,
            blocks_per_plane: self.blocks,
            pages_per_block: self.pages,
            page_size: UNIT * self.units_per_page,
            unit_size: UNIT,
        };
        Geometry::new(counts).expect("the geometry of a test is possible")
    }

    /// The whole configuration.
    ///
    /// # Panics
    /// If a fault is not a valid rule.
    pub fn config(&self) -> MediaConfig {
        let rule = |rule: &String| rule.parse().unwrap_or_else(|error| panic!("{rule:?}: {error:?}"));
        MediaConfig {
            geometry: self.geometry(),
            timing: Timing {
                cell: self.cell,
                read: per_type(self.cell, &self.read),
                program: per_type(self.cell, &self.program),
                erase: self.erase,
                bus: self.bus,
                registers: self.registers,
                partial_transfer: self.partial_transfer,
                features: self.features.clone(),
            },
            store: self.store,
            factory_bad: self.factory_bad,
            lba_bytes: LBA,
            faults: self.faults.iter().map(rule).collect(),
            aging: self.aging.clone(),
            seed: self.seed,
            group: None,
        }
    }

    /// Erased flash.
    ///
    /// # Panics
    /// If the system does not provide memory for its tables.
    pub fn media(&self, sim: &Sim) -> Rc<Media> {
        Rc::new(Media::new(sim, self.config()).expect("memory for small tables"))
    }
}

fn per_type(cell: Cell, times: &[Span]) -> Vec<Span> {
    if times.len() == 1 { vec![times[0]; cell.page_types()] } else { times.to_vec() }
}

/// An image of units without data, tagged from 0 on.
pub fn image(units: u32) -> PageImage {
    let mut image = PageImage::default();
    (0..units).for_each(|tag| image.push(tag, None));
    image
}

/// Programs all pages of a block in no time, for tests that read.
pub fn plant_block(media: &Media, block: BlockId) {
    let geometry = media.geometry();
    (0..geometry.pages_per_block()).for_each(|page| media.plant_program(geometry.page_at(block, page), []));
}
