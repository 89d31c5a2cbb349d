//! The page-mapping FTL: any unit anywhere, log-structured blocks, a write buffer in front, collectors behind.
//!
//! | file | what |
//! |---|---|
//! | `state` | the parts below together: synchronous changes of several of them |
//! | `tables` | the map, block metadata, free blocks, bad blocks |
//! | `streams` | data that is written to separate blocks |
//! | `buffer` | the write buffer's slots |
//! | `programs` | the host's programs: which planes are ready for another |
//! | `schedule` | which planes collect: one phase a plane |
//! | `write` | from the host into the buffer, and from the buffer to flash |
//! | `placed` | handles by which hosts place data |
//! | `turns` | windows for the drive's background work |
//! | `orders` | collections that a host requests, limits and holds off |
//! | `together` | pages that are programmed with one command |
//! | `flat_map` | where each unit is, in memory |
//! | `load` | parts of tables that are not in memory |
//! | `reader`, `read` | reads: of an extent, of a page |
//! | `deallocate` | deallocation |
//! | `spoil` | sectors that the host declares unreadable |
//! | `collect` | garbage collection and wear levelling |
//! | `background` | the delays of host reads by collections and background programs |
//! | `refresh` | blocks that are rewritten because their data grows old |
//! | `scrub` | reads of all blocks in turn, which find blocks to refresh |
//! | `rain` | stripes with parity over planes of different channels |
//! | `moves` | the moves of a collection, and the owners of the data |
//! | `gate` | the gate that collections of the whole drive close to the host |
//! | `holdup` | the cause of waits of the host's data |
//! | `pace` | pacing of collectors by the host's writes |
//! | `broken` | operations that fail |
//! | `restart` | after a power cut |
//! | `saved` | the state of a drive at rest: saved and restored |
//! | `sanitize` | removing all data from the flash |
//! | `memory` | durable state, from which tables are rebuilt |
//! | `plant` | planting of a full or a worn-in drive |
//! | `check` | the invariants |
//! | `offers` | optional features |
//! | `mistakes` | deliberate mistakes, which tests must notice |
//! | `flushes_test`, `invariants_test`, `orders_test`, `schedule_test`, `victim_test` | tests of several files together |

mod background;
mod broken;
mod buffer;
mod check;
mod collect;
mod deallocate;
pub mod flat_map;
#[cfg(test)]
mod flushes_test;
mod gate;
mod holdup;
#[cfg(test)]
mod invariants_test;
mod load;
mod memory;
mod mistakes;
mod moves;
mod offers;
mod orders;
#[cfg(test)]
mod orders_test;
mod pace;
mod placed;
mod plant;
mod programs;
mod rain;
mod read;
mod reader;
mod refresh;
mod restart;
mod sanitize;
mod saved;
mod schedule;
#[cfg(test)]
mod schedule_test;
mod scrub;
mod spoil;
mod state;
mod streams;
mod tables;
mod together;
mod turns;
#[cfg(test)]
mod victim_test;
mod write;

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::{Rc, Weak};

use nandscape_device_ftl_core::address::{Extent, Location, Lpn, UnitSize};
use nandscape_device_ftl_core::component::{BlockInfo, BlockMetadata, Mapping, StreamRule};
use nandscape_device_ftl_core::ftl::{
    Destination, Ftl, Located, Milestone, Occupancy, ReadOnly, Settling, Stats, TableSummary,
};
use nandscape_device_ftl_core::offers::{Offers, RandomWrites};
use nandscape_device_ftl_core::placement::PlacementConfig;
use nandscape_device_ftl_core::policy::{
    AdmissionPolicy, AllocationPolicy, BufferPolicy, GcScheme, InTurn, OwnerSource, PatrolOrder, ReadPolicy,
    VictimPolicy,
};
use nandscape_device_ftl_core::{FirmwareTimes, Inspection};
use nandscape_device_media::{BlockId, Geometry, Media, MediaError, PlaneId, Priority, UnitId};
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, HostMem};
use nandscape_sim::account::Totals;
use nandscape_sim::credits::Credits;
use nandscape_sim::signal::Signal;
use nandscape_sim::workers::Workers;
use nandscape_sim::{Resource, Sim, Wait};

