//! Command slots: the number of commands that the drive works on at a time, for all controllers together. If slots are short,
//! controllers with entries wait for them: by the claims of their arbiters, or else in order. Each controller that gets a slot queues
//! behind the others for the next.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};

use nandscape_drive::breakdown::cause;
use nandscape_sim::signal::Signal;
use nandscape_sim::{Cause, Sim};

use crate::arbiter::Claim;
use crate::engine::NvmeController;

/// See the file.
pub(crate) struct CommandSlots {
    limit: u32,
    in_work: Cell<u32>,
    /// Work that uses data like commands but takes no slot, so no command waits for it.
    background: Cell<u32>,
    /// The cause of the command that ended last: a command that gets its slot waited for it.
    last_ended: Cell<Cause>,
    /// Whether several controllers exist.
    shared: Cell<bool>,
    waiting: RefCell<VecDeque<Weak<NvmeController>>>,
    /// Notified when the last command in work ends, and when background work ends.
    idle: Signal,
}

impl CommandSlots {
    pub(super) fn new(sim: &Sim, limit: u32) -> CommandSlots {
        CommandSlots {
            limit,
            in_work: Cell::new(0),
            background: Cell::new(0),
            last_ended: Cell::new(cause::HOST_READ),
            shared: Cell::new(false),
            waiting: RefCell::default(),
            idle: Signal::new(sim),
        }
    }

    /// Whether a slot is free.
    #[inline]
    pub(crate) fn is_free(&self) -> bool {
        self.in_work.get() < self.limit
    }

    /// Takes a free slot. Returns the cause of the command that had it before.
    #[inline]
    pub(crate) fn take(&self) -> Cause {
        self.in_work.set(self.in_work.get() + 1);
        self.last_ended.get()
    }

    /// Commands in work.
    pub(super) fn in_work(&self) -> u32 {
        self.in_work.get()
    }

    /// Frees a slot that a command held on behalf of `cause`. Returns whether it was the last.
    ///
    /// # Panics
    /// If no command is in work.
    #[inline]
    pub(crate) fn give_back(&self, cause: Cause) -> bool {
        self.last_ended.set(cause);
        let left = one_less(self.in_work.get(), "a command slot");
        self.in_work.set(left);
        left == 0
    }

    /// Background work begins to use data: a restart after a power cut waits for it like for a command.
    pub(super) fn begin_background(&self) {
        self.background.set(self.background.get() + 1);
    }

    /// It has ended.
    pub(super) fn end_background(&self) {
        self.background.set(one_less(self.background.get(), "background work"));
        self.report_idle();
    }

    /// The cause of the command that ended last.
    pub(crate) fn last_ended(&self) -> Cause {
        self.last_ended.get()
    }

    /// Whether several controllers exist.
    #[inline]
    pub(crate) fn are_shared(&self) -> bool {
        self.shared.get()
    }

    pub(super) fn set_shared(&self, shared: bool) {
        self.shared.set(shared);
    }

    /// Puts a controller behind those that wait for a slot.
    pub(crate) fn wait(&self, controller: Weak<NvmeController>) {
        self.waiting.borrow_mut().push_back(controller);
    }

    /// The next controller: the one that has waited longest, or the one with the least claim of those behind it with the same kind of
    /// arbiter. Controllers without a claim are not overtaken. The claims are determined anew for each slot.
    pub(crate) fn next_waiting(&self, claim: impl Fn(&NvmeController) -> Option<Claim>) -> Option<Rc<NvmeController>> {
        let mut waiting = self.waiting.borrow_mut();
        let first = std::iter::from_fn(|| waiting.pop_front()).find_map(|one| one.upgrade())?;
        let Some(own) = claim(&first) else { return Some(first) };
        waiting.retain(|one| one.strong_count() > 0);
        let claims = waiting.iter().map_while(|one| claim(&*one.upgrade()?).filter(|claim| claim.compares_with(own)));
        let least = claims.enumerate().fold((own, None), |(least, at), (number, claim)| match claim.precedes(least) {
            true => (claim, Some(number)),
            false => (least, at),
        });
        let Some(number) = least.1 else { return Some(first) };
        let next = waiting.remove(number)?.upgrade();
        waiting.push_front(Rc::downgrade(&first));
        next
    }

    /// Reports that no command is in work, or no background work.
    pub(crate) fn report_idle(&self) {
        self.idle.notify();
    }

    /// Waits until neither commands nor background work are in progress.
    pub(super) async fn all_ended(&self) {
        while self.in_work.get() > 0 || self.background.get() > 0 {
            self.idle.changed().await;
        }
    }
}

/// Decrements a count of work.
#[inline]
fn one_less(count: u32, what: &str) -> u32 {
    let left = count.checked_sub(1);
    left.unwrap_or_else(|| panic!("{what} ends, and none is in work"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A deliberate mistake.
    #[test]
    #[should_panic(expected = "a command slot ends, and none is in work")]
    fn a_slot_that_comes_back_twice_is_noticed() {
        one_less(one_less(1, "a command slot"), "a command slot");
    }
}
