//! What the records of a log say, which are read from the newest to the oldest.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use nandscape_sim::Time;

use crate::entry::Entry;
use crate::log::Spot;
use crate::record::{Kind, Record};
use crate::small::{Doubt, bucket_number, items};
use crate::state::State;

/// What was found so far, from the newest record on.
#[derive(Default)]
pub(crate) struct Replay {
    /// Keys whose newest record was found that is of no bucket, with a version: older ones are void.
    decided: BTreeMap<Rc<[u8]>, u64>,
    /// Keys of these that may be in a bucket that is newer.
    pub(crate) doubts: BTreeMap<Rc<[u8]>, Doubt>,
    /// Buckets that are lost.
    lost: BTreeSet<u32>,
    touched: BTreeMap<Rc<[u8]>, (u64, u64)>,
    pub(crate) is_cleared: bool,
    /// The oldest segment that counts.
    pub(crate) tail: u64,
    /// The segment that was read last, and how many chunks the one before it had.
    pub(crate) last: Option<(u64, u32)>,
    pub(crate) taken: BTreeSet<u32>,
    /// Where the log is damaged: of what is older nothing counts.
    pub(crate) damage: Option<u64>,
    /// Whether there are chunks that are older. Without them a chunk of an empty segment may be torn that is written in its place.
    pub(crate) is_older: bool,
    pub(crate) dropped: u64,
    /// The slot of the damaged segment, if chunks of it count.
    pub(crate) cut: Option<(u64, u32)>,
}

impl Replay {
    /// Takes a record, which is older than those before. Its segment does not stay if something of it is missing.
    pub(crate) fn take(
        &mut self,
        state: &mut State,
        pair: usize,
        (record, spot): (&Record<'_>, Spot),
        (now, now_s): (Time, u64),
    ) {
        let stays = state.logs[pair].segments.contains_key(&spot.segment);
        match record.kind {
            Kind::Clear => self.is_cleared = true,
            Kind::Touch => drop(self.touched.entry(record.key.into()).or_insert((record.version, record.expiry))),
            Kind::Delete => drop(self.decides(record, state)),
            Kind::Bucket => {
                let Some(number) = bucket_number(record.key).filter(|number| !state.has_bucket(*number)) else {
                    return;
                };
                state.found_bucket(pair, record, spot);
                state.find_stale(pair, record, &self.decided, now);
                if !stays {
                    state.move_bucket(pair, number, record.value);
                }
            }
            Kind::Put if self.decides(record, state) => {
                let touched = self.touched.get(record.key).filter(|(version, _)| *version == record.version);
                let expiry = touched.map_or(record.expiry, |(_, expiry)| *expiry);
                if expiry == 0 || expiry > now_s {
                    state.enter(record.key.into(), entry(record, expiry, spot, now_s));
                    if !stays {
                        state.move_item(record.key, record.value);
                    }
                }
            }
            Kind::Put => {}
        }
    }

    /// Notes a record of a key, which is of no bucket. Whether it is the newest.
    fn decides(&mut self, record: &Record<'_>, state: &State) -> bool {
        if self.decided.contains_key(record.key) {
            return false;
        }
        let key: Rc<[u8]> = record.key.into();
        if state.small.may_have(&key) {
            let doubt = Doubt { version: record.version, is_item: record.kind == Kind::Put };
            self.doubts.insert(key.clone(), doubt);
        }
        self.decided.insert(key, record.version);
        true
    }

    /// A record is older than what is damaged.
    pub(crate) fn drop_record(&mut self, record: &Record<'_>, state: &State) {
        let is_lost = |number: &u32| !state.has_bucket(*number);
        match record.kind {
            Kind::Put if !self.decided.contains_key(record.key) => {
                self.decided.insert(record.key.into(), record.version);
                self.dropped += 1;
            }
            Kind::Bucket => {
                let number = bucket_number(record.key).filter(is_lost).filter(|number| self.lost.insert(*number));
                self.dropped += number.map_or(0, |_| items(record.value).count() as u64);
            }
            _ => {}
        }
    }
}

fn entry(record: &Record<'_>, expiry: u64, spot: Spot, now_s: u64) -> Entry {
    Entry {
        version: record.version,
        flags: record.flags,
        expiry,
        len: record.value.len() as u32,
        value: None,
        spot: Some(spot),
        is_unpacked: false,
        is_small: false,
        pins: 0,
        marks: record.marks,
        accessed: now_s,
        is_fetched: false,
        is_recent: false,
        is_hot: false,
    }
}
