//! Get Log Page (Base 5.1.12).

use nandscape_drive::{Breakdown, HostMem};
use nandscape_wire_nvme::identify::ascii;
use nandscape_wire_nvme::log::{self, CommandsAndEffects, EnduranceGroup, FirmwareSlot, Identifiers, LogPart, Smart};
use nandscape_wire_nvme::open_channel::GEOMETRY;
use nandscape_wire_nvme::vendor::{self, DriveLog};
use nandscape_wire_nvme::{AdminOpcode, NSID_ALL, Parameter, Status, SubmissionEntry, zns};
use zerocopy::IntoBytes;

use super::features::TEMPERATURE;
use super::{Answer, Event, fdp, latency, telemetry};
use crate::command_set::open_channel;
use crate::engine::{NvmeController, Permit, QueueKey};
use crate::refusal::Refusal;

/// The log pages that may be read during a sanitize operation and after its failure (Base 2.3, Figure 143, "Sanitize
/// Operations and Format NVM Command - Admin Commands Allowed"). Telemetry and vendor log pages are prohibited.
const DURING_SANITIZE: [u8; 5] =
    [log::ERROR_INFORMATION, log::SMART, log::CHANGED_NAMESPACES, log::RESERVATION_NOTIFICATION, log::SANITIZE_STATUS];

/// Number of Dwords Lower, and Log Page Offset Lower.
const NUMBER_OF_DWORDS: Refusal = Refusal::field(10, 16);
const OFFSET: Refusal = Refusal::field(12, 0);
/// Offset Type: no log page here has Index Offset Supported.
const OFFSET_TYPE: Refusal = Refusal::field(14, 23);

impl NvmeController {
    /// Serves Get Log Page. Side effects of reading a log page wait until the host's memory is known to be reachable, so a
    /// rejected command has none.
    pub(super) async fn serve_log_page(
        &self,
        (queue, entry): (QueueKey, &SubmissionEntry),
        mem: &HostMem,
        permit: &mut Option<Permit>,
        breakdown: &mut Breakdown,
    ) -> Result<Answer, Refusal> {
        let answer = self.log_page(entry)?;
        self.reach((queue, entry), answer.len(), (mem, permit), breakdown).await?;
        if takes_telemetry(entry) {
            self.subsystem.telemetry.take_for_host(self.drive_log());
        }
        // Fetching lists from the host takes time: build the page again.
        let answer = self.log_page(entry)?;
        if entry.cdw10.get() & log::RETAIN_EVENT == 0 {
            self.log_was_read(entry.cdw10.get() as u8);
        }
        Ok(answer)
    }

    /// A host has read a log without Retain Asynchronous Event.
    fn log_was_read(&self, lid: u8) {
        match lid {
            log::CHANGED_NAMESPACES => self.admin.changed_namespaces.clear(),
            log::CHANGED_ZONES => self.admin.changed_zones.clear(),
            log::TELEMETRY_CONTROLLER => self.subsystem.telemetry.was_read(),
            log::PREDICTABLE_LATENCY => self.subsystem.latency.was_read(),
            // Warnings without an event yet are now known to the host.
            log::SMART => self.raise_warnings(),
            _ => {}
        }
        self.admin.events.log_was_read(lid);
        if lid == log::RESERVATION_NOTIFICATION && self.admin.notifications.was_read() {
            self.raise(Event::RESERVATION);
        }
    }

