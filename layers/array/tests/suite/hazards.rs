//! Rare orders of events that could lose data: each test is one such order.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Ssd};
use nandscape_drive::{Completion, Drive, DriveInfo, HostMem, Io, Issuer, QueueDrive, QueueId};
use nandscape_layers_array::{Array, Config, Member};
use nandscape_sim::{Executor, Seed, Sim, Span};
use nandscape_wire_nvme::vendor::{BUSY, FAST_FAIL, PREDICT_ONLY};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

use crate::degraded::Pulled;
use crate::rig::{SMALL, config, queue, shape, ssd};

/// A drive that holds its writes back when it is set to, and can answer each with an error. It also holds back reads
/// that may fail fast, and answers that it is busy.
struct Held {
    below: Rc<dyn Drive>,
    holds: Cell<bool>,
    writes: RefCell<Vec<Io>>,
    is_busy: Cell<bool>,
    reads: RefCell<Vec<Io>>,
    /// The status with which a Flush ends.
    flush: Cell<Status>,
}

impl Held {
    fn fail_one(&self) {
        self.end_one(Status::WRITE_FAULT);
    }

    fn end_one(&self, status: Status) {
        let io = self.writes.borrow_mut().remove(0);
        io.token.complete(Completion::of(status));
    }

    fn reject_one(&self) {
        let io = self.reads.borrow_mut().remove(0);
        io.token.complete(Completion { dw0: 100, dw1: 1, ..Completion::of(BUSY) });
    }
}

impl Drive for Held {
    fn info(&self) -> DriveInfo {
        self.below.info()
    }

    fn submit(&self, io: Io) {
        match IoOpcode(io.command.opcode) {
            IoOpcode::WRITE if self.holds.get() => self.writes.borrow_mut().push(io),
            IoOpcode::READ if self.is_busy.get() && io.command.cdw2.get() & (FAST_FAIL | PREDICT_ONLY) == FAST_FAIL => {
                self.reads.borrow_mut().push(io);
            }
            IoOpcode::FLUSH if !self.flush.get().is_success() => io.token.complete(Completion::of(self.flush.get())),
            _ => self.below.submit(io),
        }
    }
}

fn member(io: Rc<dyn Drive>) -> Member {
    Member { io, reads: None, admin: None }
}

fn held(sim: &Sim, number: u64) -> Rc<Held> {
    let below = queue(sim, &ssd(sim, &[], number), 1);
    Rc::new(Held {
        below,
        holds: Cell::new(false),
        writes: RefCell::default(),
        is_busy: Cell::new(false),
        reads: RefCell::default(),
        flush: Cell::new(Status::SUCCESS),
    })
}

fn pulled(sim: &Sim, number: u64) -> Rc<Pulled> {
    let below = queue(sim, &ssd(sim, &[], number), 1);
    Rc::new(Pulled { below, is_gone: Cell::new(false), bad: Cell::new(None) })
}

const SETTINGS: [&str; 3] = ["array.technique=tea2", "array.chunk=8KiB", "array.rebuild_rate=0"];

async fn write(issuer: &Issuer, array: &Rc<Array>, slba: u64, blocks: u32, byte: u8) -> Status {
    let entry = SubmissionEntry::blocks(IoOpcode::WRITE, 1, slba, blocks);
    issuer.execute(&**array, entry, HostMem::from_bytes(&vec![byte; blocks as usize * 512])).await.status
}

async fn read(issuer: &Issuer, array: &Rc<Array>, slba: u64, blocks: u32) -> Vec<u8> {
    let mem = HostMem::zeroed(blocks as usize * 512);
    let entry = SubmissionEntry::blocks(IoOpcode::READ, 1, slba, blocks);
    assert_eq!(issuer.execute(&**array, entry, mem.clone()).await.status, Status::SUCCESS);
    mem.to_vec()
}

async fn rebuilt(sim: &Sim, array: &Rc<Array>) {
    while array.rebuilding().is_some() {
        sim.sleep(Span::from_ms(1)).await;
    }
    assert_eq!(array.missing(), [0usize; 0]);
}

