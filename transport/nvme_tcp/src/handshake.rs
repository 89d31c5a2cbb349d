//! A connection until its queue exists: initialisation (NVMe/TCP 3.4), then Connect (Base 6.3). It is read on a side
//! thread, with a time limit, and holds a few KiB.

use std::io::{self, Read, Write};

use nandscape_transport_reactor::ConnectRefusal;
use nandscape_wire_nvme::fabrics::{CONNECT, Connect, ConnectData, FABRICS, INCOMPATIBLE_FORMAT, offset};
use nandscape_wire_nvme::opcode::Transfer;
use nandscape_wire_nvme::tcp::{
    CapsuleCommand, CapsuleResponse, Common, DIGEST, Data, Digests, Fatal, FatalStatus, Initialize, MAX_ALIGNMENT_Z,
    PduType, Receiver, Shape, Terminate,
};
use nandscape_wire_nvme::{CompletionEntry, Status, SubmissionEntry};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use crate::capsule::{IN_CAPSULE, Move, data_of};
use crate::commands::TRANSFER;
use crate::data::crc;

/// The negotiated parameters, and the parameters of Connect.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    pub(crate) digests: Digests,
    /// The host's alignment of data in bytes.
    pub(crate) align: usize,
    /// R2Ts of one command at a time that the host takes.
    pub(crate) transfers_each: u32,
    /// Queue Identifier, and entries of the queue.
    pub(crate) queue: u16,
    pub(crate) entries: u16,
    pub(crate) without_flow_control: bool,
    /// Keep Alive Timeout; 0 is none.
    pub(crate) keep_alive_ms: u32,
    pub(crate) connect_cid: u16,
    /// Controller ID.
    pub(crate) controller: u16,
}

/// A peer that speaks NVMe/TCP, read and written with a time limit.
pub(crate) struct Peer<S> {
    stream: S,
    pub(crate) digests: Digests,
    pub(crate) align: usize,
    pub(crate) transfers_each: u32,
}

impl<S> Peer<S> {
    /// The same peer, read and written by other means.
    pub(crate) fn over<T>(self, stream: T) -> (Peer<T>, S) {
        let Peer { stream: before, digests, align, transfers_each } = self;
        (Peer { stream, digests, align, transfers_each }, before)
    }
}

/// The limits of the host's transfers: 32 R2Ts of a command at a time are enough for any link.
const MOST_TRANSFERS: u32 = 32;
/// Byte offsets of fields of ICReq.
const VERSION: u32 = 8;
const ALIGNMENT: u32 = 10;

/// A command of a capsule, and its in-capsule data.
pub(crate) struct Capsule {
    pub(crate) entry: SubmissionEntry,
    pub(crate) data: Vec<u8>,
    /// The digest of the data was right.
    pub(crate) intact: bool,
}

impl<S: Read + Write> Peer<S> {
    /// Takes ICReq and answers it.
    ///
    /// # Errors
    /// When the peer sends something else; the peer is notified of the fault.
    pub(crate) fn initialize(stream: S) -> io::Result<Peer<S>> {
        let mut peer = Peer { stream, digests: Digests::default(), align: 4, transfers_each: 1 };
        let (header, shape) = peer.header()?;
        if shape.kind != PduType::IC_REQ {
            return Err(peer.terminate(Fatal::of(FatalStatus::SEQUENCE), &header));
        }
        let request = Initialize::read_from_bytes(&header).expect("the shape has its length");
        if request.version.get() != 0 {
            let fatal = Fatal { status: FatalStatus::UNSUPPORTED, information: VERSION };
            return Err(peer.terminate(fatal, &header));
        }
        if request.alignment_z > MAX_ALIGNMENT_Z {
            return Err(peer.terminate(Fatal::field(ALIGNMENT), &header));
        }
        let digests = request.wants();
        let mut response = Initialize::new(PduType::IC_RESP, TRANSFER);
        response.digests = digests.bits();
        peer.stream.write_all(response.as_bytes())?;
        peer.digests = digests;
        peer.align = (usize::from(request.alignment_z) + 1) * 4;
        peer.transfers_each = request.limit.get().saturating_add(1).min(MOST_TRANSFERS);
        Ok(peer)
    }

