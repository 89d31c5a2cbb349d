//! The FTL for LSM-trees, the thesis' next step (004 7.6, 8.3): its units are sorted runs, which are written in order, never changed, and
//! dropped as a whole. It is assembled from the zone FTL, which has blocks, write buffer, programs and erases, and these parts:
//!
//! | file | what |
//! |---|---|
//! | `table` | the runs, the places of their pieces, and the live data of each zone |
//! | `open` | a run begins |
//! | `append` | data at the end of a run |
//! | `commit` | edits of runs, at one instant |
//! | `read` | reads of runs |
//! | `collect` | zones whose data is dead are erased, and live data moves out of others when room is short |
//! | `saved` | the state at rest: saved and restored |
//! | `check` | the invariants |
//!
//! **Placement.** A run is written into separate zones: whole erase blocks, in which nothing else dies. The rest of its
//! last zone goes to the next run of the same level (`share`). A zone then holds successive runs of one level, which
//! die in succession.
//!
//! **When flash fails.** The zone FTL handles failed programs and erases: it takes other blocks. A zone without enough
//! blocks takes no more data, and its run continues in another zone. When its data is dead, its blocks go to other
//! zones, and the zone is used again when blocks are free for it. A page that cannot be read when it has to be moved is
//! lost, and reads of it fail. A page that does not answer stays where it is.
//!
//! **What survives a power cut.** The table of runs is in memory with capacitors, as are the table of zones and the write buffer of the
//! zone FTL. So an edit is durable when it is made.
//!
//! Left out: drives in files, planted drives, wear levelling beyond taking the block erased least often.

mod append;
mod check;
mod collect;
mod commit;
mod open;
mod read;
mod saved;
mod table;
#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use nandscape_device_ftl_core::address::UnitSize;
use nandscape_device_ftl_core::component::BlockInfo;
use nandscape_device_ftl_core::ftl::{Destination, Ftl, Located, Occupancy, ReadOnly, Settling, Stats, TableSummary};
use nandscape_device_ftl_core::offers::{NoRandomWrites, Offers};
use nandscape_device_ftl_core::{Inspection, Plant, PlantReport};
use nandscape_device_media::{BlockId, Media, UnitId};
use nandscape_sim::account::Totals;
use nandscape_sim::signal::Signal;
use nandscape_sim::workers::Workers;
use nandscape_sim::{Seed, Sim};

use crate::zone::mapping::ZoneMapping;
use crate::zone::{ZoneConfig, ZoneFtl};
pub use append::Append;
pub use read::LsmReader;
pub use table::{Edit, RunError, RunInfo, RunState};
use table::{Place, Table};

/// Levels of runs.
pub const LEVELS: usize = 16;

/// Its configuration.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct LsmConfig {
    /// The zones below.
    pub zones: ZoneConfig,
    /// Places for runs.
    pub runs: u32,
    /// Maximum of units in a run.
    pub most: u32,
    /// Units from one place to the next, a power of two.
    pub span: u32,
    /// Whether a run begins in the zone in which the last run of its level ended.
    pub share: bool,
    /// Empty zones below which live data is moved. Half of them are for that alone.
    pub reserve: u32,
}

/// See the file.
pub struct LsmFtl {
    sim: Sim,
    zones: Rc<ZoneFtl>,
    config: LsmConfig,
    table: RefCell<Table>,
    /// Notified when zones were emptied, or appends have ended.
    changed: Signal,
    collections: Workers<()>,
    is_collecting: Cell<bool>,
    /// Collections that have emptied no zone.
    vain: Cell<u64>,
    lost_units: Cell<u64>,
    moved_units: Cell<u64>,
    gc_zones: Cell<u64>,
}

impl LsmFtl {
    /// A new drive, erased, whose zones `mapping` spreads.
    ///
    /// # Panics
    /// As [`ZoneFtl::new`].
    pub fn new(sim: &Sim, media: Rc<Media>, config: LsmConfig, mapping: &dyn ZoneMapping) -> Rc<LsmFtl> {
        let zones = ZoneFtl::new(sim, media, config.zones, mapping);
        Rc::new_cyclic(|weak: &Weak<LsmFtl>| {
            let ftl = weak.clone();
            let collect = async move |(): &mut ()| {
                if let Some(ftl) = ftl.upgrade() {
                    ftl.collect().await;
                }
            };
            LsmFtl {
                sim: sim.clone(),
                table: RefCell::new(Table::new(config.runs, config.zones.zones)),
                zones,
                config,
                changed: Signal::new(sim),
                collections: Workers::new(sim, collect),
                is_collecting: Cell::new(false),
                vain: Cell::new(0),
                lost_units: Cell::new(0),
                moved_units: Cell::new(0),
                gc_zones: Cell::new(0),
            }
        })
    }

    /// Its configuration.
    pub fn config(&self) -> &LsmConfig {
        &self.config
    }

