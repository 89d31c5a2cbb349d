//! Interrupt coalescing (Base 3.5.1, 5.1.25.2.2): the host is notified of completions in I/O queues when a number of them was
//! posted for a vector, or when the first of them is older than a time. Each vector can be excepted
//! (Interrupt Vector Configuration). The admin queue is never coalesced.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

use nandscape_drive::CompletionMemory;
use nandscape_sim::Span;
use nandscape_wire_nvme::feature::{COALESCING_DISABLED, INTERRUPT_COALESCING, INTERRUPT_VECTOR, InterruptCoalescing};

use super::queues::QueueKey;
use super::{Chore, NvmeController};

/// Deferred notifications, by vector.
#[derive(Default)]
pub(super) struct Coalescing {
    held: RefCell<BTreeMap<u16, Held>>,
    /// Aggregations so far, which identifies the timer of each.
    aggregations: Cell<u64>,
}

/// Completions of a vector without a notification yet.
struct Held {
    count: u32,
    aggregation: u64,
    /// The queues that they are in.
    memories: Vec<Rc<dyn CompletionMemory>>,
}

/// The end of the time of an aggregation.
pub(crate) struct Timer {
    controller: Weak<NvmeController>,
    vector: u16,
    aggregation: u64,
}

impl Timer {
    pub(super) fn fire(&self) {
        if let Some(controller) = self.controller.upgrade() {
            controller.notify_vector(self.vector, self.aggregation);
        }
    }
}

impl Coalescing {
    /// A queue is deleted: its host is not notified of it, and the time of an aggregation of it alone ends.
    pub(super) fn forget_queue(&self, memory: &Rc<dyn CompletionMemory>) {
        self.held.borrow_mut().retain(|_, held| {
            held.memories.retain(|each| !Rc::ptr_eq(each, memory));
            !held.memories.is_empty()
        });
    }

    /// All queues are deleted: no host waits for a notification.
    pub(super) fn forget(&self) {
        self.held.borrow_mut().clear();
    }
}

impl NvmeController {
    /// A completion was posted, and the host coalesces interrupts.
    #[cold]
    pub(super) fn coalesce(&self, queue: QueueKey, memory: Rc<dyn CompletionMemory>) {
        let vector = self.queues.borrow().io_vector(queue);
        let Some(vector) = vector.filter(|vector| self.coalesces(*vector)) else { return memory.notify() };
        let setting = InterruptCoalescing(self.admin.settings.get(INTERRUPT_COALESCING, 0));
        let coalescing = &self.coalescing;
        let mut all = coalescing.held.borrow_mut();
        let held = all.entry(vector).or_insert_with(|| {
            coalescing.aggregations.set(coalescing.aggregations.get() + 1);
            let aggregation = coalescing.aggregations.get();
            let timer = Timer { controller: self.weak(), vector, aggregation };
            let time = Span::from_us(100 * u64::from(setting.time()));
            self.subsystem.chores.start_after(time, Chore::EndAggregation(timer));
            Held { count: 0, aggregation, memories: Vec::new() }
        });
        held.count += 1;
        if !held.memories.iter().any(|each| Rc::ptr_eq(each, &memory)) {
            held.memories.push(memory);
        }
        if held.count > setting.threshold_z().into() {
            let aggregation = held.aggregation;
            drop(all);
            self.notify_vector(vector, aggregation);
        }
    }

    /// Whether the interrupts of a vector are coalesced.
    fn coalesces(&self, vector: u16) -> bool {
        self.admin.settings.get(INTERRUPT_VECTOR, vector.into()) & COALESCING_DISABLED == 0
    }

    /// Notifies the host of a vector's deferred completions, if the given aggregation is still current.
    fn notify_vector(&self, vector: u16, aggregation: u64) {
        let mut held = self.coalescing.held.borrow_mut();
        let ends = held.get(&vector).is_some_and(|held| held.aggregation == aggregation);
        if ends && let Some(ended) = held.remove(&vector) {
            drop(held);
            ended.memories.iter().for_each(|memory| memory.notify());
        }
    }
}
