//! Where in a zone's blocks each of its units lies.
//!
//! A zone is written in strips, each by one program command in one group. Strips rotate over the groups of the zone;
//! each round is a row. A column is the blocks of one group.

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

    /// The column and the row of a strip.
    pub(super) fn strip(&self, strip: u32) -> (usize, u32) {
        ((strip % self.columns()) as usize, strip / self.columns())
    }

    /// Where a unit lies.
    pub(super) fn place(&self, unit: u32) -> Place {
        let (column, row) = self.strip(unit / self.strip_units());
        let within = unit % self.strip_units();
        Place { column, row, page: within / self.page_units, unit: within % self.page_units }
    }
}
