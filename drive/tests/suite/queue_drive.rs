//! A drive over a queue pair: commands beyond its depth wait in order, and end when the pair is deleted.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use nandscape_drive::io::Sink;
use nandscape_drive::ring::{Posted, Submission};
use nandscape_drive::{
    Completion, CompletionMemory, Controller, Drive, DriveInfo, HostMem, HostMemory, Io, QueueDrive, QueueId,
    SubmissionMemory, Token,
};
use nandscape_sim::{Executor, Sim};
use nandscape_wire_nvme::{CompletionEntry, IoOpcode, Status, SubmissionEntry};

/// The memory of a queue pair.
type Queues = (Rc<dyn SubmissionMemory>, Rc<dyn CompletionMemory>);

/// A controller of one queue pair that completes commands when the test requests it.
#[derive(Default)]
struct Manual {
    queues: RefCell<Option<Queues>>,
    fetched: RefCell<Vec<Submission>>,
    head: Cell<u16>,
    cq_tail: Cell<u16>,
    phase: Cell<bool>,
    /// The addresses of all commands fetched, in order.
    order: RefCell<Vec<u64>>,
}

impl Manual {
    fn queues(&self) -> Queues {
        self.queues.borrow().clone().expect("created")
    }

    /// Completes the command fetched first.
    fn step(&self) {
        let Submission { entry, .. } = self.fetched.borrow_mut().remove(0);
        let mut completion = CompletionEntry { cid: entry.cid, sq_id: 1.into(), ..CompletionEntry::default() };
        completion.set_status(Status::SUCCESS, self.phase.get());
        let (_, completions) = self.queues();
        completions.post(self.cq_tail.get(), Posted { entry: completion, ..Posted::default() });
        self.cq_tail.set(after(self.cq_tail.get(), completions.entries()));
        if self.cq_tail.get() == 0 {
            self.phase.set(!self.phase.get());
        }
        completions.notify();
    }
}

/// The index after `index`.
fn after(index: u16, entries: u32) -> u16 {
    ((u32::from(index) + 1) % entries) as u16
}

impl Controller for Manual {
    fn info(&self) -> DriveInfo {
        DriveInfo {
            nsid: 1,
            blocks: 1_000,
            lba_bytes: 512,
            metadata_bytes: 0,
            max_blocks: 8,
            unit_bytes: 4_096,
            volatile_cache: false,
            keeps_data: false,
        }
    }

    fn create_queue_pair(
        &self,
        _: QueueId,
        submissions: Rc<dyn SubmissionMemory>,
        completions: Rc<dyn CompletionMemory>,
    ) -> Result<(), Status> {
        if self.queues.borrow().is_some() {
            return Err(Status::INVALID_QUEUE_ID);
        }
        self.phase.set(true);
        *self.queues.borrow_mut() = Some((submissions, completions));
        Ok(())
    }

    /// It has room for one pair.
    fn create_submission_queue(&self, _: QueueId, _: QueueId, _: Rc<dyn SubmissionMemory>) -> Result<(), Status> {
        Err(Status::INVALID_QUEUE_ID)
    }

    fn delete_queue_pair(&self, _: QueueId) -> Result<(), Status> {
        self.queues.take().map(|(_, completions)| completions.released()).ok_or(Status::INVALID_QUEUE_ID)
    }

    fn attach(&self, _: Rc<dyn HostMemory>) -> Result<(), Status> {
        Err(Status::COMMAND_SEQUENCE_ERROR)
    }

    fn detach(&self) {}

    fn ring_submission(&self, _: QueueId, tail: u16) {
        let (submissions, _) = self.queues();
        while self.head.get() != tail {
            let submission = submissions.fetch(self.head.get()).unwrap();
            self.order.borrow_mut().push(submission.entry.slba());
            self.fetched.borrow_mut().push(submission);
            self.head.set(after(self.head.get(), submissions.entries()));
        }
    }

