//! Maps an extent to flash pages, and reads one page to its destination.
//!
//! A page's block is pinned from the lookup until its data was copied: it is not erased meanwhile.

use std::rc::Rc;

use nandscape_device_ftl_core::address::{Extent, Location, Lpn, Piece, SlotId, UnitSize, metadata_of};
use nandscape_device_ftl_core::component::{BlockMetadata, Mapping};
use nandscape_device_ftl_core::ftl::{Destination, ReadError, Unreadable};
use nandscape_device_ftl_core::reading::{self, CopyOut, PageRead, PageReads};
use nandscape_device_media::{Broken, Counted, MediaError, PageId, Priority, UnitId};
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, HostMem};

use super::state::State;
use super::tables::MapMiss;
use super::{PageFtl, StripeRead};

/// The progress of an extent's lookup.
#[derive(Default)]
pub(super) struct Lookup {
    /// Pieces that were looked up.
    done: usize,
    /// The flash pages of pieces on flash.
    pub(super) pages: PageReads<StripeRead>,
}

impl State {
    /// Looks an extent up from where `lookup` stopped: clears and copies to memory the sectors that need no flash, and
    /// pins the blocks of the other pages.
    #[inline(always)]
    fn look_up(
        &mut self,
        extent: Extent,
        to: &impl Destination,
        lookup: &mut Lookup,
    ) -> Result<Result<(), ReadError>, MapMiss> {
        if let Some(sector) = self.first_lost(extent) {
            return Ok(Err(ReadError { sector, why: Unreadable::Lost }));
        }
        for piece in extent.pieces(self.unit).skip(lookup.done) {
            match self.tables.map.lookup(piece.lpn)? {
                Location::Unmapped if self.rain.is_some() && self.is_absent(piece.lpn) => {
                    if let Some(error) = self.look_up_absent(&mut lookup.pages, &piece, None) {
                        return Ok(Err(error));
                    }
                }
                Location::Unmapped if to.rejects_unmapped() => {
                    return Ok(Err(ReadError { sector: piece.sector(self.unit), why: Unreadable::Unmapped }));
                }
                Location::Unmapped => {
                    self.counters.unwritten_units += 1;
                    to.mem().clear(piece.at, piece.bytes());
                    if let Some(metadata) = to.metadata() {
                        metadata.clear(metadata_of(piece.at), metadata_of(piece.bytes()));
                    }
                }
                Location::Flash(unit) => self.push_page(&mut lookup.pages, unit, &piece, None),
                Location::Buffered(slot) => {
                    if let Some(error) = self.look_up_buffered(&mut lookup.pages, slot, &piece, to) {
                        return Ok(Err(error));
                    }
                }
            }
            lookup.done += 1;
        }
        Ok(Ok(()))
    }

    /// Copies from the buffer. If the slot lacks some of the sectors, they come from the copy that it will replace.
    #[inline(never)]
    fn look_up_buffered(
        &mut self,
        pages: &mut PageReads<StripeRead>,
        id: SlotId,
        piece: &Piece,
        to: &impl Destination,
    ) -> Option<ReadError> {
        let held = self.buffer.slot(id).mask;
        if held & piece.mask() == piece.mask() {
            if let Some(data) = self.buffer.data(id) {
                to.mem().write(piece.at, &data[piece.offset()..piece.offset() + piece.bytes()]);
                if let Some(metadata) = to.metadata() {
                    put_metadata(metadata, piece.at, self.unit, data, (piece.offset(), piece.bytes()));
                }
            }
            return None;
        }
        let overlay = self.buffer.share_data(id).map(|data| (held, data));
        match self.buffer.slot(id).previous {
            Location::Flash(unit) => self.push_page(pages, unit, piece, overlay),
            _ if self.rain.is_some() => return self.look_up_absent(pages, piece, overlay),
            _ => unreachable!("{:?}: a slot over no copy on flash is whole", piece.lpn),
        }
        None
    }

    /// A unit that is in the parity of its stripe alone: the lookup names the page of the parity in its place.
    #[cold]
    fn look_up_absent(
        &mut self,
        pages: &mut PageReads<StripeRead>,
        piece: &Piece,
        overlay: Option<(u64, Rc<[u8]>)>,
    ) -> Option<ReadError> {
        let Some(parity) = self.parity_of(piece.lpn) else {
            let (sector, why) = (piece.sector(self.unit), Unreadable::Media(MediaError::NoAnswer));
            return Some(ReadError { sector, why });
        };
        // Another absent unit of the same stripe must not share the page.
        let before = pages.len();
        let mut own = PageReads::new();
        self.push_page(&mut own, parity, piece, overlay);
        pages.extend(own);
        pages[before].is_absent = true;
        None
    }

    #[inline(always)]
    fn push_page(
        &mut self,
        pages: &mut PageReads<StripeRead>,
        unit: UnitId,
        piece: &Piece,
        overlay: Option<(u64, Rc<[u8]>)>,
    ) {
        let page = self.geometry.page_of(unit);
        let copy = self.keeps_data.then(|| CopyOut::new(unit, piece, overlay));
        if reading::add(pages, page, piece, self.unit, copy) {
            self.tables.blocks.pin(self.geometry.block_of(page));
        }
    }

    /// A read has released a page; returns whether it was the last one to pin its block.
    pub(super) fn unpin_page(&mut self, page: PageId) -> bool {
        self.tables.blocks.unpin(self.geometry.block_of(page)) == 0
    }
}

