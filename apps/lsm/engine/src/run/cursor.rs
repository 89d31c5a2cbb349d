//! The records of runs of one level, one after the other, read some blocks ahead.

use std::collections::VecDeque;
use std::rc::Rc;

use nandscape_apps_store::StoreError;

use super::Run;
use crate::record::Record;
use crate::storage::Storage;

/// A run was dropped while it was read: other runs have its records now.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Moved;

/// See the file. The runs do not overlap, and are in the order of their keys.
pub(crate) struct Cursor {
    runs: VecDeque<Rc<Run>>,
    /// The next block of the first run.
    block: u32,
    ahead: u32,
    records: VecDeque<Record>,
    from: Vec<u8>,
}

impl Cursor {
    /// The records of runs from a key on; `ahead` blocks are read at a time.
    pub(crate) fn new(runs: impl IntoIterator<Item = Rc<Run>>, from: &[u8], ahead: u32) -> Cursor {
        let runs: VecDeque<_> = runs.into_iter().filter(|run| &*run.last >= from).collect();
        let block = runs.front().and_then(|run| run.block_of(from)).unwrap_or(0);
        Cursor { runs, block, ahead, records: VecDeque::new(), from: from.to_vec() }
    }

    /// The next record, which stays.
    pub(crate) async fn peek(&mut self, storage: &impl Storage) -> Result<Result<Option<&Record>, Moved>, StoreError> {
        while self.records.is_empty() {
            let Some(run) = self.runs.front() else { return Ok(Ok(None)) };
            let count = self.ahead.min(run.data_blocks() - self.block);
            let Some(records) = run.read(storage, self.block, count).await? else { return Ok(Err(Moved)) };
            self.records.extend(records.into_iter().filter(|(key, _)| **key >= *self.from));
            self.block += count;
            if self.block == run.data_blocks() {
                self.runs.pop_front();
                self.block = 0;
            }
        }
        Ok(Ok(self.records.front()))
    }

    /// Takes the record that was seen.
    pub(crate) fn take(&mut self) -> Option<Record> {
        self.records.pop_front()
    }

    /// The record that was seen.
    pub(crate) fn seen(&self) -> Option<&Record> {
        self.records.front()
    }
}