use background::Background;
use gate::Gate;
use orders::RunEnd;
use sanitize::PlaneJob;
use state::State;
use turns::Timer;
use write::{FillJob, ProgramJob};

use rain::StripeRead;
pub use rain::{RainConfig, StripePolicies, stripes_of};
pub use reader::PageReader;
pub use write::Reservation;

/// The configuration of a page-mapping FTL.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct PageFtlConfig {
    /// Size of the host's address space in mapping units.
    pub logical_units: u32,
    /// Size of the write buffer in mapping units.
    pub buffer_units: u32,
    /// Which operations planes and channels serve first.
    pub priority: Priority,
    /// Garbage collection.
    pub gc: GcConfig,
    /// Wear levelling.
    pub wear: WearConfig,
    /// Firmware times for work on tables.
    pub firmware: FirmwareTimes,
    /// The separation of host data.
    pub placement: PlacementConfig,
    /// Parity stripes; `None` without them.
    pub rain: Option<RainConfig>,
    /// Whether writes end when their data is in the buffer, so that its programs are background work.
    pub writes_end_in_buffer: bool,
}

impl PageFtlConfig {
    /// Mapped units: those of the host, and parity.
    fn mapped_units(&self) -> u32 {
        self.logical_units + self.rain.map_or(0, |rain| stripes_of(self.logical_units, rain.width))
    }

    /// The rules of the streams that are written, each with an open block on every plane.
    fn streams(&self) -> Vec<StreamRule> {
        streams::rules(&self.wear, &self.placement)
    }
}

/// The configuration of garbage collection.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct GcConfig {
    /// The resources that a collection blocks.
    pub scheme: GcScheme,
    /// How it finds the owners of the data that it moves.
    pub owner: OwnerSource,
    /// Whether pages that are current as a whole are copied within the plane, without the channel.
    pub copyback: bool,
    /// Whether the controller corrects such pages on the way, for which they cross the channel.
    pub copyback_ecc: bool,
    /// Pages programmed before the collector releases its resources and is paced by the host; `None` is a whole block at
    /// once.
    pub batch: Option<u32>,
    /// Free blocks of a plane at or below which its collector begins.
    pub free_blocks: u32,
    /// The maximum of free blocks of a plane, in addition to `free_blocks`, up to which it is collected in a window for
    /// background work.
    pub free_in_window: u32,
    /// The same if windows are as long as the space of the drive permits
    /// ([`Schedule::is_long`](nandscape_device_ftl_core::policy::Schedule)).
    pub free_in_long_window: u32,
    /// Whether urgent reads are admitted between a collection's operations and within them, for as long as a plane has
    /// more free blocks than this; `None` is never. Urgent are all reads of the host where reads come first, otherwise
    /// reads that are marked urgent ([`Destination::is_urgent`]).
    pub preempt_above: Option<u32>,
}

/// The decisions that a page-mapping FTL leaves to policies.
pub struct Policies {
    /// On which plane the host's next page is written.
    pub allocation: Box<dyn AllocationPolicy>,
    /// Which block is cleaned next.
    pub victim: Box<dyn VictimPolicy>,
    /// Which planes may collect at the same time.
    pub admission: Box<dyn AdmissionPolicy>,
    /// When a write is admitted to the write buffer; `None` is as soon as there are slots for it.
    pub buffer: Option<Box<dyn BufferPolicy>>,
    /// The policies of parity stripes.
    pub stripes: StripePolicies,
    /// The fate of reads that background work delays; `None` serves all of them.
    pub read: Option<Box<dyn ReadPolicy>>,
    /// The order of scrubbing; `None` is every block in turn.
    pub patrol: Option<Box<dyn PatrolOrder>>,
}

/// The configuration of wear levelling.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct WearConfig {
    /// Dynamic: the free block erased least often is written next; otherwise the one freed longest ago.
    pub dynamic: bool,
    /// Static: how many erases the least worn full block of a plane may lag behind the most worn one before its data
    /// is moved away; 0 is never.
    pub static_threshold: u32,
}

