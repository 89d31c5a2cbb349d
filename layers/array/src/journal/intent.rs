//! Regions being written: marked on all members before the first write, cleared some time after the last one. Marks
//! requested during a write of the bitmap are written together with the next one.

use std::ops::Range;
use std::rc::Rc;

use nandscape_sim::Span;

use super::form::{self, Bitmap};
use super::{Group, Journal, RETRY};
use crate::array::{Array, Core};
use crate::member::is_interrupted;
use crate::rebuild::ScrubReport;
use crate::serve::BACKGROUND;

/// The least time for which regions stay marked after their last write: writes tend to return to a region.
const LINGER: Span = Span::from_s(1);

impl Array {
    /// Ends the array in order: flushes the volatile caches of members, and clears the mark of every region without
    /// writes under way. Afterwards the array also opens without a member.
    pub async fn shut_down(&self) {
        let core = self.core();
        if let Some(journal) = &core.journal {
            core.clear_marks(journal, true).await;
        }
    }
}

impl Journal {
    pub(super) fn region(&self, stripe: u64) -> u32 {
        (stripe / self.form.region) as u32
    }
}

impl Core {
    /// Marks the region of a stripe that is about to be written; returns whether the mark is written.
    pub(super) async fn mark(self: &Rc<Self>, journal: &Journal, stripe: u64) -> bool {
        let region = journal.region(stripe);
        let is_durable = {
            let mut intent = journal.intent.borrow_mut();
            *intent.users.entry(region).or_default() += 1;
            intent.recent.insert(region);
            intent.dirty.insert(region);
            intent.durable.contains(&region)
        };
        if !is_durable {
            self.write_bitmap(journal).await;
        }
        journal.intent.borrow().durable.contains(&region)
    }

    /// The write has ended.
    pub(super) fn unmark(self: &Rc<Self>, journal: &Journal, stripe: u64) {
        let region = journal.region(stripe);
        let mut intent = journal.intent.borrow_mut();
        if let Some(users) = intent.users.get_mut(&region) {
            *users -= 1;
            if *users == 0 {
                intent.users.remove(&region);
            }
        }
        drop(intent);
        journal.moved.notify();
        if !journal.is_cleaning.replace(true) {
            let core = self.clone();
            self.sim.spawn(async move { core.clean().await });
        }
    }

    pub(super) async fn write_bitmap(self: &Rc<Self>, journal: &Journal) {
        let group: &Group = &journal.marked;
        group
            .ask(async || {
                let dirty = journal.intent.borrow().dirty.clone();
                let number = journal.bitmap_number.get() + 1;
                journal.bitmap_number.set(number);
                let mut bits = [0; form::REGIONS as usize / 8];
                dirty.iter().for_each(|region| bits[*region as usize / 8] |= 1 << (region % 8));
                let (uuid, number_le) = (journal.uuid, number.into());
                let bitmap =
                    Bitmap { magic: form::magic(), uuid, number: number_le, bits, reserved: [0; 92], crc: 0.into() };
                let bytes = form::sealed(&bitmap, journal.form.page_bytes());
                let failed = self.failed.get();
                let members = (0..self.level.members()).filter(|member| failed & 1 << member == 0);
                let writes = members.map(|member| (member, bytes.clone())).collect();
                let is_there = self.write_records(journal.form.bitmap(number), writes).await;
                // Regions that are in neither bitmap for certain are not marked.
                let mut intent = journal.intent.borrow_mut();
                intent.durable = if is_there { dirty } else { intent.durable.intersection(&dirty).copied().collect() };
            })
            .await;
    }

    /// Clears marks of unused regions while any remain.
    async fn clean(self: Rc<Self>) {
        let Some(journal) = &self.journal else { return };
        while !journal.intent.borrow().dirty.is_empty() {
            self.sim.sleep(LINGER).await;
            self.clear_marks(journal, false).await;
        }
        journal.is_cleaning.set(false);
    }

    /// Clears marks of regions without writes under way; of those used lately only if `all`.
    async fn clear_marks(self: &Rc<Self>, journal: &Journal, all: bool) {
        let idle: Vec<u32> = {
            let mut intent = journal.intent.borrow_mut();
            let recent = std::mem::take(&mut intent.recent);
            let is_idle = |region: &&u32| {
                !intent.users.contains_key(*region)
                    && (all || !recent.contains(*region))
                    && !self.is_torn_in(journal, **region)
            };
            intent.dirty.iter().filter(is_idle).copied().collect()
        };
        if idle.is_empty() {
            return;
        }
        // A power cut may lose data in volatile caches on some members only.
        // Hosts and openings wait for the end of all marks.
        let (paths, attributes) = (self.paths.clone(), if all { 0 } else { BACKGROUND });
        if self.info.volatile_cache && self.flush(&paths, attributes).await.is_err() {
            return;
        }
        {
            let mut intent = journal.intent.borrow_mut();
            for region in idle {
                // One that is used again meanwhile counts on its mark.
                let is_idle = !intent.users.contains_key(&region) && (all || !intent.recent.contains(&region));
                if is_idle && !self.is_torn_in(journal, region) {
                    intent.dirty.remove(&region);
                    // A mark that is wanted from now on is written again.
                    intent.durable.remove(&region);
                }
            }
        }
        self.write_bitmap(journal).await;
    }

