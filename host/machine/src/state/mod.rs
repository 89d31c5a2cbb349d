//! The processors, the contexts, and the time that both have spent.
//!
//! | file | what |
//! |---|---|
//! | `units` | amounts of work |
//! | `entity` | what is known of a context |
//! | `cpu` | what is on a processor |
//! | `dispatch` | who gets a processor, loses it, waits for it |
//! | `placement` | the processor on which a woken thread runs |
//! | `waits` | who keeps ready threads from their processors |
//! | `ksoftirqd` | threads that go on with long softirqs |
//!
//! The state changes at the instants of events only. Up to each event, [`State::settle`] charges the time of a processor to
//! what was on it. No task runs the machine: a context sets the timer of its own end, and whoever changes what is on a
//! processor wakes the task of the context that is on it now, which then sets its timer.

mod cpu;
mod dispatch;
mod entity;
mod ksoftirqd;
mod placement;
mod units;
mod waits;

use std::cell::{Cell, RefCell};

use nandscape_sim::executor::TaskId;
use nandscape_sim::slots::{Key, Slots};
use nandscape_sim::trace::Event;
use nandscape_sim::{Sim, Span, Time};

pub(crate) use cpu::{Cpu, Timeline};
pub(crate) use dispatch::{Request, Waker};
pub(crate) use entity::{Class, Entity, Place};
pub(crate) use units::Units;

use crate::config::Config;
use crate::scheduler::{Nice, Realtime, Scheduler, Share};
use crate::times::{Holder, Kind, Times, Waits};

/// What a machine and its contexts share.
pub(crate) struct Shared {
    pub(crate) sim: Sim,
    pub(crate) config: Config,
    pub(crate) state: RefCell<State>,
    /// The task that has contexts leave that did not go on.
    pub(crate) sweeper: Cell<Option<TaskId>>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        // The sweeper ends.
        if let Some(task) = self.sweeper.get().filter(|_| !self.sim.is_stopped()) {
            self.sim.wake(task);
        }
    }
}

/// Costs, in units.
pub(crate) struct Costs {
    pub(crate) switch: Units,
    pub(crate) ipi: Units,
    pub(crate) timer: Units,
    pub(crate) idle_exit: Units,
    pub(crate) cold_core: Units,
    /// The same between NUMA nodes.
    pub(crate) cold_node: Units,
}

/// See the file.
pub(crate) struct State {
    sim: Sim,
    began: Time,
    pub(crate) cpus: Vec<Cpu>,
    /// Processors without a thread.
    free: usize,
    pub(crate) entities: Slots<Entity>,
    pub(crate) realtime: Realtime,
    /// Time that threads have run on each core.
    worked: Vec<Span>,
    /// Contexts whose work has ended, or whose future was dropped, at this instant.
    pub(crate) ended: Vec<Key>,
    pub(crate) costs: Costs,
    pub(crate) cold_cache: Span,
    pub(crate) tick: Span,
    pub(crate) balance: bool,
    /// How long softirqs run in a row before their processor's thread continues them; zero is for ever.
    pub(crate) ksoftirqd: Span,
    /// Cores of each NUMA node.
    cores_of_node: usize,
    rates: [u64; 2],
    pub(crate) numbers: u64,
    /// How often a processor was given to a thread, an interrupt or a softirq.
    pub(crate) decisions: u64,
    /// Time of contexts that have ended.
    pub(crate) gone: Times,
}

/// What a context has to do next.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Progress {
    /// Its work is done, and it has its processor.
    Done,
    /// To look again then.
    Until(Time),
    /// To wait until it is woken.
    Waits,
}

impl State {
    pub(crate) fn new(sim: &Sim, config: &Config, mut make: impl FnMut() -> Box<dyn Scheduler>) -> State {
        let (now, rates) = (sim.now(), config.rates());
        let mut cpu = |index: usize| Cpu {
            core: index / config.threads,
            sibling: (config.threads == 2).then_some(index ^ 1),
            since: now,
            thread: None,
            hard: Default::default(),
            soft: Default::default(),
            soft_ran: Span::ZERO,
            is_deferring: false,
            ksoftirqd: Share::new(Nice::default()),
            stolen: Units::ZERO,
            queue: make(),
            resched: false,
            tick: Time::ZERO,
            rate: rates[0],
            busy: false,
            times: Times::default(),
            held: Waits::default(),
            timeline: Timeline::default(),
        };
        let costs = Costs {
            switch: Units::of(config.switch),
            ipi: Units::of(config.ipi),
            timer: Units::of(config.timer),
            idle_exit: Units::of(config.idle_exit),
            cold_core: Units::of(config.cold_core),
            cold_node: Units::of(config.between_nodes(config.cold_core)),
        };
        State {
            sim: sim.clone(),
            began: now,
            cpus: (0..config.cpus()).map(&mut cpu).collect(),
            free: config.cpus(),
            entities: Slots::new(),
            realtime: Realtime::default(),
            worked: vec![Span::ZERO; config.cores],
            ended: Vec::new(),
            costs,
            cold_cache: config.cold_cache,
            tick: config.tick,
            balance: config.balance,
            ksoftirqd: config.ksoftirqd,
            cores_of_node: config.cores / config.nodes,
            rates,
            numbers: 0,
            decisions: 0,
            gone: Times::default(),
        }
    }

