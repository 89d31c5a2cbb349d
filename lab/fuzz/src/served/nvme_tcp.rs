//! A host of NVMe/TCP: PDUs before and after Connect, on an admin or an I/O queue, sound, nearly sound, or bytes.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};

use nandscape_transport_nvme_tcp::{Address, Listener, ListenerConfig, Subsystem};
use nandscape_wire_nvme::fabrics::{
    CONNECT, Connect, ConnectData, DISCOVERY_NQN, DYNAMIC, FABRICS, Property, name_field,
};
use nandscape_wire_nvme::sgl::{SglDescriptor, SglType};
use nandscape_wire_nvme::tcp::{
    CapsuleCommand, CapsuleResponse, Common, Data, Digests, Initialize, PduType, Terminate,
};
use nandscape_wire_nvme::{Status, SubmissionEntry, register};
use zerocopy::{FromBytes as _, IntoBytes as _};

use super::server::{HANGS, Served, Server};
use super::{send, take_rest};
use crate::entry::{NVM, entry};
use crate::input::Input;

thread_local! {
    static SERVER: Server<(Listener, String)> = Server::start(listen);
}

fn listen(served: &Served) -> (Listener, String) {
    let nqn = served.nqn.clone();
    let config = ListenerConfig {
        address: Address::Tcp("127.0.0.1:0".to_owned()),
        allow_remote: false,
        max_clients: 16,
        patience: HANGS,
        subsystems: vec![Subsystem { nqn: nqn.clone(), handle: served.handle.clone(), number: 0 }],
        log: Box::new(|_| ()),
    };
    (Listener::start(config).expect("a port on loopback"), nqn)
}

/// One connection, and for an I/O queue a second one with the admin queue. The first byte selects how far the host gets
/// before it misbehaves.
///
/// # Panics
/// When the server does not release the host.
pub fn nvme_tcp(bytes: &[u8]) {
    SERVER.with(|server| {
        let (listener, nqn) = server.listener.as_ref().expect("it listens");
        nvme_tcp_host(&NvmeTcpTarget { address: listener.address().to_string(), nqn: nqn.clone() }, bytes);
        server.wait_until_idle();
    });
}

/// A subsystem, and where it is.
#[derive(Clone, Debug)]
pub struct NvmeTcpTarget {
    /// Host and port.
    pub address: String,
    /// Its name.
    pub nqn: String,
}

/// A session of a host with a subsystem.
///
/// # Panics
/// When there is no server, it refuses the host, or it neither answers nor hangs up.
pub fn nvme_tcp_host(target: &NvmeTcpTarget, bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let choice = input.byte();
    let digests = Digests { header: choice & 8 != 0, data: choice & 0x10 != 0 };
    // Before initialisation, before Connect, on a discovery controller, on an admin queue, on an I/O queue.
    let (_admin, host) = match choice & 7 {
        0 => (None, NvmeTcpHost::connect(target, digests)),
        1 => (None, NvmeTcpHost::initialised(target, digests)),
        2 => (None, NvmeTcpHost::with_queue(target, digests, DISCOVERY_NQN, 0, DYNAMIC).0),
        3 | 4 => (None, NvmeTcpHost::admin(target, digests).0),
        _ => {
            let (admin, host) = NvmeTcpHost::with_io_queue(target, digests);
            (Some(admin), host)
        }
    };
    let is_admin = choice & 7 < 5;
    let mut sent = 0;
    while !input.is_empty() && send(&host.stream, &host.piece(&mut input, is_admin), &mut sent) {}
    // Fails when the server has hung up already.
    let _ = host.stream.shutdown(Shutdown::Write);
    if choice & 0x80 == 0 {
        take_rest(&host.stream);
    }
}

/// A host that makes PDUs by hand.
pub struct NvmeTcpHost {
    /// Its connection.
    pub stream: TcpStream,
    digests: Digests,
}

