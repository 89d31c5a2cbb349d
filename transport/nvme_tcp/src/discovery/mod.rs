//! The discovery controller (Base 3.1.3.3, 4.7.1): its log names the subsystems of this server. Each host that connects to
//! it has a thread of its own, and nothing of it reaches a drive.
//!
//! The log never changes, so a host that waits for events waits until it leaves.

use std::io::{self, Read, Write};
use std::net::SocketAddr;

use nandscape_wire_nvme::discovery::{
    DISCOVERY, Entry, Header, IPV4, IPV6, NVM_SUBSYSTEM, REQUIREMENTS, TCP, THIS_DISCOVERY,
};
use nandscape_wire_nvme::fabrics::{self, DISCOVERY_NQN, DYNAMIC, FABRICS, Property, SIZE_8, name_field};
use nandscape_wire_nvme::identify::{self, Controller, ascii, cns};
use nandscape_wire_nvme::log::LogPart;
use nandscape_wire_nvme::opcode::Transfer;
use nandscape_wire_nvme::register::{
    self, CSTS_RDY, CSTS_SHUT_DOWN, Capabilities, ControllerConfiguration, VERSION_2_1,
};
use nandscape_wire_nvme::{AdminOpcode, Status, feature};
use zerocopy::IntoBytes;

use crate::capsule::{Move, data_of};
use crate::handshake::{Capsule, Peer};

/// The entries of an admin queue at most.
pub(crate) const ENTRIES: u16 = 128;
/// Asynchronous Event Requests that may be outstanding.
const EVENT_REQUESTS: usize = 4;
/// The most that one command returns of the log.
const MAX_DATA: u32 = 128 << 10;
/// The longest time to become ready, in 500 ms.
const TIMEOUT: u8 = 10;

/// The discovery log of a server whose subsystems have the names `nqns`, for a host that reached it at `address`.
pub(crate) fn log_page<'a>(address: SocketAddr, nqns: impl Iterator<Item = &'a str>) -> Vec<u8> {
    // An IPv4 host of a socket that takes both is an IPv4 host.
    let address = SocketAddr::new(address.ip().to_canonical(), address.port());
    let own = entry(DISCOVERY_NQN, address, THIS_DISCOVERY);
    let entries: Vec<Entry> = nqns.map(|nqn| entry(nqn, address, NVM_SUBSYSTEM)).chain([own]).collect();
    let mut log = Header::of(entries.len() as u64).as_bytes().to_vec();
    log.extend_from_slice(entries.as_bytes());
    log
}

fn entry(nqn: &str, address: SocketAddr, kind: u8) -> Entry {
    let mut entry = Entry::zeroed();
    entry.transport = TCP;
    entry.family = if address.is_ipv4() { IPV4 } else { IPV6 };
    entry.subsystem_type = kind;
    entry.requirements = REQUIREMENTS;
    entry.port = 1.into();
    entry.controller = DYNAMIC.into();
    entry.admin_size = ENTRIES.into();
    entry.service = ascii(&address.port().to_string());
    entry.subsystem = name_field(nqn);
    entry.address = ascii(&address.ip().to_string());
    entry
}

/// One discovery controller.
pub(crate) struct Discovery<'a, S> {
    peer: &'a mut Peer<S>,
    log: &'a [u8],
    controller: u16,
    cc: ControllerConfiguration,
    /// SQ Head Pointer, and entries of the queue.
    head: u16,
    entries: u16,
    events: usize,
    async_events: u32,
    /// Whether the host has disconnected.
    left: bool,
}

/// What a command results in: a value, and data.
type Answer = Result<(u64, Vec<u8>), Status>;