    /// A context that exists.
    pub(crate) fn entity(&self, key: Key) -> &Entity {
        self.entities.get(key).expect("the context exists")
    }

    pub(crate) fn entity_mut(&mut self, key: Key) -> &mut Entity {
        self.entities.get_mut(key).expect("the context exists")
    }

    fn is_masked(&self, key: Key) -> bool {
        self.entity(key).masked > 0
    }

    /// What is on a processor.
    pub(crate) fn top(&self, index: usize) -> Option<Key> {
        let cpu = &self.cpus[index];
        let (hard, soft) = (cpu.hard.front(), cpu.soft.front().filter(|_| !cpu.is_deferring));
        if hard.is_none() && soft.is_none() {
            return cpu.thread;
        }
        let masked = cpu.thread.filter(|thread| self.is_masked(*thread));
        let masked = masked.or_else(|| soft.copied().filter(|soft| self.is_masked(*soft)));
        masked.or(hard.copied()).or(soft.copied())
    }

    /// Charges the time of a processor up to now.
    pub(crate) fn settle(&mut self, index: usize) {
        let now = self.sim.now();
        let mut elapsed = now.since(self.cpus[index].since);
        if elapsed.is_zero() {
            return;
        }
        let top = self.top(index);
        let rate = self.cpus[index].rate;
        let stolen = self.cpus[index].stolen.spend(rate, &mut elapsed);
        self.charge(index, (Kind::Interrupt, Some(Holder::Interrupt)), 0, stolen);
        let Some(key) = top else { return self.charge(index, (Kind::Idle, None), 0, elapsed) };
        let entity = self.entity_mut(key);
        let (kinds, number, mut parts) = (entity.kinds(), entity.number, [Span::ZERO; 3]);
        let holders = kinds.map(|kind| entity.holder(kind));
        for (part, left) in parts.iter_mut().zip([&mut entity.entry, &mut entity.cold, &mut entity.work]) {
            *part = left.spend(rate, &mut elapsed);
        }
        assert!(elapsed.is_zero(), "a context has processor {index} at {now:?}, and no work since {elapsed:?}");
        for (kind, part) in kinds.into_iter().zip(parts) {
            entity.times.add(kind, part);
        }
        let ran: Span = parts.into_iter().sum();
        if entity.class == Class::Soft {
            self.cpus[index].soft_ran += ran;
        } else if entity.class.is_thread() && !ran.is_zero() {
            if entity.class == Class::Fair {
                // The fields are apart, so that both can be borrowed.
                let entity = self.entities.get_mut(key).expect("it has just been seen");
                self.cpus[index].queue.ran(&mut entity.share, ran);
            }
            self.worked[self.cpus[index].core] += ran;
        }
        for ((kind, holder), part) in kinds.into_iter().zip(holders).zip(parts) {
            self.charge(index, (kind, Some(holder)), number, part);
        }
    }

    /// Time that threads have run on the core of a processor, which is settled.
    fn worked(&mut self, index: usize) -> Span {
        if let Some(sibling) = self.cpus[index].sibling {
            self.settle(sibling);
        }
        self.worked[self.cpus[index].core]
    }

    /// Charges a span of a processor, which follows the last one.
    fn charge(&mut self, index: usize, (kind, holder): (Kind, Option<Holder>), of: u64, span: Span) {
        if span.is_zero() {
            return;
        }
        let cpu = &mut self.cpus[index];
        let start = cpu.since;
        cpu.since = start + span;
        cpu.times.add(kind, span);
        holder.into_iter().for_each(|holder| cpu.held.add(holder, span));
        if cpu.timeline.track.is_some() && self.sim.trace().is_on() {
            let ended = cpu.timeline.add(kind, of, start, span);
            self.show(index, ended);
        }
    }

