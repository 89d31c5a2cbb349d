//! An open-channel drive: no translation. Its address space is its flash, in chunks that the host writes in order and resets.
//!
//! | file | what |
//! |---|---|
//! | `layout` | where each address lies in the flash |
//! | `table` | the state and the write pointer of each chunk |
//! | `write` | from the host to flash |
//! | `write_back` | writes that end before they are on flash |
//! | `read` | reads |
//! | `reset` | resets |
//! | `notices` | unsolicited notices of the drive |
//! | `saved` | the state of the drive at rest |
//! | `check` | after a power cut; the invariants |
//!
//! A write completes when it is on flash, or as `write_back` defines. The host handles errors of the flash: a failed
//! program closes its chunk early, a failed erase takes its chunk out of use.
//!
//! Left out: drives in files, limits of open chunks, chunks that can be written at random.

mod check;
mod layout;
mod notices;
mod read;
mod reset;
mod saved;
mod table;
mod write;
mod write_back;

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use nandscape_device_ftl_core::address::UnitSize;
use nandscape_device_ftl_core::component::{BlockInfo, BlockState, Stream};
use nandscape_device_ftl_core::ftl::{Destination, Ftl, Located, Occupancy, ReadOnly, Settling, Stats, TableSummary};
use nandscape_device_ftl_core::offers::{NoRandomWrites, Offers};
use nandscape_device_ftl_core::{Inspection, Plant, PlantReport};
use nandscape_device_media::{BlockId, Media, Priority, UnitId};
use nandscape_drive::breakdown::cause;
use nandscape_sim::account::Totals;
use nandscape_sim::credits::Credits;
use nandscape_sim::signal::Signal;
use nandscape_sim::workers::Workers;
use nandscape_sim::{Seed, Sim, Span};

pub use layout::Layout;
use notices::Notices;
pub use notices::{KEPT as NOTICES_KEPT, Notice};
pub use read::OpenChannelReader;
use reset::Erase;
pub use table::{Chunk, ChunkError, ChunkState, Resets};
pub use write::{Reservation, Ticket};
use write_back::{Landing, Landings};

/// The configuration of an open-channel drive.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct OpenChannelConfig {
    /// Units of an open chunk, up to its write pointer, that cannot be read yet (MW_CUNITS).
    pub mw_cunits: u32,
    /// Chunks that may be reset, in addition to closed ones.
    pub resets: Resets,
    /// Erases that the flash is rated for.
    pub rated_erases: u32,
    /// How far the wear index of a chunk may be from the average before the host is notified; 0 is never (WIT).
    pub wear_threshold: u8,
    /// Units of host data that the controller has room for.
    pub buffer_units: u32,
    /// The order in which planes and channels serve.
    pub priority: Priority,
    /// Firmware work on each block at a restart after a power cut.
    pub check_block: Span,
}

/// See the file.
pub struct OpenChannel {
    sim: Sim,
    media: Rc<Media>,
    config: OpenChannelConfig,
    layout: Layout,
    unit: UnitSize,
    chunks: RefCell<Vec<Chunk>>,
    counters: Cell<Stats>,
    /// Erases of all chunks.
    erased: Cell<u64>,
    notices: Notices,
    room: Credits,
    erases: Workers<Erase>,
    lands: Workers<Landing>,
    landings: Landings,
    /// Notified when no read is under way in a chunk any more.
    unpinned: Signal,
    /// Notified when a program or an erase has ended.
    progress: Signal,
}

