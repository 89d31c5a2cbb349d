//! The tables together, and synchronous changes of more than one of them. Every table change that recovery must redo is made
//! here, with its record.
//!
//! | file | what |
//! |---|---|
//! | `allotted` | pages that are handed out to be written |
//! | `held` | blocks that return |
//! | `figures` | counters |

mod allotted;
mod figures;
mod held;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use nandscape_device_ftl_core::address::{Lpn, UnitSize};
use nandscape_device_ftl_core::component::{
    BadBlocks, BlockMetadata, BlockState, CachedMapping, Entry, FragmentMiss, Fragments, GarbageCollection, Log,
    LogPosition, LogStart, Mapping, Moved, Record, Remap, StoredBlocks, WriteCaching,
};
use nandscape_device_ftl_core::ftl::{Settling, Stats};
use nandscape_device_media::{BlockId, Geometry, Media, PageId, UnitId};

use super::cache::WriteCache;
use super::fixed::FixedPlaces;
use super::lines::{Layout, LineLayout};
use super::mistakes::{self, Mistake};
use super::pages::Kind;
use super::room::Progress;
use super::uncommitted::BeforeImages;
use super::{OxBlockConfig, streams};
use crate::parts::{
    BlocksPart, ChannelTable, FIXED, LineUse, LogPart, MapPart, NoLog, Part, ProvisioningPart, StreamLine, Superblocks,
};
use crate::registry::{Components, Needs};

/// The most programs of the host's data under way on a plane.
pub(super) const PROGRAMS_PER_PLANE: u32 = 2;

/// The inputs for making components.
pub(super) fn needs<'a>(media: &Media, config: &OxBlockConfig, streams: &'a [StreamLine]) -> Needs<'a> {
    Needs {
        geometry: *media.geometry(),
        logical_units: config.logical_units,
        // Without a log, a part of the map cannot be written and read again.
        map_memory: if config.layout == Layout::Log { config.map_memory } else { u64::MAX },
        cache_units: config.buffer_units,
        streams,
        seed: media.policy_seed(),
    }
}

/// P3 of a layout.
fn provisioning(config: &OxBlockConfig, needs: &Needs<'_>, blocks: &BlocksPart) -> ProvisioningPart {
    let Layout::Lines(LineLayout { shared, .. }) = config.layout else {
        return (config.components.provisioning.make)(needs, blocks);
    };
    let data_pages = config.layout.data_pages(&needs.geometry);
    let how = LineUse { data_pages, leaves: streams::LEAVES_OF_LINES, shared };
    Part::Other(Box::new(Superblocks::new(&needs.geometry, how, blocks)))
}

/// P1 with the marks from the factory, and the blocks that have gone bad in a life before the run.
pub(super) fn bad_at_start(media: &Media, config: &OxBlockConfig) -> Box<dyn BadBlocks> {
    let needs = needs(media, config, &[]);
    (config.components.bad_blocks.make)(&needs, &|block| media.is_bad_at_start(block))
}

/// The mover of a unit or a fragment.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Mover {
    Host,
    Gc,
    Checkpoint,
}

