//! A queue pair of a host whose commands and completions pass as messages (NVMe over Fabrics). The entries are in our
//! own memory; a completion is put into the port's outbox under the tag of its command.
//!
//! The host's command identifiers stay in the commands, so that Abort and the error log use the host's numbers.
//!
//! The first command of a fused operation is announced together with the next command of the queue, by one doorbell
//! (Base 3.4.2). The transport submits it only right before the second one.
//!
//! Left out: messages and flow control, which are the transport's.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use nandscape_drive::queue_memory::{MIN_ENTRIES, Peeked};
use nandscape_drive::ring::{Posted, Submission};
use nandscape_drive::{BlockSizes, Completion, CompletionMemory, Controller, HostMem, QueueId, SubmissionMemory};
use nandscape_wire_nvme::command::{FLAGS_FUSED, FLAGS_FUSED_FIRST};
use nandscape_wire_nvme::{Status, SubmissionEntry, register};

use crate::in_flight::InFlight;
use crate::outbox::{Outbox, Outstanding};
use crate::port::ConnectionId;

/// See the module.
pub(crate) struct MessageQueue {
    pub(crate) id: QueueId,
    connection: ConnectionId,
    export: u16,
    sizes: Rc<BlockSizes>,
    outbox: Rc<Outbox>,
    controller: Weak<dyn Controller>,
    ring: RefCell<Box<[Submission]>>,
    /// The places of the next command and of the next completion.
    tails: Cell<(u16, u16)>,
    /// Outstanding commands.
    commands: RefCell<InFlight>,
    state: Cell<State>,
    /// The last command is the first of a fused operation, and its doorbell was not rung.
    held: Cell<bool>,
}

/// The fate of a queue's commands.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum State {
    /// The controller gets them.
    Open,
    /// They are rejected: a controller that is shut down processes only Fabrics commands (Base 3.6.2).
    ShutDown,
    /// The controller has deleted the queue, or does not have it yet.
    Deleted,
}

/// The owner of a queue.
pub(crate) struct Place {
    pub(crate) connection: ConnectionId,
    pub(crate) export: u16,
    pub(crate) sizes: Rc<BlockSizes>,
    pub(crate) id: QueueId,
}

impl MessageQueue {
    /// The queue `id` of a controller, for at most `depth` commands at a time. The controller does not have it yet.
    pub(crate) fn new(place: Place, depth: u16, outbox: &Rc<Outbox>, controller: &Rc<dyn Controller>) -> MessageQueue {
        let Place { connection, export, sizes, id } = place;
        let entries = (u32::from(depth) + 1).max(MIN_ENTRIES) as usize;
        MessageQueue {
            id,
            connection,
            export,
            sizes,
            outbox: outbox.clone(),
            controller: Rc::downgrade(controller),
            ring: RefCell::new(vec![Submission::default(); entries].into()),
            tails: Cell::new((0, 0)),
            commands: RefCell::new(InFlight::new(depth)),
            state: Cell::new(State::Deleted),
            held: Cell::new(false),
        }
    }

    /// Creates the queue in the controller.
    ///
    /// # Errors
    /// Those of [`Controller::create_queue_pair`].
    pub(crate) fn create(self: &Rc<Self>, controller: &dyn Controller) -> Result<(), Status> {
        self.tails.set((0, 0));
        controller.create_queue_pair(self.id, self.clone(), self.clone())?;
        self.state.set(State::Open);
        self.held.set(false);
        self.follow_shutdown(controller);
        Ok(())
    }

    /// The host has written CC, or the queue is new: a shutdown may have begun or ended.
    pub(crate) fn follow_shutdown(&self, controller: &dyn Controller) {
        if !self.is_deleted() {
            let is_shut_down = controller.register(register::CSTS) & register::CSTS_SHST != 0;
            self.state.set(if is_shut_down { State::ShutDown } else { State::Open });
        }
    }

    /// Commands that have not completed. Admin commands are not counted: some never do.
    pub(crate) fn outstanding(&self) -> usize {
        if self.id == QueueId::ADMIN { 0 } else { self.commands.borrow().len() }
    }

