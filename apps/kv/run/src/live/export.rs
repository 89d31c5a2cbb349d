//! A server next to its drive, in the loop that owns the drive: the loop waits for the server's sockets as for those
//! of a remote drive.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::rc::Rc;

use nandscape_apps_kv_engine::{Server, Store};
use nandscape_host_block::BlockLayer;
use nandscape_sim::Span;
use nandscape_transport_reactor::{Connect, Export, Fronted, Source};

use super::sockets::Sockets;

/// The server of a drive, once its store is open.
pub(super) struct Service {
    pub(super) sockets: Rc<Sockets>,
    pub(super) server: RefCell<Option<Rc<Server>>>,
    pub(super) store: RefCell<Option<Rc<Store>>>,
    /// A message for the log.
    pub(super) news: RefCell<Option<String>>,
    pub(super) is_ending: Cell<bool>,
}

impl Source for Service {
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.sockets.descriptor()
    }

    fn has_unsent(&self) -> bool {
        self.sockets.is_dirty() || self.news.borrow().is_some()
    }

    fn poll(&self) -> bool {
        let nothing = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        self.sockets.poll(Some(nothing)).unwrap_or_else(|error| {
            self.news.replace(Some(format!("its sockets cannot be served: {error}")));
            false
        })
    }

    fn outstanding(&self) -> usize {
        // When the server ends, waiting clients have other replicas.
        if self.is_ending.get() {
            0
        } else {
            self.server.borrow().as_ref().map_or(0, |server| server.requests() as usize)
        }
    }

    fn news(&self) -> Option<String> {
        self.news.take()
    }

    fn limit_patience(&self, _: Span) {
        self.is_ending.set(true);
    }
}

/// A drive with a server over it. Clients of the drive itself can connect as well.
pub(super) struct KvExport {
    pub(super) drive: Rc<dyn Export>,
    /// Between the drive and the server.
    pub(super) layer: Rc<BlockLayer>,
    pub(super) service: Rc<Service>,
}

impl Fronted for KvExport {
    fn front(&self) -> &dyn Connect {
        &*self.drive
    }
}

impl Export for KvExport {
    fn counters(&self) -> BTreeMap<&'static str, f64> {
        let mut counters = self.drive.counters();
        counters.extend(nandscape_lab_run::block_counters(&self.layer));
        if let Some(store) = self.service.store.borrow().as_ref() {
            let stats = store.stats();
            counters.extend([
                ("kv_gets_total", stats.gets as f64),
                ("kv_busy_total", stats.busy as f64),
                ("kv_puts_total", stats.puts as f64),
                ("kv_keys", store.keys() as f64),
                ("kv_live_bytes", stats.live_bytes as f64),
                ("kv_unreadable_blocks", stats.unreadable as f64),
            ]);
        }
        counters
    }

    fn sources(&self) -> Vec<Rc<dyn Source>> {
        vec![self.service.clone()]
    }
}
