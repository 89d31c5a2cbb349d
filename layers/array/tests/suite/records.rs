//! Arrays reopened over drives whose records are unreadable, or older than the drives' replacement.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_drive::{Completion, Drive, DriveInfo, HostMem, Io, Issuer};
use nandscape_layers_array::{Array, Member, Seen};
use nandscape_sim::{Executor, Sim, Span};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

use crate::rig::{config, queue, shape, ssd};

const SETTINGS: [&str; 2] = ["array.chunk=8KiB", "array.rebuild_rate=0"];
/// Blocks of a page of records, of a slot of the journal, and of all records, with chunks of 8 KiB.
const PAGE: u64 = 8;
const SLOT: u64 = PAGE + 16;
const RECORDS: u64 = 4 * PAGE + 32 * SLOT;

/// A drive with some unreadable blocks at its end.
struct Scratched {
    below: Rc<dyn Drive>,
    /// The first of them, and the first after them, relative to the first record.
    bad: Cell<(u64, u64)>,
    is_gone: Cell<bool>,
    /// Whether writes of the record of members are kept in `held`, instead of being passed on.
    holds: Cell<bool>,
    held: RefCell<Vec<Io>>,
    /// Writes of the record of members that are passed on yet; those after them never end.
    passes: Cell<Option<u32>>,
    /// Whether writes of stripes never end, while writes of records do.
    swallows_stripes: Cell<bool>,
}

impl Scratched {
    /// Whether a write of a record never ends.
    fn swallows(&self) -> bool {
        match self.passes.get() {
            Some(0) => true,
            Some(left) => {
                self.passes.set(Some(left - 1));
                false
            }
            None => false,
        }
    }

    /// Whether a command never ends.
    fn never_ends(&self, io: &Io, first: u64, is_record: bool) -> bool {
        let is_write = IoOpcode(io.command.opcode) == IoOpcode::WRITE;
        let is_of_stripe = io.command.slba() < first;
        is_write && (self.swallows_stripes.get() && is_of_stripe || is_record && self.swallows())
    }

    fn let_go(&self) {
        self.holds.set(false);
        self.held.take().into_iter().for_each(|io| self.below.submit(io));
    }
}

impl Drive for Scratched {
    fn info(&self) -> DriveInfo {
        self.below.info()
    }

    fn submit(&self, io: Io) {
        let first = self.info().blocks - RECORDS;
        let (begin, end) = self.bad.get();
        let is_bad = (first + begin..first + end).contains(&io.command.slba());
        let is_record = (first..first + 2 * PAGE).contains(&io.command.slba());
        if self.is_gone.get() {
            io.token.complete(Completion::of(Status::INTERNAL_ERROR));
        } else if is_bad && IoOpcode(io.command.opcode) == IoOpcode::READ {
            io.token.complete(Completion::of(Status::UNRECOVERED_READ_ERROR));
        } else if self.holds.get() && is_record && IoOpcode(io.command.opcode) == IoOpcode::WRITE {
            self.held.borrow_mut().push(io);
        } else if self.never_ends(&io, first, is_record) {
            std::mem::forget(io);
        } else {
            self.below.submit(io);
        }
    }
}

struct Rig {
    sim: Sim,
    issuer: Issuer,
    drives: Vec<Rc<Scratched>>,
}

impl Rig {
    /// An array of this level on drives, and more drives as spares, with its first stripes written.
    async fn new(sim: &Sim, word: &str, spares: usize, journal: &str) -> Rig {
        let drives = (0..shape(word).members + spares).map(|number| Rig::drive(sim, number)).collect();
        let rig = Rig { sim: sim.clone(), issuer: Issuer::new(sim), drives };
        let settings = [&SETTINGS[..], &[journal]].concat();
        let array = Array::create(sim, shape(word), config(&settings), rig.members()).await.unwrap();
        rig.write(&array, 1).await;
        rig
    }

    fn drive(sim: &Sim, number: usize) -> Rc<Scratched> {
        Rc::new(Scratched {
            below: queue(sim, &ssd(sim, &[], number as u64), 1),
            bad: Cell::default(),
            is_gone: Cell::default(),
            holds: Cell::default(),
            held: RefCell::default(),
            passes: Cell::default(),
            swallows_stripes: Cell::default(),
        })
    }