    /// The controller does not have the queue.
    pub(crate) fn is_deleted(&self) -> bool {
        self.state.get() == State::Deleted
    }

    /// Submits a command to the controller. If that is impossible, the command completes at once.
    pub(crate) fn submit(&self, controller: &dyn Controller, tag: u64, entry: SubmissionEntry, mem: HostMem) {
        let now = self.outbox.sim.now();
        let is_admin = self.id == QueueId::ADMIN;
        let command = Outstanding {
            tag,
            is_admin,
            is_forced_write: !is_admin && entry.is_forced_write(),
            ..Outstanding::of((self.connection, self.export), &entry, &self.sizes, now)
        };
        let refusal = match self.state.get() {
            State::Open => self.commands.borrow_mut().insert(entry.cid.get(), command),
            State::Deleted => Err((command, Status::ABORTED_SQ_DELETION)),
            State::ShutDown => {
                let status = controller.refuse(self.id, &entry, Status::COMMAND_SEQUENCE_ERROR.final_());
                Err((command, status))
            }
        };
        if let Err((command, status)) = refusal {
            self.outbox.release(command, Completion::of(status));
            if self.held.take() {
                // The command before it is single.
                controller.ring_submission(self.id, self.tails.get().0);
            }
            return;
        }
        let (tail, posted) = self.tails.get();
        let mut ring = self.ring.borrow_mut();
        ring[usize::from(tail)] = Submission { entry, mem, submitted: now };
        let tail = if usize::from(tail) + 1 == ring.len() { 0 } else { tail + 1 };
        drop(ring);
        self.tails.set((tail, posted));
        self.held.set(entry.flags & FLAGS_FUSED == FLAGS_FUSED_FIRST && self.id != QueueId::ADMIN);
        if !self.held.get() {
            controller.ring_submission(self.id, tail);
        }
    }
}

impl SubmissionMemory for MessageQueue {
    fn entries(&self) -> u32 {
        self.ring.borrow().len() as u32
    }

    fn fetch(&self, head: u16) -> Option<Submission> {
        let slot = &mut self.ring.borrow_mut()[usize::from(head)];
        Some(Submission { entry: slot.entry, mem: std::mem::take(&mut slot.mem), submitted: slot.submitted })
    }

    fn peek(&self, index: u16) -> Option<Peeked> {
        let Submission { entry, submitted, .. } = &self.ring.borrow()[usize::from(index)];
        Some(Peeked::of(entry, *submitted))
    }
}

impl CompletionMemory for MessageQueue {
    fn entries(&self) -> u32 {
        self.ring.borrow().len() as u32
    }

    fn post(&self, tail: u16, posted: Posted) {
        let Posted { entry, breakdown } = posted;
        let next = if u32::from(tail) + 1 == CompletionMemory::entries(self) { 0 } else { tail + 1 };
        self.tails.set((self.tails.get().0, next));
        let command = self.commands.borrow_mut().remove(entry.cid.get());
        let command = command.expect("a command completes once");
        let (status, dw0, dw1) = (entry.status(), entry.dw0.get(), entry.dw1.get());
        self.outbox.release(command, Completion { status, dw0, dw1, breakdown });
    }

    /// The completion is on its way: its entry is free again.
    fn notify(&self) {
        if let Some(controller) = self.controller.upgrade() {
            controller.ring_completion(self.id, self.tails.get().1);
        }
    }

    /// Commands that were not posted complete as aborted. An I/O queue ends its connection; the admin queue returns
    /// when the controller is enabled again.
    fn released(&self) {
        self.state.set(State::Deleted);
        self.ring.borrow_mut().iter_mut().for_each(|submission| submission.mem = HostMem::none());
        let commands = self.commands.borrow_mut().take_all();
        for command in commands {
            self.outbox.release(command, Completion::of(Status::ABORTED_SQ_DELETION));
        }
        if self.id != QueueId::ADMIN {
            self.outbox.ended.borrow_mut().push(self.connection);
        }
    }
}
