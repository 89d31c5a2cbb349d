//! Planting of drives whose ranges of logical blocks are in separate blocks: every page has data of one range, in a
//! plane to which the range may be written.
//!
//! No image is planted: no closed form gives the blocks that a range takes on shared planes. Overwrites begin on a full
//! drive, in rounds long enough that a few of them reach the steady state.

use nandscape_device_ftl_core::address::Lpn;
use nandscape_device_ftl_core::placement::Interface;
use nandscape_sim::Rng;
use smallvec::SmallVec;

use super::super::PageFtl;

impl PageFtl {
    /// The ranges that have separate blocks; 0 is none.
    pub(super) fn ranges(&self) -> u8 {
        let placement = &self.config.placement;
        if placement.interface == Interface::Ranges { placement.handles } else { 0 }
    }

    /// Writes every unit once, the ranges one after the other.
    pub(super) fn plant_full_ranges(&self, progress: &mut dyn FnMut(f64)) {
        assert!(self.config.rain.is_none(), "stripes and ranges do not go together");
        let (units, ranges) = (self.config.logical_units, self.ranges());
        let per_page = self.media.geometry().units_per_page();
        let state = self.state.borrow();
        let ends: Vec<u32> = (1..=u32::from(ranges))
            .map(|range| (u64::from(units) * u64::from(range)).div_ceil(u64::from(ranges)) as u32)
            .collect();
        assert!(
            ends.iter().all(|end| *end == units || state.handle_of(Lpn(*end), 0) > state.handle_of(Lpn(end - 1), 0))
        );
        drop(state);
        let mut begin = 0;
        for (range, end) in (0..ranges).zip(ends) {
            for first in (begin..end).step_by(per_page as usize) {
                self.write_page(range, (first..end.min(first + per_page)).map(Lpn));
            }
            begin = end;
            progress(f64::from(end) / f64::from(units));
        }
    }

    /// Overwrites random units; those that do not fill the last page of their range are left out.
    pub(super) fn overwrite_ranges(&self, units: u64, rng: &mut Rng) {
        let per_page = self.media.geometry().units_per_page() as usize;
        let logical = u64::from(self.config.logical_units);
        let mut pages: Vec<SmallVec<[Lpn; 16]>> = vec![SmallVec::new(); usize::from(self.ranges())];
        for _ in 0..units {
            let lpn = Lpn(rng.below(logical) as u32);
            let range = self.state.borrow().handle_of(lpn, 0);
            let page = &mut pages[usize::from(range)];
            page.push(lpn);
            if page.len() == per_page {
                self.write_page(range, std::mem::take(page).into_iter());
            }
        }
    }
}
