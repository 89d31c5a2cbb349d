//! The NVM command set over any [`Drive`]: a controller in front of a remote drive, or of a drive made of others. The command
//! is checked here, like every command of the set. Then the drive executes it with its data, and the drive's answer is the
//! completion.
//!
//! | file | what |
//! |---|---|
//! | `mod` | serving commands |
//! | `copy` | Copy by reads and writes |
//! | `identify` | Identify and log pages |
//! | `storage` | counts, and the drive as it is tested and flushed |
//!
//! Left out, and not offered by Identify: fused operations, vendor commands, several namespaces, metadata, and commands that change
//! namespaces or drop their data. Reservations hold among the hosts of this subsystem; hosts that reach the drive by another path do
//! not see them.

mod copy;
mod identify;
mod storage;

use std::cell::Cell;
use std::rc::Rc;

use nandscape_device_ftl_core::address::SECTOR;
use nandscape_device_media::Priority;
use nandscape_drive::{Assignments, Breakdown, Completion, Drive, DriveInfo, HostMem, Issuer, Offers};
use nandscape_sim::credits::Credits;
use nandscape_sim::units::Rate;
use nandscape_sim::{Sim, Span};
use nandscape_wire_nvme::identify::{Controller as IdentifyController, Namespace as IdentifyNamespace};
use nandscape_wire_nvme::io::{Cdw12, DEAC, FUA, LIMITED_RETRY};
use nandscape_wire_nvme::log::CommandsAndEffects;
use nandscape_wire_nvme::opcode::Transfer;
use nandscape_wire_nvme::vendor::Attributes;
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry, vendor};

use super::nvm::command::NvmCommand;
use super::{Command, CommandSet, Culprit, Later, Reply, SetInfo, Storage};
use crate::arbiter::ArbiterKind;
use crate::config::{BufferMode, ControllerConfig, Duplex, LinkConfig};
use crate::namespace::{Namespace, lba_formats};
use crate::refusal::Refusal;

/// The bits of CDW2 that are passed on with every command.
const CLASS_AND_TENANT: u32 = Attributes::of(0xf, 0xfff).0;

/// See the module.
pub struct Forward {
    sim: Sim,
    drive: Rc<dyn Drive>,
    info: DriveInfo,
    offers: Offers,
    issuer: Issuer,
    /// KiB for the data of copies by reads and writes.
    copies: Credits,
    counts: Cell<Counts>,
}

/// Commands of hosts, for the SMART log.
#[derive(Copy, Clone, Default, Debug)]
struct Counts {
    reads: u64,
    read_bytes: u64,
    writes: u64,
    written_bytes: u64,
}

/// The part of a breakdown for the drive behind the controllers: its time that it does not account for itself.
pub const BELOW: &str = "below";

/// Ranges and Descriptor Format, in CDW12 of Copy.
const COPY_LIST: u32 = 0xfff;

/// I/O queue pairs of each controller, and entries of a queue.
const QUEUE_PAIRS: u16 = 64;
const QUEUE_ENTRIES: u32 = 4_096;
/// Commands of all controllers at a time.
const COMMANDS: u32 = 1_024;
/// MDTS counts in powers of two of 4 KiB, and its 0 is no limit.
const LEAST_TRANSFER: u32 = 8 << 10;
const MOST_TRANSFER: u32 = 32 << 20;

impl Forward {
    /// The commands of `drive`.
    pub fn new(sim: &Sim, drive: Rc<dyn Drive>, offers: Offers) -> Forward {
        let (info, issuer) = (drive.info(), Issuer::new(sim));
        Forward { sim: sim.clone(), drive, info, offers, issuer, copies: copy::memory(sim), counts: Cell::default() }
    }

