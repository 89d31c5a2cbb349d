//! Commands to a drive that is not an NVMe controller (an array, a disk), checked as a controller checks them (NVM
//! 3.3; Base 4.1).
//!
//! Left out: Copy, Write Uncorrectable, metadata and protection information, which such drives do not support.

use nandscape_wire_nvme::command::{FLAGS_FUSED, FLAGS_PSDT};
use nandscape_wire_nvme::io::{Cdw12, DSM_DEALLOCATE, DsmRange};
use nandscape_wire_nvme::{IoOpcode, NSID_ALL, Status, SubmissionEntry};
use zerocopy::FromBytes;

use crate::drive::DriveInfo;
use crate::io::Io;
use crate::mem::HostMem;

/// Blocks of a command.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Extent {
    /// The first logical block.
    pub slba: u64,
    /// Logical blocks, at least one.
    pub blocks: u32,
}

/// A command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Command {
    /// Read.
    Read(Extent),
    /// Write.
    Write(Extent),
    /// Compare.
    Compare(Extent),
    /// Verify.
    Verify(Extent),
    /// Write Zeroes.
    Zeroes(Extent),
    /// Dataset Management that deallocates ranges of blocks.
    Deallocate(Vec<(u64, u32)>),
    /// Attributes of ranges that change nothing.
    Hints,
    /// Flush.
    Flush,
}

impl Command {
    /// The command, if all is right with it.
    ///
    /// # Errors
    /// The status of a command with a field that is not valid.
    pub fn parse(io: &Io, info: &DriveInfo) -> Result<Command, Status> {
        let entry = &io.command;
        let opcode = IoOpcode(entry.opcode);
        let is_known = matches!(
            opcode,
            IoOpcode::READ
                | IoOpcode::WRITE
                | IoOpcode::VERIFY
                | IoOpcode::WRITE_ZEROES
                | IoOpcode::FLUSH
                | IoOpcode::DATASET_MANAGEMENT
        ) || (opcode == IoOpcode::COMPARE && info.keeps_data);
        if !is_known {
            return Err(Status::INVALID_OPCODE.final_());
        }
        if entry.flags & FLAGS_FUSED != 0 || entry.flags & FLAGS_PSDT == FLAGS_PSDT {
            return Err(Status::INVALID_FIELD.final_());
        }
        match entry.nsid.get() {
            nsid if nsid == info.nsid => {}
            NSID_ALL if opcode == IoOpcode::FLUSH => {}
            NSID_ALL => return Err(Status::INVALID_FIELD.final_()),
            _ => return Err(Status::INVALID_NAMESPACE.final_()),
        }
        match opcode {
            IoOpcode::FLUSH => Ok(Command::Flush),
            IoOpcode::DATASET_MANAGEMENT => ranges(entry, &io.mem, info),
            IoOpcode::VERIFY => Ok(Command::Verify(extent(entry, info)?)),
            IoOpcode::WRITE_ZEROES => Ok(Command::Zeroes(extent(entry, info)?)),
            _ => {
                let blocks = u32::from(Cdw12::of(entry).nlb_z()) + 1;
                if blocks > info.max_blocks {
                    return Err(Status::INVALID_FIELD.final_());
                }
                let extent = extent(entry, info)?;
                let bytes = blocks as usize * info.lba_bytes as usize;
                match opcode {
                    IoOpcode::READ => io.mem.fits(bytes).map(|()| Command::Read(extent)),
                    IoOpcode::COMPARE => io.mem.must_fit(bytes).map(|()| Command::Compare(extent)),
                    _ if info.keeps_data => io.mem.must_fit(bytes).map(|()| Command::Write(extent)),
                    _ => io.mem.fits(bytes).map(|()| Command::Write(extent)),
                }
            }
        }
    }
}

fn extent(entry: &SubmissionEntry, info: &DriveInfo) -> Result<Extent, Status> {
    let (slba, blocks) = (entry.slba(), u32::from(Cdw12::of(entry).nlb_z()) + 1);
    match slba.checked_add(u64::from(blocks)) {
        Some(end) if end <= info.blocks => Ok(Extent { slba, blocks }),
        _ => Err(Status::LBA_OUT_OF_RANGE.final_()),
    }
}

fn ranges(entry: &SubmissionEntry, mem: &HostMem, info: &DriveInfo) -> Result<Command, Status> {
    let count = (entry.cdw10.get() & 0xff) as usize + 1;
    let bytes = count * size_of::<DsmRange>();
    mem.must_cover(bytes)?;
    let list = mem.part(0, bytes).to_vec();
    let range = |bytes: &[u8]| DsmRange::read_from_bytes(bytes).expect("a range's bytes");
    let all: Vec<(u64, u32)> = list
        .chunks_exact(size_of::<DsmRange>())
        .map(range)
        .map(|range| (range.slba.get(), range.blocks.get()))
        .collect();
    let is_inside =
        |(slba, blocks): &(u64, u32)| slba.checked_add(u64::from(*blocks)).is_some_and(|end| end <= info.blocks);
    match all.iter().all(is_inside) {
        false => Err(Status::LBA_OUT_OF_RANGE.final_()),
        true if entry.cdw11.get() & DSM_DEALLOCATE != 0 => Ok(Command::Deallocate(all)),
        true => Ok(Command::Hints),
    }
}
