//! The stripe whose data has waited longest, whatever its planes.

use super::{FlushCandidate, FlushPolicy};

/// See the file.
pub struct InOrder;

impl FlushPolicy for InOrder {
    fn rank(&self, _: &FlushCandidate) -> u32 {
        0
    }
}
