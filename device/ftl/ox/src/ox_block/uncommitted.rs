//! Units that reads must not see yet: those of transactions whose command waits for a durable Commit.
//!
//! A transaction whose command completes in the cache, or with a Commit that is only appended, is visible from the
//! instant at which the cache has it, as every write is. A transaction whose command waits for the log is visible when
//! its Commit is durable: a power cut could revert it before. Until it has become current, reads ignore its slots in
//! the cache. From then on until the Commit is durable, reads use the earlier places of the units (the before-image).
//! That flash still holds the data: a block is erased after a checkpoint that began when its data was out of date, and
//! a checkpoint ends after the records before it.
//!
//! A later write to such a unit waits for the log as well, in every mode, and is not visible before the transaction.
//! The reason: a write of a part of a unit is completed with the transaction's data. If the write were visible first,
//! reads would show that data before the Commit is durable.

use std::collections::{BTreeMap, VecDeque};

use nandscape_device_ftl_core::address::{Extent, Lpn, SlotId};
use nandscape_device_ftl_core::component::{Entry, LogPosition, Mapping};
use nandscape_device_ftl_core::ftl::Milestone;

use super::OxBlock;
use super::core::Core;
use super::state::State;

/// Where units were before transactions that are current, and whose Commit is not durable.
#[derive(Default)]
pub(super) struct BeforeImages {
    /// By unit and position of the Commit: the first one of a unit is what reads see.
    entries: BTreeMap<(Lpn, u64), Entry>,
    /// In the order of the commits.
    order: VecDeque<(LogPosition, Lpn)>,
}

impl BeforeImages {
    /// A transaction with its Commit at `position` has become current. `old` is where its units were.
    fn add(&mut self, position: LogPosition, old: Vec<(Lpn, Entry)>) {
        for (lpn, entry) in old {
            self.entries.insert((lpn, position.0), entry);
            self.order.push_back((position, lpn));
        }
    }

    /// The view of reads of a unit; `None` for the map's entry.
    fn get(&self, lpn: Lpn) -> Option<Entry> {
        self.entries.range((lpn, 0)..=(lpn, u64::MAX)).next().map(|(_, entry)| *entry)
    }

    /// A unit was deallocated, which is seen at once.
    fn forget(&mut self, lpn: Lpn) {
        self.entries.extract_if((lpn, 0)..=(lpn, u64::MAX), |_, _| true).for_each(drop);
    }

    /// The log is durable up to a position.
    fn lift(&mut self, upto: LogPosition) {
        while let Some((position, lpn)) = self.order.pop_front_if(|(position, _)| *position <= upto) {
            self.entries.remove(&(lpn, position.0));
        }
    }
}

/// The view of reads of a unit.
pub(super) struct Seen {
    /// The slot of the cache that holds it, or a part of it.
    pub(super) slot: Option<SlotId>,
    /// Where the rest is, if it is not where the map has it.
    pub(super) before: Option<Entry>,
}

impl State {
    /// Whether any transaction may be hidden from reads.
    #[inline]
    pub(super) fn has_uncommitted(&self) -> bool {
        self.uncommitted > 0
    }

    /// The view of reads of a unit, if transactions may be hidden.
    #[cold]
    pub(super) fn committed(&self, lpn: Lpn) -> Seen {
        match self.before.get(lpn) {
            // The cached versions of it are later.
            Some(entry) => Seen { slot: None, before: Some(entry) },
            None => Seen { slot: self.cache.newest_committed(lpn.0), before: None },
        }
    }

    /// Whether a version of a unit is not seen yet.
    fn is_uncommitted(&self, lpn: Lpn) -> bool {
        self.before.get(lpn).is_some() || self.cache.newest_committed(lpn.0) != self.cache.newest(lpn.0)
    }

    /// Whether a version of a unit in extents is not seen yet.
    #[cold]
    fn are_uncommitted(&self, extents: &[Extent]) -> bool {
        extents.iter().flat_map(|extent| extent.pieces(self.unit)).any(|piece| self.is_uncommitted(piece.lpn))
    }

    /// The stage that a write to extents must have reached when it completes, if the host requests `watch`.
    #[inline]
    pub(super) fn milestone_of(
        &self,
        extents: &[Extent],
        watch: Option<Milestone>,
        is_transaction: bool,
    ) -> Option<Milestone> {
        if self.has_uncommitted() && self.are_uncommitted(extents) {
            return Some(Milestone::Flash);
        }
        match watch {
            // A transaction is not acknowledged without a durable Commit, unless that is wanted (OX 5.1.9): then it is when the Commit
            // has been appended to the log.
            Some(Milestone::Programmed) if is_transaction && self.waits_for_commit => Some(Milestone::Flash),
            watch => watch,
        }
    }

    /// A transaction waits for the log: its slots are not seen.
    pub(super) fn conceal(&mut self, slots: &[SlotId]) {
        slots.iter().for_each(|slot| self.cache.conceal(*slot));
        self.count_uncommitted();
    }

    /// A slot of a transaction is about to become current. Where its unit was, if the transaction is not to be seen yet.
    pub(super) fn before_of(&mut self, id: SlotId) -> Option<(Lpn, Entry)> {
        if !self.cache.reveal(id) {
            return None;
        }
        let (lpn, dropped) = (Lpn(self.cache.slot(id).lpn), self.cache.slot(id).dropped);
        (!dropped).then(|| (lpn, self.map.lookup(lpn).unwrap_or_else(|_| panic!("the fragment was pinned"))))
    }

    /// A transaction has become current, with its Commit at a position.
    pub(super) fn keep_before(&mut self, position: LogPosition, old: Vec<(Lpn, Entry)>) {
        if self.has_uncommitted() {
            self.before.add(position, old);
            self.count_uncommitted();
        }
    }

    /// Commits up to a position are durable. Returns whether reads may see more from now on.
    pub(super) fn reveal_upto(&mut self, position: LogPosition) -> bool {
        let has_uncommitted = self.has_uncommitted();
        if has_uncommitted {
            self.before.lift(position);
            self.count_uncommitted();
        }
        has_uncommitted
    }

    fn count_uncommitted(&mut self) {
        self.uncommitted = self.cache.concealed() + self.before.order.len() as u32;
    }

    /// Checks the counts.
    ///
    /// # Errors
    /// The fault.
    pub(super) fn check_uncommitted(&self) -> Result<(), String> {
        let (slots, before) = (self.cache.count_concealed(), self.before.order.len());
        match (self.cache.concealed(), self.uncommitted as usize) == (slots, slots as usize + before) {
            true => Ok(()),
            false => {
                Err(format!("{slots} slots and {before} units are not seen yet, and {} are recorded", self.uncommitted))
            }
        }
    }
}

impl Core {
    /// A unit was deallocated: its earlier content must not be seen any more.
    pub(super) fn forget_before(&self, lpn: Lpn) {
        let mut state = self.state.borrow_mut();
        if state.has_uncommitted() {
            state.before.forget(lpn);
            self.log_changed.notify();
        }
    }
}

/// See [`Transactions::settle`](nandscape_device_ftl_core::offers::Transactions::settle).
pub(super) async fn settle(ftl: &OxBlock, extent: Extent) {
    let core = ftl.core();
    let is_waiting = || {
        let state = core.state.borrow();
        state.has_uncommitted() && state.are_uncommitted(&[extent])
    };
    while core.is_writing() && is_waiting() {
        if core.wait(&core.log_changed).await.is_err() {
            return;
        }
    }
}
