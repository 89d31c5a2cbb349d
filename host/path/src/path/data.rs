//! The data of a command: its direction, its size, and what copying it costs.

use nandscape_sim::Span;
use nandscape_wire_nvme::io::Cdw12;
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

use crate::config::Config;

/// Copying the data of a command.
pub(crate) fn copy_of(config: &Config, command: &SubmissionEntry, lba_bytes: u32) -> Span {
    let bytes = u128::from(bytes_of(command, lba_bytes));
    Span::from_ns((u128::from(config.costs.copy.ns()) * bytes / 4_096) as u64)
}

/// Whether a command takes data to the drive.
pub(crate) fn is_to_drive(opcode: IoOpcode) -> bool {
    matches!(opcode, IoOpcode::WRITE | IoOpcode::COMPARE | IoOpcode::ZONE_APPEND)
}

/// Bytes of data of a command, whose namespace has logical blocks of this size.
pub(crate) fn bytes_of(command: &SubmissionEntry, lba_bytes: u32) -> u64 {
    let opcode = IoOpcode(command.opcode);
    match is_to_drive(opcode) || opcode == IoOpcode::READ {
        true => (u64::from(Cdw12::of(command).nlb_z()) + 1) * u64::from(lba_bytes),
        false => 0,
    }
}

/// Mapping units that the data of a command touches.
pub(crate) fn units_of(command: &SubmissionEntry, lba_bytes: u32, unit_bytes: u32) -> u32 {
    let (unit, lba) = (u64::from(unit_bytes.max(1)), u64::from(lba_bytes));
    let from = command.slba().saturating_mul(lba);
    let to = from.saturating_add(bytes_of(command, lba_bytes));
    (to.div_ceil(unit) - from / unit) as u32
}
