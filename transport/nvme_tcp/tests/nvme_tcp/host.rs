//! A host that makes PDUs by hand, blocks, and checks the replies.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use nandscape_wire_nvme::fabrics::{
    CONNECT, Connect, ConnectData, DISABLE_SQ_FLOW, DYNAMIC, FABRICS, Property, SIZE_4, SIZE_8, name_field,
};
use nandscape_wire_nvme::sgl::SglDescriptor;
use nandscape_wire_nvme::tcp::{
    CapsuleCommand, CapsuleResponse, Common, Data, Digests, Initialize, PduType, Receiver, SUCCESS, Shape, Terminate,
};
use nandscape_wire_nvme::{CompletionEntry, IoOpcode, Status, SubmissionEntry, register};
use zerocopy::{FromBytes, IntoBytes};

use crate::server::{HANGS, Server};

/// One connection.
pub(crate) struct Host {
    pub(crate) stream: TcpStream,
    pub(crate) digests: Digests,
    /// The controller's alignment of data.
    pub(crate) controller: u16,
    cid: u16,
}

/// A received PDU.
#[derive(Debug)]
pub(crate) enum Pdu {
    Response(CompletionEntry),
    /// A header, and its data.
    Data(Data, Vec<u8>),
    Ready(Data),
    Terminate(Terminate, Vec<u8>),
}

/// CRC-32C, bit by bit: not the code under test.
pub(crate) fn crc(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = crc >> 1 ^ if crc & 1 != 0 { 0x82f6_3b78 } else { 0 };
        }
    }
    !crc
}