impl WearConfig {
    /// Blocks that are open on every plane.
    pub fn open_blocks(&self, placement: &PlacementConfig) -> u32 {
        streams::rules(self, placement).len() as u32
    }
}

/// See the module.
pub struct PageFtl {
    sim: Sim,
    media: Rc<Media>,
    config: PageFtlConfig,
    state: RefCell<State>,
    /// The gate that host operations pass before they begin.
    gate: Gate,
    /// Free slots of the write buffer.
    free_slots: Credits,
    /// When writes get slots; `None` is as soon as they are free.
    buffer_policy: Option<Box<dyn BufferPolicy>>,
    /// The fate of reads that background work delays; with `None` they wait.
    read_policy: Option<Box<dyn ReadPolicy>>,
    background: Background,
    /// A read has released its block.
    unpinned: Signal,
    /// A plane's collector, which waited, is to continue.
    go_on: Vec<Signal>,
    /// All waiters for writes have been notified that the drive is read-only.
    read_only: Cell<Option<ReadOnly>>,
    /// Firmware that deallocates, a step at a time.
    deallocating: Resource,
    /// Power cuts after which it has started again.
    restarted_after: Cell<u32>,
    programs: Workers<ProgramJob>,
    fills: Workers<FillJob>,
    collectors: Workers<PlaneId>,
    sanitizers: Workers<PlaneJob>,
    refreshers: Workers<BlockId>,
    timers: Workers<Timer>,
    run_ends: Workers<RunEnd>,
    /// A page is read to be scrubbed.
    scrubbing: Cell<bool>,
    /// A collector has released its block, or a program has ended while collectors are suspended.
    came_to_rest: Signal,
    /// Stripes from the write buffer to flash, the programs that they take, and reads in addition to those of the host.
    flushes: Workers<Rc<rain::Job>>,
    stripe_programs: Workers<rain::Program>,
    extras: Workers<rain::Extra>,
    scrubbers: Workers<rain::ScrubJob>,
    /// A stripe has been written, or is abandoned.
    stripe_ended: Signal,
    /// Writes that wait for a stripe to leave the write buffer.
    waiting_writes: Cell<u32>,
}

