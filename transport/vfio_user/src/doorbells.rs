//! Watches the doorbells of a guest. The page of registers is a memory file: the guest maps it, or the side thread
//! stores the guest's writes by messages in it. After Doorbell Buffer Config, the doorbells of I/O queues are taken
//! from the guest's own buffer (Base B.5). The mode determines when the buffer is checked, and when event indexes
//! request register writes from the guest:
//!
//! | mode | checks the buffer | asks for the next register write |
//! |---|---|---|
//! | trapped | in every turn | after each check that found something |
//! | shadow | from a register write on, until nothing new is found | then |
//! | buffered, mapped | in every turn | before the reactor sleeps |
//!
//! Left out: values outside of a queue, which the controller ignores.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use nandscape_drive::QueueId;
use nandscape_drive::mem::{Dma as _, Mapping};
use nandscape_drive::queue_memory::DoorbellBuffers;
use nandscape_transport_reactor::{Arrival, Doorbells, QueueKind};

use crate::layout::PAGE;
use crate::listener::DoorbellMode;
use crate::memory::Memory;

/// See the module.
pub(crate) struct Watch {
    page: Mapping,
    memory: Rc<Memory>,
    mode: DoorbellMode,
    /// Bytes of all doorbells.
    bytes: u64,
    /// Completion queues precede submission queues: a head makes room for completions of new commands.
    queues: RefCell<Vec<Queue>>,
    buffers: Cell<Option<DoorbellBuffers>>,
    /// Set by the side thread when the guest has written a register.
    rung: Arc<AtomicBool>,
    /// Shadow mode: a register was written, and the buffers may hold more.
    draining: Cell<bool>,
}

/// A queue that was created since the last reset. It may have been deleted: then the controller ignores its doorbell.
struct Queue {
    kind: QueueKind,
    id: QueueId,
    entries: u32,
    /// The doorbell as last seen.
    seen: u16,
    /// The last event index given to the guest.
    event: Option<u16>,
}

impl Queue {
    /// The place of the doorbell among all of them (Base 3.1.4, stride 4).
    fn offset(&self) -> u64 {
        doorbell_offset(self.kind, self.id)
    }

    /// The value whose passing the guest must signal to the controller.
    fn event_index(&self, mode: DoorbellMode) -> u16 {
        match self.kind {
            // The next entry.
            QueueKind::Submission => self.seen,
            QueueKind::Completion if mode == DoorbellMode::Trapped => self.seen,
            // Room is needed only if the queue was full, and then the guest takes all but one of its entries.
            QueueKind::Completion => ((u32::from(self.seen) + self.entries - 2) % self.entries) as u16,
        }
    }
}

fn doorbell_offset(kind: QueueKind, id: QueueId) -> u64 {
    u64::from(id.0) * 8 + if kind == QueueKind::Completion { 4 } else { 0 }
}

impl Watch {
    /// Watches the doorbells in `page`, which is as long as all of them together. Each write to the page by a message
    /// sets `rung`.
    pub(crate) fn new(page: Mapping, memory: Rc<Memory>, mode: DoorbellMode, rung: Arc<AtomicBool>) -> Watch {
        let (bytes, queues, buffers) = (page.len() as u64, RefCell::default(), Cell::default());
        Watch { page, memory, mode, bytes, queues, buffers, rung, draining: Cell::default() }
    }

    /// The way of the doorbells.
    pub(crate) fn mode(&self) -> DoorbellMode {
        self.mode
    }

    /// Calls `ring` for doorbells that have changed; whether any had.
    pub(crate) fn look(&self, mut ring: impl FnMut(Arrival)) -> bool {
        if self.mode == DoorbellMode::Shadow && self.buffers.get().is_some() {
            return self.look_when_told(&mut ring);
        }
        let came = self.pass(true, &mut ring);
        if came && self.mode == DoorbellMode::Trapped {
            self.ask_for_events();
        }
        came
    }

