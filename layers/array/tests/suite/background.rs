//! The class of sub-I/Os: those of a host's command have the class and tenant of the command; rebuilds, scrubs and what rails carries
//! over are idle work, unless a host's command waits for them.

use std::cell::RefCell;
use std::rc::Rc;

use nandscape_drive::{Drive, DriveInfo, HostMem, Io, Issuer};
use nandscape_layers_array::{Array, Member, Rails};
use nandscape_sim::{Executor, Seed, Sim, Span};
use nandscape_wire_nvme::vendor::Attributes;
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

use crate::rig::{config, queue, seed, shape, ssd};

/// The class and tenant of the host's commands.
const HOST: u32 = Attributes::of(3, 7).0;
const IDLE: u32 = Attributes::of(15, 0).0;

/// A drive, and the opcode, class and tenant of each command that it was sent.
struct Heard {
    below: Rc<dyn Drive>,
    commands: Rc<RefCell<Vec<(IoOpcode, u32)>>>,
}

impl Drive for Heard {
    fn info(&self) -> DriveInfo {
        self.below.info()
    }

    fn submit(&self, io: Io) {
        self.commands.borrow_mut().push((IoOpcode(io.command.opcode), io.command.cdw2.get() & 0xffff));
        self.below.submit(io);
    }
}

struct Rig {
    sim: Sim,
    issuer: Issuer,
    below: Vec<Rc<dyn Drive>>,
    commands: Rc<RefCell<Vec<(IoOpcode, u32)>>>,
}

impl Rig {
    fn new(sim: &Sim, drives: u64) -> Rig {
        let drive = |number| queue(sim, &ssd(sim, &["buffer.mode=volatile"], number), 1);
        let below = (0..drives).map(drive).collect();
        Rig { sim: sim.clone(), issuer: Issuer::new(sim), below, commands: Rc::default() }
    }

    fn heard(&self) -> Vec<Rc<dyn Drive>> {
        let heard = |below: &Rc<dyn Drive>| {
            Rc::new(Heard { below: below.clone(), commands: self.commands.clone() }) as Rc<dyn Drive>
        };
        self.below.iter().map(heard).collect()
    }

    fn array(&self, word: &str) -> Rc<Array> {
        let members = self.heard().into_iter().map(|io| Member { io, reads: None, admin: None }).collect();
        Array::new(&self.sim, shape(word), config(&["array.rebuild_rate=0"]), members).expect("a possible array")
    }

    /// A command of the host to its end.
    async fn host(&self, drive: &dyn Drive, opcode: IoOpcode, slba: u64, blocks: u32) {
        let plain = match opcode {
            IoOpcode::FLUSH => SubmissionEntry::io(opcode, 1),
            _ => SubmissionEntry::blocks(opcode, 1, slba, blocks),
        };
        let entry = SubmissionEntry { cdw2: HOST.into(), ..plain };
        let ended = self.issuer.execute(drive, entry, HostMem::zeroed(blocks as usize * 512)).await;
        assert_eq!(ended.status, Status::SUCCESS, "{opcode:?} of block {slba}");
    }

    /// Reads of one chunk, until `is_over`; how many.
    async fn reads(&self, drive: &dyn Drive, is_over: impl Fn() -> bool) -> usize {
        let (mut rng, mut reads) = (Seed::new(seed()).child("background").rng(), 0);
        while !is_over() {
            self.host(drive, IoOpcode::READ, rng.below(400) * 8, 8).await;
            self.sim.sleep(Span::from_us(rng.below(200))).await;
            reads += 1;
        }
        reads
    }

    /// The number of commands of an opcode with these attributes.
    fn count(&self, opcode: IoOpcode, attributes: u32) -> usize {
        self.commands.borrow().iter().filter(|command| **command == (opcode, attributes)).count()
    }

    /// All commands are a host's, or idle work.
    fn check(&self) {
        let others = self.commands.borrow().iter().find(|(_, cdw2)| ![HOST, IDLE].contains(cdw2)).copied();
        assert_eq!(others, None, "a command is neither a host's nor idle work");
    }
}