    /// Reads a PDU's header, checks it and its digest, and skips the padding after it.
    fn header(&mut self) -> io::Result<(Vec<u8>, Shape)> {
        let mut common = Common::default();
        self.stream.read_exact(common.as_mut_bytes())?;
        let shape = Shape::of(&common, Receiver::Controller, self.digests, IN_CAPSULE)
            .map_err(|fatal| self.terminate(fatal, common.as_bytes()))?;
        let mut lead = vec![0; shape.lead()];
        let (begin, rest) = lead.split_at_mut(size_of::<Common>());
        begin.copy_from_slice(common.as_bytes());
        self.stream.read_exact(rest)?;
        if shape.header_digest {
            let came = u32::from_le_bytes(std::array::from_fn(|at| lead[shape.header + at]));
            if came != crc(&lead[..shape.header]) {
                let fatal = Fatal { status: FatalStatus::HEADER_DIGEST, information: came };
                return Err(self.terminate(fatal, &lead[..shape.header]));
            }
        }
        lead.truncate(shape.header);
        Ok((lead, shape))
    }

    /// Reads the data of a PDU; whether its digest was right.
    fn data(&mut self, shape: &Shape) -> io::Result<(Vec<u8>, bool)> {
        let mut data = vec![0; shape.data];
        self.stream.read_exact(&mut data)?;
        let mut intact = true;
        if shape.data_digest {
            let mut digest = [0; DIGEST];
            self.stream.read_exact(&mut digest)?;
            intact = u32::from_le_bytes(digest) == crc(&data);
        }
        Ok((data, intact))
    }

    /// Reads a command.
    ///
    /// # Errors
    /// When the peer sends something else.
    pub(crate) fn capsule(&mut self) -> io::Result<Capsule> {
        let (header, shape) = self.header()?;
        if shape.kind == PduType::H2C_TERM {
            let request = Terminate::read_from_bytes(&header).expect("the shape has its length");
            let fatal = Fatal { status: FatalStatus(request.status.get()), information: request.information.get() };
            return Err(bad(format!("the host has terminated the connection: {fatal}")));
        }
        if shape.kind != PduType::CAPSULE_CMD {
            return Err(self.terminate(Fatal::of(FatalStatus::SEQUENCE), &header));
        }
        let capsule = CapsuleCommand::read_from_bytes(&header).expect("the shape has its length");
        let (data, intact) = self.data(&shape)?;
        Ok(Capsule { entry: capsule.entry, data, intact })
    }

    /// The data of a command that brings `len` bytes: it is in the capsule, or is requested.
    ///
    /// # Errors
    /// The inner one is the status with which the command fails.
    pub(crate) fn data_of(&mut self, capsule: &Capsule, len: usize) -> io::Result<Result<Vec<u8>, Status>> {
        if !capsule.intact {
            return Ok(Err(Status::TRANSIENT_TRANSPORT_ERROR));
        }
        let came = capsule.data.len() as u32;
        match data_of(&capsule.entry, Transfer::ToController, came, IN_CAPSULE) {
            Err(status) => Ok(Err(status)),
            Ok(Move::InCapsule { start, len: there }) if there as usize == len => {
                Ok(Ok(capsule.data[start as usize..][..len].to_vec()))
            }
            Ok(Move::FromHost(there)) if there as usize == len => self.ask(capsule.entry.cid.get(), len),
            Ok(_) => Ok(Err(Status::DATA_SGL_LENGTH_INVALID.final_())),
        }
    }

    /// Asks the host for data.
    fn ask(&mut self, cid: u16, len: usize) -> io::Result<Result<Vec<u8>, Status>> {
        let common = self.digests.common(PduType::R2T, 0, size_of::<Data>(), 0, 4);
        let (cid, whole) = (cid.into(), (len as u32).into());
        let ready = Data { common, cid, tag: 0.into(), offset: 0.into(), len: whole, reserved_20: [0; 4] };
        self.send(ready.as_bytes())?;
        let (mut data, mut intact) = (Vec::new(), true);
        while data.len() < len {
            let (header, shape) = self.header()?;
            if shape.kind != PduType::H2C_DATA {
                return Err(self.terminate(Fatal::of(FatalStatus::SEQUENCE), &header));
            }
            let part = Data::read_from_bytes(&header).expect("the shape has its length");
            let fits = part.offset.get() as usize == data.len() && data.len() + shape.data <= len;
            if !fits || (part.cid, part.tag.get(), part.len.get() as usize) != (cid, 0, shape.data) {
                return Err(self.terminate(Fatal::of(FatalStatus::OUT_OF_RANGE), &header));
            }
            let (more, right) = self.data(&shape)?;
            data.extend(more);
            intact &= right;
        }
        Ok(if intact { Ok(data) } else { Err(Status::TRANSIENT_TRANSPORT_ERROR) })
    }

