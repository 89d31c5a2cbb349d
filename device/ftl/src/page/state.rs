//! The components together: every change of mapping and validity happens here, at once, without waiting.

use std::convert::Infallible;
use std::io;

use nandscape_device_media::{BlockId, Geometry, Media, PageId, PlaneId, Registers, UnitId};

use super::PageFtlConfig;
use super::broken::Damage;
use super::buffer::WriteBuffer;
use super::collect::Cursor;
use super::holdup::Holdups;
use super::pace::Pace;
use super::together::Together;
use crate::address::{Location, Lpn, SlotId, UnitSize};
use crate::component::{BlockMetadata, BlockState, Mapping, Provisioning, Stream};
use crate::ftl::Stats;
use crate::parts::{BadBlockTable, BlockTable, COLLECTOR_RESERVE, FlatMap, FreeOrder, PlaneLists};
use crate::policy::{AllocationPolicy, Candidate, VictimPolicy};

/// Tables that are all in memory, so that nothing is ever missing.
pub(super) struct State {
    pub(super) geometry: Geometry,
    pub(super) unit: UnitSize,
    pub(super) keeps_data: bool,
    pub(super) bad: BadBlockTable,
    pub(super) blocks: BlockTable,
    pub(super) provisioning: PlaneLists,
    pub(super) map: FlatMap,
    pub(super) buffer: WriteBuffer,
    pub(super) allocation: Box<dyn AllocationPolicy>,
    pub(super) planes: Vec<PlaneState>,
    /// Pages that are programmed with one command.
    pub(super) together: Together,
    /// How many host programs a plane or die is given at a time: one for its array, one to fill its cache register.
    programs_per_lun: u32,
    pub(super) gc_free_blocks: u32,
    /// Blocks of a plane that are open at a time: one a stream.
    pub(super) open_blocks: u32,
    /// Behind whom the host's data waits.
    pub(super) holdups: Holdups,
    /// Planes whose collector found nothing to gain; until something changes there is no use in starting it again.
    fruitless: u32,
    /// Planes whose collector is to be started.
    pub(super) due: Vec<PlaneId>,
    /// Whether collectors keep in step with the host.
    pub(super) paced: bool,
    /// Planes whose collector waited and is to go on.
    pub(super) woken: Vec<PlaneId>,
    /// What has gone wrong so far.
    pub(super) damage: Damage,
    pub(super) counters: Stats,
}

/// What is going on in a plane.
#[derive(Default)]
pub(super) struct PlaneState {
    /// Programs of the host that have begun and not ended. Where planes share a die, its first plane counts.
    programs: u32,
    /// A collector is at work, or about to be.
    collecting: bool,
    fruitless: bool,
    pub(super) pace: Pace,
    /// How far a block was emptied in no time, for the collector to go on with.
    pub(super) left_off: Option<Cursor>,
    /// Blocks to be emptied because they have gone bad.
    pub(super) retiring: Vec<BlockId>,
    /// A block has gone bad.
    pub(super) has_lost_blocks: bool,
    /// Neither written nor cleaned any more.
    pub(super) out_of_use: bool,
}

