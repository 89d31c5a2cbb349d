//! When the data in a write cache is programmed.

use crate::component::{CacheFill, WriteCaching};

/// As soon as there is a page of it.
pub struct Eager;

impl WriteCaching for Eager {
    fn is_due(&self, _: &CacheFill) -> bool {
        true
    }
}

/// When half of the cache is in use: more units are overwritten there, and are programmed once.
pub struct HalfFull;

impl WriteCaching for HalfFull {
    fn is_due(&self, fill: &CacheFill) -> bool {
        2 * fill.used >= fill.slots
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_waits_until_half_of_the_cache_is_in_use() {
        let fill = |used| CacheFill { queued: used, used, slots: 8, page: 2 };
        assert!(Eager.is_due(&fill(2)) && !HalfFull.is_due(&fill(3)) && HalfFull.is_due(&fill(4)));
    }
}
