//! Flexible Data Placement (Base 8.1.10; TP4146): writes with a placement identifier, I/O Management Receive and Send, and
//! the events.
//!
//! The drive has one reclaim group, so a placement identifier is the number of a placement handle. Each namespace lists all
//! reclaim unit handles, in order.
//!
//! Controller events name only the handle: the FTL knows neither namespaces nor blocks.
//!
//! Left out: placement of Write Zeroes, Copy and blocks with metadata, which is rejected; events of time limits and of
//! resets, because no limits exist, and a reset changes no handle.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use nandscape_device_ftl_core::{Ftl, PlacementEvent, PlacementReport};
use nandscape_drive::Breakdown;
use nandscape_sim::Sim;
use nandscape_wire_nvme::fdp::{self, Event, HandleStatus};
use nandscape_wire_nvme::{IoOpcode, Status};
use zerocopy::{FromZeros, IntoBytes};

use super::Nvm;
use crate::command_set::{Command, Failure, Reply};
use crate::refusal::Refusal;

/// The kinds of events: of hosts, then of the controller.
pub(crate) const KINDS: [u8; 4] =
    [fdp::EVENT_NOT_FULL, fdp::EVENT_INVALID_IDENTIFIER, fdp::EVENT_REALLOCATED, fdp::EVENT_IMPLICITLY_MODIFIED];

/// Handles of a drive that places data, and their events.
pub struct Fdp {
    sim: Sim,
    handles: u16,
    /// Bytes of a logical block.
    lba_bytes: u32,
    /// The last events of hosts, the newest first.
    events: RefCell<VecDeque<Event>>,
    /// The last events of the controller, the newest first.
    own_events: RefCell<VecDeque<Event>>,
    /// The kinds of events that are recorded, a bit each in the order of [`KINDS`], by handle.
    wanted: Vec<Cell<u8>>,
}

impl std::fmt::Debug for Fdp {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Fdp").field("handles", &self.handles).finish_non_exhaustive()
    }
}

/// The bit of a kind of event; 0 for an unknown kind.
fn bit(kind: u8) -> u8 {
    KINDS.iter().position(|known| *known == kind).map_or(0, |number| 1 << number)
}

impl Fdp {
    pub(super) fn new(sim: &Sim, report: &PlacementReport, lba_bytes: u32) -> Fdp {
        let handles = report.handles.len();
        Fdp {
            sim: sim.clone(),
            handles: handles as u16,
            lba_bytes,
            events: RefCell::default(),
            own_events: RefCell::default(),
            wanted: (0..handles).map(|_| Cell::new(0)).collect(),
        }
    }

    /// Whether a kind of event of a handle is recorded; `None` if the handle does not exist.
    pub(crate) fn wants(&self, handle: u16, kind: u8) -> Option<bool> {
        Some(self.wanted.get(usize::from(handle))?.get() & bit(kind) != 0)
    }

    /// Sets whether a kind of event of a handle is recorded.
    pub(crate) fn set_wanted(&self, handle: u16, kind: u8, wanted: bool) {
        if let Some(mask) = self.wanted.get(usize::from(handle)) {
            mask.set(if wanted { mask.get() | bit(kind) } else { mask.get() & !bit(kind) });
        }
    }

    /// The last events, of hosts or of the controller.
    pub(crate) fn events(&self, of_hosts: bool) -> Vec<Event> {
        let events = if of_hosts { &self.events } else { &self.own_events };
        events.borrow().iter().cloned().collect()
    }

    /// Records an event of a handle, if it is wanted.
    fn record(&self, handle: u16, event: Event) {
        if self.wants(handle, event.kind) == Some(true) {
            let events = if event.kind < fdp::EVENT_REALLOCATED { &self.events } else { &self.own_events };
            let mut events = events.borrow_mut();
            events.truncate(fdp::MOST_EVENTS - 1);
            events.push_front(event);
        }
    }

    /// Records an action of the drive itself.
    pub(super) fn tell(&self, told: PlacementEvent) {
        let (kind, handle) = match told {
            PlacementEvent::Moved { handle, .. } => (fdp::EVENT_REALLOCATED, handle),
            PlacementEvent::Left { handle } => (fdp::EVENT_IMPLICITLY_MODIFIED, handle),
        };
        let flags = fdp::EVENT_IDENTIFIER_VALID | fdp::EVENT_LOCATION_VALID;
        let mut event = Event { flags, ..self.event(kind, handle.into(), handle.into()) };
        if let PlacementEvent::Moved { bytes, .. } = told {
            let blocks = u16::try_from(bytes / u64::from(self.lba_bytes)).unwrap_or(u16::MAX);
            event.specific[fdp::MOVED_BLOCKS].copy_from_slice(&blocks.to_le_bytes());
        }
        self.record(handle.into(), event);
    }

    fn event(&self, kind: u8, identifier: u16, handle: u16) -> Event {
        let mut event = Event::zeroed();
        event.kind = kind;
        event.identifier = identifier.into();
        event.timestamp = ((self.sim.now().ns() / 1_000_000) & 0xffff_ffff_ffff).into();
        event.handle = handle as u8;
        event
    }
}

