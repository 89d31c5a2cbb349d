//! What a client has met.

use std::collections::BTreeMap;

use nandscape_sim::{Histogram, Time};

/// The most kinds of failures that are counted separately. A server may report any words.
const KINDS: usize = 16;
/// Where further ones are counted.
const OTHERS: &str = "other failures";

/// See the file.
pub(super) struct Tally {
    pub(super) hits: Histogram,
    pub(super) misses: Histogram,
    pub(super) changes: Histogram,
    pub(super) late: Histogram,
    pub(super) put_bytes: u64,
    pub(super) too_large: u64,
    pub(super) errors: BTreeMap<String, u64>,
    /// When the last operation that is waited for ended.
    pub(super) ended: Time,
}

impl Tally {
    pub(super) fn new() -> Tally {
        let [hits, misses, changes, late] = [(); 4].map(|()| Histogram::new());
        Tally { hits, misses, changes, late, put_bytes: 0, too_large: 0, errors: BTreeMap::new(), ended: Time::ZERO }
    }

    /// The server reports a failure.
    pub(super) fn failed(&mut self, words: &str, times: u64) {
        let is_known = self.errors.contains_key(words) || self.errors.len() < KINDS;
        *self.errors.entry(if is_known { words } else { OTHERS }.to_owned()).or_default() += times;
    }

    /// Adds what another client has met.
    pub(super) fn merge(&mut self, other: &Tally) {
        self.hits.merge(&other.hits);
        self.misses.merge(&other.misses);
        self.changes.merge(&other.changes);
        self.late.merge(&other.late);
        self.put_bytes += other.put_bytes;
        self.too_large += other.too_large;
        other.errors.iter().for_each(|(words, times)| self.failed(words, *times));
        self.ended = self.ended.max(other.ended);
    }
}
