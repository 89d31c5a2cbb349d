//! The completely fair scheduler of Linux before 6.6: the thread with the least virtual runtime is next.
//!
//! A thread's slice is its share by weight of a period, `host.latency`, or of a least slice for each thread if there are many. A
//! woken thread gets at most half a period of credit for its sleep; it takes the processor if it is behind by more than
//! `host.wakeup`. A new thread begins a slice behind.
//!
//! Left out: buddies. A yield gives the turn to the next of those that wait, however far behind the yielding thread is.

use std::collections::BTreeMap;

use nandscape_sim::Span;
use nandscape_sim::slots::Key;

use super::{Scheduler, Share};

/// See the file.
pub struct Cfs {
    least_slice: Span,
    latency: Span,
    wakeup: Span,
    /// Those that wait, by virtual time and number.
    waiting: BTreeMap<(i64, u64), (Key, u32)>,
    numbers: u64,
    /// Sum of weights, with that of the thread that has the processor.
    weight: u64,
    /// The least virtual time that a thread of the queue can have got to. It never falls.
    least: i64,
    has_current: bool,
}

impl Cfs {
    /// An empty queue. See the settings `slice`, `latency` and `wakeup` of [`Config`](crate::Config).
    pub fn new(slice: Span, latency: Span, wakeup: Span) -> Cfs {
        let waiting = BTreeMap::new();
        Cfs { least_slice: slice, latency, wakeup, waiting, numbers: 0, weight: 0, least: 0, has_current: false }
    }

    fn insert(&mut self, thread: Key, share: &mut Share) {
        self.numbers += 1;
        share.number = self.numbers;
        self.waiting.insert((share.virtual_time, share.number), (thread, share.weight));
    }

    fn first(&self) -> Option<i64> {
        self.waiting.first_key_value().map(|((virtual_time, _), _)| *virtual_time)
    }

    /// A slice of a thread among `count` threads of a sum of weights.
    fn slice(&self, share: &Share, count: usize, weight: u64) -> Span {
        let period = self.latency.max(self.least_slice * count as u64);
        let part = u128::from(period.ns()) * u128::from(share.weight) / u128::from(weight.max(1));
        Span::from_ns(part as u64).max(self.least_slice)
    }

    /// The least virtual time, where the thread that has the processor is at `current`.
    fn advance(&mut self, current: Option<i64>) {
        let least = [current, self.first()].into_iter().flatten().min();
        self.least = self.least.max(least.unwrap_or(self.least));
    }
}

impl Scheduler for Cfs {
    fn join(&mut self, thread: Key, share: &mut Share) {
        if std::mem::take(&mut share.is_relative) {
            share.virtual_time = share.virtual_time.saturating_add(self.least);
        }
        let placed = if std::mem::take(&mut share.is_new) {
            let count = self.waiting.len() + usize::from(self.has_current) + 1;
            self.least + share.to_virtual(self.slice(share, count, self.weight + u64::from(share.weight)))
        } else {
            self.least - Share::base(self.latency / 2)
        };
        share.virtual_time = share.virtual_time.max(placed);
        self.weight += u64::from(share.weight);
        self.insert(thread, share);
    }

    fn leave(&mut self, share: &mut Share) {
        if self.waiting.remove(&(share.virtual_time, share.number)).is_some() {
            self.weight -= u64::from(share.weight);
        }
    }

    fn moves(&self, share: &mut Share) {
        if !std::mem::replace(&mut share.is_relative, true) {
            share.virtual_time -= self.least;
        }
    }

    fn next(&mut self) -> Option<Key> {
        let (_, (thread, _)) = self.waiting.pop_first()?;
        self.has_current = true;
        Some(thread)
    }

    fn start(&mut self, share: &mut Share) {
        share.used = Span::ZERO;
    }

    fn ran(&mut self, share: &mut Share, span: Span) {
        share.used += span;
        share.virtual_time += share.to_virtual(span);
        self.advance(Some(share.virtual_time));
    }

    fn stop(&mut self, share: &mut Share) {
        self.has_current = false;
        self.weight -= u64::from(share.weight);
        self.advance(None);
    }

    fn put_back(&mut self, thread: Key, share: &mut Share) {
        self.has_current = false;
        self.insert(thread, share);
    }

    fn yields(&mut self, thread: Key, share: &mut Share) -> Key {
        let Some(next) = self.next() else { return thread };
        self.insert(thread, share);
        next
    }

    fn slice_left(&self, share: &Share) -> Option<Span> {
        let first = self.first()?;
        let slice = self.slice(share, self.waiting.len() + 1, self.weight);
        // It ends early for a thread that is ahead of the first by more than a slice.
        let ahead = first + Share::base(slice) + 1 - share.virtual_time;
        let early = share.until(ahead).max(self.least_slice.saturating_sub(share.used));
        Some(slice.saturating_sub(share.used).min(early))
    }

    fn preempts(&self, woken: &Share, current: &Share) -> bool {
        current.virtual_time - woken.virtual_time > woken.to_virtual(self.wakeup)
    }

    fn waiting(&self) -> usize {
        self.waiting.len()
    }

    fn last(&self, may_run: &dyn Fn(Key) -> bool) -> Option<Key> {
        self.waiting.values().rev().map(|(thread, _)| *thread).find(|thread| may_run(*thread))
    }
}
