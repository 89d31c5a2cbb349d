//! Which blocks are rewritten because of retention or disturb.
//!
//! Left out: when blocks are checked, which the flash decides ([`BlockHealth`]), and how they are moved.

mod near_limit;

use nandscape_device_media::aging::{BlockHealth, Decoded};

pub use near_limit::NearLimit;

/// Decides on checked blocks.
pub trait RefreshPolicy {
    /// Whether the block must be rewritten.
    fn is_due(&self, health: &BlockHealth) -> bool;

    /// Whether the block of a page that was read must be rewritten.
    fn is_due_by(&self, page: &Decoded) -> bool;
}
