//! Bytes from a host become PDUs: headers are checked, data is moved to its command, digests are compared.

use std::io::{self, Read};

use crc_fast::{CrcAlgorithm, Digest};
use nandscape_transport_reactor::client::{Gone, Intake};
use nandscape_wire_nvme::tcp::{
    CapsuleCommand, Common, DIGEST, Data as DataPdu, Fatal, FatalStatus, PduType, Receiver, Shape, Terminate,
};
use zerocopy::FromBytes;

use crate::capsule::IN_CAPSULE;
use crate::commands::TRANSFER;
use crate::data::crc;
use crate::session::Session;

/// Bytes read from a socket at a time, except data that is read straight into its buffer.
const READ_SIZE: usize = 64 << 10;
/// Data of at least this many bytes is read straight to its buffer.
const DIRECT: usize = 4 << 10;

/// Bytes received and not yet parsed.
pub(crate) struct Inbox {
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
}

/// The next part of the stream.
pub(crate) enum Phase {
    Header,
    Data(Incoming),
}

/// The data of a PDU while it arrives.
pub(crate) struct Incoming {
    /// The command of the data, and its place in the command's data; `None` discards it.
    pub(crate) to: Option<(u16, usize)>,
    /// Bytes to discard, to keep, and to discard.
    pub(crate) before: usize,
    pub(crate) body: usize,
    pub(crate) after: usize,
    /// A digest follows.
    pub(crate) digest: bool,
    /// The effect of its end.
    pub(crate) ends: Ends,
}

/// The effect of the end of data.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Ends {
    /// None: it was discarded.
    Nothing,
    /// All data of a command was in its capsule.
    Capsule,
    /// A PDU of a transfer has arrived: its bytes of data, and whether it is the last.
    Transfer { len: u32, last: bool },
    /// The host terminates the connection: why.
    Termination(Fatal),
}

/// Why a session ends.
pub(crate) enum Stop {
    /// The host has violated the protocol. It is notified, with the header in error.
    Fatal(Fatal, Vec<u8>),
    Gone(Gone),
}

impl From<Gone> for Stop {
    fn from(gone: Gone) -> Stop {
        Stop::Gone(gone)
    }
}

impl Inbox {
    pub(crate) fn new() -> Inbox {
        Inbox { bytes: vec![0; READ_SIZE].into(), start: 0, end: 0 }
    }

    fn received(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    pub(crate) fn clear(&mut self) {
        (self.start, self.end) = (0, 0);
    }

    /// Reads from the socket; returns how much, and whether there may be more.
    ///
    /// # Errors
    /// When it was closed.
    pub(crate) fn read(&mut self, stream: &mut impl Read) -> Result<(usize, bool), Gone> {
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let room = self.bytes.len() - self.end;
        let count = receive(stream, &mut self.bytes[self.end..])?;
        self.end += count;
        Ok((count, count == room))
    }
}

impl Incoming {
    fn left(&self) -> usize {
        self.before + self.body + self.after
    }
}

impl Session {
    /// Reads some bytes from the socket; returns how much, and whether there may be more.
    pub(crate) fn read(&mut self) -> Result<(usize, bool), Gone> {
        if self.inbox.is_empty()
            && let Phase::Data(incoming) = &mut self.phase
            && let Incoming { to: Some((number, at)), before: 0, body: DIRECT.., .. } = incoming
            && let Some(command) = self.work.commands.get_mut(*number)
            && let Some((loan, place)) = command.data.buffer(*at)
        {
            let mut bytes = loan.bytes_mut();
            let room = incoming.body.min(bytes.len() - place);
            let buffer = &mut bytes[place..place + room];
            let count = receive(&mut self.stream, buffer)?;
            if incoming.digest {
                self.digest.update(&buffer[..count]);
            }
            *at += count;
            incoming.body -= count;
            return Ok((count, count == room));
        }
        self.inbox.read(&mut self.stream)
    }

    /// Parses one step of the received bytes; returns whether there was one.
    pub(crate) fn parse_step(&mut self, intake: &mut Intake<'_>) -> Result<bool, Stop> {
        match std::mem::replace(&mut self.phase, Phase::Header) {
            Phase::Header => self.take_header(intake),
            Phase::Data(incoming) => self.take_data(incoming, intake),
        }
    }

