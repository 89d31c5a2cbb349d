//! Copy over a drive that does not copy itself, such as an array: the controller reads the sources, then writes them (NVM 3.3.2).
//!
//! A copy is limited to [`MOST`], and all copies share [`MEMORY`].

use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, Completion, HostMem, Stage};
use nandscape_sim::Sim;
use nandscape_sim::credits::Credits;
use nandscape_wire_nvme::io::FUA;
use nandscape_wire_nvme::vendor::PREDICT_ONLY;
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

use super::Forward;
use crate::command_set::Command;
use crate::namespace::Namespace;

/// Bytes of a copy.
const MOST: u32 = 1 << 20;
/// KiB of the copies under way.
const MEMORY: usize = 16 << 10;

/// Memory for the data of copies.
pub(super) fn memory(sim: &Sim) -> Credits {
    Credits::new(sim, MEMORY, cause::HOST_WRITE)
}

/// Memory of a copy, which is released on drop.
struct Held<'a>(&'a Credits, usize);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.give(self.1);
    }
}

impl Forward {
    /// The most blocks of a copy (MCL).
    pub(super) fn max_copy(&self, namespace: &Namespace) -> u32 {
        let most = namespace.max_copy();
        if self.offers.copy { most } else { most.min(MOST / namespace.lba_bytes) }
    }

    /// Serves a Copy by reads and writes. `entry` is its entry for the drive. Its completion is that of the read or write that fails,
    /// or of the last write.
    ///
    /// # Errors
    /// The status of a list that is not valid, or of a command that is to end early.
    pub(super) async fn copy(
        &self,
        command: &Command<'_>,
        entry: SubmissionEntry,
        breakdown: &mut Breakdown,
    ) -> Result<Completion, Status> {
        let list = command.namespace.copy_list(command.entry, command.mem).map_err(|refusal| refusal.status)?;
        let blocks = list.blocks() as u32;
        if blocks > self.max_copy(command.namespace) {
            return Err(Status::COMMAND_SIZE_LIMIT_EXCEEDED.final_());
        }
        let bytes = (blocks * self.info.lba_bytes) as usize;
        let _held = self.copy_memory(command, bytes, breakdown).await?;
        let data = if self.info.keeps_data { HostMem::in_pieces(bytes) } else { HostMem::none() };
        let mut moving = Moving { forward: self, command, entry, data, moved: 0 };
        for range in &list.ranges {
            let read = moving.run(IoOpcode::READ, range.slba, range.blocks as u32, breakdown).await?;
            if !read.status.is_success() {
                // A layer's hints in DW0 are no number of a range.
                return Ok(Completion { dw0: 0, ..read });
            }
        }
        moving.moved = 0;
        let (mut slba, end) = (entry.slba(), entry.slba() + u64::from(blocks));
        loop {
            let part = (end - slba).min(command.namespace.max_blocks.into()) as u32;
            let written = moving.run(IoOpcode::WRITE, slba, part, breakdown).await?;
            slba += u64::from(part);
            if !written.status.is_success() || slba == end {
                return Ok(written);
            }
        }
    }

    async fn copy_memory(
        &self,
        command: &Command<'_>,
        bytes: usize,
        breakdown: &mut Breakdown,
    ) -> Result<Held<'_>, Status> {
        let (begun, kib) = (self.sim.now(), bytes.div_ceil(1 << 10));
        let taken = command.stop.or_stopped(self.copies.take(kib, breakdown.waits(Stage::Queue))).await;
        if let Err(status) = taken {
            breakdown.waits(Stage::Queue).add(cause::HOST_WRITE, self.sim.now() - begun);
            return Err(status);
        }
        Ok(Held(&self.copies, kib))
    }
}

/// A copy under way.
struct Moving<'a> {
    forward: &'a Forward,
    command: &'a Command<'a>,
    /// Of the Copy.
    entry: SubmissionEntry,
    data: HostMem,
    /// Bytes that are read, or written.
    moved: usize,
}

impl Moving<'_> {
    /// Reads or writes the next blocks.
    async fn run(
        &mut self,
        opcode: IoOpcode,
        slba: u64,
        blocks: u32,
        breakdown: &mut Breakdown,
    ) -> Result<Completion, Status> {
        let mut entry = SubmissionEntry::blocks(opcode, self.entry.nsid.get(), slba, blocks);
        entry.cdw2 = self.entry.cdw2;
        if opcode == IoOpcode::READ && self.forward.offers.deadlines {
            // A Copy has no deadline, and its reads do not get that of a layer for reads without one.
            entry.cdw2 = (entry.cdw2.get() | PREDICT_ONLY).into();
        }
        if opcode == IoOpcode::WRITE {
            entry.cdw12 = (entry.cdw12.get() | self.entry.cdw12.get() & FUA).into();
        }
        let bytes = (blocks * self.forward.info.lba_bytes) as usize;
        let mem = if self.data.is_none() { HostMem::none() } else { self.data.part(self.moved, bytes) };
        self.moved += bytes;
        self.forward.execute(self.command, (entry, mem), breakdown).await
    }
}
