//! Walking PRPs (Base 4.1.1): a list of pages, of which the first may begin anywhere.
//!
//! The requested length bounds the work: each page of a list holds at least 511 entries, except the first, which
//! may hold any number.

use nandscape_wire_nvme::Status;

use super::data_pointer::{Segment, Segments};
use super::dma::Dma;

/// Bytes of an entry.
const ENTRY: u64 = 8;
/// Entries of a list that are read at a time.
const BATCH: usize = 64;

/// Adds the segments of the first `len` bytes, with pages of `page` bytes (a power of two).
pub(super) fn walk(
    dma: &dyn Dma,
    prp1: u64,
    prp2: u64,
    page: u64,
    len: u64,
    segments: &mut Segments,
) -> Result<(), Status> {
    if len == 0 {
        return Ok(());
    }
    // Base 4.1.1: the lowest two bits of an offset are zero.
    if !prp1.is_multiple_of(4) {
        return Err(Status::PRP_OFFSET_INVALID.final_());
    }
    let first = (page - prp1 % page).min(len);
    segments.push(prp1, first);
    match len - first {
        0 => {}
        rest if rest <= page => segments.push(whole_page(prp2, page)?, rest),
        rest => walk_list(dma, prp2, page, rest, segments)?,
    }
    Ok(())
}

/// Takes the entries for `rest` bytes from the list at `list` and the lists chained to it.
fn walk_list(dma: &dyn Dma, list: u64, page: u64, mut rest: u64, segments: &mut Segments) -> Result<(), Status> {
    // The first list is aligned to entries, those after it to pages.
    if !list.is_multiple_of(ENTRY) {
        return Err(Status::PRP_OFFSET_INVALID.final_());
    }
    let mut at = list;
    while rest > 0 {
        // Entries up to the end of this page of the list, and entries still needed.
        let room = (page - at % page) / ENTRY;
        let wanted = rest.div_ceil(page);
        // If they do not fit, the last entry of the page points to the next page.
        let taken = if wanted <= room { wanted } else { room - 1 };
        let mut left = taken;
        while left > 0 {
            let mut entries = [[0; ENTRY as usize]; BATCH];
            let now = left.min(BATCH as u64) as usize;
            dma.read(at, entries[..now].as_flattened_mut())?;
            for entry in &entries[..now] {
                let piece = rest.min(page);
                segments.push(whole_page(u64::from_le_bytes(*entry), page)?, piece);
                rest -= piece;
            }
            at = at.wrapping_add(now as u64 * ENTRY);
            left -= now as u64;
        }
        if rest > 0 {
            let mut next = [0; ENTRY as usize];
            dma.read(at, &mut next)?;
            at = whole_page(u64::from_le_bytes(next), page)?;
        }
    }
    Ok(())
}

/// An entry that must have no offset.
fn whole_page(entry: u64, page: u64) -> Result<u64, Status> {
    if entry.is_multiple_of(page) { Ok(entry) } else { Err(Status::PRP_OFFSET_INVALID.final_()) }
}

impl Segments {
    fn push(&mut self, address: u64, len: u64) {
        self.add(Segment { address: Some(address), len: len as u32 });
    }
}
