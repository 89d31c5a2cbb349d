//! Behind whom the host's data waits on its way to flash: its own kind, or collectors.
//!
//! A write that waits for room in the write buffer has no single culprit: any plane would do. It is put down to
//! collectors while they hold up at least half of the planes.

use nandscape_device_media::{GcScheme, Geometry, PlaneId};
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, Stage};
use nandscape_sim::{Cause, Span};

/// What holds the host up, plane by plane.
pub(super) struct Holdups {
    geometry: Geometry,
    /// What a collector keeps the host out of while it works; `None` where collectors give turns in between.
    shuts_out: Option<GcScheme>,
    planes: Vec<Plane>,
    /// Planes that collectors hold up.
    count: u32,
}

#[derive(Copy, Clone, Default)]
struct Plane {
    /// There is no page for the host until the plane's collector has gone on.
    short: bool,
    /// The host's last program spent most of its time waiting for a collector.
    behind_gc: bool,
    /// Collectors that keep the host out for whole blocks.
    shut_out: u32,
}

impl Plane {
    fn is_held_up(self) -> bool {
        self.short || self.behind_gc || self.shut_out > 0
    }
}

impl Holdups {
    pub(super) fn new(geometry: &Geometry, shuts_out: Option<GcScheme>) -> Holdups {
        let planes = vec![Plane::default(); geometry.planes() as usize];
        Holdups { geometry: *geometry, shuts_out, planes, count: 0 }
    }

    /// Who holds the host's data up now.
    pub(super) fn culprit(&self) -> Cause {
        if self.count * 2 >= self.geometry.planes() { cause::GC } else { cause::HOST_WRITE }
    }

    /// Whether a plane has a page for the host was looked at again.
    pub(super) fn set_short(&mut self, plane: PlaneId, short: bool) {
        self.change(plane, |plane| plane.short = short);
    }

    /// A program of the host on a plane has ended; where its time went.
    pub(super) fn programmed(&mut self, plane: PlaneId, log: &Breakdown) {
        let gc: Span = Stage::WAITS.iter().map(|stage| log.waited(*stage, cause::GC)).sum();
        let behind_gc = gc * 2 > log.total();
        self.change(plane, |plane| plane.behind_gc = behind_gc);
    }

    /// A plane's collector begins, or ends.
    pub(super) fn collecting(&mut self, plane: PlaneId, begins: bool) {
        let channel = self.geometry.channel_of(plane);
        for other in (0..self.geometry.planes()).map(PlaneId) {
            let shut_out = match self.shuts_out {
                None | Some(GcScheme::Nothing) => return,
                Some(GcScheme::Plane) => other == plane,
                Some(GcScheme::Channel) => self.geometry.channel_of(other) == channel,
                Some(GcScheme::Controller) => true,
            };
            if shut_out {
                self.change(other, |plane| plane.shut_out = plane.shut_out + u32::from(begins) - u32::from(!begins));
            }
        }
    }

    fn change(&mut self, plane: PlaneId, change: impl FnOnce(&mut Plane)) {
        let plane = &mut self.planes[plane.0 as usize];
        let before = u32::from(plane.is_held_up());
        change(plane);
        self.count = self.count + u32::from(plane.is_held_up()) - before;
    }
}