impl State {
    pub(super) fn new(
        media: &Media,
        config: &PageFtlConfig,
        allocation: Box<dyn AllocationPolicy>,
    ) -> io::Result<State> {
        let geometry = *media.geometry();
        let unit = UnitSize::of_bytes(geometry.unit_size());
        let bad = BadBlockTable::from_factory(media);
        let blocks = BlockTable::new(&geometry, &bad);
        let order = if config.wear.dynamic { FreeOrder::LeastErased } else { FreeOrder::Fifo };
        let mut state = State {
            geometry,
            unit,
            keeps_data: media.keeps_data(),
            provisioning: PlaneLists::new(&geometry, order, &blocks),
            bad,
            blocks,
            map: FlatMap::new(config.logical_units)?,
            buffer: WriteBuffer::new(config.buffer_units, unit, media.keeps_data()),
            allocation,
            planes: (0..geometry.planes()).map(|_| PlaneState::default()).collect(),
            together: Together::new(&geometry, media.timing()),
            programs_per_lun: if media.timing().registers == Registers::Double { 2 } else { 1 },
            gc_free_blocks: config.gc.free_blocks,
            open_blocks: config.wear.streams().len() as u32,
            holdups: Holdups::new(&geometry, config.gc.batch.is_none().then_some(config.gc.scheme)),
            fruitless: 0,
            due: Vec::new(),
            paced: config.gc.batch.is_some(),
            woken: Vec::new(),
            damage: Damage::default(),
            counters: Stats::default(),
        };
        state.count_spare(config.logical_units);
        (0..geometry.planes()).for_each(|plane| state.update_ready(PlaneId(plane)));
        Ok(state)
    }
}

/// What the map may have to load.
pub(super) type MapMiss = <FlatMap as Mapping>::Miss;

/// The value of a lookup that cannot miss.
pub(super) fn sure<T>(result: Result<T, Infallible>) -> T {
    match result {
        Ok(value) => value,
        Err(never) => match never {},
    }
}

impl State {
    #[inline]
    pub(super) fn location(&self, lpn: Lpn) -> Location {
        sure(self.map.lookup(lpn))
    }

    #[inline]
    pub(super) fn remap(&mut self, lpn: Lpn, to: Location) -> Location {
        sure(self.map.upsert(lpn, to))
    }

    /// A copy on flash is out of date; copies elsewhere are none of its business.
    #[inline]
    pub(super) fn drop_copy(&mut self, copy: Location) {
        if let Location::Flash(unit) = copy {
            let block = self.blocks.invalidate(unit);
            if self.fruitless > 0 {
                self.set_fruitless(self.geometry.plane_of(block), false);
            }
        }
    }

    /// Whether a plane has a page for the host.
    pub(super) fn has_room_for_host(&self, plane: PlaneId) -> bool {
        self.provisioning.has_room(plane, Stream::Host)
            && !self.keeps_last_blocks(plane)
            && !self.planes[plane.0 as usize].out_of_use
    }

    /// Whether a plane keeps what few blocks it has for its collector, because it has lost some: as long as there is
    /// anything to gain.
    pub(super) fn keeps_last_blocks(&self, plane: PlaneId) -> bool {
        let PlaneState { has_lost_blocks, fruitless, .. } = self.planes[plane.0 as usize];
        has_lost_blocks && !fruitless && self.provisioning.free_blocks(plane) <= COLLECTOR_RESERVE
    }

    /// Looks again whether a plane is to be given more host pages, and if not, whether its collector is the reason.
    pub(super) fn update_ready(&mut self, plane: PlaneId) {
        let is_short = self.is_short(plane);
        self.holdups.set_short(plane, is_short);
        self.allocation.set_ready(plane, !is_short && !self.is_busy(plane));
    }

    /// Whether a plane is to be given more host pages.
    pub(super) fn is_ready(&self, plane: PlaneId) -> bool {
        !self.is_short(plane) && !self.is_busy(plane)
    }

    /// Whether there is no page for the host until the plane's collector has gone on.
    fn is_short(&self, plane: PlaneId) -> bool {
        !self.has_room_for_host(plane) || self.is_behind(plane)
    }

    fn is_busy(&self, plane: PlaneId) -> bool {
        self.planes[self.together.lun_of(plane).start as usize].programs >= self.programs_per_lun
    }

    /// Whether a collection of a plane may let urgent reads in: not where the host's writes wait for it.
    pub(super) fn may_preempt(&self, plane: PlaneId, above: u32) -> bool {
        self.provisioning.free_blocks(plane) > above && !self.is_short(plane)
    }