impl<'a, S: Read + Write> Discovery<'a, S> {
    pub(crate) fn new(peer: &'a mut Peer<S>, log: &'a [u8], controller: u16, entries: u16) -> Discovery<'a, S> {
        let cc = ControllerConfiguration::default();
        Discovery { peer, log, controller, cc, head: 0, entries, events: 0, async_events: 0, left: false }
    }

    /// Serves the host until it disconnects.
    ///
    /// # Errors
    /// When it breaks off, violates the protocol, or is silent for too long.
    pub(crate) fn serve(&mut self) -> io::Result<()> {
        while !self.left {
            let capsule = match self.peer.capsule() {
                Ok(capsule) => capsule,
                // Hosts need not disconnect first.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                Err(error) => return Err(error),
            };
            self.head = if self.head + 1 >= self.entries { 0 } else { self.head + 1 };
            self.command(&capsule)?;
        }
        Ok(())
    }

    fn command(&mut self, capsule: &Capsule) -> io::Result<()> {
        let entry = &capsule.entry;
        let cid = entry.cid.get();
        let enabled = self.cc.enabled();
        let answer = match AdminOpcode(entry.opcode) {
            AdminOpcode(FABRICS) => self.fabrics(capsule),
            _ if !enabled => Err(Status::COMMAND_SEQUENCE_ERROR),
            AdminOpcode::IDENTIFY => self.identify(entry.cdw10.get() as u8),
            AdminOpcode::GET_LOG_PAGE => self.get_log_page(capsule),
            AdminOpcode::KEEP_ALIVE => Ok((0, Vec::new())),
            AdminOpcode::ASYNCHRONOUS_EVENT_REQUEST if self.events < EVENT_REQUESTS => {
                self.events += 1;
                return Ok(());
            }
            AdminOpcode::ASYNCHRONOUS_EVENT_REQUEST => Err(Status::EVENT_REQUEST_LIMIT_EXCEEDED),
            AdminOpcode::GET_FEATURES => self.get_features(entry.cdw10.get()),
            AdminOpcode::SET_FEATURES => self.set_features(entry.cdw10.get(), entry.cdw11.get()),
            _ => Err(Status::INVALID_OPCODE),
        };
        let (value, data) = match answer {
            Ok(answer) => answer,
            Err(status) => return self.peer.respond(cid, status.final_(), 0, self.head),
        };
        if data.is_empty() {
            return self.peer.respond(cid, Status::SUCCESS, value, self.head);
        }
        match data_of(entry, Transfer::ToHost, capsule.data.len() as u32, MAX_DATA) {
            Ok(Move::ToHost(len)) if len as usize == data.len() => {
                self.peer.send_data(cid, &data)?;
                self.peer.respond(cid, Status::SUCCESS, value, self.head)
            }
            Ok(_) => self.peer.respond(cid, Status::DATA_SGL_LENGTH_INVALID.final_(), 0, self.head),
            Err(status) => self.peer.respond(cid, status, 0, self.head),
        }
    }

    fn fabrics(&mut self, capsule: &Capsule) -> Answer {
        let property = Property::from(capsule.entry);
        match property.fctype {
            fabrics::PROPERTY_GET => self.property(&property).map(|value| (value, Vec::new())),
            fabrics::PROPERTY_SET => match (property.offset.get(), property.attributes & 0b111) {
                (register::CC, fabrics::SIZE_4) => {
                    self.cc = ControllerConfiguration(property.value.get() as u32);
                    Ok((0, Vec::new()))
                }
                _ => Err(Status::INVALID_FIELD),
            },
            fabrics::CONNECT => Err(Status::COMMAND_SEQUENCE_ERROR),
            fabrics::DISCONNECT => Err(fabrics::INVALID_QUEUE_TYPE),
            _ => Err(Status::INVALID_OPCODE),
        }
    }

    fn property(&self, property: &Property) -> Result<u64, Status> {
        let ready = if self.cc.enabled() { CSTS_RDY } else { 0 };
        let status = if self.cc.shutdown() == 0 { ready } else { ready | CSTS_SHUT_DOWN };
        let capabilities = Capabilities { max_entries_z: ENTRIES - 1, timeout: TIMEOUT };
        match (property.offset.get(), property.attributes & 0b111) {
            (register::CAP, SIZE_8) => Ok(capabilities.bits()),
            (register::VS, fabrics::SIZE_4) => Ok(VERSION_2_1.into()),
            (register::CC, fabrics::SIZE_4) => Ok(self.cc.0.into()),
            (register::CSTS, fabrics::SIZE_4) => Ok(status.into()),
            // Hosts ask for it where CAP.CRMS says that the controller is ready with its media.
            (register::CRTO, fabrics::SIZE_4) => Ok(TIMEOUT.into()),
            _ => Err(Status::INVALID_FIELD),
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
        data.lpa = identify::LPA_EXTENDED;
        data.kas = identify::KEEP_ALIVE_GRANULARITY.into();
        data.maxcmd = ENTRIES.into();
        data.sgls = identify::SGLS_MESSAGE.into();
        data.subnqn = name_field(DISCOVERY_NQN);
        Ok((0, data.as_bytes().to_vec()))
    }

    fn get_log_page(&self, capsule: &Capsule) -> Answer {
        let entry = &capsule.entry;
        let LogPart { offset, bytes } = LogPart::of(entry);
        if entry.cdw10.get() as u8 != DISCOVERY {
            return Err(Status::INVALID_LOG_PAGE);
        }
        if bytes > u64::from(MAX_DATA) || !offset.is_multiple_of(4) || offset > self.log.len() as u64 {
            return Err(Status::INVALID_FIELD);
        }
        let mut part = self.log[offset as usize..].to_vec();
        part.resize(bytes as usize, 0);
        Ok((0, part))
    }

    fn get_features(&self, cdw10: u32) -> Answer {
        match cdw10 as u8 {
            feature::ASYNC_EVENT_CONFIG => Ok((self.async_events.into(), Vec::new())),
            feature::KEEP_ALIVE_TIMER => Ok((0, Vec::new())),
            _ => Err(Status::INVALID_FIELD),
        }
    }

    fn set_features(&mut self, cdw10: u32, value: u32) -> Answer {
        match cdw10 as u8 {
            feature::ASYNC_EVENT_CONFIG => self.async_events = value,
            // The time limit of the connection stands.
            feature::KEEP_ALIVE_TIMER => {}
            _ => return Err(Status::INVALID_FIELD),
        }
        Ok((0, Vec::new()))
    }
}
