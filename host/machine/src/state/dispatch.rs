//! Who gets a processor, loses it, waits for it.

use nandscape_sim::Span;
use nandscape_sim::slots::Key;

use super::{Class, Entity, Place, State, Units, next_tick};
use crate::affinity::Affinity;
use crate::times::Kind;

/// What a context asks for.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Request {
    pub(crate) work: Units,
    /// The kind of a thread's work.
    pub(crate) kind: Kind,
    /// The core where data of the work is warm.
    pub(crate) home: Option<usize>,
}

impl Request {
    /// The processor, and no work.
    pub(crate) const NOTHING: Request = Request { work: Units::ZERO, kind: Kind::Kernel, home: None };
}

/// Who wakes a thread.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Waker {
    /// Something outside the machine.
    Outside,
    /// A timer of the processor where the thread was last.
    Timer,
    /// Code on a processor.
    On(usize),
}

impl State {
    /// A context asks for work, or for the processor if there is none to do. It is woken if it was away. `asker` is the context
    /// whose future is polled now, if that is the one.
    pub(crate) fn ask(&mut self, key: Key, request: Request, waker: Waker, asker: Option<Key>) {
        let entity = self.entity_mut(key);
        assert!(!entity.asks, "a context awaits one thing at a time");
        let place = entity.place;
        (entity.asks, entity.kind, entity.home) = (true, request.kind, request.home);
        if let Place::On(index) | Place::Raised(index) = place {
            self.settle(index);
            self.entity_mut(key).work = request.work;
            return self.load(key, index);
        }
        self.entity_mut(key).work = request.work;
        match self.entity(key).class {
            _ if place != Place::Away => {}
            Class::Hard | Class::Soft => self.raise(key, asker),
            Class::Realtime(_) | Class::Fair => self.wake_up(key, waker, asker),
        }
    }

    /// A context's work is shorter than it was, or longer. It has asked for it.
    pub(crate) fn revise(&mut self, key: Key, request: Request, asker: Option<Key>) {
        let place = self.entity(key).place;
        if let Place::On(index) | Place::Raised(index) = place {
            self.settle(index);
        }
        let entity = self.entity_mut(key);
        (entity.work, entity.kind) = (request.work, request.kind);
        if let Place::On(index) | Place::Raised(index) = place {
            self.changed(index, asker);
        }
    }

    /// An interrupt or a softirq begins, or gets in line.
    fn raise(&mut self, key: Key, asker: Option<Key>) {
        let (index, idle_exit) = (self.entity(key).cpu, self.costs.idle_exit);
        self.settle(index);
        let cpu = &mut self.cpus[index];
        let exit = if cpu.busy { Units::ZERO } else { idle_exit };
        let entity = self.entities.get_mut(key).expect("the context exists");
        if entity.class == Class::Hard {
            cpu.hard.push_back(key)
        } else {
            if cpu.soft.is_empty() {
                cpu.soft_ran = Span::ZERO;
            }
            cpu.soft.push_back(key)
        }
        entity.place = Place::Raised(index);
        entity.entry = entity.enters.plus(exit);
        self.load(key, index);
        self.decisions += 1;
        self.changed(index, asker);
    }

    /// A context of a processor loads its data, if that is warm on another core.
    fn load(&mut self, key: Key, index: usize) {
        let core = self.cpus[index].core;
        if let Some(home) = self.entity_mut(key).home.take().filter(|home| *home != core) {
            let cost = self.cold_between(home, core);
            let entity = self.entity_mut(key);
            entity.cold = entity.cold.plus(cost);
        }
    }

    /// A thread that was away is ready.
    fn wake_up(&mut self, key: Key, waker: Waker, asker: Option<Key>) {
        let now = self.sim.now();
        self.entity_mut(key).ready = now;
        let before = self.entity(key).cpu;
        let by = if let Waker::On(cpu) = waker { Some(cpu) } else { None };
        let takes = match self.entity(key).class {
            Class::Realtime(priority) => self.wake_realtime(key, priority, by, asker),
            _ => self.wake_fair(key, by, asker),
        };
        match (waker, takes) {
            (Waker::Timer, _) => {
                // The timer's interrupt is on the processor where the thread slept, if that is at work.
                let at = takes.filter(|_| self.top(before).is_none()).unwrap_or(before);
                self.steal(at, self.costs.timer, asker);
            }
            (Waker::On(from), Some(to)) if from != to => self.steal(to, self.costs.ipi, asker),
            _ => {}
        }
    }