    /// Units that all planes and dies can be given to program at a time.
    pub(super) fn units_per_round(&self) -> u32 {
        self.geometry.planes() * self.geometry.units_per_page() * self.together.word_line * self.programs_per_lun
    }

    /// The next pages of a plane, so many, for a program of the host's data.
    pub(super) fn take_host_pages(&mut self, plane: PlaneId, count: u32) -> impl Iterator<Item = PageId> + use<> {
        let mut get = || self.provisioning.get(&mut self.blocks, plane, Stream::Host).expect("a ready plane has room");
        let first = get();
        for number in 1..count {
            assert_eq!(get().0, first.0 + number, "a word line is in one block");
        }
        self.check_collector(plane);
        self.wake_collector(plane);
        (first.0..first.0 + count).map(PageId)
    }

    /// A program of the host's data on a plane, and perhaps others of its die, begins.
    pub(super) fn host_program_begins(&mut self, plane: PlaneId) {
        let lun = self.together.lun_of(plane);
        self.planes[lun.start as usize].programs += 1;
        lun.for_each(|plane| self.update_ready(PlaneId(plane)));
    }

    /// A program of the host's data has ended.
    pub(super) fn host_program_ended(&mut self, pages: &[PageId]) {
        let plane = self.geometry.plane_of(self.geometry.block_of(pages[0]));
        let lun = self.together.lun_of(plane);
        self.planes[lun.start as usize].programs -= 1;
        pages.iter().for_each(|page| self.page_programmed(*page));
        lun.for_each(|plane| self.update_ready(PlaneId(plane)));
    }

    /// A page has been programmed. A block that is full now may be worth cleaning.
    pub(super) fn page_programmed(&mut self, page: PageId) {
        let closed = self.provisioning.programmed(&mut self.blocks, page);
        if let Some(block) = closed
            && self.fruitless > 0
        {
            self.set_fruitless(self.geometry.plane_of(block), false);
        }
        self.check_retiring(self.geometry.block_of(page));
    }

    /// A slot's data is on flash, at `unit`. Whether that is the current copy, or the one a newer slot falls back
    /// on, or nothing any more, the mapping tells.
    pub(super) fn slot_programmed(&mut self, id: SlotId, unit: UnitId) {
        let (lpn, durable) = (self.buffer.slot(id).lpn, self.buffer.slot(id).durable);
        match self.location(lpn) {
            Location::Buffered(current) if current == id => {
                self.remap(lpn, Location::Flash(unit));
                self.blocks.validate(unit);
                self.drop_copy(durable);
            }
            Location::Buffered(newer) if self.buffer.slot(newer).durable == Location::Buffered(id) => {
                self.buffer.slot_mut(newer).durable = Location::Flash(unit);
                self.blocks.validate(unit);
                self.drop_copy(durable);
            }
            // Deallocated since, and its older copy with it.
            _ => {}
        }
    }

    /// A collector has copied the data at `from` to `to`. If it is still current, whoever refers to it is told.
    pub(super) fn relocated(&mut self, lpn: Lpn, from: UnitId, to: UnitId) -> bool {
        if !self.blocks.is_valid(from) {
            return false;
        }
        let (old, new) = (Location::Flash(from), Location::Flash(to));
        match self.location(lpn) {
            location if location == old => {
                self.remap(lpn, new);
            }
            Location::Buffered(slot) => {
                let holder = match self.buffer.slot(slot).durable {
                    Location::Buffered(before) => before,
                    _ => slot,
                };
                let durable = &mut self.buffer.slot_mut(holder).durable;
                assert_eq!(*durable, old, "{lpn:?}: {from:?} is valid, and nobody refers to it");
                *durable = new;
            }
            other => unreachable!("{lpn:?}: {from:?} is valid, and the mapping says {other:?}"),
        }
        self.blocks.invalidate(from);
        self.blocks.validate(to);
        true
    }

