//! Where in a zone's blocks each of its units lies.
//!
//! A zone is written in strips, each by one program command in one group. Strips go round the groups of the zone, from the one at which
//! the zone starts; each round is a row. A column is the blocks of one group.

use std::rc::Rc;

use nandscape_device_media::{Geometry, PlaneId, PlaneMode, Timing};

use super::mapping::{Groups, ZoneMapping};

/// The shape of all zones.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Planes that are programmed together.
    pub planes: u32,
    /// Pages of one plane that are programmed together.
    pub word_line: u32,
    /// Units of a page.
    pub page_units: u32,
    /// Rows of a block.
    pub rows_per_block: u32,
    /// Blocks of each plane of a zone.
    pub depth: u32,
    /// The groups of each set of the mapping.
    sets: Rc<[Vec<u32>]>,
}

/// A place in a zone.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Place {
    pub(super) column: usize,
    pub(super) row: u32,
    /// The page within the strip, and the unit within the page.
    pub(super) page: u32,
    pub(super) unit: u32,
}

impl Layout {
    /// Zones of `depth` blocks of each of their planes.
    pub fn new(geometry: &Geometry, timing: &Timing, mapping: &dyn ZoneMapping, depth: u32) -> Layout {
        let (counts, groups) = (geometry.counts(), Layout::groups_of(geometry, timing));
        let planes = geometry.planes() / groups.count();
        let word_line = timing.pages_per_program();
        Layout {
            planes,
            word_line,
            page_units: geometry.units_per_page(),
            rows_per_block: counts.pages_per_block / word_line,
            depth,
            sets: (0..mapping.sets(groups)).map(|set| mapping.groups(groups, set)).collect(),
        }
    }

    /// The groups of a drive.
    pub fn groups_of(geometry: &Geometry, timing: &Timing) -> Groups {
        let counts = geometry.counts();
        let planes = if timing.features.planes == PlaneMode::MultiPlane { counts.planes_per_die } else { 1 };
        Groups { channels: counts.channels, per_channel: counts.dies_per_channel * counts.planes_per_die / planes }
    }

    /// Sets of groups, which zones take in turn.
    pub fn sets(&self) -> u32 {
        self.sets.len() as u32
    }

    /// The groups of a zone.
    pub(super) fn groups(&self, zone: u32) -> &[u32] {
        &self.sets[zone as usize % self.sets.len()]
    }

    /// The planes of a group.
    pub(super) fn planes_of(&self, group: u32) -> impl Iterator<Item = PlaneId> + use<> {
        (group * self.planes..(group + 1) * self.planes).map(PlaneId)
    }

    /// Columns of a zone.
    pub fn columns(&self) -> u32 {
        self.sets[0].len() as u32
    }

    /// Pages of a strip.
    pub(super) fn strip_pages(&self) -> u32 {
        self.planes * self.word_line
    }

    /// Units of a strip.
    pub fn strip_units(&self) -> u32 {
        self.strip_pages() * self.page_units
    }

    /// Rows of a zone.
    pub(super) fn rows(&self) -> u32 {
        self.rows_per_block * self.depth
    }

    /// Units of a zone.
    pub fn zone_units(&self) -> u64 {
        u64::from(self.rows()) * u64::from(self.columns()) * u64::from(self.strip_units())
    }

    /// The column and the row of a strip of a zone that starts at column `start`.
    pub(super) fn strip(&self, start: u32, strip: u32) -> (usize, u32) {
        (((start + strip) % self.columns()) as usize, strip / self.columns())
    }

    /// The column in the middle of the longest way round between those that zones are at, the lowest of equal ones; the first where no
    /// zone is.
    pub(super) fn farthest(&self, mut at: Vec<u32>) -> u32 {
        at.sort_unstable();
        let Some((first, last)) = at.first().zip(at.last()) else { return 0 };
        let gap = |from: u32, to: u32| (to - from, std::cmp::Reverse((from + (to - from) / 2) % self.columns()));
        let around = gap(*last, first + self.columns());
        at.windows(2).map(|pair| gap(pair[0], pair[1])).chain([around]).max().map_or(0, |(_, middle)| middle.0)
    }

    /// Where a unit of a zone that starts at column `start` lies.
    pub(super) fn place(&self, start: u32, unit: u32) -> Place {
        let (column, row) = self.strip(start, unit / self.strip_units());
        let within = unit % self.strip_units();
        Place { column, row, page: within / self.page_units, unit: within % self.page_units }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_start_far_from_each_other() {
        let sets = Rc::new([(0..32).collect()]);
        let layout = Layout { planes: 1, word_line: 3, page_units: 8, rows_per_block: 359, depth: 1, sets };
        let mut at = Vec::new();
        for expected in [0, 16, 8, 24, 4, 12, 20, 28, 2, 6, 10, 14, 18, 22] {
            let start = layout.farthest(at.clone());
            assert_eq!(start, expected, "{at:?}");
            at.push(start);
        }
        // The longest way leads past the last column.
        assert_eq!(layout.farthest(vec![3, 21]), 12);
        assert_eq!(layout.farthest(vec![9, 21]), 31);
        assert_eq!(layout.farthest(vec![30, 30]), 14);
        assert_eq!((layout.strip(31, 0), layout.strip(31, 1), layout.strip(31, 32)), ((31, 0), (0, 0), (31, 1)));
    }
}