    /// The part of a log that a command asks for. It has no side effects.
    fn log_page(&self, entry: &SubmissionEntry) -> Result<Answer, Refusal> {
        let LogPart { offset, bytes } = LogPart::of(entry);
        if bytes > self.subsystem.config.max_transfer.into() {
            return Err(NUMBER_OF_DWORDS);
        }
        if entry.cdw14.get() & log::OFFSET_TYPE != 0 {
            return Err(OFFSET_TYPE);
        }
        if !offset.is_multiple_of(4) {
            return Err(OFFSET);
        }
        let lid = entry.cdw10.get() as u8;
        self.check_log_namespace(lid, entry.nsid.get())?;
        let sanitizing = self.subsystem.sanitizing.refuses();
        if let Some(status) = sanitizing
            && !DURING_SANITIZE.contains(&lid)
        {
            return Err(status.into());
        }
        if [log::TELEMETRY_HOST, log::TELEMETRY_CONTROLLER].contains(&lid) {
            if !offset.is_multiple_of(log::TELEMETRY_BLOCK as u64) {
                return Err(OFFSET);
            }
            if !bytes.is_multiple_of(log::TELEMETRY_BLOCK as u64) {
                return Err(NUMBER_OF_DWORDS);
            }
        }
        if let Some(drive) = self.subsystem.set.open_channel().filter(|_| open_channel::LOGS.contains(&lid)) {
            let (len, part) = drive.log(lid, offset..offset.saturating_add(bytes));
            return if offset > len { Err(OFFSET) } else { Ok(Answer::padded(part, bytes as usize)) };
        }
        let log = match lid {
            log::SUPPORTED_LOG_PAGES => self.supported_log_pages().as_bytes().to_vec(),
            log::ERROR_INFORMATION => self.admin.errors.borrow().page(sanitizing.is_some()),
            log::SMART => self.smart().as_bytes().to_vec(),
            lid if fdp::LOGS.contains(&lid) && self.has_placement() => self.placement_log(lid, entry)?,
            lid if latency::LOGS.contains(&lid) && self.subsystem.has_latency_mode() => {
                self.latency_page(lid, entry)?
            }
            log::ENDURANCE_GROUP if self.has_groups() => self.endurance_group(entry)?.as_bytes().to_vec(),
            log::FIRMWARE_SLOT => self.firmware_slot().as_bytes().to_vec(),
            log::SELF_TEST => self.subsystem.self_tests.log().as_bytes().to_vec(),
            log::SANITIZE_STATUS if self.subsystem.set.administration().is_some() => {
                self.subsystem.sanitize_status().as_bytes().to_vec()
            }
            log::CHANGED_NAMESPACES => self.admin.changed_namespaces.page(),
            log::CHANGED_ZONES if self.has_zones() => self.admin.changed_zones.page(),
            log::RESERVATION_NOTIFICATION => self.admin.notifications.page().as_bytes().to_vec(),
            log::COMMANDS_AND_EFFECTS => self.commands_and_effects().as_bytes().to_vec(),
            log::FEATURES_AND_EFFECTS => self.features_and_effects().as_bytes().to_vec(),
            log::TELEMETRY_HOST | log::TELEMETRY_CONTROLLER => self.subsystem.telemetry.page(lid),
            vendor::DRIVE_LOG => self.drive_log().as_bytes().to_vec(),
            // The drive supports no NVMe-MI command.
            log::MI_COMMANDS_AND_EFFECTS => vec![0; log::MI_COMMANDS_AND_EFFECTS_BYTES],
            _ => return Err(Status::INVALID_LOG_PAGE.into()),
        };
        let len = if takes_telemetry(entry) { telemetry::BYTES } else { log.len() };
        if offset > len as u64 {
            return Err(OFFSET);
        }
        // Beyond the end, a log page reads as zeros.
        Ok(Answer::padded(log.get(offset as usize..).unwrap_or_default().to_vec(), bytes as usize))
    }

    /// Log pages have the scope of the subsystem or of the controller (Base 5.1.12.1); SMART per namespace is not offered.
    /// Only the Changed Zone List and log pages of the command set have the scope of a namespace.
    fn check_log_namespace(&self, lid: u8, nsid: u32) -> Result<(), Refusal> {
        let is_of_namespace = lid == log::CHANGED_ZONES && self.has_zones()
            || self.subsystem.set.open_channel().is_some() && open_channel::LOGS.contains(&lid);
        match self.namespaces.get(nsid) {
            Some(_) if is_of_namespace || lid == log::CHANGED_ZONES => Ok(()),
            None if is_of_namespace => Err(Refusal::of(Status::INVALID_NAMESPACE, Parameter::NSID)),
            _ if [0, NSID_ALL].contains(&nsid) => Ok(()),
            _ => Err(Refusal::of(Status::INVALID_FIELD, Parameter::NSID)),
        }
    }

