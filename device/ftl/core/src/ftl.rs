//! The interface between a controller and an FTL.
//!
//! Reads: a [`Reader`] maps an extent, senses its pages in the flash, handles failures, and delivers the data page by
//! page to a [`Destination`] that the controller names. Writes: [`RandomWrites::reserve`] waits for room in the write
//! buffer, [`RandomWrites::accept`] takes the data; reads see it from then on, or when it is durable ([`Transactions::settle`](crate::offers::Transactions::settle)). The
//! FTL decides when to program it.
//!
//! A sector may have metadata next to its data, [`METADATA`](crate::address::METADATA) bytes of it. Metadata follows
//! the path of the data into the buffer and to flash, and moves with its unit. The controller defines its meaning. An
//! extent is written and read either always with metadata or always without.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;

use nandscape_device_media::{MediaError, UnitId};
use nandscape_drive::{Breakdown, HostMem};
use nandscape_sim::account::Totals;
use nandscape_sim::credits::Credits;
use nandscape_sim::{Sim, Span, Wait};

use crate::Upkeep;
use crate::address::{Extent, UnitSize};
use crate::inspection::Inspection;
use crate::offers::{Offers, RandomWrites};
pub use crate::rain_stats::RainStats;

/// The least time of a step of long work, unless it is the last: a drive without delays serves others in between, and
/// so does a server with other drives.
pub const LEAST_STEP_TIME: Span = Span::from_us(1);

/// Mapping units that one step of [`RandomWrites::spoil`] marks.
pub const SPOIL_STEP: u32 = 256;
/// The least time of such a step, unless it is the last: 100 ns for each unit, about the time that the computer takes
/// that runs the model.
pub const SPOIL_STEP_TIME: Span = Span::from_ns(100 * SPOIL_STEP as u64);
/// Units that are marked with the work of one that is read or written ([`Sim::note_work`]).
pub const MARKED: u64 = 4;
/// Units that are unmapped with the work of one that is read or written.
pub const UNMAPPED: u64 = 16;

/// A flash translation layer.
pub trait Ftl: 'static {
    /// Its random writes; [`NoRandomWrites`](crate::offers::NoRandomWrites) if it has none.
    type RandomWrites: RandomWrites;

    /// Reads to one kind of destination.
    type Reader<D: Destination>: Reader<D>;

    /// Sectors of the host's address space.
    fn sectors(&self) -> u64;

    /// The size of a mapping unit.
    fn unit(&self) -> UnitSize;

    /// The most sectors for which one command may reserve room in the write buffer.
    fn max_reserve(&self) -> u32;

    /// Announces a read or write of a sector, which need not exist: its map entry is fetched into the processor's cache.
    fn prefetch(&self, sector: u64);

    /// Makes a reader. A controller makes one for each kind of destination and keeps it.
    fn reader<D: Destination>(self: &Rc<Self>) -> Self::Reader<D>;

    /// Random writes; `None` for zones, runs or chunks, which are written in order.
    fn random_writes(&self) -> Option<&Self::RandomWrites>;

    /// Good blocks beyond those that further writes need: now, and when the drive was new.
    fn spare_blocks(&self) -> (u64, u64);

    /// Why the drive is read-only, if it is. A reservation made then must not be accepted.
    fn read_only(&self) -> Option<ReadOnly>;

    /// Restarts after a power cut. Power is on, and no operation is in progress in the flash. The write buffer has kept its
    /// data if `keeps_buffer`, else it is empty. When power is cut meanwhile, the restart is repeated from its beginning.
    fn restart(&self, keeps_buffer: bool) -> impl Future<Output = ()>;

    /// Sends everything accepted so far to flash; `None` when it is already there.
    fn flush(&self) -> Option<Rc<Settling>>;

    /// Checks the FTL's own tables against each other and the flash.
    ///
    /// # Errors
    /// The fault, in one sentence.
    fn check(&self) -> Result<(), String>;

    /// Counters since the creation of the drive.
    fn stats(&self) -> Stats;

    /// The inspection of its flash and its tables.
    fn inspection(&self) -> &dyn Inspection;

    /// Its optional traits.
    fn offers(&self) -> Offers<'_, Self>;
}

