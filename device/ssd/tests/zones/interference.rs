//! Reads and writes of the ZN540 during finishes and resets of other zones, as measured by Doekemeijer et al., CLUSTER 2023.
//! The figures are those of docs/validation/profiles.md, which gives deviations with their reasons.
//!
//! A load of 50% finishes, or resets, one zone after another, with pauses as long as the operation before them.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_device_ftl_core::Plant;
use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Ssd};
use nandscape_drive::{HostMem, QueueId};
use nandscape_sim::histogram::Histogram;
use nandscape_sim::{Executor, Seed, Sim, Span};
use nandscape_wire_nvme::zns::send as action;
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

use crate::rig::{Queue, send};

/// Blocks from zone to zone, and blocks of a zone.
const SIZE: u64 = 1 << 19;
const CAPACITY: u64 = 275_712;
/// Zones that are read or written; the load is on other zones.
const USED: u64 = 4;

struct Bench {
    sim: Sim,
    host: Queue,
    is_over: Cell<bool>,
    latencies: RefCell<Histogram>,
}

impl Bench {
    async fn one(&self, entry: SubmissionEntry) {
        let status = self.host.execute(entry, HostMem::none()).await.status;
        assert!(status.is_success(), "{status}");
    }

    async fn act(&self, zone: u64, which: u8) {
        self.one(send(zone * SIZE, which.into())).await;
    }

    async fn timed(&self, entry: SubmissionEntry) {
        let begun = self.sim.now();
        self.one(entry).await;
        self.latencies.borrow_mut().record(self.sim.now() - begun);
    }

    /// The load, or an equally long time without it.
    async fn load(&self, zones: u64, which: u8) {
        for zone in USED..USED + zones {
            if which == action::FINISH {
                self.one(SubmissionEntry::blocks(IoOpcode::WRITE, 1, zone * SIZE, 1)).await;
            }
            let begun = self.sim.now();
            self.act(zone, which).await;
            self.sim.sleep(self.sim.now() - begun).await;
        }
    }
}

/// The times of commands of 4 KiB, and thousands of them per second.
struct Figures {
    mean_us: f64,
    p99_us: f64,
    kiops: f64,
}

/// Random reads, or sequential writes of that many zones, at a depth, during a load.
fn measure(opcode: IoOpcode, depth: u64, load: Option<(u64, u8)>) -> Figures {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let mut profile = Profile::load("wd-zn540").unwrap();
    profile.set("capacity=60GiB").unwrap();
    let ssd = Ssd::new(&sim, &profile.resolve().unwrap(), StoreKind::None, Seed::new(1)).unwrap();
    ssd.plant(Plant::Full, Seed::new(1), &mut |_| ());
    let host = Queue::new(&sim, &ssd, QueueId(1), 256);
    let bench = Bench { sim: sim.clone(), host, is_over: Cell::new(false), latencies: RefCell::default() };
    let bench = Rc::new(bench);
    let ran = async {
        if opcode == IoOpcode::WRITE {
            for zone in 0..depth {
                bench.act(zone, action::RESET).await;
            }
        }
        if let Some((zones, action::FINISH)) = load {
            for zone in USED..USED + zones {
                bench.act(zone, action::RESET).await;
            }
        }
        let begun = sim.now();
        for number in 0..depth {
            let (bench, mut rng) = (bench.clone(), Seed::new(number).rng());
            sim.spawn(async move {
                for at in 0..CAPACITY {
                    let block = if opcode == IoOpcode::READ { rng.below(CAPACITY) } else { at };
                    let zone = if opcode == IoOpcode::READ { rng.below(USED) } else { number };
                    bench.timed(SubmissionEntry::blocks(opcode, 1, zone * SIZE + block, 1)).await;
                    if bench.is_over.get() {
                        return;
                    }
                }
                panic!("a zone is full before the load is over");
            });
        }
        match load {
            Some((zones, which)) => bench.load(zones, which).await,
            None => sim.sleep(Span::from_ms(200)).await,
        }
        bench.is_over.set(true);
        (sim.now() - begun).ns() as f64
    };
    let ns = executor.block_on_within(ran, 200_000_000).expect("it ends");
    let latencies = bench.latencies.borrow();
    Figures {
        mean_us: latencies.mean_ns() / 1e3,
        p99_us: latencies.quantile(0.99).ns() as f64 / 1e3,
        kiops: latencies.count() as f64 / ns * 1e6,
    }
}

fn assert_near(what: &str, got: f64, page: f64) {
    assert!((got / page - 1.0).abs() < 0.01, "{what}: {got:.1}, the page has {page}");
}

#[test]
fn reads_beside_finishes_are_as_the_page_tells() {
    let alone = measure(IoOpcode::READ, 12, None);
    assert_near("mean alone", alone.mean_us, 85.4);
    let beside = measure(IoOpcode::READ, 12, Some((2, action::FINISH)));
    assert_near("mean", beside.mean_us, 161.4);
    assert_near("p99", beside.p99_us, 2_505.0);
}

#[test]
fn writes_beside_resets_are_as_the_page_tells() {
    assert_near("alone", measure(IoOpcode::WRITE, 4, None).kiops, 142.8);
    assert_near("beside", measure(IoOpcode::WRITE, 4, Some((40, action::RESET))).kiops, 141.9);
}
