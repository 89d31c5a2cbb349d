//! The pages of an extent, and the parts that are copied of them.

use std::convert::Infallible;
use std::rc::Rc;

use nandscape_device_media::{PageId, UnitId};
use nandscape_drive::HostMem;
use smallvec::SmallVec;

use crate::address::{Piece, SECTOR, UnitSize};

/// Pages to read from flash.
pub type PageReads<Round = Infallible> = SmallVec<[PageRead<Round>; 1]>;

/// One page to read from flash, and where its units go. `Round` is how an FTL reconstructs a page from other pages; one
/// that cannot has none.
#[derive(Debug)]
pub struct PageRead<Round = Infallible> {
    /// The page.
    pub page: PageId,
    /// The first sector that the host gets of it.
    pub sector: u64,
    /// Bytes to read of it: the units that are touched.
    pub flash_bytes: u32,
    /// Bytes that the host gets of it.
    pub host_bytes: u32,
    /// What to copy; empty where the drive keeps no data.
    pub copies: SmallVec<[CopyOut; 1]>,
    /// Whether the page stands for a unit that is in no page and is reconstructed from others.
    pub is_absent: bool,
    /// How the page is reconstructed from other pages, or the other purpose of its read.
    pub round: Option<Rc<Round>>,
}

/// A part of a unit to copy to the host.
#[derive(Debug)]
pub struct CopyOut {
    /// The unit.
    pub unit: UnitId,
    /// First byte within the unit.
    pub offset: usize,
    /// Number of bytes.
    pub len: usize,
    /// Offset in the host's memory.
    pub at: usize,
    /// Newer bytes of the unit that were in the write buffer at the lookup: those of the sectors in the mask.
    pub overlay: Option<(u64, Rc<[u8]>)>,
}

/// Adds a piece of an extent that is in a page. Units that were written together lie next to each other: one read of
/// the page serves them. Returns whether it needs another page.
#[inline(always)]
pub fn add<Round>(
    pages: &mut PageReads<Round>,
    page: PageId,
    piece: &Piece,
    unit: UnitSize,
    copy: Option<CopyOut>,
) -> bool {
    let host_bytes = piece.bytes() as u32;
    match pages.last_mut() {
        Some(last) if last.page == page && !last.is_absent => {
            last.flash_bytes += unit.bytes();
            last.host_bytes += host_bytes;
            if let Some(copy) = copy {
                last.copies.push(copy);
            }
            false
        }
        _ => {
            let copies = copy.map_or_else(SmallVec::new, |copy| SmallVec::from_buf([copy]));
            pages.push(PageRead {
                page,
                sector: piece.sector(unit),
                flash_bytes: unit.bytes(),
                host_bytes,
                copies,
                is_absent: false,
                round: None,
            });
            true
        }
    }
}

impl CopyOut {
    /// Of a piece that is in a unit of the flash.
    #[inline]
    pub fn new(unit: UnitId, piece: &Piece, overlay: Option<(u64, Rc<[u8]>)>) -> CopyOut {
        CopyOut { unit, offset: piece.offset(), len: piece.bytes(), at: piece.at, overlay }
    }

    /// Copies the data, given the unit's data on flash. A unit that was programmed without data, as by planting, has
    /// zeros.
    #[inline]
    pub fn copy(&self, data: Option<&[u8]>, mem: &HostMem) {
        match data {
            Some(data) => mem.write(self.at, &data[self.offset..self.offset + self.len]),
            None => mem.clear(self.at, self.len),
        }
        if let Some(newer) = &self.overlay {
            lay_over(newer, (self.offset, self.len), |offset, sector| {
                mem.write(self.at + offset - self.offset, sector)
            });
        }
    }
}

/// Calls `put` with each sector, and its first byte, that newer data has in a range of a unit, given as (first byte, bytes).
pub fn lay_over((held, newer): &(u64, Rc<[u8]>), (offset, len): (usize, usize), mut put: impl FnMut(usize, &[u8])) {
    let sector = SECTOR as usize;
    for first in (offset..offset + len).step_by(sector).filter(|first| held & 1 << (first / sector) != 0) {
        put(first, &newer[first..first + sector]);
    }
}
