//! Asynchronous events (Base 5.1.2): that a critical warning of the SMART log has come up, if the host wants to know
//! (Asynchronous Event Configuration, Base 5.1.25.1.5). A warning is told once, when the next command ends; after one the
//! others wait until the host has read the log.
//!
//! Left out: all other events, for nothing else happens that they would be of.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use nandscape_drive::Breakdown;
use nandscape_wire_nvme::{Status, log};

use super::EVENT_REQUESTS;
use crate::command_set::{CommandSet, Reply};
use crate::engine::{NvmeController, QueueKey};

/// Asynchronous Event Type (bits 2:0 of DW0): SMART / Health Status.
const SMART_STATUS: u32 = 1;
/// Asynchronous Event Information (bits 15:8): the warnings that it tells of. Read-only media is a matter of reliability.
const INFORMATION: [(u8, u32); 2] = [(log::WARNING_SPARE, 2), (log::WARNING_READ_ONLY, 0)];

/// Requests that wait for an event, and what they have been told.
#[derive(Default)]
pub(crate) struct Events {
    requests: RefCell<VecDeque<(QueueKey, u16)>>,
    told: Cell<u8>,
    /// The host has been told, and has not read the log since.
    masked: Cell<bool>,
}

impl Events {
    /// Takes a request, if there are not too many.
    pub(super) fn request(&self, pair: QueueKey, cid: u16) -> bool {
        let mut requests = self.requests.borrow_mut();
        let takes = requests.len() < usize::from(EVENT_REQUESTS);
        if takes {
            requests.push_back((pair, cid));
        }
        takes
    }

    /// The admin queue is deleted, and what was outstanding in it with it (Base 5.1.2, 3.7.2).
    pub(super) fn forget(&self) {
        self.requests.borrow_mut().clear();
    }

    /// Takes a request back, if it is outstanding.
    pub(super) fn abort(&self, queue: QueueKey, cid: u16) -> bool {
        let mut requests = self.requests.borrow_mut();
        let before = requests.len();
        requests.retain(|request| *request != (queue, cid));
        requests.len() < before
    }

    /// The controller is reset: the host is told of warnings anew.
    pub(super) fn reset(&self) {
        self.forget();
        self.told.set(0);
        self.masked.set(false);
    }

    /// The host has read the SMART log.
    pub(super) fn log_was_read(&self) {
        self.masked.set(false);
    }
}

impl<C: CommandSet> NvmeController<C> {
    /// Tells the host of a warning that it has not been told of.
    pub(crate) fn report_warnings(&self) {
        let events = &self.admin.events;
        if events.masked.get() || events.requests.borrow().is_empty() {
            return;
        }
        let new = self.subsystem.set.warnings() & self.admin.settings.wanted_warnings() & !events.told.get();
        let Some((warning, information)) = INFORMATION.into_iter().find(|(warning, _)| new & warning != 0) else {
            return;
        };
        let (pair, cid) = events.requests.borrow_mut().pop_front().expect("there is one");
        events.told.set(events.told.get() | warning);
        events.masked.set(true);
        let dw0 = SMART_STATUS | information << 8 | u32::from(log::SMART) << 16;
        self.complete(pair, cid, Reply { status: Status::SUCCESS, dw0, dw1: 0, lba: None }, Breakdown::new());
    }
}