    fn has_zones(&self) -> bool {
        self.subsystem.set.identifier() == zns::CSI
    }

    fn smart(&self) -> Smart {
        let mut smart = Smart::zeroed();
        let errors = self.admin.errors.borrow();
        smart.temperature = TEMPERATURE.into();
        smart.critical_warning = self.warnings();
        (smart.media_errors, smart.error_log_entries) =
            (self.subsystem.media_errors.get().into(), errors.count().into());
        self.subsystem.set.storage().smart(&mut smart);
        smart
    }

    /// Endurance Group Information of the group that the Log Specific Identifier (CDW11 bits 31:16) names.
    fn endurance_group(&self, entry: &SubmissionEntry) -> Result<EnduranceGroup, Refusal> {
        let number = (entry.cdw11.get() >> 16) as usize;
        let set = number.checked_sub(1).filter(|set| *set < self.subsystem.namespaces.sets());
        let set = set.ok_or(Refusal::field(11, 16))?;
        let mut group = self.subsystem.set.endurance_group(set).ok_or(Refusal::field(11, 16))?;
        let (total, unallocated) = self.subsystem.namespaces.capacity_of_set(set);
        (group.total, group.unallocated) = (total.into(), unallocated.into());
        Ok(group)
    }

    /// The state inside the drive, and the queues of this controller.
    fn drive_log(&self) -> DriveLog {
        let mut log = self.subsystem.drive_log();
        let depths = self.queues.borrow().depths();
        let logged = depths.len().min(vendor::LOGGED_QUEUES);
        log.queue_count = (logged as u16).into();
        log.queues[..logged].copy_from_slice(&depths[..logged]);
        log
    }

    pub(super) fn commands_and_effects(&self) -> CommandsAndEffects {
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
        // Only a host that names memory by address creates queues by command.
        let queues = queues.into_iter().filter(|_| self.creates_queues());
        let doorbells = self.takes_doorbell_buffers().then_some(AdminOpcode::DOORBELL_BUFFER_CONFIG);
        for opcode in admin.into_iter().chain(queues).chain(doorbells) {
            effects.admin[usize::from(opcode.0)] = (log::EFFECT_SUPPORTED | log::SCOPE_CONTROLLER).into();
        }
        let test = log::EFFECT_SUPPORTED | log::SCOPE_SUBSYSTEM;
        effects.admin[usize::from(AdminOpcode::DEVICE_SELF_TEST.0)] = test.into();
        if self.subsystem.set.open_channel().is_some() {
            effects.admin[usize::from(GEOMETRY.0)] = (log::EFFECT_SUPPORTED | log::SCOPE_NAMESPACE).into();
        }
        if self.subsystem.set.collections(0).is_some() {
            let scope = if self.has_several_sets() { log::SCOPE_NVM_SET } else { log::SCOPE_SUBSYSTEM };
            for opcode in super::OF_SETS {
                effects.admin[usize::from(opcode.0)] = (log::EFFECT_SUPPORTED | scope).into();
            }
        }
        if self.has_directives() {
            for opcode in [AdminOpcode::DIRECTIVE_SEND, AdminOpcode::DIRECTIVE_RECEIVE] {
                effects.admin[usize::from(opcode.0)] = (log::EFFECT_SUPPORTED | log::SCOPE_NAMESPACE).into();
            }
        }
        if self.subsystem.set.administration().is_some() {
            effects_on_namespaces(&mut effects);
        }
        self.subsystem.set.effects(&mut effects);
        effects
    }

