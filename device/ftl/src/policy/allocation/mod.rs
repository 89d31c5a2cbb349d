//! On which plane the host's next page is written.

mod striped;

use nandscape_device_media::PlaneId;

pub use striped::{StripeOrder, Striped};

/// Chooses planes. It is told which ones are ready: those that have room for a page and are not busy with enough of
/// them already.
pub trait AllocationPolicy {
    /// A plane is ready from now on, or no longer.
    fn set_ready(&mut self, plane: PlaneId, ready: bool);

    /// The plane for the next page; `None` when none is ready.
    fn next(&mut self) -> Option<PlaneId>;
}
