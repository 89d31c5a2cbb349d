//! The discovery controller (Base 3.1.3.3, 4.7.1): its log names the subsystems of this server. Each connected host
//! has a separate thread, and none of its commands reaches a drive.
//!
//! The log never changes, so a host that waits for events waits until it leaves.

mod logs;
mod properties;

use std::io::{self, Read, Write};
use std::time::Duration;

use nandscape_transport_reactor::listening::TimeLimit;
use nandscape_wire_nvme::command::FLAGS_FUSED;
use nandscape_wire_nvme::fabrics::{self, DISCOVERY_NQN, FABRICS, Property, name_field};
use nandscape_wire_nvme::identify::{self, Controller, KEEP_ALIVE_GRANULARITY, ascii, cns, keep_alive_timeout_ms};
use nandscape_wire_nvme::log::{self, LogPart};
use nandscape_wire_nvme::opcode::Transfer;
use nandscape_wire_nvme::register::VERSION_2_1;
use nandscape_wire_nvme::{AdminOpcode, Status, SubmissionEntry, feature};
use zerocopy::IntoBytes;

use crate::capsule::{Move, data_of};
use crate::handshake::{Capsule, Peer};
pub(crate) use logs::log_page;
use properties::Properties;

/// The entries of an admin queue at most.
pub(crate) const ENTRIES: u16 = 128;
/// Asynchronous Event Requests that may be outstanding.
const EVENT_REQUESTS: usize = 4;
/// The most that one command returns of the log.
const MAX_DATA: u32 = 128 << 10;
/// The longest silence of a host that has set no Keep Alive Timeout, or whose controller does not serve it.
const SILENCE: Duration = Duration::from_secs(120);
/// Time beyond the Keep Alive Timeout: its granularity.
const GRANULARITY: Duration = Duration::from_secs(1);
/// The admin commands, and the features.
const COMMANDS: [AdminOpcode; 6] = [
    AdminOpcode::GET_LOG_PAGE,
    AdminOpcode::IDENTIFY,
    AdminOpcode::SET_FEATURES,
    AdminOpcode::GET_FEATURES,
    AdminOpcode::ASYNCHRONOUS_EVENT_REQUEST,
    AdminOpcode::KEEP_ALIVE,
];
const FEATURES: [u8; 2] = [feature::ASYNC_EVENT_CONFIG, feature::KEEP_ALIVE_TIMER];
/// Statuses of commands that may succeed when they are sent again unchanged.
const TRANSIENT: [Status; 2] = [Status::EVENT_REQUEST_LIMIT_EXCEEDED, Status::TRANSIENT_TRANSPORT_ERROR];

/// The agreement with a host by Connect.
pub(crate) struct Agreed {
    /// Controller ID.
    pub(crate) controller: u16,
    /// Entries of the queue.
    pub(crate) entries: u16,
    /// Keep Alive Timeout; 0 is none.
    pub(crate) keep_alive_ms: u32,
}

/// One discovery controller.
pub(crate) struct Discovery<'a, S> {
    peer: &'a mut Peer<S>,
    /// Sets the longest time that a read or write of the connection takes.
    limit: &'a dyn Fn(Duration) -> io::Result<()>,
    log: &'a [u8],
    controller: u16,
    properties: Properties,
    /// SQ Head Pointer, and entries of the queue.
    head: u16,
    entries: u16,
    events: usize,
    /// Values of the features.
    async_events: u32,
    keep_alive_ms: u32,
    /// The Keep Alive Timer, if it is active; otherwise the time for which the host may be silent.
    timer: TimeLimit,
}

/// Whether a command restarts the Keep Alive Timer, which is command based (Base 3.9.3.1): Keep Alive, and Set Features of the
/// timeout (Base 5.1.25.1.11).
fn is_keep_alive(entry: &SubmissionEntry) -> bool {
    match AdminOpcode(entry.opcode) {
        AdminOpcode::KEEP_ALIVE => true,
        AdminOpcode::SET_FEATURES => entry.cdw10.get() as u8 == feature::KEEP_ALIVE_TIMER,
        _ => false,
    }
}

/// The result of a command: a value, and data.
type Answer = Result<(u64, Vec<u8>), Status>;

