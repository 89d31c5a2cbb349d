//! A drive that is out of reach: it is noticed although nothing is read or written.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_apps_store::StoreError;
use nandscape_wire_nvme::Status;

use crate::engine::Engine;
use crate::error::EngineError;

/// Whether a drive is out of reach, as far as its user knows.
#[derive(Default)]
pub(crate) struct Reach {
    is_away: RefCell<Option<Box<dyn Fn() -> bool>>>,
    /// It will not be waited for any more, if it is still out of reach.
    has_ended: Cell<bool>,
}

impl Reach {
    /// Whether it is out of reach now.
    pub(crate) fn is_away(&self) -> bool {
        self.is_away.borrow().as_ref().is_some_and(|is_away| is_away())
    }
}

impl Engine {
    /// Counts the drive as out of reach while `is_away` returns true. The result is to be called when the drive is not waited for any more: then
    /// it is lost, as if a write to it had failed. Both are for the drive that has this number now.
    pub fn watch(self: &Rc<Self>, drive: usize, is_away: impl Fn() -> bool + 'static) -> impl Fn() + 'static {
        let member = self.member(drive);
        member.reach.is_away.replace(Some(Box::new(is_away)));
        let (engine, member) = (Rc::downgrade(self), Rc::downgrade(&member));
        move || {
            if let (Some(engine), Some(member)) = (engine.upgrade(), member.upgrade()) {
                member.reach.has_ended.set(true);
                engine.changed.notify();
            }
        }
    }

    /// Loses drives that are not waited for any more. One that its group cannot do without remains: it may return before it is needed. No drive has a
    /// token.
    ///
    /// # Errors
    /// The failure of a drive that cannot be done without.
    pub(crate) async fn lose_ended(&self) -> Result<(), EngineError> {
        for member in self.members().iter().filter(|member| member.reach.has_ended.take()) {
            let drive = member.number();
            let others = self.group(drive / self.replicas());
            let lost = others.iter().filter(|other| other.is_incomplete() && other.number() != drive).count();
            if member.reach.is_away() && lost < self.layout.spares() {
                let error = StoreError::Drive(Status::HOST_PATHING_ERROR);
                self.lose(EngineError::Drive { drive, error }).await?;
            }
        }
        Ok(())
    }
}
