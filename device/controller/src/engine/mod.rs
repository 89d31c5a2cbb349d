//! The queue engine: fetches commands from queues, serves them through [`CommandSet`] and posts their completions.
//!
//! | file | what |
//! |---|---|
//! | `queues` | all queues: created, deleted, fetched from, posted to |
//! | `submissions`, `completions` | one queue of each kind |
//! | `waiting` | the queues with entries |
//! | `serve` | a command from its fetch to its completion |
//! | `fused` | two commands served as one |
//! | `coalescing` | interrupt coalescing |
//! | `asking` | commands that wait for memory which only their host reaches |
//! | `guarded` | commands that need a check before they are served |
//! | `stop` | commands that end early |
//! | `registers` | controller properties |
//! | `lifecycle` | deleting queues, reset, shutdown |

mod asking;
mod coalescing;
mod completions;
mod fused;
mod guarded;
mod lifecycle;
mod queues;
mod registers;
mod serve;
mod stop;
mod submissions;
mod waiting;

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use nandscape_drive::queue_memory::HostMemory;
use nandscape_drive::ring::Submission;
use nandscape_drive::{
    CompletionMemory, Controller, DriveInfo, HostIdentity, QueueId, SubmissionMemory, TransportModel,
};
use nandscape_sim::signal::Signal;
use nandscape_sim::{Cause, Sim};
use nandscape_wire_nvme::register::Capabilities;
use nandscape_wire_nvme::register::{self, ControllerConfiguration};
use nandscape_wire_nvme::vendor::ARBITER;
use nandscape_wire_nvme::{Status, SubmissionEntry};

use crate::admin::Admin;
use crate::arbiter::{Arbiter, ArbiterKind, Claim, Priority, WeightedRoundRobin};
use crate::command_set::any::AnySet;
use crate::command_set::{Culprit, NVM};
use crate::namespace::{Attached, Registrant};
use crate::subsystem::NvmSubsystem;
use asking::Asking;
use coalescing::Coalescing;
use fused::is_fused;
use lifecycle::Clearing;
use registers::Registers;
use stop::Waiters;

pub(crate) use asking::Permit;
pub(crate) use fused::FusedJob;
pub(crate) use lifecycle::Chore;
pub use queues::{Head, Queues};
pub(crate) use queues::{QueueKey, Search};
pub(crate) use serve::{CommandJob, LOST_DATA, cause_of};
pub use stop::Stop;
pub(crate) use waiting::QueueSet;
pub use waiting::Waiting;

/// An NVMe controller of a subsystem: queues, properties, features, events and errors of one host.
pub struct NvmeController {
    pub(crate) sim: Sim,
    pub(crate) subsystem: Rc<NvmSubsystem>,
    id: u16,
    /// The number of its creation in the subsystem. Unlike identifiers, numbers are never reused.
    pub(crate) number: u64,
    pub(crate) host: HostIdentity,
    pub(crate) model: TransportModel,
    pub(crate) admin: Admin,
    /// The namespaces that its host can use.
    pub(crate) namespaces: Attached,
    pub(crate) queues: RefCell<Queues>,
    pub(crate) waiters: Waiters,
    arbiter: RefCell<Box<dyn Arbiter>>,
    coalescing: Coalescing,
    asking: Rc<Asking>,
    registers: RefCell<Registers>,
    /// The host that names its queues by address, if any.
    pub(crate) attached: RefCell<Option<Rc<dyn HostMemory>>>,
    /// Whether entries are fetched; see [`NvmeController::update_fetching`].
    fetching: Cell<bool>,
    /// Whether it waits for a command slot.
    waits_for_slot: Cell<bool>,
    /// Why all queues are being deleted, if they are.
    clearing: Cell<Option<Clearing>>,
    /// Notified when a submission queue was deleted.
    deleted: Signal,
    me: Weak<NvmeController>,
}

