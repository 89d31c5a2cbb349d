//! Vector Chunk Copy (OC 4.6), and Copy to contiguous blocks. The data stays in the controller. All sources are read before
//! the first unit is written. A copy completes when it is on flash, so that its sources may be reset.

use nandscape_device_ftl_core::ftl::Milestone;
use nandscape_drive::{Breakdown, HostMem};
use nandscape_wire_nvme::{Parameter, Status};

use super::OpenChannel;
use super::addresses::{Outcome, Run, listed, runs, writes};
use super::read::gathered;
use crate::command_set::together::{Part, together};
use crate::command_set::{Command, Failure};

impl OpenChannel {
    /// Serves Vector Chunk Copy.
    pub(super) async fn vector_copy(&self, command: &Command<'_>, breakdown: &mut Breakdown) -> Outcome {
        let (entry, mem) = (command.entry, command.mem);
        command.namespace.check_flags(entry)?;
        let count = self.count(command)?;
        let from = listed(mem, entry.slba(), count, Parameter::at(10, 0))?;
        let to = listed(mem, entry.vector_destination(), count, Parameter::at(14, 0))?;
        self.copy(command, &from, &to, breakdown).await
    }

    /// Serves Copy.
    pub(super) async fn copy_in_a_row(&self, command: &Command<'_>, breakdown: &mut Breakdown) -> Outcome {
        let namespace = command.namespace;
        namespace.check_flags(command.entry)?;
        let list = namespace.copy_list(command.entry, command.mem)?;
        let (slba, mut from) = (command.entry.slba(), Vec::new());
        for range in &list.ranges {
            namespace.check_range(range.slba, range.blocks)?;
            from.extend(range.slba..range.slba + range.blocks);
        }
        namespace.check_range(slba, list.blocks())?;
        // It is written like one Write.
        if list.blocks() > namespace.max_blocks.into() {
            return Err(Status::COMMAND_SIZE_LIMIT_EXCEEDED.final_().into());
        }
        let to: Vec<u64> = (slba..slba + list.blocks()).collect();
        command.link.receive(list.bytes.into(), breakdown).await;
        self.copy(command, &from, &to, breakdown).await
    }

    async fn copy(&self, command: &Command<'_>, from: &[u64], to: &[u64], breakdown: &mut Breakdown) -> Outcome {
        let (from, to) = (runs(from, self.layout(), self.layout().page_units)?, writes(to, self.layout())?);
        let units: u32 = to.iter().map(|run| run.units).sum();
        let bytes = units as usize * command.namespace.lba_bytes as usize;
        let bytes = if command.namespace.keeps_data { bytes } else { 0 };
        let _memory = self.nvm.copy_memory(command, bytes, breakdown).await?;
        let data = if bytes > 0 { HostMem::zeroed(bytes) } else { HostMem::none() };
        let parts = from.iter().map(|run| self.read_source(command, run, &data)).collect();
        gathered(&from, together(parts, breakdown).await)?;
        command.stop.check()?;
        self.nvm.count_write();
        let tickets = self.begin(&to)?;
        let room = match self.room(command, units, breakdown).await {
            Ok(room) => room,
            Err(status) => return self.give_up(&to, &tickets, status, breakdown).await,
        };
        let outcome = self.program(&to, &tickets, Some(&data), Milestone::Flash, breakdown).await;
        drop(room);
        outcome
    }

    fn read_source<'a>(&'a self, command: &'a Command<'_>, run: &Run, data: &HostMem) -> Part<'a, Result<(), Failure>> {
        let lba_bytes = command.namespace.lba_bytes as usize;
        let mem = data.part(run.at as usize * lba_bytes, run.units as usize * lba_bytes);
        let extent = run.extent(self.layout(), self.unit_sectors());
        Box::pin(async move {
            let mut breakdown = Breakdown::new();
            (self.nvm.read_inside(command, extent, &mem, &mut breakdown).await, breakdown)
        })
    }
}