    /// Sends a PDU that is all header.
    fn send(&mut self, header: &[u8]) -> io::Result<()> {
        let digest = crc(header).to_le_bytes();
        let digest = if self.digests.header { &digest[..] } else { &[] };
        self.stream.write_all(&[header, digest].concat())
    }

    /// Answers a command.
    ///
    /// # Errors
    /// When the peer has disconnected.
    pub(crate) fn respond(&mut self, cid: u16, status: Status, value: u64, head: u16) -> io::Result<()> {
        let (dw0, dw1) = ((value as u32).into(), ((value >> 32) as u32).into());
        let mut entry = CompletionEntry { dw0, dw1, sq_head: head.into(), cid: cid.into(), ..Default::default() };
        entry.set_status(status, false);
        let common = self.digests.common(PduType::CAPSULE_RESP, 0, size_of::<CapsuleResponse>(), 0, 4);
        self.send(CapsuleResponse { common, entry }.as_bytes())
    }

    /// Sends the data of a command.
    ///
    /// # Errors
    /// When the peer has disconnected.
    pub(crate) fn send_data(&mut self, cid: u16, bytes: &[u8]) -> io::Result<()> {
        let flags = nandscape_wire_nvme::tcp::LAST;
        let common = self.digests.common(PduType::C2H_DATA, flags, size_of::<Data>(), bytes.len(), self.align);
        let len = (bytes.len() as u32).into();
        let header = Data { common, cid: cid.into(), tag: 0.into(), offset: 0.into(), len, reserved_20: [0; 4] };
        let mut pdu = header.as_bytes().to_vec();
        if self.digests.header {
            pdu.extend(crc(header.as_bytes()).to_le_bytes());
        }
        pdu.resize(usize::from(common.data_offset), 0);
        pdu.extend(bytes);
        if self.digests.data {
            pdu.extend(crc(bytes).to_le_bytes());
        }
        self.stream.write_all(&pdu)
    }

    /// Notifies the peer of the fault of a header; returns the error that ends the handshake.
    fn terminate(&mut self, fatal: Fatal, header: &[u8]) -> io::Error {
        let terminate = Terminate::new(PduType::C2H_TERM, fatal, header.len());
        // The peer may have disconnected.
        let _ = self.stream.write_all(&[terminate.as_bytes(), header].concat());
        bad(fatal.to_string())
    }

    /// Reads Connect, the first command of every connection.
    ///
    /// # Errors
    /// The inner error is the status with which it fails; the peer has not been notified yet.
    pub(crate) fn connect(&mut self) -> io::Result<(Connect, Result<ConnectData, ConnectRefusal>)> {
        let capsule = self.capsule()?;
        let connect = Connect::from(capsule.entry);
        if (connect.opcode, connect.fctype) != (FABRICS, CONNECT) {
            return Ok((connect, Err(Status::COMMAND_SEQUENCE_ERROR.final_().into())));
        }
        if connect.record_format.get() != 0 {
            return Ok((connect, Err(INCOMPATIBLE_FORMAT.final_().into())));
        }
        let data = self.data_of(&capsule, size_of::<ConnectData>())?;
        let read = |bytes: Vec<u8>| {
            let mut data = ConnectData::new_zeroed();
            data.as_mut_bytes().copy_from_slice(&bytes);
            data
        };
        // Connect does not fail with Invalid Field in Command (Base 6.3), with which a data pointer that is no SGL ends.
        let refusal = |status: Status| match status.meaning() {
            Status::INVALID_FIELD => ConnectRefusal::of_command(offset::FLAGS),
            _ => status.into(),
        };
        Ok((connect, data.map(read).map_err(refusal)))
    }
}

fn bad(problem: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem.into())
}
