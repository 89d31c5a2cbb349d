//! Get Log Page (Base 5.1.12).

use nandscape_device_ftl::Ftl;
use nandscape_wire_nvme::identify::ascii;
use nandscape_wire_nvme::log::{self, CommandsAndEffects, FirmwareSlot, Identifiers, Smart};
use nandscape_wire_nvme::{AdminOpcode, IoOpcode, Status, SubmissionEntry, feature};
use zerocopy::IntoBytes;

use super::Answer;
use crate::controller::NvmeController;

/// The most that one command returns of a log.
const MAX_BYTES: u64 = 1 << 20;

/// Percent of the spare blocks below which the host is warned.
const SPARE_THRESHOLD: u8 = 10;

impl<F: Ftl> NvmeController<F> {
    pub(super) fn get_log_page(&self, entry: &SubmissionEntry) -> Result<Answer, Status> {
        // Number of dwords, counted from zero over two fields; the offset is in bytes.
        let dwords_z = u64::from(entry.cdw10.get() >> 16) | u64::from(entry.cdw11.get() & 0xffff) << 16;
        let offset = u64::from(entry.cdw12.get()) | u64::from(entry.cdw13.get()) << 32;
        let bytes = (dwords_z + 1) * 4;
        if bytes > MAX_BYTES || !offset.is_multiple_of(4) {
            return Err(Status::INVALID_FIELD);
        }
        let log = match entry.cdw10.get() as u8 {
            log::SUPPORTED_LOG_PAGES => supported_log_pages().as_bytes().to_vec(),
            log::ERROR_INFORMATION => self.admin.errors.borrow().page(),
            log::SMART => {
                if entry.cdw10.get() & log::RETAIN_EVENT == 0 {
                    self.admin.events.log_was_read();
                }
                self.smart().as_bytes().to_vec()
            }
            log::FIRMWARE_SLOT => firmware_slot().as_bytes().to_vec(),
            log::COMMANDS_AND_EFFECTS => self.commands_and_effects().as_bytes().to_vec(),
            log::FEATURES_AND_EFFECTS => self.features_and_effects().as_bytes().to_vec(),
            // There is no NVMe-MI command.
            log::MI_COMMANDS_AND_EFFECTS => vec![0; log::MI_COMMANDS_AND_EFFECTS_BYTES],
            _ => return Err(Status::INVALID_LOG_PAGE),
        };
        if offset > log.len() as u64 {
            return Err(Status::INVALID_FIELD);
        }
        // What is asked for beyond the end reads as zeros.
        let mut part = log[offset as usize..].to_vec();
        part.resize(bytes as usize, 0);
        Ok(Answer::data(&part))
    }

    fn smart(&self) -> Smart {
        let mut smart = Smart::zeroed();
        let (host, stats) = (self.host_counts(), self.ftl.stats());
        smart.temperature = 308.into();
        smart.available_spare = self.available_spare();
        smart.available_spare_threshold = SPARE_THRESHOLD;
        smart.critical_warning = self.warnings();
        let (errors, cuts) = (self.admin.errors.borrow(), u64::from(self.media.power_cuts()));
        (smart.media_errors, smart.error_log_entries) = (errors.media_errors.into(), errors.count().into());
        smart.unsafe_shutdowns = cuts.into();
        // In thousands of 512 bytes, rounded up.
        smart.data_units_read = host.read_bytes.div_ceil(512_000).into();
        smart.data_units_written = stats.host_bytes.div_ceil(512_000).into();
        smart.host_reads = host.reads.into();
        smart.host_writes = host.writes.into();
        smart.power_cycles = (1 + cuts).into();
        smart.power_on_hours = (self.sim.now().ns() / 3_600_000_000_000).into();
        smart
    }

    /// Percent of the spare blocks that are left; a drive that never had any has none.
    fn available_spare(&self) -> u8 {
        let (left, new) = self.ftl.spare_blocks();
        (left * 100).checked_div(new).unwrap_or(0) as u8
    }

    /// Critical Warning.
    pub(super) fn warnings(&self) -> u8 {
        let spare = if self.available_spare() < SPARE_THRESHOLD { log::WARNING_SPARE } else { 0 };
        spare | if self.ftl.is_read_only() { log::WARNING_READ_ONLY } else { 0 }
    }

    fn commands_and_effects(&self) -> CommandsAndEffects {
        let mut effects = CommandsAndEffects::zeroed();
        let admin = [
            AdminOpcode::GET_LOG_PAGE,
            AdminOpcode::IDENTIFY,
            AdminOpcode::ABORT,
            AdminOpcode::SET_FEATURES,
            AdminOpcode::GET_FEATURES,
            AdminOpcode::ASYNCHRONOUS_EVENT_REQUEST,
            AdminOpcode::KEEP_ALIVE,
        ];
        let queues = [
            AdminOpcode::CREATE_IO_CQ,
            AdminOpcode::CREATE_IO_SQ,
            AdminOpcode::DELETE_IO_CQ,
            AdminOpcode::DELETE_IO_SQ,
        ];
        // Only a host that names memory by address can create queues so.
        let queues = queues.into_iter().filter(|_| self.host.borrow().is_some());
        for opcode in admin.into_iter().chain(queues) {
            effects.admin[usize::from(opcode.0)] = (log::EFFECT_SUPPORTED | log::SCOPE_CONTROLLER).into();
        }
        let read = log::EFFECT_SUPPORTED | log::SCOPE_NAMESPACE;
        for opcode in [IoOpcode::READ, IoOpcode::FLUSH, IoOpcode::VERIFY] {
            effects.io[usize::from(opcode.0)] = read.into();
        }
        for opcode in [IoOpcode::WRITE, IoOpcode::WRITE_ZEROES, IoOpcode::DATASET_MANAGEMENT] {
            effects.io[usize::from(opcode.0)] = (read | log::EFFECT_CONTENT_CHANGE).into();
        }
        if self.namespace.keeps_data {
            effects.io[usize::from(IoOpcode::COMPARE.0)] = read.into();
        }
        effects
    }

    /// Error Recovery is of the namespace (NVM 4.1.3), the others are of the controller. None changes data.
    fn features_and_effects(&self) -> Identifiers {
        let mut features = Identifiers::zeroed();
        for id in (0..=u8::MAX).filter(|id| self.has_feature(*id)) {
            let scope = if id == feature::ERROR_RECOVERY { log::SCOPE_NAMESPACE } else { log::SCOPE_CONTROLLER };
            features.ids[usize::from(id)] = (log::FEATURE_SUPPORTED | scope).into();
        }
        features
    }
}

fn supported_log_pages() -> Identifiers {
    let mut logs = Identifiers::zeroed();
    for id in [
        log::SUPPORTED_LOG_PAGES,
        log::ERROR_INFORMATION,
        log::SMART,
        log::FIRMWARE_SLOT,
        log::COMMANDS_AND_EFFECTS,
        log::FEATURES_AND_EFFECTS,
        log::MI_COMMANDS_AND_EFFECTS,
    ] {
        logs.ids[usize::from(id)] = log::LOG_SUPPORTED.into();
    }
    logs
}

fn firmware_slot() -> FirmwareSlot {
    let mut slot = FirmwareSlot::zeroed();
    slot.active = 1;
    slot.revisions[0] = ascii(env!("CARGO_PKG_VERSION"));
    slot
}
