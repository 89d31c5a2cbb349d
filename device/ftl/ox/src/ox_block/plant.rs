//! Brings a drive into a state of use without drive time: flash as an orderly stop leaves it, with data, tables and a checkpoint.
//! The drive then starts from it, which takes the time of any start.
//!
//! `full` writes every unit once, in order, along the line of the host's data. `steady` then overwrites units at random and
//! collects as the FTL would, until write amplification is stable. Collected blocks are free at once, without a wait for a
//! checkpoint.
//!
//! Left out: data, so units read as zeros; and map fragments that a long run would have evicted.

use nandscape_device_ftl_core::component::{
    BlockMetadata, BlockState, CachedMapping, Entry, LogHead, LogPosition, POINTERS, StoredBlocks,
};
use nandscape_device_ftl_core::ftl::Stats;
use nandscape_device_ftl_core::{Plant, PlantReport};
use nandscape_device_media::{BlockId, Media, PageId, UnitId};
use nandscape_sim::{Rng, Seed};
use smallvec::SmallVec;

use super::core::Phase;
use super::lines::Layout;
use super::pages::{self, Kind, NO_LPN};
use super::release::{self, Formatted};
use super::state::{self, State};
use super::streams::{COLD, META};
use super::{OxBlock, OxBlockConfig};
use crate::parts::numbers_to_bytes;

/// Write amplification is stable when two successive rounds differ by less than this share.
const STILL: f64 = 0.01;
/// The fewest and the most rounds, each of as many units as the drive has.
const ROUNDS: [u32; 2] = [3, 16];
/// The unit of a logical unit that is nowhere.
const NOWHERE: u32 = u32::MAX;

/// A drive that is being planted.
struct Planting<'a> {
    media: &'a Media,
    config: &'a OxBlockConfig,
    state: State,
    /// Where each logical unit is.
    units: Vec<u32>,
    /// Units programmed for the host, and by collections.
    programmed: (u64, u64),
}

impl OxBlock {
    /// Whether [`OxBlock::plant`] may be called: where tables are recovered from the data, planted data would need
    /// stamps.
    pub fn can_be_planted(&self) -> bool {
        self.config.layout == Layout::Log
    }

    /// Brings an unused drive into a state of use, before it has started. `progress` gets the share done, from 0 to 1.
    ///
    /// # Panics
    /// When the drive has started, or its flash was written.
    pub fn plant(&self, plant: Plant, seed: Seed, progress: &mut dyn FnMut(f64)) -> PlantReport {
        let core = self.core();
        let is_unused = core.phase.get() == Phase::Starting && core.state.borrow().counters == Stats::default();
        assert!(self.can_be_planted(), "the layout is not planted");
        assert!(is_unused && self.media.is_blank(), "planting needs an unused drive");
        let bad = state::bad_at_start(&self.media, &self.config);
        let mut planting = Planting {
            media: &self.media,
            config: &self.config,
            state: State::new(&self.media, &self.config, bad, 1),
            units: vec![NOWHERE; self.config.logical_units as usize],
            programmed: (0, 0),
        };
        planting.state.learn_erases(&self.media);
        let share = if plant == Plant::Full { 1.0 } else { 0.2 };
        planting.fill(&mut |done| progress(done * share));
        let report = match plant {
            Plant::Full => PlantReport { overwritten: 0, waf: 1.0 },
            Plant::Steady => planting.run(&mut seed.child("overwrites").rng(), &mut |done| progress(0.2 + 0.8 * done)),
        };
        planting.write_tables();
        // A file that cannot be written any more reports this when asked.
        let _ = self.media.save_snapshot(&[], &mut |_, _| ());
        report
    }
}

