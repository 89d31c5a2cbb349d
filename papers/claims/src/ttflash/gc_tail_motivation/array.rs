//! Drives on one executor, each under its own background load, and one reader of stripes: it issues a sub-I/O to each
//! drive at the same time, waits for all, and reads the next stripe.
//!
//! Left out: all other work of a RAID driver; this is RAID-0, and takes no time.

use std::cell::Cell;
use std::rc::Rc;

use anyhow::{Result, ensure};
use nandscape_device_media::StoreKind;
use nandscape_device_ssd::Profile;
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Drive, HostMem, Issuer, QueueDrive};
use nandscape_lab_run::{Precondition, Rig, RigDrive, Wanted};
use nandscape_sim::signal::Signal;
use nandscape_sim::{Rng, Seed, Sim};
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

/// The background load: random 4 KiB requests with Poisson arrivals on each drive (open loop).
#[derive(Copy, Clone)]
pub(super) struct Noise {
    pub(super) opcode: IoOpcode,
    /// Requests a second, on each drive.
    pub(super) per_drive: f64,
}

/// Bytes of a request of the noise.
const NOISE_BYTES: u32 = 4_096;

/// Drives, and the host in front of them.
pub(super) struct Array {
    rig: Rig,
    host: Host,
}

/// State shared by tasks.
#[derive(Clone)]
struct Host {
    sim: Sim,
    drives: Vec<Rc<QueueDrive>>,
    issuer: Rc<Issuer>,
    failed: Rc<Cell<u64>>,
    /// Background load of earlier phases than this has ended.
    phase: Rc<Cell<u32>>,
}

/// A part of a stripe.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(super) struct SubIo {
    /// From its submission to its completion.
    pub(super) us: f64,
    /// Whether it waited for a garbage collection.
    pub(super) met_gc: bool,
}

impl Array {
    /// A number of drives of a profile, each in its own steady state.
    pub(super) fn new(profile: &Profile, count: usize, seed: Seed) -> Result<Array> {
        let profile = profile.resolve()?;
        let drive = |number: usize| RigDrive {
            name: format!("drive {number}"),
            profile: profile.clone(),
            store: StoreKind::None,
            precondition: Precondition::Steady,
            seed: seed.child("array").nth(number as u64),
        };
        let rig = Rig::build((0..count).map(drive).collect(), Wanted::default(), &())?;
        let drives = (0..count).map(|number| rig.connect(number, u32::MAX)).collect::<Result<_, _>>()?;
        let sim = rig.sim().clone();
        let issuer = Rc::new(Issuer::new(&sim));
        let host = Host { sim, drives, issuer, failed: Rc::default(), phase: Rc::default() };
        Ok(Array { rig, host })
    }

    /// Reads this number of stripes under background load, after a tenth as many unmeasured ones. Returns the sub-I/Os
    /// of each stripe, in the order of the drives. The background load ends with it.
    pub(super) fn read_stripes(
        &mut self,
        sub_io_bytes: u32,
        stripes: u64,
        noise: Noise,
        seed: Seed,
    ) -> Result<Vec<Vec<SubIo>>> {
        for number in 0..self.host.drives.len() {
            let rng = seed.child("noise").nth(number as u64).rng();
            self.host.sim.spawn(self.host.clone().noise(number, noise, rng));
        }
        let reader = self.host.clone().reader(sub_io_bytes, stripes + stripes / 10, seed.child("reader").rng());
        let mut read = self.rig.run(reader)?;
        self.host.phase.set(self.host.phase.get() + 1);
        ensure!(self.host.failed.get() == 0, "{} requests failed", self.host.failed.get());
        Ok(read.split_off((stripes / 10) as usize))
    }

    /// Blocks that were cleaned, on all drives.
    pub(super) fn blocks_cleaned(&self) -> u64 {
        self.rig.ssds().map(|ssd| ssd.ftl_stats().gc_blocks).sum()
    }

    /// Pages copied for each of those, on average; 0 where there were none.
    pub(super) fn moved_per_block(&self) -> f64 {
        let moved: u64 = self.rig.ssds().map(|ssd| ssd.ftl_stats().gc_units).sum();
        moved as f64 / self.blocks_cleaned().max(1) as f64
    }
}

impl Host {
    async fn noise(self, number: usize, noise: Noise, mut rng: Rng) {
        let phase = self.phase.get();
        loop {
            self.sim.sleep(rng.exponential(1e9 / noise.per_drive)).await;
            if self.phase.get() != phase {
                return;
            }
            let (command, host) = (self.somewhere(number, noise.opcode, NOISE_BYTES, &mut rng), self.clone());
            self.sim.spawn(async move {
                host.execute(number, command).await;
            });
        }
    }

    async fn reader(self, bytes: u32, stripes: u64, mut rng: Rng) -> Vec<Vec<SubIo>> {
        let mut read = Vec::new();
        for _ in 0..stripes {
            // All sub-I/Os of a stripe have the same address on their drives.
            let command = self.somewhere(0, IoOpcode::READ, bytes, &mut rng);
            read.push(self.stripe(command).await);
        }
        read
    }

    /// The same command on each drive, at the same time.
    async fn stripe(&self, command: SubmissionEntry) -> Vec<SubIo> {
        let parts: Rc<[Cell<Option<SubIo>>]> = self.drives.iter().map(|_| Cell::new(None)).collect();
        let ended = Rc::new(Signal::new(&self.sim));
        for number in 0..self.drives.len() {
            let (host, parts, ended) = (self.clone(), parts.clone(), ended.clone());
            self.sim.spawn(async move {
                parts[number].set(Some(host.execute(number, command).await));
                ended.notify();
            });
        }
        loop {
            if let Some(parts) = parts.iter().map(Cell::get).collect() {
                return parts;
            }
            ended.changed().await;
        }
    }

    async fn execute(&self, number: usize, command: SubmissionEntry) -> SubIo {
        let begun = self.sim.now();
        let done = self.issuer.execute(&*self.drives[number], command, HostMem::none()).await;
        self.failed.set(self.failed.get() + u64::from(!done.status.is_success()));
        SubIo { us: (self.sim.now() - begun).as_us(), met_gc: done.breakdown.waited_for(cause::GC) }
    }

    /// A command for this number of bytes at a random address, a multiple of it.
    fn somewhere(&self, number: usize, opcode: IoOpcode, bytes: u32, rng: &mut Rng) -> SubmissionEntry {
        let info = self.drives[number].info();
        let blocks = bytes / info.lba_bytes;
        let place = rng.below(info.blocks / u64::from(blocks));
        SubmissionEntry::blocks(opcode, info.nsid, place * u64::from(blocks), blocks)
    }
}
