//! A command rejected before it has any effect: its status, and the field at fault where the status does not imply it
//! (Parameter Error Location, Base 5.1.12.1.2).
//!
//! Left out: fields that follow from the status, such as the opcode of Invalid Command Opcode: the error log finds those
//! ([`by_status`]).

use nandscape_wire_nvme::command::FLAGS_FUSED;
use nandscape_wire_nvme::{AdminOpcode, IoOpcode, Parameter, Status, SubmissionEntry};

use crate::command_set::{Culprit, Failure};

/// See the file.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Refusal {
    pub(crate) status: Status,
    pub(crate) parameter: Parameter,
}

impl Refusal {
    /// Invalid Field in Command, for the field that begins at a bit of a command dword.
    pub(crate) const fn field(dword: u16, bit: u16) -> Refusal {
        Refusal::of(Status::INVALID_FIELD, Parameter::at(dword, bit))
    }

    /// A status, and the field at fault.
    pub(crate) const fn of(status: Status, parameter: Parameter) -> Refusal {
        Refusal { status, parameter }
    }

    /// Invalid Field in Command, for flags that must not be set here.
    pub(crate) const fn flags(flags: u8) -> Refusal {
        let field = if flags & FLAGS_FUSED != 0 { Parameter::FUSE } else { Parameter::PSDT };
        Refusal::of(Status::INVALID_FIELD, field)
    }

    /// Marks that a retry of the same command would fail.
    pub(crate) const fn final_(self) -> Refusal {
        Refusal { status: self.status.final_(), ..self }
    }
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Refusal {
        Refusal::of(status, Parameter::NONE)
    }
}

impl From<Refusal> for Failure {
    fn from(Refusal { status, parameter }: Refusal) -> Failure {
        let culprit = if parameter == Parameter::NONE { Culprit::Unknown } else { Culprit::Field(parameter) };
        Failure { status, culprit }
    }
}

/// Commands of one range of blocks, which name their first block in CDW10 and CDW11.
pub(crate) const OF_BLOCKS: [IoOpcode; 6] = [
    IoOpcode::READ,
    IoOpcode::WRITE,
    IoOpcode::COMPARE,
    IoOpcode::VERIFY,
    IoOpcode::WRITE_ZEROES,
    IoOpcode::WRITE_UNCORRECTABLE,
];

/// The field at fault that a status implies in every command.
pub(crate) fn by_status(status: Status, entry: &SubmissionEntry, is_admin: bool) -> Parameter {
    let is_io = |opcodes: &[IoOpcode]| !is_admin && opcodes.contains(&IoOpcode(entry.opcode));
    match status.meaning() {
        Status::INVALID_OPCODE => Parameter::OPCODE,
        Status::INVALID_NAMESPACE | Status::FEATURE_NOT_NAMESPACE_SPECIFIC => Parameter::NSID,
        Status::METADATA_SGL_LENGTH_INVALID => Parameter::MPTR,
        Status::DATA_SGL_LENGTH_INVALID
        | Status::INVALID_SGL_SEGMENT
        | Status::INVALID_SGL_COUNT
        | Status::SGL_TYPE_INVALID
        | Status::SGL_OFFSET_INVALID
        | Status::PRP_OFFSET_INVALID => Parameter::DPTR,
        Status::LBA_OUT_OF_RANGE if is_io(&OF_BLOCKS) => Parameter::at(10, 0),
        // Number of Logical Blocks.
        Status::ATOMIC_WRITE_UNIT_EXCEEDED => Parameter::at(12, 0),
        Status::INVALID_PROTECTION if is_io(&OF_BLOCKS) => Parameter::at(12, 26),
        // Log Page Identifier.
        Status::INVALID_LOG_PAGE => Parameter::at(10, 0),
        Status::FEATURE_NOT_SAVEABLE => Parameter::at(10, 31),
        // Queue Identifier, and Queue Size.
        Status::INVALID_QUEUE_ID | Status::INVALID_QUEUE_DELETION if is_admin => Parameter::at(10, 0),
        Status::INVALID_QUEUE_SIZE if is_admin => Parameter::at(10, 16),
        // Completion Queue Identifier, and Interrupt Vector.
        Status::COMPLETION_QUEUE_INVALID | Status::INVALID_INTERRUPT_VECTOR if is_admin => Parameter::at(11, 16),
        // Extended Data Structure, and Enable Extended Host Identifier.
        Status::HOST_ID_INCONSISTENT => Parameter::at(11, 0),
        Status::INVALID_FORMAT if is_admin && entry.opcode == AdminOpcode::FORMAT_NVM.0 => Parameter::at(10, 0),
        _ => Parameter::NONE,
    }
}
