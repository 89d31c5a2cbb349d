//! What Identify and the logs say of the NVM command set and its namespace (NVM 4.1.5, Base 5.1.12, 5.1.13).

use nandscape_device_ftl::Ftl;
use nandscape_wire_nvme::identify::{self, Controller, LbaFormat, Namespace, NguidDescriptor, cns};
use nandscape_wire_nvme::log::{self, CommandsAndEffects, Smart};
use nandscape_wire_nvme::{IoOpcode, NSID_ALL, Status};
use zerocopy::IntoBytes;

use super::{NSID, Nvm, copy};
use crate::admin::PAGE;

/// The only LBA format is the first.
const LBA_FORMAT: u8 = 0;

/// Percent of the spare blocks below which the host is warned.
const SPARE_THRESHOLD: u8 = 10;

impl<F: Ftl> Nvm<F> {
    pub(super) fn fill_in_identify(&self, data: &mut Controller) {
        data.tnvmcap = u128::from(self.capacity()).to_le_bytes();
        data.oncs = self.optional_commands().into();
        let volatile = if self.has_volatile_cache() { identify::VWC_PRESENT } else { 0 };
        data.vwc = volatile | identify::VWC_FLUSH_ALL;
        data.fuses = if self.namespace.keeps_data { identify::FUSES_COMPARE_AND_WRITE } else { 0 }.into();
        data.copy_formats = copy::FORMATS.into();
        // In logical blocks of any format, the largest of which has 4 KiB.
        let atomic_z = blocks_z(self.atomic_sectors() / 8);
        (data.awun_z, data.acwu_z) = (atomic_z.into(), atomic_z.into());
        data.awupf_z = if self.keeps_buffer() { atomic_z } else { 0 }.into();
    }

    pub(super) fn identify_by_cns(&self, cns: u8, set: u8, nsid: u32) -> Result<Vec<u8>, Status> {
        // The identifier of the NVM command set.
        let nvm = set == 0;
        match cns {
            cns::NAMESPACE => self.identify_namespace(nsid),
            cns::ACTIVE_NAMESPACES => active_namespaces(nsid),
            cns::NAMESPACE_DESCRIPTORS => self.namespace_descriptors(nsid),
            // Limits of Verify, Write Zeroes and Dataset Management, all zero: none beyond those of the fields.
            cns::COMMAND_SET_CONTROLLER if nvm => Ok(vec![0; PAGE]),
            // Protection information, of which there is none.
            cns::COMMAND_SET_NAMESPACE if nvm && nsid == NSID => Ok(vec![0; PAGE]),
            cns::COMMAND_SET_NAMESPACE if nvm => Err(Status::INVALID_NAMESPACE),
            _ => Err(Status::INVALID_FIELD),
        }
    }

    fn optional_commands(&self) -> u16 {
        let compare = if self.namespace.keeps_data { identify::ONCS_COMPARE } else { 0 };
        compare
            | identify::ONCS_WRITE_UNCORRECTABLE
            | identify::ONCS_DSM
            | identify::ONCS_WRITE_ZEROES
            | identify::ONCS_TIMESTAMP
            | identify::ONCS_VERIFY
            | identify::ONCS_COPY
    }

    fn capacity(&self) -> u64 {
        self.namespace.blocks * u64::from(self.namespace.lba_bytes)
    }

    fn identify_namespace(&self, nsid: u32) -> Result<Vec<u8>, Status> {
        match nsid {
            NSID => Ok(self.namespace_data().as_bytes().to_vec()),
            // Every other is invalid, as NN is 1 (Base 3.2.1.2). Attributes common to all namespaces, which the broadcast
            // value asks for, would need namespace management.
            _ => Err(Status::INVALID_NAMESPACE),
        }
    }

    fn namespace_data(&self) -> Namespace {
        let mut data = Namespace::zeroed();
        (data.nsze, data.ncap) = (self.namespace.blocks.into(), self.namespace.blocks.into());
        data.nuse = self.namespace.blocks.into();
        data.nsfeat = identify::NSFEAT_DULBE | identify::NSFEAT_OPTPERF;
        data.flbas = LBA_FORMAT;
        data.nmic = identify::NMIC_SHARED;
        data.dlfeat = identify::DLFEAT_ZEROS | identify::DLFEAT_WRITE_ZEROES;
        data.nvmcap = u128::from(self.capacity()).to_le_bytes();
        let unit_z = (self.ftl.unit().bytes() / self.namespace.lba_bytes - 1) as u16;
        for field in [&mut data.npwg_z, &mut data.npwa_z, &mut data.npdg_z, &mut data.npda_z, &mut data.nows_z] {
            *field = unit_z.into();
        }
        (data.mssrl, data.mcl) = (self.namespace.max_source().into(), self.namespace.max_copy().into());
        data.msrc_z = (copy::MAX_RANGES - 1) as u8;
        self.fill_in_atomicity(&mut data);
        data.nguid = self.nguid();
        data.lbaf[usize::from(LBA_FORMAT)] =
            LbaFormat { ms: 0.into(), lbads: self.namespace.lba_bytes.ilog2() as u8, rp: 0 };
        data
    }

