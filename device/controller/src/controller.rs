//! Fetching commands, serving them, posting their completions.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use nandscape_device_ftl::Ftl;
use nandscape_device_media::Media;
use nandscape_drive::breakdown::cause;
use nandscape_drive::ring::{Posted, Submission};
use nandscape_drive::{
    Breakdown, CompletionMemory, Controller, DriveInfo, HostMem, HostMemory, QueueId, Stage, SubmissionMemory,
};
use nandscape_sim::account::Totals;
use nandscape_sim::trace::{Event, Track};
use nandscape_sim::workers::Workers;
use nandscape_sim::{Cause, Sim, Span, Time};
use nandscape_wire_nvme::io::Cdw12;
use nandscape_wire_nvme::opcode::Transfer;
use nandscape_wire_nvme::{CompletionEntry, IoOpcode, Status, SubmissionEntry};

use crate::admin::Admin;
use crate::arbiter::Arbiter;
use crate::command::{Command, Namespace};
use crate::commands::ReadTo;
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
    pub(crate) reader: F::Reader<ReadTo>,
    pub(crate) link: Rc<Link>,
    pub(crate) admin: Admin,
    pub(crate) namespace: Namespace,
    pub(crate) queues: RefCell<Queues>,
    /// The host that creates queues by admin commands, if there is one.
    pub(crate) host: RefCell<Option<Rc<dyn HostMemory>>>,
    arbiter: RefCell<Box<dyn Arbiter>>,
    /// Commands in work.
    in_work: Cell<u32>,
    /// What the command was that ended last: those who got its slot waited for it.
    last_ended: Cell<Cause>,
    host_counts: Cell<HostCounts>,
    /// Commands that were fetched, each on its way through [`Fetched::serve`].
    served: Workers<Fetched<F>>,
    restarts: Workers<Rc<NvmeController<F>>>,
    /// A restart after a power cut is under way.
    restarting: Cell<bool>,
    me: Weak<NvmeController<F>>,
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
struct Fetched<F: Ftl> {
    controller: Rc<NvmeController<F>>,
    pair: PairKey,
    submission: Submission,
    /// When.
    at: Time,
    /// How often power had been cut by then.
    power_cuts: u32,
    /// What the command was whose end made room for it, should it have waited for that.
    behind: Cause,
}

/// How a command ended: status, and DW0 and DW1 of its completion.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Reply {
    pub(crate) status: Status,
    pub(crate) dw0: u32,
    pub(crate) dw1: u32,
    /// The first sector that it failed of, where that is known.
    pub(crate) sector: Option<u64>,
}

/// How a command failed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Failed {
    pub(crate) status: Status,
    /// The first sector that it failed of, where that is known.
    pub(crate) sector: Option<u64>,
}

impl From<Status> for Failed {
    fn from(status: Status) -> Failed {
        Failed { status, sector: None }
    }
}

impl<E: Into<Failed>> From<Result<(), E>> for Reply {
    fn from(result: Result<(), E>) -> Reply {
        let Failed { status, sector } = result.map_or_else(Into::into, |()| Status::SUCCESS.into());
        Reply { status, dw0: 0, dw1: 0, sector }
    }
}

impl<F: Ftl> NvmeController<F> {
    /// A controller over `ftl`, with no queue yet.
    pub fn new(
        sim: &Sim,
        media: Rc<Media>,
        ftl: Rc<F>,
        config: ControllerConfig,
        arbiter: Box<dyn Arbiter>,
    ) -> Rc<NvmeController<F>> {
        let namespace = Namespace {
            nsid: NSID,
            blocks: ftl.sectors() * 512 / u64::from(config.lba_bytes),
            lba_bytes: config.lba_bytes,
            max_blocks: (config.max_transfer / config.lba_bytes).min(1 << 16),
            keeps_data: media.keeps_data(),
        };
        let controller = Rc::new_cyclic(|me: &Weak<NvmeController<F>>| NvmeController {
            sim: sim.clone(),
            media,
            reader: ftl.reader(),
            ftl,
            link: Rc::new(Link::new(sim, config.link)),
            admin: Admin::new(sim),
            namespace,
            queues: RefCell::new(Queues::new(config.max_queue_pairs, config.max_queue_entries)),
            host: RefCell::default(),
            arbiter: RefCell::new(arbiter),
            in_work: Cell::new(0),
            last_ended: Cell::new(cause::HOST_READ),
            host_counts: Cell::default(),
            served: Workers::new(sim, Fetched::serve),
            restarts: Workers::new(sim, |controller: Rc<NvmeController<F>>| async move { controller.restart().await }),
            restarting: Cell::new(false),
            me: me.clone(),
            track: sim.trace().track("commands".to_owned()),
            config,
        });
        let weak = Rc::downgrade(&controller);
        controller.media.on_power_cut(move || {
            if let Some(controller) = weak.upgrade() {
                controller.begin_restart();
            }
        });
        controller
    }

