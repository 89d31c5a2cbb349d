//! The queues of a host whose commands pass as messages. The first connection, the admin queue, creates a controller;
//! the others join it (Base 3.3.2.2, "Message-based"). A closed admin queue ends the association, and with it the
//! others.
//!
//! Left out: messages, and access lists.

use std::rc::Rc;

use nandscape_drive::{Controller, HostIdentity, QueueId};
use nandscape_wire_nvme::fabrics::{self, offset};
use nandscape_wire_nvme::{Status, register};

use crate::message_queue::MessageQueue;

/// A host requests a queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConnectQueue {
    /// Of which drive.
    pub export: u16,
    /// Of which controller, by its Controller ID; `None` is a new one.
    pub controller: Option<u16>,
    /// Who the host is.
    pub host: HostIdentity,
    /// Queue Identifier.
    pub queue: QueueId,
    /// Entries of the queue.
    pub entries: u32,
    /// Keep Alive Timeout in milliseconds, for the admin queue; 0 is none.
    pub keep_alive_ms: u32,
    /// Priority class, for an I/O queue: from urgent (0) to low (3).
    pub priority: u8,
}

/// Why a queue is refused: the status of Connect, and DW0 of its completion.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ConnectRefusal {
    /// Status.
    pub status: Status,
    /// DW0: the invalid parameter, if the status reports one.
    pub value: u32,
}

impl From<Status> for ConnectRefusal {
    fn from(status: Status) -> ConnectRefusal {
        ConnectRefusal { status, value: 0 }
    }
}

impl ConnectRefusal {
    /// A parameter is not valid, by its byte offset in the command.
    pub fn of_command(offset: u16) -> ConnectRefusal {
        let value = fabrics::invalid_parameter(offset, false);
        ConnectRefusal { status: fabrics::INVALID_PARAMETERS.final_(), value }
    }

    /// The controller does not take the queue now, and may take it later.
    fn of_queue() -> ConnectRefusal {
        ConnectRefusal { status: fabrics::INVALID_PARAMETERS, ..ConnectRefusal::of_command(offset::QUEUE) }
    }

    /// A parameter is not valid, by its byte offset in the data.
    pub fn of_data(offset: u16) -> ConnectRefusal {
        let value = fabrics::invalid_parameter(offset, true);
        ConnectRefusal { status: fabrics::INVALID_PARAMETERS.final_(), value }
    }
}

/// A host and its controller.
pub(crate) struct Association {
    pub(crate) controller: Rc<dyn Controller>,
    pub(crate) host: HostIdentity,
}

impl Association {
    /// Whether a host may join with another queue (Base 6.3). A Host Identifier of 0 is not checked.
    ///
    /// # Errors
    /// The difference, or that the controller is not enabled.
    pub(crate) fn check(&self, host: &HostIdentity) -> Result<(), ConnectRefusal> {
        if host.hostid != [0; 16] && self.host.hostid != host.hostid {
            return Err(ConnectRefusal::of_data(offset::HOST_ID));
        }
        if self.host.hostnqn != host.hostnqn {
            return Err(ConnectRefusal::of_data(offset::HOST));
        }
        match self.is_ready() {
            true => Ok(()),
            false => Err(ConnectRefusal::of_queue()),
        }
    }

    fn is_ready(&self) -> bool {
        self.controller.register(register::CSTS) & register::CSTS_RDY != 0
    }

    /// The most commands of a queue of `entries` entries, which the controller's queue has room for.
    ///
    /// # Errors
    /// When the controller has no queues of that size.
    pub(crate) fn depth(&self, entries: u32) -> Result<u16, ConnectRefusal> {
        // CAP.MQES, which is counted from zero.
        let most_z = self.controller.register(register::CAP) & 0xffff;
        match (2..=most_z + 1).contains(&entries) {
            true => Ok(entries.min(most_z) as u16),
            false => Err(ConnectRefusal::of_command(offset::SIZE)),
        }
    }

    /// Makes the controller create a queue.
    ///
    /// # Errors
    /// The status of Connect.
    pub(crate) fn create(&self, queue: &Rc<MessageQueue>) -> Result<(), ConnectRefusal> {
        queue.create(&*self.controller).map_err(|status| match status.meaning() {
            // The number is beyond the limit, an earlier queue of it is still being deleted, or the controller is reset.
            Status::INVALID_QUEUE_ID | Status::COMMAND_SEQUENCE_ERROR => ConnectRefusal::of_queue(),
            Status::INVALID_QUEUE_SIZE => ConnectRefusal::of_command(offset::SIZE),
            _ => status.into(),
        })
    }

    /// Makes the controller create its admin queue again, if a reset has deleted it and the controller is enabled.
    pub(crate) fn restore(&self, queue: &Rc<MessageQueue>) {
        if queue.id == QueueId::ADMIN && queue.is_deleted() && self.is_ready() {
            // A reset that has not ended refuses it: the next command tries again.
            let _ = queue.create(&*self.controller);
        }
    }
}
