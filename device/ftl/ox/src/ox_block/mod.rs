//! OX-Block: the generic FTL of OX (004 ch. 6), assembled from the components of OX-App. It keeps its tables in flash, with a log
//! and checkpoints, and recovers them after a power cut at any instant. [`registry`](crate::registry) makes the components by
//! name; the built-in ones are these:
//!
//! | component | what | where |
//! |---|---|---|
//! | P1-BAD | table of bad blocks by channel, at a fixed place | `BadBlockTable`, `fixed`, `release` |
//! | P2-BLK | table of blocks, in pages | `ChunkTable` |
//! | P3-PRO | lines over planes and channels, by stream | `Lines`, `streams` |
//! | P4-MPE | where the fragments of the map are, in two levels | `FragmentTable` |
//! | P5-MAP | fragments in memory | `PagedMap`, `map_pages` |
//! | P6-LOG | log of 64-byte records in chained pages | `LogBuffer`, `log_pages` |
//! | P7-REC | checkpoints and recovery | `KeyedEntries`, `checkpoint`, `recovery` |
//! | P8-GC | by channel | `ByMerit`, `ChannelTable`, `collect` |
//! | P9-WCA | write cache | `Eager`, `cache`, `write`, `pump`, `fill`, `current` |
//!
//! | file | what |
//! |---|---|
//! | `config` | the configuration |
//! | `core` | the state from a start to the next power cut |
//! | `state` | the tables together: synchronous changes of several of them |
//! | `chores` | background work next to the host's commands |
//! | `program` | programs of pages, of all streams |
//! | `recycle` | a block that P8 recycles |
//! | `pages` | pages of tables and logs |
//! | `read` | reads |
//! | `age` | checkpoints by age |
//! | `held` | fragments of the map that are pinned for reads at one instant |
//! | `uncommitted` | transactions that reads do not see yet |
//! | `deallocate` | deallocation and Write Uncorrectable |
//! | `room` | detection that no room will become free |
//! | `rest` | the check that no command waits in vain |
//! | `restart` | after a power cut |
//! | `durable` | the state of a file-backed drive outside of flash |
//! | `lines` | other layouts: tables that are rebuilt from the data |
//! | `plant` | planting a state of use |
//! | `memory` | the memory of each component |
//! | `sizes` | sizes that follow from a geometry |
//! | `summary` | a summary for inspection |
//! | `look` | the contents of its flash, for inspection |
//! | `check` | the invariants |
//! | `offers` | transactions, and tables in flash |
//! | `mistakes` | deliberate mistakes, which tests must notice |
//!
//! Left out: wear levelling beyond writing the free block erased least often; multi-plane and word-line programs.

mod age;
mod cache;
mod check;
mod checkpoint;
mod chores;
mod collect;
mod config;
mod core;
mod current;
mod deallocate;
mod durable;
mod fill;
mod fixed;
mod held;
mod lines;
mod log_pages;
mod look;
mod map_pages;
mod memory;
mod mistakes;
mod offers;
mod pages;
mod plant;
mod program;
mod pump;
mod read;
mod recovery;
mod recycle;
mod release;
mod rest;
mod restart;
mod room;
mod sizes;
mod state;
mod streams;
mod summary;
#[cfg(test)]
mod tests;
mod uncommitted;
mod write;

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::{Rc, Weak};

use nandscape_device_ftl_core::Inspection;
use nandscape_device_ftl_core::address::{Extent, UnitSize};
use nandscape_device_ftl_core::component::{BlockInfo, BlockMetadata};
use nandscape_device_ftl_core::ftl::{Destination, Ftl, Milestone, Occupancy, ReadOnly, Settling, Stats, TableSummary};
use nandscape_device_ftl_core::offers::{Offers, RandomWrites, Transactions};
use nandscape_device_media::{BlockId, Media, MediaError, UnitId};
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, HostMem};
use nandscape_sim::account::Totals;
use nandscape_sim::credits::Credits;
use nandscape_sim::signal::Signal;
use nandscape_sim::workers::Workers;
use nandscape_sim::{Resource, Sim, Wait};

use self::cache::WriteCache;
use self::chores::Chore;
use self::core::{Core, Phase, Shared};
use self::durable::KeptCache;
use self::restart::Kept;

pub use config::{CheckpointConfig, OxBlockConfig, OxGcConfig, reserve_per_plane};
pub use lines::{HostLimit, Layout, LineLayout, list_pages};
pub use look::{ShownLogPage, content, log_pages};
pub use read::OxReader;
pub use recovery::Recovered;
pub use sizes::Sizes;
pub use summary::OxSummary;
pub use write::Reservation;

