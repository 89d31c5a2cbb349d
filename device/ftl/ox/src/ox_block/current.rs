//! Enters programmed slots of the write cache into the map, with their records, and ends the writes and flushes that waited
//! for them.

use std::rc::Rc;

use nandscape_device_ftl_core::address::{Lpn, SlotId};
use nandscape_device_ftl_core::component::{CachedMapping, Entry, FragmentMiss, Log, LogPosition, Record, Stopped};
use nandscape_device_ftl_core::ftl::{Milestone, Settling};
use nandscape_device_media::{MediaError, PageId};
use nandscape_drive::Breakdown;
use nandscape_sim::account::Totals;

use super::core::Core;
use super::mistakes::{self, Mistake};
use super::state::{Mover, State};

impl State {
    /// A programmed slot becomes current. Adds writes and flushes that have waited for nothing else to `told`.
    fn apply(&mut self, id: SlotId, told: &mut Vec<Rc<Settling>>) -> Result<(), FragmentMiss> {
        let slot = self.cache.slot(id);
        let unit = slot.at.expect("the slot was programmed");
        let (lpn, lost, transaction, dropped) = (Lpn(slot.lpn), slot.lost as u32, slot.transaction, slot.dropped);
        if !dropped {
            self.remap(lpn, Entry::new(Some(unit), lost), Mover::Host, transaction)?;
        }
        self.end_pending(self.block_of(unit), 1);
        self.cache.remove(id, told);
        Ok(())
    }

    /// Makes slots current one by one, if they are part of no transaction and their fragments of the map are in memory.
    /// Returns how many.
    fn apply_ready(&mut self, slots: &[SlotId], told: &mut Vec<Rc<Settling>>) -> usize {
        let is_applied = |id: &&SlotId| self.cache.slot(**id).transaction == 0 && self.apply(**id, told).is_ok();
        slots.iter().take_while(is_applied).count()
    }
}

impl Core {
    /// A program of slots has ended.
    pub(super) async fn slots_programmed(
        &self,
        page: PageId,
        slots: &[SlotId],
        ended: Result<(), MediaError>,
        program: (&Totals, &Breakdown),
    ) {
        let is_placed = self.state.borrow_mut().placed(page, slots, ended.is_ok());
        if !is_placed {
            self.check_read_only();
            return self.pump();
        }
        let mut told = Vec::new();
        let (applied, position, has_transactions) = {
            let mut state = self.state.borrow_mut();
            let applied = state.apply_ready(slots, &mut told);
            (applied, state.log.last(), !state.cache.transactions.is_empty())
        };
        let rest = &slots[applied..];
        if applied > 0 {
            self.are_current(&slots[..applied], told, position, Some(program));
        }
        // In a box: few drives have transactions or a map larger than their memory, and others must not pay with larger
        // futures.
        let has_rest = has_transactions || !rest.is_empty();
        if has_rest && Box::pin(self.make_rest_current(rest)).await.is_err() {
            return;
        }
        self.pump();
    }

    /// Makes slots current whose fragment of the map is not in memory, and transactions that are now complete.
    async fn make_rest_current(&self, slots: &[SlotId]) -> Result<(), Stopped> {
        for slot in slots {
            let is_alone = self.state.borrow().cache.slot(*slot).transaction == 0;
            if is_alone {
                self.make_current(&[*slot], None).await?;
            }
        }
        self.commit_complete().await;
        Ok(())
    }

    /// Complete transactions become current, in the order of arrival. Called whenever one may have become complete.
    pub(super) async fn commit_complete(&self) {
        if self.state.borrow().cache.transactions.is_empty() || self.flags.committing.replace(true) {
            return;
        }
        loop {
            let Some((id, slots)) = self.state.borrow().cache.complete() else { break };
            if self.make_current(&slots, Some(id)).await.is_err() {
                return;
            }
            self.state.borrow_mut().cache.transactions.retain(|transaction| transaction.id != id);
        }
        self.flags.committing.set(false);
    }

    /// Slots that were programmed become current at the same time, with the records of that.
    async fn make_current(&self, slots: &[SlotId], transaction: Option<u64>) -> Result<(), Stopped> {
        let mut pinned = Vec::new();
        for slot in slots {
            let lpn = Lpn(self.state.borrow().cache.slot(*slot).lpn);
            pinned.push(self.pin_fragment(lpn).await?);
        }
        let (mut told, mut old) = (Vec::new(), Vec::new());
        let position = {
            let mut state = self.state.borrow_mut();
            let before = state.log.last();
            for slot in slots {
                old.extend(state.before_of(*slot));
                state.apply(*slot, &mut told).unwrap_or_else(|_| panic!("the fragment was pinned"));
            }
            let records = state.log.last().0 - before.0;
            if let Some(transaction) = transaction.filter(|_| records > 0) {
                state.log.append(Record::Commit { transaction, records });
            }
            pinned.iter().for_each(|index| state.map.unpin(*index));
            let position = state.log.last();
            state.keep_before(position, old);
            position
        };
        self.map_changed.notify();
        self.are_current(slots, told, position, None);
        Ok(())
    }

    /// Slots have become current, with records up to a position. `program` wrote them, if it has just ended.
    fn are_current(
        &self,
        slots: &[SlotId],
        told: Vec<Rc<Settling>>,
        position: LogPosition,
        program: Option<(&Totals, &Breakdown)>,
    ) {
        self.forget_slots(slots);
        self.save_if_due();
        self.settle(told, position, program);
        self.shared.free_slots.give(slots.len());
        self.log_grew();
    }

    /// Writes and flushes end when the log is durable up to a position. The log is written for them.
    pub(super) fn settle_when_durable(&self, told: Vec<Rc<Settling>>, position: LogPosition) {
        self.settle(told, position, None);
        self.kick_log();
    }

    /// Writes and flushes end when the log is durable up to a position; writes that need not wait for it end now. The
    /// caller writes the log afterwards, in the same step: [`Core::kick_log`] or [`Core::log_grew`].
    fn settle(&self, mut told: Vec<Rc<Settling>>, position: LogPosition, program: Option<(&Totals, &Breakdown)>) {
        if told.is_empty() {
            return;
        }
        told.extract_if(.., |settling| settling.milestone() == Milestone::Programmed)
            .for_each(|settling| settling.one_settled(program));
        if told.is_empty() {
            return;
        }
        let mut state = self.state.borrow_mut();
        state.waiting.extend(told.into_iter().map(|settling| (position, settling)));
        state.log.persist(position);
        drop(state);
        if mistakes::is_made(Mistake::FlushOfData) {
            self.state.borrow_mut().waiting.drain(..).for_each(|(_, settling)| settling.one_settled(None));
        }
        self.tell_durable(None);
    }

    /// Notifies waiters for the log that need not wait any more. `program` wrote it.
    pub(super) fn tell_durable(&self, program: Option<(&Totals, &Breakdown)>) {
        loop {
            let is_due = {
                let state = self.state.borrow();
                state.waiting.front().is_some_and(|(position, _)| state.log.is_durable(*position))
            };
            if is_due && !self.sync() {
                break;
            }
            let mut state = self.state.borrow_mut();
            let Some((position, settling)) = state.waiting.pop_front_if(|_| is_due) else { break };
            let is_more_seen = state.reveal_upto(position);
            drop(state);
            if is_more_seen {
                self.log_changed.notify();
            }
            settling.one_settled(program);
        }
    }
}