    /// All that a drive holds.
    async fn copy_of(&self, drive: usize) -> Vec<u8> {
        let (drive, mut bytes) = (&*self.drives[drive].below, Vec::new());
        for slba in (0..drive.info().blocks).step_by(64) {
            let (entry, mem) = (SubmissionEntry::blocks(IoOpcode::READ, 1, slba, 64), HostMem::zeroed(64 * 512));
            assert_eq!(self.issuer.execute(drive, entry, mem.clone()).await.status, Status::SUCCESS);
            bytes.extend(mem.to_vec());
        }
        bytes
    }

    /// Writes all of a drive.
    async fn put_back(&self, drive: usize, bytes: &[u8]) {
        let drive = &*self.drives[drive].below;
        for (slba, bytes) in (0..).step_by(64).zip(bytes.chunks(64 * 512)) {
            let entry = SubmissionEntry::blocks(IoOpcode::WRITE, 1, slba, 64);
            assert_eq!(self.issuer.execute(drive, entry, HostMem::from_bytes(bytes)).await.status, Status::SUCCESS);
        }
    }

    fn members(&self) -> Vec<Member> {
        self.drives.iter().map(|io| Member { io: io.clone(), reads: None, admin: None }).collect()
    }

    async fn open(&self, more: &[&str]) -> Result<Rc<Array>, String> {
        let settings = [&SETTINGS[..], more].concat();
        Array::open(&self.sim, config(&settings), self.members()).await.map_err(|error| error.to_string())
    }

    async fn write(&self, array: &Rc<Array>, byte: u8) {
        for slba in (0..256).step_by(32) {
            let entry = SubmissionEntry::blocks(IoOpcode::WRITE, 1, slba, 32);
            let mem = HostMem::from_bytes(&[byte; 32 * 512]);
            assert_eq!(self.issuer.execute(&**array, entry, mem).await.status, Status::SUCCESS);
        }
        // Marks are cleared some time after the last write.
        self.sim.sleep(Span::from_s(5)).await;
    }

    async fn check(&self, array: &Rc<Array>, byte: u8) {
        for slba in (0..256).step_by(8) {
            let (entry, mem) = (SubmissionEntry::blocks(IoOpcode::READ, 1, slba, 8), HostMem::zeroed(4_096));
            assert_eq!(self.issuer.execute(&**array, entry, mem.clone()).await.status, Status::SUCCESS);
            assert_eq!(mem.to_vec(), [byte; 4_096], "block {slba}");
        }
    }

    async fn rebuilt(&self, array: &Rc<Array>) {
        while array.rebuilding().is_some() {
            self.sim.sleep(Span::from_ms(1)).await;
        }
        assert_eq!(array.missing(), [0usize; 0]);
    }
}

#[test]
fn an_array_that_was_ended_in_order_opens_without_a_member_at_once() {
    for is_ended in [true, false] {
        let mut executor = Executor::new();
        let sim = executor.sim();
        executor
            .block_on(async {
                let rig = Rig::new(&sim, "raid5:3", 0, INTENT).await;
                let array = rig.open(&[]).await.unwrap();
                let entry = SubmissionEntry::blocks(IoOpcode::WRITE, 1, 0, 32);
                let mem = HostMem::from_bytes(&[1; 32 * 512]);
                assert_eq!(rig.issuer.execute(&*array, entry, mem).await.status, Status::SUCCESS);
                if is_ended {
                    array.shut_down().await;
                }
                drop(array);
                rig.drives[2].is_gone.set(true);
                match rig.open(&[]).await {
                    Ok(array) => {
                        assert!(is_ended);
                        rig.check(&array, 1).await;
                    }
                    Err(told) => assert!(!is_ended && told.contains("was lost together with a crash"), "{told}"),
                }
            })
            .unwrap();
    }
}

const INTENT: &str = "array.journal=intent";
/// Data in the journal.
const DATA: &str = "array.journal=data";
const UNREAD: Status = Status::UNRECOVERED_READ_ERROR;

#[test]
fn a_drive_whose_records_cannot_be_read_is_left_out_and_is_no_spare() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    executor
        .block_on(async {
            let rig = Rig::new(&sim, "raid5:3", 0, INTENT).await;
            rig.drives[1].bad.set((0, 2 * PAGE));
            let array = rig.open(&[]).await.unwrap();
            assert_eq!((array.missing(), array.rebuilding()), (vec![1], None));
            assert_eq!(array.unread(), [(1, UNREAD)]);
            rig.check(&array, 1).await;
            // It becomes a spare on the user's request.
            array.add_spare(1);
            rig.rebuilt(&array).await;
            rig.check(&array, 1).await;
            assert_eq!(array.scrub().await.mismatches, 0);
        })
        .unwrap();
}

