//! The zone FTL: each zone is written from its start to its end into separate blocks, so that nothing is mapped unit by
//! unit and nothing is collected.
//!
//! | file | what |
//! |---|---|
//! | `table` | the state and the write pointer of each zone |
//! | `mapping` | the part of the drive over which a zone is spread |
//! | `layout` | where in its blocks a unit of a zone lies |
//! | `body` | the data of one zone, in the write buffer and in blocks |
//! | `blocks` | which blocks are erased, in a zone, to be erased, or bad |
//! | `state` | the parts above together |
//! | `write` | from the host into the buffer, and from the buffer to flash |
//! | `read` | reads |
//! | `manage` | reset, finish and the other actions of hosts on zones |
//! | `restart` | after a power cut |
//! | `plant` | planting of a full drive |
//! | `extension` | zone descriptor extensions |
//! | `zrwa` | zone random write areas |
//! | `saved` | the state at rest: saved and restored |
//! | `check` | the invariants |
//!
//! The table of zones and the write buffer survive a power cut, in memory with capacitors. A strip whose program fails is
//! programmed again in other blocks; a zone without blocks for it becomes read-only, and keeps its data.
//!
//! Left out: drives in files, moving data off worn blocks, a write buffer that loses its data.

mod blocks;
mod body;
mod check;
mod extension;
mod layout;
mod manage;
pub mod mapping;
mod plant;
mod read;
mod restart;
mod saved;
mod state;
pub mod table;
mod write;
mod zrwa;

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use nandscape_device_ftl_core::Inspection;
use nandscape_device_ftl_core::address::UnitSize;
use nandscape_device_ftl_core::component::{BlockInfo, BlockState, Stream};
use nandscape_device_ftl_core::ftl::{Destination, Ftl, Located, Occupancy, ReadOnly, Settling, Stats, TableSummary};
use nandscape_device_ftl_core::offers::{NoRandomWrites, Offers};
use nandscape_device_media::erase::ErasedTogether;
use nandscape_device_media::{BlockId, Media, Priority, UnitId};
use nandscape_drive::breakdown::cause;
use nandscape_sim::account::Totals;
use nandscape_sim::credits::Credits;
use nandscape_sim::signal::Signal;
use nandscape_sim::workers::Workers;
use nandscape_sim::{Sim, Span};

use blocks::{Blocks, Use};
use body::{Body, Found};
pub use layout::Layout;
pub use manage::ZoneWork;
use manage::{Padding, Reset};
use mapping::ZoneMapping;
pub use read::ZoneReader;
use state::State;
use table::{Zone, ZoneTable};
use write::Program;
pub use write::{Reservation, Ticket};
pub use zrwa::Zrwa;

/// The configuration of a zone FTL.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ZoneConfig {
    /// Zones.
    pub zones: u32,
    /// Units from the start of a zone to the start of the next.
    pub size: u32,
    /// Blocks of each plane of a zone.
    pub depth: u32,
    /// Zones that may be active at a time.
    pub max_active: u32,
    /// Zones that may be open at a time.
    pub max_open: u32,
    /// Random write areas.
    pub zrwa: Zrwa,
    /// Bytes of a zone descriptor extension, a multiple of 64; 0 without extensions.
    pub extension: u32,
    /// Units of the write buffer.
    pub buffer_units: u32,
    /// The order in which planes and channels serve.
    pub priority: Priority,
    /// Firmware work of a Write and of a Zone Append. One processor does it for all zones, a command at a time.
    pub write: Span,
    /// See [`ZoneConfig::write`].
    pub append: Span,
    /// Firmware work of a reset, and on each unit that was written in the zone.
    pub reset: (Span, Span),
    /// Whether Finish writes the zone to its end. Otherwise it only completes the strip that is begun.
    pub finish_pads: bool,
    /// Firmware work on each block at a restart after a power cut.
    pub check_block: Span,
}

/// See the file.
pub struct ZoneFtl {
    sim: Sim,
    media: Rc<Media>,
    config: ZoneConfig,
    layout: Layout,
    unit: UnitSize,
    state: RefCell<State>,
    room: Credits,
    programs: Workers<Program>,
    erases: Workers<ErasedTogether>,
    resets: Workers<Reset>,
    paddings: Workers<Padding>,
    /// Notified when no read or program is under way in a block any more.
    unpinned: Signal,
    /// Notified when a program or an erase has ended.
    progress: Signal,
    /// Notified of zones that the drive itself has changed.
    on_change: RefCell<Box<dyn Fn(u32)>>,
    /// The number of power cuts at the last restart.
    restarted_after: Cell<u32>,
}

