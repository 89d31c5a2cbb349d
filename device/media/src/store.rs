//! The store of a drive's host data. Data is addressed by its location in the flash, so that it shares the fate of its
//! page.

mod arrived;
mod none;
mod ram;

use std::rc::Rc;

use crate::geometry::{BlockId, Geometry, UnitId};

pub(crate) use arrived::{Arrived, Shelf};

/// The data of one unit.
pub type UnitData = Rc<[u8]>;

/// The kinds of store.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum StoreKind {
    /// Timing only: data is discarded, and reads leave host memory unchanged.
    None,
    /// In memory, which grows with the data written.
    Ram,
}

/// Keeps the data of programmed units until their block is erased.
pub(crate) trait Store {
    /// Whether the store returns data.
    fn keeps_data(&self) -> bool;

    /// A unit was programmed.
    fn put(&mut self, unit: UnitId, data: UnitData);

    /// The data of a unit; `None` when it was programmed without any, or the store keeps none.
    fn get(&self, unit: UnitId) -> Option<UnitData>;

    /// A block was erased.
    fn erase(&mut self, block: BlockId);
}

pub(crate) fn open(kind: StoreKind, geometry: &Geometry) -> Box<dyn Store> {
    match kind {
        StoreKind::None => Box::new(none::NoStore),
        StoreKind::Ram => Box::new(ram::RamStore::new(geometry)),
    }
}
