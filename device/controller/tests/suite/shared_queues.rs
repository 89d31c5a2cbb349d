//! Several submission queues of a host in this process on one completion queue: order, heads, deletion, resets, and the checks that
//! every drive must pass.
//! `NANDSCAPE_TEST_SEED` sets the seed of the random test; a failure prints it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::common::{Drive, ENTRIES, PAIRS, Pair, config, drive, read, with};
use nandscape_device_controller::ControllerConfig;
use nandscape_drive::Drive as _;
use nandscape_drive::conformance::{self, Subject};
use nandscape_drive::io::Sink;
use nandscape_drive::ring::{Ring, Submission};
use nandscape_drive::{CommandRef, Completion, Controller, DriveInfo, HostMem, Io, QueueDrive, QueueId, Token};
use nandscape_sim::{Seed, Sim, Span};
use nandscape_wire_nvme::{Status, SubmissionEntry};

/// Longer than any command here takes.
const LONG: Span = Span::from_ms(100);

/// Commands by their tags: queue and number.
#[derive(Default)]
struct Log {
    submitted: Cell<u64>,
    ended: RefCell<Vec<(u64, Status)>>,
}

impl Sink for Log {
    fn complete(&self, tag: u64, completion: Completion) {
        self.ended.borrow_mut().push((tag, completion.status.meaning()));
    }

    fn is_stopped(&self) -> bool {
        false
    }
}

impl Log {
    fn submit(self: &Rc<Self>, drive: &QueueDrive) {
        let tag = u64::from(drive.id().0) << 32 | self.submitted.get();
        self.submitted.set(self.submitted.get() + 1);
        // Reads of one unmapped block each, which end in the order in which they are fetched.
        drive.submit(Io { command: read(0, 1), mem: HostMem::zeroed(512), token: Token::new(self.clone(), tag) });
    }

    /// The numbers of the commands of a queue, in the order of their ends.
    fn of(&self, id: QueueId) -> Vec<u64> {
        let ended = self.ended.borrow();
        ended.iter().filter(|(tag, _)| tag >> 32 == u64::from(id.0)).map(|(tag, _)| tag & 0xffff_ffff).collect()
    }
}

/// A completion queue with a submission queue for each length.
fn shared(sim: &Sim, drive: &Drive, lengths: &[u32]) -> Vec<Rc<QueueDrive>> {
    let first = QueueDrive::new(sim, drive.clone(), QueueId(1), lengths[0]).unwrap();
    let others = (2..).zip(&lengths[1..]).map(|(id, entries)| first.sharing(QueueId(id), *entries).unwrap());
    std::iter::once(first.clone()).chain(others).collect()
}

/// A drive whose commands go to several queues in turn.
struct InTurn {
    queues: Vec<Rc<QueueDrive>>,
    next: Cell<usize>,
}

impl nandscape_drive::Drive for InTurn {
    fn info(&self) -> DriveInfo {
        self.queues[0].info()
    }

    fn submit(&self, io: Io) {
        let number = self.next.get();
        self.next.set((number + 1) % self.queues.len());
        self.queues[number].submit(io);
    }

    fn cancel(&self, command: CommandRef) -> bool {
        self.queues.iter().any(|queue| queue.cancel(command))
    }
}

#[test]
fn queues_that_share_pass_the_checks_of_every_drive() {
    let make = |sim: &Sim| {
        let queues = shared(sim, &drive(sim, config()), &[5, 16, 3]);
        Subject::new(Rc::new(InTurn { queues, next: Cell::new(0) }))
    };
    conformance::all(&make, 43).unwrap();
}

#[test]
fn each_command_of_each_queue_ends_once_and_in_order() {
    let seed = std::env::var("NANDSCAPE_TEST_SEED").map_or(43, |text| text.parse().expect("it is a number"));
    for round in 0..12 {
        let mut rng = Seed::new(seed).child("shared queues").nth(round).rng();
        with(ControllerConfig { command_slots: 1 + rng.below(8) as u32, ..config() }, async |sim, drive| {
            // Fewer entries of the completion queue than commands in work: fetching waits for the host.
            let lengths: Vec<u32> = (0..PAIRS).map(|_| 2 + rng.below(7) as u32).collect();
            let (queues, log) = (shared(sim, drive, &lengths), Rc::new(Log::default()));
            for _ in 0..200 {
                log.submit(&queues[rng.below(queues.len() as u64) as usize]);
                sim.sleep(Span::from_us(rng.below(6))).await;
            }
            sim.sleep(LONG).await;
            let ended = log.ended.borrow().len();
            let at = format!("NANDSCAPE_TEST_SEED={seed}, round {round}, {lengths:?}");
            assert_eq!(ended, 200, "{at}");
            assert!(log.ended.borrow().iter().all(|(_, status)| *status == Status::SUCCESS), "{at}");
            for queue in &queues {
                let ended = log.of(queue.id());
                assert!(ended.is_sorted(), "{at}: queue {:?}: {ended:?}", queue.id());
            }
        });
    }
}