impl OpenChannel {
    /// A new drive, erased.
    ///
    /// # Panics
    /// When addresses need more than 32 bits.
    pub fn new(sim: &Sim, media: Rc<Media>, config: OpenChannelConfig) -> Rc<OpenChannel> {
        let layout = Layout::new(media.geometry(), media.timing());
        assert!(layout.addresses() <= u64::from(u32::MAX), "addresses of more than 32 bits");
        let is_bad = |chunk| layout.blocks(chunk).any(|block| media.is_bad_at_start(block));
        let erases = |chunk| layout.blocks(chunk).map(|block| media.erases(block)).max().unwrap_or(0);
        let chunks: Vec<Chunk> = (0..layout.all_chunks())
            .map(|chunk| Chunk { erases: erases(chunk), ..Chunk::new(is_bad(chunk)) })
            .collect();
        // Counted by blocks of all planes, like chunks that go out of use in the run.
        let has_grown = |chunk: &u32| {
            let (mut grown, mut factory) = (layout.blocks(*chunk), layout.blocks(*chunk));
            grown.any(|block| media.is_grown_bad(block)) && !factory.any(|block| media.is_factory_bad(block))
        };
        let lost = (0..layout.all_chunks()).filter(has_grown).count() as u64 * u64::from(layout.planes);
        let erased = chunks.iter().map(|chunk| u64::from(chunk.erases)).sum();
        Rc::new_cyclic(|weak: &Weak<OpenChannel>| OpenChannel {
            sim: sim.clone(),
            unit: UnitSize::of_bytes(media.geometry().unit_size()),
            config,
            layout,
            chunks: RefCell::new(chunks),
            counters: Cell::new(Stats { retired_blocks: lost, ..Stats::default() }),
            erased: Cell::new(erased),
            notices: Notices::default(),
            room: Credits::new(sim, config.buffer_units as usize, cause::HOST_WRITE),
            erases: {
                let weak = weak.clone();
                Workers::new(sim, async move |job: &mut Erase| {
                    if let Some(ftl) = weak.upgrade() {
                        ftl.erase(job).await;
                    }
                })
            },
            lands: {
                let weak = weak.clone();
                Workers::new(sim, async move |landing: &mut Landing| {
                    if let Some(ftl) = weak.upgrade() {
                        ftl.land(landing).await;
                    }
                })
            },
            landings: Landings::default(),
            unpinned: Signal::new(sim),
            progress: Signal::new(sim),
            media,
        })
    }

    /// Its configuration.
    pub fn config(&self) -> &OpenChannelConfig {
        &self.config
    }

    /// The shape of the drive.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// A chunk.
    pub fn chunk(&self, chunk: u32) -> Chunk {
        self.chunks.borrow()[chunk as usize]
    }

    /// Where the unit of an address is.
    pub fn locate(&self, lpn: u32) -> Located {
        let geometry = self.media.geometry();
        let Some((chunk, unit)) = self.readable(lpn) else { return Located::default() };
        if unit >= self.chunk(chunk).programmed {
            return Located { is_buffered: true, ..Located::default() };
        }
        let (page, unit) = self.layout.page(geometry, chunk, unit);
        Located { flash: Some(geometry.unit_at(page, unit)), ..Located::default() }
    }

    /// Gives an unused drive fully written chunks, in no simulated time.
    pub fn plant(&self, _: Plant, _: Seed, progress: &mut dyn FnMut(f64)) -> PlantReport {
        let units = self.layout.chunk_units();
        self.plant_chunks(&|_| units, progress);
        PlantReport { overwritten: 0, waf: 1.0 }
    }

    /// Gives an unused drive written chunks, in no simulated time: `written` returns the written units of each chunk by
    /// number.
    ///
    /// # Panics
    /// If a count is no multiple of a strip, or more than a chunk has.
    pub fn plant_chunks(&self, written: &dyn Fn(u32) -> u32, progress: &mut dyn FnMut(f64)) {
        let (count, size, strip_units) =
            (self.layout.all_chunks(), self.layout.chunk_units(), self.layout.strip_units());
        for number in (0..count).filter(|number| self.chunk(*number).state == ChunkState::Free) {
            let (geometry, units) = (*self.media.geometry(), written(number));
            assert!(units <= size && units.is_multiple_of(strip_units), "chunk {number}: {units} units are no strips");
            if units == 0 {
                continue;
            }
            for strip in 0..units / strip_units {
                let first = self.layout.address(number, strip * self.layout.strip_units()) as u32;
                for (page, tag) in
                    self.layout.pages(&geometry, number, strip).zip((first..).step_by(self.layout.page_units as usize))
                {
                    self.media.plant_program(page, tag..tag + self.layout.page_units);
                }
            }
            let chunk = &mut self.chunks.borrow_mut()[number as usize];
            chunk.write(units, size);
            chunk.programmed(units);
            progress(f64::from(number + 1) / f64::from(count));
        }
    }
}

