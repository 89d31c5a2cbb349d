//! Asynchronous events (Base 5.1.2). The controller reports an event with the next Asynchronous Event Request, if
//! Asynchronous Event Configuration (Base 5.1.25.1.5) enables it. After an event of a type, further events of that type wait
//! until the host reads the log page that the event names, without Retain Asynchronous Event. Reading a log page drops the
//! pending events that name it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use nandscape_drive::Breakdown;
use nandscape_wire_nvme::{Status, feature, log};

use super::EVENT_REQUESTS;
use crate::command_set::{Culprit, Reply};
use crate::engine::{NvmeController, QueueKey};

/// DW0 of a completed Asynchronous Event Request.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Event {
    /// Asynchronous Event Type (bits 2:0).
    kind: u8,
    /// Asynchronous Event Information (bits 15:8).
    information: u8,
    /// Log Page Identifier (bits 23:16).
    log: u8,
}

const ERROR: u8 = 0;
const SMART: u8 = 1;
const NOTICE: u8 = 2;
/// I/O Command Specific Status.
const COMMAND_SET: u8 = 6;
const VENDOR: u8 = 7;

impl Event {
    /// The host wrote to the doorbell of a queue that does not exist.
    pub(crate) const INVALID_DOORBELL: Event = Event { kind: ERROR, information: 0, log: log::ERROR_INFORMATION };
    /// The host wrote a value to a doorbell that is outside the queue.
    pub(crate) const INVALID_DOORBELL_VALUE: Event = Event { kind: ERROR, information: 1, log: log::ERROR_INFORMATION };
    const RELIABILITY: Event = Event { kind: SMART, information: 0, log: log::SMART };
    const TEMPERATURE: Event = Event { kind: SMART, information: 1, log: log::SMART };
    const SPARE: Event = Event { kind: SMART, information: 2, log: log::SMART };

    /// A namespace was attached, detached, deleted or formatted.
    pub(crate) const NAMESPACE_CHANGED: Event = Event { kind: NOTICE, information: 0, log: log::CHANGED_NAMESPACES };
    /// The drive took a telemetry snapshot.
    pub(crate) const TELEMETRY: Event = Event { kind: NOTICE, information: 2, log: log::TELEMETRY_CONTROLLER };

    /// A deterministic window nears its end, or the drive ended it.
    pub(crate) const PREDICTABLE_LATENCY: Event =
        Event { kind: NOTICE, information: 4, log: log::PREDICTABLE_LATENCY_EVENTS };

    /// The drive itself has changed a zone (Zone Descriptor Changed, ZNS 3.1.1).
    pub(crate) const ZONE_CHANGED: Event = Event { kind: NOTICE, information: 0xef, log: log::CHANGED_ZONES };

    /// The Reservation Notification log has a page.
    pub(crate) const RESERVATION: Event =
        Event { kind: COMMAND_SET, information: 0, log: log::RESERVATION_NOTIFICATION };

    /// A sanitize operation ended.
    pub(crate) const SANITIZED: Event = Event { kind: COMMAND_SET, information: 1, log: log::SANITIZE_STATUS };

    /// A log page of the command set has a new entry (OC 3.2.2).
    pub(crate) const fn own_log(log: u8) -> Event {
        Event { kind: VENDOR, information: 0, log }
    }

    fn dw0(self) -> u32 {
        u32::from(self.kind) | u32::from(self.information) << 8 | u32::from(self.log) << 16
    }

    /// Whether the host has enabled the event. Each warning is checked against the configuration before it becomes an event.
    fn is_wanted(self, configuration: u32) -> bool {
        match self.kind {
            // Notices of information 0 to 7 have the bits from 8 on.
            NOTICE if self.information < 8 => configuration & feature::EVENT_NAMESPACE_CHANGED << self.information != 0,
            NOTICE if self == Event::ZONE_CHANGED => configuration & feature::EVENT_ZONE_CHANGED != 0,
            _ => true,
        }
    }
}

/// The warnings that are reported, each with its event. Read-only media is reported as an event of reliability.
const WARNINGS: [(u8, Event); 3] = [
    (log::WARNING_SPARE, Event::SPARE),
    (log::WARNING_TEMPERATURE, Event::TEMPERATURE),
    (log::WARNING_READ_ONLY, Event::RELIABILITY),
];

/// Requests that wait for an event, events that wait for a request, and warnings already reported.
#[derive(Default)]
pub(crate) struct Events {
    requests: RefCell<VecDeque<(QueueKey, u16)>>,
    /// No event is in here twice, which bounds the length.
    pending: RefCell<Vec<Event>>,
    /// Reported warnings whose cause persists.
    told: Cell<u8>,
    /// Reported events whose log page the host has not read yet.
    masking: RefCell<Vec<Event>>,
}

