//! Identify and the Commands Supported and Effects log of the NVM command set and its namespace (NVM 4.1.5, Base 5.1.12,
//! 5.1.13).

use nandscape_device_ftl_core::Ftl;
use nandscape_wire_nvme::IoOpcode;
use nandscape_wire_nvme::identify::{self, Controller, LbaFormat, Namespace as IdentifyNamespace};
use nandscape_wire_nvme::log::{self, CommandsAndEffects};
use nandscape_wire_nvme::vendor::{self, Capabilities};
use zerocopy::IntoBytes;

use super::{Nvm, copy};
use crate::namespace::{GRANULE_BOUNDARY, Namespace, lba_formats};

impl<F: Ftl> Nvm<F> {
    pub(in crate::command_set) fn fill_in_identify(&self, data: &mut Controller) {
        data.oncs = self.optional_commands().into();
        let volatile = if self.has_volatile_cache() { identify::VWC_PRESENT } else { 0 };
        data.vwc = volatile | identify::VWC_FLUSH_ALL;
        data.fuses = if self.media.keeps_data() { identify::FUSES_COMPARE_AND_WRITE } else { 0 }.into();
        data.copy_formats = copy::FORMATS.into();
        // In logical blocks of any format, the largest of which has 4 KiB.
        let atomic_z = blocks_z(self.atomic_sectors() / 8);
        (data.awun_z, data.acwu_z) = (atomic_z.into(), atomic_z.into());
        data.awupf_z = if self.keeps_buffer() { atomic_z } else { 0 }.into();
        let capabilities = self.capabilities();
        let bytes = capabilities.as_bytes();
        data.vendor[..bytes.len()].copy_from_slice(bytes);
    }

    /// The vendor extensions of the drive.
    pub(in crate::command_set) fn capabilities(&self) -> Capabilities {
        let atomic_units = self.ftl.offers().transactions.map_or(0, |transactions| transactions.most_units());
        let atomic_bytes = if atomic_units > 0 { self.max_transfer } else { 0 };
        let (attributes, hints) = self.honoured();
        Capabilities {
            magic: vendor::MAGIC,
            version: 1.into(),
            attributes: attributes.into(),
            hints: hints.into(),
            functions: self.functions().into(),
            atomic_units: atomic_units.into(),
            atomic_bytes: atomic_bytes.into(),
            ..Capabilities::default()
        }
    }

    fn functions(&self) -> u32 {
        let windows = if self.ftl.offers().windows.is_some() { vendor::HAS_WINDOWS } else { 0 };
        let lss = if self.ftl.offers().transactions.is_some() { vendor::HAS_LSS } else { 0 };
        let pieces = if lss > 0 && self.media.keeps_data() { vendor::HAS_PIECES } else { 0 };
        let collections = if self.ftl.offers().collections.is_some() { vendor::HAS_GC_CONTROL } else { 0 };
        let notices = if self.tracker.is_some() { vendor::HAS_NOTICES } else { 0 };
        windows | collections | lss | pieces | notices
    }

    fn optional_commands(&self) -> u16 {
        let compare = if self.media.keeps_data() { identify::ONCS_COMPARE } else { 0 };
        compare
            | identify::ONCS_WRITE_UNCORRECTABLE
            | identify::ONCS_DSM
            | identify::ONCS_WRITE_ZEROES
            | identify::ONCS_SAVE
            | identify::ONCS_TIMESTAMP
            | identify::ONCS_VERIFY
            | identify::ONCS_COPY
            | identify::ONCS_RESERVATIONS
    }

    /// Identify Namespace; without a namespace, the fields that all namespaces share.
    pub(super) fn namespace_data(&self, namespace: Option<&Namespace>) -> IdentifyNamespace {
        let mut data = IdentifyNamespace::zeroed();
        let formats = lba_formats(self.keeps_metadata);
        data.nlbaf_z = formats.len() as u8 - 1;
        for (field, format) in data.lbaf.iter_mut().zip(formats) {
            *field = LbaFormat { ms: (format.metadata as u16).into(), lbads: format.data.ilog2() as u8, rp: 0 };
        }
        if self.keeps_metadata {
            (data.mc, data.dpc) = (identify::MC_EXTENDED | identify::MC_SEPARATE, identify::DPC_ALL);
        }
        data.nsfeat = identify::NSFEAT_DULBE | identify::NSFEAT_OPTPERF;
        data.dlfeat = identify::DLFEAT_ZEROS | identify::DLFEAT_WRITE_ZEROES;
        if let Some(namespace) = namespace {
            self.fill_in_namespace(&mut data, namespace);
        }
        data
    }

