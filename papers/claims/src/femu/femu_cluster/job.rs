//! A word count on a cluster: each node has a drive, and holds a part of the input. Map tasks read their splits, count, and spill what
//! they have counted. Reduce tasks fetch their share of each spill, merge, and write the result to several nodes.
//!
//! A task does one thing after the other. Left out: scheduling, sorting, failures, a page cache, and contention for processors and
//! network: each task has its own.

use std::cell::Cell;
use std::rc::Rc;

use anyhow::{Result, ensure};
use nandscape_device_media::StoreKind;
use nandscape_device_ssd::Profile;
use nandscape_drive::{Drive, HostMem, Issuer, QueueDrive};
use nandscape_lab_run::{Precondition, Rig, RigDrive, Wanted};
use nandscape_sim::signal::Signal;
use nandscape_sim::{Seed, Sim, Span};
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

/// The shape of a job.
#[derive(Copy, Clone, Debug)]
pub(super) struct Job {
    /// Nodes, each with a drive.
    pub(super) nodes: u32,
    /// Map tasks of a node, and reduce tasks of a node.
    pub(super) tasks: u32,
    /// Bytes of the input of a map task.
    pub(super) split: u64,
    /// Bytes that a map task spills.
    pub(super) spill: u64,
    /// Bytes of each I/O.
    pub(super) io: u32,
    /// Bytes of the result of a reduce task.
    pub(super) result: u64,
    /// Nodes that get each part of the result.
    pub(super) replicas: u32,
    /// Bytes that a task counts or merges a second.
    pub(super) rate: f64,
    /// Bytes that a task fetches a second over the network.
    pub(super) network: f64,
}

/// What a job has taken.
pub(super) struct Taken {
    /// Seconds of the job.
    pub(super) seconds: f64,
    /// Blocks that were cleaned meanwhile, on all drives.
    pub(super) cleaned: u64,
}

/// The nodes of a cluster.
#[derive(Clone)]
struct Cluster {
    sim: Sim,
    job: Job,
    drives: Vec<Rc<QueueDrive>>,
    issuer: Rc<Issuer>,
    failed: Rc<Cell<u64>>,
    /// Tasks of the phase that have not ended.
    left: Rc<Cell<u32>>,
    ended: Rc<Signal>,
}

/// Bytes of a drive, from an address on.
#[derive(Copy, Clone)]
struct Place {
    node: u32,
    first: u64,
}

impl Job {
    /// Runs it on drives of a profile, each in its own steady state.
    pub(super) fn run(self, profile: &Profile, seed: Seed) -> Result<Taken> {
        let profile = profile.resolve()?;
        let drive = |number: u32| RigDrive {
            name: format!("node {number}"),
            profile: profile.clone(),
            store: StoreKind::None,
            precondition: Precondition::Steady,
            seed: seed.child("cluster").nth(number.into()),
        };
        let mut rig = Rig::build((0..self.nodes).map(drive).collect(), Wanted::default(), &())?;
        let drives: Vec<Rc<QueueDrive>> =
            (0..self.nodes as usize).map(|number| rig.connect(number, u32::MAX)).collect::<Result<_, _>>()?;
        let (needed, there) = (self.output(self.all_tasks()).first, drives[0].info().bytes());
        ensure!(needed <= there, "the job needs {needed} bytes of each drive, which has {there}");
        let sim = rig.sim().clone();
        let cluster = Cluster {
            job: self,
            drives,
            issuer: Rc::new(Issuer::new(&sim)),
            failed: Rc::default(),
            left: Rc::default(),
            ended: Rc::new(Signal::new(&sim)),
            sim,
        };
        let cleaned = |rig: &Rig| rig.ssds().map(|ssd| ssd.ftl_stats().gc_blocks).sum::<u64>();
        let before = cleaned(&rig);
        let took = rig.run(cluster.clone().all())?;
        ensure!(cluster.failed.get() == 0, "{} requests failed", cluster.failed.get());
        Ok(Taken { seconds: took.as_s(), cleaned: cleaned(&rig) - before })
    }

