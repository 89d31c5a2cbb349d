//! Fetching commands, serving them, posting their completions.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use nandscape_device_ftl::Ftl;
use nandscape_device_media::Media;
use nandscape_drive::breakdown::cause;
use nandscape_drive::ring::{Posted, Ring, Submission};
use nandscape_drive::{Breakdown, Controller, DriveInfo, QueueId, Stage};
use nandscape_sim::account::Totals;
use nandscape_sim::trace::{Event, Track};
use nandscape_sim::workers::Workers;
use nandscape_sim::{Cause, Sim, Time};
use nandscape_wire_nvme::io::Cdw12;
use nandscape_wire_nvme::opcode::Transfer;
use nandscape_wire_nvme::{CompletionEntry, IoOpcode, Status};

use crate::admin::Admin;
use crate::arbiter::{Arbiter, RoundRobin};
use crate::command::{Command, Namespace};
use crate::commands::PageJob;
use crate::config::ControllerConfig;
use crate::link::Link;
use crate::queues::{PairKey, Queues};

/// The identifier of the only namespace.
pub(crate) const NSID: u32 = 1;

/// An NVMe controller over an FTL.
pub struct NvmeController<F: Ftl> {
    pub(crate) sim: Sim,
    pub(crate) config: ControllerConfig,
    pub(crate) media: Rc<Media>,
    pub(crate) ftl: Rc<F>,
    pub(crate) link: Link,
    pub(crate) admin: Admin,
    pub(crate) namespace: Namespace,
    queues: RefCell<Queues>,
    arbiter: RefCell<Box<dyn Arbiter>>,
    generations: Cell<u32>,
    /// Commands in work.
    in_work: Cell<u32>,
    /// What the command was that ended last: those who got its slot waited for it.
    last_ended: Cell<Cause>,
    host_counts: Cell<HostCounts>,
    servers: Workers<Fetched>,
    pub(crate) page_reads: Workers<PageJob>,
    track: Track,
}

/// Commands of the host, for the SMART log.
#[derive(Copy, Clone, Default, Debug)]
pub(crate) struct HostCounts {
    pub(crate) reads: u64,
    pub(crate) read_bytes: u64,
    pub(crate) writes: u64,
}

/// A command that was fetched.
struct Fetched {
    pair: PairKey,
    submission: Submission,
}

/// How a command ended: status, and DW0 and DW1 of its completion.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Outcome {
    pub(crate) status: Status,
    pub(crate) dw0: u32,
    pub(crate) dw1: u32,
}

impl From<Result<(), Status>> for Outcome {
    fn from(result: Result<(), Status>) -> Outcome {
        Outcome { status: result.err().unwrap_or(Status::SUCCESS), dw0: 0, dw1: 0 }
    }
}

impl<F: Ftl> NvmeController<F> {
    /// A controller over `ftl`, with no queue yet.
    pub fn new(sim: &Sim, media: Rc<Media>, ftl: Rc<F>, config: ControllerConfig) -> Rc<NvmeController<F>> {
        let namespace = Namespace {
            nsid: NSID,
            blocks: ftl.sectors() * 512 / u64::from(config.lba_bytes),
            lba_bytes: config.lba_bytes,
            max_blocks: (config.max_transfer / config.lba_bytes).min(1 << 16),
            keeps_data: media.keeps_data(),
        };
        Rc::new_cyclic(|weak: &Weak<NvmeController<F>>| {
            let (serving, reading) = (weak.clone(), weak.clone());
            NvmeController {
                sim: sim.clone(),
                media,
                ftl,
                link: Link::new(sim, config.link),
                admin: Admin::new(sim),
                namespace,
                queues: RefCell::new(Queues::new(config.max_queue_pairs, config.max_queue_entries)),
                arbiter: RefCell::new(Box::new(RoundRobin::default())),
                generations: Cell::new(0),
                in_work: Cell::new(0),
                last_ended: Cell::new(cause::HOST_READ),
                host_counts: Cell::default(),
                servers: Workers::new(sim, move |fetched| {
                    let controller = serving.upgrade();
                    async move {
                        if let Some(controller) = controller {
                            controller.serve(fetched).await;
                        }
                    }
                }),
                page_reads: Workers::new(sim, move |job: PageJob| {
                    let controller = reading.upgrade();
                    async move {
                        if let Some(controller) = controller {
                            controller.read_part(job).await;
                        }
                    }
                }),
                track: sim.trace().track("commands".to_owned()),
                config,
            }
        })
    }

    /// The FTL below.
    pub fn ftl(&self) -> &Rc<F> {
        &self.ftl
    }

    /// Busy time of the host link, to the host and from it.
    pub fn link_usage(&self) -> [Totals; 2] {
        self.link.usage()
    }

    /// Fetches while there are entries and command slots. Called when either changes.
    fn fetch(&self) {
        while self.in_work.get() < self.config.command_slots {
            let mut queues = self.queues.borrow_mut();
            if queues.waiting().is_empty() {
                return;
            }
            let id = self.arbiter.borrow_mut().next(queues.waiting(), self.admin.arbitration_burst());
            let (pair, submission) = queues.fetch(id);
            drop(queues);
            self.in_work.set(self.in_work.get() + 1);
            self.servers.start(Fetched { pair, submission });
        }
    }

