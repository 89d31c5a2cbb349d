//! The properties of a discovery controller, and the effect of a write to CC (Base 3.1.4, 3.6.2). It has nothing to
//! load and nothing to flush: it is ready, reset and shut down at once.

use nandscape_wire_nvme::Status;
use nandscape_wire_nvme::fabrics::{Property, SIZE_4, SIZE_8};
use nandscape_wire_nvme::register::{
    self, CSTS_CFS, CSTS_RDY, CSTS_SHUT_DOWN, Capabilities, ControllerConfiguration, VERSION_2_1,
};

use super::ENTRIES;

/// The longest time to become ready, in 500 ms.
const TIMEOUT: u8 = 10;

/// See the file.
#[derive(Default)]
pub(super) struct Properties {
    cc: ControllerConfiguration,
    csts: u32,
}

impl Properties {
    /// Property Get.
    ///
    /// # Errors
    /// Invalid Field in Command, for an unknown property, or one of another size.
    pub(super) fn get(&self, property: &Property) -> Result<u64, Status> {
        let capabilities =
            Capabilities { max_entries_z: ENTRIES - 1, timeout: TIMEOUT, command_sets: Capabilities::NVM };
        match (property.offset.get(), property.attributes & 0b111) {
            (register::CAP, SIZE_8) => Ok(capabilities.bits()),
            (register::VS, SIZE_4) => Ok(VERSION_2_1.into()),
            (register::CC, SIZE_4) => Ok(self.cc.0.into()),
            (register::CSTS, SIZE_4) => Ok(self.csts.into()),
            // Hosts request it where CAP.CRMS indicates that the controller is ready with its media.
            (register::CRTO, SIZE_4) => Ok(TIMEOUT.into()),
            _ => Err(Status::INVALID_FIELD),
        }
    }

    /// Property Set; whether it has reset the controller.
    ///
    /// # Errors
    /// Invalid Field in Command, for a property that cannot be written.
    pub(super) fn set(&mut self, property: &Property) -> Result<bool, Status> {
        match (property.offset.get(), property.attributes & 0b111) {
            (register::CC, SIZE_4) => Ok(self.configure(ControllerConfiguration(property.value.get() as u32))),
            _ => Err(Status::INVALID_FIELD),
        }
    }

    fn configure(&mut self, to: ControllerConfiguration) -> bool {
        let from = std::mem::replace(&mut self.cc, to);
        match (from.enabled(), to.enabled()) {
            (true, false) => self.csts = 0,
            (false, true) => {
                // A shutdown ends only if its notification is cleared by the same write.
                let shut_down = if to.shutdown() == 0 { 0 } else { self.csts & CSTS_SHUT_DOWN };
                self.csts = shut_down | if is_supported(to) { CSTS_RDY } else { CSTS_CFS };
            }
            _ => {}
        }
        if from.shutdown() == 0 && to.shutdown() != 0 {
            self.csts |= CSTS_SHUT_DOWN;
        }
        from.enabled() && !to.enabled()
    }

    /// Whether commands other than Fabrics commands are processed, and the Keep Alive Timer is active.
    pub(super) fn is_serving(&self) -> bool {
        self.csts == CSTS_RDY
    }
}

/// The values in CAP: pages of 4 KiB, round robin with or without weights, the NVM command set.
fn is_supported(cc: ControllerConfiguration) -> bool {
    cc.page_bytes() == 4_096 && cc.arbitration() <= 1 && cc.command_set() == 0
}