/// Room in a write buffer, in mapping units.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Occupancy {
    /// All of it.
    pub slots: u32,
    /// Slots neither taken nor reserved for writes.
    pub free: u32,
}

impl Occupancy {
    /// The occupancy of a buffer whose slots are credits.
    #[inline]
    pub fn of(slots: u32, credits: &Credits) -> Occupancy {
        Occupancy { slots, free: u32::try_from(credits.free()).map_or(slots, |free| free.min(slots)) }
    }

    /// Two buffers of one drive together.
    pub fn plus(self, other: Occupancy) -> Occupancy {
        Occupancy { slots: self.slots + other.slots, free: self.free + other.free }
    }
}

/// Reads extents to destinations of type `D`.
pub trait Reader<D: Destination> {
    /// Reads an extent: its data is copied to the destination's memory and delivered, the pages in the order in which the
    /// flash yields them. The time of the page that is delivered last is added to `breakdown`.
    ///
    /// # Errors
    /// The first sector that cannot be read, and why. The other sectors may have been delivered.
    ///
    /// `Caller` is a type for the caller alone, as in [`Media::read_for`](nandscape_device_media::Media::read_for).
    fn read<Caller>(
        &self,
        extent: Extent,
        to: &D,
        breakdown: &mut Breakdown,
    ) -> impl Future<Output = Result<(), ReadError>>;
}

/// The destination of one read's data.
pub trait Destination: Clone + 'static {
    /// The memory to which the data is copied; its first byte is the extent's first.
    fn mem(&self) -> &HostMem;

    /// The memory to which the metadata is copied, if requested: that of the extent's first sector comes first.
    #[inline(always)]
    fn metadata(&self) -> Option<&HostMem> {
        None
    }

    /// Whether a sector that is not mapped fails the read. Otherwise it reads as zeros, and so does its metadata.
    fn rejects_unmapped(&self) -> bool;

    /// Whether the read is admitted before all others, and into collections of its plane where the FTL supports that.
    #[inline(always)]
    fn is_urgent(&self) -> bool {
        false
    }

    /// Takes `bytes` bytes that were copied to the memory on to the host.
    fn deliver(&self, bytes: u64, breakdown: &mut Breakdown) -> impl Future<Output = ()>;
}

/// Memory of the drive itself, for its own reads: their data does not leave the drive.
#[derive(Clone)]
pub struct Inside(pub HostMem);

impl Destination for Inside {
    fn mem(&self) -> &HostMem {
        &self.0
    }

    fn rejects_unmapped(&self) -> bool {
        false
    }

    async fn deliver(&self, _: u64, _: &mut Breakdown) {}
}

/// A sector that cannot be read.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ReadError {
    /// The sector.
    pub sector: u64,
    /// Why.
    pub why: Unreadable,
}

/// Why a sector cannot be read.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Unreadable {
    /// Its page, or the part of the map that holds its location, could not be read.
    Media(MediaError),
    /// Its data was lost, since the page could not be read when it had to be moved; or the host has declared it unreadable.
    Lost,
    /// It was never written or was deallocated, and the destination rejects that.
    Unmapped,
}

/// Why an FTL takes no more data.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ReadOnly {
    /// The file or the open-channel drive of its flash can no longer be written or read.
    Store,
    /// Fewer good blocks are left than writes need.
    FewBlocks,
    /// Two planes of a group of stripes are out of use, and a stripe can do without one of its pages.
    TwoOfAGroup,
    /// No plane answers.
    NoPlanes,
    /// No block that can be erased has room for a page of the log or of a table.
    NoRoomForTables,
    /// No block that can be erased has room for data.
    NoRoomForData,
    /// No copy of a table with a fixed place can be written.
    FixedPlace,
    /// Its tables in flash could not be read at the start: reads fail too.
    Unreadable,
}

