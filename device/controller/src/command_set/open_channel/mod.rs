//! The commands of an open-channel drive (OC 2.0) over flash in chunks: one namespace, whose addresses are places in the flash.
//!
//! | file | what |
//! |---|---|
//! | `addresses` | the addresses that a command names |
//! | `read`, `write`, `copy`, `reset` | the vector commands, and their equivalents on contiguous blocks |
//! | `report` | Geometry and the log pages |
//!
//! Vector commands name up to 64 addresses, of several chunks, in a list in the host's memory. Over Fabrics, such lists do
//! not exist: Read, Write, Copy and Dataset Management do the same on contiguous blocks. Read, Compare, Verify and Flush are
//! those of the NVM command set; unwritten blocks read as zeros.
//!
//! Left out, and not offered: metadata, Write Zeroes, Write Uncorrectable, several namespaces, Format and Sanitize; the chunk
//! descriptors that a reset may return; the feature Media Feedback.

mod addresses;
mod copy;
mod read;
mod report;
mod reset;
mod write;

use std::ops::Range;
use std::rc::Rc;

use nandscape_device_ftl_core::Ftl;
use nandscape_device_ftl_core::address::SECTOR;
use nandscape_device_ftl_zoned::OpenChannel as Chunks;
use nandscape_device_ftl_zoned::open_channel::Layout;
use nandscape_device_media::Media;
use nandscape_drive::Breakdown;
use nandscape_sim::{Sim, Span};
use nandscape_wire_nvme::identify::{
    self, Controller as IdentifyController, LbaFormat, Namespace as IdentifyNamespace,
};
use nandscape_wire_nvme::io::Cdw12;
use nandscape_wire_nvme::log::{self, CommandsAndEffects};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry, open_channel as oc};
use zerocopy::IntoBytes;

use super::nvm::Nvm;
use super::{Command, CommandSet, Failure, Later, Reply, SetInfo, Storage};
use crate::config::ControllerConfig;
use crate::namespace::Namespace;
use addresses::{in_a_row, runs, vectored};

/// Log pages of the namespace.
pub(crate) const LOGS: [u8; 2] = [oc::CHUNK_LOG, oc::NOTIFICATION_LOG];

/// See the file.
pub struct OpenChannel {
    sim: Sim,
    nvm: Nvm<Chunks>,
    /// Typical and maximum times of a read, a write and a reset, in ns.
    times: [u32; 6],
}

/// The optional commands of the NVM command set that are not supported.
const LEFT_OUT: u16 = identify::ONCS_WRITE_UNCORRECTABLE | identify::ONCS_WRITE_ZEROES;
/// Their opcodes.
const LEFT_OUT_OPCODES: [IoOpcode; 2] = [IoOpcode::WRITE_UNCORRECTABLE, IoOpcode::WRITE_ZEROES];

impl OpenChannel {
    /// The commands of a drive over `ftl`, which uses `media`. A logical block is a unit.
    ///
    /// # Panics
    /// When it is not, or when a command may write more than the controller has room for.
    pub fn new(sim: &Sim, media: Rc<Media>, ftl: Rc<Chunks>, config: &ControllerConfig) -> OpenChannel {
        assert_eq!(config.lba_bytes, media.geometry().unit_size(), "a logical block is a unit");
        let most = u64::from(ftl.max_reserve()) * u64::from(SECTOR);
        assert!(u64::from(config.max_transfer) <= most, "there is room for {most} bytes of a command");
        let times = times(&media);
        OpenChannel { sim: sim.clone(), nvm: Nvm::new(sim, media, ftl, config), times }
    }

    fn ftl(&self) -> &Rc<Chunks> {
        self.nvm.ftl()
    }

    fn layout(&self) -> &Layout {
        self.ftl().layout()
    }

    fn unit_sectors(&self) -> u32 {
        self.ftl().unit().sectors()
    }

    /// Checks that the blocks of a command on contiguous blocks exist. Other errors are found when it is served.
    fn check_there(&self, command: &Command<'_>) -> Result<(), Failure> {
        let (slba, blocks) = (command.entry.slba(), u64::from(Cdw12::of(command.entry).nlb_z()) + 1);
        let addresses: Vec<u64> = (slba..slba.saturating_add(blocks)).collect();
        runs(&addresses, self.layout(), u32::MAX).map(drop).map_err(|failed| failed.failure)
    }
}

/// Typical and maximum times of a read, a write and a reset of the flash alone. The maximum of a reset is that of the rated life;
/// blocks that are worn beyond it may take longer.
fn times(media: &Media) -> [u32; 6] {
    let timing = media.timing();
    let ns = |span: Span| u32::try_from(span.ns()).unwrap_or(u32::MAX);
    let of = |times: &[Span]| {
        let sum: u64 = times.iter().map(|time| time.ns()).sum();
        let longest = times.iter().max().copied().unwrap_or(Span::ZERO);
        [ns(Span::from_ns(sum / times.len().max(1) as u64)), ns(longest)]
    };
    let ([read, read_most], [write, write_most]) = (of(&timing.read), of(&timing.program));
    let longer = media.aging().map_or(Span::ZERO, |aging| aging.erase_longer(timing.erase, aging.rated));
    [read, read_most, write, write_most, ns(timing.erase), ns(timing.erase + longer)]
}