    fn fill_in_namespace(&self, data: &mut IdentifyNamespace, namespace: &Namespace) {
        (data.nsze, data.ncap) = (namespace.blocks.into(), namespace.blocks.into());
        data.nuse = namespace.blocks.into();
        (data.flbas, data.dps) = (namespace.format.flbas(), namespace.format.dps());
        data.nmic = if namespace.is_shared { identify::NMIC_SHARED } else { 0 };
        data.rescap = identify::RESCAP_ALL;
        data.nsattr = if namespace.is_write_protected() { identify::NSATTR_WRITE_PROTECTED } else { 0 };
        data.nvmcap = u128::from(namespace.capacity()).to_le_bytes();
        let unit_z = (self.ftl.unit().bytes() / namespace.lba_bytes - 1) as u16;
        for field in [&mut data.npwg_z, &mut data.npwa_z, &mut data.npdg_z, &mut data.npda_z, &mut data.nows_z] {
            *field = unit_z.into();
        }
        (data.mssrl, data.mcl) = (namespace.max_source().into(), namespace.max_copy().into());
        data.msrc_z = (copy::MAX_RANGES - 1) as u8;
        self.fill_in_atomicity(data, namespace);
        if let Some(report) = self.piece_report(namespace) {
            data.vendor[..size_of_val(&report)].copy_from_slice(report.as_bytes());
        }
        (data.nguid, data.eui64) = (namespace.identifiers.nguid, namespace.identifiers.eui64);
    }

    /// Atomicity (NVM 2.1.4). Sectors reserved together are accepted together, and survive a power cut together if the buffer
    /// does. Otherwise each mapping unit reaches the flash separately, and a power cut can tear a write at a boundary of
    /// units.
    fn fill_in_atomicity(&self, data: &mut IdentifyNamespace, namespace: &Namespace) {
        data.nsfeat |= identify::NSFEAT_ATOMICITY;
        let atomic_z = blocks_z(self.atomic_sectors() / namespace.lba_sectors() as u32);
        (data.nawun_z, data.nacwu_z) = (atomic_z.into(), atomic_z.into());
        let unit_z = blocks_z(self.ftl.unit().bytes() / namespace.lba_bytes);
        match self.keeps_buffer() {
            true => data.nawupf_z = atomic_z.into(),
            false => (data.nawupf_z, data.nabspf_z) = (unit_z.into(), unit_z.into()),
        }
        // A command over scattered blocks is served in pieces.
        if namespace.layout.is_fragmented() {
            data.nabsn_z = blocks_z(GRANULE_BOUNDARY / namespace.lba_sectors() as u32).into();
            if self.keeps_buffer() {
                data.nabspf_z = data.nabsn_z;
            }
        }
    }

    pub(super) fn fill_in_effects(&self, effects: &mut CommandsAndEffects) {
        let read = log::EFFECT_SUPPORTED | log::SCOPE_NAMESPACE;
        for opcode in [IoOpcode::READ, IoOpcode::FLUSH, IoOpcode::VERIFY] {
            effects.io[usize::from(opcode.0)] = read.into();
        }
        for opcode in [
            IoOpcode::WRITE,
            IoOpcode::WRITE_UNCORRECTABLE,
            IoOpcode::WRITE_ZEROES,
            IoOpcode::DATASET_MANAGEMENT,
            IoOpcode::COPY,
        ] {
            effects.io[usize::from(opcode.0)] = (read | log::EFFECT_CONTENT_CHANGE).into();
        }
        for opcode in [
            IoOpcode::RESERVATION_REGISTER,
            IoOpcode::RESERVATION_REPORT,
            IoOpcode::RESERVATION_ACQUIRE,
            IoOpcode::RESERVATION_RELEASE,
        ] {
            effects.io[usize::from(opcode.0)] = read.into();
        }
        if self.fdp.is_some() {
            effects.io[usize::from(IoOpcode::IO_MANAGEMENT_RECEIVE.0)] = read.into();
            effects.io[usize::from(IoOpcode::IO_MANAGEMENT_SEND.0)] = read.into();
        }
        if self.media.keeps_data() {
            effects.io[usize::from(IoOpcode::COMPARE.0)] = read.into();
        }
        if self.ftl.offers().transactions.is_some() {
            for opcode in [vendor::ATOMIC_WRITE, vendor::LSS_FLUSH] {
                effects.io[usize::from(opcode.0)] = (read | log::EFFECT_CONTENT_CHANGE).into();
            }
            effects.io[usize::from(vendor::BATCHED_READ.0)] = read.into();
        }
    }
}

/// A number of blocks, counted from zero, limited to the range of the field.
fn blocks_z(blocks: u32) -> u16 {
    (blocks - 1).min(u16::MAX.into()) as u16
}