impl Host {
    /// A TCP connection on which nothing was sent.
    pub(crate) fn tcp(server: &Server) -> TcpStream {
        let stream = TcpStream::connect(&server.address).unwrap();
        stream.set_read_timeout(Some(HANGS)).unwrap();
        stream.set_write_timeout(Some(HANGS)).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    /// A connection after initialisation.
    pub(crate) fn initialized(server: &Server, digests: Digests, alignment_z: u8, max_transfers_z: u32) -> Host {
        let mut stream = Host::tcp(server);
        let mut request = Initialize::new(PduType::IC_REQ, max_transfers_z);
        (request.digests, request.alignment_z) = (digests.bits(), alignment_z);
        stream.write_all(request.as_bytes()).unwrap();
        let mut bytes = [0; 128];
        stream.read_exact(&mut bytes).unwrap();
        let response = Initialize::read_from_bytes(&bytes).unwrap();
        assert_eq!((response.common.kind, response.version.get(), response.wants()), (1, 0, digests));
        assert!(response.limit.get() >= 4_096 && response.limit.get() % 4 == 0);
        Host { stream, digests, controller: DYNAMIC, cid: 100 }
    }

    /// An admin queue of 32 entries, whose controller is enabled.
    pub(crate) fn admin(server: &Server, digests: Digests) -> Host {
        let mut host = Host::initialized(server, digests, 0, 0);
        let (status, value) = host.connect(server, 0, 32, |_, _| {});
        assert_eq!(status, Status::SUCCESS);
        host.controller = value as u16;
        assert_eq!(host.set(register::CC, 0x0046_0001).0, Status::SUCCESS);
        assert_eq!(host.get(register::CSTS, SIZE_4), (Status::SUCCESS, 1));
        host
    }

    /// An I/O queue of the same controller.
    pub(crate) fn queue(&self, server: &Server, number: u16, digests: Digests) -> Host {
        let mut host = Host::initialized(server, digests, 0, 3);
        host.controller = self.controller;
        assert_eq!(host.connect(server, number, 128, |_, _| {}).0, Status::SUCCESS);
        host
    }

    /// A host with an admin queue and an I/O queue.
    pub(crate) fn with_queue(server: &Server) -> (Host, Host) {
        let admin = Host::admin(server, Digests::default());
        let queue = admin.queue(server, 1, Digests::default());
        (admin, queue)
    }

    /// Connects a queue, with changes by `change`.
    pub(crate) fn connect(
        &mut self,
        server: &Server,
        queue: u16,
        entries: u16,
        change: impl FnOnce(&mut Connect, &mut ConnectData),
    ) -> (Status, u32) {
        let mut data = ConnectData::zeroed();
        (data.host_id, data.controller) = ([7; 16], self.controller.into());
        (data.subsystem, data.host) = (name_field(&server.nqn), name_field("nqn.2014-08.org.nvmexpress:uuid:test"));
        let mut connect = Connect::from(SubmissionEntry::default());
        (connect.opcode, connect.fctype, connect.flags) = (FABRICS, CONNECT, 0x40);
        (connect.queue, connect.size_z) = (queue.into(), (entries - 1).into());
        connect.sgl = SglDescriptor::in_capsule(1_024);
        change(&mut connect, &mut data);
        connect.cid = 9.into();
        self.send_capsule(connect.into(), data.as_bytes());
        let entry = self.response();
        assert_eq!(entry.cid.get(), 9);
        (entry.status(), entry.dw0.get())
    }

    pub(crate) fn next_cid(&mut self) -> u16 {
        self.cid = self.cid.wrapping_add(1);
        self.cid
    }

    /// Sends a PDU with data, if there is any.
    pub(crate) fn send(&mut self, header: &[u8], data_offset: u8, data: &[u8]) {
        self.stream.write_all(&self.pdu(header, data_offset, data)).unwrap();
    }

    /// The bytes of a PDU.
    pub(crate) fn pdu(&self, header: &[u8], data_offset: u8, data: &[u8]) -> Vec<u8> {
        let mut bytes = header.to_vec();
        if self.digests.header {
            bytes.extend(crc(header).to_le_bytes());
        }
        if !data.is_empty() {
            bytes.resize(usize::from(data_offset), 0);
            bytes.extend(data);
            if self.digests.data {
                bytes.extend(crc(data).to_le_bytes());
            }
        }
        bytes
    }

    pub(crate) fn capsule(&self, entry: SubmissionEntry, data: &[u8]) -> Vec<u8> {
        let common = self.digests.common(PduType::CAPSULE_CMD, 0, 72, data.len(), 4);
        self.pdu(CapsuleCommand { common, entry }.as_bytes(), common.data_offset, data)
    }

    pub(crate) fn send_capsule(&mut self, entry: SubmissionEntry, data: &[u8]) {
        let bytes = self.capsule(entry, data);
        self.stream.write_all(&bytes).unwrap();
    }

    /// Sends data that was requested.
    pub(crate) fn send_data(&mut self, ready: &Data, offset: u32, data: &[u8], last: bool) {
        let flags = if last { nandscape_wire_nvme::tcp::LAST } else { 0 };
        let common = self.digests.common(PduType::H2C_DATA, flags, 24, data.len(), 4);
        let header = Data { common, offset: offset.into(), len: (data.len() as u32).into(), ..*ready };
        self.send(header.as_bytes(), common.data_offset, data);
    }

    /// Sends a command; whether the target answers, and has not closed the connection.
    pub(crate) fn tries(&mut self, entry: SubmissionEntry) -> bool {
        let entry = SubmissionEntry { cid: self.next_cid().into(), flags: entry.flags | 0x40, ..entry };
        let bytes = self.capsule(entry, &[]);
        self.stream.write_all(&bytes).is_ok() && self.try_receive().is_some()
    }

    /// Receives a PDU.
    pub(crate) fn receive(&mut self) -> Pdu {
        self.try_receive().expect("the connection stays")
    }

    /// Receives a PDU; `None` when the target has closed the connection.
    pub(crate) fn try_receive(&mut self) -> Option<Pdu> {
        let mut common = Common::default();
        self.stream.read_exact(common.as_mut_bytes()).ok()?;
        let shape = Shape::of(&common, Receiver::Host, self.digests, 64 << 20).unwrap();
        let mut rest = vec![0; shape.len() - size_of::<Common>()];
        self.stream.read_exact(&mut rest).ok()?;
        let bytes = [common.as_bytes(), &rest].concat();
        let header = &bytes[..shape.header];
        if shape.header_digest {
            assert_eq!(bytes[shape.header..][..4], crc(header).to_le_bytes());
        }
        let data = bytes[shape.lead()..][..shape.data].to_vec();
        if shape.data_digest {
            assert_eq!(bytes[bytes.len() - 4..], crc(&data).to_le_bytes());
        }
        Some(match shape.kind {
            PduType::CAPSULE_RESP => Pdu::Response(CapsuleResponse::read_from_bytes(header).unwrap().entry),
            PduType::C2H_DATA => Pdu::Data(Data::read_from_bytes(header).unwrap(), data),
            PduType::R2T => Pdu::Ready(Data::read_from_bytes(header).unwrap()),
            PduType::C2H_TERM => Pdu::Terminate(Terminate::read_from_bytes(header).unwrap(), data),
            kind => panic!("{kind:?} was not to come"),
        })
    }

    pub(crate) fn response(&mut self) -> CompletionEntry {
        match self.receive() {
            Pdu::Response(entry) => entry,
            other => panic!("a response was to come: {other:?}"),
        }
    }

    /// The target reports a violation and hangs up: the status, the information, and the header that it quotes.
    pub(crate) fn is_terminated(&mut self) -> (u16, u32, Vec<u8>) {
        loop {
            match self.receive() {
                Pdu::Terminate(terminate, quoted) => {
                    self.stream.shutdown(Shutdown::Write).unwrap();
                    assert!(self.try_receive().is_none(), "nothing comes after it");
                    return (terminate.status.get(), terminate.information.get(), quoted);
                }
                Pdu::Response(_) | Pdu::Data(..) | Pdu::Ready(_) => {}
            }
        }
    }

    /// Executes a command without data.
    pub(crate) fn execute(&mut self, mut entry: SubmissionEntry) -> CompletionEntry {
        entry.cid = self.next_cid().into();
        entry.flags |= 0x40;
        self.send_capsule(entry, &[]);
        let response = self.response();
        assert_eq!(response.cid, entry.cid);
        response
    }

    pub(crate) fn get(&mut self, offset: u32, size: u8) -> (Status, u64) {
        let entry = self.execute(Property::get(offset, size).into());
        (entry.status(), u64::from(entry.dw0.get()) | u64::from(entry.dw1.get()) << 32)
    }

    pub(crate) fn set(&mut self, offset: u32, value: u32) -> (Status, u32) {
        let entry = self.execute(Property::set(offset, value).into());
        (entry.status(), entry.dw0.get())
    }

    /// Executes a command that returns data.
    pub(crate) fn read_command(&mut self, entry: SubmissionEntry, len: u32) -> (Status, Vec<u8>) {
        let mut entry = entry.with_sgl(SglDescriptor::transport(len));
        entry.cid = self.next_cid().into();
        self.send_capsule(entry, &[]);
        let mut data = Vec::new();
        loop {
            match self.receive() {
                Pdu::Data(header, bytes) => {
                    assert_eq!((header.cid, header.offset.get() as usize), (entry.cid, data.len()));
                    data.extend(bytes);
                    if header.common.flags & SUCCESS != 0 {
                        return (Status::SUCCESS, data);
                    }
                }
                Pdu::Response(response) => {
                    assert_eq!(response.cid, entry.cid);
                    return (response.status(), data);
                }
                other => panic!("{other:?} was not to come"),
            }
        }
    }

    pub(crate) fn read(&mut self, slba: u64, blocks: u32) -> (Status, Vec<u8>) {
        self.read_command(SubmissionEntry::blocks(IoOpcode::READ, 1, slba, blocks), blocks * 512)
    }

    /// Writes with the data in the capsule.
    pub(crate) fn write_in_capsule(&mut self, slba: u64, data: &[u8]) -> Status {
        self.capsule_command(SubmissionEntry::blocks(IoOpcode::WRITE, 1, slba, data.len() as u32 / 512), data)
    }

    /// Executes a command with its data in the capsule.
    pub(crate) fn capsule_command(&mut self, entry: SubmissionEntry, data: &[u8]) -> Status {
        let mut entry = entry.with_sgl(SglDescriptor::in_capsule(data.len() as u32));
        entry.cid = self.next_cid().into();
        self.send_capsule(entry, data);
        let response = self.response();
        assert_eq!(response.cid, entry.cid);
        response.status()
    }

    /// Begins a write whose data the target is to request; returns its identifier.
    pub(crate) fn begin_write(&mut self, slba: u64, len: u32) -> u16 {
        self.begin_transfer(SubmissionEntry::blocks(IoOpcode::WRITE, 1, slba, len / 512), len)
    }

    /// Begins a command whose data the target is to request; returns its identifier.
    pub(crate) fn begin_transfer(&mut self, entry: SubmissionEntry, len: u32) -> u16 {
        let mut entry = entry.with_sgl(SglDescriptor::transport(len));
        entry.cid = self.next_cid().into();
        self.send_capsule(entry, &[]);
        entry.cid.get()
    }

    /// Executes a command whose data the target requests.
    pub(crate) fn transfer_command(&mut self, entry: SubmissionEntry, data: &[u8]) -> Status {
        let cid = self.begin_transfer(entry, data.len() as u32);
        self.transfer(cid, data, data.len())
    }

    /// Writes with data that the target requests, in PDUs of at most `at_a_time` bytes.
    pub(crate) fn write(&mut self, slba: u64, data: &[u8], at_a_time: usize) -> Status {
        let cid = self.begin_write(slba, data.len() as u32);
        self.transfer(cid, data, at_a_time)
    }

    fn transfer(&mut self, cid: u16, data: &[u8], at_a_time: usize) -> Status {
        loop {
            match self.receive() {
                Pdu::Ready(ready) => self.answer(&ready, data, at_a_time),
                Pdu::Response(response) => {
                    assert_eq!(response.cid.get(), cid);
                    return response.status();
                }
                other => panic!("{other:?} was not to come"),
            }
        }
    }

    /// Sends the requested data.
    pub(crate) fn answer(&mut self, ready: &Data, data: &[u8], at_a_time: usize) {
        let (start, len) = (ready.offset.get() as usize, ready.len.get() as usize);
        let mut done = 0;
        while done < len {
            let now = at_a_time.min(len - done);
            self.send_data(ready, (start + done) as u32, &data[start + done..][..now], done + now == len);
            done += now;
        }
    }

    /// Without flow control of the submission queue.
    pub(crate) fn without_flow_control(connect: &mut Connect, _: &mut ConnectData) {
        connect.attributes = DISABLE_SQ_FLOW;
    }

    /// Reads the capabilities, which every controller has.
    pub(crate) fn is_alive(&mut self) {
        assert_eq!(self.get(register::CAP, SIZE_8).0, Status::SUCCESS);
    }
}
