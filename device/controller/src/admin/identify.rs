//! Identify (Base 5.1.13): Identify Controller.

use nandscape_drive::Controller as _;
use nandscape_wire_nvme::identify::{self, Controller, ascii, cns};
use nandscape_wire_nvme::register::VERSION_2_1;
use nandscape_wire_nvme::{SubmissionEntry, feature, tcp, vendor};
use zerocopy::IntoBytes;

use super::features::{CRITICAL_TEMPERATURE, WARNING_TEMPERATURE};
use super::{ABORTS, Answer, EVENT_REQUESTS, errors};
use crate::engine::NvmeController;
use crate::namespace::MAX_NAMESPACES;
use crate::refusal::Refusal;

/// Bytes of every Identify data structure.
pub(crate) const PAGE: usize = 4_096;

impl NvmeController {
    pub(super) fn identify(&self, entry: &SubmissionEntry) -> Result<Answer, Refusal> {
        match entry.cdw10.get() as u8 {
            cns::CONTROLLER => Ok(Answer::data(self.identify_controller().as_bytes())),
            _ => self.identify_other(entry).map(|data| Answer { data, ..Answer::default() }),
        }
    }

    /// The fields that differ over Fabrics, where capsules carry commands and some data (Base 5.1.13.2.1).
    fn message_fields(&self, data: &mut Controller) {
        let bytes = size_of::<SubmissionEntry>() as u32 + tcp::ADMIN_IN_CAPSULE;
        (data.ioccsz, data.iorcsz) = ((bytes / 16).into(), 1.into());
        // Each command has one data block.
        data.msdbd = 1;
        data.ofcs = identify::OFCS_DISCONNECT.into();
        data.sgls = identify::SGLS_MESSAGE.into();
        // One entry of a queue stays empty.
        data.maxcmd = ((self.subsystem.config.max_queue_entries - 1) as u16).into();
    }

    /// The fields for namespace management.
    fn namespace_fields(&self, data: &mut Controller) {
        data.oacs = (data.oacs.get() | identify::OACS_FORMAT | identify::OACS_NAMESPACES).into();
        let erases = identify::SANICAP_BLOCK | identify::SANICAP_OVERWRITE;
        let erases = if self.subsystem.set.info().sanitizes { erases } else { 0 };
        let after = identify::SANICAP_NO_DEALLOCATE_INHIBITED | identify::SANICAP_NOT_MODIFIED;
        data.sanicap = (identify::SANICAP_CRYPTO | erases | after).into();
        data.ctratt = (data.ctratt.get() | identify::CTRATT_GRANULARITY).into();
        if self.has_sets() {
            data.ctratt = (data.ctratt.get() | identify::CTRATT_NVM_SETS | identify::CTRATT_ENDURANCE_GROUPS).into();
            let sets = self.subsystem.namespaces.sets() as u16;
            (data.nsetidmax, data.endgidmax) = (sets.into(), sets.into());
        }
        if self.has_placement() {
            let placement = identify::CTRATT_ENDURANCE_GROUPS | identify::CTRATT_PLACEMENT;
            data.ctratt = (data.ctratt.get() | placement).into();
            data.endgidmax = 1.into();
        }
        data.fna = identify::FNA_CRYPTO;
        data.unvmcap = u128::from(self.subsystem.namespaces.unallocated()).to_le_bytes();
        data.tnvmcap = u128::from(self.subsystem.namespaces.capacity()).to_le_bytes();
    }

    fn identify_controller(&self) -> Controller {
        let mut data = Controller::zeroed();
        let names = &self.subsystem.names;
        (data.sn, data.mn, data.fr) = (ascii(&names.serial), ascii(&names.model), ascii(&names.firmware));
        (data.vid, data.ssvid) = (vendor::PCI_VENDOR.into(), vendor::PCI_VENDOR.into());
        data.rab = 3;
        data.mdts = (self.subsystem.config.max_transfer / PAGE as u32).ilog2() as u8;
        data.cmic = if self.reports_several() { identify::CMIC_SEVERAL_CONTROLLERS } else { 0 };
        data.cntlid = self.id().into();
        data.ver = VERSION_2_1.into();
        data.cntrltype = 1;
        data.elpe_z = errors::KEPT - 1;
        data.aerl_z = EVENT_REQUESTS - 1;
        // The one firmware slot is read-only.
        data.frmw = identify::FRMW_FIRST_READ_ONLY | identify::FRMW_ONE_SLOT;
        data.lpa = identify::LPA_EFFECTS | identify::LPA_EXTENDED | identify::LPA_IDENTIFIERS | identify::LPA_TELEMETRY;
        (data.wctemp, data.cctemp) = (WARNING_TEMPERATURE.into(), CRITICAL_TEMPERATURE.into());
        data.acl_z = ABORTS - 1;
        data.kas = self.keep_alive_units().into();
        let doorbells = if self.takes_doorbell_buffers() { identify::OACS_DOORBELL_BUFFER } else { 0 };
        let directives = if self.has_directives() { identify::OACS_DIRECTIVES } else { 0 };
        data.oacs = (doorbells | directives | identify::OACS_SELF_TEST).into();
        (data.edstt, data.dsto) = (self.subsystem.self_test_minutes().into(), identify::DSTO_ONE);
        data.oaes = identify::OAES_NAMESPACE.into();
        data.ctratt = identify::CTRATT_EXTENDED_HOST_ID.into();
        if self.subsystem.has_latency_mode() {
            data.ctratt = (data.ctratt.get() | identify::CTRATT_PREDICTABLE_LATENCY).into();
            data.oaes = (data.oaes.get() | feature::EVENT_PREDICTABLE_LATENCY).into();
        }
        if self.subsystem.set.administration().is_some() {
            self.namespace_fields(&mut data);
        }
        (data.sqes, data.cqes) = (0x66, 0x44);
        if self.passes_messages() {
            self.message_fields(&mut data);
        } else if self.takes_sgls() {
            let metadata = if self.subsystem.set.info().keeps_metadata { identify::SGLS_METADATA } else { 0 };
            let sgls = identify::SGLS_SUPPORTED | identify::SGLS_BIT_BUCKET | identify::SGLS_LONGER;
            data.sgls = (sgls | metadata).into();
        }
        (data.nn, data.mnan) = (MAX_NAMESPACES.into(), MAX_NAMESPACES.into());
        data.nwpc = identify::NWPC_ALL;
        data.subnqn = [0; 256];
        data.subnqn.iter_mut().zip(names.nqn.bytes()).for_each(|(to, from)| *to = from);
        let capabilities = vendor::Capabilities { magic: vendor::MAGIC, version: 1.into(), ..Default::default() };
        let bytes = capabilities.as_bytes();
        data.vendor[..bytes.len()].copy_from_slice(bytes);
        self.subsystem.set.identify_controller(&mut data);
        data
    }
}
