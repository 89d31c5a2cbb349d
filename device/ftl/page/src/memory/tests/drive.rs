//! A small drive in a file in memory, with garbage to collect and snapshots to write, and commands to it.

use std::rc::Rc;
use std::sync::Arc;

use nandscape_device_ftl_core::ftl::{Inside, Milestone};
use nandscape_device_ftl_core::policy::{All, GcScheme, Greedy, OwnerSource, StripeOrder, Striped};
use nandscape_device_ftl_core::{Extent, FirmwareTimes, Ftl, RandomWrites, Reader, Unreadable};
use nandscape_device_media::durable::{MemoryFile, StoreFile, StoreSpec};
use nandscape_device_media::{Media, Priority};
use nandscape_device_rig::TestFlash;
use nandscape_drive::{Breakdown, HostMem};
use nandscape_sim::{Sim, Wait};

use super::model::Content;
use crate::{GcConfig, PageFtl, PageFtlConfig, PageReader, Policies, WearConfig};

/// Sectors of a unit.
pub(super) const UNIT_SECTORS: u32 = 8;
const UNITS: u32 = 400;
/// Sectors of the drive.
pub(super) const SECTORS: u32 = UNITS * UNIT_SECTORS;
const SLOTS: u32 = 16;
const SECTOR: usize = 512;

/// The promise of the write buffer.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    /// The buffer survives a power loss.
    Capacitor,
    /// A power loss empties the buffer.
    Volatile,
    /// A write ends when it is on flash.
    Through,
}

impl Mode {
    pub(super) const ALL: [Mode; 3] = [Mode::Capacitor, Mode::Volatile, Mode::Through];

    /// Whether acknowledged data is durable.
    pub(super) fn is_durable(self) -> bool {
        self != Mode::Volatile
    }
}

/// A command failed, as on a killed drive.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Failed;

/// See the file.
pub(super) struct Drive {
    pub(super) ftl: Rc<PageFtl>,
    reader: PageReader<Inside>,
    mode: Mode,
}

fn flash() -> TestFlash {
    TestFlash { planes: 2, blocks: 28, pages: 6, units_per_page: 2, ..TestFlash::default() }
}

fn config() -> PageFtlConfig {
    PageFtlConfig {
        logical_units: UNITS,
        buffer_units: SLOTS,
        priority: Priority::Fifo,
        gc: GcConfig {
            scheme: GcScheme::Plane,
            owner: OwnerSource::Table,
            copyback: false,
            copyback_ecc: false,
            batch: Some(1),
            free_blocks: 2,
            preempt_above: None,
            free_in_window: 4,
            free_in_long_window: 4,
        },
        wear: WearConfig { dynamic: true, static_threshold: 4 },
        firmware: FirmwareTimes::default(),
        placement: Default::default(),
        writes_end_in_buffer: false,
        rain: None,
    }
}

/// A new file for a drive.
pub(super) fn create(mode: Mode) -> Arc<MemoryFile> {
    let backing = Arc::new(MemoryFile::new());
    let geometry = flash().geometry();
    let spec = StoreSpec {
        geometry: *geometry.counts(),
        keeps_data: true,
        pages_per_program: 1,
        logical_units: UNITS,
        slots: if mode == Mode::Capacitor { SLOTS } else { 0 },
        snapshot_bytes: PageFtl::snapshot_bytes(&geometry, &config()),
        seed: 1,
        text: String::new(),
        following: 0,
    };
    drop(StoreFile::create_on(backing.clone(), spec, false).expect("memory"));
    backing
}

impl Drive {
    /// Starts the drive in a file.
    pub(super) fn open(sim: &Sim, backing: &Arc<MemoryFile>, mode: Mode) -> Result<Drive, String> {
        let file = StoreFile::open_on(backing.clone(), false).map_err(|error| error.to_string())?;
        let media = Rc::new(Media::open(sim, flash().config(), file).map_err(|error| error.to_string())?);
        let allocation = Box::new(Striped::new(media.geometry(), StripeOrder::ChannelDiePlane));
        let policies = Policies {
            allocation,
            victim: Box::new(Greedy),
            admission: Box::new(All),
            buffer: None,
            read: None,
            patrol: None,
            stripes: Default::default(),
        };
        let ftl = PageFtl::new(sim, media, config(), policies).map_err(|error| error.to_string())?;
        Ok(Drive { reader: ftl.reader(), ftl, mode })
    }

    /// A failure shows when the next command looks.
    fn still_works(&self) -> Result<(), Failed> {
        if self.ftl.media().store_has_failed() || self.ftl.read_only().is_some() { Err(Failed) } else { Ok(()) }
    }

    /// Writes sectors with a number.
    pub(super) async fn write(&self, extent: Extent, number: u32) -> Result<(), Failed> {
        let reservation = self.ftl.reserve(extent, &mut Wait::default()).await;
        self.still_works()?;
        let watch = (self.mode == Mode::Through).then_some(Milestone::Flash);
        let data = HostMem::from_bytes(&sector(number).repeat(extent.sectors as usize));
        match self.ftl.accept(extent, Some(&data), reservation, watch) {
            Some(settling) => settling.settled().await.map(drop).map_err(|_| Failed),
            None => Ok(()),
        }
    }

    pub(super) async fn deallocate(&self, extent: Extent) -> Result<(), Failed> {
        self.ftl.deallocate(extent, &mut Breakdown::new()).await.map_err(|_| Failed)
    }

    /// Declares sectors unreadable.
    pub(super) async fn spoil(&self, extent: Extent) -> Result<(), Failed> {
        self.ftl.spoil(extent, &mut Breakdown::new()).await;
        self.still_works()
    }

    pub(super) async fn flush(&self) -> Result<(), Failed> {
        match self.ftl.flush() {
            Some(settling) => settling.settled().await.map(drop).map_err(|_| Failed),
            None => self.still_works(),
        }
    }

    /// Reads a sector.
    pub(super) async fn read(&self, sector: u32) -> Result<Content, String> {
        let (mem, mut breakdown) = (HostMem::zeroed(SECTOR), Breakdown::new());
        let extent = Extent { start: sector.into(), sectors: 1 };
        match self.reader.read::<()>(extent, &Inside(mem.clone()), &mut breakdown).await {
            Ok(()) => content(&mem.to_vec()).ok_or_else(|| format!("sector {sector} holds parts of several writes")),
            Err(error) if error.why == Unreadable::Lost => Ok(Content::Spoiled),
            Err(error) => Err(format!("sector {sector}: {error:?}")),
        }
    }
}

/// The bytes of a sector of a number that is not zero.
fn sector(number: u32) -> Vec<u8> {
    number.to_le_bytes().repeat(SECTOR / 4)
}

/// The version with which a sector was written; `None` when it holds parts of several writes.
fn content(bytes: &[u8]) -> Option<Content> {
    let number = u32::from_le_bytes(*bytes.first_chunk().expect("a sector"));
    (bytes == sector(number)).then_some(if number == 0 { Content::Zeros } else { Content::Data(number) })
}