impl std::fmt::Display for ReadOnly {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            ReadOnly::Store => "what its flash is in (a file, or another drive) cannot be written or read any more",
            ReadOnly::FewBlocks => "no spare blocks are left",
            ReadOnly::TwoOfAGroup => "two planes of a plane group are out of use, and its stripes can do without one",
            ReadOnly::NoPlanes => "none of its planes answers",
            ReadOnly::NoRoomForTables => "no block is left for its log and tables",
            ReadOnly::NoRoomForData => "no block is left for data",
            ReadOnly::Unreadable => "its tables cannot be read",
            ReadOnly::FixedPlace => "no copy of a table with a fixed place can be written",
        })
    }
}

/// Why data does not reach flash.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Unwritable {
    /// The drive takes no more data ([`Ftl::read_only`]).
    ReadOnly,
    /// Power was lost.
    PowerLost,
    /// The program of data whose write had ended has failed, and nothing else has the data.
    Lost,
}

/// The stage of data on its way to flash.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Milestone {
    /// In the register of its die, to be programmed.
    Register,
    /// Programmed, whether or not a power cut could still take it back.
    Programmed,
    /// Programmed, and recoverable after a power cut.
    Flash,
}

/// Notifies when a number of slots have reached the stage, on their way to flash, that the caller waits for.
pub struct Settling {
    sim: Sim,
    at: Milestone,
    /// How long each cause had held up the host's data when it began.
    begun: Totals,
    broken: Cell<Option<Unwritable>>,
    left: Cell<u32>,
    last: RefCell<Settled>,
    waiting: Cell<Option<nandscape_sim::executor::TaskId>>,
}

/// How the last of several slots reached the flash.
#[derive(Clone, Debug)]
pub struct Settled {
    /// The wait until its program operation was issued.
    pub waited: Wait,
    /// The breakdown of the program operation.
    pub breakdown: Breakdown,
}

impl Settling {
    /// Waits until `count` slots have reached the stage. `begun` gives for how long each cause has held up the host's
    /// data.
    #[inline]
    pub fn new(sim: &Sim, count: u32, at: Milestone, begun: Totals) -> Rc<Settling> {
        Rc::new(Settling {
            sim: sim.clone(),
            at,
            begun,
            broken: Cell::new(None),
            left: Cell::new(count),
            last: RefCell::new(Settled { waited: Wait::ZERO, breakdown: Breakdown::new() }),
            waiting: Cell::new(None),
        })
    }

    /// The stage that the slots have to reach.
    #[inline]
    pub fn milestone(&self) -> Milestone {
        self.at
    }

    /// One slot has reached the stage. Either a program operation brought it there, with its breakdown of time and, at
    /// its issue, the time for which each cause had held up the host's data; or the slot was deallocated.
    #[inline]
    pub fn one_settled(&self, program: Option<(&Totals, &Breakdown)>) {
        if let Some((issued, breakdown)) = program {
            // A program that had been issued before was not waited for.
            let was_issued = issued.total() < self.begun.total();
            let waited = if was_issued { Wait::ZERO } else { issued.since(&self.begun) };
            *self.last.borrow_mut() = Settled { waited, breakdown: breakdown.clone() };
        }
        self.settle(1);
    }

    #[inline]
    fn settle(&self, slots: u32) {
        self.left.set(self.left.get() - slots);
        if self.left.get() == 0
            && let Some(task) = self.waiting.take()
        {
            self.sim.wake(task);
        }
    }

    /// A number of slots will not reach the stage.
    pub fn give_up(&self, slots: u32, why: Unwritable) {
        self.broken.set(Some(why));
        self.settle(slots);
    }

    /// Whether nothing is waited for any more.
    #[inline]
    pub fn is_settled(&self) -> bool {
        self.left.get() == 0
    }

