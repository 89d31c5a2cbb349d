//! Keeps data in memory from programming to erase.

use super::{Store, UnitData};
use crate::geometry::{BlockId, Geometry, UnitId};

pub(crate) struct RamStore {
    geometry: Geometry,
    /// By block, allocated when the first unit of it is programmed.
    blocks: Vec<Option<Box<[Option<UnitData>]>>>,
}

impl RamStore {
    pub(crate) fn new(geometry: &Geometry) -> RamStore {
        RamStore { geometry: *geometry, blocks: vec![None; geometry.blocks() as usize] }
    }

    fn place(&self, unit: UnitId) -> (usize, usize) {
        let block = self.geometry.block_of(self.geometry.page_of(unit));
        (block.0 as usize, (unit.0 - block.0 * self.geometry.units_per_block()) as usize)
    }
}

impl Store for RamStore {
    fn keeps_data(&self) -> bool {
        true
    }

    fn put(&mut self, unit: UnitId, data: UnitData) {
        let (block, index) = self.place(unit);
        let units = self.geometry.units_per_block() as usize;
        self.blocks[block].get_or_insert_with(|| vec![None; units].into())[index] = Some(data);
    }

    fn get(&self, unit: UnitId) -> Option<UnitData> {
        let (block, index) = self.place(unit);
        self.blocks[block].as_ref()?[index].clone()
    }

    fn erase(&mut self, block: BlockId) {
        self.blocks[block.0 as usize] = None;
    }
}
