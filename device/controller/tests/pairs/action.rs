//! The actions of a host on its controller, its namespaces or the drive.

use nandscape_drive::HostMem;
use nandscape_wire_nvme::identify::Namespace;
use nandscape_wire_nvme::manage::{self, ControllerList};
use nandscape_wire_nvme::reservation::{self, Keys};
use nandscape_wire_nvme::{AdminOpcode, IoOpcode, NSID_ALL, Status, SubmissionEntry, feature, log};
use zerocopy::IntoBytes;

/// See the file.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    Create,
    Delete(u32),
    Attach,
    Detach,
    /// A namespace, and its format.
    Format(u32, u32),
    Sanitize(u32),
    SelfTest(u32),
    Abort,
    Protect(u32),
    PreemptAndAbort,
    AskForEvent,
    ReadLog(u8),
    Reset,
    ShutDown,
    DeleteQueue,
    Leave,
    CutPower,
}

/// Keys of the two hosts.
pub(crate) const KEYS: [u64; 2] = [11, 22];
/// Blocks of each namespace.
pub(crate) const BLOCKS: u64 = 2_048;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("it is a number"))
}

/// Runs every pair of actions, with seeds from `NANDSCAPE_TEST_SEED` on, for `NANDSCAPE_TEST_ROUNDS` rounds.
pub(crate) fn every_pair(rounds: u64, run: fn([Action; 2], u64)) {
    let first = number("NANDSCAPE_TEST_SEED").unwrap_or(1);
    for seed in first..first + number("NANDSCAPE_TEST_ROUNDS").unwrap_or(rounds) {
        for one in Action::ALL {
            for other in Action::ALL {
                let ended = std::panic::catch_unwind(|| run([one, other], seed));
                assert!(ended.is_ok(), "{one:?} and {other:?}: NANDSCAPE_TEST_SEED={seed} shows it");
            }
        }
    }
}

fn admin(opcode: AdminOpcode, nsid: u32, cdw10: u32) -> SubmissionEntry {
    SubmissionEntry { nsid: nsid.into(), cdw10: cdw10.into(), ..SubmissionEntry::admin(opcode) }
}

/// A namespace to be created.
pub(crate) fn create() -> (SubmissionEntry, HostMem) {
    let wish = Namespace { nsze: BLOCKS.into(), ncap: BLOCKS.into(), nmic: 1, ..Namespace::zeroed() };
    let entry = admin(AdminOpcode::NAMESPACE_MANAGEMENT, 0, manage::NAMESPACE_CREATE.into());
    (entry, HostMem::from_bytes(wish.as_bytes()))
}

/// Attaches namespace `nsid` to controllers, or detaches it.
pub(crate) fn attach(select: u8, nsid: u32, ids: [u16; 2]) -> (SubmissionEntry, HostMem) {
    let entry = admin(AdminOpcode::NAMESPACE_ATTACHMENT, nsid, select.into());
    (entry, HostMem::from_bytes(ControllerList::of(ids).as_bytes()))
}

/// A reservation command on namespace 1.
pub(crate) fn reserve(opcode: IoOpcode, cdw10: u32, current: u64, other: u64) -> (SubmissionEntry, HostMem) {
    let keys = Keys { current: current.into(), other: other.into() };
    let entry = SubmissionEntry { cdw10: cdw10.into(), ..SubmissionEntry::io(opcode, 1) };
    (entry, HostMem::from_bytes(keys.as_bytes()))
}

impl Action {
    pub(crate) const ALL: [Action; 25] = [
        Action::Create,
        Action::Delete(1),
        Action::Delete(NSID_ALL),
        Action::Attach,
        Action::Detach,
        Action::Format(1, 0),
        Action::Format(2, 1),
        Action::Format(NSID_ALL, 0),
        Action::Sanitize(2),
        Action::Sanitize(4),
        Action::SelfTest(1),
        Action::SelfTest(2),
        Action::SelfTest(0xf),
        Action::Abort,
        Action::Protect(0),
        Action::Protect(1),
        Action::PreemptAndAbort,
        Action::AskForEvent,
        Action::ReadLog(log::SANITIZE_STATUS),
        Action::ReadLog(log::CHANGED_NAMESPACES),
        Action::Reset,
        Action::ShutDown,
        Action::DeleteQueue,
        Action::Leave,
        Action::CutPower,
    ];

