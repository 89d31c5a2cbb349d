//! Keys in order: memtables, runs of level 0 and the other levels together, of which the newest record of a key counts.
//!
//! Memtables change while blocks are read. A part of them is therefore copied, and the scan continues to the end of
//! that part before it copies the next.

use std::collections::VecDeque;

use nandscape_apps_store::StoreError;

use super::{Memtable, Shared};
use crate::record::{Bytes, Record};
use crate::run::{Cursor, Moved};
use crate::storage::Storage;

/// Records of a memtable that are copied at a time.
const PART: usize = 256;

/// Records of a memtable, and the key at which more follow.
struct Part {
    records: VecDeque<Record>,
    end: Option<Bytes>,
}

impl Memtable {
    fn part(&self, from: &[u8]) -> Part {
        let mut range = self.records.range::<[u8], _>((std::ops::Bound::Included(from), std::ops::Bound::Unbounded));
        let copy = |(key, value): (&Bytes, &Option<Bytes>)| (key.clone(), value.clone());
        let records = range.by_ref().take(PART).map(copy).collect();
        Part { records, end: range.next().map(|(key, _)| key.clone()) }
    }
}

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

impl<S: Storage> Shared<S> {
    pub(super) async fn scan(&self, from: &[u8], most: usize) -> Result<Pairs, StoreError> {
        self.host.operation().await;
        let (mut found, mut next) = (Vec::new(), Some(Bytes::from(from)));
        while let Some(from) = next.filter(|_| found.len() < most) {
            self.check()?;
            next = self.scan_part(&from, most, &mut found).await?;
        }
        Ok(found)
    }

    /// Adds keys up to the end of a part of the memtables. Returns the beginning of the next part.
    async fn scan_part(&self, from: &Bytes, most: usize, found: &mut Pairs) -> Result<Option<Bytes>, StoreError> {
        let mut parts = vec![self.memtable.borrow().part(from)];
        parts.extend(self.full.borrow().as_ref().map(|full| full.part(from)));
        let end = parts.iter().filter_map(|part| part.end.clone()).min();
        let levels = self.levels.borrow().clone();
        let newest = levels.runs[0].iter().map(|run| Cursor::new([run.clone()], from, 1));
        let below = levels.runs[1..].iter().filter(|runs| !runs.is_empty());
        let mut cursors: Vec<Cursor> =
            newest.chain(below.map(|runs| Cursor::new(runs.iter().cloned(), from, 1))).collect();
        let mut at = from.clone();
        while found.len() < most {
            for cursor in &mut cursors {
                if cursor.peek(&self.storage).await? == Err(Moved) {
                    return Ok(Some(at));
                }
            }
            let in_parts = parts.iter().filter_map(|part| part.records.front());
            let in_runs = cursors.iter().filter_map(Cursor::seen);
            // The first of equal ones: sources are in the order of their age.
            let Some((key, value)) = in_parts.chain(in_runs).min_by(|one, other| one.0.cmp(&other.0)).cloned() else {
                return Ok(end);
            };
            if end.as_ref().is_some_and(|end| key >= *end) {
                return Ok(end);
            }
            for part in &mut parts {
                part.records.pop_front_if(|(other, _)| *other == key);
            }
            for cursor in &mut cursors {
                if cursor.seen().is_some_and(|(other, _)| *other == key) {
                    cursor.take();
                }
            }
            at = after(&key);
            found.extend(value.map(|value| (key.to_vec(), value.to_vec())));
        }
        Ok(None)
    }
}

/// The next key in order.
fn after(key: &[u8]) -> Bytes {
    key.iter().copied().chain([0]).collect()
}
