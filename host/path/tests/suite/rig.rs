//! A host over a drive whose commands all take the same time.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use nandscape_drive::breakdown::Breakdown;
use nandscape_drive::testing::{FakeDrive, INFO, Servers};
use nandscape_drive::{Completion, Drive, HostMem};
use nandscape_host_machine::{Affinity, Config as MachineConfig, Context, ThreadSpec};
use nandscape_host_path::{Config, LAYER, Path, Queues, Stripe, stage};
use nandscape_sim::{Executor, Sim, Span, Time};
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

use crate::announcing::{Announcing, Deadlines, Lead};

/// The drive's time for each command, in microseconds.
pub(crate) const DRIVE_US: u64 = 100;

/// The deadline of the reads of threads.
pub(crate) const DEADLINE_US: u32 = 10_000;

pub(crate) struct Rig {
    pub(crate) executor: Executor,
    pub(crate) sim: Sim,
    pub(crate) path: Rc<Path>,
    pub(crate) drive: Rc<FakeDrive<Span>>,
    /// How the drive announces, to hosts that ask.
    pub(crate) lead: Rc<Cell<Lead>>,
    /// Of the commands that the drive got.
    pub(crate) deadlines: Deadlines,
}

/// A machine with round costs, a power of two each, so that a sum shows its parts; in units of a microsecond.
pub(crate) fn machine(cores: usize) -> MachineConfig {
    let us = Span::from_us;
    MachineConfig {
        interrupt: us(1),
        softirq: us(2),
        ipi: us(4),
        timer: us(8),
        switch: us(16),
        ..MachineConfig::free(cores)
    }
}

pub(crate) fn config(cores: usize, changes: &[&str]) -> Config {
    let mut config = Config::free(machine(cores));
    let costs = ["syscall=20us", "submit=5us", "driver=3us", "handler=7us", "complete=9us", "wake=11us", "poll=13us"];
    costs.iter().for_each(|cost| config.set(&format!("host.{cost}")).unwrap());
    changes.iter().for_each(|change| config.set(change).unwrap());
    config
}

pub(crate) fn rig_with(config: Config, executor: Executor) -> Rig {
    let count = config.queue_pairs(64);
    rig_on(config, executor, (count, usize::MAX, None))
}

/// The same with queues of so many tags; with a chunk, the queues are ports of a controller.
pub(crate) fn rig_on(
    config: Config,
    executor: Executor,
    (count, tags, chunk_blocks): (usize, usize, Option<u64>),
) -> Rig {
    let sim = executor.sim();
    let drive = FakeDrive::new(&sim, INFO, Servers::Unlimited, Span::from_us(DRIVE_US));
    let us = Span::from_us(50);
    let lead = Rc::new(Cell::new(Lead { before: Some(us), predicts: us, free: 0 }));
    let deadlines = Deadlines::default();
    let connect = |_| Announcing::over(&sim, drive.connect() as Rc<dyn Drive>, &lead, &deadlines);
    let drives: Vec<Rc<dyn Drive>> = (0..count).map(connect).collect();
    let stripe = chunk_blocks.map(|chunk_blocks| {
        let whole = Announcing::over(&sim, drive.connect() as Rc<dyn Drive>, &lead, &deadlines);
        Stripe { whole, chunk_blocks }
    });
    let path = Path::new(&sim, config, Queues { drives, tags, stripe }).unwrap();
    Rig { executor, sim, path, drive, lead, deadlines }
}

pub(crate) fn rig(config: Config) -> Rig {
    rig_with(config, Executor::with_spurious_polls())
}

pub(crate) fn read() -> SubmissionEntry {
    SubmissionEntry::blocks(IoOpcode::READ, 1, 0, 8)
}

pub(crate) fn write() -> SubmissionEntry {
    SubmissionEntry::blocks(IoOpcode::WRITE, 1, 0, 8)
}

impl Rig {
    pub(crate) fn pinned(&self, cpu: usize) -> Context {
        let spec = ThreadSpec { affinity: Affinity::one(cpu), ..ThreadSpec::default() };
        self.path.machine().thread(spec).unwrap()
    }

    /// One read of a thread; its latency and breakdown.
    pub(crate) async fn read(path: &Rc<Path>, sim: &Sim, thread: &Context) -> (Span, Completion) {
        let begun = sim.now();
        let read = SubmissionEntry { cdw3: DEADLINE_US.into(), ..read() };
        let completion = path.io(thread, begun, (read, path.info().lba_bytes), HostMem::none()).await;
        (sim.now() - begun, completion)
    }

    /// Reads of threads, one on each processor given, that begin at the same time: latencies in microseconds.
    pub(crate) fn reads(&mut self, cpus: &[usize]) -> Vec<(u64, Completion)> {
        let ended = Rc::new(RefCell::new(Vec::new()));
        for (number, cpu) in cpus.iter().enumerate() {
            let (path, sim, thread, ended) = (self.path.clone(), self.sim.clone(), self.pinned(*cpu), ended.clone());
            self.sim.spawn(async move {
                let (latency, completion) = Rig::read(&path, &sim, &thread).await;
                ended.borrow_mut().push((number, latency.ns() / 1_000, completion));
            });
        }
        self.executor.block_on(self.sim.sleep(Span::from_ms(50))).unwrap();
        let mut ended = ended.take();
        ended.sort_by_key(|(number, ..)| *number);
        ended.into_iter().map(|(_, latency, completion)| (latency, completion)).collect()
    }
}

/// The host's stages that took time, in microseconds.
pub(crate) fn stages(breakdown: &Breakdown) -> Vec<(&'static str, u64)> {
    let mut stages: Vec<(&'static str, u64)> = Vec::new();
    for (_, cause, span) in breakdown.causes().filter(|(layer, ..)| *layer == LAYER) {
        let name = stage::split(cause).0;
        match stages.iter_mut().find(|(of, _)| *of == name) {
            Some((_, sum)) => *sum += span.ns(),
            None => stages.push((name, span.ns())),
        }
    }
    stages.into_iter().map(|(name, ns)| (name, ns / 1_000)).collect()
}

/// The waits for a processor by who had it, in microseconds.
pub(crate) fn delays(breakdown: &Breakdown) -> BTreeMap<&'static str, u64> {
    let holder = |(_, cause, span): (_, _, Span)| Some((stage::split(cause).1?, span.ns() / 1_000));
    breakdown.causes().filter_map(holder).collect()
}

pub(crate) fn host_us(breakdown: &Breakdown) -> u64 {
    stages(breakdown).iter().map(|(_, us)| us).sum()
}

pub(crate) const BEGINNING: Time = Time::ZERO;
