//! Members: the drives under an array, and the meaning of their answers.

use std::rc::Rc;

use nandscape_drive::{Completion, Drive, Node, Role, Use};
use nandscape_wire_nvme::Status;
use nandscape_wire_nvme::vendor::BUSY;

/// A drive to become a member, or a spare.
#[derive(Clone)]
pub struct Member {
    /// Its I/O commands: writes, and the reads of writes and rebuilds.
    pub io: Rc<dyn Drive>,
    /// Another queue pair, for host reads through the array's own queue pairs. Without it they queue behind writes to
    /// a busy drive, and cannot fail fast before the drive has fetched them.
    pub reads: Option<Rc<dyn Drive>>,
    /// Its admin commands; without them, windows cannot be set on it.
    pub admin: Option<Rc<dyn Drive>>,
}

/// Entries of the queue pairs of an array to its members.
pub const ENTRIES: u32 = 1_024;

impl Member {
    /// The connections of an array to a node. Without an admin queue, the member is not notified of windows.
    ///
    /// # Errors
    /// When the node has no connection left.
    pub fn on(node: &dyn Node, with_admin: bool) -> Result<Member, String> {
        let connect = |role| node.connect(Use { role, entries: ENTRIES }).map_err(|refused| refused.to_string());
        let admin = with_admin.then(|| node.connect(Use { role: Role::Admin, entries: ENTRIES }).ok()).flatten();
        Ok(Member { io: connect(Role::Writes)?, reads: Some(connect(Role::Reads)?), admin })
    }
}

/// The meaning of a member's answer.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    Success,
    /// Background work delays the read.
    Busy,
    /// The data cannot be read; the member is well otherwise.
    Unreadable,
    /// Power was lost or the command was aborted: it may be tried again.
    Interrupted,
    /// The memory of the data could not be reached. Where that is a host's, the member is well.
    NotMoved,
    /// The member is of no use any more.
    Dead,
}

/// Whether a command that ended so was interrupted, and may be tried again.
pub(crate) fn is_interrupted(status: Status) -> bool {
    matches!(status.meaning(), Status::ABORTED_POWER_LOSS | Status::ABORT_REQUESTED)
}

impl Answer {
    pub(crate) fn of(completion: &Completion) -> Answer {
        match completion.status.meaning() {
            Status::SUCCESS => Answer::Success,
            BUSY => Answer::Busy,
            Status::DATA_TRANSFER_ERROR => Answer::NotMoved,
            status if is_interrupted(status) => Answer::Interrupted,
            // Media and data integrity errors, except a write fault.
            status if status.kind() == 2 && status != Status::WRITE_FAULT => Answer::Unreadable,
            _ => Answer::Dead,
        }
    }
}