impl<'a, S: Read + Write> Discovery<'a, S> {
    pub(crate) fn new(
        peer: &'a mut Peer<S>,
        log: &'a [u8],
        Agreed { controller, entries, keep_alive_ms }: Agreed,
        limit: &'a dyn Fn(Duration) -> io::Result<()>,
    ) -> Discovery<'a, S> {
        let properties = Properties::default();
        let keep_alive_ms = keep_alive_timeout_ms(keep_alive_ms, KEEP_ALIVE_GRANULARITY);
        let (head, events, async_events) = (0, 0, 0);
        let timer = TimeLimit::new(SILENCE);
        Discovery {
            peer,
            limit,
            log,
            controller,
            properties,
            head,
            entries,
            events,
            async_events,
            keep_alive_ms,
            timer,
        }
    }

    /// Serves the host until it leaves.
    ///
    /// # Errors
    /// When it breaks off, violates the protocol, or is silent for too long.
    pub(crate) fn serve(&mut self) -> io::Result<()> {
        loop {
            self.set_limit()?;
            let capsule = match self.peer.capsule() {
                Ok(capsule) => capsule,
                // Hosts need not disconnect first.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(self.expired()),
                Err(error) => return Err(error),
            };
            self.head = if self.head + 1 >= self.entries { 0 } else { self.head + 1 };
            self.command(&capsule)?;
        }
    }

    /// Whether the Keep Alive Timer is active: while the controller is enabled and not shut down (Base 3.9.2).
    fn has_keep_alive(&self) -> bool {
        self.keep_alive_ms > 0 && self.properties.is_serving()
    }

    /// The timer begins anew. An association without Keep Alive is kept for two minutes (Base 3.6.2).
    fn restart_timer(&mut self) {
        let keep_alive = Duration::from_millis(self.keep_alive_ms.into()) + GRANULARITY;
        self.timer = TimeLimit::new(if self.has_keep_alive() { keep_alive } else { SILENCE });
    }

    /// # Errors
    /// When the timer has expired.
    fn set_limit(&self) -> io::Result<()> {
        match self.timer.left() {
            Duration::ZERO => Err(self.expired()),
            left => (self.limit)(left),
        }
    }

    fn expired(&self) -> io::Error {
        let why = if self.has_keep_alive() { "keep alive timeout expired" } else { "the host is silent" };
        io::Error::new(io::ErrorKind::TimedOut, why)
    }

    fn command(&mut self, capsule: &Capsule) -> io::Result<()> {
        let cid = capsule.entry.cid.get();
        let had_keep_alive = self.has_keep_alive();
        let answer = if capsule.entry.opcode == FABRICS { self.fabrics(capsule) } else { self.admin(capsule) };
        let keeps_alive = answer.is_ok() && is_keep_alive(&capsule.entry);
        if keeps_alive || !had_keep_alive || !self.has_keep_alive() {
            self.restart_timer();
        }
        self.set_limit()?;
        match answer {
            Ok(Some((value, data))) => {
                if !data.is_empty() {
                    self.peer.send_data(cid, &data)?;
                }
                self.peer.respond(cid, Status::SUCCESS, value, self.head)
            }
            Ok(None) => Ok(()),
            Err(status) if TRANSIENT.contains(&status) => self.peer.respond(cid, status, 0, self.head),
            Err(status) => self.peer.respond(cid, status.final_(), 0, self.head),
        }
    }

    fn fabrics(&mut self, capsule: &Capsule) -> Result<Option<(u64, Vec<u8>)>, Status> {
        let property = Property::from(capsule.entry);
        let value = match property.fctype {
            fabrics::PROPERTY_GET => self.properties.get(&property)?,
            fabrics::PROPERTY_SET => {
                if self.properties.set(&property)? {
                    (self.events, self.async_events) = (0, 0);
                }
                0
            }
            fabrics::CONNECT => return Err(Status::COMMAND_SEQUENCE_ERROR),
            fabrics::DISCONNECT => return Err(fabrics::INVALID_QUEUE_TYPE),
            _ => return Err(Status::INVALID_OPCODE),
        };
        Ok(Some((value, Vec::new())))
    }

    /// An admin command. `None` if it stays outstanding.
    fn admin(&mut self, capsule: &Capsule) -> Result<Option<(u64, Vec<u8>)>, Status> {
        let entry = &capsule.entry;
        let opcode = AdminOpcode(entry.opcode);
        if !self.properties.is_serving() {
            return Err(Status::COMMAND_SEQUENCE_ERROR);
        }
        if !COMMANDS.contains(&opcode) {
            return Err(Status::INVALID_OPCODE);
        }
        if !capsule.intact {
            return Err(Status::TRANSIENT_TRANSPORT_ERROR);
        }
        let takes_no_namespace = [AdminOpcode::KEEP_ALIVE, AdminOpcode::ASYNCHRONOUS_EVENT_REQUEST].contains(&opcode);
        if entry.flags & FLAGS_FUSED != 0 || takes_no_namespace && entry.nsid.get() != 0 {
            return Err(Status::INVALID_FIELD);
        }
        let data = data_of(entry, Transfer::of(entry.opcode), capsule.data.len() as u32, MAX_DATA)?;
        let answer = match opcode {
            AdminOpcode::IDENTIFY => self.identify(entry.cdw10.get() as u8)?,
            AdminOpcode::GET_LOG_PAGE => self.get_log_page(entry)?,
            AdminOpcode::GET_FEATURES => self.get_features(entry.cdw10.get())?,
            AdminOpcode::SET_FEATURES => self.set_features(entry.cdw10.get(), entry.cdw11.get())?,
            AdminOpcode::ASYNCHRONOUS_EVENT_REQUEST if self.events < EVENT_REQUESTS => {
                self.events += 1;
                return Ok(None);
            }
            AdminOpcode::ASYNCHRONOUS_EVENT_REQUEST => return Err(Status::EVENT_REQUEST_LIMIT_EXCEEDED),
            _ => (0, Vec::new()),
        };
        let moved = match data {
            Move::None => 0,
            Move::ToHost(len) | Move::FromHost(len) | Move::Both(len) | Move::InCapsule { len, .. } => len as usize,
        };
        match moved == answer.1.len() {
            true => Ok(Some(answer)),
            false => Err(Status::DATA_SGL_LENGTH_INVALID),
        }
    }

    fn identify(&self, cns: u8) -> Answer {
        if cns != cns::CONTROLLER {
            return Err(Status::INVALID_FIELD);
        }
        let mut data = Controller::zeroed();
        data.sn = ascii("discovery");
        data.mn = ascii("Nandscape discovery");
        data.fr = ascii(env!("CARGO_PKG_VERSION"));
        data.cntlid = self.controller.into();
        data.ver = VERSION_2_1.into();
        data.cntrltype = identify::CONTROLLER_TYPE_DISCOVERY;
        data.mdts = (MAX_DATA / 4_096).ilog2() as u8;
        data.aerl_z = EVENT_REQUESTS as u8 - 1;
        data.lpa = identify::LPA_EFFECTS | identify::LPA_EXTENDED | identify::LPA_IDENTIFIERS;
        data.kas = KEEP_ALIVE_GRANULARITY.into();
        data.maxcmd = ENTRIES.into();
        data.sgls = identify::SGLS_MESSAGE.into();
        data.subnqn = name_field(DISCOVERY_NQN);
        Ok((0, data.as_bytes().to_vec()))
    }

    fn get_log_page(&self, entry: &SubmissionEntry) -> Answer {
        let LogPart { offset, bytes } = LogPart::of(entry);
        let log = logs::page(entry.cdw10.get() as u8, self.log).ok_or(Status::INVALID_LOG_PAGE)?;
        // No page has Index Offset Supported.
        let by_index = entry.cdw14.get() & log::OFFSET_TYPE != 0;
        if by_index || bytes > u64::from(MAX_DATA) || !offset.is_multiple_of(4) || offset > log.len() as u64 {
            return Err(Status::INVALID_FIELD);
        }
        let mut part = log[offset as usize..].to_vec();
        part.resize(bytes as usize, 0);
        Ok((0, part))
    }

    fn get_features(&self, cdw10: u32) -> Answer {
        match cdw10 as u8 {
            feature::ASYNC_EVENT_CONFIG => Ok((self.async_events.into(), Vec::new())),
            feature::KEEP_ALIVE_TIMER => Ok((self.keep_alive_ms.into(), Vec::new())),
            _ => Err(Status::INVALID_FIELD),
        }
    }

    fn set_features(&mut self, cdw10: u32, value: u32) -> Answer {
        match cdw10 as u8 {
            feature::ASYNC_EVENT_CONFIG => self.async_events = value,
            feature::KEEP_ALIVE_TIMER => self.keep_alive_ms = keep_alive_timeout_ms(value, KEEP_ALIVE_GRANULARITY),
            _ => return Err(Status::INVALID_FIELD),
        }
        Ok((0, Vec::new()))
    }
}