    /// Waits until all slots are on flash.
    ///
    /// # Errors
    /// Why one of them never will be.
    pub async fn settled(&self) -> Result<Settled, Unwritable> {
        std::future::poll_fn(|_| {
            if self.left.get() == 0 {
                return std::task::Poll::Ready(());
            }
            self.waiting.set(Some(self.sim.current_task()));
            std::task::Poll::Pending
        })
        .await;
        match self.broken.get() {
            Some(why) => Err(why),
            None => Ok(self.last.borrow().clone()),
        }
    }
}

/// Where a logical unit is.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Located {
    /// Its place on flash.
    pub flash: Option<UnitId>,
    /// Whether newer data is in the write buffer.
    pub is_buffered: bool,
    /// Sectors that are lost, or were declared unreadable.
    pub lost_sectors: u32,
}

/// The contents of an FTL's tables, counted.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct TableSummary {
    /// Logical units whose current data is on flash.
    pub on_flash: u64,
    /// Logical units whose current data is in the write buffer.
    pub in_buffer: u64,
    /// Sectors that are lost, or were declared unreadable.
    pub lost_sectors: u64,
}

impl TableSummary {
    /// The counts of two FTLs of one drive together.
    pub fn plus(&self, other: &TableSummary) -> TableSummary {
        TableSummary {
            on_flash: self.on_flash + other.on_flash,
            in_buffer: self.in_buffer + other.in_buffer,
            lost_sectors: self.lost_sectors + other.lost_sectors,
        }
    }
}

/// Units of the host's data that are programmed between two writes of the counters of a drive in a file. A kill loses
/// later counts.
pub const UNITS_COUNTED: u64 = 256;

/// Counters of an FTL. Units are mapping units.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Stats {
    /// Bytes that the host wrote.
    pub host_bytes: u64,
    /// Units programmed with data of the host.
    pub host_units: u64,
    /// Units programmed to move data during garbage collection.
    pub gc_units: u64,
    /// Units programmed to move data for wear levelling.
    pub wear_units: u64,
    /// Units programmed without data, to fill a page.
    pub padding_units: u64,
    /// Units programmed with tables and logs.
    pub metadata_units: u64,
    /// Blocks reclaimed by garbage collection.
    pub gc_blocks: u64,
    /// Blocks moved for wear levelling.
    pub wear_blocks: u64,
    /// Units read from flash because a write covered only a part of them.
    pub read_modify_writes: u64,
    /// Writes that found their unit in the write buffer.
    pub buffer_merges: u64,
    /// Units read that were never written, or were deallocated.
    pub unwritten_units: u64,
    /// Blocks that have gone bad in use, in a life before the run too.
    pub retired_blocks: u64,
    /// Planes out of use: they do not answer, or have no page left for their collector.
    pub planes_out_of_use: u64,
    /// Mapping units of which data was lost, because it could not be read when it had to be moved or completed.
    pub lost_units: u64,
    /// Mapping units in the write buffer that a power cut lost.
    pub dropped_units: u64,
    /// Erased blocks now.
    pub free_blocks: u64,
    /// Good blocks now beyond those that are needed, and when the drive was new.
    pub spare_blocks: (u64, u64),
    /// Lowest, highest and summed erase count of the blocks in use.
    pub erases: (u32, u32, u64),
    /// Fail-fast reads that failed because of background work.
    pub failed_fast: u64,
    /// Steps of collections that had to begin outside the drive's windows, because a plane had no room for the host.
    pub forced_steps: u64,
    /// Background programs that had to begin outside the drive's windows, because the buffer was nearly full or hosts waited.
    pub forced_programs: u64,
    /// Windows of the drive that have begun.
    pub window_turns: u64,
    /// The cost of the tables in flash.
    pub upkeep: Upkeep,
    /// Stripes with parity.
    pub rain: RainStats,
}

impl Stats {
    /// Units programmed to move data.
    pub fn moved(&self) -> u64 {
        self.gc_units + self.wear_units
    }