/// Data is written by [`OpenChannel::begin_write`], not by `accept`.
impl Ftl for OpenChannel {
    type RandomWrites = NoRandomWrites;
    type Reader<D: Destination> = OpenChannelReader<D>;

    fn sectors(&self) -> u64 {
        self.layout.addresses() * u64::from(self.unit.sectors())
    }

    fn unit(&self) -> UnitSize {
        self.unit
    }

    fn max_reserve(&self) -> u32 {
        self.config.buffer_units * self.unit.sectors()
    }

    fn prefetch(&self, _: u64) {}

    fn reader<D: Destination>(self: &Rc<Self>) -> OpenChannelReader<D> {
        OpenChannelReader::new(self)
    }

    /// The host counts the chunks that are out of use.
    fn spare_blocks(&self) -> (u64, u64) {
        (1, 1)
    }

    fn read_only(&self) -> Option<ReadOnly> {
        None
    }

    async fn restart(&self, _: bool) {
        self.start_again().await;
    }

    fn flush(&self) -> Option<Rc<Settling>> {
        self.flush_landings()
    }

    fn check(&self) -> Result<(), String> {
        self.check_all()
    }

    fn stats(&self) -> Stats {
        let chunks = self.chunks.borrow();
        let used = chunks.iter().filter(|chunk| chunk.state != ChunkState::Offline).map(|chunk| chunk.erases);
        let (low, high) = (used.clone().min().unwrap_or(0), used.clone().max().unwrap_or(0));
        let free = chunks.iter().filter(|chunk| chunk.state == ChunkState::Free).count() as u64;
        Stats {
            free_blocks: free * u64::from(self.layout.planes),
            spare_blocks: self.spare_blocks(),
            erases: (low, high, used.map(u64::from).sum::<u64>() * u64::from(self.layout.planes)),
            ..self.counters.get()
        }
    }

    #[inline(always)]
    fn random_writes(&self) -> Option<&NoRandomWrites> {
        None
    }

    fn inspection(&self) -> &dyn Inspection {
        self
    }

    fn offers(&self) -> Offers<'_, OpenChannel> {
        Offers::NONE
    }
}

impl Inspection for OpenChannel {
    fn block(&self, block: BlockId) -> BlockInfo {
        let chunk = self.chunk(self.layout.chunk_of(self.media.geometry(), block));
        let programmed = self.programmed_in(block);
        let state = match chunk.state {
            ChunkState::Offline => BlockState::Bad,
            ChunkState::Free => BlockState::Free,
            ChunkState::Open => BlockState::Open(Stream(0)),
            ChunkState::Closed => BlockState::Full,
        };
        let valid = chunk.programmed / self.layout.planes;
        BlockInfo { state, valid, allocated: programmed, programmed, erases: chunk.erases, sealed_at: 0 }
    }

    fn is_current(&self, unit: UnitId) -> bool {
        self.locate(self.media.tag(unit)).flash == Some(unit)
    }

    fn tables(&self) -> TableSummary {
        let chunks = self.chunks.borrow();
        let on_flash = chunks.iter().map(|chunk| u64::from(chunk.programmed)).sum();
        let in_buffer = chunks.iter().map(|chunk| u64::from(chunk.accepted - chunk.programmed)).sum();
        TableSummary { on_flash, in_buffer, ..TableSummary::default() }
    }

    fn memory(&self) -> Vec<(&'static str, u64)> {
        vec![("chunks", (self.chunks.borrow().len() * size_of::<Chunk>()) as u64)]
    }

    fn buffer_waits(&self) -> Totals {
        self.room.totals()
    }

    fn occupancy(&self) -> Occupancy {
        Occupancy::of(self.config.buffer_units, &self.room)
    }

    fn has_room_on_all_planes(&self) -> bool {
        true
    }
}
