//! Fused operations (Base 3.4.2): Compare and Write as one.

use nandscape_drive::Breakdown;

use super::{Command, Later, Reply};

/// Serves fused operations.
pub trait Fused {
    /// Serves the first and the second command as one.
    fn serve_fused<'a>(&'a self, pair: [Command<'a>; 2], breakdown: &'a mut Breakdown) -> Later<'a, [Reply; 2]>;
}
