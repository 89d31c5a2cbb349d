//! The moves of a collection: how far it has emptied its block, the pages and units of a batch, and the logical units
//! that own them, as far as the collection has read that.

use nandscape_device_ftl_core::address::Lpn;
use nandscape_device_ftl_core::component::Stream;
use nandscape_device_media::plain::{Malformed, Reader, Writer};
use nandscape_device_media::{BlockId, Geometry, PageId, UnitId};

/// The progress of emptying a block.
#[derive(Copy, Clone)]
pub(super) struct Cursor {
    pub(super) victim: BlockId,
    /// Whether it is bad when it is empty.
    pub(super) retiring: bool,
    /// Where its data goes.
    pub(super) stream: Stream,
    /// Whether whole pages are still being copied back, before the rest is packed.
    pub(super) copybacks: bool,
    /// The first unit not yet planned.
    pub(super) next: UnitId,
    /// The page read last, whose units are in the controller.
    pub(super) read: Option<PageId>,
}

impl Cursor {
    pub(super) fn new(geometry: &Geometry, victim: BlockId, stream: Stream, copybacks: bool) -> Cursor {
        let retiring = false;
        Cursor {
            victim,
            retiring,
            stream,
            copybacks,
            next: geometry.unit_at(geometry.page_at(victim, 0), 0),
            read: None,
        }
    }
}

impl Cursor {
    /// As bytes.
    pub(super) fn save(&self, to: &mut Writer) {
        to.word(self.victim.0);
        to.byte(u8::from(self.retiring));
        to.byte(self.stream.0);
        to.byte(u8::from(self.copybacks));
        to.word(self.next.0);
        to.word(self.read.map_or(u32::MAX, |page| page.0));
    }

    /// From bytes.
    pub(super) fn restore(from: &mut Reader<'_>) -> Result<Cursor, Malformed> {
        Ok(Cursor {
            victim: BlockId(from.word()?),
            retiring: from.byte()? != 0,
            stream: Stream(from.byte()?),
            copybacks: from.byte()? != 0,
            next: UnitId(from.word()?),
            read: Some(PageId(from.word()?)).filter(|page| page.0 != u32::MAX),
        })
    }
}

/// The data to move out of a block, and its targets.
#[derive(Default)]
pub(super) struct Moves {
    /// Pages current as a whole, copied within the plane.
    pub(super) copybacks: Vec<(PageId, PageId)>,
    /// Pages to read, with the bytes of their current units.
    pub(super) reads: Vec<(PageId, u32)>,
    /// The units read, in order, and the pages they are packed into.
    pub(super) units: Vec<UnitId>,
    pub(super) targets: Vec<PageId>,
    /// The owners of units whose out-of-band areas were read, in the order of the units: those of this batch, and of the
    /// page that the previous batch left in the controller.
    owners: Vec<(UnitId, Lpn)>,
}

impl Moves {
    /// Begins a new batch. The page at which `cursor` stands stays in the controller.
    pub(super) fn clear(&mut self, geometry: &Geometry, cursor: &Cursor) {
        self.copybacks.clear();
        self.reads.clear();
        self.units.clear();
        self.targets.clear();
        self.owners.retain(|(unit, _)| Some(geometry.page_of(*unit)) == cursor.read);
    }

    /// Notes the owners of the units read.
    pub(super) fn learn(&mut self, owners: impl Iterator<Item = (UnitId, u32)>) {
        self.owners.extend(owners.map(|(unit, tag)| (unit, Lpn(tag))));
    }

    /// The logical unit whose data is at `unit`, from its out-of-band area.
    ///
    /// # Panics
    /// When that was not read.
    pub(super) fn owner_read(&self, unit: UnitId) -> Lpn {
        let found = self.owners.binary_search_by_key(&unit, |(unit, _)| *unit);
        let index = found.unwrap_or_else(|_| panic!("the out-of-band area of {unit:?} was not read"));
        self.owners[index].1
    }

    pub(super) fn is_empty(&self) -> bool {
        self.copybacks.is_empty() && self.units.is_empty()
    }

    /// The pages that units are packed into, each with its units, the last ones with none if a word line is not full.
    pub(super) fn packed(&self, per_page: u32) -> impl Iterator<Item = (PageId, &[UnitId])> {
        let mut groups = self.units.chunks(per_page as usize);
        self.targets.iter().map(move |page| (*page, groups.next().unwrap_or_default()))
    }

    /// The pages that data is moved to.
    pub(super) fn all_targets(&self) -> impl Iterator<Item = PageId> {
        self.copybacks.iter().map(|(_, to)| *to).chain(self.targets.iter().copied())
    }

    /// Units to move, where a page holds `per_page`.
    pub(super) fn count(&self, per_page: u32) -> u32 {
        self.copybacks.len() as u32 * per_page + self.units.len() as u32
    }
}
