//! Planting of a full drive: each zone is written once, in order. A drive without garbage collection has no other steady
//! state.

use nandscape_device_ftl_core::{Plant, PlantReport};
use nandscape_sim::Seed;

use super::ZoneFtl;
use super::body::Run;

impl ZoneFtl {
    /// Gives an unused drive full zones, in no simulated time. `progress` gets the share done.
    ///
    /// # Panics
    /// When a zone was written.
    pub fn plant(&self, _: Plant, _: Seed, progress: &mut dyn FnMut(f64)) -> PlantReport {
        for zone in 0..self.config.zones {
            self.plant_zone(zone);
            progress(f64::from(zone + 1) / f64::from(self.config.zones));
        }
        PlantReport { overwritten: 0, waf: 1.0 }
    }

    fn plant_zone(&self, zone: u32) {
        let (mut state, layout) = (self.state.borrow_mut(), &self.layout);
        let state = &mut *state;
        let (geometry, per_page) = (state.geometry, layout.page_units);
        assert_eq!(state.table.zone(zone).written, 0, "zone {zone} was written");
        let strips = layout.rows() * layout.columns();
        for strip in 0..strips {
            let (number, row) = layout.strip(strip);
            if state.bodies[zone as usize].columns[number].lacks_blocks(row, layout) {
                let planes = layout.planes_of(layout.groups(zone)[number]);
                let blocks = planes.map(|plane| state.blocks.take(plane).expect("there are blocks for all zones"));
                let run = Run { first_row: row, blocks: blocks.collect() };
                state.bodies[zone as usize].columns[number].runs.push(run);
            }
            let body = &state.bodies[zone as usize];
            let first = zone * self.config.size + strip * layout.strip_units();
            let pages = body.pages(strip, layout, |block, page| geometry.page_at(block, page));
            for (page, tag) in pages.into_iter().zip((first..).step_by(per_page as usize)) {
                self.media.plant_program(page, tag..tag + per_page);
            }
        }
        state.bodies[zone as usize].begun = strips;
        state.table.plant_full(zone);
        state.counters.host_units += u64::from(self.capacity());
        state.counters.host_bytes += u64::from(self.capacity()) * u64::from(self.unit.bytes());
    }
}
