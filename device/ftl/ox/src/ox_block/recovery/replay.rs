//! A replay in progress: the chain of the log from the checkpoint's head on, and the effects of its records.

use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::collections::BTreeSet;

use nandscape_device_ftl_core::address::Lpn;
use nandscape_device_ftl_core::component::{
    LogHead, Mapping, Process, Record, Remap, ReplayEnded, Replayed, Replaying, Stopped, Stream,
};
use nandscape_device_media::{BlockId, PageId};
use nandscape_drive::Breakdown;

use super::super::checkpoint::Restored;
use super::super::core::Core;
use super::super::mistakes::{self, Mistake};
use super::super::pages::{self, Kind};
use super::super::streams::{COLD, HOT};
use super::Recovered;
use crate::parts::LogPage;

/// See the file.
pub(super) struct Replay<'a> {
    core: &'a Core,
    /// The checkpoint that it begins at.
    restored: Restored,
    /// Where the next page of the chain may be.
    head: Cell<LogHead>,
    /// The timestamp of the last record; before the first, that of the record before the head of the log.
    last: Cell<u64>,
    /// Blocks where pages of the chain are, or may be.
    chain: RefCell<BTreeSet<BlockId>>,
    pages: Cell<u64>,
    records: Cell<u64>,
}

impl Replay<'_> {
    pub(super) fn new(core: &Core, restored: Restored) -> Replay<'_> {
        Replay {
            core,
            restored,
            head: Cell::new(restored.head),
            last: Cell::new(restored.written),
            chain: RefCell::default(),
            pages: Cell::new(0),
            records: Cell::new(0),
        }
    }

    /// The timestamp of the last record.
    pub(super) fn last(&self) -> u64 {
        self.last.get()
    }

    /// The number of the page that would come next in the chain.
    pub(super) fn next_number(&self) -> u64 {
        self.head.get().number
    }

    /// Whether a replay from the same checkpoint needs a block of the log.
    pub(super) fn needs(&self, block: BlockId) -> bool {
        self.chain.borrow().contains(&block)
    }

    /// The replayed records.
    pub(super) fn ended(&self, replayed: Replayed) -> Recovered {
        let Replayed { committed, aborted } = replayed;
        Recovered { pages: self.pages.get(), records: self.records.get(), committed, aborted, ..Recovered::default() }
    }

    /// Takes over records after the last one.
    fn take(&self, records: Vec<(u64, Record)>) -> Result<Vec<(u64, Record)>, ReplayEnded> {
        let state = self.core.state.borrow();
        records.iter().try_for_each(|(_, record)| state.check_record(record))?;
        self.records.set(self.records.get() + records.len() as u64);
        let last = records.iter().map(|(timestamp, _)| *timestamp).max();
        self.last.set(last.map_or(self.last.get(), |last| last.max(self.last.get())));
        Ok(records)
    }
}

impl Replaying for Replay<'_> {
    fn load_tables(&self) -> Process<'_, (), ReplayEnded> {
        Box::pin(self.core.load_tables())
    }

    fn next_page(&self) -> Process<'_, Option<Vec<(u64, Record)>>, ReplayEnded> {
        Box::pin(async move {
            let (core, head) = (self.core, self.head.get());
            let geometry = core.media.geometry();
            self.chain.borrow_mut().extend(head.pages.into_iter().flatten().map(|page| geometry.block_of(page)));
            let (page, mut found) = match core.next_log_page(&head).await? {
                Next::Page(page, found) => (page, found),
                Next::End => return Ok(None),
                Next::Later => return Err(ReplayEnded::Damaged),
            };
            core.state.borrow_mut().found_log_page(page);
            self.pages.set(self.pages.get() + 1);
            self.head.set(LogHead { pages: found.next, number: head.number + 1, ..head });
            if mistakes::is_made(Mistake::CommitIgnored) {
                found.records.iter_mut().for_each(|(_, record)| {
                    if let Record::UserWrite(remap) = record {
                        remap.transaction = 0;
                    }
                });
            }
            self.take(found.records).map(Some)
        })
    }

    fn kept(&self) -> Result<Vec<(u64, Record)>, ReplayEnded> {
        let mut last = self.last.get();
        let mut kept = self.core.kept_records.borrow().clone();
        kept.retain(|(timestamp, _)| {
            let is_new = *timestamp > last;
            last = last.max(*timestamp);
            is_new
        });
        self.take(kept)
    }

    fn redo(&self, timestamp: u64, record: Record) -> Process<'_, (), ReplayEnded> {
        Box::pin(async move {
            match record {
                Record::UserWrite(remap) => self.core.remap_again(&remap, HOT).await?,
                Record::GcWrite(remap) => self.core.remap_again(&remap, COLD).await?,
                other => self.core.state.borrow_mut().redo(timestamp, &other, &self.restored),
            }
            Ok(())
        })
    }

    fn reach(&self, remap: &Remap) {
        self.core.state.borrow_mut().reach_unit(remap, HOT);
    }
}

/// The page found at a place where the next page of a chain may be.
enum Next {
    Page(PageId, LogPage),
    /// Nothing of this chain.
    End,
    /// A page after the wanted one.
    Later,
}

impl Core {
    /// The page of a chain in one of three places, if present. Pages are written one after the other: where a later
    /// page is present, the wanted page was written, and is lost.
    async fn next_log_page(&self, head: &LogHead) -> Result<Next, ReplayEnded> {
        let mut next = Next::End;
        for page in head.pages.into_iter().flatten() {
            self.state.borrow().check_page(page)?;
            if self.read_page(page).await?.is_err() {
                continue;
            }
            let contents = pages::contents(&self.media, page);
            // From flash alone, a page that is not whole may be torn. A file knows whether it was whole once.
            if contents.is_none() && self.media.is_damaged(page) {
                return Err(ReplayEnded::Damaged);
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
