//! The remains in the cells of operations that a power cut interrupted, by the fault plan.

use crate::contents::Contents;
use crate::fault::Torn;
use crate::geometry::{BlockId, PageId};
use crate::image::{PageImage, Part};
use crate::media::Media;

/// Bytes that are programmed atomically.
const SECTOR: u32 = 512;

impl Media {
    /// Leaves what the power cut's rule defines of an interrupted program. `image` has the page's units from `from` on.
    pub(crate) fn tear_program(&self, contents: &mut Contents, page: PageId, image: &PageImage, from: usize) {
        let geometry = &self.geometry;
        let part = match self.supply.faults.draw_torn(self.supply.power.torn()) {
            Torn::Unreadable | Torn::Any => return contents.set_unreadable(page),
            Torn::Untouched if contents.is_last(geometry, page) => return contents.give_back_last(geometry, page),
            Torn::Untouched => return contents.set_unreadable(page),
            Torn::Whole => Part::All,
            Torn::Prefix => {
                let sectors = 1 + self.supply.faults.draw_below(geometry.page_size() / SECTOR - 1);
                Part::First((sectors * SECTOR) as usize)
            }
            Torn::Area => Part::Areas,
            Torn::Data => Part::Data,
        };
        let torn = image.part(from, geometry.units_per_page() as usize, geometry.unit_size() as usize, part);
        if contents.fill(geometry, page, &torn, 0).is_err() {
            contents.set_unreadable(page);
        }
    }

    /// Leaves what the power cut's rule defines of an interrupted erase.
    pub(crate) fn tear_erase(&self, contents: &mut Contents, block: BlockId) {
        match self.supply.faults.draw_torn(self.supply.power.torn()) {
            Torn::Untouched => {}
            // If the file cannot be written, the block is unchanged.
            Torn::Whole => _ = contents.erase(&self.geometry, block),
            Torn::Unreadable | Torn::Prefix | Torn::Area | Torn::Data | Torn::Any => {
                contents.tear(&self.geometry, block);
            }
        }
    }
}
