//! Programs of the host's data, and the planes and dies ready for another.

use nandscape_device_ftl_core::policy::{AllocationPolicy, PlaneSet, Stripe};
use nandscape_device_media::{Geometry, Media, PlaneId, Registers};
use nandscape_drive::breakdown::cause;
use nandscape_sim::Cause;

use super::holdup::Holdups;
use super::together::Together;

/// Programs of the host's data, and the targets of the next ones.
pub(super) struct HostPrograms {
    pub(super) allocation: Box<dyn AllocationPolicy>,
    /// Pages that are programmed with one command.
    pub(super) together: Together,
    /// The cause of the wait of the host's data.
    pub(super) holdups: Holdups,
    /// Programs under way, by plane. Where planes share a die, its first plane counts.
    under_way: Vec<u32>,
    /// Programs that a plane or die is given at a time: one for its array, one to fill its cache register.
    per_lun: u32,
    /// Units that all planes and dies are given at a time.
    units_per_round: u32,
    /// The most units of a stripe.
    pub(super) units_per_stripe: u32,
    /// The planes that are ready for another page, as the allocation policy knows.
    ready: PlaneSet,
    any_ready: u32,
    /// Planes of a stripe that planting has yet to write, and the handle of their data.
    to_plant: (u8, Stripe),
}

impl HostPrograms {
    pub(super) fn new(media: &Media, allocation: Box<dyn AllocationPolicy>, holdups: Holdups) -> HostPrograms {
        let geometry: &Geometry = media.geometry();
        let together = Together::new(geometry, media.timing());
        let per_lun = if media.timing().registers == Registers::Double { 2 } else { 1 };
        HostPrograms {
            ready: PlaneSet::none(geometry.planes()),
            any_ready: 0,
            units_per_stripe: geometry.units_per_page() * together.pages() * allocation.width(),
            allocation,
            together,
            holdups,
            under_way: vec![0; geometry.planes() as usize],
            per_lun,
            units_per_round: geometry.planes() * geometry.units_per_page() * together.word_line * per_lun,
            to_plant: (0, Stripe::new()),
        }
    }

    /// Whether a plane may get more pages.
    #[inline]
    pub(super) fn set_ready(&mut self, plane: PlaneId, ready: bool) {
        if self.ready.contains(plane) != ready {
            self.ready.set(plane, ready);
            self.any_ready = self.any_ready + u32::from(ready) - u32::from(!ready);
            self.allocation.set_ready(plane, ready);
        }
    }

    /// Whether any plane may.
    #[inline]
    pub(super) fn is_any_ready(&self) -> bool {
        self.any_ready > 0
    }

    /// The plane of a handle's next page for planting, which writes the planes of a stripe one after the other; `None` when none is
    /// ready.
    pub(super) fn next_to_plant(&mut self, handle: u8) -> Option<PlaneId> {
        if self.to_plant.0 != handle || self.to_plant.1.is_empty() {
            self.to_plant = (handle, self.allocation.next_for(handle));
            self.to_plant.1.reverse();
        }
        self.to_plant.1.pop()
    }

    /// Units that all planes and dies are given to program at a time.
    pub(super) fn units_per_round(&self) -> u32 {
        self.units_per_round
    }

    /// Whether a plane has its limit of programs.
    #[inline]
    pub(super) fn is_busy(&self, plane: PlaneId) -> bool {
        self.under_way[self.lun_index(plane)] >= self.per_lun
    }

    /// The cause of a wait for programs under way, as that for older data of the same units: collectors if they hold up
    /// the planes of at least half of these programs.
    pub(super) fn culprit(&self) -> Cause {
        let (mut all, mut held_up) = (0, 0);
        for (plane, under_way) in (0..).map(PlaneId).zip(&self.under_way) {
            all += under_way;
            held_up += if self.holdups.is_held_up(plane) { *under_way } else { 0 };
        }
        if all > 0 && held_up * 2 >= all { cause::GC } else { cause::HOST_WRITE }
    }

    /// Whether no program and no fill is under way.
    pub(super) fn are_idle(&self) -> bool {
        self.under_way.iter().all(|under_way| *under_way == 0) && !self.holdups.is_any_filling()
    }

    /// A program on a plane, and perhaps others of its die, begins.
    pub(super) fn begins(&mut self, plane: PlaneId) {
        let lun = self.lun_index(plane);
        self.under_way[lun] += 1;
    }

    /// A program has ended.
    pub(super) fn ended(&mut self, plane: PlaneId) {
        let lun = self.lun_index(plane);
        self.under_way[lun] -= 1;
    }

    fn lun_index(&self, plane: PlaneId) -> usize {
        self.together.lun_of(plane).start as usize
    }
}