impl PageFtl {
    /// An FTL over erased flash, or over flash in a file, which may hold data.
    ///
    /// # Errors
    /// If the system does not provide memory for the mapping table, the file is damaged, or a file is combined with parity
    /// stripes.
    pub fn new(sim: &Sim, media: Rc<Media>, config: PageFtlConfig, mut policies: Policies) -> io::Result<Rc<PageFtl>> {
        let (buffer_policy, read_policy) = (policies.buffer.take(), policies.read.take());
        let background = Background::new(sim, &media, &config, read_policy.is_some());
        let order = policies.patrol.take().unwrap_or_else(|| Box::new(InTurn::default()));
        if config.rain.is_some() && media.durable().is_some() {
            let problem = "stripes with parity are not kept in a file; ftl.rain.width = 0 is valid for a drive in one";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        let mut state = State::new(&media, &config, policies)?;
        let kept = memory::start(&mut state, &media, &config)?;
        let go_on = (0..media.geometry().planes()).map(|_| Signal::new(sim)).collect();
        let free_slots = Credits::new(sim, config.buffer_units as usize, cause::HOST_WRITE);
        let ftl = Rc::new_cyclic(|weak: &Weak<PageFtl>| PageFtl {
            sim: sim.clone(),
            media,
            state: RefCell::new(state),
            gate: Gate::new(sim, config.gc.scheme),
            free_slots,
            buffer_policy,
            read_policy,
            background,
            unpinned: Signal::new(sim),
            go_on,
            read_only: Cell::new(None),
            deallocating: Resource::new(sim),
            restarted_after: Cell::new(0),
            programs: pool(sim, weak, async |ftl, job| ftl.program(job).await),
            fills: pool(sim, weak, async |ftl, job| ftl.fill(job).await),
            collectors: pool(sim, weak, async |ftl, plane| ftl.collect_plane(*plane).await),
            sanitizers: pool(sim, weak, async |ftl, job| ftl.sanitize_plane(job).await),
            refreshers: pool(sim, weak, async |ftl, block| ftl.refresh(*block)),
            timers: PageFtl::timers(sim, weak),
            run_ends: PageFtl::run_ends(sim, weak),
            scrubbing: Cell::new(false),
            came_to_rest: Signal::new(sim),
            flushes: pool(sim, weak, async |ftl, job| ftl.flush_stripe(job).await),
            stripe_programs: pool(sim, weak, async |ftl, program| ftl.program_stripe(program).await),
            extras: pool(sim, weak, async |ftl, extra| ftl.read_extra(extra).await),
            scrubbers: pool(sim, weak, async |ftl, _| ftl.scrub_stripes().await),
            stripe_ended: Signal::new(sim),
            waiting_writes: Cell::new(0),
            config,
        });
        if let Some(kept) = kept {
            assert!(ftl.free_slots.try_take(kept), "the buffer has as many slots as before");
            ftl.resume();
        }
        ftl.watch_blocks();
        ftl.patrol(order);
        ftl.watch_power();
        Ok(ftl)
    }

    /// Bytes of a snapshot of the tables of such an FTL.
    pub fn snapshot_bytes(geometry: &Geometry, config: &PageFtlConfig) -> u64 {
        memory::snapshot_bytes(geometry, config.mapped_units())
    }

    /// Continues with the state found in a file.
    fn resume(&self) {
        let mut state = self.state.borrow_mut();
        state.recount_spare();
        state.resume_retiring();
        for plane in (0..state.geometry.planes()).map(PlaneId) {
            state.update_ready(plane);
            state.check_collector(plane);
        }
        drop(state);
        self.pump();
    }

    /// Writes a snapshot of the tables, so that the drive starts without a scan of its flash. Nothing may be under way.
    ///
    /// # Errors
    /// When the file cannot be written; [`MediaError::Store`].
    pub fn save(&self) -> Result<(), MediaError> {
        self.state.borrow_mut().save_snapshot()
    }

    /// The range of the logical blocks that owns this plane, where ranges have separate planes (Li 2020, 6.2).
    pub fn range_of(&self, plane: PlaneId) -> Option<u8> {
        self.state.borrow().programs.allocation.range_of(plane)
    }

    /// Where a logical unit is.
    pub fn locate(&self, lpn: u32) -> Located {
        let (state, lpn) = (self.state.borrow(), Lpn(lpn));
        let flash = if let Location::Flash(unit) = state.flash_copy(lpn) { Some(unit) } else { None };
        let is_buffered = matches!(state.tables.location(lpn), Location::Buffered(_));
        let lost = state.damage.lost().find(|(other, _)| *other == lpn);
        Located { flash, is_buffered, lost_sectors: lost.map_or(0, |(_, sectors)| sectors.count_ones()) }
    }

    /// The flash below.
    pub fn media(&self) -> &Rc<Media> {
        &self.media
    }
}

/// A pool of workers that do not keep the FTL alive.
fn pool<J: 'static>(sim: &Sim, weak: &Weak<PageFtl>, work: impl AsyncFn(&PageFtl, &mut J) + 'static) -> Workers<J> {
    let weak = weak.clone();
    Workers::new(sim, async move |job: &mut J| {
        if let Some(ftl) = weak.upgrade() {
            work(&ftl, job).await;
        }
    })
}

impl Ftl for PageFtl {
    type RandomWrites = PageFtl;
    type Reader<D: Destination> = PageReader<D>;

    fn sectors(&self) -> u64 {
        u64::from(self.config.logical_units) * u64::from(self.unit().sectors())
    }

    fn unit(&self) -> UnitSize {
        self.state.borrow().unit
    }

    fn max_reserve(&self) -> u32 {
        // For each handle, all but one unit of a stripe may be in the buffer for want of another to fill the page, and
        // stay there. In addition, an unaligned extent touches one unit more than it has.
        let state = self.state.borrow();
        (self.config.buffer_units - state.stuck_units() - 1) * state.unit.sectors()
    }