    /// The configuration of controllers in front of a drive. They add no time.
    ///
    /// # Errors
    /// Why no controller can be in front of this drive.
    pub fn config(info: &DriveInfo) -> Result<ControllerConfig, String> {
        let formats = lba_formats(false);
        if formats.iter().all(|format| format.data != info.lba_bytes) {
            let formats: Vec<String> = formats.iter().map(|format| format.data.to_string()).collect();
            let formats = formats.join(" and ");
            return Err(format!("its logical blocks have {} bytes; {formats} can be served", info.lba_bytes));
        }
        if info.metadata_bytes > 0 {
            return Err(format!(
                "its blocks have {} bytes of metadata; blocks without can be served",
                info.metadata_bytes
            ));
        }
        if info.blocks == 0 {
            return Err("it has no blocks".to_owned());
        }
        let most = u64::from(info.max_blocks) * u64::from(info.lba_bytes);
        let most = most.min(MOST_TRANSFER.into()) as u32;
        if most < LEAST_TRANSFER {
            return Err(format!("its commands move at most {most} bytes; {LEAST_TRANSFER} are needed"));
        }
        Ok(ControllerConfig {
            firmware_time: Span::ZERO,
            processors: None,
            command_slots: COMMANDS,
            max_queue_pairs: QUEUE_PAIRS,
            max_queue_entries: QUEUE_ENTRIES,
            max_transfer: 1 << most.ilog2(),
            lba_bytes: info.lba_bytes,
            buffer: if info.volatile_cache { BufferMode::Volatile } else { BufferMode::Through },
            link: LinkConfig { bandwidth: Rate::UNLIMITED, duplex: Duplex::Full, packet: None, latency: Span::ZERO },
            arbiter: ArbiterKind::RoundRobin,
            weights: [1; 3],
            assign: Assignments::default(),
            priority: Priority::Fifo,
            // This controller has no flash blocks.
            rated_erases: 0,
            windows: None,
            predictable_latency: false,
            notices: None,
            multipath: false,
        })
    }

    fn takes(&self, opcode: IoOpcode) -> bool {
        match opcode {
            IoOpcode::READ | IoOpcode::WRITE | IoOpcode::FLUSH | IoOpcode::COPY => true,
            IoOpcode::WRITE_UNCORRECTABLE => self.offers.write_uncorrectable,
            IoOpcode::COMPARE => self.offers.compare,
            IoOpcode::DATASET_MANAGEMENT => self.offers.deallocate,
            IoOpcode::WRITE_ZEROES => self.offers.write_zeroes,
            IoOpcode::VERIFY => self.offers.verify,
            _ => false,
        }
    }

    /// Checks a command. Returns the entry for the drive.
    fn checked(&self, command: &Command<'_>) -> Result<SubmissionEntry, Refusal> {
        let entry = command.entry;
        if !self.takes(IoOpcode(entry.opcode)) {
            return Err(Status::INVALID_OPCODE.final_().into());
        }
        NvmCommand::parse(entry, command.mem, command.namespace)?;
        let mut forward = SubmissionEntry::io(IoOpcode(entry.opcode), self.info.nsid);
        (forward.cdw10, forward.cdw11) = (entry.cdw10, entry.cdw11);
        // Without protection information and directives, the other bits are empty.
        let bits = match IoOpcode(entry.opcode) {
            IoOpcode::DATASET_MANAGEMENT => 0,
            IoOpcode::COPY => COPY_LIST | FUA | LIMITED_RETRY,
            _ => 0xffff | DEAC | FUA | LIMITED_RETRY,
        };
        forward.cdw12 = (entry.cdw12.get() & bits).into();
        let (opcode, passed) = (IoOpcode(entry.opcode), self.offers.attributes | CLASS_AND_TENANT);
        let passed = if opcode == IoOpcode::READ { passed } else { CLASS_AND_TENANT };
        forward.cdw2 = (entry.cdw2.get() & passed).into();
        if self.offers.deadlines && matches!(opcode, IoOpcode::READ | IoOpcode::WRITE) {
            forward.cdw3 = entry.cdw3;
        }
        Ok(forward)
    }

