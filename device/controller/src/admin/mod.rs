//! The admin commands: Identify, log pages, features, namespaces and queues.

mod abort;
mod collections;
mod directives;
mod errors;
mod events;
mod fdp;
mod features;
mod identify;
mod identify_namespaces;
mod keep_alive;
mod latency;
mod logs;
mod namespaces;
mod notices;
mod queues;
mod reservations;
mod telemetry;
mod windows;
mod zones;

use std::cell::{Cell, RefCell};

use nandscape_drive::mem::Need;
use nandscape_drive::{Breakdown, HostMem, Stage};
use nandscape_sim::{Sim, Time};
use nandscape_wire_nvme::command::{FLAGS_FUSED, FLAGS_PSDT};
use nandscape_wire_nvme::opcode::Transfer;
use nandscape_wire_nvme::open_channel::GEOMETRY;
use nandscape_wire_nvme::vendor::{GC_CONTROL, GC_STATUS, READY_FOR_READ};
use nandscape_wire_nvme::{AdminOpcode, Parameter, Status, SubmissionEntry, log};

use crate::command_set::Reply;
use crate::engine::{NvmeController, Permit, QueueKey};
use crate::namespace::Registrant;
use crate::refusal::Refusal;
use errors::ErrorLog;
pub(crate) use events::Event;
use events::Events;
pub use features::Settings;
use features::sets_write_protection;
pub(crate) use features::{Saved, SavedNote};
pub(crate) use identify::PAGE;
use keep_alive::KeepAlive;
pub(crate) use keep_alive::watch as watch_keep_alive;
use namespaces::ChangedNamespaces;
use reservations::Notifications;
pub(crate) use telemetry::Telemetry;
use zones::ChangedZones;

/// Asynchronous Event Request Limit: how many may be outstanding.
pub(crate) const EVENT_REQUESTS: u8 = 4;

/// Abort Command Limit.
pub(crate) const ABORTS: u8 = 4;

/// Commands that name no namespace (Base 5, "Opcodes for Admin Commands").
const WITHOUT_NAMESPACE: [AdminOpcode; 9] = [
    AdminOpcode::DELETE_IO_SQ,
    AdminOpcode::CREATE_IO_SQ,
    AdminOpcode::DELETE_IO_CQ,
    AdminOpcode::CREATE_IO_CQ,
    AdminOpcode::ABORT,
    AdminOpcode::ASYNCHRONOUS_EVENT_REQUEST,
    AdminOpcode::KEEP_ALIVE,
    AdminOpcode::DOORBELL_BUFFER_CONFIG,
    AdminOpcode::SANITIZE,
];

/// Commands that name the namespace whose NVM Set they are for, on a drive with several, and none on others.
const OF_SETS: [AdminOpcode; 3] = [GC_CONTROL, GC_STATUS, READY_FOR_READ];

/// Statuses of admin commands that may succeed on a retry.
const TRANSIENT: [Status; 9] = [
    Status::ABORT_LIMIT_EXCEEDED,
    Status::EVENT_REQUEST_LIMIT_EXCEEDED,
    Status::DATA_TRANSFER_ERROR,
    Status::FORMAT_IN_PROGRESS,
    Status::SANITIZE_IN_PROGRESS,
    Status::SELF_TEST_IN_PROGRESS,
    Status::ABORT_REQUESTED,
    Status::ABORTED_POWER_LOSS,
    Status::ABORTED_SQ_DELETION,
];

/// The state that admin commands set and count.
pub(crate) struct Admin {
    /// Abort commands under way.
    pub(crate) aborts: Cell<u8>,
    pub(crate) settings: Settings,
    pub(crate) keep_alive: KeepAlive,
    pub(crate) events: Events,
    pub(crate) errors: RefCell<ErrorLog>,
    pub(crate) changed_namespaces: ChangedNamespaces,
    pub(crate) changed_zones: ChangedZones,
    pub(crate) notifications: Notifications,
}

impl Admin {
    /// Of a new controller for a host.
    pub(crate) fn new(sim: &Sim, saved: &Saved, host: Registrant, weights: [u32; 3]) -> Admin {
        Admin {
            aborts: Cell::new(0),
            settings: Settings::new(saved, host, sim.now(), weights),
            keep_alive: KeepAlive::new(sim),
            events: Events::default(),
            errors: RefCell::default(),
            changed_namespaces: ChangedNamespaces::default(),
            changed_zones: ChangedZones::default(),
            notifications: Notifications::default(),
        }
    }

