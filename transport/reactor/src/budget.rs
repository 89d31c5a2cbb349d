//! Memory that the clients of one reactor hold for requests and replies: all together as much as the budget, and each a
//! little in any case, so that those who hold much cannot shut out the others.

use std::cell::Cell;
use std::rc::Rc;

/// The budget of a reactor that was given none: a small part of a machine on which drives are kept in memory, and many
/// times what a client may hold.
pub(crate) const MEMORY: usize = 1 << 30;
/// What a client may hold however much the others do: some requests of common sizes.
pub const GUARANTEED: usize = 1 << 20;

/// What all clients hold.
pub(crate) struct Budget {
    total: usize,
    used: Cell<usize>,
    /// Whether some was given back since somebody looked.
    freed: Cell<bool>,
}

/// A client's part of the budget; given back when dropped.
pub struct Share {
    budget: Rc<Budget>,
    held: usize,
}

impl Budget {
    /// Of so many bytes.
    pub(crate) fn new(total: usize) -> Rc<Budget> {
        Rc::new(Budget { total, used: Cell::new(0), freed: Cell::new(false) })
    }

    /// A client's part: nothing yet.
    pub(crate) fn share(self: &Rc<Budget>) -> Share {
        Share { budget: self.clone(), held: 0 }
    }

    /// Whether some was given back since the last [`Budget::look`].
    pub(crate) fn has_freed(&self) -> bool {
        self.freed.get()
    }

    /// As [`Budget::has_freed`], and now somebody has looked.
    pub(crate) fn look(&self) -> bool {
        self.freed.replace(false)
    }
}

impl Share {
    /// From now on the client holds so many bytes in all.
    pub fn hold(&mut self, bytes: usize) {
        let used = &self.budget.used;
        used.set(used.get() - self.held + bytes);
        if bytes < self.held {
            self.budget.freed.set(true);
        }
        self.held = bytes;
    }

    /// Whether it may hold so many bytes more.
    pub fn has_room(&self, more: usize) -> bool {
        more == 0 || self.held + more <= GUARANTEED || self.budget.used.get() + more <= self.budget.total
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.hold(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_holds_much_does_not_shut_out_who_needs_little() {
        let budget = Budget::new(10 * GUARANTEED);
        let (mut greedy, mut modest) = (budget.share(), budget.share());
        assert!(greedy.has_room(10 * GUARANTEED) && !greedy.has_room(10 * GUARANTEED + 1));
        greedy.hold(10 * GUARANTEED);
        assert!(!greedy.has_room(1) && modest.has_room(GUARANTEED) && !modest.has_room(GUARANTEED + 1));
        modest.hold(GUARANTEED / 2);
        assert!(modest.has_room(GUARANTEED / 2) && !modest.has_room(GUARANTEED / 2 + 1));
        assert!(!budget.look(), "nothing was given back so far");
        greedy.hold(9 * GUARANTEED);
        assert!(budget.has_freed() && budget.look() && !budget.has_freed(), "told of once");
        assert!(modest.has_room(GUARANTEED / 2) && !greedy.has_room(GUARANTEED));
        drop(greedy);
        assert!(budget.look() && modest.has_room(9 * GUARANTEED));
        drop(modest);
        assert_eq!(budget.used.get(), 0);
    }
}
