//! A fused Compare and Write on a namespace with metadata. Protection information is treated as by each command alone.

use nandscape_device_ftl_core::{Extent, Ftl};
use nandscape_drive::Breakdown;
use nandscape_wire_nvme::io::Cdw12;
use nandscape_wire_nvme::{IoOpcode, Status};

use super::blocks::Place;
use super::{Nvm, Request, must_have_data, take_to_write};
use crate::command_set::nvm::fused::{Failures, both_failed, both_parsed, replies};
use crate::command_set::nvm::write::Source;
use crate::command_set::{Command, Reply};
use crate::refusal::Refusal;

impl<F: Ftl> Nvm<F> {
    pub(in super::super) async fn compare_and_write_protected(
        &self,
        pair: [Command<'_>; 2],
        breakdown: &mut Breakdown,
    ) -> [Reply; 2] {
        replies(self.serve_protected_pair(&pair, breakdown).await)
    }

    async fn serve_protected_pair(&self, pair: &[Command<'_>; 2], breakdown: &mut Breakdown) -> Result<(), Failures> {
        let [compare, write] = pair;
        let (compared, written) = both_parsed(parse(compare, IoOpcode::COMPARE), parse(write, IoOpcode::WRITE))?;
        let extent = same_extent(compare, &compared.0, &written.0)?;
        self.check_atomic(extent)?;
        let (bytes, fua) = ([compared.1.bytes(), written.1.bytes()], Cdw12::of(write.entry).fua());
        let (request, place) = &compared;
        // Both sides of the comparison, and then the write.
        let memory = 2 * request.memory(compare);
        let compares = async |breakdown: &mut Breakdown| self.compare_blocks(compare, request, place, breakdown).await;
        let accept = |room, watch| {
            let (request, place) = &written;
            let blocks = take_to_write(write, request, place).map_err(|failure| failure.status)?;
            blocks.invert();
            blocks.both(0..extent.sectors).accept(&*self.ftl, self.random_writes()?, (extent, 0), room, watch)
        };
        self.hold_and_serve(pair, extent, (bytes, memory, fua), compares, accept, breakdown).await
    }
}

/// One command of the pair, which must have the given opcode.
fn parse<'a>(command: &Command<'a>, opcode: IoOpcode) -> Result<(Request, Place<'a>), Refusal> {
    command.namespace.check_flags(command.entry)?;
    if IoOpcode(command.entry.opcode) != opcode {
        return Err(Status::INVALID_FIELD.final_().into());
    }
    if opcode == IoOpcode::WRITE {
        command.namespace.check_directive(command.entry)?;
    }
    let request = Request::of(command)?;
    let place = Place::of(command, request.blocks, &request.tags)?;
    must_have_data(command)?;
    Ok((request, place))
}

/// The extent of both commands, which must be equal and contiguous.
fn same_extent(command: &Command<'_>, compared: &Request, written: &Request) -> Result<Extent, Failures> {
    if (compared.slba, compared.blocks) != (written.slba, written.blocks) {
        return Err(both_failed(Status::INVALID_FIELD));
    }
    let extent = command.namespace.extent_of(written.slba, written.blocks);
    extent.ok_or_else(|| both_failed(Status::ATOMIC_WRITE_UNIT_EXCEEDED))
}