    /// The scope of each feature. None changes data.
    fn features_and_effects(&self) -> Identifiers {
        let mut features = Identifiers::zeroed();
        for id in (0..=u8::MAX).filter(|id| self.has_feature(*id)) {
            let scope = match id {
                vendor::WINDOWS => log::SCOPE_SUBSYSTEM,
                id if latency::is_feature(id) => log::SCOPE_NVM_SET,
                id if self.is_of_namespace(id) => log::SCOPE_NAMESPACE,
                _ => log::SCOPE_CONTROLLER,
            };
            features.ids[usize::from(id)] = (log::FEATURE_SUPPORTED | scope).into();
        }
        features
    }

    /// The one slot. Its revision is also in Identify Controller.
    fn firmware_slot(&self) -> FirmwareSlot {
        let mut slot = FirmwareSlot::zeroed();
        slot.active = 1;
        slot.revisions[0] = ascii(&self.subsystem.names.firmware);
        slot
    }

    fn supported_log_pages(&self) -> Identifiers {
        let mut logs = supported_log_pages();
        if self.subsystem.set.administration().is_none() {
            logs.ids[usize::from(log::SANITIZE_STATUS)] = 0.into();
        }
        if self.has_zones() {
            logs.ids[usize::from(log::CHANGED_ZONES)] = log::LOG_SUPPORTED.into();
        }
        if self.subsystem.set.open_channel().is_some() {
            open_channel::LOGS.iter().for_each(|lid| logs.ids[usize::from(*lid)] = log::LOG_SUPPORTED.into());
        }
        if self.has_placement() {
            fdp::LOGS.iter().for_each(|lid| logs.ids[usize::from(*lid)] = log::LOG_SUPPORTED.into());
        }
        if self.subsystem.has_latency_mode() {
            latency::LOGS.iter().for_each(|lid| logs.ids[usize::from(*lid)] = log::LOG_SUPPORTED.into());
        }
        if self.has_groups() {
            logs.ids[usize::from(log::ENDURANCE_GROUP)] = log::LOG_SUPPORTED.into();
        }
        logs
    }
}

/// Whether a command requests a new snapshot (Log Specific Parameter, CDW10 bits 14:8).
fn takes_telemetry(entry: &SubmissionEntry) -> bool {
    let cdw10 = entry.cdw10.get();
    cdw10 as u8 == log::TELEMETRY_HOST && (cdw10 >> 8) as u8 & log::TELEMETRY_CREATE != 0
}

/// The commands that change namespaces.
fn effects_on_namespaces(effects: &mut CommandsAndEffects) {
    for opcode in [AdminOpcode::NAMESPACE_MANAGEMENT, AdminOpcode::NAMESPACE_ATTACHMENT, AdminOpcode::FORMAT_NVM] {
        let changes = log::EFFECT_CONTENT_CHANGE | log::EFFECT_NAMESPACE_CHANGE | log::EFFECT_INVENTORY_CHANGE;
        effects.admin[usize::from(opcode.0)] =
            (log::EFFECT_SUPPORTED | changes | log::EFFECT_ONE_AT_A_TIME | log::SCOPE_SUBSYSTEM).into();
    }
    let sanitize =
        log::EFFECT_SUPPORTED | log::SCOPE_SUBSYSTEM | log::EFFECT_CONTENT_CHANGE | log::EFFECT_ONE_AT_A_TIME;
    effects.admin[usize::from(AdminOpcode::SANITIZE.0)] = sanitize.into();
}

fn supported_log_pages() -> Identifiers {
    let mut logs = Identifiers::zeroed();
    for id in [
        log::SUPPORTED_LOG_PAGES,
        log::ERROR_INFORMATION,
        log::SMART,
        log::FIRMWARE_SLOT,
        log::CHANGED_NAMESPACES,
        log::SELF_TEST,
        log::SANITIZE_STATUS,
        log::RESERVATION_NOTIFICATION,
        log::COMMANDS_AND_EFFECTS,
        log::FEATURES_AND_EFFECTS,
        log::MI_COMMANDS_AND_EFFECTS,
        log::TELEMETRY_HOST,
        log::TELEMETRY_CONTROLLER,
        vendor::DRIVE_LOG,
    ] {
        logs.ids[usize::from(id)] = log::LOG_SUPPORTED.into();
    }
    logs
}
