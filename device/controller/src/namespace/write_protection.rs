//! Namespace write protection (Base 8.1.16): a host sets a namespace read-only: until a host ends it, until power is lost, or
//! permanently.
//!
//! Left out: control of the states by a Replay Protected Memory Block, which the drive lacks.

use nandscape_wire_nvme::io::DSM_DEALLOCATE;
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

use super::Access;

/// Write Protection State (Base 5.1.25.1.31).
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(crate) enum WriteProtection {
    /// No Write Protect.
    #[default]
    None = 0,
    /// Write Protect: until a host ends it.
    On = 1,
    /// Write Protect Until Power Cycle.
    UntilPowerCycle = 2,
    /// Permanent Write Protect.
    Permanent = 3,
}

impl WriteProtection {
    /// The state of a value of the field; `None` for reserved ones.
    pub(crate) fn of(value: u32) -> Option<WriteProtection> {
        let all =
            [WriteProtection::None, WriteProtection::On, WriteProtection::UntilPowerCycle, WriteProtection::Permanent];
        all.into_iter().find(|state| *state as u32 == value)
    }

    /// Whether a host may set another state.
    pub(crate) fn is_changeable(self) -> bool {
        matches!(self, WriteProtection::None | WriteProtection::On)
    }

    /// The state after a loss of power.
    pub(crate) fn after_power_loss(self) -> WriteProtection {
        if self == WriteProtection::UntilPowerCycle { WriteProtection::None } else { self }
    }
}

/// Whether an I/O command is rejected on a write-protected namespace (Base 8.1.16.1). Flush is allowed, because the data is
/// already on flash; so are hints of Dataset Management.
pub(crate) fn is_refused(entry: &SubmissionEntry) -> bool {
    match IoOpcode(entry.opcode) {
        IoOpcode::FLUSH => false,
        IoOpcode::DATASET_MANAGEMENT => entry.cdw11.get() & DSM_DEALLOCATE != 0,
        _ => Access::of(entry.opcode) == Access::Write,
    }
}
