//! The free queue pairs of a controller: the lowest is allocated first, so that a replay allocates the same ones.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use nandscape_drive::QueueId;

use crate::export::Pairs;

/// The free identifiers of one controller.
pub(crate) struct QueueIds {
    free: RefCell<BTreeSet<u16>>,
    all: usize,
}

/// An identifier in use, free again when dropped.
pub(crate) struct Lease {
    id: u16,
    from: Rc<QueueIds>,
}

impl QueueIds {
    /// 1 to `most`; 0 is the admin queue pair.
    pub(crate) fn new(most: u16) -> Rc<QueueIds> {
        Rc::new(QueueIds { free: RefCell::new((1..=most).collect()), all: most.into() })
    }

    /// The lowest that is free.
    pub(crate) fn take(self: &Rc<QueueIds>) -> Option<Lease> {
        let id = self.free.borrow_mut().pop_first()?;
        Some(Lease { id, from: self.clone() })
    }

    /// The numbers of free pairs and of all pairs.
    pub(crate) fn count(&self) -> Pairs {
        Pairs { free: self.free.borrow().len(), all: self.all }
    }
}

impl Lease {
    pub(crate) fn id(&self) -> QueueId {
        QueueId(self.id)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.from.free.borrow_mut().insert(self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_free_one_comes_first_and_none_comes_twice() {
        let ids = QueueIds::new(3);
        let mut leases: Vec<Lease> = std::iter::from_fn(|| ids.take()).collect();
        assert_eq!(leases.iter().map(Lease::id).collect::<Vec<_>>(), [QueueId(1), QueueId(2), QueueId(3)]);
        drop(leases.remove(1));
        drop(leases.remove(0));
        assert_eq!(ids.take().map(|lease| lease.id()), Some(QueueId(1)), "given back at once, it comes again");
        let again: Vec<Lease> = std::iter::from_fn(|| ids.take()).collect();
        assert_eq!(again.iter().map(Lease::id).collect::<Vec<_>>(), [QueueId(1), QueueId(2)]);
        assert!(ids.take().is_none());
        drop((again, leases));
        assert_eq!(std::iter::from_fn(|| ids.take()).collect::<Vec<_>>().len(), 3);
    }
}
