//! Data and out-of-band areas of programmed units, for callers that have read their page.

use crate::geometry::{PageId, UnitId};
use crate::image::{Oob, PageImage};
use crate::media::Media;
use crate::store::UnitData;

impl Media {
    /// Whether host data is kept.
    pub fn keeps_data(&self) -> bool {
        self.contents.borrow().keeps_data()
    }

    /// Adds the tag and the data of a programmed unit to an image, for a caller that has read its page and keeps its block
    /// from being erased.
    #[inline]
    pub fn copy_to(&self, image: &mut PageImage, unit: UnitId) {
        let contents = self.contents.borrow();
        match contents.file() {
            None => image.push(contents.tag(unit), contents.data(unit)),
            Some(file) => image.push_with_oob(file.oob(unit), file.data(unit)),
        }
    }

    /// The same for several units, in order.
    pub fn copy_all_to(&self, image: &mut PageImage, units: &[UnitId]) {
        let contents = self.contents.borrow();
        match contents.has_tags_alone() {
            true => image.push_all(units.iter().map(|unit| contents.tag(*unit))),
            false => units.iter().for_each(|unit| self.copy_to(image, *unit)),
        }
    }

    /// Adds the units of a page and their tags.
    pub(crate) fn note_tags(&self, page: PageId, to: &mut Vec<(UnitId, u32)>) {
        let contents = self.contents.borrow();
        let units = (0..self.geometry.units_per_page()).map(|unit| self.geometry.unit_at(page, unit));
        to.extend(units.map(|unit| (unit, contents.tag(unit))));
    }

    /// The data of a programmed unit, for a caller that has read its page and keeps its block from being erased.
    pub fn data(&self, unit: UnitId) -> Option<UnitData> {
        self.note_reader(unit);
        self.contents.borrow().data(unit)
    }

    /// The out-of-band area of a programmed unit, for a caller that has read its page and keeps its block from being erased.
    pub fn oob(&self, unit: UnitId) -> Oob {
        self.contents.borrow().oob(unit)
    }

    /// Whether a programmed page cannot be read, without a read.
    pub fn is_page_unreadable(&self, page: PageId) -> bool {
        self.contents.borrow().is_unreadable(page)
    }

    /// The out-of-band tag of a programmed unit, without a read. For tests, checks and planting, and for an FTL table
    /// that holds the same numbers, which the model does not store twice. Other callers read the tag, which takes time:
    /// [`Media::read_oob`], or [`Seized::take_tags`](crate::Seized::take_tags).
    #[inline]
    pub fn tag(&self, unit: UnitId) -> u32 {
        self.contents.borrow().tag(unit)
    }
}