impl NvmeController {
    /// A controller with no queue yet: ready for hosts in this process, disabled for others.
    pub(crate) fn new(
        subsystem: Rc<NvmSubsystem>,
        (id, number): (u16, u64),
        host: HostIdentity,
        model: TransportModel,
    ) -> Rc<NvmeController> {
        let (sim, config) = (subsystem.sim.clone(), &subsystem.config);
        let command_sets = match subsystem.set.identifier() {
            NVM => Capabilities::NVM,
            _ => Capabilities::LISTED,
        };
        let registers = match model {
            TransportModel::InProcess => {
                Registers::ready(config.max_queue_entries, command_sets, subsystem.set.selected_by())
            }
            TransportModel::Memory | TransportModel::Message => {
                Registers::disabled(config.max_queue_entries, command_sets)
            }
        };
        let controller = Rc::new_cyclic(|me: &Weak<NvmeController>| NvmeController {
            id,
            number,
            admin: Admin::new(&sim, &subsystem.saved, owner(&host, id), config.weights),
            host,
            model,
            namespaces: Attached::none(),
            queues: RefCell::new(Queues::new(&sim, config.max_queue_pairs, config.max_queue_entries)),
            waiters: Waiters::new(&sim),
            arbiter: RefCell::new(config.arbiter.arbiter()),
            coalescing: Coalescing::default(),
            asking: Asking::new(&sim),
            registers: RefCell::new(registers),
            attached: RefCell::new(None),
            fetching: Cell::new(false),
            waits_for_slot: Cell::new(false),
            clearing: Cell::new(None),
            deleted: Signal::new(&sim),
            me: me.clone(),
            subsystem: subsystem.clone(),
            sim,
        });
        controller.admin.settings.set_connected(controller.host.hostid, id);
        controller.choose_arbiter();
        controller.update_assigned();
        controller.update_fetching();
        controller
    }

    /// The host that values of features are saved for.
    pub(crate) fn owner(&self) -> Registrant {
        owner(&self.host, self.id)
    }

    /// A handle for work on behalf of the controller.
    fn handle(&self) -> Rc<NvmeController> {
        self.me.upgrade().expect("the caller holds one")
    }

    /// A weak reference.
    pub(crate) fn weak(&self) -> Weak<NvmeController> {
        self.me.clone()
    }

    /// The subsystem it is a part of.
    pub fn subsystem(&self) -> &Rc<NvmSubsystem> {
        &self.subsystem
    }

    /// The names that its host has given.
    pub fn host_identity(&self) -> &HostIdentity {
        &self.host
    }

    /// The command set.
    pub fn command_set(&self) -> &AnySet {
        &self.subsystem.set
    }

    /// Installs the arbiter chosen by the host, by the feature or else by CC.AMS.
    pub(crate) fn choose_arbiter(&self) {
        let weighted = self.registers.borrow().is_weighted();
        let mut arbiter = match ArbiterKind::of_feature(self.admin.settings.get(ARBITER, 0)) {
            Some(kind) => kind.arbiter(),
            None if weighted => Box::new(WeightedRoundRobin::default()),
            None => self.subsystem.config.arbiter.arbiter(),
        };
        let priorities = self.queues.borrow().priorities();
        priorities.into_iter().for_each(|(id, priority)| arbiter.created(id, priority));
        self.arbiter.replace(arbiter);
        self.update_weights();
    }

    /// The host has set Arbitration.
    pub(crate) fn update_weights(&self) {
        let [low, medium, high] = self.admin.settings.arbitration().weights();
        self.arbiter.borrow_mut().set_weights([high, medium, low]);
    }

    /// The subsystem has rules for the class and the tenant of commands.
    pub(crate) fn update_assigned(&self) {
        let rules = self.subsystem.assigned.borrow().of_client(&self.host, self.model);
        self.queues.borrow_mut().assign(rules);
    }

    /// A submission queue was created with a priority.
    pub(crate) fn set_priority(&self, id: QueueId, priority: Priority) {
        self.queues.borrow_mut().set_priority(id, priority);
        self.arbiter.borrow_mut().created(id, priority);
    }

    /// Whether its host names memory by SGLs. A host in this process passes its memory directly.
    pub(crate) fn takes_sgls(&self) -> bool {
        self.model == TransportModel::Message || self.creates_queues()
    }

