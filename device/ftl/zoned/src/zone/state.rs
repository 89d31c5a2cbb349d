//! Zones, their data, and blocks: synchronous changes of several of them.

use std::collections::BTreeSet;

use nandscape_device_ftl_core::ftl::{Stats, TableSummary};
use nandscape_device_media::{BlockId, Geometry, PageId, PlaneId};
use smallvec::SmallVec;

use super::blocks::Blocks;
use super::body::{Body, Column, Found, Run};
use super::layout::Layout;
use super::table::{ZoneState, ZoneTable};
use super::write::Program;

/// See the file.
pub(super) struct State {
    pub(super) geometry: Geometry,
    pub(super) layout: Layout,
    pub(super) table: ZoneTable,
    /// The data of each zone.
    pub(super) bodies: Vec<Body>,
    pub(super) blocks: Blocks,
    /// Zones that wait for a block to be erased.
    pub(super) needy: BTreeSet<u32>,
    pub(super) counters: Stats,
}

/// How a column gets blocks.
enum Supply {
    Taken,
    /// Blocks are being erased.
    Later,
    /// No blocks are left.
    Never,
}

impl State {
    /// Where a unit of a zone is.
    pub(super) fn find(&self, zone: u32, unit: u32) -> Found<'_> {
        let of_zone = self.table.zone(zone);
        if unit >= of_zone.written && !of_zone.has_zrwa || of_zone.state == ZoneState::Offline {
            return Found::Nowhere;
        }
        let page_at = |block, page| self.geometry.page_at(block, page);
        match self.bodies[zone as usize].find(unit, &self.layout, page_at) {
            Found::Buffered(slot) if slot.is_padding => Found::Nowhere,
            found => found,
        }
    }

    /// The next program of a zone that can begin, if any; and room of the buffer that is free because the zone is out of
    /// blocks.
    pub(super) fn next_program(&mut self, zone: u32) -> (Option<Program>, usize) {
        let body = &self.bodies[zone as usize];
        if body.is_stranded {
            return (None, self.bodies[zone as usize].give_room_back());
        }
        let committed = self.committed(zone);
        let again = body.columns.iter().find_map(|column| column.again.filter(|_| !column.is_busy));
        let strip = again.or_else(|| {
            let column = &body.columns[self.layout.strip(body.begun).0];
            let is_next = body.has_strip(&self.layout, committed) && !column.is_busy && column.again.is_none();
            is_next.then_some(body.begun)
        });
        let Some(strip) = strip else { return (None, 0) };
        match self.supply(zone, strip) {
            Supply::Taken => {}
            Supply::Later => {
                self.needy.insert(zone);
                return (None, 0);
            }
            Supply::Never => return (None, self.strand(zone)),
        }
        let body = &mut self.bodies[zone as usize];
        if again.is_none() {
            body.take_strip(&self.layout);
        }
        let column = &mut body.columns[self.layout.strip(strip).0];
        (column.again, column.is_busy) = (None, true);
        let geometry = self.geometry;
        let pages = body.pages(strip, &self.layout, |block, page| geometry.page_at(block, page));
        let generation = body.generation;
        pages.iter().for_each(|page| self.blocks.pin(geometry.block_of(*page)));
        (Some(Program { zone, generation, strip, pages }), 0)
    }

    /// Provides blocks for a strip.
    fn supply(&mut self, zone: u32, strip: u32) -> Supply {
        let (number, row) = self.layout.strip(strip);
        if !self.bodies[zone as usize].columns[number].lacks_blocks(row, &self.layout) {
            return Supply::Taken;
        }
        let group = self.layout.groups(zone)[number];
        let mut blocks: SmallVec<[BlockId; 2]> = SmallVec::new();
        for plane in self.layout.planes_of(group) {
            let Some(block) = self.blocks.take(plane) else {
                blocks.into_iter().for_each(|block| self.blocks.give_back(block));
                return if self.blocks.has_stale(plane) { Supply::Later } else { Supply::Never };
            };
            blocks.push(block);
        }
        let column = &mut self.bodies[zone as usize].columns[number];
        column.runs.push(Run { first_row: row, blocks });
        column.needs_run = false;
        Supply::Taken
    }

    /// See [`super::ZoneFtl::zones_left`].
    pub(super) fn zones_left(&self, taken: impl Iterator<Item = u32>) -> Vec<u32> {
        let (sets, depth) = (self.layout.sets(), self.layout.depth);
        let mut needed = vec![0; self.geometry.planes() as usize];
        let mut need = |zone: u32, lacks: &dyn Fn(usize) -> u32| {
            for (group, column) in self.layout.groups(zone).iter().zip(0..) {
                self.layout.planes_of(*group).for_each(|plane| needed[plane.0 as usize] += lacks(column));
            }
        };
        for (zone, number) in self.table.zones().iter().zip(0..).filter(|(zone, _)| zone.state.is_active()) {
            let columns = &self.bodies[number as usize].columns;
            need(number, &|column| self.lacks(&columns[column]));
            debug_assert!(zone.written < self.table.capacity(), "an active zone is not full");
        }
        taken.for_each(|zone| need(zone, &|_| depth));
        let of_set = |set: u32| {
            let planes = self.layout.groups(set).iter().flat_map(|group| self.layout.planes_of(*group));
            let left = |plane: PlaneId| self.blocks.to_be_had(plane).saturating_sub(needed[plane.0 as usize]) / depth;
            planes.map(left).min().unwrap_or(0)
        };
        (0..sets).map(of_set).collect()
    }

    /// Blocks of each plane that a column still lacks.
    fn lacks(&self, column: &Column) -> u32 {
        let (rows, of_block) = (self.layout.rows(), self.layout.rows_per_block);
        let reached = column.runs.last().map_or(0, |run| run.first_row + of_block);
        rows.saturating_sub(reached).div_ceil(of_block) + u32::from(column.needs_run)
    }

    /// See [`super::ZoneFtl::zones_at_most`].
    pub(super) fn zones_at_most(&self) -> u32 {
        let (sets, zones) = (self.layout.sets(), self.table.zones().len() as u32);
        let of_set = |set: u32| {
            let planes = self.layout.groups(set).iter().flat_map(|group| self.layout.planes_of(*group));
            let good = planes.map(|plane| self.blocks.good(plane)).min().unwrap_or(0);
            (good / self.layout.depth).min((zones + sets - 1 - set) / sets)
        };
        (0..sets).map(of_set).sum()
    }

    /// A zone is out of blocks. Returns the room that its data had in the buffer.
    fn strand(&mut self, zone: u32) -> usize {
        if self.table.zone(zone).state != ZoneState::Full {
            self.commit_all(zone);
            self.table.make_read_only(zone);
        }
        let body = &mut self.bodies[zone as usize];
        body.is_stranded = true;
        body.give_room_back()
    }

    /// Takes all data from a zone: its blocks are stale. Returns them, and the room that is free now.
    pub(super) fn empty(&mut self, zone: u32) -> (Vec<BlockId>, usize) {
        let body = &mut self.bodies[zone as usize];
        let room = body.give_room_back();
        let blocks: Vec<BlockId> = body.blocks().collect();
        body.reset(&self.layout);
        blocks.iter().for_each(|block| self.blocks.make_stale(*block));
        self.needy.remove(&zone);
        (blocks, room)
    }

    /// A read or a program in a page has ended. Returns whether it was the last in its block.
    pub(super) fn unpin(&mut self, page: PageId) -> bool {
        self.blocks.unpin(self.geometry.block_of(page))
    }

    /// The contents of the tables, counted.
    pub(super) fn summary(&self) -> TableSummary {
        let mut summary = TableSummary::default();
        for (body, zone) in self.bodies.iter().zip(self.table.zones()) {
            let waiting = body.waiting().filter(|slot| !slot.is_padding).count() as u64;
            let in_strips = body.strips.values().flatten().filter(|slot| !slot.is_padding).count() as u64;
            let begun = u64::from(body.begun) * u64::from(self.layout.strip_units());
            summary.in_buffer += waiting + in_strips;
            summary.on_flash += begun.min(zone.written.into()) - in_strips;
        }
        summary
    }
}
