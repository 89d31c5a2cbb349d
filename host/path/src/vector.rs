//! The interrupt of a completion queue, on the processor that the settings name. Its handler takes completions as long as there are some, and finishes each, or has a softirq of the
//! processor that submitted do so.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use nandscape_host_machine::{Context, Mode};
use nandscape_sim::slots::Key;
use nandscape_sim::{Span, Time};

use crate::config::PathKind;
use crate::path::Path;
use crate::ring::Ended;
use crate::stages::stage;

/// The interrupt of a completion queue, or the softirq of a processor.
#[derive(Default)]
pub(crate) struct Vector {
    /// I/Os to be finished.
    posted: RefCell<VecDeque<Key>>,
    /// Its handler runs, or is about to.
    raised: Cell<bool>,
    raised_at: Cell<Time>,
    /// How often it was raised.
    interrupts: Cell<u64>,
    /// The number of the timer that will raise it; 0 is none.
    timer: Cell<u64>,
    /// Timers so far.
    timers: Cell<u64>,
}

impl Vector {
    /// I/Os that wait for it.
    pub(crate) fn waiting(&self) -> usize {
        self.posted.borrow().len()
    }

    /// How often it was raised.
    pub(crate) fn interrupts(&self) -> u64 {
        self.interrupts.get()
    }

    /// It is raised once more.
    pub(crate) fn count_interrupt(&self) {
        self.interrupts.set(self.interrupts.get() + 1);
    }

    /// Adds an I/O; whether the handler has to be started.
    pub(crate) fn post(&self, key: Key) -> bool {
        self.posted.borrow_mut().push_back(key);
        !self.raised.replace(true)
    }

    /// Adds an I/O.
    pub(crate) fn push(&self, key: Key) {
        self.posted.borrow_mut().push_back(key);
    }

    /// Takes the I/O that was posted first.
    pub(crate) fn take(&self) -> Option<Key> {
        self.posted.borrow_mut().pop_front()
    }

    /// Whether the handler was about to run; from now on it is, or is not.
    pub(crate) fn is_raised(&self, now: bool) -> bool {
        self.raised.replace(now)
    }

    /// The same for a handler, which ends when there is none.
    pub(crate) fn next(&self) -> Option<Key> {
        let key = self.posted.borrow_mut().pop_front();
        self.raised.set(key.is_some());
        key
    }
}

impl Path {
    /// The drive has posted the completion of an I/O to a queue.
    pub(crate) fn posted(&self, queue: usize, key: Key) {
        let vector = &self.vectors[queue];
        if vector.raised.get() {
            vector.posted.borrow_mut().push_back(key);
            return;
        }
        let config = &self.config;
        let gathered = vector.posted.borrow().len() + 1;
        if gathered < config.coalesce as usize && !config.coalesce_time.is_zero() {
            vector.posted.borrow_mut().push_back(key);
            if vector.timer.get() == 0 {
                self.arm(queue, config.coalesce_time);
            }
            return;
        }
        vector.post(key);
        self.raise(queue);
    }

    /// Raises the interrupt after a time, unless it is raised before.
    fn arm(&self, queue: usize, span: Span) {
        let (path, vector) = (self.me(), &self.vectors[queue]);
        let number = vector.timers.get() + 1;
        vector.timers.set(number);
        vector.timer.set(number);
        self.sim.spawn(async move {
            path.sim.sleep(span).await;
            let vector = &path.vectors[queue];
            if vector.timer.get() == number && !vector.raised.replace(true) {
                path.raise(queue);
            }
        });
    }

    fn raise(&self, queue: usize) {
        let vector = &self.vectors[queue];
        vector.raised_at.set(self.sim.now());
        vector.timer.set(0);
        vector.count_interrupt();
        let path = self.me();
        self.sim.spawn(async move { path.handle(queue).await });
    }

    /// The interrupt of a completion queue, on its processor.
    pub(crate) fn enter_interrupt(&self, queue: usize) -> Context {
        self.machine.interrupt(self.config.processor_of(queue)).expect("the settings name a processor that exists")
    }

    /// The handler of a completion queue.
    async fn handle(&self, queue: usize) {
        let (vector, here) = (&self.vectors[queue], self.config.processor_of(queue));
        let irq = self.enter_interrupt(queue);
        let mut held = None;
        while let Some(key) = vector.next() {
            self.mark_until(key, stage::COALESCING, vector.raised_at.get());
            if self.locks.is_some() && held.is_none() {
                irq.work(Span::ZERO, Mode::Kernel).await;
                self.mark(key, stage::INTERRUPT);
                held = self.lock_controller(&irq, &mut |stage| self.mark(key, stage)).await;
            }
            irq.work(self.config.costs.handler, Mode::Kernel).await;
            self.mark(key, stage::INTERRUPT);
            let Some(cpu) = self.submitted_on(key) else { continue };
            if self.config.path == PathKind::Nvme && cpu == here {
                self.finish(&irq, key).await;
            } else if self.softirqs[cpu].post(key) {
                let path = self.me();
                self.sim.spawn(async move { path.handle_softirq(cpu, cpu != here).await });
            }
        }
        drop(held);
        self.handled(&irq);
    }

    /// The handler of an interrupt of the drive ends.
    pub(crate) fn handled(&self, irq: &Context) {
        self.longest_handler.set(self.longest_handler.get().max(irq.times().busy()));
    }

    /// The softirq of a processor, which an interrupt of another processor may have to start.
    async fn handle_softirq(&self, cpu: usize, is_remote: bool) {
        let softirq = &self.softirqs[cpu];
        if is_remote {
            let ipi = self.machine.ipi(cpu).expect("a thread has submitted there");
            ipi.work(Span::ZERO, Mode::Kernel).await;
            softirq.posted.borrow().iter().for_each(|key| self.mark(*key, stage::IPI));
        }
        let context = self.machine.softirq(cpu).expect("a thread has submitted there");
        while let Some(key) = softirq.next() {
            context.work(Span::ZERO, Mode::Kernel).await;
            self.mark(key, stage::SOFTIRQ);
            self.finish(&context, key).await;
        }
    }

    /// Finishes an I/O in the block layer and wakes its thread.
    async fn finish(&self, context: &Context, key: Key) {
        if let Some(ring) = self.taker(key) {
            return self.note(context, key, &ring).await;
        }
        self.end_of_io(context, key).await;
        self.run_queue(self.release(key), Some(context));
        context.work(self.config.costs.wake, Mode::Kernel).await;
        self.mark(key, stage::WAKEUP);
        self.wake(context, key);
    }

    /// The end of an I/O in the block layer.
    async fn end_of_io(&self, context: &Context, key: Key) {
        let port = self.with_flight(key, |flight| flight.port).flatten();
        self.block_layer_out(context, port, |stage| self.mark(key, stage)).await;
    }

    /// Notes for a ring that an I/O has ended, and wakes its thread if it sleeps.
    async fn note(&self, context: &Context, key: Key, ring: &Ended) {
        if ring.ends_in_interrupt {
            self.end_of_io(context, key).await;
            self.run_queue(self.release(key), Some(context));
        }
        if ring.event.waiting() > 0 {
            context.work(self.config.costs.wake, Mode::Kernel).await;
            self.mark(key, stage::WAKEUP);
        }
        ring.push(key);
        ring.event.notify_from(context);
    }
}
