//! The decoder's result for a page read: how many errors it corrected. Unlike the estimate of a block, the result
//! includes the quality of the block, the layer and the page.
//!
//! Left out: errors that a fault plan makes.

use nandscape_sim::Time;

use super::cells::AgingCells;
use super::health::BlockHealth;
use crate::geometry::{Geometry, PageId};
use crate::media::Media;

/// The result of a page's read.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Decoded {
    /// Errors of the worst codeword at the first attempt. For a page that could not be corrected at that attempt, more than
    /// the correctable number.
    pub errors: u32,
    /// Errors that can be corrected.
    pub correctable: u32,
    /// The share of the errors that retention and disturb cause, estimated from the model's record of the block. Rewriting
    /// the data removes these errors. Quality does not change the share.
    pub shifted: f64,
}

impl Media {
    /// The decoder's result for a page, if the flash ages. It takes no time: the caller performs the read.
    pub fn decoded(&self, page: PageId) -> Option<Decoded> {
        let erases = self.erases(self.geometry.block_of(page));
        self.aging.as_ref().map(|cells| cells.decoded(page, erases, self.sim.now(), &self.geometry))
    }

    /// A page was read for its errors.
    pub fn count_scrub_read(&self) {
        if let Some(cells) = &self.aging {
            cells.count_scrub_read();
        }
    }
}

impl AgingCells {
    /// The errors fit the page's draw: the probability of at most `errors` errors equals the draw. A page is therefore
    /// corrected at the first attempt if and only if it has no more errors than can be corrected.
    fn decoded(&self, page: PageId, erases: u32, now: Time, geometry: &Geometry) -> Decoded {
        let (block, correction) = (geometry.block_of(page), self.aging.correction);
        let rber = self.aging.rate_at(self.parts_of(page, block, (erases, now), geometry), 0);
        let draw = self.draw_of_read(page, erases);
        let has_more = |errors: u32| draw < super::Correction { correctable: errors, ..correction }.page_fails(rber);
        let (mut low, mut high) = (0, correction.bits);
        while low < high {
            let middle = (low + high) / 2;
            if has_more(middle) { low = middle + 1 } else { high = middle }
        }
        let BlockHealth { floor, shift, .. } = self.health(block, erases, now, geometry);
        let all = floor + shift;
        let shifted = if all > 0.0 { shift / all } else { 0.0 };
        Decoded { errors: low, correctable: correction.correctable, shifted }
    }
}