    /// Checks the buffers after a register write, in every turn until nothing new is found. Only then is the next
    /// write requested from the guest: until then no write is needed.
    fn look_when_told(&self, ring: &mut impl FnMut(Arrival)) -> bool {
        if self.rung.load(Ordering::Relaxed) && self.rung.swap(false, Ordering::Acquire) {
            self.draining.set(true);
        }
        let draining = self.draining.get();
        let mut came = self.pass(draining, ring);
        if draining && !came {
            self.ask_for_events();
            // A doorbell stored before the guest could see the index has no register write.
            came = self.pass(true, ring);
            self.draining.set(came);
        }
        came
    }

    /// Passes on changed doorbells, in buffers only if `buffers` is set; returns whether any had changed.
    fn pass(&self, buffers: bool, ring: &mut impl FnMut(Arrival)) -> bool {
        let mut came = false;
        // Ringing may have the controller create queues in a later event, never now.
        for queue in self.queues.borrow_mut().iter_mut() {
            if !buffers && queue.id != QueueId::ADMIN {
                continue;
            }
            let value = self.value(queue) as u16;
            if value == queue.seen {
                continue;
            }
            queue.seen = value;
            came = true;
            ring(match queue.kind {
                QueueKind::Submission => Arrival::SubmissionTail { queue: queue.id, tail: value },
                QueueKind::Completion => Arrival::CompletionHead { queue: queue.id, head: value },
            });
        }
        came
    }

    fn value(&self, queue: &Queue) -> u32 {
        let offset = queue.offset();
        if let Some(at) = self.buffers.get().and_then(|buffers| in_buffer(buffers.shadow, queue, offset)) {
            // A buffer that is no longer mapped rings nothing.
            return self.memory.guest.load(at).unwrap_or(queue.seen.into());
        }
        self.page.load(offset as usize).expect("a queue that exists has its doorbell in the page")
    }

    /// Asks the guest to write the registers of its next doorbells. Look once more before sleeping.
    pub(crate) fn ask_for_events(&self) {
        let Some(buffers) = self.buffers.get() else { return };
        for queue in self.queues.borrow_mut().iter_mut() {
            let index = queue.event_index(self.mode);
            let Some(at) = in_buffer(buffers.event_index, queue, queue.offset()) else { continue };
            if queue.event != Some(index) && self.memory.store(at, index.into()).is_ok() {
                queue.event = Some(index);
            }
        }
        // The guest writes its doorbell and then reads the index; doorbells before the index are seen now.
        fence(Ordering::SeqCst);
    }

    /// A reset of the controller: no queue exists, all doorbells are zero.
    pub(crate) fn reset(&self) {
        self.queues.borrow_mut().clear();
        self.buffers.set(None);
        for offset in (0..self.bytes).step_by(4) {
            self.clear(offset);
        }
    }

    fn clear(&self, offset: u64) {
        self.page.store(offset as usize, 0).expect("the page is ours");
    }
}

/// The place of a queue's doorbell in a buffer; `None` for admin queues, and beyond the page of the buffer.
fn in_buffer(base: u64, queue: &Queue, offset: u64) -> Option<u64> {
    let has_place = queue.id != QueueId::ADMIN && offset < PAGE;
    has_place.then_some(base).and_then(|base| base.checked_add(offset))
}

impl Doorbells for Watch {
    fn created(&self, kind: QueueKind, id: QueueId, entries: u32) {
        let offset = doorbell_offset(kind, id);
        if offset >= self.bytes {
            return;
        }
        self.clear(offset);
        // Its event index may be that of an earlier queue.
        self.draining.set(true);
        let mut queues = self.queues.borrow_mut();
        queues.retain(|queue| (queue.kind, queue.id) != (kind, id));
        queues.push(Queue { kind, id, entries, seen: 0, event: None });
        queues.sort_by_key(|queue| (queue.kind == QueueKind::Submission, queue.id));
    }

    fn set_buffers(&self, buffers: Option<DoorbellBuffers>) {
        self.buffers.set(buffers);
        self.draining.set(true);
        self.queues.borrow_mut().iter_mut().for_each(|queue| queue.event = None);
    }
}

#[cfg(test)]
mod tests;
