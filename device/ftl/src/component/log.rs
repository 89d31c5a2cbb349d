//! P6-LOG (OX table 5.7): a log of everything that changes the tables, from which they are rebuilt.
//!
//! INIT and EXIT are the construction of the component and the drop of it.

/// Where a record is in the log: records are numbered from 1 on, and the numbers never come again.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct LogPosition(pub u64);

/// Keeps a log.
pub trait Log {
    /// What is logged.
    type Record;
    /// Where reading begins after a checkpoint.
    type Head;

    /// APPEND. The record is in memory from now on, and on flash when [`Log::is_durable`] says so.
    fn append(&mut self, record: Self::Record) -> LogPosition;

    /// PERSIST: all records up to a position are to be written, even where they do not fill a page.
    fn persist(&mut self, upto: LogPosition);

    /// Whether all records up to a position can be read after a power cut.
    fn is_durable(&self, upto: LogPosition) -> bool;

    /// The position of the last record.
    fn last(&self) -> LogPosition;

    /// TRUNCATE: a checkpoint makes the records before `head` superfluous.
    fn truncate(&mut self, head: Self::Head);
}
