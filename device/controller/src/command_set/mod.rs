//! The interface of an I/O command set to the queue engine: serving commands, Identify and log pages.
//!
//! A command set never sees queues. It receives each command with its data memory, the host link, the host's settings, and a
//! [`Stop`] that signals when the command is to end early.

mod administration;
pub(crate) mod any;
pub mod forward;
mod fused;
pub mod nvm;
pub mod open_channel;
pub mod runs;
pub mod sets;
mod storage;
mod together;
mod windows;
pub mod zns;

use std::rc::Rc;

use nandscape_device_ftl_core::{Collections, PlacementReport};
use nandscape_drive::{Breakdown, HostMem};
use nandscape_wire_nvme::identify::{Controller as IdentifyController, Namespace as IdentifyNamespace};
use nandscape_wire_nvme::io::Cdw12;
use nandscape_wire_nvme::log::{CommandsAndEffects, EnduranceGroup};
use nandscape_wire_nvme::{IoOpcode, Parameter, Status, SubmissionEntry};

use crate::admin::{PAGE, Settings};
use crate::engine::Stop;
use crate::link::Link;
use crate::namespace::Namespace;
use crate::notices::Tracker;
use crate::work::Work;
pub use administration::Administration;
pub use fused::Fused;
pub use nandscape_device_ftl_core::offers::Later;
pub use nvm::fdp::Fdp;
pub use nvm::streams::Streams;
use open_channel::OpenChannel;
pub use storage::Storage;
pub use windows::Windows;
use zns::Zns;

/// Command Set Identifier of the NVM command set.
pub(crate) const NVM: u8 = 0;

/// The I/O commands of a controller.
pub trait CommandSet: 'static {
    /// The properties of the storage below.
    fn info(&self) -> SetInfo;

    /// Sectors of each NVM Set. A drive of one FTL has one.
    fn nvm_sets(&self) -> Vec<u64> {
        vec![self.info().sectors]
    }

    /// A command was fetched and will be served soon: prefetches its table entries into the processor's cache. The entry is
    /// not checked yet.
    fn prefetch(&self, namespace: &Namespace, entry: &SubmissionEntry);

    /// Its Command Set Identifier (Base 3.1.3.2).
    fn identifier(&self) -> u8 {
        NVM
    }

    /// The value of CC.CSS by which a host selects the set (Base 3.1.4.5): 000b is the NVM command set, 110b all that Identify
    /// lists.
    fn selected_by(&self) -> u32 {
        if self.identifier() == NVM { 0 } else { 0b110 }
    }

    /// A command's name in the event trace, and its blocks.
    fn traced(&self, entry: &SubmissionEntry) -> (&'static str, u64) {
        let name = match IoOpcode(entry.opcode) {
            IoOpcode::READ => "read",
            IoOpcode::WRITE => "write",
            _ => "other",
        };
        (name, entry.slba() << 16 | u64::from(Cdw12::of(entry).nlb_z()))
    }

    /// The storage behind the commands: data, counts, power.
    fn storage(&self) -> &dyn Storage;

    /// Serves a command.
    fn serve<'a>(&'a self, command: &'a Command<'a>, breakdown: &'a mut Breakdown) -> Later<'a, Reply>;

    /// Whether a namespace can be formatted with pages that are chains of pieces.
    fn has_pieces(&self, _namespace: &Namespace) -> bool {
        false
    }

    /// Fills in the fields of Identify Controller that depend on the command set.
    fn identify_controller(&self, data: &mut IdentifyController);

    /// Identify Namespace (CNS 00h); without a namespace, the fields that all namespaces share.
    fn identify_namespace(&self, namespace: Option<&Namespace>) -> IdentifyNamespace;

    /// I/O Command Set specific Identify Namespace (CNS 05h), of one namespace or of all, for the NVM command set or this
    /// one. For the NVM command set it is zeros: the guard of protection information has 16 bits in every format, without a
    /// storage tag.
    fn identify_specific(&self, _namespace: Option<&Namespace>, _set: u8) -> Vec<u8> {
        vec![0; PAGE]
    }

    /// I/O Command Set specific Identify Controller (CNS 06h). For the NVM command set it is zeros: Verify, Write Zeroes and
    /// Dataset Management have no limits beyond those of their fields.
    fn identify_controller_specific(&self, _set: u8) -> Vec<u8> {
        vec![0; PAGE]
    }

    /// Fills in the supported I/O commands and their effects.
    fn effects(&self, effects: &mut CommandsAndEffects);

    /// Endurance Group Information of an NVM Set, without its capacity; each set is its own group. `None` if the drive has
    /// only one set.
    fn endurance_group(&self, _set: usize) -> Option<EnduranceGroup> {
        None
    }

    /// Whether hosts place data (Flexible Data Placement).
    fn places(&self) -> bool {
        false
    }

    /// The handles by which hosts place data.
    fn placement(&self) -> Option<Placement<'_>> {
        None
    }

    /// Garbage collection at a host's command in an NVM Set, counted from 0; `None` where the drive takes no such orders.
    fn collections(&self, _set: usize) -> Option<&dyn Collections> {
        None
    }

    /// The tracker of reads that ask for a notice; `None` where the drive has no notices.
    fn tracker(&self) -> Option<&Tracker> {
        None
    }

    /// The streams of hosts, where the drive has any.
    fn streams(&self) -> Option<&Streams> {
        None
    }

    /// Fused operations; `None` where nothing is fused.
    fn fused(&self) -> Option<&dyn Fused> {
        None
    }

    /// Creating, formatting and sanitizing namespaces; `None` where hosts cannot change them.
    fn administration(&self) -> Option<&dyn Administration> {
        None
    }

    /// Windows for the drive's background work; `None` where the drive has none.
    fn windows(&self) -> Option<Windows<'_>> {
        None
    }

    /// The command set of an open-channel drive, with its geometry and its log pages.
    fn open_channel(&self) -> Option<&OpenChannel> {
        None
    }

    /// The command set of zones.
    fn zones(&self) -> Option<&Zns> {
        None
    }
}