    /// The counts since `earlier`; states, which are not counts, are unchanged.
    pub fn since(&self, earlier: &Stats) -> Stats {
        Stats {
            host_bytes: self.host_bytes - earlier.host_bytes,
            host_units: self.host_units - earlier.host_units,
            gc_units: self.gc_units - earlier.gc_units,
            wear_units: self.wear_units - earlier.wear_units,
            padding_units: self.padding_units - earlier.padding_units,
            metadata_units: self.metadata_units - earlier.metadata_units,
            gc_blocks: self.gc_blocks - earlier.gc_blocks,
            wear_blocks: self.wear_blocks - earlier.wear_blocks,
            read_modify_writes: self.read_modify_writes - earlier.read_modify_writes,
            buffer_merges: self.buffer_merges - earlier.buffer_merges,
            unwritten_units: self.unwritten_units - earlier.unwritten_units,
            retired_blocks: self.retired_blocks - earlier.retired_blocks,
            lost_units: self.lost_units - earlier.lost_units,
            dropped_units: self.dropped_units - earlier.dropped_units,
            failed_fast: self.failed_fast - earlier.failed_fast,
            forced_steps: self.forced_steps - earlier.forced_steps,
            forced_programs: self.forced_programs - earlier.forced_programs,
            window_turns: self.window_turns - earlier.window_turns,
            upkeep: self.upkeep.since(&earlier.upkeep),
            rain: self.rain.since(&earlier.rain),
            ..*self
        }
    }

    /// The mean erases of good blocks as a share of the rated erases, in whole percent, rounded up; 255 is the maximum.
    /// `blocks` is all blocks of the flash. Flash that does not wear has a rating of 0.
    pub fn percentage_used(&self, blocks: u64, rated_erases: u32) -> u8 {
        if rated_erases == 0 {
            return 0;
        }
        let rated = (blocks - self.retired_blocks) * u64::from(rated_erases);
        (self.erases.2 * 100).div_ceil(rated.max(1)).min(u8::MAX.into()) as u8
    }

    /// The counters of two FTLs of one drive together.
    pub fn plus(&self, other: &Stats) -> Stats {
        Stats {
            host_bytes: self.host_bytes + other.host_bytes,
            host_units: self.host_units + other.host_units,
            gc_units: self.gc_units + other.gc_units,
            wear_units: self.wear_units + other.wear_units,
            padding_units: self.padding_units + other.padding_units,
            metadata_units: self.metadata_units + other.metadata_units,
            gc_blocks: self.gc_blocks + other.gc_blocks,
            wear_blocks: self.wear_blocks + other.wear_blocks,
            read_modify_writes: self.read_modify_writes + other.read_modify_writes,
            buffer_merges: self.buffer_merges + other.buffer_merges,
            unwritten_units: self.unwritten_units + other.unwritten_units,
            retired_blocks: self.retired_blocks + other.retired_blocks,
            planes_out_of_use: self.planes_out_of_use + other.planes_out_of_use,
            lost_units: self.lost_units + other.lost_units,
            dropped_units: self.dropped_units + other.dropped_units,
            failed_fast: self.failed_fast + other.failed_fast,
            forced_steps: self.forced_steps + other.forced_steps,
            forced_programs: self.forced_programs + other.forced_programs,
            window_turns: self.window_turns + other.window_turns,
            free_blocks: self.free_blocks + other.free_blocks,
            spare_blocks: (self.spare_blocks.0 + other.spare_blocks.0, self.spare_blocks.1 + other.spare_blocks.1),
            erases: (
                self.erases.0.min(other.erases.0),
                self.erases.1.max(other.erases.1),
                self.erases.2 + other.erases.2,
            ),
            upkeep: self.upkeep.plus(&other.upkeep),
            rain: self.rain.plus(&other.rain),
        }
    }

    /// Units programmed.
    pub fn programmed_units(&self) -> u64 {
        let rain = self.rain.parity_units + self.rain.repaired_units;
        self.host_units + self.gc_units + self.wear_units + self.padding_units + self.metadata_units + rain
    }
}
