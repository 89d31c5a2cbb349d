//! Members that fail, reconnect, are rebuilt and are scrubbed: no data is lost, and parity is right afterwards.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use nandscape_device_ssd::Ssd;
use nandscape_drive::{Completion, Drive, DriveInfo, HostMem, Io, Issuer};
use nandscape_layers_array::{Array, Member};
use nandscape_sim::{Executor, Rng, Seed, Sim, Span};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

use crate::rig::{config, queue, seed, shape, ssd};

/// A drive that can be pulled, and reads of which can fail.
pub(crate) struct Pulled {
    pub(crate) below: Rc<dyn Drive>,
    pub(crate) is_gone: Cell<bool>,
    /// Reads that touch this block fail, until it is written.
    pub(crate) bad: Cell<Option<u64>>,
}

impl Drive for Pulled {
    fn info(&self) -> DriveInfo {
        self.below.info()
    }

    fn submit(&self, io: Io) {
        if self.is_gone.get() {
            return io.token.complete(Completion::of(Status::INTERNAL_ERROR));
        }
        let (slba, blocks) = (io.command.slba(), u64::from(io.command.cdw12.get() & 0xffff) + 1);
        if self.bad.get().is_some_and(|bad| (slba..slba + blocks).contains(&bad)) {
            match IoOpcode(io.command.opcode) {
                IoOpcode::READ => return io.token.complete(Completion::of(Status::UNRECOVERED_READ_ERROR)),
                IoOpcode::WRITE => self.bad.set(None),
                _ => {}
            }
        }
        self.below.submit(io);
    }
}

pub(crate) struct Rig {
    sim: Sim,
    array: Rc<Array>,
    drives: Vec<Rc<Pulled>>,
    ssds: Vec<Rc<Ssd>>,
    issuer: Issuer,
    /// The number in each block that was written.
    model: RefCell<BTreeMap<u64, u64>>,
    rng: RefCell<Rng>,
    next: Cell<u64>,
}

impl Rig {
    fn new(sim: &Sim, word: &str, spares: usize, seed: u64) -> Rig {
        let shape = shape(word);
        let ssds: Vec<Rc<Ssd>> = (0..shape.members + spares).map(|number| ssd(sim, &[], number as u64)).collect();
        let pulled = |ssd: &Rc<Ssd>| {
            Rc::new(Pulled { below: queue(sim, ssd, 1), is_gone: Cell::new(false), bad: Cell::new(None) })
        };
        let drives: Vec<Rc<Pulled>> = ssds.iter().map(pulled).collect();
        let members = drives.iter().map(|drive| Member { io: drive.clone(), reads: None, admin: None }).collect();
        let settings = ["array.technique=tea2", "array.chunk=8KiB", "array.rebuild_rate=0"];
        let array = Array::new(sim, shape, config(&settings), members).unwrap();
        let rng = RefCell::new(Seed::new(seed).child("degraded").rng());
        let (issuer, model) = (Issuer::new(sim), RefCell::default());
        Rig { sim: sim.clone(), array, drives, ssds, issuer, model, rng, next: Cell::new(0) }
    }

    /// Some concurrent writes, and reads of earlier data.
    async fn load(&self, rounds: usize) {
        for _ in 0..rounds {
            let mut writes = Vec::new();
            for lane in 0..6 {
                let (slba, blocks) = {
                    let mut rng = self.rng.borrow_mut();
                    (lane * 300 + rng.below(200), 1 + rng.below(90))
                };
                let number = self.next.get() + 1;
                self.next.set(number);
                let data: Vec<u8> = (0..blocks * 64).flat_map(|_| number.to_le_bytes()).collect();
                let entry = SubmissionEntry::blocks(IoOpcode::WRITE, 1, slba, blocks as u32);
                writes.push(self.issuer.execute(&*self.array, entry, HostMem::from_bytes(&data)));
                self.model.borrow_mut().extend((slba..slba + blocks).map(|block| (block, number)));
            }
            for write in writes {
                assert_eq!(write.await.status, Status::SUCCESS);
            }
            let at = self.rng.borrow_mut().below(1_700);
            self.check(at, 64).await;
        }
    }

    async fn check(&self, slba: u64, blocks: u64) {
        let mem = HostMem::zeroed(blocks as usize * 512);
        let entry = SubmissionEntry::blocks(IoOpcode::READ, 1, slba, blocks as u32);
        assert_eq!(self.issuer.execute(&*self.array, entry, mem.clone()).await.status, Status::SUCCESS, "block {slba}");
        for (block, bytes) in (slba..).zip(mem.to_vec().chunks_exact(512)) {
            let right = self.model.borrow().get(&block).copied().unwrap_or(0);
            assert!(bytes.chunks_exact(8).all(|word| word == right.to_le_bytes()), "block {block} is not {right}");
        }
    }

