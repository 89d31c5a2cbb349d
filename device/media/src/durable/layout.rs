//! Where each region of the file lies. The layout follows from the [`StoreSpec`] alone, so nothing in the file can
//! point outside. Regions begin at multiples of 4 KiB, and most are holes until they are used.

use crate::geometry::Geometry;

use super::snapshot::{self, CHUNK};
use super::superblock::{StoreSpec, WITH_AGES};
use super::{ages, journal, notes, record, slots, superblock};

const ALIGN: u64 = 4_096;
/// The most metadata bytes of a sector. They follow the data of their unit.
const SECTOR_METADATA: u64 = 8;
const SECTOR: u32 = 512;

/// A part of the file.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Region {
    pub(crate) at: u64,
    pub(crate) len: u64,
}

impl Region {
    pub(crate) fn end(self) -> u64 {
        self.at + self.len
    }
}

/// The regions, in file order.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Layout {
    /// Two copies.
    pub(crate) superblock: [Region; 2],
    /// Two copies.
    pub(crate) notes: [Region; 2],
    /// Two copies.
    pub(crate) counters: [Region; 2],
    pub(crate) slots: Region,
    /// Two copies of a ring.
    pub(crate) journals: [Region; 2],
    /// A record a block, in two copies.
    pub(crate) blocks: [Region; 2],
    /// Headers are written in turn; each chunk is in one of the two.
    pub(crate) snapshots: [Region; 2],
    /// A record a page, in two copies.
    pub(crate) pages: [Region; 2],
    /// Data of units beyond their size: metadata of sectors.
    pub(crate) tails: Region,
    pub(crate) data: Region,
    /// Ages of data and reads, in two copies. Empty in formats before [`WITH_AGES`].
    pub(crate) ages: [Region; 2],
    /// Bytes of a page's record.
    pub(crate) page_stride: u64,
    /// Bytes of a unit's tail.
    pub(crate) tail_stride: u64,
    /// Bytes of a slot's copy.
    pub(crate) slot_stride: u64,
}

impl Layout {
    /// Of a store in a format.
    pub(crate) fn new(spec: &StoreSpec, geometry: &Geometry, format: u32) -> Layout {
        let mut end = 0;
        let mut next = |len: u64| {
            let region = Region { at: end, len };
            end += len.next_multiple_of(ALIGN);
            region
        };
        let (units, pages) = (u64::from(geometry.units()), u64::from(geometry.units() / geometry.units_per_page()));
        let tail_stride = u64::from(geometry.unit_size() / SECTOR).max(1) * SECTOR_METADATA;
        let page_stride = record::page_stride(geometry.units_per_page());
        let slot_data = if spec.keeps_data { u64::from(geometry.unit_size()) + tail_stride } else { 0 };
        let slot_stride = slots::stride(slot_data);
        Layout {
            superblock: [next(superblock::BYTES), next(superblock::BYTES)],
            notes: [next(notes::BYTES), next(notes::BYTES)],
            counters: [next(notes::COUNTERS), next(notes::COUNTERS)],
            slots: next(slots::region_bytes(u64::from(spec.slots), slot_stride)),
            journals: [(); 2].map(|()| next(journal::region_bytes(spec.logical_units))),
            blocks: [(); 2].map(|()| next(u64::from(geometry.blocks()) * record::BLOCK as u64)),
            snapshots: {
                let bytes = snapshot::region_bytes(geometry.blocks(), spec.snapshot_bytes.next_multiple_of(CHUNK));
                [next(bytes), next(bytes)]
            },
            pages: [(); 2].map(|()| next(pages * page_stride)),
            tails: next(units * tail_stride),
            data: next(units * u64::from(geometry.unit_size())),
            ages: {
                let bytes = if format >= WITH_AGES { ages::region_bytes(geometry.blocks()) } else { 0 };
                [next(bytes), next(bytes)]
            },
            page_stride,
            tail_stride,
            slot_stride,
        }
    }

    /// Whether it has a region for the ages of data.
    pub(crate) fn has_ages(&self) -> bool {
        self.ages[1].len > 0
    }

    /// Length of the file.
    pub(crate) fn len(&self) -> u64 {
        if self.has_ages() { self.ages[1].end() } else { self.data.end() }
    }
}
