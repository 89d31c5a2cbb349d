//! Interrupt coalescing: by number, by time, per vector, and never for the admin queue.

use std::cell::RefCell;
use std::rc::Rc;

use crate::common::{Drive, config, host, read, with};
use nandscape_drive::ring::{Ring, Submission};
use nandscape_drive::{Controller, HostMem, QueueId};
use nandscape_sim::{Sim, Span, Time};
use nandscape_wire_nvme::{Status, SubmissionEntry, feature};

/// A queue pair that records its notifications.
struct Noting {
    ring: Rc<Ring>,
    id: QueueId,
    at: Rc<RefCell<Vec<Time>>>,
}

impl Noting {
    fn new(sim: &Sim, drive: &Drive, id: u16) -> Noting {
        let (at, sim) = (Rc::new(RefCell::new(Vec::new())), sim.clone());
        let noted = at.clone();
        let ring = Rc::new(Ring::new(64, Some(Rc::new(move || noted.borrow_mut().push(sim.now())))));
        drive.create_queue_pair(QueueId(id), ring.clone(), ring.clone()).unwrap();
        Noting { ring, id: QueueId(id), at }
    }

    /// Submits `count` reads of unwritten blocks at once. Returns the number of notifications, and the time of the last one,
    /// from now.
    async fn reads(&self, sim: &Sim, drive: &Drive, from: u16, count: u16) -> (usize, Span) {
        self.at.borrow_mut().clear();
        let begun = sim.now();
        for tail in from..from + count {
            let entry = SubmissionEntry { cid: tail.into(), ..read(0, 1) };
            self.ring.put(tail, Submission { entry, mem: HostMem::none(), submitted: sim.now() });
        }
        drive.ring_submission(self.id, from + count);
        sim.sleep(Span::from_ms(50)).await;
        drive.ring_completion(self.id, from + count);
        let at = self.at.borrow();
        (at.len(), at.last().map_or(Span::ZERO, |last| *last - begun))
    }
}

async fn set(sim: &Sim, drive: &Drive, id: u8, value: u32) {
    let ended =
        host(sim, drive, QueueId::ADMIN).execute(SubmissionEntry::set_features(id, value), HostMem::none()).await;
    assert_eq!(ended.unwrap().status, Status::SUCCESS);
}

#[test]
fn a_number_of_completions_or_the_age_of_the_first_notifies() {
    with(config(), async |sim, drive| {
        let queue = Noting::new(sim, drive, 1);
        assert_eq!(queue.reads(sim, drive, 0, 5).await.0, 5, "off by default");
        // Four completions, or 2 ms.
        set(sim, drive, feature::INTERRUPT_COALESCING, 3 | 20 << 8).await;
        assert_eq!(queue.reads(sim, drive, 5, 4).await.0, 1);
        let (count, last) = queue.reads(sim, drive, 9, 6).await;
        assert_eq!(count, 2, "four, and the rest when it is old enough");
        assert!((Span::from_ms(2)..Span::from_us(2_100)).contains(&last), "{last:?}");
        // Two vectors do not wait for each other.
        let other = Noting::new(sim, drive, 2);
        assert_eq!(other.reads(sim, drive, 0, 4).await.0, 1);
        set(sim, drive, feature::INTERRUPT_VECTOR, 1 << 16 | 2).await;
        assert_eq!(other.reads(sim, drive, 4, 3).await.0, 3, "this vector is excepted");
        assert_eq!(queue.reads(sim, drive, 15, 4).await.0, 1, "that one is not");
        set(sim, drive, feature::INTERRUPT_COALESCING, 3).await;
        assert_eq!(queue.reads(sim, drive, 19, 3).await.0, 3, "without a time there is none");
    });
}

/// Completions in a deleted queue are not notified any more, and the vector keeps working for other queues.
#[test]
fn a_queue_that_is_deleted_is_forgotten() {
    with(config(), async |sim, drive| {
        set(sim, drive, feature::INTERRUPT_COALESCING, 3 | 200 << 8).await;
        let queue = Noting::new(sim, drive, 1);
        let entry = SubmissionEntry { cid: 0.into(), ..read(0, 1) };
        queue.ring.put(0, Submission { entry, mem: HostMem::none(), submitted: sim.now() });
        drive.ring_submission(queue.id, 1);
        sim.sleep(Span::from_ms(1)).await;
        drive.delete_queue_pair(queue.id).unwrap();
        sim.sleep(Span::from_ms(50)).await;
        assert!(queue.at.borrow().is_empty(), "the host may have given its memory to others");
        let next = Noting::new(sim, drive, 1);
        assert_eq!(next.reads(sim, drive, 0, 4).await.0, 1);
    });
}
