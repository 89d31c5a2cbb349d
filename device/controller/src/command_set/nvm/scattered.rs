//! Commands over scattered blocks: in a namespace of several runs, a command that crosses the end of a run is served in
//! parts, one after the other, each like a separate command. The first failure ends the command.

use nandscape_device_ftl_core::Ftl;
use nandscape_drive::Breakdown;
use nandscape_wire_nvme::io::Cdw12;
use nandscape_wire_nvme::opcode::Transfer;
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

use super::Nvm;
use crate::command_set::{Command, Reply};
use crate::refusal::OF_BLOCKS;

/// The caller of `serve_whole` here.
enum Scattered {}

impl<F: Ftl> Nvm<F> {
    /// Serves a command of a namespace with several runs.
    pub(super) async fn serve_scattered(&self, command: &Command<'_>, breakdown: &mut Breakdown) -> Reply {
        if !OF_BLOCKS.contains(&IoOpcode(command.entry.opcode)) {
            return self.serve_whole::<Scattered>(command, breakdown).await;
        }
        let namespace = command.namespace;
        let (slba, blocks) = (command.entry.slba(), u32::from(Cdw12::of(command.entry).nlb_z()) + 1);
        let is_in_a_row =
            namespace.check_range(slba, blocks.into()).is_err() || namespace.extent_of(slba, blocks).is_some();
        // The transfer limit applies to the whole command.
        let moves = Transfer::of(command.entry.opcode) != Transfer::None;
        if is_in_a_row || moves && blocks > namespace.max_blocks {
            return self.serve_whole::<Scattered>(command, breakdown).await;
        }
        if moves && let Err(status) = command.mem.fits(blocks as usize * namespace.lba_bytes as usize) {
            return Err(status).into();
        }
        let mut done = 0;
        while done < blocks {
            let next = namespace.blocks_in_run(slba + u64::from(done)).min(u64::from(blocks - done)) as u32;
            let entry = cut(command.entry, done, next);
            let mem = match command.mem.is_none() {
                true => command.mem.clone(),
                false => command
                    .mem
                    .part(done as usize * namespace.lba_bytes as usize, next as usize * namespace.lba_bytes as usize),
            };
            let part = Command { entry: &entry, mem: &mem, ..*command };
            let reply = Box::pin(self.serve_whole::<Scattered>(&part, breakdown)).await;
            if !reply.status.is_success() {
                return reply;
            }
            done += next;
        }
        Ok::<(), Status>(()).into()
    }
}

/// The command for `blocks` of the blocks of `entry`, from `first` on.
fn cut(entry: &SubmissionEntry, first: u32, blocks: u32) -> SubmissionEntry {
    let slba = entry.slba() + u64::from(first);
    SubmissionEntry {
        cdw10: (slba as u32).into(),
        cdw11: ((slba >> 32) as u32).into(),
        cdw12: (entry.cdw12.get() & !0xffff | (blocks - 1)).into(),
        ..*entry
    }
}