    /// Drops all outstanding event requests: the admin queue is deleted (Base 5.1.2, 3.7.2).
    pub(crate) fn forget_event_requests(&self) {
        self.events.forget();
    }

    /// The controller is reset.
    pub(crate) fn reset(&self, saved: &Saved, host: Registrant, now: Time) {
        self.settings.reset(saved, host, now);
        self.events.reset();
        self.changed_namespaces.clear();
        self.changed_zones.clear();
        self.notifications.clear();
    }
}

impl NvmeController {
    /// Serves a command of the admin queue. `None` means that it stays outstanding.
    pub(crate) async fn admin_command(
        &self,
        queue: QueueKey,
        entry: &SubmissionEntry,
        mem: &HostMem,
        breakdown: &mut Breakdown,
    ) -> Option<Reply> {
        if entry.flags & (FLAGS_FUSED | FLAGS_PSDT) != 0 {
            return Some(Err(Refusal::flags(entry.flags).final_()).into());
        }
        if entry.nsid.get() != 0 && self.takes_no_namespace(AdminOpcode(entry.opcode)) {
            return Some(Err(Refusal::of(Status::INVALID_FIELD, Parameter::NSID).final_()).into());
        }
        let mut permit = None;
        let answer = match AdminOpcode(entry.opcode) {
            AdminOpcode::IDENTIFY => self.identify(entry),
            GEOMETRY => self.geometry(entry),
            GC_CONTROL => self.control_collections(entry),
            GC_STATUS => self.collection_status(entry),
            READY_FOR_READ => self.ready_for_read(entry),
            AdminOpcode::GET_LOG_PAGE => self.serve_log_page((queue, entry), mem, &mut permit, breakdown).await,
            AdminOpcode::DIRECTIVE_RECEIVE => self.directive_receive(entry),
            AdminOpcode::DIRECTIVE_SEND => self.directive_send(entry),
            AdminOpcode::GET_FEATURES => self.get_features(entry),
            AdminOpcode::SET_FEATURES => match self.set_features(entry, mem) {
                Ok(answer) if sets_write_protection(entry) => {
                    let begun = self.sim.now();
                    // After a power cut, data in the write buffer waits for the restart, which waits for this command.
                    let stop = self.stop(queue, entry, self.subsystem.power.cuts().get());
                    let ended = stop.or_stopped(self.writes_have_ended(entry.nsid.get())).await;
                    breakdown.spend(Stage::Firmware, self.sim.now() - begun);
                    ended.map(|()| answer).map_err(Refusal::from)
                }
                answer => answer,
            },
            AdminOpcode::ABORT => self.serve_abort(entry, breakdown).await,
            AdminOpcode::CREATE_IO_CQ => self.create_completion_queue(entry),
            AdminOpcode::CREATE_IO_SQ => self.create_submission_queue(entry),
            AdminOpcode::DELETE_IO_SQ => self.delete_submission_queue(entry, breakdown).await,
            AdminOpcode::DELETE_IO_CQ => self.delete_completion_queue(entry),
            AdminOpcode::KEEP_ALIVE => {
                self.keep_alive();
                Ok(Answer::value(0))
            }
            AdminOpcode::DOORBELL_BUFFER_CONFIG => self.configure_doorbell_buffers(entry),
            AdminOpcode::NAMESPACE_MANAGEMENT
            | AdminOpcode::NAMESPACE_ATTACHMENT
            | AdminOpcode::FORMAT_NVM
            | AdminOpcode::SANITIZE
            | AdminOpcode::DEVICE_SELF_TEST => {
                let begun = self.sim.now();
                let answer = self.administer_media(entry, mem).await;
                breakdown.spend(Stage::Firmware, self.sim.now() - begun);
                answer
            }
            // Its queue was deleted after the fetch: no host waits for it.
            AdminOpcode::ASYNCHRONOUS_EVENT_REQUEST if !self.queues.borrow().serves(queue) => return None,
            // It stays outstanding until an event.
            AdminOpcode::ASYNCHRONOUS_EVENT_REQUEST if self.admin.events.request(queue, entry.cid.get()) => {
                return None;
            }
            AdminOpcode::ASYNCHRONOUS_EVENT_REQUEST => Err(Status::EVENT_REQUEST_LIMIT_EXCEEDED.into()),
            _ => Err(Status::INVALID_OPCODE.into()),
        };
        Some(match answer {
            Ok(answer) => self.deliver((queue, entry), answer, (mem, &mut permit), breakdown).await,
            Err(refusal) if TRANSIENT.contains(&refusal.status) => Err(refusal).into(),
            Err(refusal) => Err(refusal.final_()).into(),
        })
    }

