//! Zones, their data, and blocks: what changes several of them at once, synchronous.

use std::collections::BTreeSet;

use nandscape_device_media::{BlockId, Geometry, PageId};
use smallvec::SmallVec;

use super::blocks::Blocks;
use super::body::{Body, Found, Run};
use super::layout::Layout;
use super::table::{ZoneState, ZoneTable};
use super::write::Program;
use crate::ftl::{Stats, TableSummary};

/// See the file.
pub(super) struct State {
    pub(super) geometry: Geometry,
    pub(super) layout: Layout,
    pub(super) table: ZoneTable,
    /// Of each zone.
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
    /// There are none left.
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

    /// Sees to it that a strip has blocks.
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

    /// A read or a program in a page has ended. Whether it was the last in its block.
    pub(super) fn unpin(&mut self, page: PageId) -> bool {
        self.blocks.unpin(self.geometry.block_of(page))
    }

    /// What the tables hold, counted.
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