#[test]
fn a_rebuild_is_idle_work_and_reads_of_hosts_keep_their_class() {
    let mut executor = Executor::new();
    let rig = Rig::new(&executor.sim(), 3);
    executor
        .block_on(async {
            let array = rig.array("raid1:2");
            array.add_spare(2);
            rig.host(&*array, IoOpcode::WRITE, 0, 64).await;
            array.fail_member(1);
            let reads = rig.reads(&*array, || array.rebuilding().is_none()).await;
            rig.host(&*array, IoOpcode::FLUSH, 0, 0).await;
            assert!(array.missing().is_empty(), "members {:?} are missing", array.missing());
            assert!(reads > 20 && rig.count(IoOpcode::READ, HOST) == reads, "{reads} reads of the host");
            rig.check();
        })
        .unwrap();
    let (written, flushed) = (rig.count(IoOpcode::WRITE, IDLE), rig.count(IoOpcode::FLUSH, IDLE));
    assert_eq!(written, rig.count(IoOpcode::READ, IDLE), "each chunk is read once and written once");
    assert!(written > 1_000 && flushed == 2, "{written} chunks, {flushed} flushes");
    assert_eq!((rig.count(IoOpcode::WRITE, HOST), rig.count(IoOpcode::FLUSH, HOST)), (16, 2));
}

#[test]
fn a_scrub_is_idle_work_and_reads_of_hosts_keep_their_class() {
    let mut executor = Executor::new();
    let rig = Rig::new(&executor.sim(), 3);
    executor
        .block_on(async {
            let array = rig.array("raid5:3");
            // Parity that does not fit: the scrub writes it again.
            let stale = SubmissionEntry::blocks(IoOpcode::WRITE, 1, 80, 8);
            let ended = rig.issuer.execute(&*rig.below[0], stale, HostMem::from_bytes(&[1; 4_096])).await;
            assert_eq!(ended.status, Status::SUCCESS);
            assert!(array.start_scrub());
            let reads = rig.reads(&*array, || !array.scrubbed().1).await;
            let (report, _) = array.scrubbed();
            assert_eq!(report.mismatches, 1, "{report:?}");
            assert!(reads > 20 && rig.count(IoOpcode::READ, HOST) == reads, "{reads} reads of the host");
            rig.check();
            assert_eq!(rig.count(IoOpcode::READ, IDLE) as u64, report.stripes * 3);
            assert_eq!(rig.count(IoOpcode::WRITE, IDLE), 1);
        })
        .unwrap();
}

#[test]
fn a_rebuild_that_a_write_waits_for_is_no_idle_work() {
    let mut executor = Executor::new();
    let rig = Rig::new(&executor.sim(), 3);
    executor
        .block_on(async {
            let array = rig.array("raid1:2");
            array.add_spare(2);
            array.fail_member(1);
            // Until the rebuild reads its first stripe, which the host's write then waits for.
            while rig.commands.borrow().is_empty() {
                rig.sim.sleep(Span::from_us(1)).await;
            }
            rig.host(&*array, IoOpcode::WRITE, 0, 8).await;
        })
        .unwrap();
    let commands = rig.commands.borrow();
    assert_eq!(commands[0], (IoOpcode::READ, IDLE), "the rebuild's read of the first stripe");
    assert_eq!(commands[1], (IoOpcode::WRITE, 0), "its write to the spare, which the host waits for");
}

#[test]
fn what_rails_carries_over_is_idle_work() {
    let mut executor = Executor::new();
    let rig = Rig::new(&executor.sim(), 2);
    executor
        .block_on(async {
            let paths = rig.heard().try_into().unwrap_or_else(|_| unreachable!("two drives"));
            let rails = Rails::new(&rig.sim, "array", Span::from_ms(5), paths).expect("two drives of a kind");
            for number in 0..40 {
                rig.host(&*rails, IoOpcode::WRITE, number * 16, 8).await;
            }
            rig.host(&*rails, IoOpcode::FLUSH, 0, 0).await;
            rig.host(&*rails, IoOpcode::READ, 8_000, 8).await;
            while !rails.is_at_rest() {
                rig.sim.sleep(Span::from_ms(1)).await;
            }
        })
        .unwrap();
    rig.check();
    assert_eq!((rig.count(IoOpcode::WRITE, HOST), rig.count(IoOpcode::WRITE, IDLE)), (40, 40));
    assert_eq!((rig.count(IoOpcode::FLUSH, HOST), rig.count(IoOpcode::READ, HOST)), (2, 1));
}