#[test]
fn a_drive_that_is_put_back_as_it_was_is_rebuilt() {
    for (word, put_back) in [("raid5:3", 1), ("raid1:2", 0), ("raid6:4", 3), ("raid0:2", 1)] {
        let mut executor = Executor::new();
        let sim = executor.sim();
        executor
            .block_on(async {
                let rig = Rig::new(&sim, word, 0, INTENT).await;
                let before = rig.copy_of(put_back).await;
                let array = rig.open(&[]).await.unwrap();
                rig.write(&array, 2).await;
                array.shut_down().await;
                drop(array);
                rig.put_back(put_back, &before).await;
                let opened = rig.open(&[]).await;
                if word == "raid0:2" {
                    let told = opened.err().unwrap();
                    assert!(told.contains("drive 1 is as it was at an earlier time"), "{told}");
                    return;
                }
                let array = opened.unwrap();
                assert_eq!(array.older(), [put_back], "{word}");
                assert_eq!(array.rebuilding().map(|(member, _)| member), Some(put_back), "{word}");
                rig.check(&array, 2).await;
                rig.rebuilt(&array).await;
                rig.check(&array, 2).await;
                assert_eq!(array.scrub().await.mismatches, 0, "{word}");
                drop(array);
                // Rebuilt data is trusted.
                let array = rig.open(&[]).await.unwrap();
                assert_eq!((array.missing(), array.older()), (vec![], vec![]), "{word}");
            })
            .unwrap();
    }
}

#[test]
fn a_crash_while_an_array_is_opened_leaves_all_members_trusted() {
    // Each record of the opening reaches only some of the members.
    for (held, records) in (0..3).flat_map(|held| [(held, 0), (held, 1)]) {
        let mut executor = Executor::new();
        let sim = executor.sim();
        executor
            .block_on(async {
                let rig = Rig::new(&sim, "raid5:3", 0, INTENT).await;
                for records in [records, 0, 0, 1] {
                    rig.drives[held].passes.set(Some(records));
                    sim.spawn({
                        let (sim, members) = (sim.clone(), rig.members());
                        async move { drop(Array::open(&sim, config(&SETTINGS), members).await) }
                    });
                    // The write that is held never ends, and nor does the opening.
                    sim.sleep(Span::from_s(1)).await;
                }
                rig.drives[held].passes.set(None);
                let array = rig.open(&[]).await.unwrap();
                assert_eq!(
                    (array.missing(), array.older()),
                    (vec![], vec![]),
                    "member {held}, after {records} records"
                );
                rig.check(&array, 1).await;
            })
            .unwrap();
    }
}

#[test]
fn a_drive_that_a_crash_left_half_rebuilt_is_of_the_array_and_is_rebuilt_again() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    executor
        .block_on(async {
            let mut rig = Rig::new(&sim, "raid5:3", 0, INTENT).await;
            // An empty drive takes a member's place.
            rig.drives[1] = Rig::drive(&sim, 7);
            assert_eq!(Array::strangers(&sim, &config(&SETTINGS), &rig.members()).await, [1]);
            let slow = ["array.rebuild_rate=1MiB"];
            let array = rig.open(&slow).await.unwrap();
            while array.rebuilding().is_none_or(|(_, share)| share == 0.0) {
                sim.sleep(Span::from_us(100)).await;
            }
            drop(array);
            // The same drive again, which the crash left half-rebuilt.
            assert_eq!(Array::strangers(&sim, &config(&SETTINGS), &rig.members()).await, [0usize; 0]);
            let array = rig.open(&[]).await.unwrap();
            assert_eq!(array.rebuilding().map(|(member, _)| member), Some(1));
            rig.rebuilt(&array).await;
            rig.check(&array, 1).await;
            assert_eq!(array.scrub().await.mismatches, 0);
        })
        .unwrap();
}

