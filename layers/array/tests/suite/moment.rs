//! Concurrent readers and writers of the same stripes, over drives that are busy at random: reconstructed data equals
//! the chunk's content at some moment of the read.
//!
//! Each chunk has its own writer, which writes rising numbers into all of its blocks; writers of one stripe change
//! the same parity. `NANDSCAPE_TEST_SEEDS` sets the number of seeds, `NANDSCAPE_TEST_SEED` the first.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_drive::{Completion, Drive, DriveInfo, HostMem, Io, Issuer};
use nandscape_layers_array::{Array, Member};
use nandscape_sim::{Executor, Rng, Seed, Sim, Span};
use nandscape_wire_nvme::vendor::{BUSY, FAST_FAIL, PREDICT_ONLY};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

use crate::rig::{config, queue, seed, shape, ssd};

/// Blocks of a chunk of 4 KiB.
const CHUNK: u32 = 8;
/// Chunks that are written and read: a few stripes, so that readers and writers meet.
const CHUNKS: u64 = 12;
const WRITES: u64 = 60;

/// A drive that is busy at random: then reads that may fail fast fail, and all else waits a while.
struct Moody {
    sim: Sim,
    below: Rc<dyn Drive>,
    rng: RefCell<Rng>,
}

impl Drive for Moody {
    fn info(&self) -> DriveInfo {
        self.below.info()
    }

    fn submit(&self, io: Io) {
        let mut rng = self.rng.borrow_mut();
        let is_busy = rng.below(3) == 0;
        let asks = io.command.cdw2.get() & (FAST_FAIL | PREDICT_ONLY);
        let may_fail = IoOpcode(io.command.opcode) == IoOpcode::READ && asks == FAST_FAIL;
        let wait = Span::from_us(if is_busy && !may_fail { rng.below(2_000) } else { rng.below(30) });
        drop(rng);
        let (sim, below) = (self.sim.clone(), self.below.clone());
        self.sim.spawn(async move {
            sim.sleep(wait).await;
            match is_busy && may_fail {
                true => io.token.complete(Completion { dw0: 500, dw1: 1, ..Completion::of(BUSY) }),
                false => below.submit(io),
            }
        });
    }
}

/// The numbers of a chunk: the last that was written and acknowledged, and the last that was sent.
#[derive(Clone, Default)]
struct Numbers {
    acknowledged: Rc<Cell<u64>>,
    sent: Rc<Cell<u64>>,
}

/// A number in every block of a chunk.
fn chunk_of(number: u64) -> Vec<u8> {
    (0..CHUNK).flat_map(|_| [number.to_le_bytes().to_vec(), vec![0; 504]].concat()).collect()
}

async fn write(issuer: Rc<Issuer>, array: Rc<Array>, chunk: u64, numbers: Numbers) {
    for number in 1..=WRITES {
        numbers.sent.set(number);
        let entry = SubmissionEntry::blocks(IoOpcode::WRITE, 1, chunk * u64::from(CHUNK), CHUNK);
        let ended = issuer.execute(&*array, entry, HostMem::from_bytes(&chunk_of(number))).await;
        assert_eq!(ended.status, Status::SUCCESS);
        numbers.acknowledged.set(number);
    }
}

/// Reads chunks until all writers are done.
async fn read(case: String, (issuer, array): (Rc<Issuer>, Rc<Array>), all: Vec<Numbers>, mut rng: Rng) {
    while all.iter().any(|numbers| numbers.acknowledged.get() < WRITES) {
        let chunks = 1 + rng.below(3);
        let first = rng.below(CHUNKS - chunks + 1);
        let least: Vec<u64> = all.iter().map(|numbers| numbers.acknowledged.get()).collect();
        let blocks = chunks as u32 * CHUNK;
        let mem = HostMem::zeroed(blocks as usize * 512);
        let entry = SubmissionEntry::blocks(IoOpcode::READ, 1, first * u64::from(CHUNK), blocks);
        assert_eq!(issuer.execute(&*array, entry, mem.clone()).await.status, Status::SUCCESS);
        for (at, block) in mem.to_vec().chunks(512).enumerate() {
            let chunk = first as usize + at / CHUNK as usize;
            let (number, rest) = block.split_at(8);
            let number = u64::from_le_bytes(number.try_into().expect("eight bytes"));
            let (least, most) = (least[chunk], all[chunk].sent.get());
            assert!(
                (least..=most).contains(&number),
                "{case}: chunk {chunk}, block {at}: {number} of {least} to {most}"
            );
            assert!(rest.iter().all(|byte| *byte == 0), "{case}: chunk {chunk}: bytes that nobody wrote");
        }
    }
}

fn run(word: &str, technique: &str, number: u64) {
    let (case, seed) = (format!("seed {number}, {word}, {technique}"), Seed::new(number).child("moment"));
    let mut executor = Executor::new();
    let sim = executor.sim();
    let moody = |number: u64| {
        let (below, rng) =
            (queue(&sim, &ssd(&sim, &[], number), 1), RefCell::new(seed.child("drive").nth(number).rng()));
        Member { io: Rc::new(Moody { sim: sim.clone(), below, rng }), reads: None, admin: None }
    };
    let members = (0..shape(word).members as u64).map(moody).collect();
    let settings = [&*format!("array.technique={technique}"), "array.windows=none", "array.timeout=50us"];
    let array = Array::new(&sim, shape(word), config(&settings), members).expect("a possible array");
    let issuer = Rc::new(Issuer::new(&sim));
    let all: Vec<Numbers> = (0..CHUNKS).map(|_| Numbers::default()).collect();
    for (chunk, numbers) in all.iter().enumerate() {
        sim.spawn(write(issuer.clone(), array.clone(), chunk as u64, numbers.clone()));
    }
    let reading = Rc::new(Cell::new(4));
    for number in 0..reading.get() {
        let reader =
            read(case.clone(), (issuer.clone(), array.clone()), all.clone(), seed.child("reader").nth(number).rng());
        let reading = reading.clone();
        sim.spawn(async move {
            reader.await;
            reading.set(reading.get() - 1);
        });
    }
    executor
        .block_on(async {
            while reading.get() > 0 {
                sim.sleep(Span::from_us(100)).await;
            }
            assert_eq!(array.scrub().await.mismatches, 0, "{case}");
        })
        .unwrap_or_else(|stalled| panic!("{case}: {stalled}"));
    let stats = array.stats();
    assert!(stats.reconstructions > 20, "{case}: the test is to reconstruct: {stats:?}");
}

#[test]
fn what_is_put_together_beside_writers_is_of_one_moment() {
    let count = std::env::var("NANDSCAPE_TEST_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(3);
    for number in seed()..seed() + count {
        for word in ["raid5:4", "raid6:5", "raid1:2", "raid10:4"] {
            for technique in ["tea2", "tea1", "proactive", "speculative"] {
                run(word, technique, number);
            }
        }
    }
}
