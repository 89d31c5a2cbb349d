//! Identify and the Commands Supported and Effects log of the Zoned Namespace command set (ZNS 4.1.5).

use nandscape_wire_nvme::identify::{self, Controller, LbaFormat, Namespace as IdentifyNamespace};
use nandscape_wire_nvme::log::{self, CommandsAndEffects};
use nandscape_wire_nvme::{IoOpcode, zns};
use zerocopy::{FromZeros, IntoBytes};

use super::Zns;
use crate::admin::PAGE;
use crate::command_set::CommandSet;
use crate::namespace::Namespace;

/// The optional commands of the NVM command set that are not supported.
const LEFT_OUT: u16 = identify::ONCS_WRITE_UNCORRECTABLE | identify::ONCS_DSM | identify::ONCS_WRITE_ZEROES;
/// Their opcodes.
const LEFT_OUT_OPCODES: [IoOpcode; 3] =
    [IoOpcode::WRITE_UNCORRECTABLE, IoOpcode::DATASET_MANAGEMENT, IoOpcode::WRITE_ZEROES];

impl Zns {
    pub(super) fn fill_in_controller(&self, data: &mut Controller) {
        data.oncs = (data.oncs.get() & !LEFT_OUT).into();
        data.fuses = 0.into();
        data.acwu_z = 0.into();
        data.oaes = (data.oaes.get() | identify::OAES_ZONE_CHANGED).into();
    }

    /// The only format has logical blocks of a unit of the FTL.
    pub(super) fn namespace_data(&self, namespace: Option<&Namespace>) -> IdentifyNamespace {
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
        // A deallocated block is an unwritten block.
        data.dlfeat = identify::DLFEAT_ZEROS;
        // A Copy is written like one Write.
        data.mcl = namespace.map_or(0, |namespace| namespace.max_blocks).into();
        data.nacwu_z = 0.into();
        data
    }

    /// Identify Namespace of the command set.
    pub(super) fn specific_data(&self, namespace: Option<&Namespace>, set: u8) -> Vec<u8> {
        let Some(namespace) = namespace.filter(|_| set == zns::CSI) else { return vec![0; PAGE] };
        let config = self.nvm.ftl().config();
        let mut data = zns::IdentifyNamespace::new_zeroed();
        let zrwa = config.zrwa;
        data.ozcs = (zns::OZCS_READ_ACROSS | if zrwa.size > 0 { zns::OZCS_ZRWA } else { 0 }).into();
        // If all zones may be active or open, no limit is reported.
        let limit_z = |limit: u32| if limit == config.zones { u32::MAX } else { limit - 1 };
        (data.mar_z, data.mor_z) = (limit_z(config.max_active).into(), limit_z(config.max_open).into());
        if zrwa.size > 0 {
            data.numzrwa_z = (zrwa.zones - 1).into();
            (data.zrwasz, data.zrwafg) = ((zrwa.size as u16).into(), (zrwa.granularity as u16).into());
            data.zrwacap = zns::ZRWACAP_EXPLICIT_FLUSH;
        }
        let format = usize::from(namespace.format.flbas() & 0xf);
        data.lbafe[format].zsze = u64::from(config.size).into();
        data.lbafe[format].zdes = (config.extension / 64) as u8;
        data.as_bytes().to_vec()
    }

    pub(super) fn fill_in_effects(&self, effects: &mut CommandsAndEffects) {
        self.nvm.effects(effects);
        LEFT_OUT_OPCODES.iter().for_each(|opcode| effects.io[usize::from(opcode.0)] = 0.into());
        let supported = log::EFFECT_SUPPORTED | log::SCOPE_NAMESPACE;
        effects.io[usize::from(IoOpcode::ZONE_MANAGEMENT_RECEIVE.0)] = supported.into();
        for opcode in [IoOpcode::ZONE_MANAGEMENT_SEND, IoOpcode::ZONE_APPEND] {
            effects.io[usize::from(opcode.0)] = (supported | log::EFFECT_CONTENT_CHANGE).into();
        }
    }
}