/// See the module.
pub struct OxBlock {
    sim: Sim,
    media: Rc<Media>,
    config: OxBlockConfig,
    unit: UnitSize,
    shared: Rc<Shared>,
    core: RefCell<Rc<Core>>,
    /// The memory that survived a power cut, until recovery has taken it over.
    kept: RefCell<Option<Kept>>,
    /// Deallocations between a power cut and the end of recovery.
    postponed: RefCell<Vec<Extent>>,
    /// Firmware that deallocates, a step at a time.
    deallocating: Resource,
    /// Wakes processes after a power cut.
    _cut: Rc<Workers<()>>,
}

impl OxBlock {
    /// An FTL over flash. It is in service when it has formatted the flash, or has recovered its content.
    ///
    /// # Panics
    /// If [`OxBlockConfig::check`] rejects the geometry.
    pub fn new(sim: &Sim, media: Rc<Media>, config: OxBlockConfig) -> Rc<OxBlock> {
        OxBlock::open(sim, media, config).expect("only files can be damaged")
    }

    /// The same over flash that may be in a file, which keeps write cache and counters too.
    ///
    /// # Errors
    /// When the file cannot be read, or is damaged.
    ///
    /// # Panics
    /// As [`OxBlock::new`].
    pub fn open(sim: &Sim, media: Rc<Media>, config: OxBlockConfig) -> io::Result<Rc<OxBlock>> {
        config.check(media.geometry()).expect("the configuration was checked");
        let kept_cache = KeptCache::of(&media, &config);
        let Kept { cache, records, counters } = durable::recall(&media, &config, kept_cache.as_ref())?;
        let shared = Rc::new(Shared {
            free_slots: Credits::new(sim, config.buffer_units as usize, cause::HOST_WRITE),
            ready: Signal::new(sim),
            read_only: Cell::new(None),
            kept_cache,
            gc: Cell::new(config.gc),
            checkpoint: Cell::new(config.checkpoint),
        });
        let used = cache.as_ref().map_or(0, WriteCache::used);
        assert!(shared.free_slots.try_take(used as usize), "the cache has as many slots as before");
        let core = Core::new(sim, &media, config, &shared);
        core.state.borrow_mut().counters = counters;
        (*core.kept_cache.borrow_mut(), *core.kept_records.borrow_mut()) = (cache, records);
        core.chores.start(Chore::Start);
        Ok(Rc::new_cyclic(|weak: &Weak<OxBlock>| OxBlock {
            _cut: OxBlock::told_of_cuts(sim, &media, weak),
            sim: sim.clone(),
            unit: UnitSize::of_bytes(media.geometry().unit_size()),
            media,
            config,
            shared,
            core: RefCell::new(core),
            kept: RefCell::new(None),
            postponed: RefCell::default(),
            deallocating: Resource::new(sim),
        }))
    }

    /// Wakes processes at a power cut, so that commands that wait for them end.
    fn told_of_cuts(sim: &Sim, media: &Media, weak: &Weak<OxBlock>) -> Rc<Workers<()>> {
        let ftl = weak.clone();
        let workers = Rc::new(Workers::new(sim, async move |(): &mut ()| {
            if let Some(ftl) = ftl.upgrade() {
                ftl.core().wake_all();
            }
        }));
        let told = Rc::downgrade(&workers);
        media.on_power_cut(move || told.upgrade().into_iter().for_each(|workers| workers.start(())));
        workers
    }

    /// The flash below.
    pub fn media(&self) -> &Rc<Media> {
        &self.media
    }

    /// Changes the settings of garbage collection and checkpoints. Collections in progress end as they began.
    pub fn change(&self, gc: OxGcConfig, checkpoint: CheckpointConfig) {
        self.shared.gc.set(gc);
        self.shared.checkpoint.set(checkpoint);
        let core = self.core();
        core.state.borrow_mut().renewed = true;
        core.watch_age_anew();
        core.pump();
    }

    /// The records that the last start has replayed.
    pub fn recovered(&self) -> Recovered {
        self.core().recovered.get()
    }

    /// Checkpoints since the last start, including the one that ended it.
    pub fn checkpoints(&self) -> u64 {
        self.core().state.borrow().checkpoints
    }

    /// Takes a checkpoint, and waits for it: a clean shutdown, after which recovery has nothing to replay.
    pub async fn checkpoint(&self) {
        let core = self.core();
        if self.config.layout != Layout::Log {
            return;
        }
        let done = self.checkpoints();
        while core.is_writing() && self.checkpoints() == done {
            core.request_checkpoint();
            core.checkpointed.changed().await;
        }
    }

