//! P6-LOG (OX table 5.7): a log of everything that changes the tables, from which they are rebuilt.
//!
//! | OX | here |
//! |---|---|
//! | INIT, EXIT | the construction of the component and the drop of it |
//! | APPEND, TRUNCATE | [`Log::append`], [`Log::truncate`] |
//! | PERSIST | [`Log::persist`]; a [`ChainedLog`] names which page is written where, and the FTL writes it |

use std::rc::Rc;

use nandscape_device_media::PageId;

/// Where a record is in the log: records are numbered from 1 on, and no number is used twice.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct LogPosition(pub u64);

/// Keeps a log.
pub trait Log {
    /// The logged change.
    type Record;
    /// Where reading begins after a checkpoint.
    type Head;

    /// APPEND. The record is in memory from now on, and on flash once [`Log::is_durable`] returns true.
    fn append(&mut self, record: Self::Record) -> LogPosition;

    /// PERSIST: requests a write of all records up to a position, even where they do not fill a page.
    fn persist(&mut self, upto: LogPosition);

    /// Whether all records up to a position can be read after a power cut.
    fn is_durable(&self, upto: LogPosition) -> bool;

    /// The position of the last record.
    fn last(&self) -> LogPosition;

    /// TRUNCATE: a checkpoint makes the records before `head` superfluous.
    fn truncate(&mut self, head: Self::Head);
}

/// Pages of a log that name the pages after them.
pub const POINTERS: usize = 3;

/// Where a chain of pages of the log begins.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct LogHead {
    /// Where its first page may be.
    pub pages: [Option<PageId>; POINTERS],
    /// The number of that page.
    pub number: u64,
    /// The epoch of the chain.
    pub epoch: u64,
}

/// A page of the log to be written.
#[derive(Debug)]
pub struct Outgoing {
    /// Where.
    pub page: PageId,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// The timestamp of its last record.
    pub last: u64,
    /// Its records.
    pub records: usize,
}

/// How a log begins, when a drive is started.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct LogStart {
    /// Bytes of a page.
    pub page_bytes: usize,
    /// The epoch of its chain.
    pub epoch: u64,
    /// The number of the next page.
    pub number: u64,
    /// The timestamp of the last record ever.
    pub last: u64,
}

/// Called with a record and its timestamp.
pub type NoteRecord<R> = Rc<dyn Fn(u64, &R)>;

/// A log in chained pages of the flash. The FTL offers pages, writes the outgoing ones, and reports how each write has
/// ended.
pub trait ChainedLog: Log<Head = LogHead> {
    /// The number of pages still needed to name the next ones.
    fn lacking(&self) -> usize;

    /// A page for the log, after those that it has.
    fn offer(&mut self, page: PageId);

    /// Withdraws the pages that cannot be used, by `gone`.
    fn withdraw(&mut self, gone: &dyn Fn(PageId) -> bool);

    /// Whether a page is among those that come next.
    fn is_upcoming(&self, is_it: &dyn Fn(PageId) -> bool) -> bool;

    /// Whether a page is due to be written, if it has a place.
    fn is_due(&self) -> bool;

    /// Pages that the records take which are not written.
    fn backlog(&self) -> usize;

    /// The page to be written now, if any.
    fn outgoing(&mut self) -> Option<Outgoing>;

    /// A page was written.
    fn written(&mut self, outgoing: &Outgoing);

    /// The begin of a chain with all unwritten records. Call it between two pages.
    fn mark(&mut self) -> LogHead;

    /// How often the chain has broken.
    fn breaks(&self) -> u32;

    /// Whether the chain has broken, and no checkpoint has mended it.
    fn is_broken(&self) -> bool;

    /// Whether all records up to a position are in a chain, even one that no checkpoint names yet.
    fn is_written(&self, upto: LogPosition) -> bool;

    /// From now on records survive a power cut in memory. Calls `note` with each record, beginning with those not
    /// written yet.
    fn keep(&mut self, note: Option<NoteRecord<Self::Record>>);

    /// Records that cannot be read from flash after a power cut, with their timestamps, for a log whose memory survives one.
    fn kept(&self) -> Vec<(u64, Self::Record)>;

    /// The timestamp of the last record that is in no page to come.
    fn written_up_to(&self) -> u64;

    /// Which chain it is.
    fn epoch(&self) -> u64;

    /// The number of the page that is written next.
    fn number(&self) -> u64;

    /// Records that were appended since the drive was started.
    fn appended(&self) -> u64;

    /// Pages since the last checkpoint.
    fn pages(&self) -> u64;

    /// Bytes of memory.
    fn memory(&self) -> usize;
}
