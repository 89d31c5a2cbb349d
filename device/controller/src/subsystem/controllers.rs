//! The controllers of a subsystem, by identifier. Each removes itself when it is dropped.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

use nandscape_drive::Controller;
use nandscape_drive::subsystem::IN_PROCESS_CONTROLLER;

use crate::engine::NvmeController;

/// The maximum of controllers, including the one of hosts in this process.
pub(crate) const MAX_CONTROLLERS: u16 = 128;

/// See the file.
pub(super) struct Controllers {
    by_id: RefCell<BTreeMap<u16, Weak<NvmeController>>>,
    /// Controllers created so far.
    created: Cell<u64>,
}

impl Controllers {
    pub(super) fn new() -> Controllers {
        Controllers { by_id: RefCell::default(), created: Cell::new(0) }
    }

    /// The number of a new controller, which is never reused.
    pub(super) fn next_number(&self) -> u64 {
        self.created.set(self.created.get() + 1);
        self.created.get()
    }

    /// The lowest identifier that a new controller can have: a replay gives out the same ones.
    pub(super) fn free_id(&self) -> Option<u16> {
        let controllers = self.by_id.borrow();
        (IN_PROCESS_CONTROLLER + 1..=MAX_CONTROLLERS).find(|id| !controllers.contains_key(id))
    }

    pub(super) fn add(&self, controller: &Rc<NvmeController>) {
        let before = self.by_id.borrow_mut().insert(controller.id(), Rc::downgrade(controller));
        assert!(before.is_none(), "controller {} exists", controller.id());
    }

    pub(super) fn remove(&self, id: u16) {
        self.by_id.borrow_mut().remove(&id);
    }

    pub(super) fn count(&self) -> usize {
        self.by_id.borrow().len()
    }

    pub(super) fn ids(&self) -> Vec<u16> {
        self.by_id.borrow().keys().copied().collect()
    }

    /// All of them, by identifier.
    pub(super) fn all(&self) -> Vec<Rc<NvmeController>> {
        self.by_id.borrow().values().filter_map(Weak::upgrade).collect()
    }
}
