//! The optional features of the page FTL.

use std::rc::Rc;

use nandscape_device_ftl_core::address::Extent;
use nandscape_device_ftl_core::ftl::{Milestone, Settling};
use nandscape_device_ftl_core::offers::{
    Delay, Delays, LatencyWindow, Later, Metadata, Placement, Sanitization, Sanitize, Windows,
};
use nandscape_device_ftl_core::placement::{Interface, PlacementEvent, PlacementReport};
use nandscape_device_ftl_core::policy::Schedule;
use nandscape_device_media::MediaError;
use nandscape_drive::HostMem;

use crate::{PageFtl, Reservation, sanitize, write};

impl Windows for PageFtl {
    fn ranges(&self) -> u16 {
        match self.config.placement.interface {
            Interface::Ranges => self.config.placement.handles.into(),
            _ => 1,
        }
    }

    fn set_schedule(&self, schedule: Option<Schedule>) {
        self.follow(schedule);
    }

    fn set_latency_window(&self, window: Option<LatencyWindow>) {
        self.follow_mode(window);
    }

    fn free_for_host(&self) -> u64 {
        self.state.borrow().free_for_host()
    }

    fn most_free_for_host(&self) -> u64 {
        let geometry = self.media.geometry();
        u64::from(self.config.gc.free_in_window) * u64::from(geometry.planes()) * u64::from(geometry.units_per_block())
    }
}

impl Delays for PageFtl {
    fn fails_reads(&self) -> bool {
        self.read_policy.as_deref().is_some_and(|policy| policy.fails_reads())
    }

    fn expect_fail_fast(&self, expected: bool) {
        self.background.expect(expected && self.read_policy.is_some());
    }

    fn lets_urgent_reads_in(&self) -> bool {
        self.config.gc.preempt_above.is_some()
    }

    fn delay(&self, extent: Extent, fails: bool) -> Option<Delay> {
        let delay = self.delay_of(extent);
        if fails && delay.is_some() {
            self.state.borrow_mut().counters.failed_fast += 1;
        }
        delay
    }
}

impl Placement<PageFtl> for PageFtl {
    fn report(&self) -> PlacementReport {
        self.state.borrow().placement_report().expect("it is offered where there are handles")
    }

    fn on_event(&self, notify: Box<dyn Fn(PlacementEvent)>) {
        if let Some(placed) = &mut self.state.borrow_mut().placed {
            placed.told = notify;
        }
    }

    fn place(&self, reservation: &mut Reservation<'_>, handle: u8) {
        reservation.handle = handle;
    }

    fn change_reclaim_unit(&self, handle: u8) {
        self.state.borrow_mut().change_unit(handle);
        self.pump();
    }
}

impl Metadata<PageFtl> for PageFtl {
    fn accept(
        &self,
        extent: Extent,
        data: Option<&HostMem>,
        metadata: &HostMem,
        reservation: Reservation<'_>,
        watch: Option<Milestone>,
    ) -> Option<Rc<Settling>> {
        write::accept(self, extent, data, Some(metadata), reservation, watch)
    }
}

impl Sanitize for PageFtl {
    /// Includes planted data, which no host wrote and no counter counts.
    fn may_hold_data(&self) -> bool {
        self.holds_anything()
    }

    fn sanitize<'a>(&'a self, how: Sanitization, progress: &'a dyn Fn(u64, u64)) -> Later<'a, Result<(), MediaError>> {
        Box::pin(sanitize::sanitize(self, how, progress))
    }
}