    /// Whether it has queues other than the admin queues.
    pub(crate) fn has_io_queues(&self) -> bool {
        self.queues.borrow().existing().iter().any(|id| *id != QueueId::ADMIN)
    }

    /// Whether commands and data pass as messages.
    pub(crate) fn passes_messages(&self) -> bool {
        self.model == TransportModel::Message
    }

    /// Whether it reports several controllers and shared namespaces: each host over messages has its own controller.
    pub(crate) fn reports_several(&self) -> bool {
        self.passes_messages() || self.subsystem.several.get()
    }

    /// Whether the host has set the controller's entry sizes.
    pub(crate) fn has_entry_sizes(&self) -> bool {
        self.registers.borrow().has_entry_sizes()
    }

    /// Whether its host has enabled it.
    pub(crate) fn is_enabled(&self) -> bool {
        self.registers.borrow().cc.enabled()
    }

    /// Whether a shutdown has begun.
    pub(crate) fn is_shut_down(&self) -> bool {
        self.registers.borrow().is_shut_down()
    }

    /// Whether its host creates queues by admin commands.
    pub(crate) fn creates_queues(&self) -> bool {
        self.attached.borrow().is_some()
    }

    /// Fetches while entries and command slots are available. Called when either changes. A separate worker serves each
    /// command after its [`CommandJob::lead`].
    #[inline(never)]
    pub(crate) fn fetch(&self) {
        self.fetch_here();
    }

    /// The same, on the doorbell path of most commands.
    #[inline(always)]
    fn fetch_here(&self) {
        let subsystem = &*self.subsystem;
        while self.fetching.get() && subsystem.slots.is_free() {
            let mut queues = self.queues.borrow_mut();
            if queues.waiting().is_empty() {
                return;
            }
            let id = self.arbiter.borrow_mut().next(&queues, self.admin.settings.arbitration_burst());
            let Some((queue, submission)) = queues.fetch(id) else {
                drop(queues);
                if self.check_queue_memory() {
                    return;
                }
                // Its entries were requested from the host. Other queues may have entries.
                continue;
            };
            drop(queues);
            if is_fused(id, &submission) && subsystem.set.fused().is_some() {
                self.fetch_fused(queue, submission);
            } else {
                self.start(queue, submission);
            }
        }
        if subsystem.slots.are_shared() {
            self.wait_for_slot();
        }
    }

    /// Queues for a slot, because other controllers might take every free one.
    #[cold]
    fn wait_for_slot(&self) {
        let waits = self.fetching.get() && !self.queues.borrow().waiting().is_empty();
        if waits && !self.waits_for_slot.replace(true) {
            self.subsystem.slots.wait(self.me.clone());
        }
    }

    /// The claim of its most urgent command to a slot.
    fn claim(&self) -> Option<Claim> {
        self.arbiter.borrow().claim(&self.queues.borrow())
    }

    /// Starts a fetched command.
    #[inline(always)]
    fn start(&self, queue: QueueKey, submission: Submission) {
        let subsystem = &*self.subsystem;
        let behind = subsystem.slots.take();
        let namespace = self.namespace_of(queue.id, &submission.entry);
        if let Some(namespace) = &namespace {
            subsystem.set.prefetch(namespace, &submission.entry);
        }
        let power_cuts = subsystem.power.cuts().get();
        const { assert!(size_of::<CommandJob>() <= 128) };
        let job = CommandJob { controller: self.handle(), queue, submission, namespace, power_cuts, behind };
        let [(_, link), (_, firmware)] = CommandJob::lead(&subsystem.config);
        subsystem.jobs.start_after(link + firmware, job);
    }

    /// A command has ended; its slot is free for another.
    #[inline(always)]
    fn ended(&self, queue: QueueKey, cause: Cause) {
        let subsystem = &*self.subsystem;
        let is_last = subsystem.slots.give_back(cause);
        let mut queues = self.queues.borrow_mut();
        let (ends_deletion, any_waits) = (queues.ended(queue), !queues.waiting().is_empty());
        drop(queues);
        if ends_deletion {
            self.end_deletion(queue.id);
        }
        if is_last && subsystem.power.is_restarting() {
            subsystem.slots.report_idle();
        }
        if subsystem.slots.are_shared() {
            self.fetch_in_turn();
        }
        if any_waits {
            self.fetch();
        }
    }

