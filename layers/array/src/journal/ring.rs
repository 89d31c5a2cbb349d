//! The journal of data: each member's data of a stripe write is first written to a slot on that member, and then in
//! place.
//!
//! Numbers increase, and slots are used in turn. A slot is reused when all entries up to that of its last use are in
//! place, and each entry records up to which number they are. No entry is therefore written again after a later entry
//! of the same stripe was overwritten. Before stripes are written without the journal again, an entry without a write
//! ends it: an old entry would undo those writes.

use std::rc::Rc;

use nandscape_wire_nvme::Status;

use super::Journal;
use super::form::{self, SLOTS, Slot};
use crate::array::Core;
use crate::config::JournalMode;
use crate::write::SubWrite;

/// How a stripe write is protected.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Entry {
    None,
    /// Its region is marked.
    Marked,
    /// It is in the journal under this number.
    Journalled(u64),
}

impl Core {
    /// Protects a stripe write that is about to begin.
    pub(crate) async fn protect(self: &Rc<Self>, stripe: u64, writes: &[SubWrite]) -> Result<Entry, Status> {
        let Some(journal) = &self.journal else { return Ok(Entry::None) };
        if self.level.tolerates() == 0 {
            return Ok(Entry::None);
        }
        let has_parity = self.level.checks() > 0;
        if journal.mode == JournalMode::Data || (has_parity && self.missing_anywhere() != 0) {
            if has_parity && self.missing_anywhere() != 0 {
                self.until_clean(journal).await;
            }
            return Ok(Entry::Journalled(self.append(journal, stripe, writes).await?));
        }
        if !self.end_journal(journal).await {
            return Err(Status::ABORTED_POWER_LOSS);
        }
        if !self.mark(journal, stripe).await {
            self.unprotect(stripe, Entry::Marked);
            return Err(Status::ABORTED_POWER_LOSS);
        }
        Ok(Entry::Marked)
    }

    /// The write has ended, durably where it was journalled.
    pub(crate) fn unprotect(self: &Rc<Self>, stripe: u64, entry: Entry) {
        let Some(journal) = &self.journal else { return };
        match entry {
            Entry::None => {}
            Entry::Marked => self.unmark(journal, stripe),
            Entry::Journalled(number) => {
                journal.ring.borrow_mut().live.remove(&number);
                journal.moved.notify();
            }
        }
    }

    /// Ends the journal: its entries so far are not written again at the next start, once those under way have ended.
    /// Returns whether the members have recorded this.
    pub(super) async fn end_journal(self: &Rc<Self>, journal: &Journal) -> bool {
        let has_entries = || {
            let ring = journal.ring.borrow();
            ring.last >= ring.end
        };
        let is_used = || !journal.ring.borrow().live.is_empty();
        loop {
            while has_entries() && is_used() {
                journal.moved.changed().await;
            }
            if !has_entries() {
                return true;
            }
            journal.closed.ask(async || self.write_end(journal).await).await;
            if has_entries() && !is_used() {
                return false;
            }
        }
    }

    /// Writes the end of the journal, unless an entry has arrived meanwhile.
    async fn write_end(self: &Rc<Self>, journal: &Journal) {
        let number = {
            let mut ring = journal.ring.borrow_mut();
            if !ring.live.is_empty() {
                return;
            }
            ring.next += 1;
            ring.next - 1
        };
        let slot = Slot {
            magic: form::magic(),
            uuid: journal.uuid,
            number: number.into(),
            tail: number.into(),
            stripe: 0.into(),
            start: 0.into(),
            blocks: 0.into(),
            mask: 0.into(),
            zeros: 1.into(),
            data_crc: crc32fast::hash(&[]).into(),
            crc: 0.into(),
        };
        let bytes = form::sealed(&slot, journal.form.page_bytes());
        let failed = self.failed.get();
        let members = (0..self.level.members()).filter(|member| failed & 1 << member == 0);
        let slots = members.map(|member| (member, bytes.clone())).collect();
        if self.write_records(journal.form.slot(number), slots).await {
            journal.ring.borrow_mut().end = number;
        }
    }

    async fn append(self: &Rc<Self>, journal: &Journal, stripe: u64, writes: &[SubWrite]) -> Result<u64, Status> {
        let number = loop {
            {
                let mut ring = journal.ring.borrow_mut();
                let oldest = ring.live.first().copied().unwrap_or(ring.next);
                if ring.next < oldest + SLOTS {
                    let number = ring.next;
                    ring.next += 1;
                    ring.last = number;
                    ring.live.insert(number);
                    break number;
                }
            }
            journal.moved.changed().await;
        };
        let missing = self.missing(stripe);
        let there: Vec<&SubWrite> = writes.iter().filter(|write| missing & 1 << write.member == 0).collect();
        let mask = there.iter().fold(0u32, |mask, write| mask | 1 << write.member);
        let tail = journal.ring.borrow().live.first().copied().unwrap_or(number);
        let slot = |write: &&SubWrite| {
            let data = write.mem.as_ref().map(|mem| {
                let mut data = mem.to_vec();
                data.resize(self.geometry.bytes(write.reach.blocks), 0);
                data
            });
            let slot = Slot {
                magic: form::magic(),
                uuid: journal.uuid,
                number: number.into(),
                tail: tail.into(),
                stripe: stripe.into(),
                start: write.reach.start.into(),
                blocks: write.reach.blocks.into(),
                mask: mask.into(),
                zeros: u32::from(data.is_none()).into(),
                data_crc: crc32fast::hash(data.as_deref().unwrap_or_default()).into(),
                crc: 0.into(),
            };
            let mut bytes = form::sealed(&slot, journal.form.page_bytes());
            bytes.extend(data.unwrap_or_default());
            (write.member, bytes)
        };
        let slots = there.iter().map(slot).collect();
        if !self.write_records(journal.form.slot(number), slots).await {
            self.unprotect(stripe, Entry::Journalled(number));
            return Err(Status::ABORTED_POWER_LOSS);
        }
        Ok(number)
    }
}