#[test]
fn what_was_journalled_before_a_rebuild_does_not_undo_what_was_written_after_it() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let drives: Vec<Rc<Pulled>> = (0..4).map(|number| pulled(&sim, number)).collect();
    let members = || drives.iter().filter(|drive| !drive.is_gone.get()).map(|drive| member(drive.clone())).collect();
    executor
        .block_on(async {
            let issuer = Issuer::new(&sim);
            let array = Array::create(&sim, shape("raid5:3"), config(&SETTINGS), members()).await.unwrap();
            drives[1].is_gone.set(true);
            for stripe in 0..4 {
                assert!(write(&issuer, &array, stripe * 32, 8, 1).await.is_success());
            }
            rebuilt(&sim, &array).await;
            for stripe in 0..4 {
                assert!(write(&issuer, &array, stripe * 32, 8, 2).await.is_success());
            }
            drop(array);
            for _ in 0..2 {
                let array = Array::open(&sim, config(&SETTINGS), members()).await.unwrap();
                for stripe in 0..4 {
                    assert_eq!(read(&issuer, &array, stripe * 32, 8).await, [2; 4_096], "stripe {stripe}");
                }
                assert_eq!(array.scrub().await.mismatches, 0);
            }
        })
        .unwrap();
}

#[test]
fn late_errors_of_a_dead_drive_do_not_fail_the_spare_in_its_place() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let drives: Vec<Rc<Held>> = (0..3).map(|number| held(&sim, number)).collect();
    let members = drives.iter().map(|drive| member(drive.clone())).collect();
    executor
        .block_on(async {
            let issuer = Issuer::new(&sim);
            let array = Array::new(&sim, shape("raid1:2"), config(&SETTINGS), members).unwrap();
            drives[0].holds.set(true);
            let send = |slba: u64, byte: u8| {
                let entry = SubmissionEntry::blocks(IoOpcode::WRITE, 1, slba, 8);
                issuer.execute(&*array, entry, HostMem::from_bytes(&[byte; 4_096]))
            };
            let (one, other) = (send(0, 1), send(64, 2));
            while drives[0].writes.borrow().len() < 2 {
                sim.sleep(Span::from_us(10)).await;
            }
            drives[0].fail_one();
            sim.sleep(Span::from_ms(2)).await;
            drives[0].fail_one();
            assert_eq!((one.await.status, other.await.status), (Status::SUCCESS, Status::SUCCESS));
            rebuilt(&sim, &array).await;
            assert_eq!(read(&issuer, &array, 0, 8).await, [1; 4_096]);
            assert_eq!(read(&issuer, &array, 64, 8).await, [2; 4_096]);
            assert_eq!(array.scrub().await.mismatches, 0);
        })
        .unwrap();
}

/// An array of three with data in stripe 0, and a read of its first chunk that its drive holds back.
async fn with_a_read_held_back<'a>(
    sim: &Sim,
    drives: &[Rc<Held>],
    issuer: &'a Issuer,
) -> (Rc<Array>, impl Future<Output = Vec<u8>> + use<'a>) {
    let members = drives.iter().map(|drive| member(drive.clone())).collect();
    let array = Array::new(sim, shape("raid5:3"), config(&SETTINGS), members).unwrap();
    for (slba, byte) in [(0, 1), (16, 2)] {
        assert!(write(issuer, &array, slba, 16, byte).await.is_success());
    }
    drives[0].is_busy.set(true);
    let reading = array.clone();
    let (mem, entry) = (HostMem::zeroed(4_096), SubmissionEntry::blocks(IoOpcode::READ, 1, 0, 8));
    let sent = issuer.execute(&*reading, entry, mem.clone());
    while drives[0].reads.borrow().is_empty() {
        sim.sleep(Span::from_us(10)).await;
    }
    let read = async move {
        assert_eq!(sent.await.status, Status::SUCCESS);
        mem.to_vec()
    };
    (array, read)
}

