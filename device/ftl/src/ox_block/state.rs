//! The tables together, and what changes more than one of them, at once, without waiting. Every change of a table that
//! recovery must redo is made here, with its record.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use nandscape_device_media::{BlockId, Geometry, Media, PageId, PlaneId, UnitId};

use super::OxBlockConfig;
use super::cache::WriteCache;
use super::fixed::FixedPlaces;
use super::lines::{Layout, LineLayout};
use super::mistakes::{self, Mistake};
use super::pages::Kind;
use super::room::Progress;
use super::streams::{self, HOT, LOG};
use crate::Upkeep;
use crate::address::{Lpn, UnitSize};
use crate::component::{
    BadBlocks, BlockMetadata, BlockState, CachedMapping, ChainedLog, Channels, FragmentMiss, Fragments,
    GarbageCollection, LineProvisioning, Log, LogHead, LogPosition, LogStart, Mapping, StoredBlocks, Stream,
    WriteCaching,
};
use crate::ftl::{Settling, Stats};
use crate::parts::{
    BlocksPart, ChannelTable, Entry, FIXED, LineUse, LogPart, MapPart, Moved, NoLog, Part, ProvisioningPart, Record,
    Remap, StreamLine, Superblocks,
};
use crate::registry::{Components, Needs};

/// Programs of the host's data under way on a plane, at the most.
pub(super) const PROGRAMS_PER_PLANE: u32 = 2;

/// What components are made for.
pub(super) fn needs<'a>(geometry: &Geometry, config: &OxBlockConfig, streams: &'a [StreamLine]) -> Needs<'a> {
    Needs {
        geometry: *geometry,
        logical_units: config.logical_units,
        // Without a log, a part of the map cannot be written and read again.
        map_memory: if config.layout == Layout::Log { config.map_memory } else { u64::MAX },
        cache_units: config.buffer_units,
        streams,
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

/// P1 with the marks from the factory.
pub(super) fn factory_bad(media: &Media, config: &OxBlockConfig) -> Box<dyn BadBlocks> {
    let needs = needs(media.geometry(), config, &[]);
    (config.components.bad_blocks.make)(&needs, &|block| media.is_factory_bad(block))
}

/// Who moves a unit or a fragment.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Mover {
    Host,
    Gc,
    Checkpoint,
}

/// All that the FTL knows.
pub(super) struct State {
    pub(super) geometry: Geometry,
    pub(super) unit: UnitSize,
    /// What the components below were made from.
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
    pub(super) gc: Box<dyn GarbageCollection>,
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
    /// By plane: whether it does not answer.
    pub(super) dead: Vec<bool>,
    /// Blocks that are erased after the next checkpoint.
    pub(super) held: Vec<BlockId>,
    /// Blocks that go bad instead of being erased.
    pub(super) doomed: BTreeSet<BlockId>,
    /// Blocks that are being erased or retired.
    pub(super) releasing: u32,
    /// The number of the last page of the log in each of its blocks.
    pub(super) log_blocks: BTreeMap<BlockId, u64>,
    /// Sectors that the host has declared unreadable, by unit, until the map says so.
    pub(super) spoiled: BTreeMap<u32, u64>,
    /// Runs of pages of open blocks that recovery found used, without a record.
    pub(super) abandoned: Vec<(PageId, u32)>,
    /// Channels that are being collected.
    pub(super) collecting: Vec<bool>,
    /// Blocks that hold what cannot be read: they are not collected before all of it is out of date.
    pub(super) stuck: BTreeSet<BlockId>,
    /// Channels whose table of bad blocks is to be written.
    pub(super) bad_changed: BTreeSet<u32>,
    /// Pages of a block that hold data, fragments or log.
    pub(super) data_pages: u32,
    /// The number of the next write, where units have stamps.
    pub(super) next_sequence: u64,
    /// Programs of the host's data under way at the most.
    pub(super) host_programs: u32,
    /// Pages of open blocks that could not be read when the drive was started.
    pub(super) unreadable: BTreeSet<PageId>,
    /// A block was opened for the host's data since the channels were last looked at.
    pub(super) renewed: bool,
    /// Writes and flushes that wait for the log.
    pub(super) waiting: VecDeque<(LogPosition, Rc<Settling>)>,
    pub(super) next_transaction: u64,
    pub(super) counters: Stats,
    /// Checkpoints taken since the drive was started.
    pub(super) checkpoints: u64,
    /// Blocks that they have released.
    pub(super) released: u64,
    /// Since when there has been no room for the host's data, and nothing under way that could make any.
    pub(super) no_room_since: Option<Progress>,
    /// Good blocks that are needed, and good blocks when the drive was new.
    needed: u64,
    new_blocks: u64,
    retired: u64,
}

