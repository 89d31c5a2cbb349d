//! A drive that is out of reach, or takes no writes: it is noticed although nothing is read or written.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_apps_store::StoreError;
use nandscape_wire_nvme::Status;

use crate::engine::Engine;
use crate::error::EngineError;
use crate::replace::ReplaceError;

/// What a drive is for the engine now.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum DriveState {
    /// It is read and written.
    InUse,
    /// It is out of reach, and may return.
    Unreachable,
    /// It is missing, or has failed.
    Lost,
    /// It is being rebuilt.
    Rebuilding {
        /// Bytes that are still to be copied to it.
        bytes_left: u64,
    },
}

/// Whether a drive is out of reach, as far as its user knows.
#[derive(Default)]
pub(crate) struct Reach {
    is_away: RefCell<Option<Box<dyn Fn() -> bool>>>,
    /// It will not be waited for any more, if it is still out of reach.
    has_ended: Cell<bool>,
    /// It takes no writes, and is to be lost.
    is_retired: Cell<bool>,
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

    /// What a drive is now.
    pub fn drive_state(&self, drive: usize) -> DriveState {
        let member = self.member(drive);
        match (member.is_gone(), member.reach.is_away(), member.is_incomplete()) {
            (true, ..) => DriveState::Lost,
            (_, true, _) => DriveState::Unreachable,
            (.., true) => DriveState::Rebuilding { bytes_left: self.bytes_left_of(drive) },
            _ => DriveState::InUse,
        }
    }

    /// Loses a drive that takes no writes, although none has met it: another drive is to take its place.
    ///
    /// # Errors
    /// When its group cannot do without it, or the store has failed or is closed.
    pub async fn retire(&self, drive: usize) -> Result<(), ReplaceError> {
        self.check_open()?;
        let member = self.member(drive);
        member.reach.is_retired.set(true);
        self.changed.notify();
        while member.reach.is_retired.get() && self.check_open().is_ok() {
            self.changed.changed().await;
        }
        self.check_open()?;
        if member.is_gone() { Ok(()) } else { Err(ReplaceError::Needed(drive)) }
    }

    /// Loses drives that are not waited for any more, or are retired. One that its group cannot do without remains: it may return before it is needed. No drive has a
    /// token.
    ///
    /// # Errors
    /// The failure of a drive that cannot be done without.
    pub(crate) async fn lose_ended(&self) -> Result<(), EngineError> {
        for member in self.members().iter() {
            let (has_ended, is_retired) = (member.reach.has_ended.take(), member.reach.is_retired.take());
            if !has_ended && !is_retired {
                continue;
            }
            let drive = member.number();
            let others = self.group(drive / self.replicas());
            let lost = others.iter().filter(|other| other.is_incomplete() && other.number() != drive).count();
            let status = match is_retired {
                true => Status::NAMESPACE_WRITE_PROTECTED,
                false => Status::HOST_PATHING_ERROR,
            };
            if (is_retired || member.reach.is_away()) && lost < self.layout.spares() {
                self.lose(EngineError::Drive { drive, error: StoreError::Drive(status) }).await?;
            }
            self.changed.notify();
        }
        Ok(())
    }
}
