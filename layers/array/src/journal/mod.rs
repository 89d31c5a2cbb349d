//! The records by which an array survives crashes, at the end of each member: its members, and the regions being
//! written.
//!
//! A write of a stripe changes several members, and a crash may occur in between. Parity then does not fit the data,
//! and the data of a missing member would be reconstructed wrongly (the write hole). Two modes close it:
//!
//! | mode | before a stripe is written | after a crash |
//! |---|---|---|
//! | intent | its region is marked on all members, unless it is marked already | stripes of marked regions are made consistent from their data |
//! | data | each member's data is in a journal on that member | complete entries of the journal are written again |
//!
//! With intent, the loss of a member together with a crash leaves the hole open for marked regions: [`Array::open`]
//! rejects such an array unless it is forced. While a member is missing, levels with parity journal data in both
//! modes, since they could not make stripes consistent.
//!
//! | file | what |
//! |---|---|
//! | `form` | records as bytes, and their places |
//! | `identity` | the uuid of a new array |
//! | `record` | the members of the array |
//! | `intent` | regions being written |
//! | `ring` | the journal of data |
//! | `open` | making an array, and opening it again |
//! | `witness` | whether a drive that was offline for a moment still has its data |
//!
//! [`Array::open`]: crate::Array::open

mod form;
mod identity;
mod intent;
mod open;
mod record;
mod ring;
mod witness;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use nandscape_sim::Sim;
use nandscape_sim::signal::Signal;

use crate::config::JournalMode;

pub(crate) use form::Form;
pub(crate) use record::RETRY;
pub(crate) use ring::Entry;
pub use witness::{Seen, Witness};

/// The state of the journal of an array.
pub(crate) struct Journal {
    pub(crate) mode: JournalMode,
    pub(crate) form: Form,
    /// Distinguishes the array from others.
    pub(crate) uuid: [u8; 16],
    /// The generation of the last record of members that was begun. Separate threads read it.
    pub(crate) generation: Arc<AtomicU64>,
    /// Changes of the record that are wanted, and that are on the members.
    pub(crate) recorded: Group,
    pub(crate) intent: RefCell<Intent>,
    pub(crate) marked: Group,
    /// The number of the latest bitmap on the members.
    pub(crate) bitmap_number: Cell<u64>,
    pub(crate) is_cleaning: Cell<bool>,
    /// A member is missing, and earlier marked writes have been flushed since.
    pub(crate) is_settled: Cell<bool>,
    pub(crate) ring: RefCell<Ring>,
    /// Ends of the journal: requested, and recorded on the members.
    pub(crate) closed: Group,
    /// Entries of the ring have ended, or regions have.
    pub(crate) moved: Signal,
}

/// Regions of the array.
#[derive(Default)]
pub(crate) struct Intent {
    /// Marked, or to be.
    pub(crate) dirty: BTreeSet<u32>,
    /// Regions marked on the members.
    pub(crate) durable: BTreeSet<u32>,
    /// Stripe writes under way in each.
    pub(crate) users: BTreeMap<u32, u32>,
    /// Used since the cleaner looked last.
    pub(crate) recent: BTreeSet<u32>,
}

/// Entries under way.
#[derive(Default)]
pub(crate) struct Ring {
    pub(crate) next: u64,
    pub(crate) live: BTreeSet<u64>,
    /// The last entry with data.
    pub(crate) last: u64,
    /// Entries below this number are never written again: the end of the journal, as recorded on the members.
    pub(crate) end: u64,
}

/// Several tasks wait for one write that covers all their requests.
pub(crate) struct Group {
    pub(crate) wanted: Cell<u64>,
    pub(crate) done: Cell<u64>,
    pub(crate) is_writing: Cell<bool>,
    pub(crate) signal: Signal,
}

impl Group {
    fn new(sim: &Sim) -> Group {
        Group { wanted: Cell::new(0), done: Cell::new(0), is_writing: Cell::new(false), signal: Signal::new(sim) }
    }

    /// Requests a write, and waits until a write that was begun afterwards has ended.
    pub(crate) async fn ask(&self, write: impl AsyncFn()) {
        self.wanted.set(self.wanted.get() + 1);
        let target = self.wanted.get();
        while self.done.get() < target {
            if self.is_writing.get() {
                self.signal.changed().await;
                continue;
            }
            self.is_writing.set(true);
            let covered = self.wanted.get();
            write().await;
            self.done.set(covered);
            self.is_writing.set(false);
            self.signal.notify();
        }
    }

    /// Waits until all requests are done.
    pub(crate) async fn settled(&self) {
        let target = self.wanted.get();
        while self.done.get() < target {
            self.signal.changed().await;
        }
    }
}

impl Journal {
    pub(crate) fn new(sim: &Sim, mode: JournalMode, form: Form, uuid: [u8; 16]) -> Journal {
        Journal {
            mode,
            form,
            uuid,
            generation: Arc::default(),
            recorded: Group::new(sim),
            intent: RefCell::default(),
            marked: Group::new(sim),
            bitmap_number: Cell::new(0),
            is_cleaning: Cell::new(false),
            is_settled: Cell::new(false),
            closed: Group::new(sim),
            ring: RefCell::new(Ring { next: 1, live: BTreeSet::new(), last: 0, end: 1 }),
            moved: Signal::new(sim),
        }
    }
}
