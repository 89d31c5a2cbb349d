//! After a crash a key may have an item in its bucket and records of its own. That with the higher version counts.
//!
//! Segments are read from the newest to the oldest. A record that is newer than its bucket is known when the bucket is found. One that is older
//! is in doubt if the bucket's filter has its key: the bucket is read once all segments are.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::bucket::items;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::log::Queued;
use crate::record::Record;
use crate::state::State;

/// The newest record of a key that is older than that of its bucket: a version, below which the key's items are void.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Doubt {
    pub(crate) version: u64,
    /// Whether it is an item.
    pub(crate) is_item: bool,
}

impl State {
    /// Items of a bucket that keys have newer records of are taken out of it. `newest` has the versions of these.
    pub(crate) fn find_stale(
        &mut self,
        pair: usize,
        record: &Record<'_>,
        newest: &BTreeMap<Rc<[u8]>, u64>,
        now: nandscape_sim::Time,
    ) {
        let is_stale = |key: &[u8], version: u64| newest.get(key).is_some_and(|newest| *newest > version);
        for item in items(record.value).filter(|item| is_stale(item.key, item.version)) {
            let key: Rc<[u8]> = item.key.into();
            self.small.change(key.clone());
            self.logs[pair].queue(Queued::Small { key, mask: None }, now);
        }
    }
}

impl Engine {
    /// Settles the doubts that were found. `drives` of the group have all that it has.
    ///
    /// # Errors
    /// The failure of a drive that cannot be done without.
    pub(crate) async fn settle_doubts(
        &self,
        pair: usize,
        doubts: BTreeMap<Rc<[u8]>, Doubt>,
        drives: &[usize],
    ) -> Result<(), EngineError> {
        let mut of_bucket = BTreeMap::<u32, Vec<(Rc<[u8]>, Doubt)>>::new();
        for (key, doubt) in doubts {
            let number = self.state.borrow().small.number(&key);
            of_bucket.entry(number).or_default().push((key, doubt));
        }
        for (number, doubts) in of_bucket {
            let bytes = match self.bucket_or_spot(pair, number) {
                Some(Ok(bytes)) => Some(bytes),
                Some(Err(spot)) => self.read_bucket(pair, (number, spot), drives).await?,
                None => None,
            };
            let Some(bytes) = bytes else { continue };
            let now = self.host.sim().now();
            for (key, doubt) in doubts {
                let Some(item) = items(&bytes).find(|item| *item.key == *key) else { continue };
                let mut state = self.state.borrow_mut();
                if item.version < doubt.version {
                    state.change_small(key, None, now);
                } else if doubt.is_item {
                    // Its bucket is the last that was written of it: its own records are void.
                    state.remove(&key);
                    let mask = Some(item.version);
                    state.logs[pair].queue(Queued::Small { key, mask }, now);
                }
            }
            self.host.tick().await;
        }
        Ok(())
    }
}
