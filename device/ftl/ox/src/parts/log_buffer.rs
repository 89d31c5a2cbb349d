//! The log in memory (OX 6.1.6): records that wait for their page, and where the pages go.
//!
//! A page names three pages where the next one may be. If a program fails, the next of the three is taken. When none of
//! them is left, the chain is broken: nothing is written until a checkpoint has begun, at which a new chain begins. The
//! new chain can only be read once the checkpoint has ended.

use std::collections::VecDeque;

use nandscape_device_ftl_core::component::{
    ChainedLog, Log, LogHead, LogPosition, LogStart, NoteRecord, Outgoing, POINTERS, Record,
};
use nandscape_device_media::PageId;

use super::log_page::{LogPage, records_per_page};

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Chain {
    Whole,
    /// No place named by the last page is left.
    Broken,
    /// A new chain has begun that no checkpoint names yet.
    Rejoining,
}

/// See the module.
pub struct LogBuffer {
    page_bytes: usize,
    /// Records that are not written, with their timestamps.
    pending: VecDeque<(u64, Record)>,
    /// The timestamp of the last record before those that were appended here.
    first: u64,
    /// The timestamp of the last record.
    last: u64,
    /// Records up to this one are written.
    written: u64,
    /// Records up to this one can be read after a power cut.
    durable: u64,
    /// Records up to this one must be written, even if they do not fill a page.
    wanted: u64,
    /// The number of the next page.
    number: u64,
    epoch: u64,
    /// The pages that come next, in order.
    upcoming: VecDeque<PageId>,
    /// Where the next page must be to be found.
    promised: [Option<PageId>; POINTERS],
    chain: Chain,
    breaks: u32,
    /// The number of the first page after the last checkpoint.
    head: u64,
    /// Whether records survive a power cut in memory.
    keeps: bool,
    /// Of those records, the ones that are written to a chain that no checkpoint names yet.
    unreachable: Vec<(u64, Record)>,
    /// Called with each record that survives.
    note: Option<NoteRecord<Record>>,
}

impl LogBuffer {
    /// An empty log.
    pub fn new(start: &LogStart) -> LogBuffer {
        let LogStart { page_bytes, epoch, number, last } = *start;
        LogBuffer {
            page_bytes,
            pending: VecDeque::new(),
            first: last,
            last,
            written: last,
            durable: last,
            wanted: last,
            number,
            epoch,
            upcoming: VecDeque::new(),
            promised: [None; POINTERS],
            // No checkpoint names the new chain yet.
            chain: Chain::Broken,
            breaks: 0,
            head: number,
            keeps: false,
            unreachable: Vec::new(),
            note: None,
        }
    }

    fn first(&self, skip: usize) -> [Option<PageId>; POINTERS] {
        std::array::from_fn(|index| self.upcoming.get(skip + index).copied())
    }
}

impl ChainedLog for LogBuffer {
    fn lacking(&self) -> usize {
        (POINTERS + 1).saturating_sub(self.upcoming.len())
    }

    fn offer(&mut self, page: PageId) {
        self.upcoming.push_back(page);
    }

    fn withdraw(&mut self, gone: &dyn Fn(PageId) -> bool) {
        self.upcoming.retain(|page| !gone(*page));
    }

    fn is_upcoming(&self, is_it: &dyn Fn(PageId) -> bool) -> bool {
        self.upcoming.iter().any(|page| is_it(*page))
    }

    fn is_due(&self) -> bool {
        let is_wanted = self.wanted > self.written || self.pending.len() >= records_per_page(self.page_bytes);
        is_wanted && !self.pending.is_empty() && self.chain != Chain::Broken
    }

    fn backlog(&self) -> usize {
        self.pending.len() / records_per_page(self.page_bytes)
    }

    fn outgoing(&mut self) -> Option<Outgoing> {
        if !self.is_due() {
            return None;
        }
        let fits = records_per_page(self.page_bytes);
        let page = *self.upcoming.front()?;
        if !self.promised.contains(&Some(page)) {
            (self.chain, self.breaks) = (Chain::Broken, self.breaks + 1);
            return None;
        }
        let records: Vec<(u64, Record)> = self.pending.iter().take(fits).copied().collect();
        let (last, count) = (records.last()?.0, records.len());
        let next = self.first(1);
        let bytes = LogPage { number: self.number, epoch: self.epoch, next, records }.encode(self.page_bytes);
        Some(Outgoing { page, bytes, last, records: count })
    }

    fn written(&mut self, outgoing: &Outgoing) {
        self.promised = self.first(1);
        self.upcoming.pop_front();
        let written = self.pending.drain(..outgoing.records);
        if self.keeps && self.chain == Chain::Rejoining {
            self.unreachable.extend(written);
        }
        self.written = outgoing.last;
        self.number += 1;
        if self.chain == Chain::Whole {
            self.durable = self.written;
        }
    }

    fn mark(&mut self) -> LogHead {
        if self.chain == Chain::Broken {
            (self.chain, self.promised) = (Chain::Rejoining, self.first(0));
        }
        LogHead { pages: self.promised, number: self.number, epoch: self.epoch }
    }

    fn breaks(&self) -> u32 {
        self.breaks
    }

