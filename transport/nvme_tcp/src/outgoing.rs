//! PDUs on their way to a host. Data is sent straight from the buffers that the drive filled.

use std::cell::Ref;
use std::collections::VecDeque;
use std::io::{self, IoSlice, Write};
use std::rc::Rc;

use nandscape_transport_reactor::Loan;
use nandscape_wire_nvme::CompletionEntry;
use nandscape_wire_nvme::tcp::{self, CapsuleResponse, Digests, PduType};
use zerocopy::IntoBytes;

use crate::data::{Buffers, crc};

/// PDUs to be sent.
pub(crate) struct Outgoing {
    digests: Digests,
    /// The host's alignment of data in bytes.
    align: usize,
    pieces: VecDeque<Piece>,
    /// Bytes of the first piece that were sent.
    sent: usize,
    /// Bytes of data in the pieces.
    data_bytes: usize,
}

/// A PDU, and perhaps the response capsule after it.
struct Piece {
    head: [u8; HEAD],
    head_len: u8,
    padding: u8,
    data: Option<Rc<Loan>>,
    tail: [u8; TAIL],
    tail_len: u8,
}

/// A piece while it is sent.
type Borrowed<'a> = (&'a Piece, Option<Ref<'a, Vec<u8>>>);

/// Header and digest; a termination quotes the longest header.
const HEAD: usize = 24 + tcp::DIGEST;
/// Data digest, response capsule and its header digest.
const TAIL: usize = 2 * tcp::DIGEST + 24;
/// Pieces sent in one system call where few wait, and where many do.
const FEW: usize = 2;
const MANY: usize = 16;
/// Bytes between header and data.
static ZEROS: [u8; 128] = [0; 128];

impl Piece {
    fn new() -> Piece {
        Piece { head: [0; HEAD], head_len: 0, padding: 0, data: None, tail: [0; TAIL], tail_len: 0 }
    }

    fn add_head(&mut self, bytes: &[u8]) {
        let at = usize::from(self.head_len);
        self.head[at..at + bytes.len()].copy_from_slice(bytes);
        self.head_len += bytes.len() as u8;
    }

    fn add_tail(&mut self, bytes: &[u8]) {
        let at = usize::from(self.tail_len);
        self.tail[at..at + bytes.len()].copy_from_slice(bytes);
        self.tail_len += bytes.len() as u8;
    }

    fn len(&self) -> usize {
        let data = self.data.as_ref().map_or(0, |loan| loan.bytes().len());
        usize::from(self.head_len) + usize::from(self.padding) + data + usize::from(self.tail_len)
    }
}

impl Outgoing {
    pub(crate) fn new(digests: Digests, align: usize) -> Outgoing {
        Outgoing { digests, align, pieces: VecDeque::new(), sent: 0, data_bytes: 0 }
    }

    /// PDUs that wait.
    pub(crate) fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Bytes of data that wait.
    pub(crate) fn data_bytes(&self) -> usize {
        self.data_bytes
    }

    /// Whether everything was sent.
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    fn capsule(&self, entry: CompletionEntry) -> CapsuleResponse {
        let common = self.digests.common(PduType::CAPSULE_RESP, 0, size_of::<CapsuleResponse>(), 0, 4);
        CapsuleResponse { common, entry }
    }

    /// A response capsule.
    pub(crate) fn response(&mut self, entry: CompletionEntry) {
        let capsule = self.capsule(entry);
        self.header(capsule.as_bytes());
    }

    /// A PDU that is all header, of 24 bytes.
    fn header(&mut self, bytes: &[u8]) {
        let mut piece = Piece::new();
        piece.add_head(bytes);
        if self.digests.header {
            piece.add_head(&crc(bytes).to_le_bytes());
        }
        self.pieces.push_back(piece);
    }

    /// Ready to Transfer.
    pub(crate) fn ready(&mut self, cid: u16, tag: u16, offset: u32, len: u32) {
        let common = self.digests.common(PduType::R2T, 0, size_of::<tcp::Data>(), 0, 4);
        self.header(data_header(common, cid, tag, offset, len).as_bytes());
    }

