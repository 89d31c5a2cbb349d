//! Values of some units, until their block is erased. Only blocks with values take memory.

use std::collections::BTreeMap;

use crate::geometry::{BlockId, Geometry, UnitId};

/// Values of units, by block.
pub(crate) struct Sparse<T> {
    geometry: Geometry,
    blocks: BTreeMap<BlockId, Box<[Option<T>]>>,
}

impl<T: Clone> Sparse<T> {
    pub(crate) fn new(geometry: &Geometry) -> Sparse<T> {
        Sparse { geometry: *geometry, blocks: BTreeMap::new() }
    }

    fn place(&self, unit: UnitId) -> (BlockId, usize) {
        let block = self.geometry.block_of(self.geometry.page_of(unit));
        (block, (unit.0 - block.0 * self.geometry.units_per_block()) as usize)
    }

    #[inline]
    pub(crate) fn get(&self, unit: UnitId) -> Option<&T> {
        if self.blocks.is_empty() {
            return None;
        }
        let (block, index) = self.place(unit);
        self.blocks.get(&block)?[index].as_ref()
    }

    /// Whether no unit has a value.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// All values, by unit.
    pub(crate) fn all(&self) -> impl Iterator<Item = (UnitId, &T)> {
        let units = self.geometry.units_per_block();
        self.blocks.iter().flat_map(move |(block, values)| {
            let unit = move |index: usize| UnitId(block.0 * units + index as u32);
            values.iter().enumerate().filter_map(move |(index, value)| Some((unit(index), value.as_ref()?)))
        })
    }

    pub(crate) fn put(&mut self, unit: UnitId, value: T) {
        let (block, index) = self.place(unit);
        let units = self.geometry.units_per_block() as usize;
        self.blocks.entry(block).or_insert_with(|| vec![None; units].into())[index] = Some(value);
    }

    pub(crate) fn erase(&mut self, block: BlockId) {
        if !self.blocks.is_empty() {
            self.blocks.remove(&block);
        }
    }
}
