//! Where the slots of a log are on a drive.
//!
//! On a drive without zones they follow the record of the store. On one with zones, a zone has as many as fit, and the first zones are not
//! for slots.

use crate::zones::OWN;

/// See the file.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Slots {
    segment: u64,
    first: u64,
    /// Bytes from slots that are written one after the other to the next of these.
    stride: u64,
    /// Slots that are written one after the other, and are free together: those of a zone.
    pub(crate) together: u32,
}

impl Slots {
    /// One behind the other.
    pub(crate) const fn plain(segment: u64) -> Slots {
        Slots { segment, first: segment, stride: segment, together: 1 }
    }

    /// In zones that begin every `size` bytes and take `capacity`, which is a segment at least.
    pub(crate) fn in_zones(segment: u64, size: u64, capacity: u64) -> Slots {
        let together = (capacity / segment.max(1)).max(1) as u32;
        Slots { segment, first: OWN as u64 * size, stride: size, together }
    }

    /// Where a slot begins, in bytes.
    pub(crate) fn start(self, slot: u32) -> u64 {
        let (of_zone, in_zone) = (slot / self.together, slot % self.together);
        self.first + u64::from(of_zone) * self.stride + u64::from(in_zone) * self.segment
    }
}