#[test]
fn completions_name_their_queue_and_its_head() {
    with(config(), async |sim, drive| {
        let pair = Pair::new(sim, drive, 1, 8);
        let other = Rc::new(Ring::of_submissions(4));
        drive.create_submission_queue(QueueId(2), QueueId(1), other.clone()).unwrap();
        let mut tail = 0;
        for round in 0..5u16 {
            for cid in 0..2 {
                let entry = SubmissionEntry { cid: (100 + cid).into(), ..read(0, 1) };
                other.put(tail, Submission { entry, mem: HostMem::zeroed(512), submitted: sim.now() });
                tail = other.next(tail);
            }
            pair.put(read(0, 1), HostMem::zeroed(512));
            drive.ring_submission(QueueId(2), tail);
            sim.sleep(LONG).await;
            pair.ring();
            sim.sleep(LONG).await;
            let posted: Vec<(u16, u16)> = std::iter::from_fn(|| pair.reap())
                .map(|posted| (posted.entry.sq_id.get(), posted.entry.sq_head.get()))
                .collect();
            assert_eq!(posted, [(2, tail), (2, tail), (1, (round + 1) % 8)], "round {round}");
            pair.release();
        }
    });
}

#[test]
fn a_queue_is_deleted_alone_and_the_completion_queue_with_the_last() {
    with(ControllerConfig { command_slots: 2, ..config() }, async |sim, drive| {
        for first in 1..3 {
            let (mut queues, log) = (shared(sim, drive, &[8, 8, 8]), Rc::new(Log::default()));
            queues.iter().for_each(|queue| (0..20).for_each(|_| log.submit(queue)));
            sim.sleep(Span::from_us(7)).await;
            let gone = queues.remove(first);
            let id = gone.id();
            drop(gone);
            sim.sleep(LONG).await;
            let expected = |tag: u64| tag >> 32 == u64::from(id.0);
            let ended = log.ended.borrow().clone();
            assert_eq!(ended.len(), 60);
            assert!(ended.iter().all(|(tag, status)| *status == Status::SUCCESS || expected(*tag)), "{ended:?}");
            assert!(ended.iter().any(|(_, status)| *status == Status::ABORTED_SQ_DELETION), "some waited");
            queues.iter().for_each(|queue| log.submit(queue));
            sim.sleep(LONG).await;
            assert_eq!(log.ended.borrow().len(), 62, "the others go on");
            queues.iter().for_each(|queue| (0..20).for_each(|_| log.submit(queue)));
            drop(queues);
            sim.sleep(LONG).await;
            assert_eq!(log.ended.borrow().len(), 102, "each command ends");
            // The numbers are free again, and the first drive may be dropped before the others.
            let (mut queues, log) = (shared(sim, drive, &[8, 8]), Rc::new(Log::default()));
            queues.iter().for_each(|queue| (0..20).for_each(|_| log.submit(queue)));
            drop(queues.remove(0));
            sim.sleep(LONG).await;
            assert!(log.ended.borrow().iter().all(|(_, status)| *status == Status::SUCCESS), "it stays for the other");
            assert_eq!(log.ended.borrow().len(), 40);
            drop(queues);
            sim.sleep(LONG).await;
            drop(shared(sim, drive, &[4, 4, 4, 4]));
            sim.sleep(LONG).await;
        }
    });
}

#[test]
fn a_reset_ends_the_commands_of_all() {
    with(ControllerConfig { command_slots: 2, ..config() }, async |sim, drive| {
        let (queues, log) = (shared(sim, drive, &[8, 8, 8]), Rc::new(Log::default()));
        queues.iter().for_each(|queue| (0..20).for_each(|_| log.submit(queue)));
        sim.sleep(Span::from_us(7)).await;
        drive.reset_function();
        sim.sleep(LONG).await;
        assert_eq!(log.ended.borrow().len(), 60);
        queues.iter().for_each(|queue| log.submit(queue));
        let ended = log.ended.borrow();
        assert!(ended[60..].iter().all(|(_, status)| *status == Status::ABORTED_SQ_DELETION), "{:?}", &ended[60..]);
    });
}

#[test]
fn a_queue_is_rejected_without_its_completion_queue_or_a_free_number() {
    with(config(), async |sim, drive| {
        let create = |id, to, entries| {
            let ring = Rc::new(Ring::of_submissions(entries));
            drive.create_submission_queue(QueueId(id), QueueId(to), ring).map_err(Status::meaning)
        };
        let first = QueueDrive::new(sim, drive.clone(), QueueId(1), 8).unwrap();
        assert_eq!(create(2, 3, 8), Err(Status::COMPLETION_QUEUE_INVALID));
        assert_eq!(create(2, PAIRS + 1, 8), Err(Status::COMPLETION_QUEUE_INVALID));
        assert_eq!(create(2, 0, 8), Err(Status::INVALID_QUEUE_ID), "the admin queue");
        assert_eq!(create(0, 1, 8), Err(Status::INVALID_QUEUE_ID), "the admin queue");
        assert_eq!(create(1, 1, 8), Err(Status::INVALID_QUEUE_ID), "in use");
        assert_eq!(create(PAIRS + 1, 1, 8), Err(Status::INVALID_QUEUE_ID), "beyond the limit");
        assert_eq!(create(2, 1, ENTRIES + 1), Err(Status::INVALID_QUEUE_SIZE));
        assert_eq!(create(2, 1, 8), Ok(()));
        // A completion queue that is left alone goes with its last queue.
        drop(first);
        drive.delete_queue_pair(QueueId(2)).unwrap();
        assert_eq!(create(2, 1, 8), Err(Status::COMPLETION_QUEUE_INVALID));
        assert!(QueueDrive::new(sim, drive.clone(), QueueId(1), 8).is_ok());
    });
}