impl State {
    /// The tables of an empty drive whose bad blocks are known, with a log that begins at `epoch`.
    pub(super) fn new(media: &Media, config: &OxBlockConfig, bad: Box<dyn BadBlocks>, epoch: u64) -> State {
        let geometry = *media.geometry();
        let components = config.components;
        let lines = streams::lines(&geometry);
        let needs = needs(&geometry, config, &lines);
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
            gc: (components.gc.make)(&needs),
            caching: (components.write_cache.make)(&needs),
            components,
            cache: WriteCache::new(config.buffer_units, UnitSize::of_bytes(geometry.unit_size()), media.keeps_data()),
            channels: ChannelTable::new(channels),
            pending: vec![0; geometry.blocks() as usize],
            in_flight: vec![0; planes as usize],
            dead: vec![false; planes as usize],
            held: Vec::new(),
            doomed: BTreeSet::new(),
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
            counters: Stats::default(),
            checkpoints: 0,
            released: 0,
            no_room_since: None,
            needed: (data + reserve).min(good.saturating_sub(1)),
            new_blocks: good,
            retired: good - count(&|block| bad.is_bad(block)),
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

    // ------------------------------------------------------------ pages to write

    /// The next page for the host's data, if there is one where the plane is not busy.
    pub(super) fn host_page(&mut self) -> Option<PageId> {
        if self.host_programs != u32::MAX && self.in_flight.iter().sum::<u32>() >= self.host_programs {
            return None;
        }
        let State { provisioning, chunks, channels, in_flight, dead, geometry, .. } = self;
        let usable = |plane: PlaneId| {
            let number = plane.0 as usize;
            !dead[number] && in_flight[number] < PROGRAMS_PER_PLANE && channels.is_enabled(geometry.channel_of(plane))
        };
        let page = provisioning.get(chunks, HOT, &usable)?;
        let block = geometry.block_of(page);
        chunks.handed_out(block, HOT);
        let plane = geometry.plane_of(block);
        in_flight[plane.0 as usize] += 1;
        channels.begin(geometry.channel_of(plane));
        self.renewed |= geometry.page_in_block(page) == 0;
        Some(page)
    }

    /// Whether some plane has room for the host's data, busy or not.
    pub(super) fn has_room_for_host(&self) -> bool {
        let usable =
            |plane: PlaneId| !self.dead[plane.0 as usize] && self.channels.is_enabled(self.geometry.channel_of(plane));
        self.provisioning.has_room(HOT, &usable)
    }

    /// Whether programs of the host's data are under way.
    pub(super) fn has_programs(&self) -> bool {
        self.in_flight.iter().any(|count| *count > 0)
    }

    /// A program of the host's data has ended.
    pub(super) fn host_program_ended(&mut self, page: PageId) {
        let plane = self.geometry.plane_of(self.geometry.block_of(page));
        self.in_flight[plane.0 as usize] -= 1;
        self.channels.end(self.geometry.channel_of(plane));
    }

    /// The next page of another stream, on `channel` if there is room there.
    pub(super) fn page_for(&mut self, stream: Stream, channel: Option<u32>) -> Option<PageId> {
        let State { provisioning, chunks, dead, geometry, .. } = self;
        let alive = |plane: PlaneId| !dead[plane.0 as usize];
        let near = |plane: PlaneId| alive(plane) && channel.is_none_or(|channel| geometry.channel_of(plane) == channel);
        let page = provisioning.get(chunks, stream, &near).or_else(|| provisioning.get(chunks, stream, &alive))?;
        chunks.handed_out(geometry.block_of(page), stream);
        Some(page)
    }

    /// A page was programmed, or its program has failed.
    pub(super) fn page_ended(&mut self, page: PageId) {
        self.provisioning.programmed(&mut self.chunks, page);
    }

    /// A program on a page has failed: its block is closed, and will be retired (Amendment).
    pub(super) fn close(&mut self, page: PageId) {
        let block = self.geometry.block_of(page);
        let BlockState::Open(_) = self.chunks.get(block).state else { return };
        self.log.append(Record::Amendment(page));
        self.close_block(block);
    }

    /// Takes a block out of use for writing. What it holds is moved out.
    pub(super) fn close_block(&mut self, block: BlockId) {
        let stream = self.chunks.stream(block);
        self.provisioning.close(block);
        self.chunks.set_state(block, BlockState::Retiring);
        if stream == LOG {
            let geometry = self.geometry;
            self.log.withdraw(&|page| geometry.block_of(page) == block);
            // It is erased when the checkpoint after its last page has ended, if it has one.
            self.log_blocks.entry(block).or_insert(self.log.number());
        }
    }

    // ------------------------------------------------------------ current data

    /// Units of a block are programmed and not current yet: the block is not collected.
    pub(super) fn begin_pending(&mut self, block: BlockId, units: usize) {
        self.pending[block.0 as usize] += units as u32;
    }

    /// They are current, or will not be.
    pub(super) fn end_pending(&mut self, block: BlockId, units: usize) {
        self.pending[block.0 as usize] -= units as u32;
    }

    /// Whether nothing is under way that may make units of a block current.
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

    /// A fragment's page does not hold current data any more, and another does.
    pub(super) fn move_page_validity(&mut self, moved: &Moved) {
        moved.old.into_iter().for_each(|page| self.set_page_valid(page, false));
        moved.new.into_iter().for_each(|page| self.set_page_valid(page, true));
    }

    fn set_page_valid(&mut self, page: PageId, valid: bool) {
        for unit in 0..self.geometry.units_per_page() {
            self.chunks.set_valid(self.geometry.unit_at(page, unit), valid);
        }
    }

    // ------------------------------------------------------------ blocks that come back

    /// All current data of a block was moved: it is erased after the next checkpoint (Recycle Chunk).
    pub(super) fn recycle(&mut self, block: BlockId) {
        assert_eq!(self.chunks.get(block).valid, 0, "{block:?} holds current data");
        self.log.append(Record::RecycleChunk(block));
        self.hold(block);
    }

    /// A block is erased after the next checkpoint.
    pub(super) fn hold(&mut self, block: BlockId) {
        self.condemn(block);
        self.held.push(block);
    }

    /// A block is not used any more. One that was to be retired goes bad instead of being erased.
    fn condemn(&mut self, block: BlockId) {
        if self.chunks.get(block).state == BlockState::Retiring {
            self.doomed.insert(block);
        }
        self.provisioning.close(block);
        self.chunks.set_state(block, BlockState::Collecting);
    }

    /// Blocks of the log that lie before a head and have no page to come: they are erased with those that were held.
    pub(super) fn truncated(&mut self, head: &LogHead) -> Vec<BlockId> {
        let geometry = self.geometry;
        let log = &self.log;
        let is_old = |block: &BlockId, last: &u64| {
            *last < head.number && !log.is_upcoming(&|page| geometry.block_of(page) == *block)
        };
        let old: Vec<BlockId> =
            self.log_blocks.extract_if(.., |block, last| is_old(block, last)).map(|(block, _)| block).collect();
        old.iter().for_each(|block| self.condemn(*block));
        old
    }

    /// A block was erased.
    pub(super) fn erased(&mut self, block: BlockId) {
        let geometry = self.geometry;
        self.unreadable.retain(|page| geometry.block_of(*page) != block);
        self.provisioning.put(&mut self.chunks, block);
    }

    /// A block has gone bad.
    pub(super) fn retire(&mut self, block: BlockId) {
        self.chunks.set_state(block, BlockState::Bad);
        self.bad.retire(block);
        self.bad_changed.insert(self.channel_of(block));
        self.retired += 1;
        self.counters.retired_blocks += 1;
    }

    // ------------------------------------------------------------ figures

    /// Bytes of memory for what is under way on blocks and planes.
    pub(super) fn write_memory(&self) -> usize {
        (self.pending.len() + self.in_flight.len()) * size_of::<u32>() + self.dead.len()
    }

    /// Whether there are fewer good blocks than are needed.
    pub(super) fn has_lost_too_much(&self) -> bool {
        self.new_blocks - self.retired < self.needed
    }

    /// Good blocks beyond those that are needed: now, and when the drive was new.
    pub(super) fn spare(&self) -> (u64, u64) {
        let new = self.new_blocks - self.needed;
        (new.saturating_sub(self.retired), new)
    }

    /// The counters, with what the log counts.
    pub(super) fn total_counters(&self) -> Stats {
        let mut counters = self.counters;
        counters.upkeep.records += self.log.appended();
        counters
    }

    pub(super) fn stats(&self) -> Stats {
        let (mut low, mut high, mut sum, mut free, mut garbage) = (u32::MAX, 0, 0, 0, 0);
        for block in (0..self.geometry.blocks()).map(BlockId) {
            let info = self.chunks.get(block);
            if info.state != BlockState::Bad {
                (low, high, sum) = (low.min(info.erases), high.max(info.erases), sum + u64::from(info.erases));
                free += u64::from(info.state == BlockState::Free);
            }
            garbage += self.garbage(block);
        }
        let upkeep = Upkeep {
            garbage_units: garbage,
            channels_to_collect: self.collecting.iter().filter(|collecting| **collecting).count() as u32,
            ..self.total_counters().upkeep
        };
        Stats {
            metadata_units: upkeep.pages.total() * u64::from(self.geometry.units_per_page()),
            upkeep,
            free_blocks: free,
            spare_blocks: self.spare(),
            erases: (low.min(high), high, sum),
            planes_out_of_use: self.dead.iter().filter(|dead| **dead).count() as u64,
            ..self.counters
        }
    }
}