    /// Atomicity (NVM 2.1.4). What is reserved at once is accepted at once, and stays as a whole if the buffer keeps its
    /// data. Otherwise each mapping unit reaches the flash, or does not, when power is cut: a write that crosses a
    /// boundary of units may be torn there.
    fn fill_in_atomicity(&self, data: &mut Namespace) {
        data.nsfeat |= identify::NSFEAT_ATOMICITY;
        let atomic_z = blocks_z(self.atomic_sectors() / self.namespace.lba_sectors() as u32);
        (data.nawun_z, data.nacwu_z) = (atomic_z.into(), atomic_z.into());
        let unit_z = blocks_z(self.ftl.unit().bytes() / self.namespace.lba_bytes);
        match self.keeps_buffer() {
            true => data.nawupf_z = atomic_z.into(),
            false => (data.nawupf_z, data.nabspf_z) = (unit_z.into(), unit_z.into()),
        }
    }

    fn namespace_descriptors(&self, nsid: u32) -> Result<Vec<u8>, Status> {
        if nsid != NSID {
            return Err(Status::INVALID_NAMESPACE);
        }
        let descriptor = NguidDescriptor { nidt: 2, nidl: 16, reserved: [0; 2], nguid: self.nguid() };
        let mut page = vec![0; PAGE];
        page[..descriptor.as_bytes().len()].copy_from_slice(descriptor.as_bytes());
        Ok(page)
    }

    /// Derived from the serial number, so that a drive keeps it.
    fn nguid(&self) -> [u8; 16] {
        let seed = nandscape_sim::Seed::new(0).child(&self.serial);
        let (high, low) = (seed.nth(0).value(), seed.nth(1).value());
        (u128::from(high) << 64 | u128::from(low)).to_be_bytes()
    }

    pub(super) fn fill_in_smart(&self, smart: &mut Smart) {
        let (host, stats, cuts) = (self.counts.get(), self.ftl.stats(), u64::from(self.media.power_cuts()));
        smart.available_spare = self.available_spare();
        smart.available_spare_threshold = SPARE_THRESHOLD;
        smart.unsafe_shutdowns = cuts.into();
        smart.power_cycles = (1 + cuts).into();
        // In thousands of 512 bytes, rounded up.
        smart.data_units_read = host.read_bytes.div_ceil(512_000).into();
        smart.data_units_written = stats.host_bytes.div_ceil(512_000).into();
        smart.host_reads = host.reads.into();
        smart.host_writes = host.writes.into();
    }

    /// Percent of the spare blocks that are left; a drive that never had any has none.
    fn available_spare(&self) -> u8 {
        let (left, new) = self.ftl.spare_blocks();
        (left * 100).checked_div(new).unwrap_or(0) as u8
    }

    pub(super) fn critical_warnings(&self) -> u8 {
        let spare = if self.available_spare() < SPARE_THRESHOLD { log::WARNING_SPARE } else { 0 };
        spare | if self.ftl.is_read_only() { log::WARNING_READ_ONLY } else { 0 }
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
        if self.namespace.keeps_data {
            effects.io[usize::from(IoOpcode::COMPARE.0)] = read.into();
        }
    }
}

/// A number of blocks, counted from zero, as far as the field goes.
fn blocks_z(blocks: u32) -> u16 {
    (blocks - 1).min(u16::MAX.into()) as u16
}

/// The list of active namespaces above `nsid` (Base 5.1.13.2.2).
fn active_namespaces(nsid: u32) -> Result<Vec<u8>, Status> {
    // FFFFFFFEh and FFFFFFFFh can have nothing above them.
    if nsid >= NSID_ALL - 1 {
        return Err(Status::INVALID_NAMESPACE);
    }
    let mut page = vec![0; PAGE];
    if nsid < NSID {
        page[..4].copy_from_slice(&NSID.to_le_bytes());
    }
    Ok(page)
}
