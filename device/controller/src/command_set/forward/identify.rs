//! Identify and log pages of a drive to which commands are forwarded (NVM 4.1.5, Base 5.1.12, 5.1.13).

use nandscape_wire_nvme::IoOpcode;
use nandscape_wire_nvme::identify::{self, Controller, LbaFormat, Namespace as IdentifyNamespace};
use nandscape_wire_nvme::log::{self, CommandsAndEffects, Smart};
use nandscape_wire_nvme::vendor::{self, Capabilities};
use zerocopy::IntoBytes;

use super::Forward;
use crate::command_set::nvm::copy;
use crate::namespace::Namespace;

/// The possible I/O commands, and whether they change data.
const COMMANDS: [(IoOpcode, bool); 9] = [
    (IoOpcode::READ, false),
    (IoOpcode::FLUSH, false),
    (IoOpcode::COMPARE, false),
    (IoOpcode::VERIFY, false),
    (IoOpcode::WRITE, true),
    (IoOpcode::WRITE_ZEROES, true),
    (IoOpcode::DATASET_MANAGEMENT, true),
    (IoOpcode::WRITE_UNCORRECTABLE, true),
    (IoOpcode::COPY, true),
];
/// Commands that the controller itself serves.
const RESERVATIONS: [IoOpcode; 4] = [
    IoOpcode::RESERVATION_REGISTER,
    IoOpcode::RESERVATION_REPORT,
    IoOpcode::RESERVATION_ACQUIRE,
    IoOpcode::RESERVATION_RELEASE,
];

impl Forward {
    pub(super) fn fill_in_identify(&self, data: &mut Controller) {
        let optional = [
            (self.offers.compare, identify::ONCS_COMPARE),
            (self.offers.deallocate, identify::ONCS_DSM),
            (self.offers.write_zeroes, identify::ONCS_WRITE_ZEROES),
            (self.offers.verify, identify::ONCS_VERIFY),
            (self.offers.write_uncorrectable, identify::ONCS_WRITE_UNCORRECTABLE),
        ];
        let optional = optional.iter().filter(|(is_there, _)| *is_there).fold(0, |all, (_, bit)| all | bit);
        let of_controller = identify::ONCS_SAVE | identify::ONCS_TIMESTAMP | identify::ONCS_RESERVATIONS;
        data.oncs = (optional | of_controller | identify::ONCS_COPY).into();
        data.copy_formats = copy::FORMATS.into();
        let volatile = if self.info.volatile_cache { identify::VWC_PRESENT } else { 0 };
        data.vwc = volatile | identify::VWC_FLUSH_ALL;
        let capabilities = Capabilities {
            magic: vendor::MAGIC,
            version: 1.into(),
            attributes: self.offers.attributes.into(),
            hints: self.offers.hints.into(),
            deadline: u32::from(self.offers.deadlines).into(),
            ..Capabilities::default()
        };
        data.vendor[..size_of::<Capabilities>()].copy_from_slice(capabilities.as_bytes());
    }

    /// Identify Namespace. It has one format, the drive's, and promises no atomicity beyond a block.
    pub(super) fn namespace_data(&self, namespace: Option<&Namespace>) -> IdentifyNamespace {
        let mut data = IdentifyNamespace::zeroed();
        data.lbaf[0] = LbaFormat { ms: 0.into(), lbads: self.info.lba_bytes.ilog2() as u8, rp: 0 };
        data.nsfeat = identify::NSFEAT_OPTPERF;
        data.dlfeat = self.offers.dlfeat;
        let Some(namespace) = namespace else { return data };
        (data.nsze, data.ncap) = (namespace.blocks.into(), namespace.blocks.into());
        data.nuse = namespace.blocks.into();
        data.nmic = if namespace.is_shared { identify::NMIC_SHARED } else { 0 };
        data.nsattr = if namespace.is_write_protected() { identify::NSATTR_WRITE_PROTECTED } else { 0 };
        data.rescap = identify::RESCAP_ALL;
        let unit_z = (self.info.unit_bytes / self.info.lba_bytes).clamp(1, 1 << 16) - 1;
        for field in [&mut data.npwg_z, &mut data.npwa_z, &mut data.npdg_z, &mut data.npda_z, &mut data.nows_z] {
            *field = (unit_z as u16).into();
        }
        let most = self.max_copy(namespace);
        let most_of_one = u32::from(namespace.max_source()).min(most) as u16;
        (data.mssrl, data.mcl) = (most_of_one.into(), most.into());
        data.msrc_z = (copy::MAX_RANGES - 1) as u8;
        (data.nguid, data.eui64) = (namespace.identifiers.nguid, namespace.identifiers.eui64);
        data
    }

    pub(super) fn fill_in_effects(&self, effects: &mut CommandsAndEffects) {
        let supported = log::EFFECT_SUPPORTED | log::SCOPE_NAMESPACE;
        for (opcode, changes) in COMMANDS.into_iter().filter(|(opcode, _)| self.takes(*opcode)) {
            let change = if changes { log::EFFECT_CONTENT_CHANGE } else { 0 };
            effects.io[usize::from(opcode.0)] = (supported | change).into();
        }
        for opcode in RESERVATIONS {
            effects.io[usize::from(opcode.0)] = supported.into();
        }
    }

    /// The log counts what hosts of this controller moved. The media belongs to the drive behind it, and is reported as
    /// sound.
    pub(super) fn fill_in_smart(&self, smart: &mut Smart) {
        let counts = self.counts.get();
        smart.available_spare = 100;
        smart.power_cycles = 1.into();
        // In thousands of 512 bytes, rounded up.
        smart.data_units_read = counts.read_bytes.div_ceil(512_000).into();
        smart.data_units_written = counts.written_bytes.div_ceil(512_000).into();
        (smart.host_reads, smart.host_writes) = (counts.reads.into(), counts.writes.into());
    }
}
