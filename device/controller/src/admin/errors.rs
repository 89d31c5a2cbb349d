//! What is kept of commands that failed of the media: the Error Information log (Base 5.1.12.1.2).
//!
//! Left out: entries for commands that were malformed.

use std::collections::VecDeque;

use nandscape_wire_nvme::log::ErrorInformation;
use nandscape_wire_nvme::{Status, SubmissionEntry};
use zerocopy::IntoBytes;

/// Entries that are kept (Error Log Page Entries of Identify says so).
pub(crate) const KEPT: u8 = 64;

/// Commands that failed of the media, the newest first.
#[derive(Default)]
pub(crate) struct ErrorLog {
    entries: VecDeque<ErrorInformation>,
    count: u64,
}

impl ErrorLog {
    /// A command of I/O queue `queue` has failed, of block `lba` if that is known, else of its first. Media and Data
    /// Integrity Errors (status code type 2h) are kept. Whether its data could not be read or written.
    pub(crate) fn ended(&mut self, queue: u16, entry: &SubmissionEntry, status: Status, lba: Option<u64>) -> bool {
        if status.kind() != 2 {
            return false;
        }
        self.count += 1;
        self.entries.truncate(usize::from(KEPT) - 1);
        self.entries.push_front(ErrorInformation {
            error_count: self.count.into(),
            sqid: queue.into(),
            cid: entry.cid,
            // Bit 0 is the phase tag.
            status: (status.bits() << 1).into(),
            // No parameter is at fault.
            parameter: 0xffff.into(),
            lba: lba.unwrap_or_else(|| entry.slba()).into(),
            nsid: entry.nsid,
            opcode: entry.opcode,
            ..ErrorInformation::zeroed()
        });
        [Status::UNRECOVERED_READ_ERROR, Status::WRITE_FAULT].contains(&status.meaning())
    }

    /// Entries there ever were.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The log page: entries that are not used have an error count of zero.
    pub(crate) fn page(&self) -> Vec<u8> {
        let mut page: Vec<u8> = self.entries.iter().flat_map(|entry| entry.as_bytes().to_vec()).collect();
        page.resize(usize::from(KEPT) * size_of::<ErrorInformation>(), 0);
        page
    }
}