    /// Executes a command on the drive and adds the drive's breakdown. To end early, the command is cancelled on the drive,
    /// and ends when the drive has released its memory.
    async fn execute(
        &self,
        command: &Command<'_>,
        (mut entry, mem): (SubmissionEntry, HostMem),
        breakdown: &mut Breakdown,
    ) -> Result<Completion, Status> {
        vendor::has_waited(&mut entry, breakdown.total().ns());
        let mut execution = self.issuer.execute(&*self.drive, entry, mem);
        match command.stop.or_stopped(&mut execution).await {
            Ok(completion) => {
                *breakdown += &completion.breakdown;
                Ok(completion)
            }
            Err(stopped) => {
                execution.cancel(&*self.drive);
                let completion = execution.await;
                *breakdown += &completion.breakdown;
                let is_cancelled = completion.status.meaning() == Status::ABORT_REQUESTED;
                if is_cancelled { Err(stopped) } else { Ok(completion) }
            }
        }
    }

    fn count(&self, entry: &SubmissionEntry) {
        let mut counts = self.counts.get();
        let bytes = (u64::from(Cdw12::of(entry).nlb_z()) + 1) * u64::from(self.info.lba_bytes);
        match IoOpcode(entry.opcode) {
            IoOpcode::READ | IoOpcode::COMPARE => {
                counts.reads += 1;
                counts.read_bytes += bytes;
            }
            IoOpcode::VERIFY => counts.read_bytes += bytes,
            IoOpcode::WRITE => {
                counts.writes += 1;
                counts.written_bytes += bytes;
            }
            _ => {}
        }
        self.counts.set(counts);
    }
}

/// The reply for a drive's completion. A broken path is behind the controller (Base 4.2.3.4), and the drive's error log is
/// not this controller's.
fn reply(completion: &Completion) -> Reply {
    let status = match completion.status.meaning() {
        Status::HOST_PATHING_ERROR => Status::CONTROLLER_PATHING_ERROR,
        meaning if completion.status.do_not_retry() => meaning.final_(),
        meaning => meaning,
    };
    Reply { status, dw0: completion.dw0, dw1: completion.dw1, culprit: Culprit::Unknown }
}

impl CommandSet for Forward {
    fn info(&self) -> SetInfo {
        SetInfo {
            sectors: self.info.blocks * u64::from(self.info.lba_bytes / SECTOR),
            unit_bytes: self.info.unit_bytes,
            volatile_cache: self.info.volatile_cache,
            keeps_data: self.info.keeps_data,
            keeps_metadata: false,
            sanitizes: false,
        }
    }

    /// The drive's tables are out of reach.
    fn prefetch(&self, _: &Namespace, _: &SubmissionEntry) {}

    fn storage(&self) -> &dyn Storage {
        self
    }

    fn serve<'a>(&'a self, command: &'a Command<'a>, breakdown: &'a mut Breakdown) -> Later<'a, Reply> {
        Box::pin(self.serve_directly(command, breakdown))
    }

    fn identify_controller(&self, data: &mut IdentifyController) {
        self.fill_in_identify(data);
    }

    fn identify_namespace(&self, namespace: Option<&Namespace>) -> IdentifyNamespace {
        self.namespace_data(namespace)
    }

    fn effects(&self, effects: &mut CommandsAndEffects) {
        self.fill_in_effects(effects);
    }
}

impl Forward {
    /// [`CommandSet::serve`], in the caller's own future.
    pub(super) async fn serve_directly(&self, command: &Command<'_>, breakdown: &mut Breakdown) -> Reply {
        let entry = match self.checked(command) {
            Ok(entry) => entry,
            Err(refusal) => return Err(refusal).into(),
        };
        self.count(&entry);
        let (begun, before) = (self.sim.now(), breakdown.total());
        let completion = match IoOpcode(entry.opcode) {
            // Boxed: it is rare, and larger than the other commands.
            IoOpcode::COPY if !self.offers.copy => Box::pin(self.copy(command, entry, breakdown)).await,
            _ => {
                let has_data = Transfer::of(entry.opcode) != Transfer::None;
                let mem = if has_data { command.mem.clone() } else { HostMem::none() };
                self.execute(command, (entry, mem), breakdown).await
            }
        };
        breakdown.charge_rest(BELOW, before + (self.sim.now() - begun));
        match completion {
            Ok(completion) => reply(&completion),
            Err(status) => Err(status).into(),
        }
    }
}