impl Planting<'_> {
    fn fill(&mut self, progress: &mut dyn FnMut(f64)) {
        let (units, per_page) = (self.config.logical_units, self.media.geometry().units_per_page());
        for first in (0..units).step_by(per_page as usize) {
            self.write((first..units.min(first + per_page)).collect());
            if first % (1 << 22) < per_page {
                progress(f64::from(first) / f64::from(units));
            }
        }
    }

    /// Overwrites units at random until write amplification is stable.
    fn run(&mut self, rng: &mut Rng, progress: &mut dyn FnMut(f64)) -> PlantReport {
        let (logical, per_page) = (u64::from(self.config.logical_units), self.media.geometry().units_per_page());
        let pages = logical.div_ceil(per_page.into());
        let (mut before, mut waf, mut rounds) = (f64::INFINITY, f64::INFINITY, 0);
        while rounds < ROUNDS[0] || ((waf - before).abs() > STILL * waf && rounds < ROUNDS[1]) {
            self.programmed = (0, 0);
            for _ in 0..pages {
                self.write((0..per_page).map(|_| rng.below(logical) as u32).collect());
            }
            let (host, moved) = self.programmed;
            (before, waf) = (waf, (host + moved) as f64 / host as f64);
            rounds += 1;
            progress(f64::from(rounds) / f64::from(ROUNDS[1]));
        }
        PlantReport { overwritten: u64::from(rounds) * pages * u64::from(per_page), waf }
    }

    /// Programs a page of the host's data, and collects as far as that makes necessary.
    fn write(&mut self, lpns: SmallVec<[u32; 16]>) {
        while !self.state.has_room_for_host() {
            let collected = self.collect(true);
            assert!(collected, "a drive has garbage when it has no room");
        }
        let page = self.state.host_page().expect("there is room, and no plane is busy");
        self.program(page, &lpns);
        self.programmed.0 += lpns.len() as u64;
        self.state.host_program_ended(page);
        if std::mem::take(&mut self.state.renewed) {
            self.collect(false);
        }
    }

    fn program(&mut self, page: PageId, lpns: &[u32]) {
        let geometry = *self.media.geometry();
        for (unit, lpn) in (geometry.unit_at(page, 0).0..).zip(lpns) {
            let old = std::mem::replace(&mut self.units[*lpn as usize], unit);
            if old != NOWHERE {
                self.state.chunks.set_valid(UnitId(old), false);
            }
            self.state.chunks.set_valid(UnitId(unit), true);
        }
        let padding = geometry.units_per_page() as usize - lpns.len();
        self.media.plant_program(page, lpns.iter().copied().chain(std::iter::repeat_n(NO_LPN, padding)));
        self.state.page_ended(page);
    }

    /// Collects every channel that is due. Returns whether any block was collected.
    fn collect(&mut self, is_urgent: bool) -> bool {
        let mut any = false;
        for channel in 0..self.media.geometry().channels() {
            for _ in 0..self.config.gc.batch {
                let Some(block) = self.state.is_collectable(&self.config.gc, channel, is_urgent) else { break };
                self.collect_block(block, channel);
                any = true;
            }
        }
        any
    }

    fn collect_block(&mut self, block: BlockId, channel: u32) {
        let geometry = *self.media.geometry();
        let first = geometry.unit_at(geometry.page_at(block, 0), 0).0;
        let units = (first..first + geometry.units_per_block()).map(UnitId);
        let current: Vec<u32> =
            units.filter(|unit| self.state.chunks.is_valid(*unit)).map(|unit| self.media.tag(unit)).collect();
        self.state.chunks.set_state(block, BlockState::Collecting);
        for lpns in current.chunks(geometry.units_per_page() as usize) {
            let page = self.state.page_for(COLD, Some(channel)).expect("collections have blocks of their own");
            self.program(page, lpns);
            self.programmed.1 += lpns.len() as u64;
        }
        self.media.plant_erase(block);
        self.state.erased(block);
    }

    /// Writes the tables, and the checkpoint that names them.
    fn write_tables(mut self) {
        let per_fragment = self.media.geometry().page_size() as usize / Entry::SIZE;
        let units = std::mem::take(&mut self.units);
        for (index, units) in (0..).zip(units.chunks(per_fragment)) {
            let at = |unit: &u32| Some(UnitId(*unit)).filter(|_| *unit != NOWHERE);
            let bytes = numbers_to_bytes(units.iter().map(|unit| Entry::new(at(unit), 0).to_raw()));
            let page = self.table_page();
            self.put(page, Kind::MapLarge, index, &bytes);
            self.state.map.small_mut().update(index, Some(page));
        }
        for index in 0..self.state.map.small().fragments() {
            let (page, bytes) = (self.table_page(), self.state.map.small().fragment(index));
            self.put(page, Kind::MapSmall, index, &bytes);
            self.state.map.tiny_mut().update(index, Some(page));
        }
        // The table of blocks covers its own pages as well.
        let pages: Vec<PageId> = (0..self.state.chunks.pages()).map(|_| self.table_page()).collect();
        for (index, page) in (0..).zip(pages) {
            self.state.chunk_small.update(index, Some(page));
            let bytes = self.state.chunks.page(index);
            self.put(page, Kind::Chunks, index, &bytes);
        }
        let head = LogHead { pages: [None; POINTERS], number: 1, epoch: 1 };
        let mut checkpoint = (self.state.components.checkpoint.make)();
        self.state.put_entries(&mut *checkpoint, &head, 0, LogPosition(0));
        let checkpoint = checkpoint.encode();
        self.state.places.plant(self.media, self.state.places.checkpoint(), checkpoint);
        for channel in 0..self.media.geometry().channels() {
            let table = release::bad_table(&self.state, channel, Formatted::Ended);
            self.state.places.plant(self.media, channel as usize, table);
        }
    }

    /// A page for a table, which counts as written.
    fn table_page(&mut self) -> PageId {
        let page = self.state.page_for(META, None).expect("tables have blocks of their own");
        for unit in 0..self.media.geometry().units_per_page() {
            self.state.chunks.set_valid(self.media.geometry().unit_at(page, unit), true);
        }
        self.state.page_ended(page);
        page
    }

    fn put(&self, page: PageId, kind: Kind, index: u32, bytes: &[u8]) {
        self.media.plant_image(page, &pages::image(self.media.geometry(), kind, index, bytes));
    }
}