#[test]
fn a_drive_is_in_an_array_once() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    executor
        .block_on(async {
            let mut rig = Rig::new(&sim, "raid5:3", 0, INTENT).await;
            for twice in [[0, 1, 1], [0, 0, 2]] {
                let members = twice.map(|drive| rig.members()[drive].clone()).to_vec();
                let made = Array::create(&sim, shape("raid5:3"), config(&SETTINGS), members).await;
                let told = made.err().unwrap().to_string();
                assert!(told.contains("are one drive; each needs one of its own"), "{told}");
            }
            // As a spare.
            let members = [rig.members(), vec![rig.members()[2].clone()]].concat();
            let made = Array::create(&sim, shape("raid5:3"), config(&SETTINGS), members).await;
            assert!(made.err().unwrap().to_string().contains("drives 3 and 2 are one drive"));
            let array = Array::create(&sim, shape("raid5:3"), config(&SETTINGS), rig.members()).await.unwrap();
            rig.write(&array, 1).await;
            drop(array);
            rig.drives.push(rig.drives[1].clone());
            let told = rig.open(&[]).await.err().unwrap();
            assert!(told.contains("drives 1 and 3 both are member 1"), "{told}");
        })
        .unwrap();
}

#[test]
fn an_array_that_lost_too_many_members_is_as_before_when_they_are_back() {
    for (word, gone) in [("raid0:2", &[1][..]), ("raid5:3", &[0, 2]), ("raid1:2", &[0, 1]), ("raid10:4", &[2, 3])] {
        let mut executor = Executor::new();
        let sim = executor.sim();
        executor
            .block_on(async {
                let rig = Rig::new(&sim, word, 0, INTENT).await;
                let array = rig.open(&[]).await.unwrap();
                gone.iter().for_each(|drive| rig.drives[*drive].is_gone.set(true));
                let entry = SubmissionEntry::blocks(IoOpcode::WRITE, 1, 0, 128);
                let mem = HostMem::from_bytes(&[9; 128 * 512]);
                assert!(!rig.issuer.execute(&*array, entry, mem).await.status.is_success(), "{word}");
                sim.sleep(Span::from_s(5)).await;
                assert!(array.is_lost(), "{word}");
                drop(array);
                rig.drives.iter().for_each(|drive| drive.is_gone.set(false));
                let array = rig.open(&[]).await.unwrap_or_else(|told| panic!("{word}: {told}"));
                rig.write(&array, 3).await;
                rig.check(&array, 3).await;
            })
            .unwrap();
    }
}

#[test]
fn a_spare_is_of_its_array() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    executor
        .block_on(async {
            let rig = Rig::new(&sim, "raid5:3", 1, INTENT).await;
            for _ in 0..3 {
                assert_eq!(Array::strangers(&sim, &config(&SETTINGS), &rig.members()).await, [0usize; 0]);
                let array = rig.open(&[]).await.unwrap();
                assert_eq!((array.older(), array.missing(), array.member_of(3)), (vec![], vec![], None));
                rig.check(&array, 1).await;
            }
            rig.drives[1].is_gone.set(true);
            let array = rig.open(&[]).await.unwrap();
            rig.rebuilt(&array).await;
            assert_eq!(array.member_of(3), Some(1));
            rig.check(&array, 1).await;
        })
        .unwrap();
}

#[test]
fn a_witness_knows_a_drive_that_has_not_what_it_had() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    executor
        .block_on(async {
            let rig = Rig::new(&sim, "raid5:3", 0, INTENT).await;
            let before = rig.copy_of(1).await;
            let array = rig.open(&[]).await.unwrap();
            let witness = array.witness(1).unwrap();
            let blocks = |bytes: &[u8]| {
                let block = |place: u64| bytes[place as usize * 512..][..512].to_vec();
                witness.places().map(block).to_vec()
            };
            let now = rig.copy_of(1).await;
            assert_eq!(witness.sees(&blocks(&now)), Seen::Same);
            assert_eq!(witness.sees(&blocks(&before)), Seen::Older, "an older copy");
            assert_eq!(
                (witness.sees(&blocks(&vec![0; now.len()])), witness.sees(&[])),
                (Seen::Older, Seen::Older),
                "an empty one"
            );
            // Later records count, and a drive that is out of use is not asked for its own.
            array.fail_member(0);
            sim.sleep(Span::from_s(1)).await;
            assert_eq!(witness.sees(&blocks(&now)), Seen::Older);
            assert_eq!(witness.sees(&blocks(&rig.copy_of(1).await)), Seen::Same);
            assert_eq!(array.witness(0).unwrap().sees(&blocks(&rig.copy_of(0).await)), Seen::Same);
            // Another array uses the drives.
            let other = rig.open(&[]).await.unwrap();
            assert_eq!(witness.sees(&blocks(&rig.copy_of(1).await)), Seen::Newer);
            assert_eq!(other.witness(1).unwrap().sees(&blocks(&rig.copy_of(1).await)), Seen::Same);
        })
        .unwrap();
}

