//! The types of reservation, and the access that each type leaves to other hosts (Base 8.1.22, "Command Behavior in the
//! Presence of a Reservation").

use nandscape_wire_nvme::IoOpcode;

/// Reservation Type: which hosts may do what.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    WriteExclusive = 1,
    ExclusiveAccess = 2,
    WriteExclusiveRegistrants = 3,
    ExclusiveAccessRegistrants = 4,
    WriteExclusiveAll = 5,
    ExclusiveAccessAll = 6,
}

impl Kind {
    pub(crate) fn of(value: u8) -> Option<Kind> {
        use Kind::*;
        let all = [
            WriteExclusive,
            ExclusiveAccess,
            WriteExclusiveRegistrants,
            ExclusiveAccessRegistrants,
            WriteExclusiveAll,
            ExclusiveAccessAll,
        ];
        all.into_iter().find(|kind| *kind as u8 == value)
    }

    /// Whether all registrants hold it.
    pub(super) fn is_of_all(self) -> bool {
        matches!(self, Kind::WriteExclusiveAll | Kind::ExclusiveAccessAll)
    }

    /// Whether only its holder may write.
    pub(super) fn is_of_one(self) -> bool {
        matches!(self, Kind::WriteExclusive | Kind::ExclusiveAccess)
    }

    /// Whether reads are restricted as writes are.
    pub(super) fn restricts_reads(self) -> bool {
        matches!(self, Kind::ExclusiveAccess | Kind::ExclusiveAccessRegistrants | Kind::ExclusiveAccessAll)
    }
}

/// The access of a command to a namespace, as checked by reservations.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    Read,
    Write,
}

impl Access {
    /// The access of an I/O command.
    pub(crate) fn of(opcode: u8) -> Access {
        match IoOpcode(opcode) {
            IoOpcode::READ | IoOpcode::COMPARE | IoOpcode::VERIFY | IoOpcode::ZONE_MANAGEMENT_RECEIVE => Access::Read,
            _ => Access::Write,
        }
    }
}