    fn take_header(&mut self, intake: &mut Intake<'_>) -> Result<bool, Stop> {
        let received = self.inbox.received();
        let Ok((common, _)) = Common::ref_from_prefix(received) else { return Ok(false) };
        let max_data = if PduType(common.kind) == PduType::H2C_DATA { TRANSFER } else { IN_CAPSULE };
        let quote = |fatal| Stop::Fatal(fatal, received[..received.len().min(usize::from(common.header))].to_vec());
        let shape = Shape::of(common, Receiver::Controller, self.terms.digests, max_data).map_err(quote)?;
        let lead = shape.lead();
        if received.len() < lead {
            return Ok(false);
        }
        let header = &received[..shape.header];
        if shape.header_digest {
            let came = u32::from_le_bytes(std::array::from_fn(|at| received[shape.header + at]));
            if came != crc(header) {
                return Err(quote(Fatal { status: FatalStatus::HEADER_DIGEST, information: came }));
            }
        }
        let quoted = |fatal| Stop::Fatal(fatal, header.to_vec());
        self.turn.pdus -= 1;
        match shape.kind {
            PduType::CAPSULE_CMD => {
                let capsule = CapsuleCommand::read_from_bytes(header).expect("the shape has its length");
                self.inbox.start += lead;
                self.phase = self.command(capsule.entry, &shape, intake)?;
            }
            PduType::H2C_DATA => {
                let data = DataPdu::read_from_bytes(header).expect("the shape has its length");
                let taken = self.work.transfers.take(&data, shape.data as u32).map_err(quoted)?;
                self.inbox.start += lead;
                self.phase = Phase::Data(data_of_transfer(&data, &shape, taken));
            }
            PduType::H2C_TERM => {
                let request = Terminate::read_from_bytes(header).expect("the shape has its length");
                let (status, information) = (FatalStatus(request.status.get()), request.information.get());
                self.inbox.start += lead;
                let ends = Ends::Termination(Fatal { status, information });
                self.phase = Phase::Data(discard(&shape, ends));
            }
            _ => return Err(quoted(Fatal::of(FatalStatus::SEQUENCE))),
        }
        Ok(true)
    }

    /// Moves received data to its destination; returns whether any was moved, or all has arrived.
    fn take_data(&mut self, mut incoming: Incoming, intake: &mut Intake<'_>) -> Result<bool, Stop> {
        if let Some((number, _)) = incoming.to
            && incoming.body > 0
            && !self.work.has_memory(number)
        {
            self.stalled = true;
            self.phase = Phase::Data(incoming);
            return Ok(false);
        }
        let before = incoming.left();
        let start = self.inbox.start;
        let received = &self.inbox.bytes[start..self.inbox.end];
        let now = received.len().min(incoming.left());
        let skipped = now.min(incoming.before);
        let kept = (now - skipped).min(incoming.body);
        if let Some((number, at)) = &mut incoming.to
            && let Some(command) = self.work.commands.get_mut(*number)
        {
            command.data.write(*at, &received[skipped..skipped + kept]);
            *at += kept;
        }
        if incoming.digest {
            self.digest.update(&received[..now]);
        }
        incoming.before -= skipped;
        incoming.body -= kept;
        incoming.after -= now - skipped - kept;
        self.inbox.start += now;
        let moved = now > 0 || before == 0;
        if incoming.left() > 0 {
            self.phase = Phase::Data(incoming);
            return Ok(moved);
        }
        let Some(right) = self.take_data_digest(&incoming) else {
            self.phase = Phase::Data(incoming);
            return Ok(now > 0);
        };
        self.data_has_come(&incoming, right, intake)?;
        Ok(true)
    }

    /// Whether the data's digest is right; `None` if it has not arrived.
    fn take_data_digest(&mut self, incoming: &Incoming) -> Option<bool> {
        if !incoming.digest {
            return Some(true);
        }
        let came = self.inbox.received().first_chunk::<DIGEST>()?;
        let right = u32::from_le_bytes(*came) == self.digest.finalize_reset() as u32;
        self.inbox.start += DIGEST;
        Some(right)
    }
}

/// The digest of data that arrives in pieces.
pub(crate) fn digest() -> Digest {
    Digest::new(CrcAlgorithm::Crc32Iscsi)
}

fn data_of_transfer(header: &DataPdu, shape: &Shape, (command, last): (u16, bool)) -> Incoming {
    Incoming {
        to: Some((command, header.offset.get() as usize)),
        before: 0,
        body: shape.data,
        after: 0,
        digest: shape.data_digest,
        ends: Ends::Transfer { len: shape.data as u32, last },
    }
}

/// Data that is not wanted.
pub(crate) fn discard(shape: &Shape, ends: Ends) -> Incoming {
    Incoming { to: None, before: shape.data, body: 0, after: 0, digest: shape.data_digest, ends }
}

/// Data of a capsule, of which the bytes from `start` on belong to a command.
pub(crate) fn data_of_capsule(shape: &Shape, command: u16, start: usize, len: usize) -> Incoming {
    Incoming {
        to: Some((command, 0)),
        before: start,
        body: len,
        after: shape.data - start - len,
        digest: shape.data_digest,
        ends: Ends::Capsule,
    }
}

/// Bytes read: 0 when there are none for now.
pub(crate) fn receive(stream: &mut impl Read, into: &mut [u8]) -> Result<usize, Gone> {
    match stream.read(into) {
        Ok(0) if !into.is_empty() => Err(Gone::because("hung up")),
        Ok(count) => Ok(count),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(0),
        Err(error) => Err(Gone::because(error.to_string())),
    }
}
