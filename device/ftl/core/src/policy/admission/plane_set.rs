//! A set of planes: a bit each.

use std::ops::Range;

use nandscape_device_media::PlaneId;

/// See the file.
pub struct PlaneSet(Vec<u64>);

impl PlaneSet {
    /// The empty set of a drive's `planes` planes.
    pub fn none(planes: u32) -> PlaneSet {
        PlaneSet(vec![0; planes.div_ceil(64) as usize])
    }

    /// Puts a plane in, or takes it out.
    #[inline]
    pub fn set(&mut self, plane: PlaneId, is_in: bool) {
        let (word, bit) = (&mut self.0[plane.0 as usize / 64], 1 << (plane.0 % 64));
        *word = if is_in { *word | bit } else { *word & !bit };
    }

    /// Whether a plane is in it.
    #[inline]
    pub fn contains(&self, plane: PlaneId) -> bool {
        self.0[plane.0 as usize / 64] & 1 << (plane.0 % 64) != 0
    }

    /// Whether one of the planes of `range` is in it.
    #[inline]
    pub fn has_any(&self, range: Range<u32>) -> bool {
        let mut first = range.start;
        while first < range.end {
            let (word, end) = (first / 64, range.end.min((first / 64 + 1) * 64));
            let mask = u64::MAX >> (64 - (end - first)) << (first % 64);
            if self.0[word as usize] & mask != 0 {
                return true;
            }
            first = end;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_any_if_one_of_its_planes_is_in() {
        for planes in [[0, 63, 64], [1, 127, 130], [62, 65, 199]] {
            let mut set = PlaneSet::none(200);
            planes.iter().for_each(|plane| set.set(PlaneId(*plane), true));
            for start in 0..200 {
                for end in start..=200 {
                    let any = (start..end).any(|plane| set.contains(PlaneId(plane)));
                    assert_eq!(set.has_any(start..end), any, "{planes:?}: {start}..{end}");
                }
            }
            planes.iter().for_each(|plane| set.set(PlaneId(*plane), false));
            assert!(!set.has_any(0..200));
        }
    }
}
