//! Rotating GC (Li 3.3.4): at most one plane of a group of planes collects at a time, as long as the others have pages for
//! the host. A plane without host pages collects concurrently: the overload case.
//!
//! A group is planes at the same position of some neighbouring channels: those that the stripes of an array of planes lie in.

use std::num::NonZeroU32;

use nandscape_device_media::{Geometry, PlaneId};

use super::{AdmissionPolicy, PlaneSet};

/// See the file.
pub struct Rotating {
    /// Channels of a group.
    width: u32,
    planes_per_channel: u32,
}

impl Rotating {
    /// Groups of `width` channels.
    pub fn new(geometry: &Geometry, width: NonZeroU32) -> Rotating {
        Rotating { width: width.get(), planes_per_channel: geometry.planes() / geometry.channels() }
    }
}

impl AdmissionPolicy for Rotating {
    fn admits(&self, plane: PlaneId, running: &PlaneSet) -> bool {
        let (channel, position) = (plane.0 / self.planes_per_channel, plane.0 % self.planes_per_channel);
        let first = channel / self.width * self.width;
        (first..first + self.width)
            .all(|channel| !running.contains(PlaneId(channel * self.planes_per_channel + position)))
    }

    fn admits_short(&self, _: PlaneId, _: &PlaneSet) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use nandscape_device_rig::TestFlash;

    use super::*;

    #[test]
    fn a_plane_waits_for_its_group_unless_it_is_short() {
        let geometry = TestFlash { channels: 4, dies: 3, planes: 1, ..TestFlash::default() }.geometry();
        let policy = Rotating::new(&geometry, NonZeroU32::new(2).unwrap());
        let mut running = PlaneSet::none(12);
        running.set(PlaneId(4), true);
        // Planes 1 and 4 are the second of the first two channels.
        let refused: Vec<u32> = (0..12).filter(|plane| !policy.admits(PlaneId(*plane), &running)).collect();
        assert_eq!(refused, [1, 4]);
        assert!(policy.admits_short(PlaneId(1), &running));
    }
}
