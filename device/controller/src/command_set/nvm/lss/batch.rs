//! Batched read (OX 7.2.2): pages anywhere, by one command. All of them are read at once.
//!
//! A page is read as by a Read of its own: while a flush becomes current, a batch may have some pages of before and some of after
//! it, as in the thesis, which leaves concurrency to the store above (OX 7.3.1, 8.2).

use nandscape_device_ftl::{Extent, Ftl, ReadError, Reader, Unreadable};
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, HostMem};
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
    /// Checks the list of a batched read: where each of its pages lies.
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
        self.check_transactions()?;
        let pages = command.namespace.batch(command.entry, command.mem)?;
        self.count_read(1, command.namespace, (pages.len() * PAGE) as u32 / command.namespace.lba_bytes);
        command.link.receive(LIST as u64, breakdown).await;
        command.work.on_pages(pages.len(), pages.len() * PAGE, cause::HOST_READ, breakdown).await;
        command.stop.check()?;
        let parts = pages.iter().enumerate().map(|(number, extents)| {
            let mem = match command.namespace.keeps_data {
                true => command.mem.part(LIST + number * PAGE, PAGE),
                false => HostMem::none(),
            };
            Box::pin(async move {
                let mut breakdown = Breakdown::new();
                let is_there = self.read_page(command, extents, &mem, &mut breakdown).await;
                (is_there, breakdown)
            }) as Part<'_, Result<bool, ReadError>>
        });
        let ended = together(parts.collect(), breakdown).await;
        for (number, is_there) in ended.into_iter().enumerate() {
            let is_there = is_there.map_err(|error| failure(command.namespace, error))?;
            let bytes = if is_there { PAGE as u64 } else { 0 };
            command.mem.write(number * size_of::<u64>(), &bytes.to_le_bytes());
        }
        command.link.send(LIST as u64, breakdown).await;
        Ok(())
    }

    /// Reads a page; whether it was written.
    async fn read_page(
        &self,
        command: &Command<'_>,
        extents: &[Extent],
        mem: &HostMem,
        breakdown: &mut Breakdown,
    ) -> Result<bool, ReadError> {
        let (mut done, mut is_there) = (0, true);
        for extent in extents {
            let bytes = extent.bytes() as usize;
            let to = self.to_host(command).into(mem.part(done, bytes));
            match self.reader.read::<()>(*extent, &to.clone().of_written(), breakdown).await {
                Err(ReadError { why: Unreadable::Unmapped, .. }) => {
                    is_there = false;
                    self.reader.read::<()>(*extent, &to, breakdown).await?;
                }
                read => read?,
            }
            done += bytes;
        }
        Ok(is_there)
    }
}