/// The whole state of the FTL.
pub(super) struct State {
    pub(super) geometry: Geometry,
    pub(super) unit: UnitSize,
    /// The inputs from which the components below were made.
    pub(super) components: Components,
    /// P1.
    pub(super) bad: Box<dyn BadBlocks>,
    /// P2.
    pub(super) chunks: BlocksPart,
    /// P4: where the pages of the table of blocks are (chunk_S).
    pub(super) chunk_small: Box<dyn Fragments>,
    /// P3.
    pub(super) provisioning: ProvisioningPart,
    /// P5, and P4 of the map.
    pub(super) map: MapPart,
    /// P6.
    pub(super) log: LogPart,
    /// P8.
    pub(super) gc: Rc<dyn GarbageCollection>,
    /// P9: when data is programmed.
    pub(super) caching: Box<dyn WriteCaching>,
    /// P9.
    pub(super) cache: WriteCache,
    pub(super) channels: ChannelTable,
    pub(super) places: FixedPlaces,
    /// By block: units programmed that are not current yet.
    pending: Vec<u32>,
    /// By plane: programs of the host's data under way.
    in_flight: Vec<u32>,
    /// The sum of these.
    programs: u32,
    /// Planes that take another one.
    ready_planes: u32,
    /// By plane: whether it does not answer.
    pub(super) dead: Vec<bool>,
    /// Blocks that are erased after the next checkpoint.
    pub(super) held: Vec<BlockId>,
    /// Blocks that go bad instead of being erased.
    pub(super) doomed: BTreeSet<BlockId>,
    /// Blocks that are being collected, and hold current data.
    pub(super) emptying: u32,
    /// Blocks that are being erased or retired.
    pub(super) releasing: u32,
    /// The number of the last page of the log in each of its blocks.
    pub(super) log_blocks: BTreeMap<BlockId, u64>,
    /// Sectors that the host has declared unreadable, by unit, until the map records them.
    pub(super) spoiled: BTreeMap<u32, u64>,
    /// Runs of pages of open blocks that recovery found used, without a record.
    pub(super) abandoned: Vec<(PageId, u32)>,
    /// Channels that are being collected.
    pub(super) collecting: Vec<bool>,
    /// Blocks with unreadable content: they are not collected before all of it is out of date.
    pub(super) stuck: BTreeSet<BlockId>,
    /// Channels whose table of bad blocks must be written.
    pub(super) bad_changed: BTreeSet<u32>,
    /// Pages of a block that hold data, fragments or log.
    pub(super) data_pages: u32,
    /// The number of the next write, where units have stamps.
    pub(super) next_sequence: u64,
    /// The most programs of the host's data under way.
    pub(super) host_programs: u32,
    /// Pages of open blocks that could not be read when the drive was started.
    pub(super) unreadable: BTreeSet<PageId>,
    /// A block was opened for the host's data since the channels were last checked.
    pub(super) renewed: bool,
    /// Writes and flushes that wait for the log.
    pub(super) waiting: VecDeque<(LogPosition, Rc<Settling>)>,
    pub(super) next_transaction: u64,
    /// Where units were before transactions that reads do not see yet.
    pub(super) before: BeforeImages,
    /// Whether transactions wait for a durable Commit where writes wait for their program.
    pub(super) waits_for_commit: bool,
    /// Slots of the cache and before-images of such transactions.
    pub(super) uncommitted: u32,
    pub(super) counters: Stats,
    /// Records of what checkpoints have written, since the drive was started.
    pub(super) checkpoint_records: u64,
    /// Checkpoints taken since the drive was started.
    pub(super) checkpoints: u64,
    /// Blocks that they have released.
    pub(super) released: u64,
    /// Since when the host's data has had no room, without work in progress that could make any.
    pub(super) no_room_since: Option<Progress>,
    /// Good blocks that are needed, and good blocks when the drive was new.
    needed: u64,
    new_blocks: u64,
    /// Blocks that went bad in a life before the run.
    grown_bad: u64,
    /// The number of good blocks lost since: bad, or on a plane that does not answer.
    lost_blocks: u64,
}