impl PageFtl {
    /// Looks an extent up for reading, from where `lookup` stopped. `Some` is a part of the map that must be loaded before
    /// the lookup can continue. Never inlined: the rest of a read is then short enough for the compiler to merge it with its caller.
    #[inline(never)]
    pub(super) fn look_up(
        &self,
        extent: Extent,
        to: &impl Destination,
        lookup: &mut Lookup,
    ) -> Result<Option<MapMiss>, ReadError> {
        let looked_up = self.state.borrow_mut().look_up(extent, to, lookup);
        match looked_up {
            Ok(Ok(())) => Ok(None),
            Ok(Err(error)) => Err(self.give_up(lookup, error)),
            Err(miss) => Ok(Some(miss)),
        }
    }

    /// A part of the map that `lookup` needs is not in memory.
    pub(super) async fn load_for(
        &self,
        miss: MapMiss,
        extent: Extent,
        lookup: &mut Lookup,
        breakdown: &mut Breakdown,
    ) -> Result<(), ReadError> {
        if let Err(error) = self.load(miss, breakdown).await {
            return Err(self.give_up(lookup, ReadError { sector: extent.start, why: Unreadable::Media(error) }));
        }
        self.state.borrow_mut().tables.map.loaded(miss, &[]);
        Ok(())
    }

    /// A lookup has failed: releases the blocks that it has pinned.
    fn give_up(&self, lookup: &mut Lookup, error: ReadError) -> ReadError {
        lookup.pages.drain(..).for_each(|read| self.unpin(read.page));
        error
    }

    /// Waits until no collection holds the controller.
    ///
    /// In a box: few drives have such collections, and the wait must not enlarge every read's future.
    pub(super) async fn pass_gate(&self, breakdown: &mut Breakdown) -> Counted<'_> {
        let who = self.config.priority.who(cause::HOST_READ);
        Box::pin(self.gate.pass(&self.media, who, breakdown)).await
    }

    /// Reads a page, before all others if it is urgent: die, array, channel, transfer. `Caller` is as in [`Media::read_for`](nandscape_device_media::Media::read_for).
    #[inline(always)]
    pub(super) fn sense<Caller>(
        &self,
        read: &PageRead<StripeRead>,
        is_urgent: bool,
        breakdown: &mut Breakdown,
    ) -> impl Future<Output = Result<(), MediaError>> {
        if self.media.is_remote() {
            self.media.want(read.copies.iter().map(|copy| copy.unit));
        }
        let priority = if is_urgent { Priority::ReadsFirst } else { self.config.priority };
        self.media.read_for::<Caller>(read.page, read.flash_bytes, priority.who(cause::HOST_READ), breakdown)
    }

    /// A page was read: copies the requested part, and releases its block. Returns the bytes to deliver.
    #[inline]
    pub(super) fn page_sensed<D: Destination>(
        &self,
        read: &PageRead<StripeRead>,
        sensed: Result<(), MediaError>,
        to: &D,
    ) -> Result<u64, ReadError> {
        if let Err(error) = sensed {
            self.page_not_read(read.page, error);
            return Err(ReadError { sector: read.sector, why: Unreadable::Media(error) });
        }
        read.copies.iter().for_each(|copy| self.copy_out(copy, to));
        if self.media.take_read_failure() {
            self.page_not_read(read.page, MediaError::Uncorrectable);
            return Err(ReadError { sector: read.sector, why: Unreadable::Media(MediaError::Uncorrectable) });
        }
        self.unpin(read.page);
        Ok(u64::from(read.host_bytes))
    }

    /// Where reads find a unit in the flash; `None` when it is in the write buffer or not mapped.
    pub fn flash_unit(&self, lpn: Lpn) -> Option<UnitId> {
        match self.state.borrow().tables.location(lpn) {
            Location::Flash(unit) => Some(unit),
            _ => None,
        }
    }

    #[inline(always)]
    pub(super) fn unpin(&self, page: PageId) {
        if self.state.borrow_mut().unpin_page(page) {
            self.unpinned.notify();
        }
    }

    pub(super) fn page_not_read(&self, page: PageId, error: MediaError) {
        self.state.borrow_mut().take_note(Broken { error, page });
        self.unpin(page);
        // The collector of a plane that went out of use leaves.
        self.pump();
    }

    fn copy_out(&self, copy: &CopyOut, to: &impl Destination) {
        self.copy_unit(copy, self.media.data(copy.unit).as_deref(), to);
    }

    /// Copies the requested part of a unit that holds `data`.
    pub(super) fn copy_unit(&self, copy: &CopyOut, data: Option<&[u8]>, to: &impl Destination) {
        copy.copy(data, to.mem());
        if let Some(metadata) = to.metadata() {
            self.copy_metadata_out(copy, data.unwrap_or_default(), metadata);
        }
    }

    /// Copies the metadata next to the data that [`PageFtl::copy_out`] copies; `data` is the unit on flash.
    fn copy_metadata_out(&self, copy: &CopyOut, data: &[u8], to: &HostMem) {
        let unit = self.state.borrow().unit;
        put_metadata(to, copy.at, unit, data, (copy.offset, copy.len));
        if let Some(overlay) = &copy.overlay {
            reading::lay_over(overlay, (copy.offset, copy.len), |offset, sector| {
                put_metadata(to, copy.at + offset - copy.offset, unit, &overlay.1, (offset, sector.len()));
            });
        }
    }
}

/// Copies the metadata of a range of a unit, given as (first byte, bytes) of its data, to where the data at `at` has its
/// own. A unit that was written without metadata has zeros.
fn put_metadata(to: &HostMem, at: usize, unit: UnitSize, data: &[u8], (offset, len): (usize, usize)) {
    let (at, first, len) = (metadata_of(at), unit.bytes() as usize + metadata_of(offset), metadata_of(len));
    match data.get(first..first + len) {
        Some(metadata) => to.write(at, metadata),
        None => to.clear(at, len),
    }
}
