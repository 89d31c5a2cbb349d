//! Pages that could not be read, and are written again: their content has been reconstructed from the others of their
//! stripe.
//!
//! A page is written where its member belongs, and replaces the lost one like a page that a collector has moved. The parity
//! stays.

use std::rc::Rc;

use nandscape_device_ftl_core::address::{Location, Lpn};
use nandscape_device_ftl_core::component::BlockMetadata;
use nandscape_device_media::UnitId;

use super::super::PageFtl;
use super::super::state::State;
use super::job::{Pending, Repair};
use super::rebuild::Rebuild;

impl PageFtl {
    /// Writes a page again, which has been reconstructed.
    pub(super) fn repair(&self, lpn: Lpn, rebuild: &Rebuild) {
        let (Some(from), data) = (rebuild.unit(), self.rebuilt(rebuild)) else { return };
        let mut borrowed = self.state.borrow_mut();
        let state = &mut *borrowed;
        if state.damage.read_only.is_some() {
            return;
        }
        let block = state.geometry.block_of(state.geometry.page_of(from));
        let erases = state.tables.blocks.get(block).erases;
        let rain = state.rain.as_deref_mut().expect("a drive with stripes");
        let plane = state.geometry.plane_of(block);
        let is_there = rain.waiting[plane.0 as usize]
            .iter()
            .any(|pending| matches!(pending, Pending::Repair(repair) if repair.lpn == lpn));
        if !is_there {
            rain.wait_for(plane, Pending::Repair(Rc::new(Repair { lpn, from, erases, data })));
        }
        drop(borrowed);
        self.pump();
    }
}

impl State {
    /// A lost page has been written again, at `to`. It counts if nothing has changed since.
    pub(super) fn repaired(&mut self, repair: &Repair, to: UnitId) {
        let block = self.geometry.block_of(self.geometry.page_of(repair.from));
        let is_same = self.tables.blocks.get(block).erases == repair.erases;
        if is_same && self.flash_copy(repair.lpn) == Location::Flash(repair.from) {
            self.relocated(repair.lpn, repair.from, to);
        }
    }
}
