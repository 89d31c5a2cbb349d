//! Reservations: connections for clients that still negotiate.
//!
//! A queue pair of a disconnected client is free only when its last command has ended. A request for a connection
//! waits in line for such a pair. It is refused if all pairs are held by connected clients, or promised to earlier
//! requests. Before a refusal the sockets are polled once more: a client may have left, unnoticed by the loop.
//!
//! Left out: the time limit of a request, which its sender decides.

use std::collections::VecDeque;
use std::sync::mpsc::Sender;

use nandscape_drive::DriveInfo;
use nandscape_wire_nvme::Status;

use super::Reactor;
use crate::handle::{Refused, Reservation};
use crate::port::ConnectionId;

/// A request for a connection to a drive.
pub(super) struct Request {
    pub(super) export: u16,
    /// The namespace; `None` is the drive's first.
    pub(super) nsid: Option<u32>,
    pub(super) reply: Sender<Result<Reservation, Refused>>,
    /// The number of socket polls at its arrival.
    pub(super) polls: u64,
    /// Whether a pair is promised to it, as soon as the commands of an earlier client have ended.
    pub(super) promised: bool,
}

impl Reactor {
    /// Whether a request is still to be granted, promised or refused.
    pub(super) fn has_undecided(&self) -> bool {
        self.line.iter().any(|request| !request.promised)
    }

    /// Answers the requests that can be answered; returns whether there were any.
    pub(super) fn serve_line(&mut self) -> bool {
        let before = self.line.len();
        for request in std::mem::take(&mut self.line) {
            if let Some(request) = self.decide(request) {
                self.line.push_back(request);
            }
        }
        self.line.len() < before
    }

    /// Grants or refuses a request; returned, it waits.
    fn decide(&mut self, mut request: Request) -> Option<Request> {
        let answer = match self.full(request.export) {
            None => self.reserve(request.export, request.nsid),
            _ if self.stopping.is_some() => Err(Refused::Ending),
            Some(_) if request.promised || request.polls == self.polls => return Some(request),
            Some(pairs) if self.promised(request.export) < pairs - self.port.drives(request.export).min(pairs) => {
                request.promised = true;
                return Some(request);
            }
            Some(pairs) => Err(Refused::Taken { pairs }),
        };
        let reservation = answer.map(|(connection, info)| Reservation::new(self.handle.clone(), connection, info));
        // A sender that no longer waits gives the connection back: it drops the reservation.
        let _ = request.reply.send(reservation);
        None
    }

    /// How many queue pairs a drive has, if none is free.
    pub(super) fn full(&self, export: u16) -> Option<usize> {
        let pairs = self.port.exports().get(usize::from(export))?.pairs()?;
        (pairs.free == 0).then_some(pairs.all)
    }

    /// Requests that a pair of a drive is promised to.
    fn promised(&self, export: u16) -> usize {
        self.line.iter().filter(|request| request.export == export && request.promised).count()
    }

    /// Opens a connection for a client that will connect later.
    pub(super) fn reserve(&mut self, export: u16, nsid: Option<u32>) -> Result<(ConnectionId, DriveInfo), Refused> {
        if self.stopping.is_some() {
            return Err(Refused::Ending);
        }
        let info = self.info(export, nsid)?;
        if info.metadata_bytes > 0 {
            return Err(Refused::Metadata(info.metadata_bytes));
        }
        let connection = self.port.open_namespace(export, info).map_err(Refused::Drive)?;
        self.reserved.insert(connection);
        Ok((connection, info))
    }

    /// The description of a drive's namespace; `None` is its first.
    pub(super) fn info(&self, export: u16, nsid: Option<u32>) -> Result<DriveInfo, Refused> {
        let drive = self.port.exports().get(usize::from(export)).ok_or(Refused::Drive(Status::INVALID_NAMESPACE))?;
        let Some(nsid) = nsid else { return Ok(drive.info()) };
        let found = drive.namespaces().into_iter().find(|info| info.nsid == nsid);
        found.ok_or(Refused::NoNamespace(nsid))
    }
}

/// Requests in the order of arrival.
pub(super) type Line = VecDeque<Request>;