    #[inline]
    fn prefetch(&self, sector: u64) {
        let state = self.state.borrow();
        let lpn = state.unit.unit_of(sector);
        if lpn < u64::from(self.config.logical_units) {
            state.tables.map.prefetch(Lpn(lpn as u32));
        }
    }

    fn reader<D: Destination>(self: &Rc<Self>) -> PageReader<D> {
        PageReader::new(self)
    }

    fn spare_blocks(&self) -> (u64, u64) {
        self.state.borrow().spare()
    }

    fn read_only(&self) -> Option<ReadOnly> {
        self.read_only.get()
    }

    async fn restart(&self, keeps_buffer: bool) {
        restart::restart(self, keeps_buffer).await;
    }

    fn flush(&self) -> Option<Rc<Settling>> {
        write::flush(self)
    }

    fn check(&self) -> Result<(), String> {
        self.state.borrow().check(&self.media)
    }

    fn stats(&self) -> Stats {
        self.state.borrow().stats()
    }

    #[inline(always)]
    fn random_writes(&self) -> Option<&PageFtl> {
        Some(self)
    }

    fn inspection(&self) -> &dyn Inspection {
        self
    }

    #[inline]
    fn offers(&self) -> Offers<'_, PageFtl> {
        Offers {
            windows: Some(self),
            delays: Some(self),
            collections: if self.config.rain.is_none() { Some(self) } else { None },
            placement: if self.config.placement.handles > 0 { Some(self) } else { None },
            metadata: if self.media.keeps_data() { Some(self) } else { None },
            sanitize: Some(self),
            ..Offers::NONE
        }
    }
}

impl RandomWrites for PageFtl {
    type Reservation<'a> = Reservation<'a>;

    #[inline]
    fn reserve(&self, extent: Extent, waited: &mut Wait) -> impl Future<Output = Reservation<'_>> {
        write::reserve(self, extent, waited)
    }

    fn accept(
        &self,
        extent: Extent,
        data: Option<&HostMem>,
        reservation: Reservation<'_>,
        watch: Option<Milestone>,
    ) -> Option<Rc<Settling>> {
        write::accept(self, extent, data, None, reservation, watch)
    }

    async fn deallocate(&self, extent: Extent, breakdown: &mut Breakdown) -> Result<(), MediaError> {
        deallocate::deallocate(self, extent, breakdown).await
    }

    async fn spoil(&self, extent: Extent, breakdown: &mut Breakdown) {
        spoil::spoil(self, extent, breakdown).await;
    }
}

impl Inspection for PageFtl {
    fn block(&self, block: BlockId) -> BlockInfo {
        *self.state.borrow().tables.blocks.get(block)
    }

    fn is_current(&self, unit: UnitId) -> bool {
        self.state.borrow().tables.blocks.is_valid(unit)
    }

    fn tables(&self) -> TableSummary {
        let state = self.state.borrow();
        let mut summary = TableSummary::default();
        for lpn in (0..self.config.logical_units).map(Lpn) {
            match state.tables.location(lpn) {
                Location::Unmapped => {}
                Location::Flash(_) => summary.on_flash += 1,
                Location::Buffered(_) => summary.in_buffer += 1,
            }
        }
        summary.lost_sectors = state.damage.lost().map(|(_, sectors)| u64::from(sectors.count_ones())).sum();
        summary
    }

    fn has_room_on_all_planes(&self) -> bool {
        self.state.borrow().has_room_on_all_planes()
    }

    fn memory(&self) -> Vec<(&'static str, u64)> {
        let state = self.state.borrow();
        let placed = state.placed.as_ref().map(|placed| ("placement", placed.memory()));
        state.tables.memory().into_iter().chain([("write_cache", state.buffer.memory())]).chain(placed).collect()
    }

    fn buffer_waits(&self) -> Totals {
        self.free_slots.totals()
    }

    fn occupancy(&self) -> Occupancy {
        Occupancy::of(self.config.buffer_units, &self.free_slots)
    }
}