    /// A buffer of data at `offset` of a command's data, and the command's response after it unless `response` is `None`.
    /// `flags` are those of the data.
    pub(crate) fn data(
        &mut self,
        (cid, offset, flags): (u16, u32, u8),
        data: Rc<Loan>,
        response: Option<CompletionEntry>,
    ) {
        let (header, len) = (size_of::<tcp::Data>(), data.bytes().len());
        let common = self.digests.common(PduType::C2H_DATA, flags, header, len, self.align);
        let mut piece = Piece::new();
        piece.add_head(data_header(common, cid, 0, offset, len as u32).as_bytes());
        if self.digests.header {
            piece.add_head(&crc(&piece.head[..header]).to_le_bytes());
        }
        piece.padding = common.data_offset - piece.head_len;
        if self.digests.data {
            piece.add_tail(&crc(&data.bytes()).to_le_bytes());
        }
        if let Some(entry) = response {
            let capsule = self.capsule(entry);
            piece.add_tail(capsule.as_bytes());
            if self.digests.header {
                piece.add_tail(&crc(capsule.as_bytes()).to_le_bytes());
            }
        }
        piece.data = Some(data);
        self.data_bytes += len;
        self.pieces.push_back(piece);
    }

    /// A termination, which has no digest.
    pub(crate) fn terminate(&mut self, terminate: &tcp::Terminate, quoted: &[u8]) {
        let bytes = [terminate.as_bytes(), quoted].concat();
        for bytes in bytes.chunks(HEAD) {
            let mut piece = Piece::new();
            piece.add_head(bytes);
            self.pieces.push_back(piece);
        }
    }

    /// Sends about `most` bytes, with one system call; sent buffers return to `buffers`.
    pub(crate) fn send(&mut self, stream: &mut impl Write, most: usize, buffers: &mut Buffers) -> io::Result<usize> {
        if self.pieces.len() <= FEW {
            self.send_at_once::<FEW>(stream, most, buffers)
        } else {
            self.send_at_once::<MANY>(stream, most, buffers)
        }
    }

    fn send_at_once<const AT_ONCE: usize>(
        &mut self,
        stream: &mut impl Write,
        most: usize,
        buffers: &mut Buffers,
    ) -> io::Result<usize> {
        let mut room = most;
        let mut borrow = |index: usize| {
            let piece = self.pieces.get(index).filter(|_| room > 0)?;
            room = room.saturating_sub(piece.len());
            Some((piece, piece.data.as_ref().map(|loan| loan.bytes())))
        };
        let pieces: [Option<Borrowed<'_>>; AT_ONCE] = std::array::from_fn(&mut borrow);
        let mut slices = [[IoSlice::new(&[]); 4]; AT_ONCE];
        let mut skip = self.sent;
        for ((piece, data), slices) in pieces.iter().flatten().zip(&mut slices) {
            let parts = [
                &piece.head[..usize::from(piece.head_len)],
                &ZEROS[..usize::from(piece.padding)],
                data.as_ref().map_or(&[][..], |data| data),
                &piece.tail[..usize::from(piece.tail_len)],
            ];
            for (part, slice) in parts.iter().zip(slices) {
                let now = skip.min(part.len());
                skip -= now;
                *slice = IoSlice::new(&part[now..]);
            }
        }
        let count = pieces.iter().flatten().count();
        let sent = stream.write_vectored(slices[..count].as_flattened())?;
        drop(pieces);
        self.advance(sent, buffers);
        Ok(sent)
    }

    /// `count` more bytes were sent.
    fn advance(&mut self, count: usize, buffers: &mut Buffers) {
        self.sent += count;
        while let Some(first) = self.pieces.front() {
            let len = first.len();
            if self.sent < len {
                return;
            }
            self.sent -= len;
            if let Some(loan) = self.pieces.pop_front().and_then(|piece| piece.data) {
                self.data_bytes -= loan.bytes().len();
                buffers.put_back(loan);
            }
        }
    }
}

fn data_header(common: tcp::Common, cid: u16, tag: u16, offset: u32, len: u32) -> tcp::Data {
    let (offset, len) = (offset.into(), len.into());
    tcp::Data { common, cid: cid.into(), tag: tag.into(), offset, len, reserved_20: [0; 4] }
}
