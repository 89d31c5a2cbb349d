//! Copy on a namespace with metadata (NVM 3.3.2): protection information is checked as by a read of each source, and inserted
//! as by one write of all of them.

use nandscape_device_ftl_core::Ftl;
use nandscape_drive::Breakdown;
use nandscape_wire_nvme::io::{CopyCdw12, Prinfo};
use nandscape_wire_nvme::{Parameter, Status};

use super::blocks::Blocks;
use super::protection::Tags;
use super::{Nvm, Request};
use crate::command_set::nvm::copy::{CopyList, SourceRange};
use crate::command_set::{Command, Failure};
use crate::refusal::Refusal;

impl<F: Ftl> Nvm<F> {
    pub(super) async fn copy_protected(&self, command: &Command<'_>, breakdown: &mut Breakdown) -> Result<(), Failure> {
        let (namespace, entry) = (command.namespace, command.entry);
        let fields = CopyCdw12(entry.cdw12.get());
        let list = namespace.copy_list(entry, command.mem)?;
        let (read, write) = (Prinfo(fields.prinfo_read()), Prinfo(fields.prinfo_write()));
        let to = Request { slba: entry.slba(), blocks: list.blocks() as u32, tags: Tags::with(entry, write) };
        check_actions(namespace.format.protection.is_some(), &fields)?;
        namespace.check_range(to.slba, to.blocks.into())?;
        to.tags.fit(&namespace.format, to.slba)?;
        let sources = requests(command, &list, read)?;

        command.link.receive(list.bytes.into(), breakdown).await;
        self.check_writable()?;
        // One source is held in addition to the blocks to write.
        let largest = sources.iter().map(|source| source.memory(command)).max().unwrap_or(0);
        let _memory = self.copy_memory(command, to.memory(command) + largest, breakdown).await?;
        let blocks = Blocks::new(namespace.format, to.blocks);
        let mut done = 0;
        for (number, source) in sources.iter().enumerate() {
            let sectors = source.sectors(command);
            self.begin_part(command, (number == 0, sectors), breakdown).await?;
            let read = self.read_blocks(command, source, None, breakdown).await?;
            read.check(&source.tags, source.slba)?;
            blocks.put(done, &read);
            done += source.blocks;
        }
        match to.tags.acts(&namespace.format) {
            true => blocks.insert(&to.tags),
            false => blocks.check(&to.tags, to.slba)?,
        }
        Ok(self.write_blocks(command, &to, (&blocks, true), fields.fua(), breakdown).await?)
    }
}

/// With protection information, descriptors must have the format of 16-bit guards (NVM 3.3.2), and the actions of read and
/// write must be equal (NVM 5.3.2.5.1).
fn check_actions(is_protected: bool, fields: &CopyCdw12) -> Result<(), Refusal> {
    let acts = [fields.prinfo_read(), fields.prinfo_write()].map(|field| Prinfo(field).action());
    match is_protected {
        // Descriptor Format.
        true if fields.format() != 0 => Err(Refusal::of(Status::INVALID_NAMESPACE, Parameter::at(12, 8)).final_()),
        // Protection Information Field Read.
        true if acts[0] != acts[1] => Err(Refusal::field(12, 12).final_()),
        _ => Ok(()),
    }
}

/// The reads of the sources.
fn requests(command: &Command<'_>, list: &CopyList, prinfo: Prinfo) -> Result<Vec<Request>, Status> {
    let request = |range: &SourceRange| {
        let tags = Tags { prinfo, reference: range.reference, application: range.application, mask: range.mask };
        command.namespace.check_range(range.slba, range.blocks)?;
        tags.fit(&command.namespace.format, range.slba)?;
        Ok(Request { slba: range.slba, blocks: range.blocks as u32, tags })
    };
    list.ranges.iter().map(request).collect()
}