#[test]
fn a_member_that_misses_what_an_opening_has_written_is_not_trusted() {
    let journal = "array.journal=data";
    let mut executor = Executor::new();
    let sim = executor.sim();
    executor
        .block_on(async {
            let rig = Rig::new(&sim, "raid5:3", 0, journal).await;
            // A stripe is in the journal of all members and not in place when the host dies.
            let array = rig.open(&[journal]).await.unwrap();
            rig.drives.iter().for_each(|drive| drive.swallows_stripes.set(true));
            let issuer = Issuer::new(&sim);
            sim.spawn(async move {
                let entry = SubmissionEntry::blocks(IoOpcode::WRITE, 1, 0, 32);
                issuer.execute(&*array, entry, HostMem::from_bytes(&[7; 32 * 512])).await;
            });
            sim.sleep(Span::from_s(1)).await;
            rig.drives.iter().for_each(|drive| drive.swallows_stripes.set(false));
            // An opening without one of them ends midway.
            rig.drives[0].is_gone.set(true);
            rig.drives[1..].iter().for_each(|drive| drive.passes.set(Some(0)));
            sim.spawn({
                let (sim, members) = (sim.clone(), rig.members());
                async move { drop(Array::open(&sim, config(&[&SETTINGS[..], &[journal]].concat()), members).await) }
            });
            sim.sleep(Span::from_s(1)).await;
            rig.drives[1..].iter().for_each(|drive| drive.passes.set(None));
            rig.drives[0].is_gone.set(false);
            let array = rig.open(&[journal]).await.unwrap();
            rig.rebuilt(&array).await;
            assert_eq!(array.scrub().await.mismatches, 0);
        })
        .unwrap();
}

#[test]
fn copies_that_each_went_on_alone_are_not_put_together_unasked() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    executor
        .block_on(async {
            let rig = Rig::new(&sim, "raid1:2", 0, INTENT).await;
            let before = rig.copy_of(0).await;
            rig.drives[0].is_gone.set(true);
            let array = rig.open(&["array.force=true"]).await.unwrap();
            rig.write(&array, 5).await;
            drop(array);
            rig.drives[0].is_gone.set(false);
            rig.put_back(0, &before).await;
            rig.drives[1].is_gone.set(true);
            let array = rig.open(&["array.force=true"]).await.unwrap();
            rig.write(&array, 6).await;
            drop(array);
            rig.drives[1].is_gone.set(false);
            let told = rig.open(&[]).await.err().unwrap();
            assert!(told.contains("drives 0 and 1 each went on without the other"), "{told}");
            assert!(rig.open(&["array.force=true"]).await.is_ok());
        })
        .unwrap();
}

#[test]
fn parts_of_any_level_that_each_went_on_alone_are_not_put_together_unasked() {
    for (word, one, other) in
        [("raid1:3", &[0, 1][..], &[2][..]), ("raid10:4", &[0, 2], &[1, 3]), ("raid6:4", &[0, 1], &[2, 3])]
    {
        let mut executor = Executor::new();
        let sim = executor.sim();
        executor
            .block_on(async {
                let rig = Rig::new(&sim, word, 0, DATA).await;
                let mut before = Vec::new();
                for drive in one {
                    before.push((*drive, rig.copy_of(*drive).await));
                }
                one.iter().for_each(|drive| rig.drives[*drive].is_gone.set(true));
                let array = rig.open(&["array.force=true", DATA]).await.unwrap();
                rig.write(&array, 5).await;
                drop(array);
                one.iter().for_each(|drive| rig.drives[*drive].is_gone.set(false));
                for (drive, bytes) in &before {
                    rig.put_back(*drive, bytes).await;
                }
                other.iter().for_each(|drive| rig.drives[*drive].is_gone.set(true));
                let array = rig.open(&["array.force=true", DATA]).await.unwrap();
                rig.write(&array, 6).await;
                rig.write(&array, 7).await;
                drop(array);
                // They continued longer, so they have later records.
                other.iter().for_each(|drive| rig.drives[*drive].is_gone.set(false));
                let told = rig.open(&[DATA]).await.err().unwrap();
                assert!(told.contains("each went on without the other"), "{word}: {told}");
                assert!(rig.open(&["array.force=true", DATA]).await.is_ok());
            })
            .unwrap();
    }
}

