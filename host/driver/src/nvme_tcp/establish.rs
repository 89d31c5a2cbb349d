//! Connecting to a target, blocking and within a time limit: initialisation (NVMe/TCP 3.4), Connect, enabling the
//! controller, Identify, and a connection for each I/O queue (Base 3.5.2).

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use nandscape_drive::DriveInfo;
use nandscape_wire_nvme::fabrics::{
    self, CONNECT, Connect, ConnectData, DISABLE_SQ_FLOW, DYNAMIC, FABRICS, Property, SIZE_4, SIZE_8, name_field,
};
use nandscape_wire_nvme::identify::{Controller, Namespace, cns};
use nandscape_wire_nvme::sgl::SglDescriptor;
use nandscape_wire_nvme::tcp::{
    CapsuleCommand, CapsuleResponse, Common, DIGEST, Data, Digests, Initialize, MAX_ALIGNMENT_Z, MIN_MAX_DATA, PduType,
    Receiver, SUCCESS, Shape, Terminate,
};
use nandscape_wire_nvme::{AdminOpcode, CompletionEntry, Status, SubmissionEntry, feature, register};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use super::crc;
use super::identity::Identity;
use super::target::Target;
use crate::describe::{choose, drive_info, has_nvm_commands};
use crate::stream::{Limit, Limited, connect_tcp, in_words};

/// The longest wait for a complete answer of the target.
const ANSWER: Duration = Duration::from_secs(10);
/// Entries of the admin queue.
const ADMIN_ENTRIES: u16 = 32;
/// The largest data that is received before the limits are known.
const MAX_DATA: u32 = 8_192;
/// Bytes of an Identify data structure.
const IDENTIFY: u32 = 4_096;
/// Reads of CSTS before the controller has to be ready: its timeout counts in 500 ms, and each takes a round trip.
const CSTS_PAUSE: Duration = Duration::from_millis(10);

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The network, or a target that breaks off.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The target has refused a command.
    #[error("{step}: the target answers {}", fabrics::name(*.status))]
    Refused {
        /// The failed step.
        step: &'static str,
        /// Its status.
        status: Status,
    },
    /// The target is not usable as a drive, or breaks rules.
    #[error("{0}")]
    Unusable(String),
    /// The drive differs from the one connected before.
    #[error("{0}")]
    NotItself(String),
}

/// An association that can be used.
pub(super) struct Established {
    pub(super) admin: Link,
    pub(super) queues: Vec<Link>,
    pub(super) info: DriveInfo,
    pub(super) identity: Identity,
}

/// A connection, with the negotiated parameters.
pub(super) struct Link {
    pub(super) stream: TcpStream,
    pub(super) digests: Digests,
    /// The target's alignment of data in bytes.
    pub(super) align: usize,
    /// MAXH2CDATA.
    pub(super) max_data: u32,
    /// Bytes of data that a capsule may hold.
    pub(super) in_capsule: u32,
    /// Commands at a time.
    pub(super) depth: u16,
}

/// Connects all queues.
pub(super) fn establish(target: &Target) -> Result<Established, ConnectError> {
    connect_all(target).map_err(|error| match error {
        ConnectError::Io(error) => ConnectError::Io(in_words(error, ANSWER)),
        other => other,
    })
}

fn connect_all(target: &Target) -> Result<Established, ConnectError> {
    let mut admin = Link::open(target)?;
    let controller = admin.connect(target, 0, ADMIN_ENTRIES, DYNAMIC)?;
    admin.depth = ADMIN_ENTRIES - 1;
    let most_entries = admin.enable()?;
    let controller_data = admin.identify_controller()?;
    let namespaces = admin.active_namespaces()?;
    let (info, namespace) = admin.identify_namespace(&namespaces, &controller_data, target.namespace)?;
    let info = DriveInfo { keeps_data: target.keeps_data, ..info };
    let identity = Identity::of(&controller_data, &namespace, namespaces);
    let wanted = target.queues.min(admin.queue_count(target.queues)?);
    // One entry always stays empty, and one command may be a probe.
    let entries = target.depth.saturating_add(2).clamp(2, most_entries.max(2));
    let in_capsule = (controller_data.ioccsz.get() * 16).saturating_sub(size_of::<SubmissionEntry>() as u32);
    let connect = |number: u16| {
        let mut link = Link::open(target)?;
        link.connect(target, number, entries, controller)?;
        (link.depth, link.in_capsule) = (entries - 1, in_capsule);
        link.ready()
    };
    let queues = (1..=wanted).map(connect).collect::<Result<Vec<_>, ConnectError>>()?;
    Ok(Established { admin: admin.ready()?, queues, info, identity })
}