    /// Units of a zone, and those that all runs may have together: fewer when many blocks have gone bad.
    pub fn capacity(&self) -> (u32, u64) {
        let (zone, usable) = (self.zones.capacity(), self.zones.zones_at_most());
        (zone, u64::from(usable.saturating_sub(self.config.reserve)) * u64::from(zone))
    }

    /// The runs from a place on.
    pub fn runs(&self, from: u32) -> Vec<RunInfo> {
        self.table.borrow().infos(from)
    }

    /// Runs and zones in words, for tests that fail.
    #[cfg(test)]
    fn told(&self) -> String {
        let (table, (active, open)) = (self.table.borrow(), self.zones.zones_in_use());
        let runs = table.runs.iter().flatten().filter(|run| run.is_busy);
        let busy: Vec<_> = runs.map(|run| (run.level, run.units, &run.zones)).collect();
        let held: Vec<_> = table
            .zones
            .iter()
            .zip(0..)
            .map(|(of, zone)| (zone, of.used, of.live, self.zones.zone(zone).state, self.left(zone)))
            .collect();
        let (empty, begun) = (&table.empty, &table.begun);
        format!(
            "{active} active, {open} open, collecting {}, busy {busy:?}, empty {empty:?}, begun {begun:?}, zones {held:?}",
            self.is_collecting.get()
        )
    }

    /// The run of a logical unit, and the unit's number in it.
    pub fn place_of(&self, lpn: u32) -> (u32, u32) {
        (lpn / self.config.span, lpn % self.config.span)
    }

    /// Where a logical unit is.
    pub fn locate(&self, lpn: u32) -> Located {
        match self.find(lpn) {
            Some(Place::Zone(zone, unit)) => self.zones.locate(zone * self.config.zones.size + unit),
            _ => Located::default(),
        }
    }

    /// No state of use is planted: a drive without runs stays without.
    pub fn plant(&self, _: Plant, _: Seed, progress: &mut dyn FnMut(f64)) -> PlantReport {
        progress(1.0);
        PlantReport { overwritten: 0, waf: 1.0 }
    }
}

/// Data is written by [`LsmFtl::append`], not by `accept`: random writes are not possible.
impl Ftl for LsmFtl {
    type RandomWrites = NoRandomWrites;
    type Reader<D: Destination> = LsmReader<D>;

    fn sectors(&self) -> u64 {
        u64::from(self.config.runs) * u64::from(self.config.span) * u64::from(self.unit().sectors())
    }

    fn unit(&self) -> UnitSize {
        self.zones.unit()
    }

    fn max_reserve(&self) -> u32 {
        self.zones.max_reserve()
    }

    fn prefetch(&self, _: u64) {}

    fn reader<D: Destination>(self: &Rc<Self>) -> LsmReader<D> {
        LsmReader::new(self)
    }

    fn spare_blocks(&self) -> (u64, u64) {
        self.zones.spare_blocks()
    }

    fn read_only(&self) -> Option<ReadOnly> {
        None
    }

    async fn restart(&self, keeps_buffer: bool) {
        self.zones.restart(keeps_buffer).await;
        self.table.borrow_mut().end_appends();
        self.tidy();
    }

    /// The write buffer survives a power cut, so a flush returns at once.
    fn flush(&self) -> Option<Rc<Settling>> {
        None
    }

    fn check(&self) -> Result<(), String> {
        self.zones.check()?;
        self.table.borrow().check(&self.zones)
    }

    /// The counters of the zones, except moves, which are not host writes.
    fn stats(&self) -> Stats {
        let (stats, moved) = (self.zones.stats(), self.moved_units.get());
        let on_flash = moved.min(stats.host_units);
        Stats {
            host_bytes: stats.host_bytes - moved * u64::from(self.unit().bytes()),
            host_units: stats.host_units - on_flash,
            gc_units: on_flash,
            gc_blocks: self.gc_zones.get(),
            lost_units: self.lost_units.get(),
            ..stats
        }
    }

    #[inline(always)]
    fn random_writes(&self) -> Option<&NoRandomWrites> {
        None
    }

    fn inspection(&self) -> &dyn Inspection {
        self
    }

    fn offers(&self) -> Offers<'_, LsmFtl> {
        Offers::NONE
    }
}

impl Inspection for LsmFtl {
    fn block(&self, block: BlockId) -> BlockInfo {
        self.zones.block(block)
    }

    /// Dead data of a zone that was not erased yet counts as well.
    fn is_current(&self, unit: UnitId) -> bool {
        self.zones.is_current(unit)
    }

    fn tables(&self) -> TableSummary {
        self.zones.tables()
    }

    fn has_room_on_all_planes(&self) -> bool {
        self.zones.has_room_on_all_planes()
    }

    fn memory(&self) -> Vec<(&'static str, u64)> {
        let mut memory = self.zones.memory();
        memory.push(("runs", self.table.borrow().memory()));
        memory
    }

    fn buffer_waits(&self) -> Totals {
        self.zones.buffer_waits()
    }

    fn occupancy(&self) -> Occupancy {
        self.zones.occupancy()
    }
}