    /// Whether a command is supported, and its namespace identifier has to be zero (Base 4.1, NSID).
    #[cold]
    fn takes_no_namespace(&self, opcode: AdminOpcode) -> bool {
        let is_supported =
            || self.commands_and_effects().admin[usize::from(opcode.0)].get() & log::EFFECT_SUPPORTED != 0;
        let takes_none = WITHOUT_NAMESPACE.contains(&opcode) || OF_SETS.contains(&opcode) && !self.has_several_sets();
        takes_none && is_supported()
    }

    /// Geometry (OC 3.1).
    fn geometry(&self, entry: &SubmissionEntry) -> Result<Answer, Refusal> {
        let data = self.subsystem.set.open_channel().ok_or(Status::INVALID_OPCODE)?.geometry();
        match self.namespaces.get(entry.nsid.get()) {
            Some(_) => Ok(Answer::data(&data)),
            None => Err(Refusal::of(Status::INVALID_NAMESPACE, Parameter::NSID)),
        }
    }

    async fn deliver(
        &self,
        (queue, entry): (QueueKey, &SubmissionEntry),
        answer: Answer,
        (mem, permit): (&HostMem, &mut Option<Permit>),
        breakdown: &mut Breakdown,
    ) -> Reply {
        let returns_data = Transfer::of(entry.opcode) == Transfer::ToHost;
        if answer.len() == 0 && returns_data && self.passes_messages() {
            // The command has no memory for this data.
            return mem.fits(0).map_or_else(|status| Err(status).into(), |()| Reply::value(answer.value));
        }
        if answer.len() > 0 {
            // The answer is final, even if lists must be fetched from the host: the command is not served again.
            if let Err(status) = self.reach((queue, entry), answer.len(), (mem, permit), breakdown).await {
                return Err(status).into();
            }
            self.subsystem.link.send(answer.len() as u64, breakdown).await;
            mem.write(0, &answer.data);
            mem.clear(answer.data.len(), answer.zeros);
        }
        Reply { dw1: answer.hint, ..Reply::value(answer.value) }
    }

    /// Waits until the first `bytes` of a command's memory are reachable. Lists may have to be fetched from the host.
    ///
    /// # Errors
    /// The status of a command whose memory is unreachable, or that is to end early.
    async fn reach(
        &self,
        (queue, entry): (QueueKey, &SubmissionEntry),
        bytes: usize,
        (mem, permit): (&HostMem, &mut Option<Permit>),
        breakdown: &mut Breakdown,
    ) -> Result<(), Status> {
        while let Err(status) = mem.must_fit(bytes) {
            if mem.need() != Need::Fetch {
                return Err(status);
            }
            let stop = self.stop(queue, entry, self.subsystem.power.cuts().get());
            self.ask_host(stop, entry, &[mem], permit, breakdown).await?;
        }
        Ok(())
    }
}

/// The answer of an admin command.
#[derive(Default)]
pub(super) struct Answer {
    /// DW0.
    value: u32,
    /// DW1.
    hint: u32,
    data: Vec<u8>,
    /// Bytes of zeros after the data. They take no memory while the answer waits for the link.
    zeros: usize,
}

impl Answer {
    fn value(value: u32) -> Answer {
        Answer { value, ..Answer::default() }
    }

    fn data(bytes: &[u8]) -> Answer {
        Answer { data: bytes.to_vec(), ..Answer::default() }
    }

    /// The first `len` bytes of `data` followed by zeros.
    fn padded(mut data: Vec<u8>, len: usize) -> Answer {
        data.truncate(len);
        Answer { zeros: len - data.len(), data, ..Answer::default() }
    }

    /// Bytes of data.
    fn len(&self) -> usize {
        self.data.len() + self.zeros
    }
}
