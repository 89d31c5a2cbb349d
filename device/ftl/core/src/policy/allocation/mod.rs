//! On which planes the host's next pages are written.

mod by_range;
mod striped;

use nandscape_device_media::PlaneId;
use smallvec::SmallVec;

pub use by_range::ByRange;
pub use striped::{StripeOrder, Striped};

/// Planes of different dies that are written concurrently, a page or a word line each.
pub type Stripe = SmallVec<[PlaneId; 1]>;

/// Chooses among the ready planes: those that have room for a page and fewer programs than they take at a time.
pub trait AllocationPolicy {
    /// A plane is ready from now on, or no longer.
    fn set_ready(&mut self, plane: PlaneId, ready: bool);

    /// Whether a plane is ready.
    fn is_any_ready(&self) -> bool;

    /// Whether a plane is ready for the data of a placement handle; for a handle without its own planes, any.
    fn is_ready_for(&self, _handle: u8) -> bool {
        self.is_any_ready()
    }

    /// Ranges of the logical blocks that have separate planes, by the handles of their data; 0 is none.
    fn ranges(&self) -> u8 {
        0
    }

    /// The range that owns a plane, where ranges have separate planes.
    fn range_of(&self, _plane: PlaneId) -> Option<u8> {
        None
    }

    /// The most planes of a stripe. A stripe is written when there is data for as many, or when data must not wait.
    fn width(&self) -> u32;

    /// The planes for the next pages, all of them ready, and no two that share an array; empty when there is none.
    fn next(&mut self) -> Stripe;

    /// The same for the data of a placement handle.
    fn next_for(&mut self, _handle: u8) -> Stripe {
        self.next()
    }

    /// Its position in its order, as a number for [`AllocationPolicy::go_on_at`]. A policy without an order is always at 0.
    fn place(&self) -> u32 {
        0
    }

    /// Continues at the position of a policy, which may be another one on a drive saved with a different policy.
    fn go_on_at(&mut self, _place: u32) {}
}