    /// Whether a region has stripes that may be inconsistent: it stays marked.
    fn is_torn_in(&self, journal: &Journal, region: u32) -> bool {
        let stripes = self.stripes_of(journal, region);
        self.locks.next_torn(stripes.start).is_some_and(|stripe| stripe < stripes.end)
    }

    /// With a member missing, only marks of stripes that cannot be made consistent are useful. Waits until writes
    /// that rely on marks have ended, and clears the others.
    pub(super) async fn until_clean(self: &Rc<Self>, journal: &Journal) {
        loop {
            let (is_clean, is_used) = {
                let intent = journal.intent.borrow();
                (intent.dirty.iter().all(|region| self.is_torn_in(journal, *region)), !intent.users.is_empty())
            };
            if is_clean && journal.marked.done.get() == journal.marked.wanted.get() {
                journal.is_settled.set(true);
                return;
            }
            match (is_clean, is_used) {
                (true, _) => journal.marked.settled().await,
                (_, true) => journal.moved.changed().await,
                _ => self.clear_marks(journal, true).await,
            }
        }
    }

    /// A power cut of members: stripes of marked regions may be inconsistent. They are made consistent during the
    /// commands of hosts.
    pub(crate) fn was_interrupted(self: &Rc<Self>) {
        if let Some(journal) = &self.journal
            && self.info.volatile_cache
            && !(journal.is_settled.get() && self.missing_anywhere() != 0)
        {
            // Members lose different parts of their caches, also of writes that have ended.
            for region in &journal.intent.borrow().dirty {
                self.locks.tear_all(self.stripes_of(journal, *region));
            }
        }
        self.start_resync();
    }

    /// Makes stripes consistent that may not be, during the commands of hosts.
    pub(crate) fn start_resync(self: &Rc<Self>) {
        self.resyncs_again.set(true);
        if !self.is_resyncing.replace(true) {
            let core = self.clone();
            self.sim.spawn(async move {
                while core.resyncs_again.replace(false) {
                    let dirty = core.journal.as_ref().map(|journal| journal.intent.borrow().dirty.clone());
                    core.resync(&dirty.unwrap_or_default().into_iter().collect::<Vec<_>>()).await;
                    let (mut next, mut report) = (0, ScrubReport::default());
                    while let Some(stripe) = core.locks.next_torn(next) {
                        core.resync_stripe(stripe, &mut report).await;
                        next = stripe + 1;
                    }
                }
                core.is_resyncing.set(false);
                core.journal.iter().for_each(|journal| journal.moved.notify());
            });
        }
    }

    fn stripes_of(&self, journal: &Journal, region: u32) -> Range<u64> {
        let first = u64::from(region) * journal.form.region;
        first..(first + journal.form.region).min(self.geometry.stripes)
    }

    /// Makes the stripes of regions consistent, from their data. It waits for drives whose power is cut.
    pub(super) async fn resync(self: &Rc<Self>, regions: &[u32]) -> ScrubReport {
        let (mut report, Some(journal)) = (ScrubReport::default(), &self.journal) else {
            return ScrubReport::default();
        };
        for region in regions {
            for stripe in self.stripes_of(journal, *region) {
                self.resync_stripe(stripe, &mut report).await;
            }
        }
        report
    }

    /// With a member missing, parity cannot be made to fit, and nothing may be reconstructed from it; the remaining
    /// copies can be made equal.
    async fn resync_stripe(self: &Rc<Self>, stripe: u64, report: &mut ScrubReport) {
        loop {
            let missing = self.missing(stripe);
            if self.lacks_data_of(stripe, missing) {
                let _guard = self.locks.exclusive(stripe).await;
                match self.condemn_torn(stripe).await {
                    Err(status) if is_interrupted(status) => self.sim.sleep(RETRY).await,
                    // If the drives cannot do it, the stripe stays torn, and its region marked.
                    _ => return,
                }
                continue;
            }
            match self.scrub_stripe(stripe, report).await {
                Err(_) => self.sim.sleep(RETRY).await,
                // After a member's failure meanwhile, the others are still made equal.
                Ok(()) if self.missing(stripe) != missing => {}
                Ok(()) => return,
            }
        }
    }
}
