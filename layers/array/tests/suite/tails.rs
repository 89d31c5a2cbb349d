//! Policies over busy drives: the sub-I/Os that are sent, and the end of the read.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_drive::testing::INFO;
use nandscape_drive::{Completion, Drive, DriveInfo, HostMem, Io, Issuer};
use nandscape_layers_array::{Array, Config, Member, Stats};
use nandscape_sim::{Executor, Sim, Span, Time};
use nandscape_wire_nvme::vendor::{BUSY, FAST_FAIL, PREDICT_ONLY, PREEMPT};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

use crate::rig::{config, shape};

const READ: Span = Span::from_us(50);
const REJECT: Span = Span::from_us(1);

/// A member that is busy until a time: reads that may fail fast are rejected, others wait, unless they may preempt.
struct Fake {
    sim: Sim,
    busy_until: Cell<Time>,
    /// Reads so far, with their attributes.
    seen: RefCell<Vec<u32>>,
}

impl Drive for Fake {
    fn info(&self) -> DriveInfo {
        INFO
    }

    fn submit(&self, io: Io) {
        let (now, attributes) = (self.sim.now(), io.command.cdw2.get());
        let left = self.busy_until.get().since(now);
        if io.command.opcode == IoOpcode::READ.0 {
            self.seen.borrow_mut().push(attributes);
        }
        let (span, completion) = match (left.is_zero(), attributes) {
            (false, FAST_FAIL) => {
                let completion = Completion { dw0: left.ns().div_ceil(1_000) as u32, dw1: 1, ..Completion::of(BUSY) };
                (REJECT, completion)
            }
            (false, TOLD) => (left + READ, Completion { dw1: 1, ..Completion::of(Status::SUCCESS) }),
            (false, PREEMPT) => (READ, Completion::of(Status::SUCCESS)),
            _ => (left + READ, Completion::of(Status::SUCCESS)),
        };
        let sim = self.sim.clone();
        self.sim.spawn(async move {
            sim.sleep(span).await;
            io.token.complete(completion);
        });
    }
}

/// The attributes of a read that waits, and whose completion reports the cause.
const TOLD: u32 = FAST_FAIL | PREDICT_ONLY;

/// How a read of blocks of an array ended.
struct Outcome {
    us: u64,
    /// The attributes of the reads that each member saw.
    seen: Vec<Vec<u32>>,
    stats: Stats,
}

/// Reads chunks 0 to `chunks` of an array, whose members are busy for the microseconds given. In stripe 0 of four members, data
/// chunk i is on member i, and parity on member 3.
fn read(word: &str, technique: &str, busy_us: &[u64], chunks: u32) -> Outcome {
    read_by_chance(word, technique, busy_us, chunks, 1)
}

/// The same with a seed of choices by chance.
fn read_by_chance(word: &str, technique: &str, busy_us: &[u64], chunks: u32, seed: u64) -> Outcome {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let fakes: Vec<Rc<Fake>> = busy_us
        .iter()
        .map(|us| {
            let busy_until = Cell::new(Time::ZERO + Span::from_us(*us));
            Rc::new(Fake { sim: sim.clone(), busy_until, seen: RefCell::default() })
        })
        .collect();
    let members = fakes.iter().map(|fake| Member { io: fake.clone(), reads: None, admin: None }).collect();
    let settings = [&*format!("array.technique={technique}"), "array.timeout=100us"];
    let config = Config { seed, ..config(&settings) };
    let array = Array::new(&sim, shape(word), config, members).unwrap();
    let issuer = Issuer::new(&sim);
    let entry = SubmissionEntry::blocks(IoOpcode::READ, 1, 0, chunks * 8);
    let ended = executor.block_on(issuer.execute(&*array, entry, HostMem::none())).unwrap();
    assert_eq!(ended.status, Status::SUCCESS);
    let us = sim.now().ns() / 1_000;
    assert_eq!(ended.breakdown.total().ns() / 1_000, us);
    Outcome { us, seen: fakes.iter().map(|fake| fake.seen.borrow().clone()).collect(), stats: array.stats() }
}

#[test]
fn base_waits() {
    let read = read("raid5:4", "base", &[3_000, 0, 0, 0], 1);
    assert_eq!((read.us, read.seen), (3_050, vec![vec![TOLD], vec![], vec![], vec![]]));
    assert_eq!((read.stats.reads, read.stats.extra_reads, read.stats.reconstructions), (1, 0, 0));
    assert_eq!(read.stats.busy, [0, 1, 0, 0, 0], "counted as those of others");
}

