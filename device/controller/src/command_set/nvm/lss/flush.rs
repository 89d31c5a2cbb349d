//! Flush of a buffer of a log-structured store (OX 7.3.1): its pages become current together.
//!
//! Of the thesis' phases, this file has the parsing of the buffer. The FTL's transactions provide the serial queue, the
//! alignment to flash pages, commit and abort.

use std::rc::Rc;

use nandscape_device_ftl_core::{Extent, Ftl};
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, HostMem};
use nandscape_wire_nvme::lss::{Entry, Head, METADATA, PAGE};
use nandscape_wire_nvme::{Status, SubmissionEntry};
use zerocopy::IntoBytes;

use super::super::Nvm;
use super::super::atomic::too_large;
use super::gathered::Gathered;
use super::malformed;
use crate::command_set::{Command, Failure};
use crate::namespace::Namespace;
use crate::refusal::Refusal;

/// A checked command.
struct Buffer {
    /// Where the pages go, in the order of the entries.
    extents: Vec<Extent>,
    /// Where each page begins in the buffer.
    offsets: Vec<usize>,
    /// Bytes of the buffer.
    bytes: usize,
}

impl Namespace {
    /// Checks a buffer.
    fn lss_buffer(&self, entry: &SubmissionEntry, mem: &HostMem) -> Result<Buffer, Refusal> {
        self.check_pages()?;
        let bytes = ((entry.cdw10.get() & 0xffff) as usize + 1) * PAGE;
        if bytes as u64 > self.max_bytes() {
            return Err(too_large());
        }
        if bytes <= METADATA {
            return Err(Refusal::field(10, 0).final_());
        }
        match self.keeps_data {
            true => mem.must_fit(bytes)?,
            // Without data, the memory may hold the metadata alone.
            false => mem.must_cover(METADATA)?,
        }
        let mut head = Head::default();
        mem.read(0, head.as_mut_bytes());
        // Unreadable memory is a transfer error, not a malformed buffer.
        if mem.has_failed() {
            return Err(Status::DATA_TRANSFER_ERROR.into());
        }
        let pages = head.pages().ok_or_else(malformed)?;
        let mut entries = vec![Entry::default(); pages];
        mem.read(size_of::<Head>(), entries.as_mut_bytes());
        if mem.has_failed() {
            return Err(Status::DATA_TRANSFER_ERROR.into());
        }
        let (mut extents, mut offsets) = (Vec::with_capacity(pages), Vec::with_capacity(pages));
        for entry in entries {
            let offset = entry.offset.get() as usize;
            let is_inside = offset >= METADATA && offset <= bytes - PAGE;
            if entry.bytes.get() as usize != PAGE || !is_inside {
                return Err(malformed());
            }
            extents.extend(self.page(entry.lpid.get())?);
            offsets.push(offset);
        }
        Ok(Buffer { extents, offsets, bytes })
    }
}

impl<F: Ftl> Nvm<F> {
    /// Serves a flush of a buffer.
    pub(in super::super) async fn lss_flush(
        &self,
        command: &Command<'_>,
        breakdown: &mut Breakdown,
    ) -> Result<(), Failure> {
        self.transactions()?;
        let Buffer { extents, offsets, bytes } = command.namespace.lss_buffer(command.entry, command.mem)?;
        command.work.on_pages(offsets.len(), offsets.len() * PAGE, cause::HOST_WRITE, breakdown).await;
        let data = match command.namespace.keeps_data {
            true => HostMem::over(Rc::new(Gathered::new(command.mem.part(0, bytes), offsets))),
            false => HostMem::none(),
        };
        self.write_all(command, &extents, data, bytes as u64, breakdown).await
    }
}
