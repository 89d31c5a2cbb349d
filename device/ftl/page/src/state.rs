//! The parts of the FTL together: synchronous changes of more than one of them.

use std::io;

use nandscape_device_ftl_core::address::{Location, Lpn, SlotId, UnitSize};
use nandscape_device_ftl_core::component::{BlockMetadata, Mapping, Provisioning};
use nandscape_device_ftl_core::ftl::{RainStats, Stats};
use nandscape_device_ftl_core::parts::COLLECTOR_RESERVE;
use nandscape_device_ftl_core::policy::{OwnerSource, VictimPolicy};
use nandscape_device_media::{BlockId, Geometry, Media, Oob, PageId, PlaneId, UnitId};

use super::broken::Damage;
use super::buffer::WriteBuffer;
use super::holdup::Holdups;
use super::memory::Memory;
use super::orders::Orders;
use super::pace::Pace;
use super::placed::Placed;
use super::programs::HostPrograms;
use super::rain::Rain;
use super::schedule::{Collectors, Phase};
use super::tables::Tables;
use super::turns::Turns;
use super::{PageFtlConfig, Policies, streams};

/// The whole state of the FTL.
pub(super) struct State {
    pub(super) geometry: Geometry,
    pub(super) unit: UnitSize,
    pub(super) keeps_data: bool,
    /// The owners of units that are being moved: memory that is used again.
    pub(super) owners: Vec<Lpn>,
    /// Out-of-band bytes that a collector reads with each unit.
    pub(super) owner_bytes: u32,
    pub(super) tables: Tables,
    pub(super) buffer: WriteBuffer,
    pub(super) programs: HostPrograms,
    pub(super) collectors: Collectors,
    /// How much space collectors keep.
    pub(super) pace: Pace,
    /// Which block is cleaned next.
    victim_policy: Box<dyn VictimPolicy>,
    /// The failures so far.
    pub(super) damage: Damage,
    /// Blocks that went bad in a life before the run.
    grown_bad: u64,
    pub(super) counters: Stats,
    /// The durable state, if the flash is in a file.
    pub(super) memory: Option<Memory>,
    /// The handles by which hosts place data, if any.
    pub(super) placed: Option<Placed>,
    /// When the drive may do internal work.
    pub(super) turns: Turns,
    /// A host's orders for collections.
    pub(super) orders: Orders,
    pub(super) writes_end_in_buffer: bool,
    /// Parity stripes, if any.
    pub(super) rain: Option<Box<Rain>>,
}

impl State {
    pub(super) fn new(media: &Media, config: &PageFtlConfig, policies: Policies) -> io::Result<State> {
        let geometry = *media.geometry();
        let unit = UnitSize::of_bytes(geometry.unit_size());
        let holdups = Holdups::new(&geometry, config.gc.batch.is_none().then_some(config.gc.scheme));
        let (rain, stripes) = (config.rain, policies.stripes);
        let mut state = State {
            geometry,
            unit,
            keeps_data: media.keeps_data(),
            owners: Vec::new(),
            owner_bytes: if config.gc.owner == OwnerSource::OutOfBand { Oob::SIZE } else { 0 },
            tables: Tables::new(media, config)?,
            buffer: WriteBuffer::new(config.buffer_units, config.placement.handles.max(1), unit, media.keeps_data()),
            programs: HostPrograms::new(media, policies.allocation, holdups),
            collectors: Collectors::new(geometry.planes(), policies.admission),
            pace: Pace::new(&geometry, config),
            victim_policy: policies.victim,
            damage: Damage::new(&geometry),
            grown_bad: media.grown_bad_blocks(),
            counters: Stats::default(),
            memory: None,
            placed: Placed::new(&geometry, config.placement),
            turns: Turns::new(&config.gc),
            orders: Orders::new(geometry.planes(), config),
            writes_end_in_buffer: config.writes_end_in_buffer,
            rain: rain.map(|rain| Box::new(Rain::new(&geometry, rain, config.logical_units, stripes))),
        };
        state.count_spare(config.mapped_units(), media);
        (0..geometry.planes()).for_each(|plane| state.update_ready(PlaneId(plane)));
        Ok(state)
    }

    // ------------------------------------------------------------ space for the host

    /// Whether a plane has a page for the host, whichever handle places its data.
    pub(super) fn has_room_for_host(&self, plane: PlaneId) -> bool {
        (0..self.buffer.lines() as u8).all(|handle| self.tables.free.has_room(plane, streams::of_handle(handle)))
            && !self.keeps_last_blocks(plane)
            && !self.collectors.is_out_of_use(plane)
    }

