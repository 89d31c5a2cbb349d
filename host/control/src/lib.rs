//! The SSD control API (Shin 2017, Table 5.1): a host decides when a drive collects garbage, and when it only serves
//! reads.
//!
//! A [`Control`] goes through any [`Drive`] that takes admin commands: a queue in this process, an NVMe/TCP
//! connection, a PCI function. On a drive with several NVM Sets, each with separate flash and a separate FTL, it controls one of them.
//!
//! Drives on sale take no such orders. What comes closest there are [`PredictableLatency`], windows in which a drive does no work of its
//! own, [`Placement`], which separates data so that little is left to collect, and [`Zones`], in which nothing is.
//!
//! | Table 5.1 | here |
//! |---|---|
//! | `get_user_capacity`, `get_device_capacity` | [`Space::user_bytes`], [`Space::device_bytes`] |
//! | `get_eb_size` | [`Space::block_bytes`] |
//! | `get_free_block_count` | [`Space::free`], also in [`Run`] and [`Ready`] |
//! | `get_gc_threshold`, `set_gc_threshold` | [`Space::low`] and [`Space::high`], [`Control::set_watermarks`] |
//! | `is_gc_running` | [`Space::is_collecting`] |
//! | `run_gc` | [`Control::run`] |
//! | `is_ready_for_read` | [`Control::is_ready_for_read`] |
//!
//! | file | what |
//! |---|---|
//! | `admin` | admin commands of a host, awaited |
//! | `latency` | windows of Predictable Latency Mode |
//! | `placement` | handles of Flexible Data Placement |
//! | `zones` | zones that are written in order |
//!
//! Left out: policies over it.

use std::rc::Rc;

use nandscape_drive::{Completion, Drive, HostMem};
use nandscape_sim::{Sim, Span};
use nandscape_wire_nvme::vendor::{
    Capabilities, GC_CONTROL, GC_RUNNING, GC_STATUS, GcStatus, HAS_GC_CONTROL, MAGIC, READS_HELD_CLEAR, READY_FOR_READ,
    gc,
};
use nandscape_wire_nvme::{AdminOpcode, Status, SubmissionEntry};
use zerocopy::FromBytes;

mod admin;
mod latency;
mod placement;
mod zones;

use admin::Admin;
pub use latency::{PredictableLatency, Window, WindowTimes};
pub use placement::Placement;
pub use zones::{Zone, Zones};

/// Why a drive does not do as it is asked.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Error {
    /// The drive does not take such commands, by its Identify Controller.
    #[error(
        "the drive takes no orders for its garbage collection; drives with ftl.kind = \"page\" and without parity stripes do"
    )]
    Unsupported,
    /// The drive has no Predictable Latency Mode, by its Identify Controller.
    #[error("the drive has no Predictable Latency Mode; drives with controller.predictable_latency = true do")]
    NoWindows,
    /// The drive places no data, by its Identify Controller, or has too few reclaim unit handles.
    #[error("the drive has fewer than {0} reclaim unit handles; drives with ftl.fdp.handles = {0} or more have them")]
    NoPlacement(u16),
    /// The drive has no zones, by Identify Namespace of its command set.
    #[error("the drive has no zones; drives with ftl.kind = \"zone\" have them")]
    NoZones,
    /// The drive has rejected the command.
    #[error("the drive rejects the command: {0}")]
    Rejected(Status),
}

/// The space of a drive, and its activity.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Space {
    /// Bytes of the host's address space.
    pub user_bytes: u64,
    /// Bytes of the flash.
    pub device_bytes: u64,
    /// Bytes of an erase block.
    pub block_bytes: u64,
    /// Erase blocks of the flash.
    pub blocks: u32,
    /// Erased blocks now.
    pub free: u32,
    /// The low watermark in blocks, below which the drive collects garbage by itself. Zero leaves this to the drive's
    /// own policy.
    pub low: u32,
    /// The high watermark in blocks, at which [`Control::run`] ends.
    pub high: u32,
    /// Whether a collection is under way.
    pub is_collecting: bool,
    /// Whether [`Control::is_ready_for_read`] would return that it is, without a change.
    pub is_ready: bool,
}

/// The answer to [`Control::run`].
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Run {
    /// Whether the drive collects; `false` is that the order was ignored, as enough blocks are free.
    pub is_accepted: bool,
    /// Erased blocks.
    pub free: u32,
}

