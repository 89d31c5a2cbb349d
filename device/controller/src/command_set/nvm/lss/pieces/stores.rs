//! The store of each namespace. Its first command opens it, and the first after a power cut reopens it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use nandscape_device_ftl_core::Ftl;
use nandscape_device_ftl_ox::pieces::{Area, Counts, Limits, PieceStore};
use nandscape_wire_nvme::pieces::{MOST_PAGE_BYTES, MOST_PIECES, Report};

use super::super::super::Nvm;
use crate::namespace::Namespace;

// The component and the wire agree.
const _: () = assert!(
    MOST_PIECES == nandscape_device_ftl_ox::pieces::MOST_PIECES
        && MOST_PAGE_BYTES == nandscape_device_ftl_ox::pieces::MOST_PAGE_BYTES as usize
);

/// A store, and the counts of it and its predecessors.
type Store<F> = (Rc<PieceStore<F>>, Rc<Cell<Counts>>);

/// Stores by the number of their namespace.
pub(in crate::command_set::nvm) struct Stores<F: Ftl> {
    by_nsid: RefCell<BTreeMap<u32, Store<F>>>,
}

impl<F: Ftl> Default for Stores<F> {
    fn default() -> Stores<F> {
        Stores { by_nsid: RefCell::default() }
    }
}

impl<F: Ftl> Stores<F> {
    /// Namespaces were erased: one, or all.
    pub(in crate::command_set::nvm) fn forget(&self, nsid: Option<u32>) {
        self.by_nsid.borrow_mut().retain(|of, _| nsid.is_some_and(|nsid| nsid != *of));
    }
}

fn area<F: Ftl>(ftl: &F, namespace: &Namespace) -> Area {
    Area::new(namespace.layout.extents(0..namespace.layout.sectors()), ftl.unit())
}

impl<F: Ftl> Nvm<F> {
    /// The limits of a namespace with such pages; `None` if it cannot have them.
    pub(in crate::command_set::nvm) fn piece_limits(&self, namespace: &Namespace) -> Option<Limits> {
        Limits::of(&area(&*self.ftl, namespace), &*self.ftl).filter(|_| self.media.keeps_data())
    }

    /// The store of a namespace; a new store replaces a stale one.
    pub(super) fn store_of(&self, namespace: &Namespace) -> Rc<PieceStore<F>> {
        let mut stores = self.stores.by_nsid.borrow_mut();
        let counts = match stores.get(&namespace.nsid) {
            Some((store, _)) if !store.is_stale() => return store.clone(),
            Some((_, counts)) => counts.clone(),
            None => Rc::default(),
        };
        let area = area(&*self.ftl, namespace);
        let store = Rc::new(PieceStore::new(&self.sim, &self.media, &self.ftl, area, counts.clone()));
        stores.insert(namespace.nsid, (store.clone(), counts));
        store
    }

    /// The report for Identify Namespace.
    pub(in crate::command_set::nvm) fn piece_report(&self, namespace: &Namespace) -> Option<Report> {
        let limits = self.piece_limits(namespace).filter(|_| namespace.format.has_pieces)?;
        let stores = self.stores.by_nsid.borrow();
        let store = stores.get(&namespace.nsid);
        let holds = store.and_then(|(store, _)| store.holds()).unwrap_or_default();
        let counts = store.map(|(_, counts)| counts.get()).unwrap_or_default();
        Some(Report {
            pieces: (MOST_PIECES as u16).into(),
            page_bytes: (MOST_PAGE_BYTES as u32).into(),
            entry_bytes: nandscape_device_ftl_ox::pieces::ENTRY_BYTES.into(),
            buffer_bytes: limits.buffer.into(),
            lpids: limits.lpids.into(),
            capacity: limits.capacity.into(),
            pages: holds.pages.into(),
            bytes: holds.bytes.into(),
            memory: holds.memory.into(),
            moved_bytes: counts.moved_bytes.into(),
            checkpoints: counts.checkpoints.into(),
            checkpoint_bytes: counts.checkpoint_bytes.into(),
            ..Report::new()
        })
    }
}
