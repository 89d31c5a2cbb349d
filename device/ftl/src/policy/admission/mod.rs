//! Which of the planes that are low on space may collect at the same time.

mod all;

pub use all::All;

/// Admits collections.
pub trait AdmissionPolicy {
    /// Whether a plane may begin while `running` planes collect. `is_urgent` is when the host can get no page of the plane
    /// before it was cleaned.
    fn admits(&self, running: u32, is_urgent: bool) -> bool;
}
