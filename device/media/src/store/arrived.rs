//! Keeps data that has arrived from remote flash, until its reader has it. Programmed data is not kept: it is in the
//! flash.
//!
//! A reader that copies as soon as its read has ended needs a page's units only that long. A reader of several pages,
//! as a collector is, holds them until it releases them.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::rc::Rc;

use super::{Store, UnitData};
use crate::geometry::{BlockId, Geometry, UnitId};

/// The data that has arrived.
pub(crate) struct Shelf {
    held: RefCell<BTreeMap<UnitId, UnitData>>,
    /// The units of the last read, which its reader copies before another read can end.
    passing: RefCell<VecDeque<(UnitId, UnitData)>>,
    /// Units of a page.
    most_passing: usize,
}

impl Shelf {
    pub(crate) fn new(geometry: &Geometry) -> Rc<Shelf> {
        let most_passing = geometry.units_per_page() as usize;
        Rc::new(Shelf { held: RefCell::default(), passing: RefCell::default(), most_passing })
    }

    /// Keeps a unit until it is released.
    pub(crate) fn hold(&self, unit: UnitId, data: UnitData) {
        self.held.borrow_mut().insert(unit, data);
    }

    /// Releases held units, except some.
    pub(crate) fn release(&self, units: Range<UnitId>, but: impl Fn(UnitId) -> bool) {
        let mut held = self.held.borrow_mut();
        let gone: Vec<UnitId> = held.range(units).map(|(unit, _)| *unit).filter(|unit| !but(*unit)).collect();
        gone.iter().for_each(|unit| _ = held.remove(unit));
    }

    fn pass(&self, unit: UnitId, data: UnitData) {
        let mut passing = self.passing.borrow_mut();
        passing.push_front((unit, data));
        passing.truncate(self.most_passing);
    }

    fn get(&self, unit: UnitId) -> Option<UnitData> {
        let passing = self.passing.borrow();
        let found = passing.iter().find(|(each, _)| *each == unit).map(|(_, data)| data.clone());
        found.or_else(|| self.held.borrow().get(&unit).cloned())
    }
}

/// A shelf as the store of the host's data.
pub(crate) struct Arrived(pub(crate) Rc<Shelf>);

impl Store for Arrived {
    fn keeps_data(&self) -> bool {
        true
    }

    fn put(&mut self, unit: UnitId, data: UnitData) {
        self.0.pass(unit, data);
    }

    fn get(&self, unit: UnitId) -> Option<UnitData> {
        self.0.get(unit)
    }

    /// It is removed like all data: no reader needs it any more.
    fn erase(&mut self, _: BlockId) {}
}
