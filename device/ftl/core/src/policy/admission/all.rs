//! Every plane collects as soon as it is low on space.

use nandscape_device_media::PlaneId;

use super::{AdmissionPolicy, PlaneSet};

/// See the file.
pub struct All;

impl AdmissionPolicy for All {
    fn admits(&self, _: PlaneId, _: &PlaneSet) -> bool {
        true
    }
}
