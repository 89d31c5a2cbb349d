//! Vector Chunk Write (OC 4.4), and Write of contiguous blocks.
//!
//! When served, a command takes its units of all chunks, or none and writes nothing. If its data turns out to be unavailable,
//! it leaves zeros there, because a chunk has no holes.

use nandscape_device_ftl_core::ftl::Milestone;
use nandscape_device_ftl_zoned::open_channel::Ticket;
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, HostMem, Stage};
use nandscape_wire_nvme::io::Cdw12;
use nandscape_wire_nvme::{Parameter, Status};

use super::OpenChannel;
use super::addresses::{Outcome, Run, listed, status_of, writes};
use super::read::gathered;
use crate::command_set::together::{Part, together};
use crate::command_set::{Command, Culprit, Failure};
use crate::refusal::Refusal;

impl OpenChannel {
    /// Serves Vector Chunk Write.
    pub(super) async fn vector_write(&self, command: &Command<'_>, breakdown: &mut Breakdown) -> Outcome {
        command.namespace.check_flags(command.entry)?;
        let count = self.count(command)?;
        check_data(command, count)?;
        let addresses = listed(command.mem, command.entry.slba(), count, Parameter::at(10, 0))?;
        self.write(command, &addresses, false, breakdown).await
    }

    /// Serves Write.
    pub(super) async fn write_in_a_row(&self, command: &Command<'_>, breakdown: &mut Breakdown) -> Outcome {
        let (entry, namespace) = (command.entry, command.namespace);
        namespace.check_flags(entry)?;
        namespace.check_directive(entry)?;
        let blocks = u32::from(Cdw12::of(entry).nlb_z()) + 1;
        if blocks > namespace.max_blocks {
            return Err(Refusal::field(12, 0).final_().into());
        }
        namespace.check_range(entry.slba(), blocks.into())?;
        check_data(command, blocks)?;
        let addresses: Vec<u64> = (entry.slba()..entry.slba() + u64::from(blocks)).collect();
        self.write(command, &addresses, Cdw12::of(entry).fua(), breakdown).await
    }

    async fn write(&self, command: &Command<'_>, addresses: &[u64], fua: bool, breakdown: &mut Breakdown) -> Outcome {
        self.nvm.count_write();
        let runs = writes(addresses, self.layout())?;
        let tickets = self.begin(&runs)?;
        let bytes = addresses.len() * command.namespace.lba_bytes as usize;
        let room = match self.room(command, addresses.len() as u32, breakdown).await {
            Ok(room) => room,
            Err(status) => return self.give_up(&runs, &tickets, status, breakdown).await,
        };
        command.link.receive(bytes as u64, breakdown).await;
        // A guest may have unmapped its memory meanwhile.
        let mem = command.mem.part(0, bytes.min(command.mem.len()));
        if let Err(status) = command.stop.check().and_then(|()| mem.cover(mem.len())) {
            return self.give_up(&runs, &tickets, status, breakdown).await;
        }
        let until = self.nvm.write_waits_for(fua, command.settings).unwrap_or(Milestone::Flash);
        let outcome = self.program(&runs, &tickets, Some(&mem), until, breakdown).await;
        drop(room);
        outcome
    }

    /// Takes the units of all runs.
    pub(super) fn begin(&self, runs: &[Run]) -> Result<Vec<Ticket>, super::addresses::Failed> {
        let writes: Vec<_> = runs.iter().map(|run| (run.chunk, run.first, run.units)).collect();
        let failed = |(number, error): (usize, _)| runs[number].failed(status_of(error), self.layout());
        self.ftl().check_writes(&writes).map_err(failed)?;
        let begun = writes.iter().map(|(chunk, at, units)| self.ftl().begin_write(*chunk, *at, *units));
        Ok(begun.collect::<Result<_, _>>().expect("they were checked"))
    }

    /// Waits for room in the controller.
    pub(super) async fn room(
        &self,
        command: &Command<'_>,
        units: u32,
        breakdown: &mut Breakdown,
    ) -> Result<impl Drop + use<'_>, Status> {
        let begun = self.sim.now();
        let room = self.ftl().reserve_units(units, breakdown.waits(Stage::Queue));
        let taken = command.stop.or_stopped(room).await;
        if taken.is_err() {
            breakdown.waits(Stage::Queue).add(cause::HOST_WRITE, self.sim.now() - begun);
        }
        taken
    }

    /// Ends a command that has taken units but gets no data.
    pub(super) async fn give_up(
        &self,
        runs: &[Run],
        tickets: &[Ticket],
        status: Status,
        breakdown: &mut Breakdown,
    ) -> Outcome {
        self.program(runs, tickets, None, Milestone::Flash, breakdown).await?;
        Err(status.into())
    }

    /// Programs the data of all runs concurrently, each in one chunk, until all have reached `until`. Without data, programs
    /// zeros.
    pub(super) async fn program(
        &self,
        runs: &[Run],
        tickets: &[Ticket],
        data: Option<&HostMem>,
        until: Milestone,
        breakdown: &mut Breakdown,
    ) -> Outcome {
        let parts = runs.iter().zip(tickets).map(|(run, ticket)| self.program_run(run, *ticket, data, until)).collect();
        let ended = together(parts, breakdown).await;
        gathered(runs, ended)
    }

    fn program_run<'a>(
        &'a self,
        run: &Run,
        ticket: Ticket,
        data: Option<&HostMem>,
        until: Milestone,
    ) -> Part<'a, Result<(), Failure>> {
        let (unit, run) = (self.unit_sectors() as usize * 512, *run);
        let part = data.map(|mem| match mem.is_empty() {
            true => mem.clone(),
            false => mem.part(run.at as usize * unit, run.units as usize * unit),
        });
        Box::pin(async move {
            let mut breakdown = Breakdown::new();
            let data = part.as_ref().filter(|mem| !mem.is_empty());
            let ended = self.ftl().program(ticket, data, until, &mut breakdown).await.map_err(|error| Failure {
                status: status_of(error),
                culprit: Culprit::Block(self.layout().address(run.chunk, run.first)),
            });
            (ended, breakdown)
        })
    }
}

/// Checks the memory of a write before it takes units: if the host still has to send the data, the command is served again.
fn check_data(command: &Command<'_>, blocks: u32) -> Result<(), Status> {
    let bytes = blocks as usize * command.namespace.lba_bytes as usize;
    if !command.namespace.keeps_data && command.mem.is_empty() {
        return Ok(());
    }
    if command.mem.is_empty() {
        return Err(Status::DATA_TRANSFER_ERROR.final_());
    }
    command.mem.fits(bytes)?;
    command.mem.part(0, bytes).cover(bytes)
}
