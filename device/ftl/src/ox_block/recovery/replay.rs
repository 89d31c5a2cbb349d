//! REPLAY: the chain of the log from the checkpoint's head on, and its records in order.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use nandscape_device_media::{BlockId, PageId};
use nandscape_drive::Breakdown;

use super::super::checkpoint::Restored;
use super::super::core::Core;
use super::super::mistakes::{self, Mistake};
use super::super::pages::{self, Kind};
use super::super::streams::{COLD, HOT};
use super::{Ended, Recovered};
use crate::address::Lpn;
use crate::component::{LogHead, Mapping, Stopped, Stream};
use crate::parts::{LogPage, Record, Remap};

/// A replay under way.
pub(super) struct Replay {
    /// The checkpoint that it begins at.
    restored: Restored,
    /// Records of transactions whose end was not met yet.
    open: BTreeMap<u64, Vec<Remap>>,
    /// The timestamp of the last record; before the first, of the one before the head of the log.
    last: u64,
    /// Blocks where pages of the chain are, or may be.
    chain: BTreeSet<BlockId>,
    done: Recovered,
}

impl Replay {
    pub(super) fn new(restored: Restored) -> Replay {
        Replay {
            restored,
            open: BTreeMap::new(),
            last: restored.written,
            chain: BTreeSet::new(),
            done: Recovered::default(),
        }
    }

    /// The timestamp of the last record.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// Whether a replay from the same checkpoint needs a block of the log.
    pub(super) fn needs(&self, block: BlockId) -> bool {
        self.chain.contains(&block)
    }

    /// What was replayed, when the log has ended.
    pub(super) fn ended(&self) -> Recovered {
        Recovered { aborted: self.open.len() as u64, ..self.done }
    }
}

/// What was found where the next page of a chain may be.
enum Next {
    Page(PageId, LogPage),
    /// Nothing of this chain.
    End,
    /// A page that comes after the one that is looked for.
    Later,
}

impl Core {
    /// Applies the records of the chain. Returns the number of the page that would come next.
    pub(super) async fn replay_chain(&self, replay: &mut Replay) -> Result<u64, Ended> {
        let mut head = replay.restored.head;
        loop {
            let geometry = self.media.geometry();
            replay.chain.extend(head.pages.into_iter().flatten().map(|page| geometry.block_of(page)));
            let (page, found) = match self.next_log_page(&head).await? {
                Next::Page(page, found) => (page, found),
                Next::End => return Ok(head.number),
                Next::Later => return Err(Ended::Damaged),
            };
            self.state.borrow_mut().found_log_page(page);
            replay.done.pages += 1;
            for (timestamp, record) in found.records {
                self.replay(timestamp, record, replay).await?;
                replay.last = timestamp.max(replay.last);
            }
            head = LogHead { pages: found.next, number: head.number + 1, ..head };
        }
    }

    /// The page of a chain that is in one of three places, if it is. Pages are written one after the other: where a later
    /// one is, the page that is looked for was written, and is lost.
    async fn next_log_page(&self, head: &LogHead) -> Result<Next, Ended> {
        let mut next = Next::End;
        for page in head.pages.into_iter().flatten() {
            self.state.borrow().check_page(page)?;
            if self.read_page(page).await?.is_err() {
                continue;
            }
            let contents = pages::contents(&self.media, page);
            // Of flash alone a page that is not whole may be torn. A file tells that it was whole once.
            if contents.is_none() && self.media.is_damaged(page) {
                return Err(Ended::Damaged);
            }
            let contents = contents.filter(|(kind, _, _)| *kind == Kind::Log);
            let found = contents.and_then(|(_, _, bytes)| LogPage::decode(&bytes));
            let Some(found) = found.filter(|found| found.epoch == head.epoch) else { continue };
            match found.number.cmp(&head.number) {
                Ordering::Equal => return Ok(Next::Page(page, found)),
                Ordering::Greater if !mistakes::is_made(Mistake::HoleIgnored) => next = Next::Later,
                Ordering::Greater | Ordering::Less => {}
            }
        }
        Ok(next)
    }

    /// Applies the records that have survived in memory, and are neither in the chain nor before its head.
    pub(super) async fn replay_kept(&self, replay: &mut Replay) -> Result<(), Ended> {
        let kept = self.kept_records.borrow().clone();
        for (timestamp, record) in kept {
            if timestamp > replay.last {
                self.replay(timestamp, record, replay).await?;
                replay.last = timestamp;
            }
        }
        Ok(())
    }

    async fn replay(&self, timestamp: u64, record: Record, replay: &mut Replay) -> Result<(), Ended> {
        self.state.borrow().check_record(&record)?;
        replay.done.records += 1;
        match record {
            Record::UserWrite(remap) if remap.transaction != 0 && !mistakes::is_made(Mistake::CommitIgnored) => {
                self.state.borrow_mut().reach_unit(&remap, HOT);
                replay.open.entry(remap.transaction).or_default().push(remap);
            }
            Record::UserWrite(remap) => self.remap_again(&remap, HOT).await?,
            Record::GcWrite(remap) => self.remap_again(&remap, COLD).await?,
            Record::Commit { transaction, records } => {
                let whole = replay.open.remove(&transaction).filter(|open| open.len() as u64 == records);
                replay.done.committed += u64::from(whole.is_some());
                for remap in whole.unwrap_or_default() {
                    self.remap_again(&remap, HOT).await?;
                }
            }
            other => self.state.borrow_mut().redo(timestamp, &other, &replay.restored),
        }
        Ok(())
    }

    async fn remap_again(&self, remap: &Remap, stream: Stream) -> Result<(), Stopped> {
        loop {
            let done = self.state.borrow_mut().map.upsert(Lpn(remap.lpn), remap.new);
            match done {
                Ok(_) => break,
                Err(miss) => self.load(miss, &mut Breakdown::new()).await?,
            }
        }
        let mut state = self.state.borrow_mut();
        state.reach_unit(remap, stream);
        state.move_validity(remap.old.unit(), remap.new.unit());
        Ok(())
    }
}