    /// Writes the state that a drive in a file keeps outside of flash, so that opening the file need not scan all of
    /// it. Nothing may be under way.
    ///
    /// # Errors
    /// [`MediaError::Store`].
    pub fn save(&self) -> Result<(), MediaError> {
        let core = self.core();
        if core.is_running() { core.save() } else { Ok(()) }
    }

    /// Whether the tables could not be read when the drive was started.
    pub fn has_failed(&self) -> bool {
        self.core().phase.get() == Phase::Failed
    }

    /// Waits until the drive is in service, or will never be.
    pub async fn in_service(&self) {
        loop {
            let core = self.core();
            if core.phase.get() != Phase::Starting || !core.is_alive() {
                return;
            }
            drop(core);
            self.shared.ready.changed().await;
        }
    }

    fn core(&self) -> Rc<Core> {
        self.core.borrow().clone()
    }
}

impl Ftl for OxBlock {
    type RandomWrites = OxBlock;
    type Reader<D: Destination> = OxReader<D>;

    fn sectors(&self) -> u64 {
        u64::from(self.config.logical_units) * u64::from(self.unit.sectors())
    }

    fn unit(&self) -> UnitSize {
        self.unit
    }

    fn max_reserve(&self) -> u32 {
        let slots = self.config.buffer_units;
        let page = self.media.geometry().units_per_page();
        // With more, a page would be padded while a write waits for room. A transaction is not divided before it must be.
        let units = if self.config.transactions { slots } else { (slots + 1).saturating_sub(page).max(2) };
        // An extent that is not aligned touches one unit more than it has.
        (units - 1) * self.unit.sectors()
    }

    fn prefetch(&self, _: u64) {}

    fn reader<D: Destination>(self: &Rc<Self>) -> OxReader<D> {
        OxReader::new(self)
    }

    fn spare_blocks(&self) -> (u64, u64) {
        self.core().state.borrow().spare()
    }

    fn read_only(&self) -> Option<ReadOnly> {
        self.shared.read_only.get()
    }

    async fn restart(&self, keeps_buffer: bool) {
        restart::restart(self, keeps_buffer).await;
    }

    fn flush(&self) -> Option<Rc<Settling>> {
        write::flush(self)
    }

    fn check(&self) -> Result<(), String> {
        let core = self.core();
        if !core.is_running() {
            return Ok(());
        }
        let state = core.state.borrow();
        state.check(&self.media).and_then(|()| state.check_uncommitted())
    }

    fn stats(&self) -> Stats {
        self.core().state.borrow().stats()
    }

    #[inline(always)]
    fn random_writes(&self) -> Option<&OxBlock> {
        Some(self)
    }

    fn inspection(&self) -> &dyn Inspection {
        self
    }

    #[inline]
    fn offers(&self) -> Offers<'_, OxBlock> {
        // Transactions need the records of a log.
        let transactions: Option<&dyn Transactions<OxBlock>> = match self.config.layout {
            Layout::Log => Some(self),
            _ => None,
        };
        Offers { transactions, stored_tables: Some(self), ..Offers::NONE }
    }
}

impl RandomWrites for OxBlock {
    type Reservation<'a> = Reservation<'a>;

    async fn reserve(&self, extent: Extent, waited: &mut Wait) -> Reservation<'_> {
        write::reserve(self, extent.units(self.unit), waited).await
    }

    fn accept(
        &self,
        extent: Extent,
        data: Option<&HostMem>,
        reservation: Reservation<'_>,
        watch: Option<Milestone>,
    ) -> Option<Rc<Settling>> {
        write::accept(self, &[extent], data, reservation, watch, self.config.transactions)
    }

    async fn deallocate(&self, extent: Extent, breakdown: &mut Breakdown) -> Result<(), MediaError> {
        deallocate::deallocate(self, extent, breakdown).await
    }

    async fn spoil(&self, extent: Extent, breakdown: &mut Breakdown) {
        deallocate::spoil(self, extent, breakdown).await;
    }
}

impl Inspection for OxBlock {
    fn block(&self, block: BlockId) -> BlockInfo {
        *self.core().state.borrow().chunks.get(block)
    }

    fn is_current(&self, unit: UnitId) -> bool {
        self.core().state.borrow().chunks.is_valid(unit)
    }

    fn tables(&self) -> TableSummary {
        self.count_tables()
    }

    fn memory(&self) -> Vec<(&'static str, u64)> {
        self.memory_by_component()
    }

    fn buffer_waits(&self) -> Totals {
        self.shared.free_slots.totals()
    }

    fn occupancy(&self) -> Occupancy {
        Occupancy::of(self.config.buffer_units, &self.shared.free_slots)
    }

    fn has_room_on_all_planes(&self) -> bool {
        true
    }
}
