//! A host to which a controller is attached through a port. Its queues are created in its memory, its interrupts are
//! put into the port's outbox, and its I/O commands are counted like those of other connections.
//!
//! Left out: admin commands, which are not counted.

use std::cell::RefCell;
use std::rc::Rc;

use nandscape_drive::guest_queues::{GuestCompletions, GuestSubmissions};
use nandscape_drive::mem::{Access, Dma};
use nandscape_drive::queue_memory::{DoorbellBuffers, Peeked};
use nandscape_drive::ring::{Posted, Submission};
use nandscape_drive::{BlockSizes, Breakdown, Completion, CompletionMemory, HostMemory, QueueId, SubmissionMemory};

use crate::access::Tape;
use crate::asks::Asks;
use crate::doorbells::{Doorbells, QueueKind};
use crate::in_flight::InFlight;
use crate::outbox::{Outbox, Outstanding, ToHost, What};
use crate::port::ConnectionId;

/// Bytes of a memory page: the only size that controllers here support (CAP.MPSMAX).
const PAGE: u32 = 4_096;

/// See the module.
pub(crate) struct Host {
    pub(crate) dma: Rc<dyn Dma>,
    pub(crate) tape: Tape,
    pub(crate) connection: ConnectionId,
    pub(crate) export: u16,
    pub(crate) sizes: Rc<BlockSizes>,
    pub(crate) vectors: u16,
    pub(crate) doorbells: Rc<dyn Doorbells>,
    pub(crate) outbox: Rc<Outbox>,
    pub(crate) commands: Rc<Commands>,
    pub(crate) asks: Rc<Asks>,
    /// Queues whose requested entries have arrived from the host, and their tails.
    pub(crate) came: Rc<RefCell<Vec<(QueueId, u16)>>>,
}

/// I/O commands under way, by submission queue.
#[derive(Default)]
pub(crate) struct Commands(RefCell<Vec<Option<OfQueue>>>);

/// The commands of one queue.
type OfQueue = Rc<RefCell<InFlight>>;

impl Commands {
    pub(crate) fn len(&self) -> usize {
        self.0.borrow().iter().flatten().map(|queue| queue.borrow().len()).sum()
    }

    /// A queue is created.
    fn add(&self, id: QueueId, entries: u32) -> OfQueue {
        let mut queues = self.0.borrow_mut();
        let index = usize::from(id.0);
        let len = queues.len().max(index + 1);
        queues.resize(len, None);
        queues[index].insert(Rc::new(RefCell::new(InFlight::growing(entries)))).clone()
    }

    /// A queue was deleted, and perhaps another queue of the same number exists.
    fn forget(&self, id: QueueId, queue: &OfQueue) {
        if let Some(place) = self.0.borrow_mut().get_mut(usize::from(id.0)) {
            place.take_if(|there| Rc::ptr_eq(there, queue));
        }
    }

    /// Takes a command that has completed.
    fn take(&self, queue: u16, cid: u16) -> Option<Outstanding> {
        self.0.borrow().get(usize::from(queue))?.as_ref()?.borrow_mut().remove(cid)
    }
}

impl HostMemory for Host {
    fn page(&self) -> u32 {
        PAGE
    }

    fn vectors(&self) -> u16 {
        self.vectors
    }

    fn submissions(&self, id: QueueId, base: u64, entries: u32) -> Rc<dyn SubmissionMemory> {
        self.doorbells.created(QueueKind::Submission, id, entries);
        let came = self.came.clone();
        let queue = GuestSubmissions::new(&self.outbox.sim, &self.dma, id, base, entries, PAGE);
        let queue = queue.tells(Rc::new(move |queue, tail| came.borrow_mut().push((queue, tail))));
        if id == QueueId::ADMIN {
            return Rc::new(queue);
        }
        let (connection, export, sizes) = (self.connection, self.export, self.sizes.clone());
        let (own, commands) = (self.commands.add(id, entries), self.commands.clone());
        let tape = self.tape.clone();
        Rc::new(Counted { queue, id, tape, connection, export, sizes, own, commands })
    }