    /// Whether a plane keeps its last blocks for its collector, because it has lost some: as long as there is anything to
    /// gain.
    pub(super) fn keeps_last_blocks(&self, plane: PlaneId) -> bool {
        self.damage.has_lost_blocks(plane)
            && self.collectors.phase(plane) != Phase::Fruitless
            && self.tables.free.free_blocks(plane) <= COLLECTOR_RESERVE
    }

    /// Checks again whether a plane may get more host pages, and if not, whether its collector is the reason.
    pub(super) fn update_ready(&mut self, plane: PlaneId) {
        let is_short = self.is_short(plane);
        self.programs.holdups.set_short(plane, is_short);
        self.programs.set_ready(plane, !is_short && !self.programs.is_busy(plane));
    }

    /// Whether a plane may get more host pages.
    pub(super) fn is_ready(&self, plane: PlaneId) -> bool {
        !self.is_short(plane) && !self.programs.is_busy(plane)
    }

    /// Whether the host has no page until the plane's collector makes progress.
    fn is_short(&self, plane: PlaneId) -> bool {
        self.is_behind(plane) || !self.has_room_for_host(plane)
    }

    /// Whether a collection of a plane may let urgent reads in: not if the host's writes wait for it.
    pub(super) fn may_preempt(&self, plane: PlaneId, above: u32) -> bool {
        self.tables.free.free_blocks(plane) > above && !self.is_short(plane)
    }

    // ------------------------------------------------------------ programs of the host's data

    /// The next `count` pages of a plane, for a program of the host's data that a handle places.
    pub(super) fn take_host_pages(
        &mut self,
        plane: PlaneId,
        handle: u8,
        count: u32,
    ) -> impl Iterator<Item = PageId> + use<> {
        let stream = streams::of_handle(handle);
        let Tables { free, blocks, .. } = &mut self.tables;
        let mut get = || free.get(blocks, plane, stream).expect("a ready plane has room");
        let first = get();
        for number in 1..count {
            assert_eq!(get().0, first.0 + number, "a word line is in one block");
        }
        self.opened(first, stream);
        if self.memory.is_some() {
            self.save_counters_if_due();
        }
        self.check_collector(plane);
        self.wake_collector(plane);
        (first.0..first.0 + count).map(PageId)
    }

    /// A program of the host's data on a plane, and perhaps others of its die, begins.
    pub(super) fn host_program_begins(&mut self, plane: PlaneId) {
        self.programs.begins(plane);
        self.programs.together.lun_of(plane).for_each(|plane| self.update_ready(PlaneId(plane)));
    }

    /// A program of the host's data has ended.
    pub(super) fn host_program_ended(&mut self, pages: &[PageId]) {
        let plane = self.geometry.plane_of(self.geometry.block_of(pages[0]));
        self.programs.ended(plane);
        pages.iter().for_each(|page| self.page_programmed(*page));
        self.programs.together.lun_of(plane).for_each(|plane| self.update_ready(PlaneId(plane)));
    }

    /// A program has left its plane; whether its page counts is reported later.
    pub(super) fn host_program_left(&mut self, plane: PlaneId) {
        self.programs.ended(plane);
        self.programs.together.lun_of(plane).for_each(|plane| self.update_ready(PlaneId(plane)));
    }

    /// A page has been programmed. A block that is full now may be worth cleaning.
    pub(super) fn page_programmed(&mut self, page: PageId) {
        if let Some(block) = self.tables.programmed(page)
            && self.collectors.any_fruitless()
        {
            self.set_fruitful(self.geometry.plane_of(block));
        }
        self.check_retiring(self.geometry.block_of(page));
    }

    // ------------------------------------------------------------ where data is

    /// A copy on flash is out of date. No-op unless the copy is on flash.
    #[inline]
    pub(super) fn drop_copy(&mut self, copy: Location) {
        if let Location::Flash(unit) = copy {
            let block = self.tables.blocks.invalidate(unit);
            if self.collectors.any_fruitless() {
                self.set_fruitful(self.geometry.plane_of(block));
            }
        }
    }

    /// A slot's data is on flash, at `unit`. The map determines whether it is the current copy, or the copy that a
    /// newer slot replaces, or already out of date.
    pub(super) fn slot_programmed(&mut self, id: SlotId, unit: UnitId) {
        let (lpn, previous) = (self.buffer.slot(id).lpn, self.buffer.slot(id).previous);
        match self.tables.location(lpn) {
            Location::Buffered(current) if current == id => {
                self.tables.remap(lpn, Location::Flash(unit));
                self.tables.blocks.validate(unit);
                self.drop_copy(previous);
                self.copy_moves(lpn);
            }
            Location::Buffered(newer) if self.buffer.slot(newer).previous == Location::Buffered(id) => {
                self.buffer.slot_mut(newer).previous = Location::Flash(unit);
                self.tables.blocks.validate(unit);
                self.drop_copy(previous);
                self.copy_moves(lpn);
            }
            // Deallocated since, and its older copy with it.
            _ => {}
        }
    }