    /// Whether a host in this process may create a queue now.
    fn check_takes(&self, id: QueueId) -> Result<(), Status> {
        // A connecting host has its admin queue before it enables the controller.
        let takes_queues = id == QueueId::ADMIN || self.registers.borrow().is_ready();
        match self.clearing.get().is_none() && takes_queues {
            true => Ok(()),
            false => Err(Status::COMMAND_SEQUENCE_ERROR.final_()),
        }
    }

    /// Lets the controllers fetch that waited for a slot.
    #[cold]
    fn fetch_in_turn(&self) {
        while self.subsystem.slots.is_free()
            && let Some(next) = self.subsystem.slots.next_waiting(NvmeController::claim)
        {
            next.waits_for_slot.set(false);
            next.fetch();
        }
    }
}

/// A host, by the identifier with which it connected, or else by the controller.
fn owner(host: &HostIdentity, controller: u16) -> Registrant {
    match host {
        HostIdentity { function: Some(function), .. } => Registrant::Function(*function),
        HostIdentity { hostid, .. } if *hostid == [0; 16] => Registrant::Controller(controller),
        HostIdentity { hostid, .. } => Registrant::Host(*hostid),
    }
}

impl Drop for NvmeController {
    fn drop(&mut self) {
        self.subsystem.forget(self.id);
    }
}

impl Controller for NvmeController {
    fn info(&self) -> DriveInfo {
        self.subsystem.info_of(self.namespaces.first().as_deref())
    }

    fn info_of(&self, nsid: u32) -> Option<DriveInfo> {
        self.namespaces.get(nsid).map(|namespace| self.subsystem.info_of(Some(&namespace)))
    }

    fn id(&self) -> u16 {
        self.id
    }

    fn create_queue_pair(
        &self,
        id: QueueId,
        submissions: Rc<dyn SubmissionMemory>,
        completions: Rc<dyn CompletionMemory>,
    ) -> Result<(), Status> {
        self.check_takes(id)?;
        self.queues.borrow_mut().create_pair(id, submissions, completions)
    }

    fn create_submission_queue(
        &self,
        id: QueueId,
        to: QueueId,
        submissions: Rc<dyn SubmissionMemory>,
    ) -> Result<(), Status> {
        self.check_takes(id)?;
        if id == QueueId::ADMIN || to == QueueId::ADMIN {
            return Err(Status::INVALID_QUEUE_ID.final_());
        }
        let entries = submissions.entries();
        self.queues.borrow_mut().create_submission(id, to, entries, || submissions)
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
        let rung = self.queues.borrow_mut().set_sq_tail(id, tail);
        match rung {
            Ok(()) => self.fetch_here(),
            Err(event) => self.bad_doorbell(event),
        }
    }

    fn ring_completion(&self, id: QueueId, head: u16) {
        let rung = self.queues.borrow_mut().set_cq_head(id, head);
        match rung {
            Ok(None) => {}
            Ok(Some(memory)) => {
                memory.notify();
                let _ = self.check_queue_memory();
                self.fetch();
            }
            Err(event) => self.bad_doorbell(event),
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

    fn reset_function(&self) {
        let was_enabled = self.registers.borrow_mut().reset();
        if was_enabled {
            self.clear(Clearing::Reset);
        }
    }

    fn set_keep_alive(&self, timeout_ms: u32) {
        self.connected_with_keep_alive(timeout_ms);
    }

    fn set_priority_class(&self, id: QueueId, class: u8) {
        if id != QueueId::ADMIN {
            self.set_priority(id, Priority::ALL[usize::from(class & 0b11)]);
        }
    }

    fn refuse(&self, id: QueueId, command: &SubmissionEntry, status: Status) -> Status {
        match self.admin.errors.borrow_mut().ended(id.0, command, status, Culprit::Unknown) {
            true => status.with_more(),
            false => status,
        }
    }

    fn abort(&self, id: QueueId, cid: u16) -> bool {
        self.abort_at_once(id, cid)
    }
}