    /// Has a plane's collector started if it has to begin.
    pub(super) fn check_collector(&mut self, plane: PlaneId) {
        let low = self.is_low(plane);
        let state = &mut self.planes[plane.0 as usize];
        let due = (low && !state.fruitless) || !state.retiring.is_empty();
        if due && !state.collecting && !state.out_of_use {
            state.collecting = true;
            self.holdups.collecting(plane, true);
            self.due.push(plane);
        }
    }

    /// A plane's collector ends; `fruitless` when it found nothing to gain.
    pub(super) fn collector_ended(&mut self, plane: PlaneId, fruitless: bool) {
        if std::mem::replace(&mut self.planes[plane.0 as usize].collecting, false) {
            self.holdups.collecting(plane, false);
        }
        self.set_fruitless(plane, fruitless);
        self.update_ready(plane);
    }

    fn set_fruitless(&mut self, plane: PlaneId, fruitless: bool) {
        let was = std::mem::replace(&mut self.planes[plane.0 as usize].fruitless, fruitless);
        self.fruitless = self.fruitless + u32::from(fruitless) - u32::from(was);
        if was && !fruitless {
            self.check_collector(plane);
            self.update_ready(plane);
        }
    }

    /// Whether a plane's collector is at work.
    pub(super) fn is_collecting(&self, plane: PlaneId) -> bool {
        self.planes[plane.0 as usize].collecting
    }

    /// The block of a plane that `policy` would clean, among those that gain at least a page, or a word line.
    pub(super) fn victim(&self, plane: PlaneId, policy: &dyn VictimPolicy) -> Option<BlockId> {
        let units = self.geometry.units_per_block();
        let most = units - self.geometry.units_per_page() * self.together.word_line;
        let sequence = self.provisioning.sequence();
        let mut best: Option<(u64, u64, BlockId)> = None;
        for block in self.geometry.blocks_of(plane) {
            let info = self.blocks.get(block);
            if info.state != BlockState::Full || info.valid > most {
                continue;
            }
            let age = sequence - info.sealed_at;
            let merit = policy.merit(&Candidate { valid: info.valid, units, age, erases: info.erases });
            if best.is_none_or(|(best_merit, best_age, _)| (merit, age) > (best_merit, best_age)) {
                best = Some((merit, age, block));
            }
        }
        best.map(|(_, _, block)| block)
    }

    /// The full block of a plane that was erased least often, and of those the one with the oldest data, if it lags
    /// more than `threshold` erases behind the most worn one.
    pub(super) fn least_worn(&self, plane: PlaneId, threshold: u32) -> Option<BlockId> {
        let used = self.geometry.blocks_of(plane).filter(|block| self.blocks.get(*block).state != BlockState::Bad);
        let most = used.map(|block| self.blocks.get(block).erases).max()?;
        let full = self.geometry.blocks_of(plane).filter(|block| self.blocks.get(*block).state == BlockState::Full);
        let least = full.min_by_key(|block| (self.blocks.get(*block).erases, self.blocks.get(*block).sealed_at))?;
        (most - self.blocks.get(least).erases > threshold).then_some(least)
    }

    /// The counters, with the figures that are counted when asked.
    pub(super) fn stats(&self) -> Stats {
        let mut stats = self.counters;
        stats.spare_blocks = self.spare();
        stats.planes_out_of_use = self.planes.iter().filter(|plane| plane.out_of_use).count() as u64;
        stats.free_blocks =
            (0..self.geometry.planes()).map(|plane| u64::from(self.provisioning.free_blocks(PlaneId(plane)))).sum();
        let blocks = (0..self.geometry.blocks()).map(|block| self.blocks.get(BlockId(block)));
        let (mut least, mut most, mut sum) = (u32::MAX, 0, 0u64);
        for info in blocks.filter(|info| info.state != BlockState::Bad) {
            least = least.min(info.erases);
            most = most.max(info.erases);
            sum += u64::from(info.erases);
        }
        stats.erases = (least.min(most), most, sum);
        stats
    }
}
