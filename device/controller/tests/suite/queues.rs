//! Queue pairs entry by entry: wrapping, full queues, doorbells rung wrongly, arbitration, creation and deletion.

use std::cell::RefCell;
use std::rc::Rc;

use crate::common::{ENTRIES, PAIRS, Pair, config, host, read, with, write};
use nandscape_device_controller::ControllerConfig;
use nandscape_drive::ring::Ring;
use nandscape_drive::{Controller, HostMem, QueueId};
use nandscape_sim::Span;
use nandscape_wire_nvme::{Status, SubmissionEntry, feature};

/// Longer than any command here takes.
const LONG: Span = Span::from_ms(100);

#[test]
fn both_queues_wrap_and_each_completion_says_how_far_the_controller_has_come() {
    with(config(), async |sim, drive| {
        let pair = Pair::new(sim, drive, 1, 4);
        let (mut expected, mut fetched) = (0, 0);
        for round in 0..50u16 {
            // One entry always stays empty: at most three.
            let count = 1 + round % 3;
            fetched += count;
            for _ in 0..count {
                pair.put(read(0, 1), HostMem::none());
            }
            pair.ring();
            sim.sleep(LONG).await;
            for _ in 0..count {
                let posted = pair.reap().expect("a completion a command");
                assert_eq!(posted.entry.cid.get(), expected);
                assert_eq!((posted.entry.sq_id.get(), posted.entry.status()), (1, Status::SUCCESS));
                // All of the round had been fetched before the first of them completed.
                assert_eq!(posted.entry.sq_head.get(), fetched % 4);
                expected += 1;
            }
            assert!(pair.reap().is_none());
            pair.release();
        }
    });
}

#[test]
fn completions_wait_until_the_host_makes_room() {
    with(config(), async |sim, drive| {
        let pair = Pair::new(sim, drive, 1, 4);
        let mut put = Vec::new();
        for _ in 0..3 {
            put.extend((0..3).map(|_| pair.put(read(0, 1), HostMem::none())));
            pair.ring();
            // Time enough for all of them to be served.
            sim.sleep(LONG).await;
        }
        // The queue has four entries, one of which stays empty; nothing in it was overwritten.
        let mut reaped: Vec<u16> = std::iter::from_fn(|| pair.reap()).map(|posted| posted.entry.cid.get()).collect();
        assert_eq!(reaped, put[..3]);
        sim.sleep(LONG).await;
        assert!(pair.reap().is_none(), "no doorbell, no room");
        pair.release();
        reaped.extend(std::iter::from_fn(|| pair.reap()).map(|posted| posted.entry.cid.get()));
        assert_eq!(reaped, put[..6], "room for three is filled at once");
        pair.release();
        assert!(pair.reap().is_none(), "while completions waited, nothing more was fetched");
        sim.sleep(LONG).await;
        reaped.extend(pair.reap_all());
        assert_eq!(reaped, put, "none is lost, none comes twice, in the order in which they ended");
    });
}

#[test]
fn one_entry_released_is_one_completion_posted() {
    with(config(), async |sim, drive| {
        let pair = Pair::new(sim, drive, 1, 3);
        for _ in 0..3 {
            for _ in 0..2 {
                pair.put(read(0, 1), HostMem::none());
            }
            pair.ring();
            sim.sleep(LONG).await;
        }
        let mut reaped = vec![pair.reap().unwrap().entry.cid.get(), pair.reap().unwrap().entry.cid.get()];
        // Release the first of the two only.
        drive.ring_completion(pair.id, 1);
        reaped.push(pair.reap().unwrap().entry.cid.get());
        assert!(pair.reap().is_none());
        for _ in 0..4 {
            pair.release();
            reaped.extend(pair.reap_all());
            sim.sleep(LONG).await;
        }
        assert_eq!(reaped, [0, 1, 2, 3, 4, 5]);
    });
}