    async fn check_all(&self) {
        for slba in (0..1_792).step_by(64) {
            self.check(slba, 64).await;
        }
    }

    async fn rebuilt(&self) {
        while self.array.rebuilding().is_some() {
            self.sim.sleep(Span::from_ms(1)).await;
        }
        assert_eq!(self.array.missing(), [0usize; 0]);
    }
}

fn redundant() -> [(&'static str, usize); 4] {
    [("raid1:2", 1), ("raid5:4", 1), ("raid6:5", 2), ("raid10:4", 1)]
}

#[test]
fn members_die_and_spares_take_their_place() {
    for (word, deaths) in redundant() {
        for seed in seed()..seed() + 3 {
            let mut executor = Executor::new();
            let rig = Rig::new(&executor.sim(), word, deaths, seed);
            executor
                .block_on(async {
                    rig.load(6).await;
                    for death in 0..deaths {
                        rig.drives[(death + seed as usize) % rig.array.shape().members].is_gone.set(true);
                    }
                    // Found by the commands that fail; rebuilt while the load continues.
                    rig.load(12).await;
                    rig.check_all().await;
                    rig.rebuilt().await;
                    rig.check_all().await;
                    let report = rig.array.scrub().await;
                    assert_eq!((report.mismatches, report.unreadable), (0, 0), "{word}, seed {seed}");
                    assert!(report.stripes > 0 && !rig.array.is_lost());
                })
                .unwrap();
            rig.ssds.iter().for_each(|ssd| ssd.check().unwrap());
        }
    }
}

#[test]
fn a_stale_member_is_rebuilt_and_one_dies_while_it_is() {
    for (word, _) in redundant() {
        let mut executor = Executor::new();
        let rig = Rig::new(&executor.sim(), word, 1, seed());
        let spare = rig.array.shape().members;
        executor
            .block_on(async {
                rig.load(4).await;
                // The spare dies at once, so that the rebuild fails.
                rig.drives[spare].is_gone.set(true);
                rig.array.fail_member(1);
                rig.load(8).await;
                rig.check_all().await;
                assert_eq!(rig.array.missing(), [1], "{word}");
                // The member reconnects: its content is old.
                rig.array.add_spare(1);
                rig.load(8).await;
                rig.rebuilt().await;
                rig.check_all().await;
                assert_eq!(rig.array.scrub().await.mismatches, 0, "{word}");
            })
            .unwrap();
    }
}

#[test]
fn beyond_its_tolerance_an_array_fails_what_it_cannot_do() {
    for (word, deaths) in [("raid0:3", 1), ("raid5:4", 2), ("raid6:5", 3), ("raid1:2", 2)] {
        let mut executor = Executor::new();
        let rig = Rig::new(&executor.sim(), word, 0, 1);
        executor
            .block_on(async {
                rig.load(1).await;
                (0..deaths).for_each(|member| rig.array.fail_member(member));
                assert!(rig.array.is_lost(), "{word}");
                let write = SubmissionEntry::blocks(IoOpcode::WRITE, 1, 0, 64);
                let status = rig.issuer.execute(&*rig.array, write, HostMem::zeroed(64 * 512)).await.status;
                assert_eq!(status.meaning(), Status::WRITE_FAULT, "{word}");
                let read = SubmissionEntry::blocks(IoOpcode::READ, 1, 0, 120);
                let status = rig.issuer.execute(&*rig.array, read, HostMem::zeroed(120 * 512)).await.status;
                assert!(!status.is_success(), "{word}");
            })
            .unwrap();
    }
}

#[test]
fn what_cannot_be_read_is_put_together_and_rewritten() {
    for (word, _) in redundant() {
        let mut executor = Executor::new();
        let rig = Rig::new(&executor.sim(), word, 0, seed());
        executor
            .block_on(async {
                rig.load(6).await;
                for drive in &rig.drives {
                    drive.bad.set(Some(40));
                    // Copies are read in turn.
                    rig.check_all().await;
                    rig.check_all().await;
                    rig.sim.sleep(Span::from_ms(50)).await;
                    let scrubbed = rig.array.scrub().await;
                    drive.bad.set(None);
                    assert!(scrubbed.mismatches == 0 && scrubbed.unreadable <= 1, "{word}: {scrubbed:?}");
                }
                assert!(rig.array.stats().repairs > 0 && rig.array.missing().is_empty(), "{word}");
            })
            .unwrap();
    }
}