impl NvmeTcpHost {
    /// A connection before its first message.
    pub fn connect(target: &NvmeTcpTarget, digests: Digests) -> NvmeTcpHost {
        let stream = TcpStream::connect(&target.address).expect("the server listens");
        stream.set_read_timeout(Some(HANGS)).expect("a timeout");
        stream.set_write_timeout(Some(HANGS)).expect("a timeout");
        stream.set_nodelay(true).expect("no delay");
        NvmeTcpHost { stream, digests }
    }

    /// A connection before Connect.
    pub fn initialised(target: &NvmeTcpTarget, digests: Digests) -> NvmeTcpHost {
        let mut host = NvmeTcpHost::connect(target, digests);
        let request = Initialize { digests: digests.bits(), ..Initialize::new(PduType::IC_REQ, 3) };
        host.stream.write_all(request.as_bytes()).expect("the server takes it");
        host.stream.read_exact(&mut [0; size_of::<Initialize>()]).expect("the server answers");
        host
    }

    /// A connected queue, and the controller's number.
    fn with_queue(
        target: &NvmeTcpTarget,
        digests: Digests,
        nqn: &str,
        queue: u16,
        controller: u16,
    ) -> (NvmeTcpHost, u16) {
        let mut host = NvmeTcpHost::initialised(target, digests);
        let mut data = ConnectData::zeroed();
        (data.host_id, data.controller) = ([7; 16], controller.into());
        (data.subsystem, data.host) = (name_field(nqn), name_field("nqn.2014-08.org.nvmexpress:uuid:any"));
        let mut connect = Connect::from(SubmissionEntry::default());
        (connect.opcode, connect.fctype, connect.flags) = (FABRICS, CONNECT, 0x40);
        (connect.queue, connect.size_z) = (queue.into(), 31.into());
        connect.sgl = SglDescriptor::in_capsule(size_of::<ConnectData>() as u32);
        let controller = host.execute(connect.into(), data.as_bytes());
        (host, controller)
    }

    /// An admin queue with an enabled controller, and the controller's number.
    pub fn admin(target: &NvmeTcpTarget, digests: Digests) -> (NvmeTcpHost, u16) {
        let (mut host, controller) = NvmeTcpHost::with_queue(target, digests, &target.nqn, 0, DYNAMIC);
        let cc = Property::set(register::CC, register::CC_EN | 6 << 16 | 4 << 20);
        host.execute(SubmissionEntry { flags: 0x40, ..cc.into() }, &[]);
        (host, controller)
    }

    /// An admin queue, and an I/O queue of the same controller.
    pub fn with_io_queue(target: &NvmeTcpTarget, digests: Digests) -> (NvmeTcpHost, NvmeTcpHost) {
        let (admin, controller) = NvmeTcpHost::admin(target, Digests::default());
        (admin, NvmeTcpHost::with_queue(target, digests, &target.nqn, 1, controller).0)
    }

    /// Executes a sound command whose data are in its capsule; the low half of its result.
    ///
    /// # Panics
    /// When it fails, or the server does not answer.
    pub fn execute(&mut self, entry: SubmissionEntry, data: &[u8]) -> u16 {
        let (status, result) = self.attempt(entry, data);
        assert!(status.is_success(), "{status:?}");
        result
    }

    /// As [`NvmeTcpHost::execute`], of a command that may fail: its status, and the low half of its result.
    ///
    /// # Panics
    /// When the server does not answer.
    pub fn attempt(&mut self, entry: SubmissionEntry, data: &[u8]) -> (Status, u16) {
        let capsule = self.capsule(entry, data);
        self.stream.write_all(&capsule).expect("the server takes it");
        let digest = if self.digests.header { 4 } else { 0 };
        let mut bytes = vec![0; size_of::<CapsuleResponse>() + digest];
        self.stream.read_exact(&mut bytes).expect("the server answers");
        let (response, _) = CapsuleResponse::read_from_prefix(&bytes).expect("a capsule");
        (response.entry.status(), response.entry.dw0.get() as u16)
    }