/// Fails the drive of a member by a write to one of its chunks.
async fn fail_by_a_write(sim: &Sim, (issuer, array): (&Issuer, &Rc<Array>), drive: &Held, slba: u64) {
    drive.holds.set(true);
    let entry = SubmissionEntry::blocks(IoOpcode::WRITE, 1, slba, 16);
    let sent = issuer.execute(&**array, entry, HostMem::from_bytes(&[3; 16 * 512]));
    while drive.writes.borrow().is_empty() {
        sim.sleep(Span::from_us(10)).await;
    }
    drive.fail_one();
    assert!(sent.await.status.is_success());
}

#[test]
fn a_member_that_answers_busy_after_another_has_failed_is_waited_for() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let drives: Vec<Rc<Held>> = (0..3).map(|number| held(&sim, number)).collect();
    executor
        .block_on(async {
            let issuer = Issuer::new(&sim);
            let (array, read) = with_a_read_held_back(&sim, &drives, &issuer).await;
            // Of stripe 1, member 1 has parity or data, and stripe 0 is not written.
            fail_by_a_write(&sim, (&issuer, &array), &drives[1], 32).await;
            assert_eq!(array.missing(), [1]);
            drives[0].reject_one();
            assert_eq!(read.await, [1; 4_096], "it cannot be put together, so it is read without the bit");
            assert_eq!((array.stats().resubmissions, array.is_lost()), (1, false));
        })
        .unwrap();
}

#[test]
fn a_drive_that_answers_busy_after_a_spare_has_taken_its_place_is_not_asked_again() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let drives: Vec<Rc<Held>> = (0..4).map(|number| held(&sim, number)).collect();
    executor
        .block_on(async {
            let issuer = Issuer::new(&sim);
            let (array, read) = with_a_read_held_back(&sim, &drives, &issuer).await;
            array.fail_member(0);
            rebuilt(&sim, &array).await;
            assert_eq!(array.member_of(3), Some(0));
            drives[0].reject_one();
            assert_eq!(read.await, [1; 4_096]);
            assert_eq!((drives[0].reads.borrow().len(), array.missing().len()), (0, 0));
            assert_eq!(array.scrub().await.mismatches, 0);
        })
        .unwrap();
}

#[test]
fn nothing_is_put_together_from_a_stripe_whose_write_was_interrupted() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let drives: Vec<Rc<Held>> = (0..3).map(|number| held(&sim, number)).collect();
    let members = drives.iter().map(|drive| member(drive.clone())).collect();
    executor
        .block_on(async {
            let issuer = Issuer::new(&sim);
            let array = Array::new(&sim, shape("raid5:3"), config(&SETTINGS), members).unwrap();
            for (slba, byte) in [(0, 1), (16, 2)] {
                assert!(write(&issuer, &array, slba, 16, byte).await.is_success());
            }
            // The new parity is in place, the new data is not.
            drives[0].holds.set(true);
            let entry = SubmissionEntry::blocks(IoOpcode::WRITE, 1, 0, 16);
            let sent = issuer.execute(&*array, entry, HostMem::from_bytes(&[3; 16 * 512]));
            while drives[0].writes.borrow().is_empty() {
                sim.sleep(Span::from_us(10)).await;
            }
            sim.sleep(Span::from_ms(5)).await;
            // The stripe is made consistent at once, except for a parity that is kept waiting.
            drives[2].holds.set(true);
            drives[0].end_one(Status::ABORTED_POWER_LOSS);
            assert_eq!(sent.await.status, Status::ABORTED_POWER_LOSS);
            drives[0].holds.set(false);
            let read_beside_busy = async |byte: u8, is_asked: bool| {
                drives[1].is_busy.set(true);
                let (mem, entry) = (HostMem::zeroed(4_096), SubmissionEntry::blocks(IoOpcode::READ, 1, 16, 8));
                let sent = issuer.execute(&*array, entry, mem.clone());
                sim.sleep(Span::from_ms(1)).await;
                assert_eq!(drives[1].reads.borrow().len(), 1);
                drives[1].reject_one();
                assert_eq!(sent.await.status, Status::SUCCESS);
                assert!(mem.to_vec().iter().all(|read| *read == byte));
                assert_eq!(array.stats().reconstructions > 0, is_asked);
            };
            read_beside_busy(2, false).await;
            drives[1].is_busy.set(false);
            drives[2].holds.set(false);
            drives[2].end_one(Status::ABORTED_POWER_LOSS);
            sim.sleep(Span::from_ms(10)).await;
            assert_eq!(array.scrub().await.mismatches, 0);
            read_beside_busy(2, true).await;
        })
        .unwrap();
}

