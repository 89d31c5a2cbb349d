//! Which of the planes that are low on space may collect at the same time.

mod all;
mod one_per_group;
mod plane_set;
mod rotating;

use nandscape_device_media::PlaneId;

pub use all::All;
pub use one_per_group::OnePerGroup;
pub use plane_set::PlaneSet;
pub use rotating::Rotating;

/// Admits collections. The FTL consults it for each plane that is to begin, or to continue after it was ahead of the
/// host: when the plane becomes due, and again when a collector begins to wait or ends.
pub trait AdmissionPolicy {
    /// Whether `plane` may collect while the planes of `running` do. When no plane collects, some plane must be admitted.
    fn admits(&self, plane: PlaneId, running: &PlaneSet) -> bool;

    /// The same of a plane that has no page for the host until it collects, if it was not admitted. Planes that this admits are
    /// counted as overloads.
    fn admits_short(&self, _plane: PlaneId, _running: &PlaneSet) -> bool {
        false
    }
}
