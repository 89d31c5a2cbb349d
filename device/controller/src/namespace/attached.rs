//! The namespaces that a controller has attached, by number. Commands find theirs here when they are fetched.

use std::cell::RefCell;
use std::rc::Rc;

use super::{MAX_NAMESPACES, Namespace};

/// See the file.
pub(crate) struct Attached(RefCell<Box<[Option<Rc<Namespace>>]>>);

impl Attached {
    pub(crate) fn none() -> Attached {
        Attached(RefCell::new((0..MAX_NAMESPACES).map(|_| None).collect()))
    }

    /// The namespace of a number; `None` when it is not attached.
    #[inline]
    pub(crate) fn get(&self, nsid: u32) -> Option<Rc<Namespace>> {
        self.0.borrow().get(nsid.wrapping_sub(1) as usize)?.clone()
    }

    /// The one of the lowest number.
    pub(crate) fn first(&self) -> Option<Rc<Namespace>> {
        self.0.borrow().iter().flatten().next().cloned()
    }

    /// All of them, by number.
    pub(crate) fn all(&self) -> Vec<Rc<Namespace>> {
        self.0.borrow().iter().flatten().cloned().collect()
    }

    /// Their numbers above `nsid`, in ascending order.
    pub(crate) fn above(&self, nsid: u32) -> Vec<u32> {
        self.0.borrow().iter().flatten().map(|namespace| namespace.nsid).filter(|each| *each > nsid).collect()
    }

    /// Returns whether it was attached.
    pub(crate) fn detach(&self, nsid: u32) -> bool {
        self.0.borrow_mut()[nsid as usize - 1].take().is_some()
    }

    pub(crate) fn attach(&self, namespace: &Rc<Namespace>) {
        self.0.borrow_mut()[namespace.nsid as usize - 1] = Some(namespace.clone());
    }
}
