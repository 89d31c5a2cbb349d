//! When a stripe is moved so that planes wear evenly. Its members move to other columns of its group (horizontal
//! shifting), or the stripe moves to another group (vertical migration).

mod thresholds;

pub use thresholds::Thresholds;

/// Decides on stripes that are about to be written. Wear is erases of a block, on average over a plane or a group of planes.
pub trait StripeWearPolicy {
    /// Whether a stripe whose most written member lies in a plane with the wear `hot` is shifted, so that the member
    /// moves to the least worn plane of its group.
    fn shifts(&self, hot: f64, least: f64) -> bool;

    /// Whether a stripe of a group with the wear `hot` moves to the least worn group.
    fn migrates(&self, hot: f64, least: f64) -> bool;
}
