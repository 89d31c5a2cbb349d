//! The run queue of the core: turns, in the order of a policy, and their usual lengths.

use std::cell::RefCell;
use std::rc::Rc;

use nandscape_host_machine::scheduler::{Scheduler as RunQueue, Share};
use nandscape_sim::slots::Key;
use nandscape_sim::{Sim, Span, Time};

use super::scheduler::Scheduler;
use crate::resource::Average;

/// The machine that has the core.
#[derive(Copy, Clone)]
pub(super) struct Running {
    pub(super) vm: usize,
    pub(super) since: Time,
    /// When its slice ends.
    pub(super) until: Time,
    /// The accounted part of its slice that is used.
    used: Span,
}

/// The turns of a core.
pub(super) struct Turns {
    sim: Sim,
    slice: Span,
    pub(super) scheduler: Box<dyn Scheduler>,
    /// The threads of the machines, by number.
    threads: Vec<Key>,
    /// How long the turns of each are.
    usual: Vec<Average>,
    pub(super) running: Option<Running>,
    /// Whether the machine that woke last takes the core.
    takes: bool,
    waiting: usize,
}

/// The weight of a new turn in their average.
const WEIGHT: f64 = 0.25;

impl Turns {
    pub(super) fn new(sim: &Sim, machines: usize, slice: Span, scheduler: Box<dyn Scheduler>) -> Turns {
        let usual = (0..machines).map(|_| Average::new(slice, WEIGHT)).collect();
        let threads = Vec::new();
        Turns { sim: sim.clone(), slice, scheduler, threads, usual, running: None, takes: false, waiting: 0 }
    }

    /// The thread of the next machine.
    pub(super) fn add(&mut self, thread: Key) {
        self.threads.push(thread);
    }

    /// How long the turns of a machine usually are.
    pub(super) fn usual(&self, vm: usize) -> Span {
        self.usual[vm].get()
    }

    fn vm(&self, thread: Key) -> usize {
        self.threads.iter().position(|other| *other == thread).expect("a thread of a machine")
    }

    /// The turn of the machine that has the core has ended. Whether another one took the core from it.
    fn end(&mut self, is_taken: bool) {
        let Some(Running { vm, since, .. }) = self.running.take() else { return };
        let (now, span) = (self.sim.now(), self.sim.now() - since);
        if !is_taken {
            self.usual[vm].add(span);
        }
        self.scheduler.ran(vm, span, now);
    }
}

/// See the file.
pub(super) struct Queue(pub(super) Rc<RefCell<Turns>>);

impl RunQueue for Queue {
    fn join(&mut self, thread: Key, _: &mut Share) {
        let turns = &mut *self.0.borrow_mut();
        let vm = turns.vm(thread);
        turns.takes = turns.scheduler.wakes(vm, turns.usual[vm].get(), turns.sim.now());
        turns.waiting += 1;
    }

    /// Machines wait until they have had their turns.
    fn leave(&mut self, _: &mut Share) {}

    fn moves(&self, _: &mut Share) {}

    fn next(&mut self) -> Option<Key> {
        let turns = &mut *self.0.borrow_mut();
        let since = turns.sim.now();
        let vm = turns.scheduler.next(since)?;
        turns.running = Some(Running { vm, since, until: since + turns.slice, used: Span::ZERO });
        turns.waiting -= 1;
        Some(turns.threads[vm])
    }

    fn start(&mut self, _: &mut Share) {}

    fn ran(&mut self, _: &mut Share, span: Span) {
        self.0.borrow_mut().running.iter_mut().for_each(|running| running.used += span);
    }

    fn stop(&mut self, _: &mut Share) {
        self.0.borrow_mut().end(false);
    }

    fn put_back(&mut self, thread: Key, _: &mut Share) {
        let turns = &mut *self.0.borrow_mut();
        let is_taken = std::mem::take(&mut turns.takes);
        turns.end(is_taken);
        let vm = turns.vm(thread);
        turns.scheduler.waits(vm, turns.usual[vm].get(), turns.sim.now());
        turns.waiting += 1;
    }

    fn yields(&mut self, thread: Key, share: &mut Share) -> Key {
        self.put_back(thread, share);
        self.next().unwrap_or(thread)
    }

    /// A turn ends with its slice even if no other machine waits.
    fn slice_left(&self, _: &Share) -> Option<Span> {
        let turns = self.0.borrow();
        turns.running.map(|running| turns.slice.saturating_sub(running.used))
    }

    fn preempts(&self, _: &Share, _: &Share) -> bool {
        self.0.borrow().takes
    }

    fn waiting(&self) -> usize {
        self.0.borrow().waiting
    }

    fn last(&self, _: &dyn Fn(Key) -> bool) -> Option<Key> {
        None
    }
}
