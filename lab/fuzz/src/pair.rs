//! A queue pair that counts completions: no command completes twice, and all end.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use nandscape_drive::ring::{Ring, Submission};
use nandscape_drive::{Controller, HostMem, QueueId};
use nandscape_sim::Sim;
use nandscape_wire_nvme::command::{FLAGS_FUSED, FLAGS_FUSED_FIRST};
use nandscape_wire_nvme::{AdminOpcode, SubmissionEntry};

/// Entries of a queue.
pub(crate) const ENTRIES: u32 = 32;

/// See the module.
pub(crate) struct Pair {
    id: QueueId,
    sim: Sim,
    controller: Rc<dyn Controller>,
    ring: Rc<Ring>,
    tail: Cell<u16>,
    head: Cell<u16>,
    phase: Cell<bool>,
    next_cid: Cell<u16>,
    /// Commands that have not completed, by identifier.
    outstanding: RefCell<BTreeMap<u16, SubmissionEntry>>,
}

impl Pair {
    /// A queue pair of `controller`; `None` where the controller takes none now.
    pub(crate) fn new(sim: &Sim, controller: &Rc<dyn Controller>, id: u16) -> Option<Pair> {
        let (id, ring) = (QueueId(id), Rc::new(Ring::new(ENTRIES, None)));
        controller.create_queue_pair(id, ring.clone(), ring.clone()).ok()?;
        Some(Pair {
            id,
            sim: sim.clone(),
            controller: controller.clone(),
            ring,
            tail: Cell::new(0),
            head: Cell::new(0),
            phase: Cell::new(true),
            next_cid: Cell::new(0),
            outstanding: RefCell::default(),
        })
    }

    /// Takes completed commands.
    ///
    /// # Panics
    /// When a command has completed that was not outstanding.
    pub(crate) fn reap(&self) {
        while let Some(posted) = self.ring.reap(self.head.get(), self.phase.get()) {
            let cid = posted.entry.cid.get();
            let ended = self.outstanding.borrow_mut().remove(&cid);
            assert!(ended.is_some(), "command {cid} of queue {:?} has completed and is not outstanding", self.id);
            self.head.set(self.ring.next(self.head.get()));
            if self.head.get() == 0 {
                self.phase.set(!self.phase.get());
            }
        }
        self.controller.ring_completion(self.id, self.head.get());
    }

    /// Submits a command, unless the queue is full. The first half of a fused operation waits for the next command; one
    /// doorbell announces both.
    pub(crate) fn submit(&self, entry: SubmissionEntry, mem: HostMem) {
        self.reap();
        let cid = self.next_cid.replace(self.next_cid.get().wrapping_add(1));
        if self.outstanding.borrow().len() as u32 >= ENTRIES - 1 {
            return;
        }
        let entry = SubmissionEntry { cid: cid.into(), ..entry };
        self.outstanding.borrow_mut().insert(cid, entry);
        self.ring.put(self.tail.get(), Submission { entry, mem, submitted: self.sim.now() });
        self.tail.set(self.ring.next(self.tail.get()));
        if entry.flags & FLAGS_FUSED != FLAGS_FUSED_FIRST {
            self.ring();
        }
    }

    /// Rings the submission doorbell.
    pub(crate) fn ring(&self) {
        self.controller.ring_submission(self.id, self.tail.get());
    }

    /// Aborts a command by its number.
    pub(crate) fn abort(&self, cid: u16) {
        self.controller.abort(self.id, cid);
    }

    /// Checks that all commands have ended but event requests, which wait for events.
    ///
    /// # Panics
    /// When others have not.
    pub(crate) fn check_ended(&self) {
        self.reap();
        let waits = |entry: &SubmissionEntry| {
            self.id == QueueId::ADMIN && entry.opcode == AdminOpcode::ASYNCHRONOUS_EVENT_REQUEST.0
        };
        let outstanding = self.outstanding.borrow();
        let left: Vec<&SubmissionEntry> = outstanding.values().filter(|entry| !waits(entry)).collect();
        assert!(left.is_empty(), "commands of queue {:?} have not ended: {left:?}", self.id);
    }
}