    /// A command capsule with data.
    pub fn capsule(&self, entry: SubmissionEntry, data: &[u8]) -> Vec<u8> {
        let common = self.digests.common(PduType::CAPSULE_CMD, 0, 72, data.len(), 4);
        self.pdu(common, &CapsuleCommand { common, entry }.as_bytes()[8..], data)
    }

    /// A PDU with its digests.
    pub fn pdu(&self, common: Common, rest: &[u8], data: &[u8]) -> Vec<u8> {
        let mut bytes = [common.as_bytes(), rest].concat();
        if self.digests.header {
            bytes.extend(crc(&bytes).to_le_bytes());
        }
        if !data.is_empty() {
            bytes.resize(bytes.len().max(common.data_offset.into()), 0);
            bytes.extend(data);
            if self.digests.data {
                bytes.extend(crc(data).to_le_bytes());
            }
        }
        bytes
    }

    /// What the host sends next.
    fn piece(&self, input: &mut Input<'_>, is_admin: bool) -> Vec<u8> {
        match input.byte() {
            0xff => {
                let len = input.byte().into();
                input.take(len).to_vec()
            }
            // A header that may not match what follows.
            0xf0..0xff => {
                let common = Common::read_from_bytes(&input.array::<8>()).expect("8 bytes are a header");
                let len = input.byte().into();
                self.pdu(common, input.take(len), &[])
            }
            0xe0..0xf0 => {
                let request = Initialize::new(PduType::IC_REQ, input.number32());
                let (version, alignment_z) = (u16::from(input.byte()).into(), input.byte());
                Initialize { version, alignment_z, digests: input.byte(), ..request }.as_bytes().to_vec()
            }
            0xdf => {
                let common = self.digests.common(PduType::H2C_TERM, 0, 24, 0, 4);
                let common = Common { len: (24 + u32::from(input.byte())).into(), ..common };
                self.pdu(common, &input.array::<16>(), &[0; size_of::<Terminate>()])
            }
            0xc0..0xdf => self.data(input),
            choice => self.command(input, is_admin, choice),
        }
    }

    /// Data for a command that may have asked for it.
    fn data(&self, input: &mut Input<'_>) -> Vec<u8> {
        let (cid, tag) = (u16::from(input.byte()).into(), u16::from(input.byte()).into());
        let (offset, len) = (input.number32().into(), usize::from(input.byte()) * 128);
        let common = self.digests.common(PduType::H2C_DATA, input.byte() & 0xfc, 24, len, 4);
        let data = Data { common, cid, tag, offset, len: (len as u32).into(), reserved_20: [0; 4] };
        self.pdu(common, &data.as_bytes()[8..], &vec![0x5a; len])
    }

    fn command(&self, input: &mut Input<'_>, is_admin: bool, choice: u8) -> Vec<u8> {
        let mut entry = match choice {
            0x00..0x10 => Property::get(input.number32(), input.byte()).into(),
            0x10..0x20 => Property::set(input.number32(), input.number32()).into(),
            0x20..0x24 => SubmissionEntry::disconnect(),
            _ => entry(input, NVM, is_admin),
        };
        entry.cid = u16::from(input.byte()).into();
        let given = input.byte();
        let blocks = u32::from(given & 0x1f) * 512;
        entry = entry.with_sgl(match given >> 5 {
            0..3 => SglDescriptor::transport(blocks),
            3..6 => SglDescriptor::in_capsule(blocks),
            6 => SglDescriptor::new(SglType(input.byte()), input.number(), input.number32()),
            _ => SglDescriptor::transport(input.number32()),
        });
        let len = input.byte().into();
        let mut data = input.take(len).to_vec();
        if matches!(given >> 5, 3..6) {
            data.resize(blocks as usize, 0);
        }
        self.capsule(entry, &data)
    }
}

fn crc(bytes: &[u8]) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes) as u32
}