    fn is_broken(&self) -> bool {
        self.chain == Chain::Broken
    }

    fn is_written(&self, upto: LogPosition) -> bool {
        self.written >= upto.0 || self.keeps
    }

    fn keep(&mut self, note: Option<NoteRecord<Record>>) {
        (self.keeps, self.note) = (true, note);
        if let Some(note) = &self.note {
            self.pending.iter().for_each(|(timestamp, record)| note(*timestamp, record));
        }
    }

    fn kept(&self) -> Vec<(u64, Record)> {
        if self.keeps { self.unreachable.iter().chain(&self.pending).copied().collect() } else { Vec::new() }
    }

    fn written_up_to(&self) -> u64 {
        self.written
    }

    fn number(&self) -> u64 {
        self.number
    }

    fn appended(&self) -> u64 {
        self.last - self.first
    }

    fn epoch(&self) -> u64 {
        self.epoch
    }

    fn pages(&self) -> u64 {
        self.number - self.head
    }

    fn memory(&self) -> usize {
        self.pending.capacity() * size_of::<(u64, Record)>()
    }
}

impl Log for LogBuffer {
    type Record = Record;
    type Head = LogHead;

    fn append(&mut self, record: Record) -> LogPosition {
        self.last += 1;
        self.pending.push_back((self.last, record));
        if let Some(note) = &self.note {
            note(self.last, &record);
        }
        LogPosition(self.last)
    }

    fn persist(&mut self, upto: LogPosition) {
        self.wanted = self.wanted.max(upto.0);
    }

    fn is_durable(&self, upto: LogPosition) -> bool {
        self.durable >= upto.0 || self.keeps
    }

    fn last(&self) -> LogPosition {
        LogPosition(self.last)
    }

    fn truncate(&mut self, head: LogHead) {
        self.head = head.number;
        if self.chain == Chain::Rejoining {
            self.chain = Chain::Whole;
            self.unreachable.clear();
        }
        if self.chain == Chain::Whole {
            self.durable = self.written;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_device_media::BlockId;

    /// A log whose pages are those of the numbers given, on a chain that a checkpoint names.
    fn log(pages: std::ops::Range<u32>) -> LogBuffer {
        let mut log = LogBuffer::new(&LogStart { page_bytes: 256, epoch: 1, number: 10, last: 100 });
        pages.for_each(|page| log.offer(PageId(page)));
        let head = log.mark();
        log.truncate(head);
        log
    }

    fn append(log: &mut LogBuffer, count: u32) -> LogPosition {
        (0..count).map(|block| log.append(Record::RecycleChunk(BlockId(block)))).last().unwrap()
    }

    #[test]
    fn a_page_is_written_when_it_is_full_or_wanted_and_names_the_next() {
        let mut log = log(0..5);
        let two = append(&mut log, 2);
        assert!(log.outgoing().is_none());
        log.persist(two);
        let outgoing = log.outgoing().unwrap();
        let page = LogPage::decode(&outgoing.bytes).unwrap();
        assert_eq!((outgoing.page, page.number, page.epoch), (PageId(0), 10, 1));
        assert_eq!(page.next, [1, 2, 3].map(|page| Some(PageId(page))));
        assert_eq!(page.records.iter().map(|(timestamp, _)| *timestamp).collect::<Vec<_>>(), [101, 102]);
        assert!(!log.is_durable(two));
        log.written(&outgoing);
        assert!(log.is_durable(two) && log.outgoing().is_none());
        let more = append(&mut log, 4);
        let outgoing = log.outgoing().unwrap();
        assert_eq!(LogPage::decode(&outgoing.bytes).unwrap().records.len(), 3);
        log.written(&outgoing);
        assert!(!log.is_durable(more) && log.pages() == 2);
    }

    #[test]
    fn a_chain_whose_three_places_fail_is_broken_until_a_checkpoint_names_a_new_one() {
        let mut log = log(0..8);
        let position = append(&mut log, 3);
        for failed in 0..3 {
            assert_eq!(log.outgoing().unwrap().page, PageId(failed));
            log.withdraw(&|page| page == PageId(failed));
        }
        assert!(log.outgoing().is_none() && log.is_broken());
        let head = log.mark();
        assert_eq!((head.pages[0], head.number), (Some(PageId(3)), 10));
        let outgoing = log.outgoing().unwrap();
        log.written(&outgoing);
        assert!(log.is_written(position) && !log.is_durable(position));
        log.truncate(head);
        assert!(log.is_durable(position) && log.breaks() == 1);
    }

    #[test]
    fn records_that_survive_in_memory_do_until_a_checkpoint_names_their_chain() {
        let mut log = log(0..8);
        log.keep(None);
        let position = append(&mut log, 4);
        assert!(log.is_durable(position) && log.kept().len() == 4);
        (0..3).for_each(|failed| log.withdraw(&|page| page == PageId(failed)));
        assert!(log.outgoing().is_none() && log.is_broken());
        let head = log.mark();
        let outgoing = log.outgoing().unwrap();
        log.written(&outgoing);
        assert_eq!(log.kept().len(), 4, "nobody finds the page that was written");
        log.truncate(head);
        assert_eq!(log.kept().len(), 1);
    }
}
