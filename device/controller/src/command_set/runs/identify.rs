//! Identify and the Commands Supported and Effects log of a drive with runs.

use nandscape_wire_nvme::IoOpcode;
use nandscape_wire_nvme::identify::{self, Controller, LbaFormat, Namespace as IdentifyNamespace};
use nandscape_wire_nvme::log::{self, CommandsAndEffects};
use nandscape_wire_nvme::vendor::{Capabilities, HAS_RUNS, RUN_COMMIT, RUN_OPEN, RUN_REPORT};
use zerocopy::IntoBytes;

use super::Runs;
use crate::command_set::CommandSet;
use crate::namespace::Namespace;

/// The optional commands of the NVM command set that are not supported.
const LEFT_OUT: u16 =
    identify::ONCS_WRITE_UNCORRECTABLE | identify::ONCS_DSM | identify::ONCS_WRITE_ZEROES | identify::ONCS_COPY;
/// Their opcodes.
const LEFT_OUT_OPCODES: [IoOpcode; 4] =
    [IoOpcode::WRITE_UNCORRECTABLE, IoOpcode::DATASET_MANAGEMENT, IoOpcode::WRITE_ZEROES, IoOpcode::COPY];

impl Runs {
    pub(super) fn fill_in_controller(&self, data: &mut Controller) {
        data.oncs = (data.oncs.get() & !LEFT_OUT).into();
        data.fuses = 0.into();
        data.acwu_z = 0.into();
        if let Some(table) = Capabilities::of(&data.vendor) {
            let table = Capabilities { functions: (table.functions.get() | HAS_RUNS).into(), ..table };
            data.vendor[..size_of::<Capabilities>()].copy_from_slice(table.as_bytes());
        }
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
        data.nacwu_z = 0.into();
        data
    }

    pub(super) fn fill_in_effects(&self, effects: &mut CommandsAndEffects) {
        self.nvm.effects(effects);
        LEFT_OUT_OPCODES.iter().for_each(|opcode| effects.io[usize::from(opcode.0)] = 0.into());
        let supported = log::EFFECT_SUPPORTED | log::SCOPE_NAMESPACE;
        effects.io[usize::from(RUN_REPORT.0)] = supported.into();
        for opcode in [RUN_OPEN, RUN_COMMIT] {
            effects.io[usize::from(opcode.0)] = (supported | log::EFFECT_CONTENT_CHANGE).into();
        }
    }
}