#[test]
fn a_mirror_opens_without_a_member_that_it_went_on_without_and_that_cannot_be_read() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    executor
        .block_on(async {
            let rig = Rig::new(&sim, "raid1:3", 0, INTENT).await;
            let array = rig.open(&[]).await.unwrap();
            rig.drives[1].is_gone.set(true);
            rig.write(&array, 2).await;
            drop(array);
            // It is present again, and its records cannot be read.
            rig.drives[1].is_gone.set(false);
            rig.drives[1].bad.set((0, 2 * PAGE));
            for byte in [2, 3] {
                let array = rig.open(&[]).await.unwrap();
                assert_eq!((array.missing(), array.unread().len()), (vec![1], 1));
                rig.check(&array, byte).await;
                rig.write(&array, byte + 1).await;
            }
        })
        .unwrap();
}

#[test]
fn an_array_whose_making_was_stopped_is_told_from_one_that_lost_members() {
    // Records that each drive passes on before the host dies, of the two that are written to each.
    for passed in [[1, 0, 0], [1, 1, 0], [1, 1, 1], [2, 1, 1], [1, 2, 2]] {
        let mut executor = Executor::new();
        let sim = executor.sim();
        executor
            .block_on(async {
                let drives: Vec<Rc<Scratched>> = (0..3).map(|number| Rig::drive(&sim, number)).collect();
                let rig = Rig { sim: sim.clone(), issuer: Issuer::new(&sim), drives };
                rig.drives.iter().zip(passed).for_each(|(drive, count)| drive.passes.set(Some(count)));
                sim.spawn({
                    let (sim, members) = (sim.clone(), rig.members());
                    async move { drop(Array::create(&sim, shape("raid5:3"), config(&SETTINGS), members).await) }
                });
                sim.sleep(Span::from_s(1)).await;
                rig.drives.iter().for_each(|drive| drive.passes.set(None));
                let is_made = passed.contains(&2);
                assert_eq!(Array::has_records(&sim, &config(&SETTINGS), &rig.members()).await, is_made, "{passed:?}");
                if is_made {
                    let array = rig.open(&[]).await.unwrap();
                    assert_eq!(array.missing(), Vec::<usize>::new(), "{passed:?}");
                    assert_eq!(array.scrub().await.mismatches, 0);
                } else {
                    let told = rig.open(&[]).await.err().unwrap();
                    assert!(told.contains("was being made when that was stopped"), "{passed:?}: {told}");
                }
            })
            .unwrap();
    }
}

#[test]
fn one_record_that_cannot_be_read_is_made_up_for_by_the_others() {
    for page in [0, 1] {
        let mut executor = Executor::new();
        let sim = executor.sim();
        executor
            .block_on(async {
                let rig = Rig::new(&sim, "raid5:3", 0, INTENT).await;
                drop(rig.open(&[]).await.unwrap());
                rig.drives[2].bad.set((page * PAGE, (page + 1) * PAGE));
                let array = rig.open(&[]).await.unwrap();
                assert_eq!((array.missing(), array.unread()), (vec![], vec![]), "record {page}");
                rig.check(&array, 1).await;
            })
            .unwrap();
    }
}

#[test]
fn a_rebuilt_member_is_whole_once_that_is_recorded() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    executor
        .block_on(async {
            let rig = Rig::new(&sim, "raid5:3", 1, INTENT).await;
            let array = rig.open(&[]).await.unwrap();
            array.fail_member(0);
            // A rebuild writes nothing before the member is recorded as missing.
            while array.rebuilding().is_none_or(|(_, share)| share == 0.0) {
                sim.sleep(Span::from_us(100)).await;
            }
            rig.drives.iter().for_each(|drive| drive.holds.set(true));
            sim.sleep(Span::from_s(60)).await;
            // All stripes are present, and a crash would find the member missing.
            assert_eq!((array.missing(), array.rebuilding()), (vec![0], Some((0, 1.0))));
            rig.check(&array, 1).await;
            rig.drives.iter().for_each(|drive| drive.let_go());
            rig.rebuilt(&array).await;
            // Another member is lost with the host: the records have the first one.
            rig.drives[0].is_gone.set(true);
            rig.drives[1].is_gone.set(true);
            drop(array);
            let array = rig.open(&[]).await.unwrap();
            assert_eq!(array.missing(), [1]);
            rig.check(&array, 1).await;
        })
        .unwrap();
}

