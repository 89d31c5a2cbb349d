//! After a crash a key may have both an item in its bucket and own records. The higher version counts.
//!
//! Segments are read from the newest to the oldest. A record that is newer than its bucket is known when the bucket is found. One that is older
//! is in doubt if the bucket's filter has its key: the bucket is read once all segments are.

use std::collections::BTreeMap;
use std::rc::Rc;

use nandscape_sim::Time;

use super::bucket::items;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::record::Record;
use crate::state::State;
use crate::waiting::Queued;

/// The newest record of a key that is older than that of its bucket: a version, below which the key's items are void.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Doubt {
    pub(crate) version: u64,
    /// Whether it is an item.
    pub(crate) is_item: bool,
}

impl State {
    /// Settles a doubt about a key whose bucket has these bytes.
    pub(crate) fn settle_doubt(&mut self, pair: usize, (key, doubt): (Rc<[u8]>, Doubt), bytes: &[u8], now: Time) {
        let Some(item) = items(bytes).find(|item| *item.key == *key) else { return };
        if item.version < doubt.version {
            self.change_small(key, now);
        } else if doubt.is_item {
            // Its bucket was written after it: records outside of the bucket are void.
            self.remove(&key);
            self.small.mask(key.clone(), item.version);
            self.logs[pair].queue(Queued::Small(key), now);
        }
    }

    /// Items of a bucket that keys have newer records of are taken out of it. `newest` has the versions of these.
    pub(crate) fn find_stale(&mut self, pair: usize, record: &Record<'_>, newest: &BTreeMap<Rc<[u8]>, u64>, now: Time) {
        let is_stale = |key: &[u8], version: u64| newest.get(key).is_some_and(|newest| *newest > version);
        for item in items(record.value).filter(|item| is_stale(item.key, item.version)) {
            let key: Rc<[u8]> = item.key.into();
            self.small.change(key.clone());
            self.logs[pair].queue(Queued::Small(key), now);
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
            doubts.into_iter().for_each(|doubt| self.state.borrow_mut().settle_doubt(pair, doubt, &bytes, now));
            self.host.tick().await;
        }
        Ok(())
    }
}