    /// A handle for those who work for the controller.
    pub(crate) fn handle(&self) -> Rc<NvmeController<F>> {
        self.me.upgrade().expect("who calls this has one")
    }

    /// The FTL below.
    pub fn ftl(&self) -> &Rc<F> {
        &self.ftl
    }

    /// Busy time of the host link, to the host and from it.
    pub fn link_usage(&self) -> [Totals; 2] {
        self.link.usage()
    }

    /// Fetches while there are entries and command slots; called when either changes. What is fetched goes on to
    /// [`Fetched::serve`], side by side with the others, once [`Fetched::lead`] has passed.
    #[inline]
    fn fetch(&self) {
        while !self.restarting.get() && self.in_work.get() < self.config.command_slots {
            let mut queues = self.queues.borrow_mut();
            if queues.waiting().is_empty() {
                return;
            }
            let id = self.arbiter.borrow_mut().next(queues.waiting(), self.admin.arbitration_burst());
            let fetched = queues.fetch(id);
            drop(queues);
            let Some((pair, submission)) = fetched else { continue };
            self.in_work.set(self.in_work.get() + 1);
            if id != QueueId::ADMIN {
                self.ftl.prefetch(submission.entry.slba().saturating_mul(self.namespace.lba_sectors()));
            }
            let (at, behind) = (self.sim.now(), self.last_ended.get());
            let power_cuts = self.media.power_cuts();
            let fetched = Fetched { controller: self.handle(), pair, submission, at, power_cuts, behind };
            let [(_, link), (_, firmware)] = Fetched::<F>::lead(&self.config);
            self.served.start_after(link + firmware, fetched);
        }
    }

    /// Power is gone: what is in the queues waits until it is back.
    fn begin_restart(&self) {
        if !self.restarting.replace(true) {
            self.restarts.start(self.handle());
        }
    }

    /// Waits until power may be back, restarts the FTL with what the write buffer has kept, and fetches again.
    async fn restart(&self) {
        loop {
            self.media.power_returns().await;
            let cuts = self.media.power_cuts();
            self.ftl.restart(self.keeps_buffer()).await;
            if self.media.power_cuts() == cuts {
                break;
            }
        }
        self.restarting.set(false);
        self.fetch();
    }

    /// Whether the queue pair that a command came from is still there.
    pub(crate) fn has_pair(&self, pair: PairKey) -> bool {
        self.queues.borrow().exists(pair)
    }

