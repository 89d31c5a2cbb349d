//! The work of commands on logical blocks, for all I/O command sets: the reads, writes and trims of figures and
//! traces.
//!
//! Left out: bytes that Copy and Dataset Management name in their data.

use crate::command::SubmissionEntry;
use crate::io::Cdw12;
use crate::opcode::IoOpcode;
use crate::open_channel::{VECTOR_READ, VECTOR_RESET, VECTOR_WRITE};

/// The effect of a command on the data of logical blocks.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum BlockWork {
    /// It reads it, whether the host gets it or not.
    Read,
    /// It writes it.
    Write,
    /// It gives it up.
    Deallocate,
}

/// The commands of the NVM command set with a number of logical blocks in CDW12 (NLB), a bit for each opcode.
const HAVE_NLB: u32 = 1 << IoOpcode::READ.0
    | 1 << IoOpcode::WRITE.0
    | 1 << IoOpcode::COMPARE.0
    | 1 << IoOpcode::VERIFY.0
    | 1 << IoOpcode::WRITE_ZEROES.0
    | 1 << IoOpcode::WRITE_UNCORRECTABLE.0;

impl IoOpcode {
    /// The work of commands with this opcode on the data of logical blocks; `None` for commands without such work, or
    /// that copy.
    pub const fn block_work(self) -> Option<BlockWork> {
        match self {
            IoOpcode::READ | IoOpcode::COMPARE | IoOpcode::VERIFY | VECTOR_READ => Some(BlockWork::Read),
            IoOpcode::WRITE | IoOpcode::WRITE_ZEROES | IoOpcode::ZONE_APPEND | VECTOR_WRITE => Some(BlockWork::Write),
            IoOpcode::DATASET_MANAGEMENT | VECTOR_RESET => Some(BlockWork::Deallocate),
            _ => None,
        }
    }
}

impl SubmissionEntry {
    /// The number of logical blocks of an I/O command with a first block and a number; 0 for others.
    #[inline]
    pub fn blocks_in_a_row(&self) -> u32 {
        match HAVE_NLB.checked_shr(self.opcode.into()) {
            Some(bits) => (bits & 1) * (u32::from(Cdw12::of(self).nlb_z()) + 1),
            None => 0,
        }
    }

    /// Whether it is an I/O command that writes with Force Unit Access (NVM 3.2, ZNS 3.4.1): it completes on flash.
    #[inline]
    pub fn is_forced_write(&self) -> bool {
        let writes = [IoOpcode::WRITE, IoOpcode::WRITE_ZEROES, IoOpcode::ZONE_APPEND].contains(&IoOpcode(self.opcode));
        writes && Cdw12::of(self).fua()
    }

    /// The logical blocks that an I/O command reads or writes, wherever they are; 0 if its entry does not contain the
    /// number.
    #[inline]
    pub fn blocks_named(&self) -> u32 {
        match IoOpcode(self.opcode) {
            IoOpcode::ZONE_APPEND => u32::from(Cdw12::of(self).nlb_z()) + 1,
            VECTOR_READ | VECTOR_WRITE => self.vector_z() + 1,
            _ => self.blocks_in_a_row(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open_channel::VECTOR_COPY;

    #[test]
    fn writes_with_fua_are_forced_and_reads_are_not() {
        for (opcode, forced) in [(IoOpcode::WRITE, true), (IoOpcode::ZONE_APPEND, true), (IoOpcode::READ, false)] {
            let plain = SubmissionEntry::blocks(opcode, 1, 0, 8);
            let entry = SubmissionEntry { cdw12: (plain.cdw12.get() | crate::io::FUA).into(), ..plain };
            assert_eq!((plain.is_forced_write(), entry.is_forced_write()), (false, forced), "{opcode:?}");
        }
    }

    #[test]
    fn blocks_are_those_of_commands_that_name_a_number() {
        let blocks = |opcode, count| {
            let entry = SubmissionEntry::blocks(opcode, 1, 100, count);
            (entry.blocks_in_a_row(), entry.blocks_named())
        };
        for opcode in [IoOpcode::READ, IoOpcode::WRITE, IoOpcode::VERIFY, IoOpcode::WRITE_UNCORRECTABLE] {
            assert_eq!(blocks(opcode, 0x1_0000), (0x1_0000, 0x1_0000), "{opcode:?}");
        }
        assert_eq!(blocks(IoOpcode::ZONE_APPEND, 9), (0, 9));
        assert_eq!((blocks(VECTOR_READ, 64), blocks(VECTOR_WRITE, 1)), ((0, 64), (0, 1)));
        let unnamed = [IoOpcode::COPY, IoOpcode::FLUSH, IoOpcode::RESERVATION_ACQUIRE, VECTOR_COPY, IoOpcode(0x7f)];
        for opcode in unnamed.into_iter().chain([IoOpcode(0xff), VECTOR_RESET, IoOpcode::DATASET_MANAGEMENT]) {
            assert_eq!(blocks(opcode, 8), (0, 0), "{opcode:?}");
        }
    }
}
