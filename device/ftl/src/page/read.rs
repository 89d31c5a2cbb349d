//! From an extent to the pages to fetch.

use std::rc::Rc;

use nandscape_device_media::{Broken, MediaError, UnitId};
use nandscape_drive::HostMem;

use super::PageFtl;
use super::state::State;
use crate::address::{Extent, Location, Piece, SlotId};
use crate::component::BlockMetadata;
use crate::ftl::{CopyOut, Fetch, Fetches};

impl State {
    pub(super) fn lookup(&mut self, extent: Extent, mem: &HostMem) -> Fetches {
        let mut fetches = Fetches::new();
        for piece in extent.pieces(self.unit) {
            match self.location(piece.lpn) {
                Location::Unmapped => mem.clear(piece.at, piece.bytes()),
                Location::Flash(unit) => self.fetch(&mut fetches, unit, &piece, None),
                Location::Buffered(slot) => self.lookup_buffered(&mut fetches, slot, &piece, mem),
            }
        }
        fetches
    }

    /// Served from the buffer, unless the slot lacks some of the sectors: those come from the copy it will replace.
    fn lookup_buffered(&mut self, fetches: &mut Fetches, id: SlotId, piece: &Piece, mem: &HostMem) {
        let held = self.buffer.slot(id).mask;
        if held & piece.mask() == piece.mask() {
            if let Some(data) = self.buffer.data(id) {
                mem.write(piece.at, &data[piece.offset()..piece.offset() + piece.bytes()]);
            }
            return;
        }
        let Location::Flash(unit) = self.buffer.slot(id).durable else {
            unreachable!("{:?}: a slot over no copy on flash is whole", piece.lpn)
        };
        let overlay = self.buffer.data(id).map(|data| (held, Rc::from(data)));
        self.fetch(fetches, unit, piece, overlay);
    }

    fn fetch(&mut self, fetches: &mut Fetches, unit: UnitId, piece: &Piece, overlay: Option<(u64, Rc<[u8]>)>) {
        let page = self.geometry.page_of(unit);
        let copy = self.keeps_data.then(|| CopyOut {
            unit,
            offset: piece.offset(),
            len: piece.bytes(),
            at: piece.at,
            overlay,
        });
        let (flash_bytes, host_bytes) = (self.geometry.unit_size(), piece.bytes() as u32);
        // Neighbours on the host are neighbours on flash when they were written together: one page serves both.
        match fetches.last_mut() {
            Some(last) if last.page == page => {
                last.flash_bytes += flash_bytes;
                last.host_bytes += host_bytes;
                last.copies.extend(copy);
            }
            _ => {
                self.blocks.pin(self.geometry.block_of(page));
                let sector = u64::from(piece.lpn.0) * u64::from(self.unit.sectors()) + u64::from(piece.skip);
                fetches.push(Fetch { page, sector, flash_bytes, host_bytes, copies: copy.into_iter().collect() });
            }
        }
    }

    pub(super) fn has_holes(&self, extent: Extent) -> bool {
        extent.pieces(self.unit).any(|piece| self.location(piece.lpn) == Location::Unmapped)
    }
}

/// A page was read: the data goes to the host, and its block is let go of.
pub(super) fn fetched(ftl: &PageFtl, fetch: Fetch, mem: &HostMem) {
    fetch.copies.iter().for_each(|copy| ftl.copy_out(copy, mem));
    let mut state = ftl.state.borrow_mut();
    let block = state.geometry.block_of(fetch.page);
    if state.blocks.unpin(block) == 0 {
        ftl.unpinned.notify();
    }
}

/// A page could not be read: its block is let go of.
pub(super) fn not_fetched(ftl: &PageFtl, fetch: &Fetch, error: MediaError) {
    let mut state = ftl.state.borrow_mut();
    state.take_note(Broken { error, page: fetch.page });
    let block = state.geometry.block_of(fetch.page);
    if state.blocks.unpin(block) == 0 {
        ftl.unpinned.notify();
    }
    drop(state);
    ftl.check_read_only();
}

impl PageFtl {
    fn copy_out(&self, copy: &CopyOut, mem: &HostMem) {
        match self.media.data(copy.unit) {
            Some(data) => mem.write(copy.at, &data[copy.offset..copy.offset + copy.len]),
            // Programmed without data, as by planting.
            None => mem.clear(copy.at, copy.len),
        }
        if let Some((held, newer)) = &copy.overlay {
            let sector = crate::address::SECTOR as usize;
            for offset in (copy.offset..copy.offset + copy.len).step_by(sector) {
                if held & 1 << (offset / sector) != 0 {
                    mem.write(copy.at + offset - copy.offset, &newer[offset..offset + sector]);
                }
            }
        }
    }
}