    fn show(&self, index: usize, stretch: Option<cpu::Stretch>) {
        let (Some(stretch), Some(track)) = (stretch, self.cpus[index].timeline.track) else { return };
        let cpu::Stretch { kind, of, start, end } = stretch;
        self.sim.trace_event(|_| Event { track, name: kind.name(), start, end, detail: of });
    }

    /// The time of a processor up to now, by kind.
    pub(crate) fn usage(&mut self, index: usize) -> Times {
        self.settle(index);
        let times = self.cpus[index].times;
        assert_eq!(times.total(), self.sim.now() - self.began, "the account of processor {index} is wrong");
        times
    }

    /// Ends the open stretches of all lines of the event trace.
    pub(crate) fn end_timelines(&mut self) {
        for index in 0..self.cpus.len() {
            self.settle(index);
            let ended = self.cpus[index].timeline.end();
            self.show(index, ended);
        }
    }

    /// What a context has to do next. The answer is the same until something changes.
    pub(crate) fn progress(&self, key: Key) -> Progress {
        let entity = self.entity(key);
        let (Place::On(index) | Place::Raised(index)) = entity.place else { return Progress::Waits };
        if self.top(index) != Some(key) {
            return Progress::Waits;
        }
        let cpu = &self.cpus[index];
        if entity.is_done() && cpu.stolen.is_zero() {
            return Progress::Done;
        }
        let stolen = cpu.stolen.time(cpu.rate);
        let phases = [entity.entry, entity.cold, entity.work];
        let mut end = match entity.work {
            Units::FOREVER => Time::MAX,
            _ => cpu.since + stolen + phases.into_iter().map(|phase| phase.time(cpu.rate)).sum::<Span>(),
        };
        if entity.class.is_thread() && !self.tick.is_zero() {
            end = end.min(cpu.tick);
        } else if entity.class == Class::Fair && entity.held == 0 {
            let left = cpu.queue.slice_left(&entity.share);
            end = end.min(left.map_or(Time::MAX, |left| cpu.since + stolen + left));
        } else if let Some(left) = self.undeferred(key, index) {
            end = end.min(cpu.since + stolen + left);
        }
        if end == Time::MAX { Progress::Waits } else { Progress::Until(end) }
    }

    /// The timer of a context has fired, which may have lost its processor since it was set.
    pub(crate) fn alarm(&mut self, key: Key) {
        let entity = self.entity(key);
        let (Place::On(index) | Place::Raised(index)) = entity.place else { return };
        if self.top(index) != Some(key) {
            return;
        }
        self.settle(index);
        let (now, entity) = (self.sim.now(), self.entity(key));
        if !entity.class.is_thread() {
            if !entity.is_done() && self.undeferred(key, index) == Some(Span::ZERO) {
                self.defer(key, index, Some(key));
            }
            return;
        }
        let (is_fair, is_done, held) = (entity.class == Class::Fair, entity.is_done(), entity.held > 0);
        if !self.tick.is_zero() {
            let cpu = &mut self.cpus[index];
            if now < cpu.tick {
                return;
            }
            cpu.stolen = cpu.stolen.plus(self.costs.timer);
            cpu.tick = next_tick(now, self.tick);
        }
        if is_fair && !is_done && !held && self.has_used_slice(index, key) {
            self.reschedule(index, Some(key));
        }
    }

    fn has_used_slice(&self, index: usize, key: Key) -> bool {
        self.cpus[index].queue.slice_left(&self.entity(key).share) == Some(Span::ZERO)
    }

    /// What is on a processor, or what it has to do, has changed: its context sets another timer. `asker` does so anyway.
    pub(crate) fn changed(&mut self, index: usize, asker: Option<Key>) {
        let top = self.top(index);
        if let Some(key) = top.filter(|top| Some(*top) != asker) {
            self.sim.wake(self.entity(key).task);
        }
        let (busy, sibling) = (top.is_some(), self.cpus[index].sibling);
        if std::mem::replace(&mut self.cpus[index].busy, busy) != busy
            && let Some(sibling) = sibling
        {
            // The speed of each depends on whether the other is busy. This one was settled before the change.
            self.settle(index);
            self.settle(sibling);
            self.cpus[sibling].rate = self.rates[usize::from(busy)];
            self.cpus[index].rate = self.rates[usize::from(self.cpus[sibling].busy)];
            if let Some(key) = self.top(sibling).filter(|top| Some(*top) != asker) {
                self.sim.wake(self.entity(key).task);
            }
        }
    }
}

/// The next multiple of a period.
fn next_tick(now: Time, period: Span) -> Time {
    Time::from_ns((now.ns() / period.ns() + 1).saturating_mul(period.ns()))
}