    /// A processor has to handle an interrupt of the machine itself, if it is at work.
    fn steal(&mut self, index: usize, cost: Units, asker: Option<Key>) {
        if cost.is_zero() || self.top(index).is_none() {
            return;
        }
        self.settle(index);
        self.cpus[index].stolen = self.cpus[index].stolen.plus(cost);
        self.changed(index, asker);
    }

    /// Returns the processor that the thread gets at once.
    fn wake_fair(&mut self, key: Key, by: Option<usize>, asker: Option<Key>) -> Option<usize> {
        let index = self.place(key, by);
        self.settle(index);
        self.enter(key, index, asker)
    }

    /// A thread joins the run queue of a processor, which is settled. Returns the processor that the thread gets at once.
    pub(super) fn enter(&mut self, key: Key, index: usize, asker: Option<Key>) -> Option<usize> {
        self.join(key, index);
        let Some(current) = self.cpus[index].thread else {
            self.pick(index, asker);
            return Some(index);
        };
        let (woken, current) = (self.entity(key), self.entity(current));
        let held = current.held > 0;
        let preempts = current.class == Class::Fair && self.cpus[index].queue.preempts(&woken.share, &current.share);
        if preempts && !held {
            self.reschedule(index, asker);
            return (self.entity(key).place == Place::On(index)).then_some(index);
        }
        self.cpus[index].resched |= preempts;
        // The slice of the other one counts from now on.
        self.changed(index, asker);
        None
    }

    /// Returns the processor that the thread gets at once.
    fn wake_realtime(&mut self, key: Key, priority: u8, by: Option<usize>, asker: Option<Key>) -> Option<usize> {
        let ticket = self.realtime.join(key, priority);
        self.put(key, Place::Ticket(ticket));
        self.push(key, by, asker)
    }

    /// Gives a waiting real-time thread a processor that is free or has a less urgent thread. Returns the processor.
    fn push(&mut self, key: Key, by: Option<usize>, asker: Option<Key>) -> Option<usize> {
        let entity = self.entity(key);
        let (Class::Realtime(priority), Place::Ticket(_)) = (entity.class, entity.place) else { return None };
        let index = self.place_realtime(key, priority, by)?;
        self.settle(index);
        match self.cpus[index].thread {
            None => self.pick(index, asker),
            Some(current) if self.entity(current).held > 0 => {
                self.cpus[index].resched = true;
                return None;
            }
            Some(_) => self.reschedule(index, asker),
        }
        (self.entity(key).place == Place::On(index)).then_some(index)
    }

    /// A thread begins to wait in a run queue.
    pub(super) fn join(&mut self, key: Key, index: usize) {
        let before = self.entity(key).queue;
        if before != index {
            // Its virtual time counts from that of the queue that it leaves.
            self.settle(before);
        }
        let entity = self.entities.get_mut(key).expect("the context exists");
        entity.queue = index;
        if before != index {
            self.cpus[before].queue.moves(&mut entity.share);
        }
        self.cpus[index].queue.join(key, &mut entity.share);
        self.put(key, Place::Queued(index));
    }

    /// The thread that has a processor waits again, and the next one has it, which may be the same. The processor is settled.
    pub(crate) fn reschedule(&mut self, index: usize, asker: Option<Key>) {
        self.cpus[index].resched = false;
        let Some(key) = self.cpus[index].thread else { return };
        let entity = self.entities.get_mut(key).expect("the context exists");
        let place = match entity.class {
            Class::Realtime(priority) => Place::Ticket(self.realtime.put_back(key, priority)),
            _ => {
                self.cpus[index].queue.put_back(key, &mut entity.share);
                Place::Queued(index)
            }
        };
        self.put(key, place);
        match self.take_next(index) {
            Some(next) if next == key => self.keeps(key, index),
            next => {
                self.vacate(key, index);
                self.entity_mut(key).counts.preempted += 1;
                self.dispatch(next, index, false);
            }
        }
        self.changed(index, asker);
        // A real-time thread that has lost its processor may be more urgent than that of another one.
        self.push(key, None, asker);
    }