/// The answer to [`Control::is_ready_for_read`].
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Ready {
    /// Whether no internal work runs. It can only start after a write, a flush of buffered data, a run, or when the
    /// free blocks fall below the low watermark.
    pub is_ready: bool,
    /// Erased blocks.
    pub free: u32,
}

/// A drive, or an NVM Set of one, whose garbage collection its host controls.
pub struct Control {
    admin: Admin,
    /// A namespace of the set; 0 is the whole drive.
    nsid: u32,
}

impl Control {
    /// A drive whose admin commands go through `admin`. If it has several NVM Sets, orders are for the set of namespace `nsid`.
    ///
    /// # Errors
    /// The drive does not support such commands.
    pub async fn open(sim: &Sim, admin: Rc<dyn Drive>, nsid: u32) -> Result<Control, Error> {
        let admin = Admin::new(sim, admin);
        let data = admin.identify().await?.ok_or(Error::Unsupported)?;
        let capabilities = Capabilities::of(&data.vendor);
        match capabilities.is_some_and(|table| table.functions.get() & HAS_GC_CONTROL != 0) {
            true => Ok(Control { admin, nsid: if data.nsetidmax.get() > 1 { nsid } else { 0 } }),
            false => Err(Error::Unsupported),
        }
    }

    /// A command for what is controlled.
    fn order(&self, opcode: AdminOpcode) -> SubmissionEntry {
        SubmissionEntry { nsid: self.nsid.into(), ..SubmissionEntry::admin(opcode) }
    }

    async fn control(&self, action: u32, [first, second]: [u32; 2]) -> Result<Completion, Error> {
        let entry = SubmissionEntry {
            cdw10: action.into(),
            cdw11: first.into(),
            cdw12: second.into(),
            ..self.order(GC_CONTROL)
        };
        self.admin.execute(entry, &HostMem::none()).await
    }

    /// The space of the drive, its watermarks, and whether it collects.
    ///
    /// # Errors
    /// When the drive rejects the command, or returns another structure.
    pub async fn space(&self) -> Result<Space, Error> {
        let mem = HostMem::zeroed(size_of::<GcStatus>());
        self.admin.execute(self.order(GC_STATUS), &mem).await?;
        let status = GcStatus::read_from_bytes(&mem.to_vec()).ok();
        let status = status.filter(|status| status.magic == MAGIC && status.version.get() == 1);
        let status = status.ok_or(Error::Unsupported)?;
        Ok(Space {
            user_bytes: status.user_bytes.get(),
            device_bytes: status.device_bytes.get(),
            block_bytes: status.block_bytes.get(),
            blocks: status.blocks.get(),
            free: status.free.get(),
            low: status.low.get(),
            high: status.high.get(),
            is_collecting: status.flags.get() & GC_RUNNING != 0,
            is_ready: status.flags.get() & READS_HELD_CLEAR != 0,
        })
    }

    /// Sets both watermarks, in blocks, until the drive loses power. With a low watermark of zero, the drive's own
    /// policy decides its garbage collections.
    ///
    /// # Errors
    /// When the low one is above the high one, or the high one above the blocks of the flash.
    pub async fn set_watermarks(&self, low: u32, high: u32) -> Result<(), Error> {
        self.control(gc::SET_WATERMARKS, [low, high]).await.map(drop)
    }

    /// Starts garbage collection for `time`, rounded up to microseconds, or until the high watermark is reached, and
    /// returns at once. A second run replaces the first; one of no time ends it. A run is at most 2^32 - 1 us, 71
    /// minutes.
    ///
    /// # Errors
    /// When the drive rejects the command.
    pub async fn run(&self, time: Span) -> Result<Run, Error> {
        let us = u32::try_from(time.ns().div_ceil(1_000)).unwrap_or(u32::MAX);
        let ended = self.control(gc::RUN, [us, 0]).await?;
        Ok(Run { is_accepted: ended.dw0 != 0, free: ended.dw1 })
    }

    /// Asks for reads without internal work in their way. The first call stops that work; ask again until the drive is ready.
    ///
    /// # Errors
    /// When the drive rejects the command.
    pub async fn is_ready_for_read(&self) -> Result<Ready, Error> {
        let ended = self.admin.execute(self.order(READY_FOR_READ), &HostMem::none()).await?;
        Ok(Ready { is_ready: ended.dw0 != 0, free: ended.dw1 })
    }
}