    fn completions(&self, id: QueueId, base: u64, entries: u32, vector: Option<u16>) -> Rc<dyn CompletionMemory> {
        self.doorbells.created(QueueKind::Completion, id, entries);
        let (outbox, connection) = (self.outbox.clone(), self.connection);
        let notify = vector.map(|vector| {
            let tell = move || outbox.to_hosts.borrow_mut().push(ToHost { connection, what: What::Interrupt(vector) });
            Rc::new(tell) as Rc<dyn Fn()>
        });
        let queue = GuestCompletions::new(&self.dma, base, entries, notify);
        Rc::new(Counting { queue, commands: self.commands.clone(), outbox: self.outbox.clone() })
    }

    fn takes_doorbell_buffers(&self) -> bool {
        true
    }

    /// The code that watches doorbells sends no messages.
    fn can_watch(&self, address: u64) -> bool {
        let checked = self.dma.check(address, PAGE as usize, Access::Read);
        checked.is_ok() || checked.is_err_and(|fault| !fault.is_remote)
    }

    fn set_doorbell_buffers(&self, buffers: Option<DoorbellBuffers>) {
        self.doorbells.set_buffers(buffers);
    }
}

/// A submission queue whose commands are counted.
struct Counted {
    queue: GuestSubmissions,
    id: QueueId,
    tape: Tape,
    connection: ConnectionId,
    export: u16,
    sizes: Rc<BlockSizes>,
    /// Its commands, which `commands` has too.
    own: OfQueue,
    commands: Rc<Commands>,
}

impl SubmissionMemory for Counted {
    fn entries(&self) -> u32 {
        self.queue.entries()
    }

    fn rung(&self, from: u16, to: u16) {
        self.queue.rung(from, to);
    }

    fn fetch(&self, head: u16) -> Option<Submission> {
        let submission = self.queue.fetch(head)?;
        let Submission { entry, submitted, .. } = &submission;
        if let Some(recorder) = &mut *self.tape.borrow_mut() {
            let of = (self.connection, self.export, self.sizes.get(entry.nsid.get()));
            recorder.fetched(of, self.id, *submitted, entry);
        }
        let of = (self.connection, self.export);
        let command = Outstanding {
            tag: entry.cid.get().into(),
            queue: Some(self.id),
            ..Outstanding::of(of, entry, &self.sizes, *submitted)
        };
        // A host may use an identifier twice at a time: the latter counts.
        self.own.borrow_mut().replace(entry.cid.get(), command);
        Some(submission)
    }

    fn is_coming(&self) -> bool {
        self.queue.is_coming()
    }

    fn peek(&self, index: u16) -> Option<Peeked> {
        self.queue.peek(index)
    }
}

impl Drop for Counted {
    /// Removes the queue's commands, whose completions will not be seen.
    fn drop(&mut self) {
        self.commands.forget(self.id, &self.own);
    }
}

/// A completion queue that releases the counted completions.
struct Counting {
    queue: GuestCompletions,
    commands: Rc<Commands>,
    outbox: Rc<Outbox>,
}

impl CompletionMemory for Counting {
    fn entries(&self) -> u32 {
        self.queue.entries()
    }

    fn is_reachable(&self, tail: u16) -> bool {
        self.queue.is_reachable(tail)
    }

    fn post(&self, tail: u16, posted: Posted) {
        let Posted { entry, breakdown } = posted;
        self.queue.post(tail, Posted { entry, breakdown: Breakdown::new() });
        if let Some(command) = self.commands.take(entry.sq_id.get(), entry.cid.get()) {
            let (dw0, dw1) = (entry.dw0.get(), entry.dw1.get());
            self.outbox.release(command, Completion { status: entry.status(), dw0, dw1, breakdown });
        }
    }

    fn notify(&self) {
        self.queue.notify();
    }
}
