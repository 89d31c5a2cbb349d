//! The places of a namespace's frames in the sectors of the FTL.

use nandscape_device_ftl_core::address::{Extent, SECTOR, UnitSize};

/// The fewest bytes of a frame: the head of a pack with all its runs fits into one.
pub const LEAST_FRAME: u32 = 4_096;

/// The sectors of a namespace, as frames with numbers from zero. A frame is a mapping unit, or several.
#[derive(Clone, Debug)]
pub struct Area {
    /// First frame and first sector of each run of frames, in order.
    runs: Vec<(u32, u64)>,
    frames: u32,
    sectors: u32,
}

impl Area {
    /// The whole frames in some extents.
    pub fn new(extents: impl IntoIterator<Item = Extent>, unit: UnitSize) -> Area {
        let sectors = unit.bytes().max(LEAST_FRAME) / SECTOR;
        let (mut runs, mut frames) = (Vec::new(), 0);
        for extent in extents {
            let first = extent.start.next_multiple_of(sectors.into());
            let whole = extent.end().saturating_sub(first) / u64::from(sectors);
            if whole > 0 {
                runs.push((frames, first));
                frames += whole as u32;
            }
        }
        Area { runs, frames, sectors }
    }

    /// The number of frames.
    pub fn frames(&self) -> u32 {
        self.frames
    }

    /// Bytes of a frame.
    pub fn frame_bytes(&self) -> u32 {
        self.sectors * SECTOR
    }

    /// Whether a frame follows the previous one without a gap.
    pub(super) fn is_joined(&self, frame: u32) -> bool {
        self.runs.binary_search_by_key(&frame, |(first, _)| *first).is_err()
    }

    /// The sectors of all frames.
    pub(super) fn extents(&self) -> impl Iterator<Item = Extent> {
        let ends = self.runs.iter().skip(1).map(|(first, _)| *first).chain([self.frames]);
        self.runs.iter().zip(ends).map(|((first, _), end)| self.extent(*first, end - first))
    }

    /// The sectors of `count` frames that follow each other without a gap.
    pub fn extent(&self, frame: u32, count: u32) -> Extent {
        let (first, sector) = self.runs[self.runs.partition_point(|(first, _)| *first <= frame) - 1];
        let start = sector + u64::from(frame - first) * u64::from(self.sectors);
        Extent { start, sectors: count * self.sectors }
    }

    /// The sectors that a place touches, and where it begins in them.
    pub fn cover(&self, place: Place) -> (Extent, usize) {
        let (first, end) = (place.offset / SECTOR, (place.offset + place.bytes).div_ceil(SECTOR));
        let start = self.extent(place.frame, 1).start + u64::from(first);
        (Extent { start, sectors: end - first }, (place.offset % SECTOR) as usize)
    }
}

/// Contiguous bytes, in a frame and perhaps in frames that follow it without a gap.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// The frame in which they begin.
    pub frame: u32,
    /// Where they begin in it.
    pub offset: u32,
    /// How many.
    pub bytes: u32,
}

impl Place {
    /// The frames that it touches, and its bytes in each.
    pub(super) fn frames(self, size: u32) -> impl Iterator<Item = (u32, u32)> {
        let (mut at, end) = (self.offset, self.offset + self.bytes);
        std::iter::from_fn(move || {
            if at == end {
                return None;
            }
            let bytes = (size - at % size).min(end - at);
            let frame = self.frame + at / size;
            at += bytes;
            Some((frame, bytes))
        })
    }

    /// A part of it, from `skip` bytes on.
    pub(super) fn part(self, skip: u32, bytes: u32, size: u32) -> Place {
        let at = self.offset + skip;
        Place { frame: self.frame + at / size, offset: at % size, bytes }
    }
}

/// Contiguous bytes over runs of frames: a stream that is written at once.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Stream {
    /// First frame and number of frames of each run.
    pub(super) runs: Vec<(u32, u32)>,
}

impl Stream {
    /// Over frames, in their order.
    pub(super) fn of(frames: &[u32], area: &Area) -> Stream {
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for frame in frames {
            match runs.last_mut() {
                Some((first, count)) if *first + *count == *frame && area.is_joined(*frame) => *count += 1,
                _ => runs.push((*frame, 1)),
            }
        }
        Stream { runs }
    }

    /// Where a range of it lies.
    pub(super) fn places(&self, at: u32, bytes: u32, size: u32) -> Vec<Place> {
        let (mut skip, mut left, mut places) = (at, bytes, Vec::new());
        for (first, count) in &self.runs {
            let all = count * size;
            if skip < all && left > 0 {
                let now = left.min(all - skip);
                places.push(Place { frame: first + skip / size, offset: skip % size, bytes: now });
                (skip, left) = (0, left - now);
            } else {
                skip = skip.saturating_sub(all);
            }
        }
        places
    }

    /// Its frames.
    pub(super) fn frames(&self) -> impl Iterator<Item = u32> {
        self.runs.iter().flat_map(|(first, count)| *first..first + count)
    }

    /// Its sectors.
    pub(super) fn extents(&self, area: &Area) -> Vec<Extent> {
        self.runs.iter().map(|(first, count)| area.extent(*first, *count)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area() -> Area {
        let extents =
            [Extent { start: 3, sectors: 30 }, Extent { start: 64, sectors: 16 }, Extent { start: 99, sectors: 7 }];
        Area::new(extents, UnitSize::of_bytes(4_096))
    }

    #[test]
    fn frames_are_whole_and_aligned() {
        let area = area();
        assert_eq!((area.frames(), area.frame_bytes()), (5, 4_096));
        assert_eq!(area.extent(1, 2), Extent { start: 16, sectors: 16 });
        assert_eq!(area.extent(3, 1), Extent { start: 64, sectors: 8 });
        let all: Vec<Extent> = area.extents().collect();
        assert_eq!(all, [Extent { start: 8, sectors: 24 }, Extent { start: 64, sectors: 16 }]);
        assert!(area.is_joined(1) && !area.is_joined(3) && area.is_joined(4));
        let place = Place { frame: 1, offset: 1_000, bytes: 100 };
        assert_eq!(area.cover(place), (Extent { start: 17, sectors: 2 }, 488));
        assert_eq!(Area::new([Extent { start: 0, sectors: 64 }], UnitSize::of_bytes(16_384)).frames(), 2);
    }

    #[test]
    fn a_stream_is_cut_where_its_frames_lie_apart() {
        let stream = Stream::of(&[0, 1, 2, 3, 4], &area());
        assert_eq!(stream.runs, [(0, 3), (3, 2)]);
        let (left, right) = (Place { frame: 2, offset: 4_000, bytes: 96 }, Place { frame: 3, offset: 0, bytes: 5_000 });
        assert_eq!(stream.places(3 * 4_096 - 96, 5_096, 4_096), [left, right]);
        assert_eq!(right.frames(4_096).collect::<Vec<_>>(), [(3, 4_096), (4, 904)]);
        assert_eq!(right.part(4_100, 10, 4_096), Place { frame: 4, offset: 4, bytes: 10 });
        assert!(stream.places(7, 0, 4_096).is_empty());
    }
}