    /// A thread gives its turn away. It has a processor.
    pub(crate) fn give_way(&mut self, key: Key) {
        let Place::On(index) = self.entity(key).place else { return };
        self.settle(index);
        let entity = self.entities.get_mut(key).expect("the context exists");
        let next = match entity.class {
            Class::Realtime(priority) => {
                let ticket = self.realtime.join(key, priority);
                self.put(key, Place::Ticket(ticket));
                self.take_next(index)
            }
            _ => {
                let next = self.cpus[index].queue.yields(key, &mut entity.share);
                self.put(key, Place::Queued(index));
                Some(next)
            }
        };
        if next == Some(key) {
            return self.keeps(key, index);
        }
        self.vacate(key, index);
        self.dispatch(next, index, false);
        self.changed(index, None);
        self.push(key, None, None);
    }

    /// A thread was to lose its processor, and is the next one.
    fn keeps(&mut self, key: Key, index: usize) {
        self.put(key, Place::On(index));
        let entity = self.entities.get_mut(key).expect("the context exists");
        if entity.class == Class::Fair {
            self.cpus[index].queue.start(&mut entity.share);
        }
    }

    /// Takes the next thread of a processor.
    fn take_next(&mut self, index: usize) -> Option<Key> {
        let entities = &self.entities;
        let may_run = |key| entities.get(key).is_some_and(|entity| entity.affinity.has(index));
        self.realtime.next(may_run).or_else(|| self.cpus[index].queue.next())
    }

    /// A processor without a thread gets the next one. It is settled.
    fn pick(&mut self, index: usize, asker: Option<Key>) {
        self.cpus[index].resched = false;
        let was_idle = !self.cpus[index].busy;
        let mut next = self.take_next(index);
        if next.is_none() && self.balance && self.pull(index) {
            next = self.take_next(index);
        }
        self.dispatch(next, index, was_idle);
        self.changed(index, asker);
    }

    /// Gives a processor to a thread.
    fn dispatch(&mut self, next: Option<Key>, index: usize, was_idle: bool) {
        let Some(key) = next else { return };
        let now = self.sim.now();
        let core = self.cpus[index].core;
        let cold_cache = self.cold_cache;
        let entry = if was_idle { self.costs.switch.plus(self.costs.idle_exit) } else { self.costs.switch };
        let (worked, was_on) = (self.worked(index), self.cpus[self.entity(key).cpu].core);
        let cold_core = self.cold_between(was_on, core);
        self.put(key, Place::On(index));
        let entity = self.entities.get_mut(key).expect("the context exists");
        entity.entry = entry;
        let cold = match entity.left_core_at {
            Some(_) if was_on != core => cold_core,
            Some(left) => Units::of((worked - left).min(cold_cache)),
            None => Units::ZERO,
        };
        entity.cold = entity.cold.max(cold);
        entity.counts.switches += 1;
        entity.counts.migrations += u64::from(entity.left_core_at.is_some() && entity.cpu != index);
        entity.counts.delay += now - entity.ready;
        entity.cpu = index;
        self.free -= 1;
        let cpu = &mut self.cpus[index];
        cpu.thread = Some(key);
        if entity.class == Class::Fair {
            cpu.queue.start(&mut entity.share);
        }
        if !self.tick.is_zero() && cpu.tick <= now {
            cpu.tick = next_tick(now, self.tick);
        }
        self.decisions += 1;
        self.load(key, index);
    }

    /// A thread has left its processor.
    fn vacate(&mut self, key: Key, index: usize) {
        let (now, worked) = (self.sim.now(), self.worked(index));
        self.cpus[index].thread = None;
        self.free += 1;
        let entity = self.entity_mut(key);
        entity.entry = Units::ZERO;
        entity.left_core_at = Some(worked);
        entity.ready = now;
    }