    /// The admin command of an action, if it is one.
    pub(crate) fn command(self, ids: [u16; 2]) -> Option<(SubmissionEntry, HostMem)> {
        let alone = |entry| Some((entry, HostMem::none()));
        match self {
            Action::Create => Some(create()),
            Action::Delete(nsid) => {
                alone(admin(AdminOpcode::NAMESPACE_MANAGEMENT, nsid, manage::NAMESPACE_DELETE.into()))
            }
            Action::Attach => Some(attach(manage::NAMESPACE_ATTACH, 2, ids)),
            Action::Detach => Some(attach(manage::NAMESPACE_DETACH, 2, ids)),
            Action::Format(nsid, format) => alone(admin(AdminOpcode::FORMAT_NVM, nsid, format)),
            Action::Sanitize(how) => alone(admin(AdminOpcode::SANITIZE, 0, how)),
            Action::SelfTest(code) => alone(admin(AdminOpcode::DEVICE_SELF_TEST, NSID_ALL, code)),
            // The first command of the I/O queue.
            Action::Abort => alone(admin(AdminOpcode::ABORT, 0, 1)),
            Action::Protect(state) => {
                let entry = SubmissionEntry::set_features(feature::WRITE_PROTECTION, state);
                alone(SubmissionEntry { nsid: 2.into(), ..entry })
            }
            Action::AskForEvent => alone(SubmissionEntry::admin(AdminOpcode::ASYNCHRONOUS_EVENT_REQUEST)),
            Action::ReadLog(log) => Some((SubmissionEntry::get_log_page(log, 0, 512), HostMem::zeroed(512))),
            _ => None,
        }
    }

    /// The I/O command of an action, if it is one.
    pub(crate) fn io_command(self, host: usize) -> Option<(SubmissionEntry, HostMem)> {
        let cdw10 = u32::from(reservation::PREEMPT_AND_ABORT) | 3 << 8;
        (self == Action::PreemptAndAbort)
            .then(|| reserve(IoOpcode::RESERVATION_ACQUIRE, cdw10, KEYS[host], KEYS[1 - host]))
    }

    /// Whether its success erases a namespace.
    pub(crate) fn erases(self, nsid: u32) -> bool {
        match self {
            Action::Delete(named) | Action::Format(named, _) => named == nsid || named == NSID_ALL,
            Action::Sanitize(_) => true,
            _ => false,
        }
    }

    /// Its permitted statuses other than success, next to any other action: commands of a deleted queue and commands during a
    /// power cut are aborted, and most are rejected during a sanitize operation.
    pub(crate) fn may_end_with(self, status: Status) -> bool {
        let is_gone = [Status::INVALID_FIELD, Status::NAMESPACE_WRITE_PROTECTED, Status::RESERVATION_CONFLICT];
        let own: &[Status] = match self {
            Action::Create => &[],
            Action::Attach => {
                &[Status::INVALID_FIELD, Status::NAMESPACE_ALREADY_ATTACHED, Status::CONTROLLER_LIST_INVALID]
            }
            Action::Detach => &[Status::INVALID_FIELD, Status::NAMESPACE_NOT_ATTACHED, Status::CONTROLLER_LIST_INVALID],
            Action::Delete(_) | Action::Format(..) | Action::Sanitize(_) => &is_gone,
            Action::SelfTest(_) => &[Status::SELF_TEST_IN_PROGRESS],
            Action::Protect(_) => &[Status::INVALID_FIELD],
            Action::PreemptAndAbort => &[
                Status::INVALID_FIELD,
                Status::RESERVATION_CONFLICT,
                Status::FORMAT_IN_PROGRESS,
                Status::ABORT_REQUESTED,
            ],
            _ => return is_abort(status),
        };
        own.contains(&status) || is_abort(status) || status == Status::SANITIZE_IN_PROGRESS
    }
}

/// The statuses of commands that are stopped.
pub(crate) fn is_abort(status: Status) -> bool {
    [Status::ABORTED_SQ_DELETION, Status::ABORTED_POWER_LOSS].contains(&status)
}
