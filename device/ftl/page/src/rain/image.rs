//! Planting of the image that uniform random overwrites leave behind on a drive with stripes: blocks follow `shape`, and
//! within a plane the units are assigned at random to the places of their kind.

use nandscape_device_ftl_core::address::{Location, Lpn};
use nandscape_device_ftl_core::component::{BlockMetadata, BlockState, Mapping, Provisioning, Stream};
use nandscape_device_ftl_core::parts::COLLECTOR_RESERVE;
use nandscape_device_media::{PlaneId, UnitId};
use nandscape_sim::Rng;

use super::super::PageFtl;
use super::super::state::State;
use super::super::streams::HOST;
use super::super::tables::sure;
use super::shape::blocks;

impl PageFtl {
    /// Plants the image.
    pub(in super::super) fn plant_stripes_image(&self, rng: &mut Rng, progress: &mut dyn FnMut(f64)) {
        let state = &mut *self.state.borrow_mut();
        let planes = state.geometry.planes();
        let units = units_of_planes(state);
        for (plane, (data, parity)) in (0..planes).map(PlaneId).zip(units) {
            self.plant_plane(state, plane, data, parity, rng);
            progress(f64::from(plane.0) / f64::from(planes));
        }
        state.all_copies_move();
    }

    /// Writes the blocks of a plane in the order of age, and deals its units to them.
    fn plant_plane(&self, state: &mut State, plane: PlaneId, mut data: Vec<u32>, mut parity: Vec<u32>, rng: &mut Rng) {
        let pages = state.geometry.pages_per_block();
        let streams = self.config.streams().len();
        let is_good = |block: &_| state.tables.blocks.get(*block).state != BlockState::Bad;
        let filled = state.geometry.blocks_of(plane).filter(is_good).count() - streams;
        let total = (data.len() + parity.len()) as u32;
        let spare = filled.saturating_sub(total.div_ceil(pages) as usize);
        let full = filled - spare.clamp(COLLECTOR_RESERVE as usize, self.free_under_load() as usize);
        // The open blocks are at a random point, and hold the latest data.
        let most = pages.min(total / streams as u32 + 1);
        let open: Vec<(Stream, u32)> =
            (0..streams as u8).map(|stream| (Stream(stream), rng.below(u64::from(most)) as u32)).collect();
        rng.shuffle(&mut data);
        rng.shuffle(&mut parity);
        let is_half_parity = |stream: Stream| stream == HOST;
        let of_open = |(stream, pages): &(Stream, u32)| if is_half_parity(*stream) { *pages / 2 } else { 0 };
        let open_parity = open.iter().map(of_open).sum::<u32>().min(parity.len() as u32);
        let open_data = (open.iter().map(|(_, pages)| pages).sum::<u32>() - open_parity).min(data.len() as u32);
        let shape = blocks(data.len() as u32 - open_data, parity.len() as u32 - open_parity, full, pages);
        for block in shape {
            debug_assert!(block.age >= 0.0);
            let mut lpns = vec![None; (pages - block.data - block.parity) as usize];
            lpns.extend(data.drain(data.len() - block.data as usize..).map(Some));
            lpns.extend(parity.drain(parity.len() - block.parity as usize..).map(Some));
            rng.shuffle(&mut lpns);
            self.plant_pages(state, plane, HOST, &lpns);
        }
        let mut rest: Vec<Option<u32>> = data.into_iter().chain(parity).map(Some).collect();
        rng.shuffle(&mut rest);
        for (stream, pages) in open {
            let lpns: Vec<_> = rest.drain(rest.len().saturating_sub(pages as usize)..).collect();
            self.plant_pages(state, plane, stream, &lpns);
        }
        state.update_ready(plane);
    }

    /// Writes pages of a stream, with units or with data that is out of date.
    fn plant_pages(&self, state: &mut State, plane: PlaneId, stream: Stream, lpns: &[Option<u32>]) {
        for lpn in lpns {
            let page = state.tables.free.get(&mut state.tables.blocks, plane, stream).expect("free blocks are kept");
            let unit: UnitId = state.geometry.unit_at(page, 0);
            self.media.plant_program(page, *lpn);
            if let Some(lpn) = *lpn {
                state.tables.blocks.validate(unit);
                sure(state.tables.map.upsert(Lpn(lpn), Location::Flash(unit)));
            }
            state.page_programmed(page);
            state.opened(page, stream);
        }
    }
}

/// The units of each plane, data and parities.
fn units_of_planes(state: &State) -> Vec<(Vec<u32>, Vec<u32>)> {
    let mut planes = vec![(Vec::new(), Vec::new()); state.geometry.planes() as usize];
    let layout = &state.rain.as_deref().expect("a drive with stripes").layout;
    for stripe in 0..layout.stripes() {
        let place = layout.place(stripe);
        for member in 0..layout.width() {
            let Some(lpn) = layout.unit(stripe, member) else { continue };
            let (data, parity) = &mut planes[layout.plane_at(place, member).0 as usize];
            if member == layout.parity() { parity.push(lpn.0) } else { data.push(lpn.0) }
        }
    }
    planes
}