    fn ring_completion(&self, _: QueueId, _: u16) {}
}

/// Submits a further command from within each of the first few completions.
struct Eager {
    sim: Sim,
    me: Weak<Eager>,
    drive: RefCell<Weak<QueueDrive>>,
    left: Cell<u64>,
    ended: RefCell<Vec<(u64, Status)>>,
}

impl Eager {
    fn submit(&self, tag: u64) {
        let token = Token::new(self.me.upgrade().expect("alive"), tag);
        let command = SubmissionEntry::blocks(IoOpcode::READ, 1, tag, 1);
        self.drive.borrow().upgrade().expect("alive").submit(Io { command, mem: HostMem::none(), token });
    }
}

impl Sink for Eager {
    fn complete(&self, tag: u64, completion: Completion) {
        self.ended.borrow_mut().push((tag, completion.status));
        if self.left.get() > 0 {
            self.left.set(self.left.get() - 1);
            self.submit(100 + tag);
        }
    }

    fn is_stopped(&self) -> bool {
        self.sim.is_stopped()
    }
}

fn eager(sim: &Sim, controller: &Rc<Manual>, entries: u32, left: u64) -> (Rc<QueueDrive>, Rc<Eager>) {
    let drive = QueueDrive::new(sim, controller.clone(), QueueId(1), entries).unwrap();
    let host = Rc::new_cyclic(|me| Eager {
        sim: sim.clone(),
        me: me.clone(),
        drive: RefCell::new(Rc::downgrade(&drive)),
        left: Cell::new(left),
        ended: RefCell::default(),
    });
    (drive, host)
}

#[test]
fn who_submits_from_a_completion_does_not_pass_those_who_wait() {
    let executor = Executor::new();
    let controller = Rc::new(Manual::default());
    let (_drive, host) = eager(&executor.sim(), &controller, 3, 3);
    (0..6).for_each(|tag| host.submit(tag));
    for _ in 0..9 {
        controller.step();
    }
    assert_eq!(*controller.order.borrow(), [0, 1, 2, 3, 4, 5, 100, 101, 102]);
    assert!(host.ended.borrow().iter().all(|(_, status)| status.is_success()));
}

#[test]
fn deleting_the_pair_ends_what_is_outstanding_and_what_waits() {
    let executor = Executor::new();
    let controller = Rc::new(Manual::default());
    let (drive, host) = eager(&executor.sim(), &controller, 3, 0);
    (0..4).for_each(|tag| host.submit(tag));
    controller.step();
    drop(drive);
    let aborted = Status::ABORTED_SQ_DELETION;
    let mut ended = host.ended.borrow().clone();
    ended.sort_by_key(|(tag, _)| *tag);
    assert_eq!(ended, [(0, Status::SUCCESS), (1, aborted), (2, aborted), (3, aborted)]);
}

/// A search for a free pair first meets pairs of others.
#[test]
fn a_pair_that_is_somebody_elses_stays_theirs() {
    let executor = Executor::new();
    let controller = Rc::new(Manual::default());
    let (drive, host) = eager(&executor.sim(), &controller, 3, 0);
    host.submit(0);
    let refusal = QueueDrive::new(&executor.sim(), controller.clone(), QueueId(1), 3).err();
    assert_eq!(refusal, Some(Status::INVALID_QUEUE_ID));
    assert!(controller.queues.borrow().is_some(), "the pair is still there");
    controller.step();
    assert_eq!(*host.ended.borrow(), [(0, Status::SUCCESS)]);
    drop(drive);
    assert!(controller.queues.borrow().is_none(), "its owner takes it along");
}

#[test]
fn a_power_cut_ends_nothing() {
    let executor = Executor::new();
    let controller = Rc::new(Manual::default());
    let (drive, host) = eager(&executor.sim(), &controller, 3, 0);
    (0..4).for_each(|tag| host.submit(tag));
    drop(executor);
    drop(drive);
    assert_eq!(*host.ended.borrow(), []);
}