impl OpenChannel {
    /// The data of Geometry (OC 3.1).
    pub(crate) fn geometry(&self) -> Vec<u8> {
        self.geometry_data().as_bytes().to_vec()
    }

    /// The length of one of [`LOGS`], and its requested part as far as it exists.
    pub(crate) fn log(&self, lid: u8, part: Range<u64>) -> (u64, Vec<u8>) {
        if lid == oc::CHUNK_LOG { self.chunk_log(part) } else { self.notification_log(part) }
    }

    /// Calls `changed` with the log page whenever a log gains an entry.
    pub(crate) fn on_notice(&self, changed: Box<dyn Fn(u8)>) {
        self.ftl().on_notice(Box::new(move || changed(oc::NOTIFICATION_LOG)));
    }
}

impl CommandSet for OpenChannel {
    fn info(&self) -> SetInfo {
        SetInfo { keeps_metadata: false, sanitizes: false, ..self.nvm.info() }
    }

    fn prefetch(&self, _: &Namespace, _: &SubmissionEntry) {}

    fn traced(&self, entry: &SubmissionEntry) -> (&'static str, u64) {
        let name = match IoOpcode(entry.opcode) {
            IoOpcode::READ | oc::VECTOR_READ => "read",
            IoOpcode::WRITE | oc::VECTOR_WRITE => "write",
            oc::VECTOR_RESET => "reset",
            oc::VECTOR_COPY => "copy",
            _ => "other",
        };
        (name, entry.slba() << 16 | u64::from(Cdw12::of(entry).nlb_z()))
    }

    fn storage(&self) -> &dyn Storage {
        &self.nvm
    }

    fn serve<'a>(&'a self, command: &'a Command<'a>, breakdown: &'a mut Breakdown) -> Later<'a, Reply> {
        Box::pin(async move {
            match IoOpcode(command.entry.opcode) {
                oc::VECTOR_READ => vectored(self.vector_read(command, breakdown).await),
                oc::VECTOR_WRITE => vectored(self.vector_write(command, breakdown).await),
                oc::VECTOR_RESET => vectored(self.vector_reset(command, breakdown).await),
                oc::VECTOR_COPY => vectored(self.vector_copy(command, breakdown).await),
                IoOpcode::WRITE => in_a_row(self.write_in_a_row(command, breakdown).await),
                IoOpcode::COPY => in_a_row(self.copy_in_a_row(command, breakdown).await),
                IoOpcode::DATASET_MANAGEMENT => in_a_row(self.dataset_management(command, breakdown).await),
                IoOpcode::READ | IoOpcode::COMPARE | IoOpcode::VERIFY => match self.check_there(command) {
                    Ok(()) => self.nvm.serve_directly(command, breakdown).await,
                    Err(failure) => Err(failure).into(),
                },
                IoOpcode::FLUSH => self.nvm.serve_directly(command, breakdown).await,
                _ => Err(Status::INVALID_OPCODE.final_()).into(),
            }
        })
    }

    fn identify_controller(&self, data: &mut IdentifyController) {
        self.nvm.identify_controller(data);
        data.oncs = (data.oncs.get() & !LEFT_OUT).into();
        (data.fuses, data.acwu_z) = (0.into(), 0.into());
    }

    /// The only format has logical blocks of a unit. Linux up to 5.14 recognizes an open-channel drive by the first vendor
    /// specific byte.
    fn identify_namespace(&self, namespace: Option<&Namespace>) -> IdentifyNamespace {
        let mut data = self.nvm.identify_namespace(namespace);
        let own = usize::from(data.flbas & 0xf);
        let unit = self.nvm.info().unit_bytes.ilog2() as u8;
        for (index, format) in data.lbaf.iter_mut().enumerate() {
            let is_there = namespace.is_none_or(|_| index == own) && format.lbads == unit && format.ms.get() == 0;
            if !is_there {
                *format = LbaFormat { ms: 0.into(), lbads: 0, rp: 0 };
            }
        }
        (data.mc, data.dpc) = (0, 0);
        data.dlfeat = identify::DLFEAT_ZEROS;
        data.nacwu_z = 0.into();
        // A Copy is written like one Write.
        data.mcl = namespace.map_or(0, |namespace| namespace.max_blocks).into();
        data.vendor[0] = 1;
        data
    }

    fn effects(&self, effects: &mut CommandsAndEffects) {
        self.nvm.effects(effects);
        LEFT_OUT_OPCODES.iter().for_each(|opcode| effects.io[usize::from(opcode.0)] = 0.into());
        let supported = log::EFFECT_SUPPORTED | log::SCOPE_NAMESPACE;
        effects.io[usize::from(oc::VECTOR_READ.0)] = supported.into();
        for opcode in [oc::VECTOR_WRITE, oc::VECTOR_COPY, oc::VECTOR_RESET] {
            effects.io[usize::from(opcode.0)] = (supported | log::EFFECT_CONTENT_CHANGE).into();
        }
    }

    fn open_channel(&self) -> Option<&OpenChannel> {
        Some(self)
    }
}