/// The properties of the storage below a command set.
#[derive(Copy, Clone, Debug)]
pub struct SetInfo {
    /// Sectors of 512 bytes for namespaces.
    pub sectors: u64,
    /// Bytes of the unit in which the drive maps and prefers to be written.
    pub unit_bytes: u32,
    /// Whether completed writes may be lost in a power cut unless they are flushed.
    pub volatile_cache: bool,
    /// Whether data written is kept.
    pub keeps_data: bool,
    /// Whether logical blocks may have metadata.
    pub keeps_metadata: bool,
    /// Whether all data can be removed from the media.
    pub sanitizes: bool,
}

/// The handles by which hosts place data.
#[derive(Debug)]
pub struct Placement<'a> {
    /// The FTL's report of them.
    pub report: PlacementReport,
    /// Their events.
    pub fdp: &'a Fdp,
}

/// A command in work.
#[derive(Copy, Clone)]
pub struct Command<'a> {
    /// As it was fetched.
    pub entry: &'a SubmissionEntry,
    /// The namespace that it names.
    pub namespace: &'a Namespace,
    /// The host's memory for its data.
    pub mem: &'a HostMem,
    /// The way to the host.
    pub link: &'a Rc<Link>,
    /// The controller's processors.
    pub work: &'a Work,
    /// The host's settings.
    pub settings: &'a Settings,
    /// Signals when the command is to end early.
    pub stop: Stop<'a>,
}

/// How a command ended: status, and DW0 and DW1 of its completion.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Reply {
    /// The status.
    pub status: Status,
    /// DW0.
    pub dw0: u32,
    /// DW1.
    pub dw1: u32,
    /// The culprit.
    pub culprit: Culprit,
}

/// How a command failed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The status.
    pub status: Status,
    /// The culprit.
    pub culprit: Culprit,
}

/// The cause of a failure, for the error log.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Culprit {
    /// No more than the status.
    Unknown,
    /// The first logical block that failed.
    Block(u64),
    /// A field of the command.
    Field(Parameter),
}

impl Reply {
    /// Success, with a value in DW0.
    pub(crate) fn value(dw0: u32) -> Reply {
        Reply { status: Status::SUCCESS, dw0, dw1: 0, culprit: Culprit::Unknown }
    }
}

impl From<Status> for Failure {
    fn from(status: Status) -> Failure {
        Failure { status, culprit: Culprit::Unknown }
    }
}

impl<E: Into<Failure>> From<Result<(), E>> for Reply {
    fn from(result: Result<(), E>) -> Reply {
        let Failure { status, culprit } = result.map_or_else(Into::into, |()| Status::SUCCESS.into());
        Reply { status, dw0: 0, dw1: 0, culprit }
    }
}
