//! Reads: the address gives the place of a unit. A chunk is pinned from the lookup until its data is copied.

use std::convert::Infallible;
use std::rc::Rc;

use nandscape_device_ftl_core::address::Extent;
use nandscape_device_ftl_core::ftl::{Destination, ReadError, Reader, Unreadable};
use nandscape_device_ftl_core::reading::{self, CopyOut, PageRead, PageReads, Parts, SensePage};
use nandscape_device_media::MediaError;
use nandscape_drive::Breakdown;
use nandscape_drive::breakdown::cause;

use super::OpenChannel;
use super::notices::Notice;

/// Reads to destinations of type `D`.
pub struct OpenChannelReader<D: Destination> {
    ftl: Rc<OpenChannel>,
    parts: Parts<OpenChannel, D>,
}

impl OpenChannel {
    /// Clears unwritten units, and pins the chunks of the pages to read.
    fn look_up(&self, extent: Extent, to: &impl Destination) -> Result<PageReads, ReadError> {
        let mut pages = PageReads::new();
        for piece in extent.pieces(self.unit) {
            let Some((chunk, unit)) = self.readable(piece.lpn.0) else {
                if to.rejects_unmapped() {
                    pages.iter().for_each(|read| self.unpin(read));
                    return Err(ReadError { sector: piece.sector(self.unit), why: Unreadable::Unmapped });
                }
                to.mem().clear(piece.at, piece.bytes());
                continue;
            };
            let geometry = self.media.geometry();
            let (page, number) = self.layout.page(geometry, chunk, unit);
            let unit = geometry.unit_at(page, number);
            let copy = self.media.keeps_data().then(|| CopyOut::new(unit, &piece, None));
            if reading::add(&mut pages, page, &piece, self.unit, copy) {
                self.chunks.borrow_mut()[chunk as usize].pins += 1;
            }
        }
        Ok(pages)
    }

    /// The chunk and unit of an address, where there is data.
    pub(super) fn readable(&self, address: u32) -> Option<(u32, u32)> {
        let (chunk, unit) = self.layout.place(address.into())?;
        (unit < self.chunk(chunk).readable(self.config.mw_cunits)).then_some((chunk, unit))
    }

    fn unpin(&self, read: &PageRead) {
        let geometry = self.media.geometry();
        let chunk = self.layout.chunk_of(geometry, geometry.block_of(read.page));
        let pins = &mut self.chunks.borrow_mut()[chunk as usize].pins;
        *pins -= 1;
        if *pins == 0 {
            self.unpinned.notify();
        }
    }
}

impl SensePage for OpenChannel {
    type Round = Infallible;

    async fn sense_page<Caller, D: Destination>(
        &self,
        read: &PageRead,
        to: &D,
        breakdown: &mut Breakdown,
    ) -> Result<u64, ReadError> {
        let who = self.config.priority.who(cause::HOST_READ);
        let sensed = match self.wait_for_program(read.page, breakdown).await {
            Ok(()) => self.media.read_for::<Caller>(read.page, read.flash_bytes, who, breakdown).await,
            Err(lost) => Err(lost),
        };
        if sensed.is_ok() {
            read.copies.iter().for_each(|copy| copy.copy(self.media.data(copy.unit).as_deref(), to.mem()));
        }
        let sensed = if self.media.take_read_failure() { Err(MediaError::Uncorrectable) } else { sensed };
        self.unpin(read);
        match sensed {
            Ok(()) => Ok(u64::from(read.host_bytes)),
            Err(error) => {
                if error != MediaError::PowerLost {
                    let blocks = read.host_bytes / self.unit.bytes();
                    self.tell(Notice::Unreadable { address: self.unit.unit_of(read.sector), blocks });
                }
                Err(ReadError { sector: read.sector, why: Unreadable::Media(error) })
            }
        }
    }
}

impl<D: Destination> OpenChannelReader<D> {
    pub(super) fn new(ftl: &Rc<OpenChannel>) -> OpenChannelReader<D> {
        OpenChannelReader { ftl: ftl.clone(), parts: Parts::new(&ftl.sim) }
    }
}

impl<D: Destination> Reader<D> for OpenChannelReader<D> {
    async fn read<Caller>(&self, extent: Extent, to: &D, breakdown: &mut Breakdown) -> Result<(), ReadError> {
        let pages = self.ftl.look_up(extent, to)?;
        match &pages[..] {
            [page] if u64::from(page.host_bytes) == extent.bytes() => {
                let bytes = self.ftl.sense_page::<(Caller, D), D>(page, to, breakdown).await?;
                to.deliver(bytes, breakdown).await;
                Ok(())
            }
            _ => Box::pin(self.parts.read(self.ftl.clone(), pages, extent, to, breakdown)).await,
        }
    }
}
