//! The completion queue entry (Base 4.2).

use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::status::Status;

/// A completion, in 16 bytes.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct CompletionEntry {
    /// Command specific (DW0).
    pub dw0: U32,
    /// Command specific (DW1); reserved in the NVM command set, vendor fields for us (see [`crate::vendor`]).
    pub dw1: U32,
    /// SQ Head Pointer: how far the controller has fetched (DW2 bits 15:0).
    pub sq_head: U16,
    /// SQ Identifier (DW2 bits 31:16).
    pub sq_id: U16,
    /// Command Identifier (DW3 bits 15:0).
    pub cid: U16,
    /// Phase Tag (bit 0) and status (bits 15:1) (DW3 bits 31:16).
    pub status_and_phase: U16,
}

const _: () = assert!(size_of::<CompletionEntry>() == 16);

impl CompletionEntry {
    /// How the command ended.
    pub fn status(&self) -> Status {
        Status::from_bits(self.status_and_phase.get() >> 1)
    }

    /// The Phase Tag, which flips each time the queue wraps and so distinguishes new entries from old ones (Base
    /// 4.2.4).
    pub fn phase(&self) -> bool {
        self.status_and_phase.get() & 1 != 0
    }

    /// Sets status and Phase Tag.
    pub fn set_status(&mut self, status: Status, phase: bool) {
        self.status_and_phase = (status.bits() << 1 | u16::from(phase)).into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phase_and_status_share_the_last_two_bytes() {
        let mut entry = CompletionEntry::default();
        entry.set_status(Status::LBA_OUT_OF_RANGE.final_(), true);
        assert_eq!(entry.as_bytes()[14..], [0x01, 0x81]);
        assert_eq!((entry.status(), entry.phase()), (Status::LBA_OUT_OF_RANGE.final_(), true));
    }
}
