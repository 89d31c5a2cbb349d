//! Writes that place their data by a placement identifier or a stream identifier.
//!
//! Such a command comes here after the common path rejected it, so the common path checks for neither identifier.
//!
//! Left out: directives of Write Zeroes, whose field is ignored, and of blocks with metadata, which are rejected.

use std::rc::Rc;

use nandscape_device_ftl_core::ftl::{Milestone, Settling};
use nandscape_device_ftl_core::offers::{RandomWrites, Reserved};
use nandscape_device_ftl_core::{Extent, Ftl};
use nandscape_drive::{Breakdown, HostMem};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry, directive, fdp};

use super::Nvm;
use super::command::NvmCommand;
use super::streams::Streams;
use super::write::Source;
use crate::command_set::{Command, Reply};
use crate::refusal::Refusal;

/// Data in host memory, across the link, with the handle that places it.
struct Placed<'a>(&'a HostMem, u8);

impl Source for Placed<'_> {
    const CROSSES: bool = true;

    fn accept<F: Ftl>(
        &self,
        ftl: &F,
        writes: &F::RandomWrites,
        (part, at): (Extent, usize),
        mut reservation: Reserved<'_, F>,
        watch: Option<Milestone>,
    ) -> Result<Option<Rc<Settling>>, Status> {
        let mem = self.0.part(at, part.bytes() as usize);
        mem.cover(part.bytes() as usize)?;
        let placement = ftl.offers().placement.expect("handles are those of the FTL");
        placement.place(&mut reservation, self.1);
        Ok(writes.accept(part, Some(&mem), reservation, watch))
    }
}

impl<F: Ftl> Nvm<F> {
    /// Serves a command that is invalid without placement, and may be valid with it.
    pub(super) async fn serve_placement(
        &self,
        command: &Command<'_>,
        refusal: Refusal,
        breakdown: &mut Breakdown,
    ) -> Reply {
        match (&self.fdp, &self.streams) {
            (Some(fdp), _) => self.serve_fdp(fdp, command, refusal, breakdown).await,
            (None, Some(streams)) => self.serve_streams(streams, command, refusal, breakdown).await,
            (None, None) => Err(refusal).into(),
        }
    }

    /// Serves a command of a drive with streams. Where its host has not enabled them, directives are ignored (Base 8.1.8.1);
    /// stream identifier 0 is none.
    async fn serve_streams(
        &self,
        streams: &Streams,
        command: &Command<'_>,
        refusal: Refusal,
        breakdown: &mut Breakdown,
    ) -> Reply {
        let entry = command.entry;
        let kind = fdp::directive_type(entry);
        let takes_directive = [IoOpcode::WRITE, IoOpcode::WRITE_UNCORRECTABLE].contains(&IoOpcode(entry.opcode));
        if kind == directive::IDENTIFY || !takes_directive {
            return Err(refusal).into();
        }
        let user = (command.settings.registrant(), command.namespace.nsid);
        let is_enabled = streams.is_enabled(user);
        if is_enabled && kind != directive::STREAMS {
            return Err(refusal).into();
        }
        self.write_placed(command, breakdown, || match fdp::directive_specific(entry) {
            identifier if is_enabled && identifier > 0 => streams.handle(user, identifier),
            _ => 0,
        })
        .await
    }

    /// Serves a write by a handle, which is looked up only once the command is known to be valid.
    pub(super) async fn write_placed(
        &self,
        command: &Command<'_>,
        breakdown: &mut Breakdown,
        handle: impl FnOnce() -> u8,
    ) -> Reply {
        let entry = SubmissionEntry { cdw12: (command.entry.cdw12.get() & !(0xf << 20)).into(), ..*command.entry };
        let parsed = match NvmCommand::parse(&entry, command.mem, command.namespace) {
            Ok(parsed) => parsed,
            Err(refusal) => return Err(refusal).into(),
        };
        self.count(&parsed);
        match parsed {
            NvmCommand::Write { extent, fua } => {
                self.write(command, extent, Placed(command.mem, handle()), fua, breakdown).await.into()
            }
            other => self.serve_rare(&Command { entry: &entry, ..*command }, other, breakdown).await,
        }
    }
}
