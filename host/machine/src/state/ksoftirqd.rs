//! A thread of each processor that goes on with softirqs that have run for long, so that other threads have their turns: Linux's
//! ksoftirqd. While it has work, softirqs that are raised wait for it.
//!
//! A softirq that is deferred becomes the thread: it has the thread's share, and is in its place in the run queue. The next one in
//! line takes both from it without a switch.
//!
//! Left out: the end of a row after ten rounds, and at the request of a switch, as Linux has them next to the time.

use nandscape_sim::Span;
use nandscape_sim::slots::Key;

use super::{Class, Place, State, Units};

impl State {
    /// How long a softirq may run until its processor's thread goes on with it; `None` without such threads, and of a softirq that must
    /// not lose its processor.
    pub(super) fn undeferred(&self, key: Key, index: usize) -> Option<Span> {
        let entity = self.entity(key);
        let may = entity.class == Class::Soft && entity.held == 0 && !self.ksoftirqd.is_zero();
        may.then(|| self.ksoftirqd.saturating_sub(self.cpus[index].soft_ran))
    }

    /// The thread of a processor goes on with a softirq. The processor is settled.
    pub(super) fn defer(&mut self, key: Key, index: usize, asker: Option<Key>) {
        let cpu = &mut self.cpus[index];
        cpu.soft.retain(|other| *other != key);
        cpu.is_deferring = true;
        self.become_thread(key, index);
        self.enter(key, index, asker);
    }

    /// A softirq becomes the thread of its processor, whose place it has yet to get.
    fn become_thread(&mut self, key: Key, index: usize) {
        let now = self.sim.now();
        let entity = self.entities.get_mut(key).expect("the context exists");
        (entity.class, entity.is_deferred, entity.place) = (Class::Fair, true, Place::Away);
        entity.work = entity.work.plus(std::mem::replace(&mut entity.entry, Units::ZERO));
        (entity.queue, entity.ready) = (index, now);
        std::mem::swap(&mut entity.share, &mut self.cpus[index].ksoftirqd);
    }

    /// The opposite.
    fn become_softirq(&mut self, key: Key, index: usize) {
        let entity = self.entities.get_mut(key).expect("the context exists");
        (entity.class, entity.is_deferred) = (Class::Soft, false);
        std::mem::swap(&mut entity.share, &mut self.cpus[index].ksoftirqd);
    }

    /// A deferred softirq ends while it has its processor, or waits for it. The processor is settled, and the softirq has left its
    /// place, but not the run queue. Returns whether the thread has the processor with the next softirq.
    pub(super) fn hand_over(&mut self, key: Key, index: usize) -> bool {
        let Some(next) = self.cpus[index].soft.pop_front() else {
            return false;
        };
        self.become_softirq(key, index);
        self.become_thread(next, index);
        self.cpus[index].thread = Some(next);
        self.put(next, Place::On(index));
        self.changed(index, None);
        true
    }

    /// A deferred softirq has ended, and left the run queue. The next one in line, if there is one, waits there.
    pub(super) fn end_deferred(&mut self, key: Key, index: usize) {
        self.become_softirq(key, index);
        self.cpus[index].is_deferring = false;
        if let Some(next) = self.cpus[index].soft.front().copied() {
            self.defer(next, index, None);
        }
    }
}
