//! The drive of the experiments on OX-Block, scaled down, and their common code.
//!
//! The thesis' drive has 2 TB and gets 25 to 87 GB of writes. Here all quantities in bytes or in seconds are a
//! sixteenth: data, updates, intervals, and the pages of a chunk, so that data fills as many lines of chunks as in the thesis.

use std::rc::Rc;

use anyhow::{Result, anyhow, ensure};
use nandscape_device_ftl_core::Stats;
use nandscape_device_ftl_ox::OxBlock;
use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Ssd};
use nandscape_drive::{QueueDrive, QueueId};
use nandscape_lab_workload::{JobSpec, Limit, Runner, Share, Workload};
use nandscape_sim::{Executor, Seed, Sim, Span};

use nandscape_lab_ledger::experiment::{Choice, Parameter};

/// By how much everything is smaller.
pub(crate) const SCALE: u64 = 16;
/// Bytes of the data set: 5 GiB, scaled.
pub(crate) const DATA: u64 = (5 << 30) / SCALE;
/// Bytes of a write, and of a mapping unit.
pub(crate) const UNIT: u64 = 4_096;
/// Threads of the host.
const THREADS: u32 = 4;
/// Outstanding writes of a thread: together as many as the write cache holds.
const DEPTH: u32 = 32;

/// The drive, without what an experiment sets.
const DRIVE: [&str; 18] = [
    "capacity=22GiB",
    "geometry.channels=16",
    "geometry.dies_per_channel=8",
    "geometry.planes_per_die=1",
    "geometry.pages_per_block=32",
    "geometry.page_size=32KiB",
    "timing.cell=slc",
    "timing.read=169us",
    "timing.program=1800us",
    "timing.erase=5ms",
    "timing.bus=800MB/s",
    "link.bandwidth=2400MB/s",
    "buffer.mode=volatile",
    "buffer.size=512KiB",
    "ftl.kind=ox_block",
    "ftl.over_provisioning=42.86%",
    "ftl.ox_block.map_memory=512MiB",
    "ftl.ox_block.gc_slots=8",
];

/// Parameters of all experiments.
pub(crate) const GEOMETRY: Parameter = Parameter {
    what: "flash",
    value: "16 channels of 8 parallel units, pages of 32 KiB; chunks of 32 pages (512 in the thesis)",
    source: "OX 6.1.2, 6.1.4, 6.1.7.1",
};
pub(crate) const TIMES: Parameter = Parameter {
    what: "times of the flash",
    value: "a page: read in 210 us, programmed in 1.84 ms, 41 us of both for its transfer; erase 5 ms",
    source: "OX tables 4.6 and 4.7: a unit reads 156.30 MB/s and writes 17.81 MB/s; it gives no time for an erase",
};
pub(crate) const CACHE: Parameter = Parameter {
    what: "write cache",
    value: "512 KiB: a page of each channel is under way",
    source: "OX table 4.7: 16 channels write 301 MB/s with one page under way on each, which is about the rate of 6.2.2 without \
             collection",
};
pub(crate) const HOST: Parameter = Parameter {
    what: "load",
    value: "4 threads, 32 writes of 4 KiB outstanding each, uniform over the data set",
    source: "OX 6.2.2 for threads and distribution; the depth keeps the write cache full",
};

/// Choices of all experiments.
pub(crate) const SMALLER: Choice = Choice {
    open: "scale",
    taken: "a sixteenth of data, updates and intervals, and of the pages of a chunk; 512 GB of the 2 TB of flash, scaled likewise",
    why: "lines of chunks, checkpoints and shares of garbage stay as many; fewer chunks save memory, and change the least garbage \
          that is collected by 3% at most",
};
pub(crate) const WRITE_SIZE: Choice = Choice {
    open: "the size of an update, and when it completes",
    taken: "4 KiB, completed in the write cache",
    why: "the thesis cuts writes into 4 KiB and fills pages with them; completion on flash would program a page for each",
};

/// A drive under an experiment.
pub(crate) struct Drive {
    pub(crate) executor: Executor,
    pub(crate) sim: Sim,
    pub(crate) ssd: Rc<Ssd>,
    pub(crate) queue: Rc<QueueDrive>,
    seed: Seed,
}

impl Drive {
    /// The scaled drive with changes.
    pub(crate) fn new(changes: &[String], seed: Seed) -> Result<Drive> {
        let mut profile = Profile::load("default")?;
        DRIVE.iter().try_for_each(|change| profile.set(change))?;
        changes.iter().try_for_each(|change| profile.set(change))?;
        Drive::of(&profile, StoreKind::None, seed)
    }

    /// A drive of a profile.
    pub(crate) fn of(profile: &Profile, store: StoreKind, seed: Seed) -> Result<Drive> {
        let resolved = profile.resolve()?;
        ensure!(!resolved.is_reshaped(), "not the drive that was asked for: {}", resolved.notes.join("; "));
        let executor = Executor::new();
        let sim = executor.sim();
        let ssd = Rc::new(Ssd::new(&sim, &resolved, store, seed.child("drive"))?);
        let queue = QueueDrive::new(&sim, ssd.controller(), QueueId(1), resolved.max_queue_entries())
            .map_err(|status| anyhow!("the drive has no queue pair: {status}"))?;
        Ok(Drive { executor, sim, ssd, queue, seed })
    }

    /// The FTL.
    pub(crate) fn ftl(&self) -> &Rc<OxBlock> {
        self.ssd.ox_block().expect("the profile has an OX-Block")
    }

    /// Its counters.
    pub(crate) fn stats(&self) -> Stats {
        self.ssd.ftl_stats()
    }

    /// Writes `count` units of the first `bytes` bytes, in order or at random. Returns the time that it took.
    pub(crate) fn write(&mut self, pattern: &str, bytes: u64, count: u64) -> Result<Span> {
        let job = JobSpec {
            rw: pattern.parse()?,
            size: Share::Bytes(bytes),
            // In order by one thread, so that each unit is written once.
            numjobs: if pattern == "write" { 1 } else { THREADS },
            iodepth: DEPTH,
            ..JobSpec::default()
        };
        let workload = Workload { limit: Limit::Requests(count), ..Workload::of(job) };
        let runner = Runner::new(&self.sim, &workload, Box::new(()));
        let (queue, seed) = (self.queue.clone(), self.seed.child(pattern));
        let outcome = self.executor.block_on(runner.run(&workload, seed, |_, _| queue.clone()))?;
        ensure!(outcome.requests() == count, "{} of {count} writes succeeded", outcome.requests());
        Ok(outcome.elapsed())
    }

    /// Checks the tables.
    pub(crate) fn check(&self) -> Result<()> {
        self.ssd.check().map_err(|fault| anyhow!("the drive is inconsistent: {fault}"))
    }
}

/// A time of the thesis, scaled, as a value of a key.
pub(crate) fn scaled(seconds: f64) -> String {
    format!("{:.0}us", seconds * 1e6 / SCALE as f64)
}

/// Changes by which no checkpoint is taken unless the log or the flash is full.
pub(crate) fn never() -> Vec<String> {
    vec!["ftl.ox_block.checkpoint_interval=3600s".to_owned(), "ftl.ox_block.checkpoint_log=1GiB".to_owned()]
}

/// Changes by which checkpoints are taken at this interval, in seconds of the thesis, and for no other reason.
pub(crate) fn every(seconds: f64) -> Vec<String> {
    let interval = format!("ftl.ox_block.checkpoint_interval={}", scaled(seconds));
    vec![interval, "ftl.ox_block.checkpoint_log=1GiB".to_owned()]
}