    async fn serve(&self, fetched: Fetched) {
        let Fetched { pair, submission } = fetched;
        let Submission { entry, mem, submitted } = submission;
        let mut log = Breakdown::new();
        log.wait_behind(Stage::Queue, self.last_ended.get(), self.sim.now() - submitted);
        self.sim.sleep(self.config.firmware_time).await;
        log.spend(Stage::Firmware, self.config.firmware_time);
        let outcome = if pair.id == QueueId::ADMIN {
            self.admin_command(&entry, &mem, &mut log).await
        } else {
            Some(self.io_command(&entry, &mem, &mut log).await)
        };
        if let Some(outcome) = outcome {
            debug_assert_eq!(log.total(), self.sim.now() - submitted, "stages do not sum: {log:?}");
            self.complete(pair, entry.cid.get(), outcome, log);
        }
        self.trace_command(&entry, submitted);
        self.last_ended.set(cause_of(entry.opcode));
        self.in_work.set(self.in_work.get() - 1);
        self.fetch();
    }

    async fn io_command(
        &self,
        entry: &nandscape_wire_nvme::SubmissionEntry,
        mem: &nandscape_drive::HostMem,
        log: &mut Breakdown,
    ) -> Outcome {
        let command = match Command::parse(entry, mem, &self.namespace) {
            Ok(command) => command,
            Err(status) => return Err(status).into(),
        };
        self.count(&command);
        match command {
            Command::Read { extent } => self.read(extent, mem, log).await,
            Command::Write { extent, fua } => self.write(extent, Some(mem), fua, log).await,
            Command::Compare { extent } => self.compare(extent, mem, log).await,
            Command::Verify { extent } => self.verify(extent, log).await,
            Command::WriteZeroes { extent, fua } => self.write_zeroes(extent, fua, log).await,
            Command::Deallocate { extents } => self.deallocate(&extents, mem, log).await,
            Command::Hints => self.hints(mem, log).await,
            Command::Flush => self.flush(log).await,
        }
        .into()
    }

    pub(crate) fn host_counts(&self) -> HostCounts {
        self.host_counts.get()
    }

    fn count(&self, command: &Command) {
        let mut counts = self.host_counts.get();
        match command {
            Command::Read { extent } => {
                counts.reads += 1;
                counts.read_bytes += extent.bytes();
            }
            Command::Write { .. } => counts.writes += 1,
            _ => {}
        }
        self.host_counts.set(counts);
    }

    fn complete(&self, pair: PairKey, cid: u16, outcome: Outcome, breakdown: Breakdown) {
        let mut entry = CompletionEntry { cid: cid.into(), ..CompletionEntry::default() };
        (entry.dw0, entry.dw1) = (outcome.dw0.into(), outcome.dw1.into());
        entry.set_status(outcome.status, false);
        let ring = self.queues.borrow_mut().post(pair, Posted { entry, breakdown });
        if let Some(ring) = ring {
            ring.notify();
        }
    }

    fn trace_command(&self, entry: &nandscape_wire_nvme::SubmissionEntry, start: Time) {
        self.sim.trace_event(|end| {
            let name = match IoOpcode(entry.opcode) {
                IoOpcode::READ => "read",
                IoOpcode::WRITE => "write",
                _ => "other",
            };
            Event {
                track: self.track,
                name,
                start,
                end,
                detail: entry.slba() << 16 | u64::from(Cdw12::of(entry).nlb_z()),
            }
        });
    }
}

/// On whose behalf a command works.
fn cause_of(opcode: u8) -> Cause {
    match Transfer::of(opcode) {
        Transfer::ToHost => cause::HOST_READ,
        _ => cause::HOST_WRITE,
    }
}

impl<F: Ftl> Controller for NvmeController<F> {
    fn info(&self) -> DriveInfo {
        DriveInfo {
            nsid: NSID,
            blocks: self.namespace.blocks,
            lba_bytes: self.namespace.lba_bytes,
            max_blocks: self.namespace.max_blocks,
            unit_bytes: self.ftl.unit_sectors() * 512,
            volatile_cache: self.has_volatile_cache(),
            keeps_data: self.namespace.keeps_data,
        }
    }

    fn create_queue_pair(&self, id: QueueId, ring: Rc<Ring>) -> Result<(), Status> {
        self.generations.set(self.generations.get() + 1);
        self.queues.borrow_mut().create(id, ring, self.generations.get())
    }

    fn delete_queue_pair(&self, id: QueueId) -> Result<(), Status> {
        self.queues.borrow_mut().delete(id)
    }

    fn ring_submission(&self, id: QueueId, tail: u16) {
        self.queues.borrow_mut().set_sq_tail(id, tail);
        self.fetch();
    }

    fn ring_completion(&self, id: QueueId, head: u16) {
        let freed = self.queues.borrow_mut().set_cq_head(id, head);
        if let Some(ring) = freed {
            ring.notify();
        }
    }
}
