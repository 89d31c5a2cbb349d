//! A slot of shared memory: a command's data, its page list, and the address lists of a vector command.

use std::io;

use nandscape_drive::{HostMem, Token};
use nandscape_wire_nvme::open_channel::{MAX_VECTOR, VECTOR_COPY, VECTOR_READ, VECTOR_RESET, VECTOR_WRITE};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};
use zerocopy::little_endian::U64;

use super::memory::{PAGE, SharedMemory};

/// Most bytes of data of a command: a buffer of LLAMA (OX 7.3.1). Its page list fits a page, as does one of up to 2
/// MiB. Memory is allocated at the first use of data.
pub(super) const MOST_BYTES: u32 = 1 << 20;
/// Bytes of a slot.
pub(super) const BYTES: u64 = MOST_BYTES as u64 + 2 * PAGE;

/// See the file.
pub(super) struct Slot {
    /// The address of the data.
    pub(super) data: u64,
    /// A page with the addresses of all pages of the data but the first.
    list: u64,
    /// A page with two lists of addresses.
    addresses: u64,
    /// The command that has the slot, its memory, and the bytes that it moves.
    pub(super) command: Option<(Token, HostMem, usize)>,
}

impl Slot {
    pub(super) fn new(memory: &SharedMemory) -> io::Result<Slot> {
        let (data, list, addresses) = (memory.take(MOST_BYTES.into())?, memory.take(PAGE)?, memory.take(PAGE)?);
        for page in 1..u64::from(MOST_BYTES) / PAGE {
            memory.write(list + (page - 1) * 8, &(data + page * PAGE).to_le_bytes())?;
        }
        Ok(Slot { data, list, addresses, command: None })
    }

    /// The pointers of a command to this many bytes.
    pub(super) fn pointers(&self, bytes: usize) -> (U64, U64) {
        let second = if bytes as u64 > 2 * PAGE { self.list } else { self.data + PAGE };
        (self.data.into(), second.into())
    }

    /// Copies the lists of a vector command into the slot; returns the command with pointers to them. A single
    /// address is in the command itself.
    pub(super) fn list_addresses(
        &self,
        memory: &SharedMemory,
        command: &SubmissionEntry,
        mem: &HostMem,
    ) -> Result<SubmissionEntry, Status> {
        let mut command = *command;
        let count = command.vector_z() as usize + 1;
        if count == 1 {
            return Ok(command);
        }
        let copied = |pointer, number: u64| {
            let at = self.addresses + number * u64::from(MAX_VECTOR) * 8;
            copy_list(memory, at, mem, pointer, count * 8).map(|()| at)
        };
        let first = copied(command.slba(), 0)?;
        (command.cdw10, command.cdw11) = halves(first);
        if IoOpcode(command.opcode) == VECTOR_COPY {
            let second = copied(command.vector_destination(), 1)?;
            (command.cdw14, command.cdw15) = halves(second);
        }
        Ok(command)
    }
}

/// Whether a command names its own addresses, in lists if there are several.
pub(super) fn is_vector(opcode: IoOpcode) -> bool {
    matches!(opcode, VECTOR_RESET | VECTOR_WRITE | VECTOR_READ | VECTOR_COPY)
}

fn halves(address: u64) -> (zerocopy::little_endian::U32, zerocopy::little_endian::U32) {
    ((address as u32).into(), ((address >> 32) as u32).into())
}

/// Copies a list of a command of this process.
fn copy_list(memory: &SharedMemory, to: u64, mem: &HostMem, pointer: u64, bytes: usize) -> Result<(), Status> {
    let list = mem.list(pointer)?.ok_or(Status::INVALID_FIELD)?;
    list.fits(bytes)?;
    copy_in(memory, to, &list, bytes).map_err(|_| Status::DATA_TRANSFER_ERROR)
}

/// Copies the data of a command into shared memory; without data, the memory keeps its old contents.
pub(super) fn copy_in(memory: &SharedMemory, to: u64, mem: &HostMem, bytes: usize) -> io::Result<()> {
    if mem.is_none() {
        return Ok(());
    }
    let mut page = [0; PAGE as usize];
    for start in (0..bytes).step_by(page.len()) {
        let part = &mut page[..(bytes - start).min(PAGE as usize)];
        mem.read(start, part);
        memory.write(to + start as u64, part)?;
    }
    Ok(())
}

/// Copies data out of shared memory.
pub(super) fn copy_out(memory: &SharedMemory, from: u64, mem: &HostMem, bytes: usize) -> io::Result<()> {
    let mut page = [0; PAGE as usize];
    for start in (0..bytes).step_by(page.len()) {
        let part = &mut page[..(bytes - start).min(PAGE as usize)];
        memory.read(from + start as u64, part)?;
        mem.write(start, part);
    }
    Ok(())
}
