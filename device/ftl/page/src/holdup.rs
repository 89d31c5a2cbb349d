//! The cause of a wait of the host's data on its way to flash: other writes, or collectors.
//!
//! A write that waits for room in the write buffer has no single cause, because it could use any plane. The wait is
//! attributed to collectors while they hold up at least half of the planes. The reads that complete partial units
//! (fills) have a fixed plane: a wait for them is attributed to collectors while they hold up at least half of the
//! fills, otherwise to read-modify-write. A write whose unit is still being programmed waits for that program, also on
//! a fixed plane; see [`HostPrograms::culprit`](super::programs::HostPrograms::culprit).

use nandscape_device_ftl_core::policy::GcScheme;
use nandscape_device_media::{Geometry, PlaneId};
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, Stage};
use nandscape_sim::{Cause, Span};

/// The planes in which something holds up the host's data.
pub(super) struct Holdups {
    geometry: Geometry,
    /// The scheme of collectors that keep the host out for whole blocks; `None` if they release between batches.
    shuts_out: Option<GcScheme>,
    planes: Vec<Plane>,
    /// Planes that collectors hold up.
    count: u32,
    /// Fills in progress; fills in planes that collectors hold up; fills in planes from which collectors exclude the host.
    fills: u32,
    fills_held_up: u32,
    fills_shut_out: u32,
}

#[derive(Copy, Clone, Default)]
struct Plane {
    /// Whether the host has no page until the plane's collector makes progress.
    short: bool,
    /// The host's last program spent most of its time waiting for a collector.
    behind_gc: bool,
    /// Collectors that keep the host out for whole blocks.
    shut_out: u32,
    /// Fills under way.
    fills: u32,
}

impl Plane {
    fn is_held_up(self) -> bool {
        self.short || self.behind_gc || self.shut_out > 0
    }

    /// Fills under way in it while a collector holds it up.
    fn fills_held_up(self) -> u32 {
        if self.is_held_up() { self.fills } else { 0 }
    }

    fn fills_shut_out(self) -> u32 {
        if self.shut_out > 0 { self.fills } else { 0 }
    }
}

impl Holdups {
    pub(super) fn new(geometry: &Geometry, shuts_out: Option<GcScheme>) -> Holdups {
        let planes = vec![Plane::default(); geometry.planes() as usize];
        Holdups { geometry: *geometry, shuts_out, planes, count: 0, fills: 0, fills_held_up: 0, fills_shut_out: 0 }
    }

    /// The cause of a wait for any plane now.
    pub(super) fn culprit(&self) -> Cause {
        if self.count * 2 >= self.geometry.planes() { cause::GC } else { cause::HOST_WRITE }
    }

    /// Whether collectors hold up a plane.
    pub(super) fn is_held_up(&self, plane: PlaneId) -> bool {
        self.planes[plane.0 as usize].is_held_up()
    }

    /// Whether a plane has no page for the host.
    pub(super) fn is_short(&self, plane: PlaneId) -> bool {
        self.planes[plane.0 as usize].short
    }

    /// Whether a plane has no page for the host.
    pub(super) fn set_short(&mut self, plane: PlaneId, short: bool) {
        if self.planes[plane.0 as usize].short != short {
            self.change(plane, |plane| plane.short = short);
        }
    }

    /// A program of the host on a plane has ended. `breakdown` is that of the program.
    pub(super) fn programmed(&mut self, plane: PlaneId, breakdown: &Breakdown) {
        let gc: Span = Stage::WAITS.iter().map(|stage| breakdown.waited(*stage, cause::GC)).sum();
        let behind_gc = gc * 2 > breakdown.total();
        self.change(plane, |plane| plane.behind_gc = behind_gc);
    }

    /// Whether a fill is under way.
    pub(super) fn is_any_filling(&self) -> bool {
        self.fills > 0
    }

    /// Fills under way that no collector keeps out of their plane for a whole block.
    pub(super) fn free_fills(&self) -> u32 {
        self.fills - self.fills_shut_out
    }

    /// The cause of a wait for fills, or for other writes if there are none.
    pub(super) fn fill_culprit(&self) -> Cause {
        match self.fills {
            0 => cause::HOST_WRITE,
            fills if self.fills_held_up * 2 >= fills => cause::GC,
            _ => cause::READ_MODIFY_WRITE,
        }
    }

    /// A fill from a plane begins.
    pub(super) fn fill_begins(&mut self, plane: PlaneId) {
        self.fills += 1;
        self.change(plane, |plane| plane.fills += 1);
    }

    /// A fill from a plane has ended.
    pub(super) fn fill_ended(&mut self, plane: PlaneId) {
        self.fills -= 1;
        self.change(plane, |plane| plane.fills -= 1);
    }

    /// A plane's collector begins, or ends.
    pub(super) fn collecting(&mut self, plane: PlaneId, begins: bool) {
        let Some(scheme) = self.shuts_out else { return };
        for other in (0..self.geometry.planes()).map(PlaneId) {
            if scheme.reaches(&self.geometry, plane, other) {
                self.change(other, |plane| plane.shut_out = plane.shut_out + u32::from(begins) - u32::from(!begins));
            }
        }
    }

    fn change(&mut self, plane: PlaneId, change: impl FnOnce(&mut Plane)) {
        let plane = &mut self.planes[plane.0 as usize];
        let before = *plane;
        change(plane);
        self.count = self.count + u32::from(plane.is_held_up()) - u32::from(before.is_held_up());
        self.fills_held_up = self.fills_held_up + plane.fills_held_up() - before.fills_held_up();
        self.fills_shut_out = self.fills_shut_out + plane.fills_shut_out() - before.fills_shut_out();
    }
}