    fn all_tasks(&self) -> u32 {
        self.nodes * self.tasks
    }

    /// Where the input of a map task is.
    fn input(&self, task: u32) -> Place {
        Place { node: task / self.tasks, first: u64::from(task % self.tasks) * self.split }
    }

    /// Where it spills.
    fn spill(&self, task: u32) -> Place {
        let Place { node, first } = self.input(task);
        Place { node, first: u64::from(self.tasks) * self.split + first / self.split * self.spill }
    }

    /// Where a reduce task writes, on any node.
    fn output(&self, task: u32) -> Place {
        let first = u64::from(self.tasks) * (self.split + self.spill) + u64::from(task) * self.result;
        Place { node: task / self.tasks, first }
    }
}

impl Cluster {
    /// All map tasks, then all reduce tasks.
    async fn all(self) -> Span {
        let begun = self.sim.now();
        self.phase(async |cluster: Cluster, task| cluster.map(task).await).await;
        self.phase(async |cluster: Cluster, task| cluster.reduce(task).await).await;
        self.sim.now() - begun
    }

    /// Runs all tasks of a phase side by side.
    async fn phase(&self, work: impl AsyncFn(Cluster, u32) + Copy + 'static) {
        self.left.set(self.job.all_tasks());
        for task in 0..self.job.all_tasks() {
            let cluster = self.clone();
            self.sim.spawn(async move {
                work(cluster.clone(), task).await;
                cluster.left.set(cluster.left.get() - 1);
                cluster.ended.notify();
            });
        }
        while self.left.get() > 0 {
            self.ended.changed().await;
        }
    }

    async fn map(&self, task: u32) {
        let (input, spill) = (self.job.input(task), self.job.spill(task));
        let (mut counted, mut spilled) = (0, 0);
        for at in (0..self.job.split).step_by(self.job.io as usize) {
            self.io(IoOpcode::READ, input, at, self.job.io).await;
            self.compute(self.job.io).await;
            counted += u64::from(self.job.io);
            while (spilled + u64::from(self.job.io)) * self.job.split <= counted * self.job.spill {
                self.io(IoOpcode::WRITE, spill, spilled, self.job.io).await;
                spilled += u64::from(self.job.io);
            }
        }
    }

    async fn reduce(&self, task: u32) {
        let share = self.job.spill / u64::from(self.job.all_tasks());
        for map in 0..self.job.all_tasks() {
            // Tasks begin at different spills, as Hadoop's do.
            let from = self.job.spill((task + map) % self.job.all_tasks());
            let first = u64::from(task) * share;
            let most = u64::from(self.job.io).min(share);
            for at in (first..first + share).step_by(most as usize) {
                self.io(IoOpcode::READ, from, at, most as u32).await;
                self.sim.sleep(Span::from_ns((most as f64 / self.job.network * 1e9) as u64)).await;
                self.compute(most as u32).await;
            }
        }
        let output = self.job.output(task);
        for at in (0..self.job.result).step_by(self.job.io as usize) {
            for replica in 0..self.job.replicas {
                let node = (output.node + replica) % self.job.nodes;
                self.io(IoOpcode::WRITE, Place { node, ..output }, at, self.job.io).await;
            }
        }
    }

    async fn compute(&self, bytes: u32) {
        self.sim.sleep(Span::from_ns((f64::from(bytes) / self.job.rate * 1e9) as u64)).await;
    }

    async fn io(&self, opcode: IoOpcode, place: Place, at: u64, bytes: u32) {
        let drive = &self.drives[place.node as usize];
        let info = drive.info();
        let lba = u64::from(info.lba_bytes);
        let entry = SubmissionEntry::blocks(opcode, info.nsid, (place.first + at) / lba, bytes / info.lba_bytes);
        let done = self.issuer.execute(&**drive, entry, HostMem::none()).await;
        self.failed.set(self.failed.get() + u64::from(!done.status.is_success()));
    }
}