    /// The slot of the write buffer that owns the copy of a unit on flash, for a unit that the map places in `slot`.
    pub(super) fn holder(&self, slot: SlotId) -> SlotId {
        match self.buffer.slot(slot).previous {
            Location::Buffered(before) => before,
            _ => slot,
        }
    }

    /// A collector has copied the data at `from` to `to`. If it is still current, what refers to it is changed.
    #[inline(always)]
    pub(super) fn relocated(&mut self, lpn: Lpn, from: UnitId, to: UnitId) {
        if !self.tables.blocks.is_valid(from) {
            return;
        }
        self.tables.blocks.invalidate(from);
        self.tables.blocks.validate(to);
        let lpn = self.owner_of(from, lpn);
        let (old, new) = (Location::Flash(from), Location::Flash(to));
        match self.tables.location(lpn) {
            location if location == old => {
                self.tables.remap(lpn, new);
            }
            Location::Buffered(slot) => {
                let holder = self.holder(slot);
                let previous = &mut self.buffer.slot_mut(holder).previous;
                assert_eq!(*previous, old, "{lpn:?}: {from:?} is valid, and nothing refers to it");
                *previous = new;
            }
            other => unreachable!("{lpn:?}: {from:?} is valid, and the map says {other:?}"),
        }
        self.copy_moves(lpn);
    }

    /// The logical unit whose current data is at `unit`: by its tag, or where the tag cannot be read, by the map.
    #[inline]
    pub(super) fn owner_of(&self, unit: UnitId, tag: Lpn) -> Lpn {
        if tag.0 < self.tables.map.units() {
            return tag;
        }
        self.owner_by_map(unit)
    }

    #[cold]
    fn owner_by_map(&self, unit: UnitId) -> Lpn {
        let mut lpns = (0..self.tables.map.units()).map(Lpn);
        let found = lpns.find(|lpn| self.flash_copy(*lpn) == Location::Flash(unit));
        found.unwrap_or_else(|| panic!("{unit:?} is valid, and nothing refers to it"))
    }

    // ------------------------------------------------------------ collectors

    /// Starts a plane's collector if it has to begin.
    pub(super) fn check_collector(&mut self, plane: PlaneId) {
        let has_to_retire = !self.collectors.of(plane).retiring.is_empty();
        if has_to_retire
            || self.has_to_refresh(plane)
            || (self.collectors.phase(plane) == Phase::Idle && self.is_low(plane))
        {
            self.collectors.set_due(plane);
        }
    }

    /// The next plane whose collector begins now.
    pub(super) fn next_collector(&mut self) -> Option<PlaneId> {
        let holdups = &self.programs.holdups;
        let plane = self.collectors.admit(|plane| holdups.is_short(plane))?;
        self.programs.holdups.collecting(plane, true);
        Some(plane)
    }

    /// A plane's collector ends; `is_fruitless` when it found nothing to gain.
    pub(super) fn collector_ended(&mut self, plane: PlaneId, is_fruitless: bool) {
        if is_fruitless {
            self.forget_aged(plane);
        }
        self.collectors.end(plane, is_fruitless);
        self.check_collector(plane);
        self.update_ready(plane);
    }

    /// Something of a plane may be gained again.
    pub(super) fn set_fruitful(&mut self, plane: PlaneId) {
        if self.collectors.set_fruitful(plane) {
            self.check_collector(plane);
            self.update_ready(plane);
        }
    }

    /// The block of a plane that is cleaned next, among those that gain at least a page, or a word line.
    pub(super) fn victim(&self, plane: PlaneId) -> Option<BlockId> {
        self.victim_by(plane, &*self.victim_policy)
    }

    pub(super) fn victim_by(&self, plane: PlaneId, policy: &dyn VictimPolicy) -> Option<BlockId> {
        let gain = self.geometry.units_per_page() * self.programs.together.word_line;
        let may_be = |block| self.is_open(block) || !self.has_room_for_host(plane);
        self.tables.victim(plane, self.geometry.units_per_block() - gain, policy, may_be)
    }

    /// The counters, with the figures that are counted when asked.
    pub(super) fn stats(&self) -> Stats {
        Stats {
            spare_blocks: self.spare(),
            planes_out_of_use: self.collectors.out_of_use(),
            free_blocks: self.tables.free_blocks(),
            erases: self.tables.erases(),
            retired_blocks: self.counters.retired_blocks + self.grown_bad,
            rain: RainStats { overloads: self.collectors.overloads, ..self.counters.rain },
            ..self.counters
        }
    }
}
