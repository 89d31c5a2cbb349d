//! The queue engine: fetches commands from queues, has them served, posts their completions. It knows no command set but
//! through [`CommandSet`].
//!
//! | file | what |
//! |---|---|
//! | `queues` | how far each submission queue is fetched, each completion queue filled |
//! | `serve` | a command from its fetch to its completion |
//! | `stop` | commands that end early |
//! | `registers` | controller properties |
//! | `lifecycle` | deleting queues, reset, shutdown, restart after a power cut |

mod lifecycle;
mod queues;
mod registers;
mod serve;
mod stop;

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use nandscape_drive::breakdown::cause;
use nandscape_drive::queue_memory::HostMemory;
use nandscape_drive::{CompletionMemory, Controller, DriveInfo, QueueId, SubmissionMemory};
use nandscape_sim::account::Totals;
use nandscape_sim::signal::Signal;
use nandscape_sim::trace::Track;
use nandscape_sim::workers::Workers;
use nandscape_sim::{Cause, Sim};
use nandscape_wire_nvme::Status;
use nandscape_wire_nvme::register::{self, ControllerConfiguration};

use crate::admin::Admin;
use crate::arbiter::Arbiter;
use crate::command_set::CommandSet;
use crate::config::ControllerConfig;
use crate::link::Link;
use lifecycle::{Chore, Clearing};
use registers::Registers;
use serve::Job;
use stop::Waiters;

pub use queues::Waiting;
pub(crate) use queues::{QueueKey, Queues};
pub use stop::Stop;

/// An NVMe controller over a command set.
pub struct NvmeController<C: CommandSet> {
    pub(crate) sim: Sim,
    pub(crate) config: ControllerConfig,
    pub(crate) set: C,
    pub(crate) link: Rc<Link>,
    pub(crate) admin: Admin,
    pub(crate) queues: RefCell<Queues>,
    pub(crate) waiters: Waiters,
    arbiter: RefCell<Box<dyn Arbiter>>,
    registers: RefCell<Registers>,
    /// The host that names its queues by address, if there is one.
    pub(crate) attached: RefCell<Option<Rc<dyn HostMemory>>>,
    /// Commands in work.
    in_work: Cell<u32>,
    /// Entries are fetched; see [`NvmeController::update_fetching`].
    fetching: Cell<bool>,
    /// Why all queues are being deleted, if they are.
    clearing: Cell<Option<Clearing>>,
    /// A restart after a power cut is under way.
    restarting: Cell<bool>,
    power_cuts: Cell<u32>,
    /// What the command was that ended last: a command that gets its slot has waited for it.
    last_ended: Cell<Cause>,
    /// Told when no command is in work any more, during a restart.
    idle: Signal,
    /// Told when a submission queue was deleted.
    deleted: Signal,
    jobs: Workers<Job<C>>,
    chores: Workers<(Rc<NvmeController<C>>, Chore)>,
    me: Weak<NvmeController<C>>,
    track: Track,
}

impl<C: CommandSet> NvmeController<C> {
    /// A controller over a command set, with no queue yet.
    pub fn new(sim: &Sim, set: C, config: ControllerConfig, arbiter: Box<dyn Arbiter>) -> Rc<NvmeController<C>> {
        let controller = Rc::new_cyclic(|me: &Weak<NvmeController<C>>| NvmeController {
            sim: sim.clone(),
            set,
            link: Rc::new(Link::new(sim, config.link)),
            admin: Admin::default(),
            queues: RefCell::new(Queues::new(config.max_queue_pairs, config.max_queue_entries)),
            waiters: Waiters::new(sim),
            arbiter: RefCell::new(arbiter),
            registers: RefCell::new(Registers::new(config.max_queue_entries)),
            attached: RefCell::new(None),
            in_work: Cell::new(0),
            fetching: Cell::new(true),
            clearing: Cell::new(None),
            restarting: Cell::new(false),
            power_cuts: Cell::new(0),
            last_ended: Cell::new(cause::HOST_READ),
            idle: Signal::new(sim),
            deleted: Signal::new(sim),
            jobs: Workers::new(sim, Job::serve),
            chores: Workers::new(sim, async |(controller, chore): &mut (Rc<NvmeController<C>>, Chore)| {
                controller.do_chore(*chore).await;
            }),
            me: me.clone(),
            track: sim.trace().track("commands".to_owned()),
            config,
        });
        let weak = Rc::downgrade(&controller);
        controller.set.on_power_cut(Box::new(move || {
            if let Some(controller) = weak.upgrade() {
                controller.power_cut();
            }
        }));
        controller
    }

    /// A handle for work on behalf of the controller.
    fn handle(&self) -> Rc<NvmeController<C>> {
        self.me.upgrade().expect("the caller holds one")
    }

    /// The command set.
    pub fn command_set(&self) -> &C {
        &self.set
    }

    /// Busy time of the host link, to the host and from it.
    pub fn link_usage(&self) -> [Totals; 2] {
        self.link.usage()
    }

    /// Fetches while there are entries and command slots. It is called when either changes. Each command is served on a
    /// worker of its own once [`Job::lead`] has passed.
    #[inline]
    fn fetch(&self) {
        while self.fetching.get() && self.in_work.get() < self.config.command_slots {
            let mut queues = self.queues.borrow_mut();
            if queues.waiting().is_empty() {
                return;
            }
            let id = self.arbiter.borrow_mut().next(queues.waiting(), self.admin.settings.arbitration_burst());
            let Some(submission) = queues.fetch(id) else { continue };
            let queue = queues.key(id).expect("a queue that was fetched from exists");
            drop(queues);
            self.in_work.set(self.in_work.get() + 1);
            if id != QueueId::ADMIN {
                self.set.announce(&submission.entry);
            }
            let (at, behind, power_cuts) = (self.sim.now(), self.last_ended.get(), self.power_cuts.get());
            let job = Job { controller: self.handle(), queue, submission, at, power_cuts, behind };
            let [(_, link), (_, firmware)] = Job::<C>::lead(&self.config);
            self.jobs.start_after(link + firmware, job);
        }
    }

    /// A command has ended; its slot is free for another.
    fn ended(&self, queue: QueueKey, cause: Cause) {
        self.last_ended.set(cause);
        self.in_work.set(self.in_work.get() - 1);
        if self.queues.borrow_mut().ended(queue) {
            self.end_deletion(queue.id);
        }
        if self.restarting.get() && self.in_work.get() == 0 {
            self.idle.notify();
        }
        self.fetch();
    }
}

impl<C: CommandSet> Controller for NvmeController<C> {
    fn info(&self) -> DriveInfo {
        self.set.info()
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
        self.begin_deletion(id, true)
    }

    fn attach(&self, host: Rc<dyn HostMemory>) -> Result<(), Status> {
        if self.clearing.get().is_some() || !self.queues.borrow().is_empty() {
            return Err(Status::COMMAND_SEQUENCE_ERROR.final_());
        }
        self.attached.replace(Some(host));
        Ok(())
    }

    fn detach(&self) {
        self.attached.replace(None);
        self.clear(Clearing::Detach);
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

    fn register(&self, offset: u32) -> u32 {
        self.registers.borrow().get(offset)
    }

    fn set_register(&self, offset: u32, value: u32) {
        match offset {
            register::CC => self.handle().configure(ControllerConfiguration(value)),
            _ => self.registers.borrow_mut().set(offset, value),
        }
    }

    fn abort(&self, id: QueueId, cid: u16) -> bool {
        self.abort_command(id, cid)
    }
}