#[test]
fn where_an_unread_drive_may_have_later_data_the_array_opens_only_by_force() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    executor
        .block_on(async {
            let rig = Rig::new(&sim, "raid1:2", 0, INTENT).await;
            rig.drives[0].is_gone.set(true);
            let array = rig.open(&["array.force=true"]).await.unwrap();
            rig.write(&array, 2).await;
            drop(array);
            // The other reconnects stale, and the one with the data cannot be read.
            rig.drives[0].is_gone.set(false);
            for bad in [(0, 2 * PAGE), (0, PAGE), (PAGE, 2 * PAGE)] {
                rig.drives[1].bad.set(bad);
                let told = rig.open(&[]).await.err().unwrap();
                assert!(told.contains("may have later data than the others"), "{bad:?}: {told}");
                assert!(told.contains("the records of drive 1 cannot be read: Unrecovered Read Error"), "{told}");
            }
            rig.drives[1].bad.set((0, 0));
            let array = rig.open(&[]).await.unwrap();
            assert_eq!(array.rebuilding().map(|(member, _)| member), Some(0));
            rig.rebuilt(&array).await;
            rig.check(&array, 2).await;
            drop(array);
            rig.drives.iter().for_each(|drive| drive.bad.set((0, 2 * PAGE)));
            let told = rig.open(&[]).await.err().unwrap();
            assert!(told.contains("no drive has the record") && told.contains("of drive 0 cannot be read"), "{told}");
        })
        .unwrap();
}

#[test]
fn a_drive_that_was_replaced_is_no_member_when_it_comes_back() {
    for word in ["raid5:3", "raid1:2", "raid6:4"] {
        let mut executor = Executor::new();
        let sim = executor.sim();
        executor
            .block_on(async {
                let rig = Rig::new(&sim, word, 1, INTENT).await;
                let spare = rig.drives.len() - 1;
                let array = rig.open(&[]).await.unwrap();
                rig.drives[1].is_gone.set(true);
                rig.write(&array, 2).await;
                rig.rebuilt(&array).await;
                assert_eq!(array.member_of(spare), Some(1), "{word}");
                rig.write(&array, 3).await;
                drop(array);
                rig.drives[1].is_gone.set(false);
                let array = rig.open(&[]).await.unwrap();
                assert_eq!((array.member_of(1), array.member_of(spare)), (None, Some(1)), "{word}");
                assert_eq!(array.missing(), [0usize; 0], "{word}");
                rig.check(&array, 3).await;
                assert_eq!(array.scrub().await.mismatches, 0, "{word}");
            })
            .unwrap();
    }
}

#[test]
fn a_member_whose_journal_cannot_be_read_is_missing() {
    for slot in [0, 1, 31] {
        let mut executor = Executor::new();
        let sim = executor.sim();
        executor
            .block_on(async {
                let rig = Rig::new(&sim, "raid6:4", 0, "array.journal=data").await;
                let first = 4 * PAGE + slot * SLOT;
                rig.drives[3].bad.set((first, first + SLOT));
                let array = rig.open(&["array.journal=data"]).await.unwrap();
                assert_eq!((array.missing(), array.unread()), (vec![3], vec![(3, UNREAD)]), "slot {slot}");
                rig.check(&array, 1).await;
                drop(array);
                rig.drives[0].bad.set((first, first + SLOT));
                rig.drives[1].bad.set((first, first + SLOT));
                let told = rig.open(&["array.journal=data"]).await.err().unwrap();
                assert!(told.contains("the journal of more members cannot be read"), "{told}");
            })
            .unwrap();
    }
}

#[test]
fn without_a_member_that_tells_what_was_being_written_an_array_does_not_open() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    executor
        .block_on(async {
            let rig = Rig::new(&sim, "raid5:3", 0, INTENT).await;
            rig.drives[..2].iter().for_each(|drive| drive.bad.set((2 * PAGE, 3 * PAGE)));
            assert_eq!(rig.open(&[]).await.unwrap().missing(), [0usize; 0]);
            rig.drives[2].bad.set((2 * PAGE, 3 * PAGE));
            let told = rig.open(&[]).await.err().unwrap();
            assert!(told.contains("no member tells which regions were being written"), "{told}");
        })
        .unwrap();
}