    async fn io_command(&self, entry: &SubmissionEntry, mem: &HostMem, log: &mut Breakdown) -> Reply {
        let command = match Command::parse(entry, mem, &self.namespace) {
            Ok(command) => command,
            Err(status) => return Err(status).into(),
        };
        self.count(&command);
        match command {
            Command::Read { extent } => self.read(extent, mem, log).await.map_err(Failed::from).into(),
            Command::Write { extent, fua } => self.write(extent, Some(mem), fua, log).await.into(),
            // In boxes: what is rare must not make every command larger.
            Command::Compare { extent } => Box::pin(self.compare(extent, mem, log)).await.into(),
            Command::Verify { extent } => Box::pin(self.verify(extent, log)).await.into(),
            Command::WriteZeroes { extent, deallocate: false, fua } => {
                Box::pin(self.write(extent, None, fua, log)).await.into()
            }
            Command::WriteZeroes { extent, deallocate: true, fua } => {
                Box::pin(self.deallocate_to_zeroes(extent, fua, log)).await.into()
            }
            Command::Deallocate { extents, bytes } => Box::pin(self.deallocate(&extents, bytes, log)).await.into(),
            Command::Hints { bytes } => Box::pin(self.hints(bytes, log)).await.into(),
            Command::Flush => Box::pin(self.flush(log)).await.into(),
        }
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

    /// The command has ended; its slot is free for another.
    fn ended(&self, opcode: u8) {
        self.last_ended.set(cause_of(opcode));
        self.in_work.set(self.in_work.get() - 1);
        self.fetch();
    }

    #[inline]
    pub(crate) fn complete(&self, pair: PairKey, cid: u16, reply: Reply, breakdown: Breakdown) {
        let mut entry = CompletionEntry { cid: cid.into(), ..CompletionEntry::default() };
        (entry.dw0, entry.dw1) = (reply.dw0.into(), reply.dw1.into());
        entry.set_status(reply.status, false);
        let posted_to = self.queues.borrow_mut().post(pair, Posted { entry, breakdown });
        if let Some(memory) = posted_to {
            memory.notify();
        }
    }

    fn trace_command(&self, entry: &SubmissionEntry, start: Time) {
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

impl<F: Ftl> Fetched<F> {
    /// What a command takes from its fetch until it is served: it is on the way, and in the firmware's hands. Neither
    /// keeps other commands waiting.
    fn lead(config: &ControllerConfig) -> [(Stage, Span); 2] {
        [(Stage::Link, config.link.latency), (Stage::Firmware, config.firmware_time)]
    }

    /// Serves the command, once its [`lead`](Fetched::lead) has passed: parses it and does it, posts its completion, and
    /// lets others have its slot.
    async fn serve(self) {
        // By reference: they stay where they are.
        let Fetched { controller, submission: Submission { entry, mem, submitted }, .. } = &self;
        let Fetched { pair, at, power_cuts, behind, .. } = self;
        let submitted = *submitted;
        let mut log = Breakdown::new();
        log.waits(Stage::Queue).add(behind, at - submitted);
        Fetched::<F>::lead(&controller.config).into_iter().for_each(|(stage, time)| log.spend(stage, time));
        let reply = match pair.id {
            QueueId::ADMIN => Box::pin(controller.admin_command(pair, entry, mem, &mut log)).await,
            _ => Some(controller.io_command(entry, mem, &mut log).await),
        };
        let reply = match mem.has_failed() {
            true => reply.map(|_| Err(Status::DATA_TRANSFER_ERROR).into()),
            false => reply,
        };
        let reply = match power_cuts == controller.media.power_cuts() {
            true => reply,
            // Whatever became of it: the controller that fetched it is no more. Whoever drives the next one fails what was
            // outstanding.
            false => reply.map(|_| Err(Status::ABORTED_POWER_LOSS).into()),
        };
        if let Some(reply) = reply {
            if !reply.status.is_success() && pair.id != QueueId::ADMIN {
                let lba = reply.sector.map(|sector| sector / controller.namespace.lba_sectors());
                controller.admin.errors.borrow_mut().ended(pair.id.0, entry, reply.status, lba);
            }
            debug_assert_eq!(log.total(), controller.sim.now() - submitted, "stages do not sum: {log:?}");
            controller.complete(pair, entry.cid.get(), reply, log);
        }
        controller.report_warnings();
        controller.trace_command(entry, submitted);
        controller.ended(entry.opcode);
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
            unit_bytes: self.ftl.unit().bytes(),
            volatile_cache: self.has_volatile_cache(),
            keeps_data: self.namespace.keeps_data,
        }
    }

    fn create_queue_pair(
        &self,
        id: QueueId,
        submissions: Rc<dyn SubmissionMemory>,
        completions: Rc<dyn CompletionMemory>,
    ) -> Result<(), Status> {
        self.queues.borrow_mut().create_pair(id, submissions, completions)
    }

    fn delete_queue_pair(&self, id: QueueId) -> Result<(), Status> {
        let mut queues = self.queues.borrow_mut();
        queues.delete_submission(id)?;
        queues.delete_completion(id)?;
        drop(queues);
        if id == QueueId::ADMIN {
            self.admin.forget_event_requests();
        }
        Ok(())
    }

    fn attach(&self, host: Rc<dyn HostMemory>) -> Result<(), Status> {
        if !self.queues.borrow().is_empty() {
            return Err(Status::COMMAND_SEQUENCE_ERROR.final_());
        }
        self.host.replace(Some(host));
        Ok(())
    }

    fn detach(&self) {
        self.queues.borrow_mut().delete_all();
        self.admin.forget_event_requests();
        self.host.replace(None);
    }

    fn ring_submission(&self, id: QueueId, tail: u16) {
        self.queues.borrow_mut().set_sq_tail(id, tail);
        self.fetch();
    }

    fn ring_completion(&self, id: QueueId, head: u16) {
        let posted_to = self.queues.borrow_mut().set_cq_head(id, head);
        if let Some(memory) = posted_to {
            memory.notify();
            self.fetch();
        }
    }
}