impl State {
    /// The tables of an empty drive whose bad blocks are known, with a log that begins at `epoch`.
    pub(super) fn new(media: &Media, config: &OxBlockConfig, bad: Box<dyn BadBlocks>, epoch: u64) -> State {
        let geometry = *media.geometry();
        let components = config.components;
        let lines = streams::lines(&geometry);
        let needs = needs(media, config, &lines);
        let places = FixedPlaces::new(media);
        let mut chunks = (components.blocks.make)(&needs, &*bad);
        for block in places.all() {
            chunks.set_state(block, BlockState::Open(FIXED));
        }
        let (planes, channels) = (geometry.planes(), geometry.channels());
        let locations = components.persistent_mapping.make;
        let log = LogStart { page_bytes: geometry.page_size() as usize, epoch, number: 1, last: 0 };
        let count = |is_bad: &dyn Fn(BlockId) -> bool| {
            (0..geometry.blocks()).filter(|block| !is_bad(BlockId(*block))).count() as u64
        };
        let good = count(&|block| media.is_factory_bad(block));
        let reserve = super::config::reserve_per_plane(channels.into(), planes.into()) * u64::from(planes);
        let data_pages = config.layout.data_pages(&geometry);
        let data = u64::from(config.logical_units).div_ceil((data_pages * geometry.units_per_page()).into());
        State {
            provisioning: provisioning(config, &needs, &chunks),
            chunk_small: locations(chunks.pages(), geometry.page_size() / 8),
            map: (components.mapping.make)(&needs, locations),
            log: match config.layout {
                Layout::Log => (components.log.make)(&log),
                Layout::Lines(_) => Part::Other(Box::<NoLog>::default()),
            },
            gc: (components.gc.make)(&needs).into(),
            caching: (components.write_cache.make)(&needs),
            components,
            cache: WriteCache::new(config.buffer_units, UnitSize::of_bytes(geometry.unit_size()), media.keeps_data()),
            channels: ChannelTable::new(channels),
            pending: vec![0; geometry.blocks() as usize],
            in_flight: vec![0; planes as usize],
            programs: 0,
            ready_planes: planes,
            dead: vec![false; planes as usize],
            held: Vec::new(),
            doomed: BTreeSet::new(),
            emptying: 0,
            releasing: 0,
            log_blocks: BTreeMap::new(),
            spoiled: BTreeMap::new(),
            abandoned: Vec::new(),
            collecting: vec![false; channels as usize],
            stuck: BTreeSet::new(),
            bad_changed: BTreeSet::new(),
            data_pages,
            next_sequence: 1,
            host_programs: u32::MAX,
            unreadable: BTreeSet::new(),
            renewed: false,
            waiting: VecDeque::new(),
            next_transaction: 1,
            before: BeforeImages::default(),
            waits_for_commit: config.waits_for_commit,
            uncommitted: 0,
            counters: Stats::default(),
            checkpoint_records: 0,
            checkpoints: 0,
            released: 0,
            no_room_since: None,
            needed: (data + reserve).min(good.saturating_sub(1)),
            grown_bad: media.grown_bad_blocks(),
            new_blocks: good,
            lost_blocks: good - count(&|block| bad.is_bad(block)),
            unit: UnitSize::of_bytes(geometry.unit_size()),
            geometry,
            bad,
            chunks,
            places,
        }
    }

    /// Units of the host's address space.
    pub(super) fn map_units(&self) -> u32 {
        self.map.units()
    }

    pub(super) fn block_of(&self, unit: UnitId) -> BlockId {
        self.geometry.block_of(self.geometry.page_of(unit))
    }

    pub(super) fn channel_of(&self, block: BlockId) -> u32 {
        self.geometry.channel_of(self.geometry.plane_of(block))
    }

    /// Units of a block are programmed and not current yet: the block is not collected.
    pub(super) fn begin_pending(&mut self, block: BlockId, units: usize) {
        self.pending[block.0 as usize] += units as u32;
    }

    /// The units are current, or never will be.
    pub(super) fn end_pending(&mut self, block: BlockId, units: usize) {
        self.pending[block.0 as usize] -= units as u32;
    }

    /// Whether no work in progress may make units of a block current.
    pub(super) fn is_settled(&self, block: BlockId) -> bool {
        let info = self.chunks.get(block);
        let is_pending = self.pending[block.0 as usize] > 0 && !mistakes::is_made(Mistake::PendingIgnored);
        !is_pending && info.programmed >= info.allocated
    }

