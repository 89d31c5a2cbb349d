//! Batched read (OX 7.2.2): one command reads scattered pages in parallel.
//!
//! All pages are looked up at one instant, so a batch sees all of a flush or none of it. The thesis leaves that to the store
//! above (OX 7.3.1, 8.2); here no reader sees half of a transaction.

use nandscape_device_ftl_core::offers::Held;
use nandscape_device_ftl_core::{Extent, Ftl, ReadError, Reader, Unreadable};
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, HostMem, Stage};
use nandscape_wire_nvme::lss::{LIST, MOST_BATCHED, PAGE};
use nandscape_wire_nvme::{Status, SubmissionEntry};

use super::super::Nvm;
use super::super::atomic::too_large;
use super::super::read::failure;
use crate::command_set::together::{Part, together};
use crate::command_set::{Command, Failure};
use crate::namespace::Namespace;
use crate::refusal::Refusal;

impl Namespace {
    /// Checks the list of a batched read. Returns where each page lies.
    fn batch(&self, entry: &SubmissionEntry, mem: &HostMem) -> Result<Vec<Vec<Extent>>, Refusal> {
        self.check_pages()?;
        let pages = (entry.cdw10.get() & 0xffff) as usize + 1;
        if pages > MOST_BATCHED {
            return Err(Refusal::field(10, 0).final_());
        }
        let bytes = LIST + pages * PAGE;
        if bytes as u64 > self.max_bytes() {
            return Err(too_large());
        }
        match self.keeps_data {
            true => mem.must_fit(bytes)?,
            false => mem.must_cover(LIST)?,
        }
        let mut list = vec![0; pages * size_of::<u64>()];
        mem.read(0, &mut list);
        if mem.has_failed() {
            return Err(Status::DATA_TRANSFER_ERROR.into());
        }
        let (lpids, _) = list.as_chunks();
        lpids.iter().map(|lpid| self.page(u64::from_le_bytes(*lpid))).collect()
    }
}

impl<F: Ftl> Nvm<F> {
    /// Serves a batched read.
    pub(in super::super) async fn batched_read(
        &self,
        command: &Command<'_>,
        breakdown: &mut Breakdown,
    ) -> Result<(), Failure> {
        self.transactions()?;
        let pages = command.namespace.batch(command.entry, command.mem)?;
        self.count_read(1, command.namespace, (pages.len() * PAGE) as u32 / command.namespace.lba_bytes);
        command.link.receive(LIST as u64, breakdown).await;
        command.work.on_pages(pages.len(), pages.len() * PAGE, cause::HOST_READ, breakdown).await;
        command.stop.check()?;
        let extents: Vec<Extent> = pages.iter().flatten().copied().collect();
        let _held = self.held(command, &extents, breakdown).await?;
        let mut parts = Vec::with_capacity(extents.len());
        for (number, extents) in pages.iter().enumerate() {
            let mut at = LIST + number * PAGE;
            for extent in extents {
                parts.push(self.part(command, (number, at), *extent));
                at += extent.bytes() as usize;
            }
        }
        let mut is_there = vec![true; pages.len()];
        for (number, found) in together(parts, breakdown).await {
            is_there[number] &= found.map_err(|error| failure(command.namespace, error))?;
        }
        for (number, is_there) in is_there.into_iter().enumerate() {
            let bytes = if is_there { PAGE as u64 } else { 0 };
            command.mem.write(number * size_of::<u64>(), &bytes.to_le_bytes());
        }
        command.link.send(LIST as u64, breakdown).await;
        Ok(())
    }

    /// Loads and holds the map of extents in memory, so that all of them can be looked up at one instant.
    async fn held(
        &self,
        command: &Command<'_>,
        extents: &[Extent],
        breakdown: &mut Breakdown,
    ) -> Result<Option<Held>, Status> {
        let begun = self.sim.now();
        let held = match self.ftl.offers().stored_tables {
            Some(tables) => command.stop.or_stopped(tables.hold_map(extents)).await,
            None => Ok(None),
        };
        breakdown.waits(Stage::Queue).add(cause::METADATA, self.sim.now() - begun);
        held
    }

    /// Reads an extent of a page to a place in the host's memory: the page's number, and whether the extent was written.
    fn part<'a>(
        &'a self,
        command: &'a Command<'_>,
        (number, at): (usize, usize),
        extent: Extent,
    ) -> Part<'a, (usize, Result<bool, ReadError>)> {
        let mem = match command.namespace.keeps_data {
            true => command.mem.part(at, extent.bytes() as usize),
            false => HostMem::none(),
        };
        let to = self.to_host(command).into(mem);
        Box::pin(async move {
            let mut breakdown = Breakdown::new();
            let is_there = match self.reader.read::<()>(extent, &to.clone().of_written(), &mut breakdown).await {
                Err(ReadError { why: Unreadable::Unmapped, .. }) => {
                    self.reader.read::<()>(extent, &to, &mut breakdown).await.map(|()| false)
                }
                read => read.map(|()| true),
            };
            ((number, is_there), breakdown)
        })
    }
}
