//! The Error Information log (Base 5.1.12.1.2): a record of failed commands.

use std::collections::VecDeque;

use nandscape_drive::QueueId;
use nandscape_wire_nvme::log::ErrorInformation;
use nandscape_wire_nvme::{IoOpcode, Parameter, Status, SubmissionEntry};
use zerocopy::IntoBytes;

use crate::command_set::Culprit;
use crate::refusal;

/// Entries of the log (ELPE of Identify).
pub(crate) const KEPT: u8 = 64;

/// Statuses that get no entry: the host knows the reason.
const NO_ENTRY: [Status; 7] = [
    Status::ABORT_REQUESTED,
    Status::ABORTED_SQ_DELETION,
    Status::ABORTED_POWER_LOSS,
    Status::FUSED_FAILED,
    Status::FUSED_MISSING,
    Status::ABORT_LIMIT_EXCEEDED,
    Status::EVENT_REQUEST_LIMIT_EXCEEDED,
];

/// Commands that failed, the newest first.
#[derive(Default)]
pub(crate) struct ErrorLog {
    entries: VecDeque<ErrorInformation>,
    count: u64,
}

impl ErrorLog {
    /// Records a failed command of `queue`. The entry names the block of `culprit`, or else the first block of the command.
    /// Returns whether an entry was made: commands that were aborted, or that exceed the limit of outstanding ones, get none.
    pub(crate) fn ended(&mut self, queue: u16, entry: &SubmissionEntry, status: Status, culprit: Culprit) -> bool {
        if NO_ENTRY.contains(&status.meaning()) {
            return false;
        }
        let (lba, parameter) = match culprit {
            Culprit::Block(lba) => (lba, Parameter::NONE),
            Culprit::Field(parameter) => (first_block(queue, entry), parameter),
            Culprit::Unknown => {
                (first_block(queue, entry), refusal::by_status(status, entry, queue == QueueId::ADMIN.0))
            }
        };
        self.count += 1;
        self.entries.truncate(usize::from(KEPT) - 1);
        self.entries.push_front(ErrorInformation {
            error_count: self.count.into(),
            sqid: queue.into(),
            cid: entry.cid,
            // Bit 0 is the phase tag.
            status: (status.with_more().bits() << 1).into(),
            parameter: parameter.bits().into(),
            lba: lba.into(),
            nsid: entry.nsid,
            opcode: entry.opcode,
            version: 1,
            ..ErrorInformation::zeroed()
        });
        true
    }

    /// Records a failure of the controller that no command caused.
    pub(crate) fn failed(&mut self, status: Status) {
        let none = SubmissionEntry { cid: 0xffff.into(), ..SubmissionEntry::default() };
        self.ended(0xffff, &none, status, Culprit::Unknown);
    }

    /// Entries ever made.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The log page. Unused entries have an error count of zero. During a sanitize operation, no entry names a block (NVM,
    /// "Sanitize Operations - Admin Commands Allowed").
    pub(crate) fn page(&self, is_sanitizing: bool) -> Vec<u8> {
        let told = |entry: &ErrorInformation| match is_sanitizing {
            true => ErrorInformation { lba: 0.into(), ..entry.clone() },
            false => entry.clone(),
        };
        let mut page: Vec<u8> = self.entries.iter().flat_map(|entry| told(entry).as_bytes().to_vec()).collect();
        page.resize(usize::from(KEPT) * size_of::<ErrorInformation>(), 0);
        page
    }
}

/// The first block that a command names; 0 where it names none.
fn first_block(queue: u16, entry: &SubmissionEntry) -> u64 {
    let has_blocks = match IoOpcode(entry.opcode) {
        _ if queue == QueueId::ADMIN.0 => false,
        IoOpcode::READ | IoOpcode::WRITE | IoOpcode::COMPARE | IoOpcode::VERIFY => true,
        IoOpcode::WRITE_ZEROES | IoOpcode::WRITE_UNCORRECTABLE | IoOpcode::COPY => true,
        _ => false,
    };
    if has_blocks { entry.slba() } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_commands_over_blocks_name_one() {
        let entry = |opcode: u8| SubmissionEntry { opcode, cdw10: 7.into(), ..SubmissionEntry::default() };
        assert_eq!(first_block(1, &entry(IoOpcode::READ.0)), 7);
        assert_eq!(first_block(1, &entry(IoOpcode::DATASET_MANAGEMENT.0)), 0);
        assert_eq!(first_block(1, &entry(IoOpcode::RESERVATION_REGISTER.0)), 0);
        assert_eq!(first_block(0, &entry(IoOpcode::READ.0)), 0, "Get Log Page");
    }
}
