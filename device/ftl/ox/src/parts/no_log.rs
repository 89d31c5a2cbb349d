//! No log: for FTLs whose tables are rebuilt from the written data. A record counts as durable at once, because its
//! page has been programmed.

use nandscape_device_ftl_core::component::{
    ChainedLog, Log, LogHead, LogPosition, NoteRecord, Outgoing, POINTERS, Record,
};
use nandscape_device_media::PageId;

/// Counts records without keeping them.
#[derive(Default)]
pub struct NoLog {
    last: u64,
}

impl Log for NoLog {
    type Record = Record;
    type Head = LogHead;

    fn append(&mut self, _: Record) -> LogPosition {
        self.last += 1;
        LogPosition(self.last)
    }

    fn persist(&mut self, _: LogPosition) {}

    fn is_durable(&self, _: LogPosition) -> bool {
        true
    }

    fn last(&self) -> LogPosition {
        LogPosition(self.last)
    }

    fn truncate(&mut self, _: LogHead) {}
}

impl ChainedLog for NoLog {
    fn lacking(&self) -> usize {
        0
    }

    fn offer(&mut self, _: PageId) {}

    fn withdraw(&mut self, _: &dyn Fn(PageId) -> bool) {}

    fn is_upcoming(&self, _: &dyn Fn(PageId) -> bool) -> bool {
        false
    }

    fn is_due(&self) -> bool {
        false
    }

    fn backlog(&self) -> usize {
        0
    }

    fn outgoing(&mut self) -> Option<Outgoing> {
        None
    }

    fn written(&mut self, _: &Outgoing) {}

    fn mark(&mut self) -> LogHead {
        LogHead { pages: [None; POINTERS], number: 0, epoch: 0 }
    }

    fn breaks(&self) -> u32 {
        0
    }

    fn is_broken(&self) -> bool {
        false
    }

    fn is_written(&self, _: LogPosition) -> bool {
        true
    }

    fn kept(&self) -> Vec<(u64, Record)> {
        Vec::new()
    }

    fn keep(&mut self, _: Option<NoteRecord<Record>>) {}

    fn written_up_to(&self) -> u64 {
        self.last
    }

    fn epoch(&self) -> u64 {
        0
    }

    fn number(&self) -> u64 {
        0
    }

    fn appended(&self) -> u64 {
        0
    }

    fn pages(&self) -> u64 {
        0
    }

    fn memory(&self) -> usize {
        0
    }
}
