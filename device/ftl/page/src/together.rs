//! Pages that are programmed with one command: those of a word line, and with multi-plane commands those of the same
//! number on several planes of a die.
//!
//! Planes of a die diverge when one of them has no room or its collector is behind. Then the lagging planes are programmed
//! without the others until they have caught up.
//!
//! Left out: multi-plane programs of collectors, which work in one plane.

use std::ops::Range;

use nandscape_device_media::{Features, Geometry, PageId, PlaneId, PlaneMode, Timing};
use smallvec::SmallVec;

use super::state::State;
use super::streams;

/// How many pages go together.
#[derive(Copy, Clone)]
pub(super) struct Together {
    /// Pages of a plane: those of a word line, or one.
    pub(super) word_line: u32,
    /// The most planes.
    planes: u32,
    /// Planes that share an array.
    per_lun: u32,
}

/// Pages that are programmed with one command.
pub(super) type Pages = SmallVec<[PageId; 4]>;

impl Together {
    pub(super) fn new(geometry: &Geometry, timing: &Timing) -> Together {
        let Features { planes, .. } = timing.features;
        let per_die = geometry.counts().planes_per_die;
        Together {
            word_line: timing.pages_per_program(),
            planes: if planes == PlaneMode::MultiPlane { per_die } else { 1 },
            per_lun: if planes == PlaneMode::Independent { 1 } else { per_die },
        }
    }

    /// The most pages of a program.
    pub(super) fn pages(self) -> u32 {
        self.word_line * self.planes
    }

    /// The planes that share an array with this one, itself included.
    #[inline]
    pub(super) fn lun_of(self, plane: PlaneId) -> Range<u32> {
        match self.per_lun {
            1 => plane.0..plane.0 + 1,
            planes => plane.0 - plane.0 % planes..plane.0 - plane.0 % planes + planes,
        }
    }

    /// Pages of one plane that hold at least `pages`, in whole word lines.
    pub(super) fn whole(self, pages: u32) -> u32 {
        pages.next_multiple_of(self.word_line)
    }
}

impl State {
    /// The most units of a stripe.
    pub(super) fn stripe_units(&self) -> u32 {
        self.programs.units_per_stripe
    }

    /// Units that may stay in the buffer because they do not fill a stripe: less than one stripe per handle.
    pub(super) fn stuck_units(&self) -> u32 {
        self.buffer.lines() as u32 * (self.stripe_units() - 1)
    }

    /// The pages for a program of up to `units` units of the host, placed by a handle, on the die of `plane`, which is ready.
    pub(super) fn host_pages(&mut self, plane: PlaneId, handle: u8, units: u32) -> Pages {
        let word_line = self.programs.together.word_line;
        let pages = match self.programs.together.planes {
            1 => self.take_host_pages(plane, handle, word_line).collect(),
            _ => {
                let most = units.div_ceil(self.geometry.units_per_page() * word_line);
                let planes = self.in_step(plane, handle, most as usize);
                planes.into_iter().flat_map(|plane| self.take_host_pages(plane, handle, word_line)).collect()
            }
        };
        self.host_program_begins(plane);
        pages
    }

    /// Among the selected plane and the ready planes of its die, up to `most` with the lowest next page: those that can be
    /// programmed together.
    fn in_step(&self, of_die: PlaneId, handle: u8, most: usize) -> SmallVec<[PlaneId; 4]> {
        let goes = |plane: &PlaneId| *plane == of_die || self.is_ready(*plane);
        let ready = || self.programs.together.lun_of(of_die).map(PlaneId).filter(goes);
        let number = |plane| self.tables.next_number(plane, streams::of_handle(handle));
        let lowest = ready().map(number).min().expect("the plane in turn goes");
        ready().filter(|plane| number(*plane) == lowest).take(most).collect()
    }
}