#[test]
fn a_second_spare_gets_the_first_stripe_too() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let drives: Vec<Rc<Pulled>> = (0..5).map(|number| pulled(&sim, number)).collect();
    let members = drives.iter().map(|drive| member(drive.clone())).collect();
    executor
        .block_on(async {
            let issuer = Issuer::new(&sim);
            let array = Array::new(&sim, shape("raid5:3"), config(&SETTINGS), members).unwrap();
            for stripe in 0..3 {
                assert!(write(&issuer, &array, stripe * 32, 32, 7).await.is_success());
            }
            drives[1].is_gone.set(true);
            drives[3].is_gone.set(true);
            assert_eq!(read(&issuer, &array, 0, 96).await, [7; 96 * 512]);
            rebuilt(&sim, &array).await;
            assert_eq!(array.member_of(4), Some(1));
            assert_eq!(read(&issuer, &array, 0, 96).await, [7; 96 * 512]);
            assert_eq!(array.scrub().await.mismatches, 0);
        })
        .unwrap();
}

#[test]
fn a_flush_that_loses_data_fails() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let drives: Vec<Rc<Held>> = (0..2).map(|number| held(&sim, number)).collect();
    let members = drives.iter().map(|drive| member(drive.clone())).collect();
    executor
        .block_on(async {
            let issuer = Issuer::new(&sim);
            let array = Array::new(&sim, shape("raid0:2"), config(&[]), members).unwrap();
            drives[1].flush.set(Status::WRITE_FAULT);
            for _ in 0..2 {
                let ended = issuer.execute(&*array, SubmissionEntry::io(IoOpcode::FLUSH, 1), HostMem::none()).await;
                assert_eq!(ended.status.meaning(), Status::WRITE_FAULT);
            }
        })
        .unwrap();
}

#[test]
fn drives_of_two_arrays_are_not_mixed() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let drives: Vec<Rc<Pulled>> = (0..5).map(|number| pulled(&sim, number)).collect();
    let of = |range: std::ops::Range<usize>| drives[range].iter().map(|drive| member(drive.clone())).collect();
    executor
        .block_on(async {
            drop(Array::create(&sim, shape("raid5:3"), config(&SETTINGS), of(0..3)).await.unwrap());
            let mirror = Array::create(&sim, shape("raid1:2"), config(&SETTINGS), of(3..5)).await.unwrap();
            mirror.fail_member(0);
            sim.sleep(Span::from_ms(10)).await;
            drop(mirror);
            let mixed = Array::open(&sim, config(&SETTINGS), of(1..5)).await.err().map(|error| error.to_string());
            assert!(mixed.as_ref().is_some_and(|error| error.contains("are of two arrays")), "{mixed:?}");
            assert!(Array::open(&sim, config(&SETTINGS), of(0..3)).await.is_ok());
        })
        .unwrap();
}

