//! Identify and log pages of several NVM Sets: their common features, and their combined figures.

use nandscape_wire_nvme::identify::Controller;
use nandscape_wire_nvme::log::{CommandsAndEffects, Smart};
use nandscape_wire_nvme::vendor::{Capabilities, DriveLog, HAS_WINDOWS};
use zerocopy::IntoBytes;
use zerocopy::little_endian::U16;

use super::super::nvm::{FlashLog, Health};
use super::super::{CommandSet, Storage};
use super::{NvmSets, on};

impl NvmSets {
    /// Each limit is the minimum of all sets, and each option is offered if all sets have it.
    pub(super) fn fill_in_identify(&self, data: &mut Controller) {
        let mut each = self.all().map(|set| {
            let mut of_set = data.clone();
            on!(set, nvm => nvm.fill_in_identify(&mut of_set));
            of_set
        });
        let all = each.next().expect("there are sets");
        let all = each.fold(all, |mut all, of_set| {
            all.oncs = (all.oncs.get() & of_set.oncs.get()).into();
            all.fuses = (all.fuses.get() & of_set.fuses.get()).into();
            all.copy_formats = (all.copy_formats.get() & of_set.copy_formats.get()).into();
            all.vwc |= of_set.vwc;
            let least = |one: U16, other: U16| U16::from(one.get().min(other.get()));
            all.awun_z = least(all.awun_z, of_set.awun_z);
            all.awupf_z = least(all.awupf_z, of_set.awupf_z);
            all.acwu_z = least(all.acwu_z, of_set.acwu_z);
            all
        });
        *data = all;
        let capabilities = self.capabilities();
        let bytes = capabilities.as_bytes();
        data.vendor[..bytes.len()].copy_from_slice(bytes);
    }

    fn capabilities(&self) -> Capabilities {
        let each = self.all().map(|set| on!(set, nvm => nvm.capabilities()));
        let least = |one: Capabilities, other: Capabilities| Capabilities {
            attributes: (one.attributes.get() & other.attributes.get()).into(),
            hints: (one.hints.get() & other.hints.get()).into(),
            // Windows require one FTL.
            functions: (one.functions.get() & other.functions.get() & !HAS_WINDOWS).into(),
            atomic_units: one.atomic_units.get().min(other.atomic_units.get()).into(),
            atomic_bytes: one.atomic_bytes.get().min(other.atomic_bytes.get()).into(),
            ..one
        };
        each.reduce(least).expect("there are sets")
    }

    /// The commands that all sets have.
    pub(super) fn fill_in_effects(&self, effects: &mut CommandsAndEffects) {
        let mut each = self.all().map(|set| {
            let mut of_set = effects.clone();
            on!(set, nvm => nvm.effects(&mut of_set));
            of_set
        });
        let all = each.next().expect("there are sets");
        let all = each.fold(all, |mut all, of_set| {
            for (effect, other) in all.io.iter_mut().zip(of_set.io) {
                *effect = (effect.get() & other.get()).into();
            }
            all
        });
        *effects = all;
    }

    /// The figures of all endurance groups together (Base 5.1.12.1.3).
    pub(super) fn fill_in_smart(&self, smart: &mut Smart) {
        let each = self.all().map(|set| on!(set, nvm => nvm.health()));
        let all = each.reduce(|one: Health, other| one.with(&other)).expect("there are sets");
        all.fill_in(smart);
        smart.endurance_group_warnings = self.warnings();
    }

    pub(super) fn fill_in_drive_log(&self, log: &mut DriveLog) {
        let each = self.all().map(|set| on!(set, nvm => nvm.flash_log()));
        each.reduce(FlashLog::with).expect("there are sets").fill_in(log);
    }
}