impl Events {
    /// Takes a request, unless the limit of outstanding requests is reached.
    pub(super) fn request(&self, pair: QueueKey, cid: u16) -> bool {
        let mut requests = self.requests.borrow_mut();
        let takes = requests.len() < usize::from(EVENT_REQUESTS);
        if takes {
            requests.push_back((pair, cid));
        }
        takes
    }

    /// Drops all outstanding requests: the admin queue is deleted (Base 5.1.2, 3.7.2).
    pub(super) fn forget(&self) {
        self.requests.borrow_mut().clear();
    }

    /// Removes a request, if it is outstanding.
    pub(super) fn abort(&self, queue: QueueKey, cid: u16) -> bool {
        let mut requests = self.requests.borrow_mut();
        let before = requests.len();
        requests.retain(|request| *request != (queue, cid));
        requests.len() < before
    }

    /// The controller is reset: warnings are reported again.
    pub(super) fn reset(&self) {
        self.forget();
        self.pending.borrow_mut().clear();
        self.masking.borrow_mut().clear();
        self.told.set(0);
    }

    /// The host has read a log page: pending events that name it are dropped (Base 5.1.2).
    pub(super) fn log_was_read(&self, log: u8) {
        self.pending.borrow_mut().retain(|event| event.log != log);
        self.masking.borrow_mut().retain(|event| event.log != log);
    }

    fn withdraw(&self, event: Event) {
        self.pending.borrow_mut().retain(|each| *each != event);
        self.masking.borrow_mut().retain(|each| *each != event);
    }

    fn raise(&self, event: Event) {
        let mut pending = self.pending.borrow_mut();
        if !pending.contains(&event) {
            pending.push(event);
        }
    }

    /// Takes the next pending event that is not masked.
    fn take(&self) -> Option<Event> {
        if self.pending.borrow().is_empty() {
            return None;
        }
        let (mut pending, mut masking) = (self.pending.borrow_mut(), self.masking.borrow_mut());
        let is_masked = |event: &Event| masking.iter().any(|told| told.kind == event.kind);
        let at = pending.iter().position(|event| !is_masked(event))?;
        let event = pending.remove(at);
        masking.push(event);
        Some(event)
    }
}

impl NvmeController {
    /// Raises an event, if the host has enabled it. It is reported as soon as a request is outstanding.
    pub(crate) fn raise(&self, event: Event) {
        if event.is_wanted(self.admin.settings.wanted_events()) {
            self.admin.events.raise(event);
            self.report_events();
        }
    }

    /// Withdraws an event whose cause is gone: a pending one is dropped, and a reported one no longer masks its type.
    pub(crate) fn withdraw(&self, event: Event) {
        self.admin.events.withdraw(event);
    }

    /// Critical Warning of the SMART log.
    pub(super) fn warnings(&self) -> u8 {
        let hot = if self.admin.settings.is_temperature_critical() { log::WARNING_TEMPERATURE } else { 0 };
        self.subsystem.set.storage().warnings() | hot
    }

    /// Completes requests with pending events. Called whenever a command ends.
    ///
    /// From the start of a shutdown, no events are reported: after it, the host may reuse the memory of its admin queues
    /// without a reset.
    #[inline]
    pub(crate) fn report_events(&self) {
        if !self.admin.events.requests.borrow().is_empty() && !self.is_shut_down() {
            self.report_to_requests();
        }
    }

    fn report_to_requests(&self) {
        let events = &self.admin.events;
        self.raise_warnings();
        while !events.requests.borrow().is_empty()
            && let Some(event) = events.take()
        {
            let (pair, cid) = events.requests.borrow_mut().pop_front().expect("there is one");
            let reply = Reply { status: Status::SUCCESS, dw0: event.dw0(), dw1: 0, culprit: Culprit::Unknown };
            self.complete(pair, cid, reply, Breakdown::new());
        }
    }

    /// Turns new warnings into events. A warning that ceased and recurs is reported again.
    pub(super) fn raise_warnings(&self) {
        let (events, warnings) = (&self.admin.events, self.warnings());
        let new = warnings & self.admin.settings.wanted_events() as u8 & !events.told.get();
        events.told.set(events.told.get() & warnings | new);
        if new == 0 {
            return;
        }
        for (_, event) in WARNINGS.into_iter().filter(|(warning, _)| new & warning != 0) {
            events.raise(event);
        }
    }
}