#[test]
fn one_busy_chunk_is_reconstructed_after_its_rejection() {
    for technique in ["tea1", "tea2", "preempt"] {
        let one = read("raid5:4", technique, &[3_000, 0, 0, 0], 1);
        assert_eq!((one.us, one.seen), (51, vec![vec![FAST_FAIL]; 4]), "{technique}");
        assert_eq!(one.stats.busy, [0, 1, 0, 0, 0]);
        assert_eq!((one.stats.reads, one.stats.extra_reads, one.stats.reconstructions), (4, 3, 1));
        // Of a whole stripe, only the parity is missing.
        let whole = read("raid5:4", technique, &[0, 3_000, 0, 0], 3);
        assert_eq!((whole.us, whole.stats.reads, whole.stats.extra_reads), (51, 4, 1), "{technique}");
        let none = read("raid5:4", technique, &[0, 0, 0, 3_000], 3);
        assert_eq!((none.us, none.stats.reads, none.stats.busy[0]), (50, 3, 1), "{technique}");
    }
}

#[test]
fn of_two_busy_ones_the_shorter_is_resubmitted_without_the_bit() {
    let read = read("raid5:4", "tea2", &[3_000, 0, 0, 400], 3);
    assert_eq!(read.us, 450);
    assert_eq!(read.seen, [vec![FAST_FAIL], vec![FAST_FAIL], vec![FAST_FAIL], vec![FAST_FAIL, 0]]);
    assert_eq!((read.stats.busy.clone(), read.stats.resubmissions), (vec![0, 0, 1, 0, 0], 1));
}

#[test]
fn of_all_busy_ones_all_but_the_longest_are_resubmitted() {
    let read = read("raid5:4", "tea2", &[300, 900, 200, 400], 3);
    assert_eq!((read.us, read.stats.resubmissions, read.stats.busy[4]), (450, 3, 1));
    assert_eq!(read.seen[1], [FAST_FAIL]);
}

#[test]
fn without_remaining_times_chance_decides() {
    let of = |seed: u64| read_by_chance("raid5:4", "tea1", &[3_000, 0, 0, 400], 3, seed).us;
    let us: Vec<u64> = (0..40).map(of).collect();
    let count = |wanted: u64| us.iter().filter(|us| **us == wanted).count();
    assert_eq!(count(450) + count(3_050), 40, "{us:?}");
    assert!(count(450) > 8 && count(3_050) > 8, "{us:?}");
}

#[test]
fn a_preempting_read_does_not_wait() {
    let read = read("raid5:4", "preempt", &[3_000, 0, 0, 2_000], 3);
    assert_eq!(read.seen[3], [FAST_FAIL, PREEMPT]);
    assert_eq!(read.us, 52);
}

#[test]
fn proactive_reads_all_and_takes_the_first_that_suffice() {
    let one = read("raid5:4", "proactive", &[3_000, 0, 0, 0], 1);
    assert_eq!((one.us, one.seen), (50, vec![vec![TOLD]; 4]));
    assert_eq!((one.stats.reads, one.stats.extra_reads), (4, 3));
    let two = read("raid5:4", "proactive", &[3_000, 400, 0, 0], 3);
    assert_eq!(two.us, 450);
    let copies = read("raid10:4", "proactive", &[3_000, 0, 0, 0], 1);
    assert_eq!((copies.us, copies.stats.reads), (50, 2));
}

#[test]
fn speculative_reads_the_rest_when_the_time_is_over() {
    let early = read("raid5:4", "speculative", &[20, 0, 0, 0], 1);
    assert_eq!((early.us, early.stats.reads), (70, 1));
    let late = read("raid5:4", "speculative", &[3_000, 0, 0, 0], 1);
    assert_eq!((late.us, late.stats.reads, late.stats.extra_reads), (150, 4, 3));
}

#[test]
fn two_parities_evade_two_busy_ones_and_copies_one() {
    let two = read("raid6:5", "tea2", &[0, 3_000, 2_000, 0, 0], 3);
    assert_eq!((two.us, two.stats.resubmissions), (51, 0));
    let copies = read("raid1:2", "tea2", &[3_000, 0], 1);
    assert_eq!((copies.us, copies.stats.reads), (51, 2));
    let both = read("raid1:2", "tea2", &[3_000, 500], 1);
    assert_eq!((both.us, both.stats.resubmissions), (550, 1));
}

#[test]
fn rails_is_no_tail_policy_of_an_array() {
    let sim = Executor::new().sim();
    let fake = || Rc::new(Fake { sim: sim.clone(), busy_until: Cell::default(), seen: RefCell::default() });
    let members = (0..2).map(|_| Member { io: fake(), reads: None, admin: None }).collect();
    let refused = Array::new(&sim, shape("raid1:2"), config(&["array.technique=rails"]), members);
    assert!(refused.err().expect("it is refused").to_string().contains("Rails::new"));
}
