//! A mapping entry of 8 bytes, as OX-Block has them (OX 6.1.4): where a unit's data is, and which of its sectors are lost.

use nandscape_device_media::{PageId, UnitId};

/// The low half is the location, zero for none; the high half has a bit for each sector that cannot be read.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Entry(u64);

impl Entry {
    /// Bytes of an entry in flash.
    pub const SIZE: usize = 8;
    /// Never written, or deallocated.
    pub const UNMAPPED: Entry = Entry(0);
    /// No data, and no sector that can be read.
    pub const LOST: Entry = Entry((u32::MAX as u64) << 32);

    /// A unit whose data is at `at`, except that of the sectors in `lost`.
    pub fn new(at: Option<UnitId>, lost: u32) -> Entry {
        Entry(at.map_or(0, |unit| u64::from(unit.0) + 1) | u64::from(lost) << 32)
    }

    /// Where the data is.
    #[inline]
    pub fn unit(self) -> Option<UnitId> {
        (self.0 as u32).checked_sub(1).map(UnitId)
    }

    /// The sectors that cannot be read, a bit each.
    #[inline]
    pub fn lost(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// As a number.
    pub fn to_raw(self) -> u64 {
        self.0
    }

    /// The entry that [`Entry::to_raw`] gave.
    pub fn from_raw(raw: u64) -> Entry {
        Entry(raw)
    }
}

/// The location of a page as a number: zero is none.
pub fn page_to_raw(page: Option<PageId>) -> u64 {
    page.map_or(0, |page| u64::from(page.0) + 1)
}

/// The location that [`page_to_raw`] gave.
pub fn page_from_raw(raw: u64) -> Option<PageId> {
    (raw as u32).checked_sub(1).map(PageId)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_keeps_its_location_and_its_lost_sectors() {
        for (at, lost) in [(None, 0), (Some(UnitId(0)), 0x81), (Some(UnitId(u32::MAX - 1)), u32::MAX), (None, 1)] {
            let entry = Entry::from_raw(Entry::new(at, lost).to_raw());
            assert_eq!((entry.unit(), entry.lost()), (at, lost));
        }
        assert_eq!((Entry::UNMAPPED.unit(), Entry::LOST.lost()), (None, u32::MAX));
        assert_eq!(page_from_raw(page_to_raw(Some(PageId(7)))), Some(PageId(7)));
        assert_eq!(page_from_raw(page_to_raw(None)), None);
    }
}