#[test]
fn a_host_that_takes_no_completions_is_not_fetched_from() {
    with(config(), async |sim, drive| {
        let pair = Pair::new(sim, drive, 1, 4);
        let other = Pair::new(sim, drive, 2, 4);
        for _ in 0..3 {
            for _ in 0..3 {
                pair.put(read(0, 1), HostMem::none());
            }
            pair.ring();
            sim.sleep(LONG).await;
        }
        // Another queue continues.
        let cid = other.put(read(0, 1), HostMem::none());
        other.ring();
        sim.sleep(LONG).await;
        assert_eq!(other.reap_all(), [cid]);
        // However often the doorbell is rung.
        (0..1_000).for_each(|_| pair.ring());
        sim.sleep(LONG).await;
        let heads: Vec<u16> = std::iter::from_fn(|| pair.reap()).map(|posted| posted.entry.sq_head.get()).collect();
        assert_eq!(heads, [3, 3, 3]);
    });
}

/// Fills `counts[i]` commands into queue i + 1, rings all doorbells, and returns the order in which the queues were served.
fn service_order(burst_log2: u32, counts: &[u16]) -> Vec<u16> {
    let config = ControllerConfig { command_slots: 1, ..config() };
    with(config, async |sim, drive| {
        let admin = host(sim, drive, QueueId::ADMIN);
        let set = SubmissionEntry::set_features(feature::ARBITRATION, burst_log2);
        assert!(admin.execute(set, HostMem::none()).await.unwrap().status.is_success());
        let order = Rc::new(RefCell::new(Vec::new()));
        let pairs: Vec<Pair> = (1..).zip(counts).map(|(id, _)| Pair::new(sim, drive, id, 64)).collect();
        for (pair, count) in pairs.iter().zip(counts) {
            for _ in 0..*count {
                pair.put(read(0, 1), HostMem::none());
            }
        }
        pairs.iter().for_each(Pair::ring);
        let total: usize = counts.iter().map(|count| usize::from(*count)).sum();
        while order.borrow().len() < total {
            sim.sleep(Span::from_ns(500)).await;
            for pair in &pairs {
                order.borrow_mut().extend(pair.reap_all().iter().map(|_| pair.id.0));
            }
        }
        order.take()
    })
}

#[test]
fn queues_take_turns() {
    // The first doorbell finds the only command slot free.
    assert_eq!(service_order(0, &[4, 4, 4]), [1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3]);
    assert_eq!(service_order(1, &[4, 4, 4]), [1, 1, 2, 2, 3, 3, 1, 1, 2, 2, 3, 3]);
    assert_eq!(service_order(0, &[6, 1, 2]), [1, 2, 3, 1, 3, 1, 1, 1, 1]);
    assert_eq!(service_order(7, &[5, 2]), [1, 1, 1, 1, 1, 2, 2], "no limit");
    assert_eq!(service_order(3, &[20, 1])[8], 2, "a burst of eight, and then the other");
}

#[test]
fn a_deep_queue_does_not_starve_a_shallow_one() {
    let served = with(ControllerConfig { command_slots: 1, ..config() }, async |sim, drive| {
        let (deep, shallow) = (Pair::new(sim, drive, 1, 64), Pair::new(sim, drive, 2, 2));
        let (mut deep_served, mut shallow_served) = (0, 0);
        // Refilled whenever it empties; the other has one command at a time.
        shallow.put(read(0, 1), HostMem::none());
        shallow.ring();
        let mut outstanding = 0;
        while shallow_served < 50 {
            while outstanding < 60 {
                deep.put(read(0, 1), HostMem::none());
                outstanding += 1;
            }
            deep.ring();
            sim.sleep(Span::from_us(1)).await;
            let done = deep.reap_all().len();
            (deep_served, outstanding) = (deep_served + done, outstanding - done);
            if !shallow.reap_all().is_empty() {
                shallow_served += 1;
                shallow.put(read(0, 1), HostMem::none());
                shallow.ring();
            }
        }
        deep_served
    });
    // Between two commands of the shallow queue come a burst of eight, and at most one more in progress.
    assert!(served <= 50 * 9, "{served} commands of the deep queue beside 50 of the shallow one");
}