    /// A context leaves the place where it is.
    pub(crate) fn leave(&mut self, key: Key) {
        let place = self.entity(key).place;
        self.put(key, Place::Away);
        let is_deferred = self.entity(key).is_deferred;
        match place {
            Place::Away => {}
            Place::Ticket(ticket) => self.realtime.leave(ticket),
            Place::Queued(index) => {
                self.settle(index);
                let entity = self.entities.get_mut(key).expect("the context exists");
                self.cpus[index].queue.leave(&mut entity.share);
                if is_deferred {
                    self.end_deferred(key, index);
                }
                self.changed(index, None);
            }
            Place::On(index) => {
                // What it did up to now is charged to it as long as it has the processor.
                self.settle(index);
                if !is_deferred || !self.hand_over(key, index) {
                    self.leave_processor(key, index);
                }
            }
            Place::Raised(index) => {
                self.settle(index);
                let cpu = &mut self.cpus[index];
                cpu.hard.retain(|other| *other != key);
                cpu.soft.retain(|other| *other != key);
                self.entity_mut(key).entry = Units::ZERO;
                self.changed(index, None);
            }
        }
        if place != Place::Away {
            let entity = self.entity_mut(key);
            (entity.asks, entity.work, entity.cold) = (false, Units::ZERO, Units::ZERO);
        }
    }

    /// A thread leaves its processor, which is settled, and the run queue of that.
    fn leave_processor(&mut self, key: Key, index: usize) {
        self.vacate(key, index);
        let entity = self.entities.get_mut(key).expect("the context exists");
        if entity.class == Class::Fair {
            self.cpus[index].queue.stop(&mut entity.share);
        }
        if entity.is_deferred {
            self.end_deferred(key, index);
        }
        self.pick(index, None);
    }

    /// Another thread may have a processor again, or interrupts may.
    pub(crate) fn release(&mut self, key: Key) {
        let Place::On(index) = self.entity(key).place else {
            if let Place::Raised(index) = self.entity(key).place {
                self.changed(index, None);
            }
            return;
        };
        self.settle(index);
        let entity = self.entity(key);
        if entity.held == 0 && self.cpus[index].resched {
            self.reschedule(index, None);
        }
        self.changed(index, None);
    }

    /// Has those contexts leave that have no work and do not wait for a processor.
    pub(crate) fn sweep(&mut self) {
        if self.ended.is_empty() {
            return;
        }
        let mut ended = std::mem::take(&mut self.ended);
        for key in ended.drain(..) {
            if self.entities.get(key).is_some_and(|entity| !entity.asks) {
                self.leave(key);
            }
        }
        self.ended = ended;
    }

    /// A future of a context was dropped before its end. The context may ask for something else at this instant.
    pub(crate) fn withdraw(&mut self, key: Key) {
        let Some(entity) = self.entities.get(key).filter(|entity| entity.asks) else { return };
        if let Place::On(index) | Place::Raised(index) = entity.place {
            self.settle(index);
        }
        let entity = self.entity_mut(key);
        (entity.asks, entity.work) = (false, Units::ZERO);
        self.ended.push(key);
    }

    /// A context exists no more.
    pub(crate) fn remove(&mut self, key: Key) {
        self.leave(key);
        if let Some(entity) = self.entities.remove(key) {
            self.gone.merge(&entity.times);
        }
    }

    /// A thread may run on these processors from now on, and leaves another one.
    pub(crate) fn set_affinity(&mut self, key: Key, affinity: Affinity) {
        let entity = self.entity_mut(key);
        if !entity.class.is_thread() || entity.is_deferred {
            return;
        }
        entity.affinity = affinity;
        match entity.place {
            Place::On(index) | Place::Queued(index) if !affinity.has(index) => self.settle(index),
            Place::Ticket(_) => {}
            _ => return,
        }
        let Entity { asks, work, cold, kind, .. } = *self.entity(key);
        self.leave(key);
        let entity = self.entity_mut(key);
        (entity.asks, entity.work, entity.cold, entity.kind) = (asks, work, cold, kind);
        self.wake_up(key, Waker::Outside, None);
    }
}
