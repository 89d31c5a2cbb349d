//! The layout of a namespace in the sectors of the FTL: one run, or several if the drive had no free run that was long
//! enough.

use std::ops::Range;

use nandscape_device_ftl_core::Extent;
use smallvec::SmallVec;

/// Sectors of an extent at most.
const LONGEST_EXTENT: u64 = 1 << 28;

/// Contiguous sectors.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Run {
    /// The first, as the FTL counts.
    pub(crate) start: u64,
    pub(crate) sectors: u64,
}

/// See the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    /// The first run. Most namespaces have no other.
    first: Run,
    others: SmallVec<[Run; 1]>,
}

impl Layout {
    /// Runs in the order of the namespace's sectors; adjacent ones are joined.
    ///
    /// # Panics
    /// If `runs` is empty.
    pub(crate) fn new(runs: impl IntoIterator<Item = Run>) -> Layout {
        let mut joined: SmallVec<[Run; 1]> = SmallVec::new();
        for run in runs {
            match joined.last_mut() {
                Some(last) if last.start + last.sectors == run.start => last.sectors += run.sectors,
                _ => joined.push(run),
            }
        }
        let first = joined.remove(0);
        Layout { first, others: joined }
    }

    /// Whether it has several runs.
    #[inline]
    pub(crate) fn is_fragmented(&self) -> bool {
        !self.others.is_empty()
    }

    /// Its sectors.
    pub(crate) fn sectors(&self) -> u64 {
        self.runs().map(|run| run.sectors).sum()
    }

    pub(crate) fn runs(&self) -> impl Iterator<Item = &Run> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// The sector of the FTL where the first run begins.
    #[inline]
    pub(crate) fn start(&self) -> u64 {
        self.first.start
    }

    /// Where `sectors` sectors from `offset` on lie; `None` when they are in several runs.
    #[inline]
    pub(crate) fn place(&self, offset: u64, sectors: u32) -> Option<Extent> {
        if offset + u64::from(sectors) <= self.first.sectors {
            return Some(Extent { start: self.first.start + offset, sectors });
        }
        self.place_elsewhere(offset, sectors)
    }

    #[cold]
    fn place_elsewhere(&self, offset: u64, sectors: u32) -> Option<Extent> {
        let (run, rest) = self.run_at(offset);
        (rest + u64::from(sectors) <= run.sectors).then_some(Extent { start: run.start + rest, sectors })
    }

    /// The extents in which sectors lie, none longer than 2^28 sectors.
    pub(crate) fn extents(&self, sectors: Range<u64>) -> impl Iterator<Item = Extent> {
        let mut at = sectors.start;
        std::iter::from_fn(move || {
            let left = sectors.end.checked_sub(at).filter(|left| *left > 0)?;
            let (run, rest) = self.run_at(at);
            let len = left.min(run.sectors - rest).min(LONGEST_EXTENT);
            at += len;
            Some(Extent { start: run.start + rest, sectors: len as u32 })
        })
    }

    /// The sectors from `offset` on to the end of their run.
    pub(crate) fn left_in_run(&self, offset: u64) -> u64 {
        let (run, rest) = self.run_at(offset);
        run.sectors - rest
    }

    /// The run that a sector lies in, and its place there.
    fn run_at(&self, offset: u64) -> (Run, u64) {
        let mut rest = offset;
        for run in self.runs() {
            if rest < run.sectors {
                return (*run, rest);
            }
            rest -= run.sectors;
        }
        panic!("sector {offset} is beyond the namespace");
    }

    /// The place in the namespace of a sector of the FTL.
    ///
    /// # Panics
    /// When it is not in the namespace.
    pub(crate) fn offset_of(&self, sector: u64) -> u64 {
        let mut before = 0;
        for run in self.runs() {
            if (run.start..run.start + run.sectors).contains(&sector) {
                return before + sector - run.start;
            }
            before += run.sectors;
        }
        panic!("sector {sector} is not in the namespace");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_are_found_both_ways() {
        let run = |start, sectors| Run { start, sectors };
        let layout = Layout::new([run(100, 10), run(110, 10), run(0, 5), run(50, 8)]);
        assert_eq!((layout.runs().count(), layout.sectors(), layout.is_fragmented()), (3, 33, true));
        let places: Vec<u64> = (0..33).map(|offset| layout.place(offset, 1).unwrap().start).collect();
        let expected: Vec<u64> = (100..120).chain(0..5).chain(50..58).collect();
        assert_eq!(places, expected);
        for (offset, sector) in (0..).zip(expected) {
            assert_eq!(layout.offset_of(sector), offset);
        }
        let extents: Vec<(u64, u32)> = layout.extents(15..27).map(|extent| (extent.start, extent.sectors)).collect();
        assert_eq!(extents, [(115, 5), (0, 5), (50, 2)]);
        let long = Layout::new([run(0, 1 << 30)]);
        assert_eq!(long.extents(1..(1 << 28) + 2).map(|extent| extent.sectors).collect::<Vec<_>>(), [1 << 28, 1]);
        assert_eq!(layout.place(18, 2), Some(Extent { start: 118, sectors: 2 }));
        assert_eq!((layout.place(18, 3), layout.left_in_run(18)), (None, 2));
        assert_eq!((layout.place(20, 5).map(|extent| extent.start), layout.place(20, 6)), (Some(0), None));
    }
}