impl<F: Ftl> Nvm<F> {
    /// Serves a command that only drives with Flexible Data Placement accept.
    pub(super) async fn serve_fdp(
        &self,
        fdp: &Fdp,
        command: &Command<'_>,
        refusal: Refusal,
        breakdown: &mut Breakdown,
    ) -> Reply {
        let entry = command.entry;
        match IoOpcode(entry.opcode) {
            IoOpcode::WRITE if fdp::directive_type(entry) == fdp::DTYPE_PLACEMENT => {
                self.write_placed(command, breakdown, || self.handle_of(fdp, command)).await
            }
            IoOpcode::IO_MANAGEMENT_RECEIVE => self.receive_management(fdp, command, breakdown).await.into(),
            IoOpcode::IO_MANAGEMENT_SEND => self.send_management(fdp, command, breakdown).await.into(),
            _ => Err(refusal).into(),
        }
    }

    /// The handle that the placement identifier of a write names. An invalid identifier is an event, and the first handle
    /// places the data.
    fn handle_of(&self, fdp: &Fdp, command: &Command<'_>) -> u8 {
        let identifier = fdp::directive_specific(command.entry);
        if identifier < fdp.handles {
            return identifier as u8;
        }
        fdp.record(0, of_host(fdp.event(fdp::EVENT_INVALID_IDENTIFIER, identifier, 0), command));
        0
    }

    /// I/O Management Receive: Reclaim Unit Handle Status.
    async fn receive_management(
        &self,
        fdp: &Fdp,
        command: &Command<'_>,
        breakdown: &mut Breakdown,
    ) -> Result<(), Failure> {
        let entry = command.entry;
        match entry.cdw10.get() as u8 {
            fdp::NO_ACTION => return Ok(()),
            fdp::HANDLE_STATUS if entry.cdw10.get() >> 16 == 0 => {}
            fdp::HANDLE_STATUS => return Err(Refusal::field(10, 16).final_().into()),
            _ => return Err(Refusal::field(10, 0).final_().into()),
        }
        // Number of Dwords, counted from zero.
        let bytes = (u64::from(entry.cdw11.get()) + 1) * 4;
        if bytes > self.max_transfer.into() {
            return Err(Refusal::field(11, 0).final_().into());
        }
        command.mem.must_cover(bytes as usize)?;
        let mut page = vec![0; fdp::STATUS_HEAD];
        page[14..16].copy_from_slice(&fdp.handles.to_le_bytes());
        let report = self.ftl.offers().placement.into_iter().flat_map(|placement| placement.report().handles);
        for (number, handle) in (0u16..).zip(report) {
            let mut status = HandleStatus::new_zeroed();
            (status.identifier, status.handle) = (number.into(), number.into());
            status.left = (handle.left / u64::from(command.namespace.lba_bytes)).into();
            page.extend_from_slice(status.as_bytes());
        }
        page.resize(bytes as usize, 0);
        command.mem.write(0, &page);
        command.link.send(bytes, breakdown).await;
        Ok(())
    }

    /// I/O Management Send: Reclaim Unit Handle Update.
    async fn send_management(
        &self,
        fdp: &Fdp,
        command: &Command<'_>,
        breakdown: &mut Breakdown,
    ) -> Result<(), Failure> {
        let entry = command.entry;
        match entry.cdw10.get() as u8 {
            fdp::NO_ACTION => return Ok(()),
            fdp::HANDLE_UPDATE => {}
            _ => return Err(Refusal::field(10, 0).final_().into()),
        }
        // Number of placement identifiers, counted from zero.
        let count = (entry.cdw10.get() >> 16) as usize + 1;
        if count > usize::from(fdp.handles) {
            return Err(Refusal::field(10, 16).final_().into());
        }
        command.mem.must_cover(count * 2)?;
        command.link.receive(count as u64 * 2, breakdown).await;
        let mut list = vec![0; count * 2];
        command.mem.read(0, &mut list);
        if command.mem.has_failed() {
            return Err(Status::DATA_TRANSFER_ERROR.into());
        }
        let identifiers: Vec<u16> = list.chunks(2).map(|bytes| u16::from_le_bytes([bytes[0], bytes[1]])).collect();
        if identifiers.iter().any(|identifier| *identifier >= fdp.handles) {
            return Err(Status::INVALID_FIELD.final_().into());
        }
        self.check_writable()?;
        let placement = self.ftl.offers().placement.ok_or(Status::INVALID_OPCODE.final_())?;
        for identifier in identifiers {
            let report = placement.report();
            if report.handles[usize::from(identifier)].left < report.unit_bytes {
                fdp.record(identifier, of_host(fdp.event(fdp::EVENT_NOT_FULL, identifier, identifier), command));
            }
            placement.change_reclaim_unit(identifier as u8);
        }
        Ok(())
    }
}

/// An event of a command.
fn of_host(event: Event, command: &Command<'_>) -> Event {
    let flags = fdp::EVENT_IDENTIFIER_VALID | fdp::EVENT_NSID_VALID | fdp::EVENT_LOCATION_VALID;
    Event { flags, nsid: command.namespace.nsid.into(), ..event }
}