#[test]
fn doorbells_rung_wrongly_are_ignored() {
    with(config(), async |sim, drive| {
        let pair = Pair::new(sim, drive, 1, 4);
        let cid = pair.put(read(0, 1), HostMem::none());
        // Values outside the queue; queues that do not exist.
        for (id, value) in [(1, 4), (1, u16::MAX), (2, 1), (PAIRS + 1, 1), (u16::MAX, 1)] {
            drive.ring_submission(QueueId(id), value);
            drive.ring_completion(QueueId(id), value);
        }
        sim.sleep(LONG).await;
        assert!(pair.reap().is_none(), "nothing was submitted yet");
        pair.ring();
        pair.ring();
        sim.sleep(LONG).await;
        // More than was posted.
        drive.ring_completion(pair.id, 3);
        assert_eq!(pair.reap_all(), [cid], "rung twice, fetched once");
        // The next completion is correct.
        let more: Vec<u16> = (0..3).map(|_| pair.put(read(0, 1), HostMem::none())).collect();
        pair.ring();
        sim.sleep(LONG).await;
        assert_eq!(pair.reap_all(), more);
    });
}

#[test]
fn pairs_are_created_within_the_limits() {
    with(config(), async |_, drive| {
        let create = |id, entries| {
            let ring = Rc::new(Ring::new(entries, None));
            drive.create_queue_pair(QueueId(id), ring.clone(), ring)
        };
        let delete = |id| drive.delete_queue_pair(QueueId(id)).map_err(Status::meaning);
        let meaning = |result: Result<(), Status>| result.map_err(Status::meaning);
        assert_eq!(meaning(create(PAIRS, ENTRIES)), Ok(()));
        assert_eq!(meaning(create(PAIRS, 8)), Err(Status::INVALID_QUEUE_ID), "in use");
        assert_eq!(meaning(create(PAIRS + 1, 8)), Err(Status::INVALID_QUEUE_ID), "beyond the limit");
        assert_eq!(meaning(create(u16::MAX, 8)), Err(Status::INVALID_QUEUE_ID));
        assert_eq!(meaning(create(1, ENTRIES + 1)), Err(Status::INVALID_QUEUE_SIZE));
        assert_eq!(meaning(create(1, 2)), Ok(()));
        assert_eq!(delete(2), Err(Status::INVALID_QUEUE_ID));
        assert_eq!(delete(u16::MAX), Err(Status::INVALID_QUEUE_ID));
        assert_eq!(delete(1), Ok(()));
        assert_eq!(delete(1), Err(Status::INVALID_QUEUE_ID));
        assert_eq!(meaning(create(1, 2)), Ok(()));
    });
}

#[test]
fn a_pair_that_is_deleted_completes_nothing_into_its_successor() {
    with(ControllerConfig { command_slots: 2, ..config() }, async |sim, drive| {
        let old = Pair::new(sim, drive, 1, 16);
        for _ in 0..10 {
            let (entry, mem) = write(0, 8);
            old.put(entry, mem);
        }
        old.ring();
        sim.sleep(Span::from_us(2)).await;
        drive.delete_queue_pair(old.id).unwrap();
        old.ring();
        // The number is free when the commands of the old pair have ended.
        sim.sleep(LONG).await;
        let new = Pair::new(sim, drive, 1, 16);
        sim.sleep(LONG).await;
        assert!(new.reap().is_none());
        let cid = new.put(read(0, 8), HostMem::none());
        new.ring();
        sim.sleep(LONG).await;
        assert_eq!(new.reap_all(), [cid], "the command slots of the old pair are free again");
    });
}