#[test]
fn arrays_made_at_the_same_time_with_the_same_seed_are_told_apart_by_their_drives_and_names() {
    let mixes = |can_ask: bool, names: [&str; 2]| {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let ssds: Vec<Rc<Ssd>> = (0..4).map(|number| ssd(&sim, &[], number)).collect();
        let of = |ssd: &Rc<Ssd>| {
            let admin = QueueDrive::new(&sim, ssd.controller(), QueueId::ADMIN, 32).unwrap();
            Member { io: queue(&sim, ssd, 1), reads: None, admin: can_ask.then_some(admin as Rc<dyn Drive>) }
        };
        let members: Vec<Member> = ssds.iter().map(of).collect();
        let made = Rc::new(Cell::new(0));
        for (name, pair) in names.into_iter().zip(members.chunks(2)) {
            let (sim, pair, made) = (sim.clone(), pair.to_vec(), made.clone());
            let config = Config { identity: name.to_owned(), ..config(&SETTINGS) };
            executor.sim().spawn(async move {
                Array::create(&sim, shape("raid1:2"), config, pair).await.unwrap();
                made.set(made.get() + 1);
            });
        }
        executor
            .block_on(async {
                sim.sleep(Span::from_ms(10)).await;
                assert_eq!(made.get(), 2);
                let mixed = vec![members[0].clone(), members[3].clone()];
                Array::open(&sim, config(&SETTINGS), mixed).await.err().map(|error| error.to_string())
            })
            .unwrap()
    };
    for (can_ask, names) in [(true, ["", ""]), (false, ["one", "other"])] {
        let told = mixes(can_ask, names);
        assert!(told.as_ref().is_some_and(|error| error.contains("are of two arrays")), "{names:?}: {told:?}");
    }
    // Nothing distinguishes these: simulated arrays are the same in each run.
    assert_eq!(mixes(false, ["", ""]), None);
}

#[test]
fn without_kept_data_too_a_write_goes_without_parity_where_the_rest_cannot_be_read() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let mut profile = Profile::load("default").unwrap();
    SMALL.iter().for_each(|change| profile.set(change).unwrap());
    let profile = profile.resolve().unwrap();
    let drive = |number: u64| {
        let ssd = Rc::new(Ssd::new(&sim, &profile, StoreKind::None, Seed::new(3).nth(number)).unwrap());
        Rc::new(Pulled { below: queue(&sim, &ssd, 1), is_gone: Cell::new(false), bad: Cell::new(None) })
    };
    let drives: Vec<Rc<Pulled>> = (0..4).map(drive).collect();
    let members = drives.iter().map(|drive| member(drive.clone())).collect();
    executor
        .block_on(async {
            let issuer = Issuer::new(&sim);
            let array = Array::new(&sim, shape("raid5:4"), config(&SETTINGS), members).unwrap();
            for drive in &drives[..3] {
                drive.bad.set(Some(0));
            }
            let entry = SubmissionEntry::blocks(IoOpcode::WRITE, 1, 4, 2);
            drives[0].bad.set(Some(4));
            drives[1].bad.set(Some(4));
            drives[2].bad.set(Some(4));
            let ended = issuer.execute(&*array, entry, HostMem::none()).await;
            assert_eq!((ended.status, array.stats().condemned), (Status::SUCCESS, 1));
        })
        .unwrap();
}

#[test]
fn a_scrub_writes_again_what_cannot_be_read_parity_too() {
    for word in ["raid5:3", "raid6:4", "raid1:2"] {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let shape = shape(word);
        let drives: Vec<Rc<Pulled>> = (0..shape.members as u64).map(|number| pulled(&sim, number)).collect();
        let members = drives.iter().map(|drive| member(drive.clone())).collect();
        executor
            .block_on(async {
                let issuer = Issuer::new(&sim);
                let array = Array::new(&sim, shape, config(&SETTINGS), members).unwrap();
                assert!(write(&issuer, &array, 0, 32, 9).await.is_success());
                for drive in &drives {
                    drive.bad.set(Some(3));
                    let scrubbed = array.scrub().await;
                    assert_eq!((scrubbed.unreadable, scrubbed.mismatches), (1, 0), "{word}");
                    assert_eq!(drive.bad.get(), None, "{word}: it was not written again");
                }
                assert_eq!(array.stats().repairs, drives.len() as u64, "{word}");
                assert_eq!(read(&issuer, &array, 0, 32).await, [9; 32 * 512], "{word}");
                assert_eq!(array.scrub().await.mismatches, 0, "{word}");
            })
            .unwrap();
    }
}
