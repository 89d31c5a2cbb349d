//! Reads: the layout gives the place of a unit. Its block is pinned from the lookup until its data is copied.

use std::convert::Infallible;
use std::rc::Rc;

use nandscape_device_ftl_core::address::Extent;
use nandscape_device_ftl_core::ftl::{Destination, ReadError, Reader, Unreadable};
use nandscape_device_ftl_core::reading::{self, CopyOut, PageRead, PageReads, Parts, SensePage};
use nandscape_device_media::MediaError;
use nandscape_drive::Breakdown;
use nandscape_drive::breakdown::cause;

use super::ZoneFtl;
use super::body::Found;

/// Reads to destinations of type `D`.
pub struct ZoneReader<D: Destination> {
    ftl: Rc<ZoneFtl>,
    parts: Parts<ZoneFtl, D>,
}

impl ZoneFtl {
    /// Clears and copies the sectors that need no flash, and pins the blocks of the other pages.
    fn look_up(&self, extent: Extent, to: &impl Destination) -> Result<PageReads, ReadError> {
        self.look_up_at(extent, to, |lpn| Some((lpn / self.config.size, lpn % self.config.size)))
    }

    /// The same for units of which `place` returns the zone and the place there, if they have any.
    pub(crate) fn look_up_at(
        &self,
        extent: Extent,
        to: &impl Destination,
        place: impl Fn(u32) -> Option<(u32, u32)>,
    ) -> Result<PageReads, ReadError> {
        let (mut state, mut pages) = (self.state.borrow_mut(), PageReads::new());
        let state = &mut *state;
        for piece in extent.pieces(self.unit) {
            let found = place(piece.lpn.0).map_or(Found::Nowhere, |(zone, unit)| state.find(zone, unit));
            let (page, unit) = match found {
                Found::Nowhere if to.rejects_unmapped() => {
                    pages.iter().for_each(|read| _ = state.unpin(read.page));
                    return Err(ReadError { sector: piece.sector(self.unit), why: Unreadable::Unmapped });
                }
                Found::Nowhere => {
                    state.counters.unwritten_units += 1;
                    to.mem().clear(piece.at, piece.bytes());
                    continue;
                }
                Found::Buffered(slot) => {
                    match &slot.data {
                        Some(data) => to.mem().write(piece.at, &data[piece.offset()..piece.offset() + piece.bytes()]),
                        None => to.mem().clear(piece.at, piece.bytes()),
                    }
                    continue;
                }
                Found::Flash(page, unit) => (page, state.geometry.unit_at(page, unit)),
            };
            let copy = self.media.keeps_data().then(|| CopyOut::new(unit, &piece, None));
            if reading::add(&mut pages, page, &piece, self.unit, copy) {
                state.blocks.pin(state.geometry.block_of(page));
            }
        }
        Ok(pages)
    }
}

impl SensePage for ZoneFtl {
    type Round = Infallible;

    async fn sense_page<Caller, D: Destination>(
        &self,
        read: &PageRead,
        to: &D,
        breakdown: &mut Breakdown,
    ) -> Result<u64, ReadError> {
        let who = self.config.priority.who(cause::HOST_READ);
        let sensed = self.media.read_for::<Caller>(read.page, read.flash_bytes, who, breakdown).await;
        if sensed.is_ok() {
            read.copies.iter().for_each(|copy| copy.copy(self.media.data(copy.unit).as_deref(), to.mem()));
        }
        let sensed = if self.media.take_read_failure() { Err(MediaError::Uncorrectable) } else { sensed };
        if self.state.borrow_mut().unpin(read.page) {
            self.unpinned.notify();
        }
        match sensed {
            Ok(()) => Ok(u64::from(read.host_bytes)),
            Err(error) => Err(ReadError { sector: read.sector, why: Unreadable::Media(error) }),
        }
    }
}

impl<D: Destination> ZoneReader<D> {
    pub(super) fn new(ftl: &Rc<ZoneFtl>) -> ZoneReader<D> {
        ZoneReader { ftl: ftl.clone(), parts: Parts::new(&ftl.sim) }
    }
}

impl<D: Destination> Reader<D> for ZoneReader<D> {
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
