//! The flash of a drive: its configuration, its parts, and where they are.
//!
//! New flash is in `create`, operations in `read`, `program` and `erase`, their common steps in `steps`. Their effect on the
//! cells is in `contents`, how they end in `outcome`; bad blocks are in `bad`, constructed states in `planted`.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

use nandscape_drive::flash::FlashWatch;
use nandscape_sim::divisor::Divisor;
use nandscape_sim::trace::Track;
use nandscape_sim::units::Remembering;
use nandscape_sim::{Resource, Seed, Sim, Span};

use crate::aging::{Aging, AgingCells, AgingCounts, Past};
use crate::announce::ReadWatch;
use crate::contents::Contents;
use crate::durable::DurableMemory;
use crate::fault::{FaultPlan, Place, Rule};
use crate::geometry::{Geometry, PageId, PlaneId};
use crate::interleave::Rows;
use crate::lun::Lun;
use crate::remote::Remote;
use crate::store::StoreKind;
use crate::supply::{Group, Supply};
use crate::timing::{PageTimes, Timing};
use crate::work::FlashWork;

/// The configuration of a drive's flash.
#[derive(Clone, Debug)]
pub struct MediaConfig {
    /// The geometry.
    pub geometry: Geometry,
    /// The times.
    pub timing: Timing,
    /// Where data is kept.
    pub store: StoreKind,
    /// Blocks of each plane that are bad from the factory.
    pub factory_bad: u32,
    /// Bytes of a logical block, by which faults may be placed.
    pub lba_bytes: u32,
    /// The fault rules.
    pub faults: Vec<Rule>,
    /// Its aging; `None` is flash that does not age.
    pub aging: Option<Aging>,
    /// Seed of factory-bad blocks, read retries, faults and aging.
    pub seed: Seed,
    /// Which channels of the drive these are; `None` is all. With a group, fault rules and decoders are those of its
    /// [`Supply`].
    pub group: Option<Group>,
}

/// The flash of one drive, or of a group of its channels.
pub struct Media {
    pub(crate) sim: Sim,
    pub(crate) geometry: Geometry,
    pub(crate) timing: Timing,
    pub(crate) page_times: PageTimes,
    /// The rate at which channels transfer read data, and the channel time of a command that moves a page.
    pub(crate) read_rate: Remembering,
    pub(crate) whole_page: Span,
    /// The units that execute commands independently: planes, or dies.
    pub(crate) luns: Vec<Lun>,
    pub(crate) planes_per_lun: Divisor,
    /// Whether the planes of a LUN can read, program and erase together.
    pub(crate) planes_together: bool,
    pub(crate) channels: Vec<Rc<Resource>>,
    /// The rows in which channels program, if they do.
    pub(crate) rows: Option<Box<Rows>>,
    /// Whether reports of this flash list a channel. A shared channel is listed by one flash only.
    pub(crate) tells_of: Vec<bool>,
    pub(crate) contents: RefCell<Contents>,
    pub(crate) tracks: Tracks,
    pub(crate) factory_bad: Vec<bool>,
    /// Blocks that went bad in a life before the run; empty if none did.
    pub(crate) grown_bad: Vec<bool>,
    pub(crate) retries: Seed,
    pub(crate) policies: Seed,
    /// The most retries of a read.
    pub(crate) most_retries: u32,
    /// Whether reads have no steps but sensing and a transfer: no command cycles, no correction, no retries, and each plane alone.
    pub(crate) reads_plainly: bool,
    pub(crate) aging: Option<Box<AgingCells>>,
    pub(crate) supply: Rc<Supply>,
    /// The group of channels, if the drive has others.
    pub(crate) group: Option<Group>,
    /// The number of each channel in the drive.
    pub(crate) channels_of_drive: Rc<[u32]>,
    /// The number of each die in its channel.
    pub(crate) dies_of_drive: Rc<[u32]>,
    /// The durable memory, if the flash is in a file.
    pub(crate) durable: Option<Rc<DurableMemory>>,
    /// The remote array, if the flash is remote. Then every operation is diverted.
    pub(crate) remote: Option<Box<Remote>>,
    /// The host that is notified of each operation, if one exists.
    pub(crate) watch: OnceCell<Rc<dyn FlashWatch>>,
    /// The watch that is notified of the issue of reads, if one exists.
    pub(crate) reads: OnceCell<Rc<dyn ReadWatch>>,
    /// The cost of operations for the controller's processors, if any.
    pub(crate) work: OnceCell<FlashWork>,
}

/// The tracks of planes and channels in the event trace.
pub(crate) struct Tracks {
    pub(crate) planes: Vec<Track>,
    pub(crate) channels: Vec<Track>,
}

impl Media {
    /// Its totals of its life before the run: zero, if it had none.
    pub fn past(&self) -> Past {
        self.aging.as_ref().map(|cells| cells.past()).unwrap_or_default()
    }

    /// How it ages, if it does.
    pub fn aging(&self) -> Option<&Aging> {
        self.aging.as_ref().map(|cells| &cells.aging)
    }

    /// The effects of aging so far, if it ages.
    pub fn aging_counts(&self) -> Option<AgingCounts> {
        self.aging.as_ref().map(|cells| cells.counts())
    }

    /// The seed for random decisions about this flash by the policies and components of the FTL over it.
    pub fn policy_seed(&self) -> Seed {
        self.policies
    }

    /// The geometry.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The times.
    pub fn timing(&self) -> &Timing {
        &self.timing
    }

    /// The fault plan.
    pub fn faults(&self) -> &FaultPlan {
        &self.supply.faults
    }

    /// The number of each channel in the drive.
    pub fn channels_of_drive(&self) -> &[u32] {
        &self.channels_of_drive
    }

    /// The number of each die in its channel.
    pub fn dies_of_drive(&self) -> &[u32] {
        &self.dies_of_drive
    }

    /// Whether each channel begins with a block that holds an identifier, because the drive also has other flash.
    pub(crate) fn has_identifiers(&self) -> bool {
        self.group.is_some()
    }

    /// Where this flash is in the drive.
    pub(crate) fn place(&self) -> Place<'_> {
        let bytes = self.group.as_ref().map_or(0..u64::MAX, |group| group.bytes.clone());
        Place { geometry: &self.geometry, channels: &self.channels_of_drive, dies: &self.dies_of_drive, bytes }
    }

    /// The LUN of a plane.
    #[inline]
    pub(crate) fn lun(&self, plane: PlaneId) -> &Lun {
        &self.luns[self.lun_number(plane)]
    }

    #[inline]
    pub(crate) fn lun_number(&self, plane: PlaneId) -> usize {
        self.planes_per_lun.quotient(plane.0) as usize
    }

    /// The plane, channel and number within its block of a page.
    #[inline]
    pub(crate) fn locate(&self, page: PageId) -> (PlaneId, usize, u32) {
        let block = self.geometry.block_of(page);
        let plane = self.geometry.plane_of(block);
        (plane, self.geometry.channel_of(plane) as usize, self.geometry.page_in_block(page))
    }
}