impl Link {
    /// Opens a TCP connection and initialises it.
    fn open(target: &Target) -> Result<Link, ConnectError> {
        let mut stream = connect_tcp(&target.address, ANSWER)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER))?;
        stream.set_write_timeout(Some(ANSWER))?;
        // One R2T of a command at a time.
        let mut request = Initialize::new(PduType::IC_REQ, 0);
        request.digests = target.digests.bits();
        stream.write_all(request.as_bytes())?;
        let digests = Digests::default();
        let mut link = Link { stream, digests, align: 4, max_data: 0, in_capsule: MAX_DATA, depth: 1 };
        let (header, _) = link.pdu(PduType::IC_RESP, &Limit::new(ANSWER))?;
        let response = Initialize::read_from_bytes(&header).expect("the shape has its length");
        let (wants, limit) = (response.wants(), response.limit.get());
        let more = (wants.header && !target.digests.header) || (wants.data && !target.digests.data);
        if response.version.get() != 0 || response.alignment_z > MAX_ALIGNMENT_Z || limit < MIN_MAX_DATA || more {
            return Err(unusable("the target's initialisation is not valid"));
        }
        link.digests = wants;
        (link.align, link.max_data) = ((usize::from(response.alignment_z) + 1) * 4, limit / 4 * 4);
        Ok(link)
    }

    /// From now on it does not block.
    fn ready(self) -> Result<Link, ConnectError> {
        self.stream.set_nonblocking(true)?;
        Ok(self)
    }

    /// Receives the next PDU, which is to be of a kind or its failure: header and data.
    fn pdu(&mut self, kind: PduType, limit: &Limit) -> Result<(Vec<u8>, Vec<u8>), ConnectError> {
        let mut stream = Limited { socket: &self.stream, limit };
        let mut common = Common::default();
        stream.read_exact(common.as_mut_bytes())?;
        let shape = Shape::of(&common, Receiver::Host, self.digests, MAX_DATA);
        let shape = shape.map_err(|fatal| unusable(&format!("the target's PDU is not valid: {fatal}")))?;
        let mut bytes = vec![0; shape.len()];
        let (begin, rest) = bytes.split_at_mut(size_of::<Common>());
        begin.copy_from_slice(common.as_bytes());
        stream.read_exact(rest)?;
        let digest = |at: usize| u32::from_le_bytes(std::array::from_fn(|index| bytes[at + index]));
        let data = bytes[shape.lead()..][..shape.data].to_vec();
        let header_intact = !shape.header_digest || digest(shape.header) == crc(&bytes[..shape.header]);
        if !header_intact || (shape.data_digest && digest(bytes.len() - DIGEST) != crc(&data)) {
            return Err(unusable("a digest of the target is wrong"));
        }
        bytes.truncate(shape.header);
        if shape.kind == PduType::C2H_TERM {
            let request = Terminate::read_from_bytes(&bytes).expect("the shape has its length");
            let name = nandscape_wire_nvme::tcp::FatalStatus(request.status.get()).name();
            return Err(unusable(&format!("the target terminates the connection: {name}")));
        }
        match shape.kind == kind || kind == PduType::CAPSULE_RESP && shape.kind == PduType::C2H_DATA {
            true => Ok((bytes, data)),
            false => Err(unusable("the target sends a PDU out of order")),
        }
    }

    /// Executes a command; returns its completion and its data, at most `room` bytes.
    pub(super) fn execute(
        &mut self,
        entry: SubmissionEntry,
        data: &[u8],
        room: usize,
    ) -> Result<(CompletionEntry, Vec<u8>), ConnectError> {
        let common = self.digests.common(PduType::CAPSULE_CMD, 0, size_of::<CapsuleCommand>(), data.len(), self.align);
        let capsule = CapsuleCommand { common, entry };
        let mut bytes = capsule.as_bytes().to_vec();
        if self.digests.header {
            bytes.extend(crc(capsule.as_bytes()).to_le_bytes());
        }
        if !data.is_empty() {
            bytes.resize(usize::from(common.data_offset), 0);
            bytes.extend(data);
            if self.digests.data {
                bytes.extend(crc(data).to_le_bytes());
            }
        }
        self.stream.write_all(&bytes)?;
        let (mut returned, limit) = (Vec::new(), Limit::new(ANSWER));
        loop {
            let (header, data) = self.pdu(PduType::CAPSULE_RESP, &limit)?;
            if let Ok(response) = CapsuleResponse::read_from_bytes(&header)
                && PduType(response.common.kind) == PduType::CAPSULE_RESP
            {
                return Ok((response.entry, returned));
            }
            let header = Data::read_from_bytes(&header).expect("the shape has its length");
            let fits = !data.is_empty() && returned.len() + data.len() <= room;
            if !fits || (header.offset.get() as usize, header.cid.get()) != (returned.len(), entry.cid.get()) {
                return Err(unusable("the target sends data that was not asked for"));
            }
            returned.extend(data);
            if header.common.flags & SUCCESS != 0 {
                return Ok((CompletionEntry::default(), returned));
            }
        }
    }

    /// Executes a command that has to succeed: its value and data.
    fn demand(
        &mut self,
        step: &'static str,
        entry: SubmissionEntry,
        data: &[u8],
    ) -> Result<(u64, Vec<u8>), ConnectError> {
        // No other command before the queues are ready returns data.
        let room = if entry.opcode == AdminOpcode::IDENTIFY.0 { IDENTIFY as usize } else { 0 };
        let (completion, returned) = self.execute(entry, data, room)?;
        let value = u64::from(completion.dw0.get()) | u64::from(completion.dw1.get()) << 32;
        match completion.status() {
            status if status.is_success() => Ok((value, returned)),
            status => Err(ConnectError::Refused { step, status }),
        }
    }

    /// Connects a queue; the Controller ID.
    fn connect(&mut self, target: &Target, queue: u16, entries: u16, controller: u16) -> Result<u16, ConnectError> {
        let mut data = ConnectData::new_zeroed();
        (data.host_id, data.controller) = (target.host_id, controller.into());
        (data.subsystem, data.host) = (name_field(&target.nqn), name_field(&target.host_nqn));
        let mut connect = Connect::from(SubmissionEntry::default());
        (connect.opcode, connect.fctype, connect.flags) = (FABRICS, CONNECT, PSDT_SGL);
        (connect.queue, connect.size_z) = (queue.into(), (entries - 1).into());
        connect.attributes = DISABLE_SQ_FLOW;
        connect.sgl = SglDescriptor::in_capsule(size_of::<ConnectData>() as u32);
        if queue == 0 {
            connect.keep_alive_ms = ((target.keep_alive.ns() / 1_000_000) as u32).into();
        }
        self.demand("Connect", connect.into(), data.as_bytes()).map(|(value, _)| value as u16)
    }

    fn property(&mut self, property: Property) -> Result<u64, ConnectError> {
        let mut property = property;
        property.flags = PSDT_SGL;
        self.demand("a property", property.into(), &[]).map(|(value, _)| value)
    }

    /// Enables the controller; the most entries of a queue.
    fn enable(&mut self) -> Result<u16, ConnectError> {
        let capabilities = self.property(Property::get(register::CAP, SIZE_8))?;
        has_nvm_commands(capabilities).map_err(|problem| unusable(&problem))?;
        // Entries of 64 and of 16 bytes.
        self.property(Property::set(register::CC, register::CC_EN | 6 << 16 | 4 << 20))?;
        // CAP.TO counts in 500 ms.
        let reads = ((capabilities >> 24 & 0xff) + 1) * 500 / CSTS_PAUSE.as_millis() as u64;
        for _ in 0..reads {
            if self.property(Property::get(register::CSTS, SIZE_4))? & u64::from(register::CSTS_RDY) != 0 {
                return Ok((capabilities as u16).saturating_add(1));
            }
            pause();
        }
        Err(unusable("the controller does not become ready"))
    }

    fn identify(&mut self, cns: u8, nsid: u32) -> Result<Vec<u8>, ConnectError> {
        let entry = SubmissionEntry::identify(cns, nsid).with_sgl(SglDescriptor::transport(IDENTIFY));
        let (_, data) = self.demand("Identify", entry, &[])?;
        match data.len() == IDENTIFY as usize {
            true => Ok(data),
            false => Err(unusable("Identify returns less than its data structure")),
        }
    }

    fn identify_controller(&mut self) -> Result<Controller, ConnectError> {
        let data = self.identify(cns::CONTROLLER, 0)?;
        Ok(Controller::read_from_bytes(&data).expect("its length was checked"))
    }

    fn active_namespaces(&mut self) -> Result<Vec<u32>, ConnectError> {
        let active = self.identify(cns::ACTIVE_NAMESPACES, 0)?;
        let active = active.chunks_exact(4).map(|nsid| u32::from_le_bytes([nsid[0], nsid[1], nsid[2], nsid[3]]));
        Ok(active.take_while(|nsid| *nsid != 0).collect())
    }

    /// The properties of a namespace; `None` is the first active one.
    fn identify_namespace(
        &mut self,
        active: &[u32],
        controller: &Controller,
        wanted: Option<u32>,
    ) -> Result<(DriveInfo, Namespace), ConnectError> {
        let nsid = choose(active.iter().copied(), wanted).map_err(|problem| unusable(&problem))?;
        let data = self.identify(cns::NAMESPACE, nsid)?;
        let namespace = Namespace::read_from_bytes(&data).expect("its length was checked");
        let info = drive_info(nsid, controller, &namespace).map_err(|problem| unusable(&problem))?;
        Ok((info, namespace))
    }

    /// How many I/O queues the controller has for `wanted`.
    fn queue_count(&mut self, wanted: u16) -> Result<u16, ConnectError> {
        let value = feature::NumberOfQueues::new(wanted, wanted);
        let entry = SubmissionEntry::set_features(feature::NUMBER_OF_QUEUES, value.0);
        let entry = entry.with_sgl(SglDescriptor::transport(0));
        let (value, _) = self.demand("Number of Queues", entry, &[])?;
        let given = feature::NumberOfQueues(value as u32);
        Ok(given.submission_z().min(given.completion_z()).saturating_add(1))
    }
}

/// PSDT 01b: over Fabrics all commands use SGLs.
const PSDT_SGL: u8 = 0b01 << 6;

/// A command that a target answers on any queue, without its drive: with Invalid Command Opcode, as properties belong to the admin queue.
pub(super) fn probe() -> SubmissionEntry {
    let mut property = Property::get(register::CSTS, SIZE_4);
    property.flags = PSDT_SGL;
    property.into()
}

/// Keep Alive.
pub(super) fn keep_alive() -> SubmissionEntry {
    SubmissionEntry::admin(AdminOpcode::KEEP_ALIVE)
}

#[expect(clippy::disallowed_methods, reason = "a target tells by nothing else when its controller is ready")]
fn pause() {
    std::thread::sleep(CSTS_PAUSE);
}

fn unusable(problem: &str) -> ConnectError {
    ConnectError::Unusable(problem.to_owned())
}
