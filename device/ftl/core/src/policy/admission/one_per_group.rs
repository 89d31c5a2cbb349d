//! The planes of a group collect one after another. A group is a number of consecutive planes: those of a die, of a channel,
//! or of the drive.
//!
//! Left out: groups across channels, such as the stripes of an array of planes.

use std::num::NonZeroU32;

use nandscape_device_media::PlaneId;

use super::{AdmissionPolicy, PlaneSet};

/// See the file.
pub struct OnePerGroup {
    /// Planes of a group.
    planes: NonZeroU32,
}

impl OnePerGroup {
    /// Groups of `planes` planes.
    pub fn new(planes: NonZeroU32) -> OnePerGroup {
        OnePerGroup { planes }
    }
}

impl AdmissionPolicy for OnePerGroup {
    fn admits(&self, plane: PlaneId, running: &PlaneSet) -> bool {
        let first = plane.0 / self.planes * self.planes.get();
        !running.has_any(first..first + self.planes.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plane_waits_for_its_group_only() {
        let policy = OnePerGroup::new(NonZeroU32::new(3).unwrap());
        let mut running = PlaneSet::none(9);
        assert!(policy.admits(PlaneId(4), &running));
        running.set(PlaneId(4), true);
        let admitted = (0..9).filter(|plane| policy.admits(PlaneId(*plane), &running));
        assert_eq!(admitted.collect::<Vec<_>>(), [0, 1, 2, 6, 7, 8]);
    }
}
