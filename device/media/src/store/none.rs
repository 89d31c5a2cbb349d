//! Keeps no data: for timing runs, on drives that may be larger than memory.

use super::{Store, UnitData};
use crate::geometry::{BlockId, UnitId};

pub(crate) struct NoStore;

impl Store for NoStore {
    fn keeps_data(&self) -> bool {
        false
    }

    fn put(&mut self, _: UnitId, _: UnitData) {}

    fn get(&self, _: UnitId) -> Option<UnitData> {
        None
    }

    fn erase(&mut self, _: BlockId) {}
}
