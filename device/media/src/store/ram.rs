//! Keeps data in memory from programming to erase.
//!
//! Releasing the thousands of units of an erased block takes most of a millisecond, in which a live server serves nothing
//! else. So later programs release them, a few units each: more than each program adds, so that memory never exceeds its
//! highest earlier use.

use std::collections::VecDeque;
use std::vec;

use super::{Store, UnitData};
use crate::geometry::{BlockId, Geometry, UnitId};

/// Units of erased blocks that are released when one is programmed.
const RELEASED_A_PROGRAM: usize = 8;
pub(crate) struct RamStore {
    geometry: Geometry,
    /// By block, allocated when the first unit of it is programmed.
    blocks: Vec<Option<Box<[Option<UnitData>]>>>,
    /// Units of erased blocks, to be released.
    erased: VecDeque<vec::IntoIter<Option<UnitData>>>,
}

impl RamStore {
    pub(crate) fn new(geometry: &Geometry) -> RamStore {
        RamStore { geometry: *geometry, blocks: vec![None; geometry.blocks() as usize], erased: VecDeque::new() }
    }

    /// Releases some units of erased blocks.
    fn release(&mut self) {
        let Some(block) = self.erased.front_mut() else { return };
        if block.by_ref().take(RELEASED_A_PROGRAM).count() < RELEASED_A_PROGRAM {
            self.erased.pop_front();
        }
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
        self.release();
        let (block, index) = self.place(unit);
        let units = self.geometry.units_per_block() as usize;
        self.blocks[block].get_or_insert_with(|| vec![None; units].into())[index] = Some(data);
    }

    fn get(&self, unit: UnitId) -> Option<UnitData> {
        let (block, index) = self.place(unit);
        self.blocks[block].as_ref()?[index].clone()
    }

    fn erase(&mut self, block: BlockId) {
        let Some(units) = self.blocks[block.0 as usize].take() else { return };
        self.erased.push_back(Vec::from(units).into_iter());
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::geometry::Counts;

    #[test]
    fn programs_alone_release_the_units_of_erased_blocks() {
        let counts = Counts {
            channels: 1,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks_per_plane: 8,
            pages_per_block: 40,
            page_size: 4_096,
            unit_size: 4_096,
        };
        let geometry = Geometry::new(counts).unwrap();
        let units = geometry.units_per_block();
        let (mut store, data): (_, UnitData) = (RamStore::new(&geometry), vec![7; 16].into());
        let held = || Rc::strong_count(&data) - 1;
        (0..8 * units).for_each(|unit| store.put(UnitId(unit), data.clone()));
        (0..7).for_each(|block| store.erase(BlockId(block)));
        assert!((0..7 * units).all(|unit| store.get(UnitId(unit)).is_none()));
        let whole = 8 * units as usize;
        assert_eq!(held(), whole, "an erase releases nothing, however many blocks are erased at once");
        // As many programs as release the units of all of them, and one more for each to see its end.
        let programs = 7 * (units as usize / RELEASED_A_PROGRAM + 1);
        for unit in 0..programs as u32 {
            store.put(UnitId(unit), data.clone());
            assert!(held() <= whole);
        }
        assert_eq!(held(), units as usize + programs);
        assert!(store.erased.is_empty());
    }
}
