//! Write Uncorrectable during transactions that reads do not see yet: its mark is visible at its end, and it does not wait
//! for later transactions.

use std::cell::Cell;
use std::rc::Rc;

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Ssd};
use nandscape_drive::ring::{Ring, Submission};
use nandscape_drive::{HostMem, Issuer, QueueDrive, QueueId};
use nandscape_sim::{Executor, Seed, Sim, Span};
use nandscape_wire_nvme::command::{FLAGS_FUSED_FIRST, FLAGS_FUSED_SECOND};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

/// Blocks of 512 bytes in a unit.
const UNIT: u32 = 8;
/// FUA, in dword 12.
const FUA: u32 = 1 << 30;

/// A drive on which every write is a transaction. One with FUA waits for the log.
fn ssd(sim: &Sim) -> Rc<Ssd> {
    let mut profile = Profile::load("default").expect("a built-in profile");
    let changes = [
        "ftl.kind=ox_block",
        "capacity=8MiB",
        "geometry.channels=2",
        "geometry.dies_per_channel=1",
        "geometry.planes_per_die=2",
        "geometry.pages_per_block=16",
        "buffer.size=256KiB",
        "buffer.mode=volatile",
        "ftl.mapping_unit=4KiB",
        "lba_size=512",
        "ftl.over_provisioning=42.86%",
        "ftl.ox_block.transactions=true",
    ];
    profile.set_all(changes).expect("valid changes");
    Rc::new(Ssd::new(sim, &profile.resolve().expect("a valid profile"), StoreKind::Ram, Seed::new(9)).expect("memory"))
}

fn write(start: u64, blocks: u32) -> SubmissionEntry {
    let entry = SubmissionEntry::blocks(IoOpcode::WRITE, 1, start, blocks);
    SubmissionEntry { cdw12: (entry.cdw12.get() | FUA).into(), ..entry }
}

fn data(value: u8, blocks: u32) -> HostMem {
    HostMem::from_bytes(&vec![value; blocks as usize * 512])
}

/// A queue pair whose doorbell rings for several entries at once.
struct Pair {
    ring: Rc<Ring>,
    tail: Cell<u16>,
    head: Cell<u16>,
}

impl Pair {
    fn new(ssd: &Ssd, id: u16) -> Pair {
        let ring = Rc::new(Ring::new(16, None));
        ssd.controller().create_queue_pair(QueueId(id), ring.clone(), ring.clone()).expect("a free queue pair");
        Pair { ring, tail: Cell::new(0), head: Cell::new(0) }
    }

    fn put(&self, sim: &Sim, entry: SubmissionEntry, mem: HostMem) {
        let entry = SubmissionEntry { cid: self.tail.get().into(), ..entry };
        self.ring.put(self.tail.get(), Submission { entry, mem, submitted: sim.now() });
        self.tail.set(self.ring.next(self.tail.get()));
    }

    fn completion(&self) -> Option<Status> {
        let posted = self.ring.reap(self.head.get(), true)?;
        self.head.set(self.ring.next(self.head.get()));
        Some(posted.entry.status())
    }
}

/// A fused pair is accepted while Write Uncorrectable waits for a transaction, and waits for the log itself.
#[test]
fn the_mark_is_not_hidden_by_a_fused_pair_that_is_accepted_meanwhile() {
    let mut pairs_in_between = 0;
    for lead in [2, 5, 10, 20, 40, 80] {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let ssd = ssd(&sim);
        let (drive, issuer) = (QueueDrive::new(&sim, ssd.controller(), QueueId(1), 16).unwrap(), Issuer::new(&sim));
        let (fused, first) = (Pair::new(&ssd, 2), Pair::new(&ssd, 3));
        let test = async {
            first.put(&sim, write(0, UNIT), data(1, UNIT));
            ssd.controller().ring_submission(QueueId(3), first.tail.get());
            sim.sleep(Span::from_us(20)).await;
            let compare = SubmissionEntry::blocks(IoOpcode::COMPARE, 1, 0, UNIT);
            fused.put(&sim, SubmissionEntry { flags: FLAGS_FUSED_FIRST, ..compare }, data(1, UNIT));
            fused.put(&sim, SubmissionEntry { flags: FLAGS_FUSED_SECOND, ..write(0, UNIT) }, data(2, UNIT));
            ssd.controller().ring_submission(QueueId(2), fused.tail.get());
            sim.sleep(Span::from_us(lead)).await;
            assert_eq!(first.completion(), None, "the transaction waits for the log");
            let spoil = SubmissionEntry::blocks(IoOpcode::WRITE_UNCORRECTABLE, 1, 0, 1);
            assert_eq!(issuer.execute(&*drive, spoil, HostMem::none()).await.status, Status::SUCCESS);
            let read = SubmissionEntry::blocks(IoOpcode::READ, 1, 0, 1);
            let status = issuer.execute(&*drive, read, HostMem::zeroed(512)).await.status.meaning();
            assert_eq!(status, Status::UNRECOVERED_READ_ERROR, "{lead} us after the pair");
            sim.sleep(Span::from_ms(20)).await;
            let ended: Vec<Status> = std::iter::from_fn(|| fused.completion()).collect();
            assert_eq!(ended.len(), 2);
            ended == [Status::SUCCESS; 2]
        };
        pairs_in_between += u32::from(executor.block_on(test).unwrap());
    }
    assert!(pairs_in_between > 0, "no pair was before Write Uncorrectable");
}

/// Another host keeps transactions of the same unit in progress.
#[test]
fn it_does_not_wait_for_transactions_that_come_after_it() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let ssd = ssd(&sim);
    let connect = |id| QueueDrive::new(&sim, ssd.controller(), QueueId(id), 16).unwrap();
    let (drive, other, issuer) = (connect(1), connect(2), Rc::new(Issuer::new(&sim)));
    for number in 0..6 {
        let (other, issuer, sim, inner) = (other.clone(), issuer.clone(), sim.clone(), sim.clone());
        sim.spawn(async move {
            inner.sleep(Span::from_us(number * 50)).await;
            loop {
                // The second half of the unit; the first is not written.
                issuer.execute(&*other, write(4, 4), data(3, 4)).await;
            }
        });
    }
    let waited = executor.block_on(async {
        sim.sleep(Span::from_ms(5)).await;
        let begun = sim.now();
        let spoil = SubmissionEntry::blocks(IoOpcode::WRITE_UNCORRECTABLE, 1, 0, 1);
        let mut ended = Box::pin(issuer.execute(&*drive, spoil, HostMem::none()));
        let mut late = Box::pin(sim.sleep(Span::from_ms(500)));
        std::future::poll_fn(|context| match ended.as_mut().poll(context) {
            std::task::Poll::Pending => late.as_mut().poll(context).map(|()| None),
            ready => ready.map(|ended| Some((ended.status, sim.now() - begun))),
        })
        .await
    });
    let (status, waited) = waited.unwrap().expect("Write Uncorrectable ends while others write");
    assert!(status.is_success() && waited < Span::from_ms(50), "{status} after {waited}");
}