impl ZoneFtl {
    /// A new drive, erased, whose zones `mapping` spreads.
    ///
    /// # Panics
    /// If the flash is too small for the zones, or a zone for its capacity.
    pub fn new(sim: &Sim, media: Rc<Media>, config: ZoneConfig, mapping: &dyn ZoneMapping) -> Rc<ZoneFtl> {
        let geometry = *media.geometry();
        let layout = Layout::new(&geometry, media.timing(), mapping, config.depth);
        let needed = config.zones.div_ceil(layout.sets()) * config.depth;
        let blocks = Blocks::new(&media, needed);
        assert!(layout.zone_units() <= u64::from(config.size), "the capacity of a zone is within its size");
        let table =
            ZoneTable::new(config.zones, layout.zone_units() as u32, (config.max_active, config.max_open), config.zrwa);
        let state = State {
            geometry,
            layout: layout.clone(),
            table,
            bodies: (0..config.zones).map(|_| Body::new(&layout)).collect(),
            blocks,
            needy: Default::default(),
            counters: Stats::default(),
        };
        Rc::new_cyclic(|weak: &Weak<ZoneFtl>| ZoneFtl {
            sim: sim.clone(),
            unit: UnitSize::of_bytes(geometry.unit_size()),
            config,
            layout,
            state: RefCell::new(state),
            room: Credits::new(sim, config.buffer_units as usize, cause::HOST_WRITE),
            programs: workers(sim, weak, async |ftl: &ZoneFtl, job: &Program| ftl.program(job).await),
            erases: workers(sim, weak, async |ftl: &ZoneFtl, blocks: &ErasedTogether| ftl.erase(blocks).await),
            resets: workers(sim, weak, async |ftl: &ZoneFtl, job: &Reset| ftl.reset_blocks(job).await),
            paddings: workers(sim, weak, async |ftl: &ZoneFtl, job: &Padding| ftl.pad(job).await),
            unpinned: Signal::new(sim),
            progress: Signal::new(sim),
            on_change: RefCell::new(Box::new(|_| ())),
            restarted_after: Cell::new(media.power_cuts()),
            media,
        })
    }

    /// Its configuration.
    pub fn config(&self) -> &ZoneConfig {
        &self.config
    }

    /// Units that a zone takes.
    pub fn capacity(&self) -> u32 {
        self.layout.zone_units() as u32
    }

    /// A zone.
    pub fn zone(&self, zone: u32) -> Zone {
        *self.state.borrow().table.zone(zone)
    }

    /// Active zones, and open ones.
    pub fn zones_in_use(&self) -> (u32, u32) {
        self.state.borrow().table.counts()
    }

    /// Whether the flash has power.
    pub(crate) fn media_is_powered(&self) -> bool {
        self.is_running()
    }

    /// Power cuts so far.
    pub(crate) fn power_cuts(&self) -> u32 {
        self.media.power_cuts()
    }

    /// Bytes of a unit.
    pub(crate) fn unit_bytes(&self) -> u32 {
        self.unit.bytes()
    }

    /// The size of a unit.
    pub(crate) fn unit_size(&self) -> UnitSize {
        self.unit
    }

    /// Whether data that is written is kept.
    pub(crate) fn keeps_data(&self) -> bool {
        self.media.keeps_data()
    }

    /// Units that an internal process of the drive writes at a time.
    pub(crate) fn max_move(&self) -> u32 {
        (self.config.buffer_units / 8).clamp(1, self.layout.strip_units() * self.layout.columns())
    }

    /// Where a logical unit is.
    pub fn locate(&self, lpn: u32) -> Located {
        let state = self.state.borrow();
        let (zone, unit) = (lpn / self.config.size, lpn % self.config.size);
        match state.find(zone, unit) {
            Found::Nowhere => Located::default(),
            Found::Buffered(_) => Located { is_buffered: true, ..Located::default() },
            Found::Flash(page, unit) => {
                Located { flash: Some(state.geometry.unit_at(page, unit)), ..Located::default() }
            }
        }
    }

    /// Calls `changed` with the zone whenever the drive itself has changed a zone: when it becomes read-only.
    pub fn on_change(&self, changed: Box<dyn Fn(u32)>) {
        *self.on_change.borrow_mut() = changed;
    }

    /// Whether operations of the flash may be started.
    fn is_running(&self) -> bool {
        self.media.is_powered() && self.restarted_after.get() == self.media.power_cuts()
    }
}

