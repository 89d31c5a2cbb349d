//! The controllers of a subsystem, by identifier. Each removes itself when it is dropped.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

use nandscape_drive::Controller;
use nandscape_drive::subsystem::IN_PROCESS_CONTROLLER;

use crate::command_set::CommandSet;
use crate::engine::NvmeController;

/// Controllers at a time, with the one of hosts in this process.
pub(crate) const MAX_CONTROLLERS: u16 = 128;

/// See the file.
pub(super) struct Controllers<C: CommandSet>(RefCell<BTreeMap<u16, Weak<NvmeController<C>>>>);

impl<C: CommandSet> Controllers<C> {
    pub(super) fn new() -> Controllers<C> {
        Controllers(RefCell::default())
    }

    /// The lowest identifier that a new controller can have: a replay gives out the same ones.
    pub(super) fn free_id(&self) -> Option<u16> {
        let controllers = self.0.borrow();
        (IN_PROCESS_CONTROLLER + 1..=MAX_CONTROLLERS).find(|id| !controllers.contains_key(id))
    }

    pub(super) fn add(&self, controller: &Rc<NvmeController<C>>) {
        let before = self.0.borrow_mut().insert(controller.id(), Rc::downgrade(controller));
        assert!(before.is_none(), "controller {} exists", controller.id());
    }

    pub(super) fn remove(&self, id: u16) {
        self.0.borrow_mut().remove(&id);
    }

    pub(super) fn count(&self) -> usize {
        self.0.borrow().len()
    }

    pub(super) fn ids(&self) -> Vec<u16> {
        self.0.borrow().keys().copied().collect()
    }

    /// All of them, by identifier.
    pub(super) fn all(&self) -> Vec<Rc<NvmeController<C>>> {
        self.0.borrow().values().filter_map(Weak::upgrade).collect()
    }
}
