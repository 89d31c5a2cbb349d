//! Identify (Base 5.1.13, NVM 4.1.5).

use nandscape_device_ftl::Ftl;
use nandscape_wire_nvme::identify::{self, Controller, LbaFormat, Namespace, NguidDescriptor, ascii, cns};
use nandscape_wire_nvme::{NSID_ALL, Status, SubmissionEntry, vendor};
use zerocopy::IntoBytes;

use super::{Answer, EVENT_REQUESTS, errors};
use crate::controller::{NSID, NvmeController};

/// Bytes of every Identify data structure.
const PAGE: usize = 4_096;
/// NVMe 2.1.
const VERSION: u32 = 0x0002_0100;
/// The only LBA format is the first.
const LBA_FORMAT: u8 = 0;

impl<F: Ftl> NvmeController<F> {
    pub(super) fn identify(&self, entry: &SubmissionEntry) -> Result<Answer, Status> {
        let nsid = entry.nsid.get();
        // The Command Set Identifier (CDW11 bits 31:24) of the NVM command set is 0.
        let nvm = entry.cdw11.get() >> 24 == 0;
        match entry.cdw10.get() as u8 {
            cns::CONTROLLER => Ok(Answer::data(self.identify_controller().as_bytes())),
            cns::NAMESPACE => self.identify_namespace(nsid),
            cns::ACTIVE_NAMESPACES => active_namespaces(nsid),
            cns::NAMESPACE_DESCRIPTORS => self.namespace_descriptors(nsid),
            // Limits of Verify, Write Zeroes and Dataset Management, all zero: none beyond those of the fields.
            cns::COMMAND_SET_CONTROLLER if nvm => Ok(Answer::data(&[0; PAGE])),
            // Protection information, of which there is none.
            cns::COMMAND_SET_NAMESPACE if nvm && nsid == NSID => Ok(Answer::data(&[0; PAGE])),
            cns::COMMAND_SET_NAMESPACE if nvm => Err(Status::INVALID_NAMESPACE),
            _ => Err(Status::INVALID_FIELD),
        }
    }

    fn identify_controller(&self) -> Controller {
        let mut data = Controller::zeroed();
        data.sn = ascii(&self.config.identity.serial);
        data.mn = ascii(&self.config.identity.model);
        data.fr = ascii(env!("CARGO_PKG_VERSION"));
        data.rab = 3;
        data.mdts = (self.config.max_transfer / PAGE as u32).ilog2() as u8;
        data.ver = VERSION.into();
        data.cntrltype = 1;
        data.elpe_z = errors::KEPT - 1;
        data.aerl_z = EVENT_REQUESTS - 1;
        // There is always a slot; no command writes it.
        data.frmw = identify::FRMW_FIRST_READ_ONLY | identify::FRMW_ONE_SLOT;
        data.lpa = identify::LPA_EFFECTS | identify::LPA_EXTENDED | identify::LPA_IDENTIFIERS;
        (data.wctemp, data.cctemp) = (343.into(), 353.into());
        data.tnvmcap = u128::from(self.capacity()).to_le_bytes();
        (data.sqes, data.cqes) = (0x66, 0x44);
        data.nn = 1.into();
        data.oncs = self.optional_commands().into();
        let volatile = if self.has_volatile_cache() { identify::VWC_PRESENT } else { 0 };
        data.vwc = volatile | identify::VWC_FLUSH_ALL;
        data.subnqn = [0; 256];
        let nqn = format!("nqn.2026-11.org.nandscape:{}", self.config.identity.serial);
        data.subnqn.iter_mut().zip(nqn.bytes()).for_each(|(to, from)| *to = from);
        let capabilities = vendor::Capabilities { magic: vendor::MAGIC, version: 1.into(), ..Default::default() };
        let bytes = capabilities.as_bytes();
        data.vendor[..bytes.len()].copy_from_slice(bytes);
        data
    }

    fn optional_commands(&self) -> u16 {
        let compare = if self.namespace.keeps_data { identify::ONCS_COMPARE } else { 0 };
        compare | identify::ONCS_DSM | identify::ONCS_WRITE_ZEROES | identify::ONCS_TIMESTAMP | identify::ONCS_VERIFY
    }

    fn capacity(&self) -> u64 {
        self.namespace.blocks * u64::from(self.namespace.lba_bytes)
    }

    fn identify_namespace(&self, nsid: u32) -> Result<Answer, Status> {
        match nsid {
            NSID => Ok(Answer::data(self.namespace_data().as_bytes())),
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
        data.dlfeat = identify::DLFEAT_ZEROS | identify::DLFEAT_WRITE_ZEROES;
        data.nvmcap = u128::from(self.capacity()).to_le_bytes();
        let unit_z = (self.ftl.unit().bytes() / self.namespace.lba_bytes - 1) as u16;
        for field in [&mut data.npwg_z, &mut data.npwa_z, &mut data.npdg_z, &mut data.npda_z, &mut data.nows_z] {
            *field = unit_z.into();
        }
        data.nguid = self.nguid();
        data.lbaf[usize::from(LBA_FORMAT)] =
            LbaFormat { ms: 0.into(), lbads: self.namespace.lba_bytes.ilog2() as u8, rp: 0 };
        data
    }

    fn namespace_descriptors(&self, nsid: u32) -> Result<Answer, Status> {
        if nsid != NSID {
            return Err(Status::INVALID_NAMESPACE);
        }
        let descriptor = NguidDescriptor { nidt: 2, nidl: 16, reserved: [0; 2], nguid: self.nguid() };
        let mut page = [0; PAGE];
        page[..descriptor.as_bytes().len()].copy_from_slice(descriptor.as_bytes());
        Ok(Answer::data(&page))
    }

    /// Derived from the serial number, so that a drive keeps it.
    fn nguid(&self) -> [u8; 16] {
        let seed = nandscape_sim::Seed::new(0).child(&self.config.identity.serial);
        let (high, low) = (seed.nth(0).value(), seed.nth(1).value());
        (u128::from(high) << 64 | u128::from(low)).to_be_bytes()
    }
}

/// The list of active namespaces above `nsid` (Base 5.1.13.2.2).
fn active_namespaces(nsid: u32) -> Result<Answer, Status> {
    // FFFFFFFEh and FFFFFFFFh can have nothing above them.
    if nsid >= NSID_ALL - 1 {
        return Err(Status::INVALID_NAMESPACE);
    }
    let mut page = [0; PAGE];
    if nsid < NSID {
        page[..4].copy_from_slice(&NSID.to_le_bytes());
    }
    Ok(Answer::data(&page))
}