/// Workers that do not keep the FTL alive.
fn workers<J: 'static>(sim: &Sim, ftl: &Weak<ZoneFtl>, work: impl AsyncFn(&ZoneFtl, &J) + 'static) -> Workers<J> {
    let ftl = ftl.clone();
    Workers::new(sim, async move |job: &mut J| {
        if let Some(ftl) = ftl.upgrade() {
            work(&ftl, job).await;
        }
    })
}

/// Data is written by [`ZoneFtl::begin_write`], not by `accept`: the zone FTL has no random writes.
impl Ftl for ZoneFtl {
    type RandomWrites = NoRandomWrites;
    type Reader<D: Destination> = ZoneReader<D>;

    fn sectors(&self) -> u64 {
        u64::from(self.config.zones) * u64::from(self.config.size) * u64::from(self.unit.sectors())
    }

    fn unit(&self) -> UnitSize {
        self.unit
    }

    /// The room that a write always finds, whatever else is in progress: an active zone may keep an incomplete strip in the
    /// buffer, and a random write area all of its data.
    fn max_reserve(&self) -> u32 {
        let Zrwa { size, zones, .. } = self.config.zrwa;
        let kept = self.config.max_active * (self.layout.strip_units() - 1) + zones * size;
        (self.config.buffer_units - kept.min(self.config.buffer_units - 1)) * self.unit.sectors()
    }

    fn prefetch(&self, _: u64) {}

    fn reader<D: Destination>(self: &Rc<Self>) -> ZoneReader<D> {
        ZoneReader::new(self)
    }

    fn spare_blocks(&self) -> (u64, u64) {
        self.state.borrow().blocks.spare()
    }

    fn read_only(&self) -> Option<ReadOnly> {
        None
    }

    async fn restart(&self, keeps_buffer: bool) {
        assert!(keeps_buffer, "the write buffer of a zone FTL has capacitors");
        self.start_again().await;
    }

    /// The write buffer survives a power cut, so a flush returns at once.
    fn flush(&self) -> Option<Rc<Settling>> {
        None
    }

    fn check(&self) -> Result<(), String> {
        self.state.borrow().check(&self.config, &self.media)
    }

    fn stats(&self) -> Stats {
        let state = self.state.borrow();
        Stats {
            retired_blocks: state.blocks.retired,
            free_blocks: state.blocks.free(),
            spare_blocks: state.blocks.spare(),
            erases: state.blocks.erases(),
            ..state.counters
        }
    }

    #[inline(always)]
    fn random_writes(&self) -> Option<&NoRandomWrites> {
        None
    }

    fn inspection(&self) -> &dyn Inspection {
        self
    }

    fn offers(&self) -> Offers<'_, ZoneFtl> {
        Offers::NONE
    }
}

impl Inspection for ZoneFtl {
    fn block(&self, block: BlockId) -> BlockInfo {
        let (state, programmed) = (self.state.borrow(), self.media.pages_programmed(block));
        let of_block = state.blocks.get(block);
        let state = match of_block.used {
            Use::Free => BlockState::Free,
            Use::Bad => BlockState::Bad,
            Use::InZone | Use::Stale if programmed == self.media.geometry().pages_per_block() => BlockState::Full,
            Use::InZone | Use::Stale => BlockState::Open(Stream(0)),
        };
        let valid = if of_block.used == Use::InZone { programmed * self.media.geometry().units_per_page() } else { 0 };
        BlockInfo { state, valid, allocated: programmed, programmed, erases: of_block.erases, sealed_at: 0 }
    }

    fn is_current(&self, unit: UnitId) -> bool {
        let tag = self.media.tag(unit);
        tag != write::NO_LPN && tag / self.config.size < self.config.zones && self.locate(tag).flash == Some(unit)
    }

    fn tables(&self) -> TableSummary {
        self.state.borrow().summary()
    }

    /// Zones become read-only one by one.
    fn has_room_on_all_planes(&self) -> bool {
        self.state.borrow().blocks.has_room_on_all_planes()
    }

    fn memory(&self) -> Vec<(&'static str, u64)> {
        let state = self.state.borrow();
        let zones = size_of::<Zone>() + size_of::<Body>();
        let columns = size_of::<body::Column>() * self.layout.columns() as usize;
        vec![
            ("zones", (state.bodies.len() * (zones + columns)) as u64),
            ("blocks", u64::from(state.geometry.blocks()) * size_of::<blocks::Block>() as u64),
        ]
    }

    fn buffer_waits(&self) -> Totals {
        self.room.totals()
    }

    fn occupancy(&self) -> Occupancy {
        Occupancy::of(self.config.buffer_units, &self.room)
    }
}
