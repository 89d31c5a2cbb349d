//! Earliest eligible virtual deadline first, the scheduler of Linux from 6.6 on.
//!
//! A thread is eligible if its virtual time is not past the weighted average of the queue. Of the eligible ones that with the
//! earliest deadline is next: its virtual time at the start of its slice, and the slice. It keeps the processor until its slice
//! ends or it is no longer eligible and a woken one would be next (`RUN_TO_PARITY`). A thread that leaves notes by how much it
//! was behind or ahead of the average, and joins with that distance.
//!
//! Left out: slices by thread, and sleeping threads that stay in the queue until they are eligible (Linux 6.12).

use std::collections::BTreeMap;

use nandscape_sim::Span;
use nandscape_sim::slots::Key;

use super::{Scheduler, Share};

/// See the file.
pub struct Eevdf {
    slice: Span,
    /// Those that wait, by deadline and number, with virtual time and weight.
    waiting: BTreeMap<(i64, u64), (Key, i64, u32)>,
    numbers: u64,
    /// Sums over those that wait.
    weight: i128,
    weighted_time: i128,
    /// Virtual time and weight of the thread that has the processor.
    current: Option<(i64, u32)>,
    /// Virtual time of the last thread of an empty queue.
    idle_at: i64,
}

impl Eevdf {
    /// An empty queue, with the slice of each thread.
    pub fn new(slice: Span) -> Eevdf {
        let waiting = BTreeMap::new();
        Eevdf { slice, waiting, numbers: 0, weight: 0, weighted_time: 0, current: None, idle_at: 0 }
    }

    /// The sum of weights and that of weighted virtual times.
    fn sums(&self) -> (i128, i128) {
        let (time, weight) = self.current.map_or((0, 0), |(time, weight)| (i128::from(time), i128::from(weight)));
        (self.weight + weight, self.weighted_time + time * weight)
    }

    /// The weighted average of virtual times.
    fn average(&self) -> i64 {
        match self.sums() {
            (0, _) => self.idle_at,
            (weight, weighted) => weighted.div_euclid(weight) as i64,
        }
    }

    fn is_eligible(&self, virtual_time: i64) -> bool {
        let (weight, weighted) = self.sums();
        i128::from(virtual_time) * weight <= weighted
    }

    fn insert(&mut self, thread: Key, share: &mut Share) {
        self.numbers += 1;
        share.number = self.numbers;
        self.weight += i128::from(share.weight);
        self.weighted_time += i128::from(share.virtual_time) * i128::from(share.weight);
        self.waiting.insert((share.deadline, share.number), (thread, share.virtual_time, share.weight));
    }

    fn remove(&mut self, at: (i64, u64)) -> Option<Key> {
        let (thread, virtual_time, weight) = self.waiting.remove(&at)?;
        self.weight -= i128::from(weight);
        self.weighted_time -= i128::from(virtual_time) * i128::from(weight);
        Some(thread)
    }

    /// Where the next one is among those that wait.
    fn pick(&self) -> Option<(i64, u64)> {
        self.waiting.iter().find(|(_, (_, virtual_time, _))| self.is_eligible(*virtual_time)).map(|(at, _)| *at)
    }

    /// Notes the distance to the average, of which two slices count.
    fn note_lag(&self, share: &mut Share) {
        let most = share.to_virtual(self.slice * 2);
        share.lag = (self.average() - share.virtual_time).clamp(-most, most);
    }
}

impl Scheduler for Eevdf {
    fn join(&mut self, thread: Key, share: &mut Share) {
        let mut slice = share.to_virtual(self.slice);
        if std::mem::take(&mut share.is_new) {
            slice /= 2;
        }
        // Joining moves the average towards the thread: the distance that it has afterwards is the one that it had.
        let (weight, own) = (self.sums().0, i128::from(share.weight));
        let distance = if weight == 0 { 0 } else { i128::from(share.lag) * (weight + own) / weight };
        share.virtual_time = self.average() - distance as i64;
        share.deadline = share.virtual_time + slice;
        self.insert(thread, share);
    }

    fn leave(&mut self, share: &mut Share) {
        self.note_lag(share);
        let at = (share.deadline, share.number);
        self.remove(at);
        self.idle_at = self.idle_at.max(share.virtual_time);
    }

    fn moves(&self, _: &mut Share) {}

    fn next(&mut self) -> Option<Key> {
        let at = self.pick().or_else(|| self.waiting.first_key_value().map(|(at, _)| *at))?;
        let (_, virtual_time, weight) = self.waiting[&at];
        self.current = Some((virtual_time, weight));
        self.remove(at)
    }

    fn start(&mut self, share: &mut Share) {
        self.current = Some((share.virtual_time, share.weight));
    }

    fn ran(&mut self, share: &mut Share, span: Span) {
        share.virtual_time += share.to_virtual(span);
        self.current = Some((share.virtual_time, share.weight));
        if self.waiting.is_empty() && share.virtual_time >= share.deadline {
            let slice = share.to_virtual(self.slice).max(1);
            share.deadline += ((share.virtual_time - share.deadline) / slice + 1) * slice;
        }
    }

    fn stop(&mut self, share: &mut Share) {
        self.note_lag(share);
        self.current = None;
        self.idle_at = self.idle_at.max(share.virtual_time);
    }

    fn put_back(&mut self, thread: Key, share: &mut Share) {
        self.current = None;
        if share.virtual_time >= share.deadline {
            share.deadline = share.virtual_time + share.to_virtual(self.slice);
        }
        self.insert(thread, share);
    }

    fn yields(&mut self, thread: Key, share: &mut Share) -> Key {
        share.deadline += share.to_virtual(self.slice);
        self.put_back(thread, share);
        self.next().unwrap_or(thread)
    }

    fn slice_left(&self, share: &Share) -> Option<Span> {
        (!self.waiting.is_empty()).then(|| share.until(share.deadline - share.virtual_time))
    }

    fn preempts(&self, woken: &Share, current: &Share) -> bool {
        let keeps = self.is_eligible(current.virtual_time) && current.virtual_time < current.deadline;
        !keeps && self.pick() == Some((woken.deadline, woken.number))
    }

    fn waiting(&self) -> usize {
        self.waiting.len()
    }

    fn last(&self, may_run: &dyn Fn(Key) -> bool) -> Option<Key> {
        self.waiting.values().rev().map(|(thread, ..)| *thread).find(|thread| may_run(*thread))
    }
}