    /// Gives a unit a new entry, with its record.
    pub(super) fn remap(
        &mut self,
        lpn: Lpn,
        new: Entry,
        mover: Mover,
        transaction: u64,
    ) -> Result<Entry, FragmentMiss> {
        let old = self.map.upsert(lpn, new)?;
        self.move_validity(old.unit(), new.unit());
        let remap = Remap { lpn: lpn.0, old, new, transaction };
        self.log.append(if mover == Mover::Gc { Record::GcWrite(remap) } else { Record::UserWrite(remap) });
        Ok(old)
    }

    /// A unit's data is somewhere else.
    pub(super) fn move_validity(&mut self, old: Option<UnitId>, new: Option<UnitId>) {
        if old != new {
            old.into_iter().for_each(|unit| self.chunks.set_valid(unit, false));
            new.into_iter().for_each(|unit| self.chunks.set_valid(unit, true));
        }
    }

    /// Where a fragment of a table is.
    pub(super) fn fragment(&self, kind: Kind, index: u32) -> Option<PageId> {
        match kind {
            Kind::MapLarge => self.map.small().get(index),
            Kind::MapSmall => self.map.tiny().get(index),
            Kind::Chunks => self.chunk_small.get(index),
            Kind::Log | Kind::Fixed | Kind::Tail => None,
        }
    }

    /// A page of a table was programmed.
    pub(super) fn count_fragment(&mut self, kind: Kind, mover: Mover) {
        let pages = &mut self.counters.upkeep.pages;
        *match (kind, mover) {
            (_, Mover::Gc) => &mut pages.moved,
            (Kind::MapLarge, Mover::Host) => &mut pages.map_evicted,
            (Kind::MapLarge, Mover::Checkpoint) => &mut pages.map,
            (Kind::MapSmall, _) => &mut pages.map_small,
            (Kind::Chunks, _) => &mut pages.blocks,
            (Kind::Log | Kind::Fixed | Kind::Tail, _) => unreachable!("no table has such fragments"),
        } += 1;
    }

    /// A fragment of a table was written, with its record.
    pub(super) fn move_fragment(&mut self, kind: Kind, index: u32, new: PageId, mover: Mover) {
        let moved = Moved { index, old: self.fragment(kind, index), new: Some(new) };
        self.checkpoint_records += u64::from(mover == Mover::Checkpoint);
        self.set_fragment(kind, moved);
        self.log.append(match kind {
            Kind::MapLarge if mover == Mover::Gc => Record::GcMapping(moved),
            Kind::MapLarge => Record::MapLarge(moved),
            Kind::MapSmall => Record::MapSmall(moved),
            Kind::Chunks => Record::ChunkMetadata(moved),
            Kind::Log | Kind::Fixed | Kind::Tail => unreachable!("no table has such fragments"),
        });
    }

    /// The same without a record.
    pub(super) fn set_fragment(&mut self, kind: Kind, moved: Moved) {
        let Moved { index, new, .. } = moved;
        match kind {
            Kind::MapLarge => drop(self.map.small_mut().update(index, new)),
            Kind::MapSmall => drop(self.map.tiny_mut().update(index, new)),
            Kind::Chunks => drop(self.chunk_small.update(index, new)),
            Kind::Log | Kind::Fixed | Kind::Tail => {}
        }
        self.move_page_validity(&moved);
    }

    /// Moves the validity of a fragment from one page to another.
    pub(super) fn move_page_validity(&mut self, moved: &Moved) {
        moved.old.into_iter().for_each(|page| self.set_page_valid(page, false));
        moved.new.into_iter().for_each(|page| self.set_page_valid(page, true));
    }

    fn set_page_valid(&mut self, page: PageId, valid: bool) {
        for unit in 0..self.geometry.units_per_page() {
            self.chunks.set_valid(self.geometry.unit_at(page, unit), valid);
        }
    }
}
