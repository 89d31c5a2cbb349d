//! Copy into a zone (NVM 3.3.2, ZNS 3.3.1): reads all sources, then writes them like one Write.
//!
//! A command copies at most what a Write may write, so that it takes its blocks of the zone at once, after the sources were
//! read. If the sources cannot be read, or another write overtakes the command, nothing is written.

use nandscape_device_ftl_core::Extent;
use nandscape_drive::Breakdown;
use nandscape_wire_nvme::{Parameter, Status};

use super::{Zns, status_of};
use crate::command_set::{Command, Failure};
use crate::refusal::Refusal;

impl Zns {
    /// Serves the command.
    pub(super) async fn copy(&self, command: &Command<'_>, breakdown: &mut Breakdown) -> Result<(), Failure> {
        let (entry, namespace) = (command.entry, command.namespace);
        namespace.check_flags(entry)?;
        let list = namespace.copy_list(entry, command.mem)?;
        let blocks = list.blocks();
        if blocks > namespace.max_blocks.into() {
            return Err(Status::COMMAND_SIZE_LIMIT_EXCEEDED.final_().into());
        }
        let sources = self.sources(command, list.ranges.iter().map(|range| (range.slba, range.blocks)))?;
        let to = namespace.check_range(entry.slba(), blocks);
        to.map_err(|status| Refusal::of(status, Parameter::at(10, 0)))?;
        let ((zone, at), blocks) = (self.zone_of(entry.slba()), blocks as u32);
        // A wrong destination is rejected before any read.
        self.ftl().check_write(zone, at, blocks).map_err(status_of)?;

        command.link.receive(list.bytes.into(), breakdown).await;
        let gathered = self.nvm.gather(command, &sources, breakdown).await?;
        self.nvm.count_write();
        self.process(command, self.ftl().config().write, breakdown).await?;
        let ticket = self.ftl().begin_write(zone, Some(at), blocks).map_err(status_of)?;
        self.store(command, (ticket, blocks), &gathered.data, breakdown).await
    }

    /// The extents to copy.
    fn sources(&self, command: &Command<'_>, ranges: impl Iterator<Item = (u64, u64)>) -> Result<Vec<Extent>, Failure> {
        let mut sources = Vec::new();
        for (slba, blocks) in ranges {
            sources.extend(command.namespace.checked_extents(slba, blocks)?);
            self.check_zones_readable(slba, blocks)?;
        }
        Ok(sources)
    }
}
