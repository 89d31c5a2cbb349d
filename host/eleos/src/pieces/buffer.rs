//! Pieces that are flushed together.

use std::collections::BTreeMap;

use nandscape_drive::{Drive, DriveInfo, HostMem, Issuer};
use nandscape_wire_nvme::SubmissionEntry;
use nandscape_wire_nvme::lss::{Head, PAGE};
use nandscape_wire_nvme::pieces::{Entry, head};
use nandscape_wire_nvme::vendor::LSS_FLUSH;
use zerocopy::IntoBytes;

use super::PieceLimits;
use crate::Error;

/// Bases and deltas of pages that are flushed together.
#[derive(Clone, Debug)]
pub struct PieceBuffer {
    nsid: u32,
    limits: PieceLimits,
    pages: BTreeMap<u64, Vec<Piece>>,
    pieces: usize,
    bytes: usize,
}

#[derive(Clone, Debug)]
struct Piece {
    is_delta: bool,
    bytes: Vec<u8>,
}

/// Why a piece cannot be part of a buffer.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PieceMisfit {
    /// The buffer is full: flush it first.
    #[error("the buffer has {pieces} pieces of {bytes} bytes, and no room for this one")]
    Full {
        /// Its pieces.
        pieces: usize,
        /// Their bytes.
        bytes: usize,
    },
    /// The page is beyond the namespace.
    #[error("page {lpid}: the namespace has {lpids} pages")]
    Beyond {
        /// The page.
        lpid: u64,
        /// Pages of the namespace.
        lpids: u64,
    },
    /// A piece without bytes, or a page with too many.
    #[error("page {lpid} would have {bytes} bytes in this buffer; 1 to {most} are valid")]
    Length {
        /// The page.
        lpid: u64,
        /// Its bytes.
        bytes: usize,
        /// The most bytes of a page.
        most: usize,
    },
    /// A delta of a page that the same buffer drops.
    #[error("page {lpid} is dropped by this buffer: a delta needs a base")]
    Dropped {
        /// The page.
        lpid: u64,
    },
    /// A page with too many pieces.
    #[error("page {lpid} has {most} pieces in this buffer, as many as a page may have")]
    Pieces {
        /// The page.
        lpid: u64,
        /// The most pieces of a page.
        most: usize,
    },
}

impl PieceBuffer {
    /// An empty buffer for a drive.
    pub fn new(drive: &DriveInfo, limits: &PieceLimits) -> PieceBuffer {
        PieceBuffer { nsid: drive.nsid, limits: *limits, pages: BTreeMap::new(), pieces: 0, bytes: 0 }
    }

    /// Gives a page a new base, of any length, in the place of all pieces that it has.
    ///
    /// # Errors
    /// Why it cannot be part of the buffer, which is as it was before.
    pub fn put(&mut self, lpid: u64, base: &[u8]) -> Result<(), PieceMisfit> {
        self.add(lpid, base, false)
    }

    /// Puts a delta before the pieces that a page has. A page that has none makes the drive refuse the buffer.
    ///
    /// # Errors
    /// As for [`PieceBuffer::put`].
    pub fn append(&mut self, lpid: u64, delta: &[u8]) -> Result<(), PieceMisfit> {
        self.add(lpid, delta, true)
    }

    /// Gives a page up: it has no pieces then.
    ///
    /// # Errors
    /// As for [`PieceBuffer::put`].
    pub fn drop_page(&mut self, lpid: u64) -> Result<(), PieceMisfit> {
        self.check_room(lpid, 0, false)?;
        self.insert(lpid, Piece { is_delta: false, bytes: Vec::new() });
        Ok(())
    }

    fn add(&mut self, lpid: u64, bytes: &[u8], is_delta: bool) -> Result<(), PieceMisfit> {
        let most = self.limits.page_bytes;
        let there = self.pages.get(&lpid).filter(|_| is_delta).map_or(&[][..], Vec::as_slice);
        let all = bytes.len() + there.iter().map(|piece| piece.bytes.len()).sum::<usize>();
        if bytes.is_empty() || all > most {
            return Err(PieceMisfit::Length { lpid, bytes: all, most });
        }
        if there.last().is_some_and(|piece| piece.bytes.is_empty()) {
            return Err(PieceMisfit::Dropped { lpid });
        }
        if there.len() == self.limits.pieces {
            return Err(PieceMisfit::Pieces { lpid, most: self.limits.pieces });
        }
        self.check_room(lpid, bytes.len(), is_delta)?;
        self.insert(lpid, Piece { is_delta, bytes: bytes.to_vec() });
        Ok(())
    }

    /// Whether another piece fits and the page is within the namespace.
    fn check_room(&self, lpid: u64, bytes: usize, is_delta: bool) -> Result<(), PieceMisfit> {
        if lpid >= self.limits.lpids {
            return Err(PieceMisfit::Beyond { lpid, lpids: self.limits.lpids });
        }
        let replaced = self.pages.get(&lpid).filter(|_| !is_delta).map_or(&[][..], Vec::as_slice);
        let pieces = self.pieces + 1 - replaced.len();
        let bytes = self.bytes + bytes - replaced.iter().map(|piece| piece.bytes.len()).sum::<usize>();
        match bytes <= self.limits.most_bytes(pieces) && self.limits.most_bytes(pieces) > 0 {
            true => Ok(()),
            false => Err(PieceMisfit::Full { pieces: self.pieces, bytes: self.bytes }),
        }
    }

    fn insert(&mut self, lpid: u64, piece: Piece) {
        let page = self.pages.entry(lpid).or_default();
        if !piece.is_delta {
            self.pieces -= page.len();
            self.bytes -= page.iter().map(|piece| piece.bytes.len()).sum::<usize>();
            page.clear();
        }
        self.pieces += 1;
        self.bytes += piece.bytes.len();
        page.push(piece);
    }

    /// Pieces in the buffer.
    pub fn len(&self) -> usize {
        self.pieces
    }

    /// Whether it has no pieces.
    pub fn is_empty(&self) -> bool {
        self.pieces == 0
    }

    /// Bytes of the pieces.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes that its flush moves.
    pub fn moved(&self) -> usize {
        (size_of::<Head>() + self.pieces * size_of::<Entry>() + self.bytes).next_multiple_of(PAGE)
    }

    /// Drops all pieces.
    pub fn clear(&mut self) {
        self.pages.clear();
        (self.pieces, self.bytes) = (0, 0);
    }

    /// The command that flushes it, and its data; `None` of an empty one.
    fn command(&self) -> Option<(SubmissionEntry, HostMem)> {
        let pieces = u32::try_from(self.pieces).ok().filter(|pieces| *pieces > 0)?;
        let mut data = Vec::with_capacity(self.moved());
        data.extend_from_slice(head(pieces).as_bytes());
        let mut offset = size_of::<Head>() + self.pieces * size_of::<Entry>();
        let all = || self.pages.iter().flat_map(|(lpid, pieces)| pieces.iter().map(move |piece| (*lpid, piece)));
        for (lpid, piece) in all() {
            let entry = Entry::of(lpid, offset as u32, piece.bytes.len() as u32, piece.is_delta);
            data.extend_from_slice(entry.as_bytes());
            offset += piece.bytes.len();
        }
        all().for_each(|(_, piece)| data.extend_from_slice(&piece.bytes));
        data.resize(self.moved(), 0);
        let mut entry = SubmissionEntry::io(LSS_FLUSH, self.nsid);
        entry.cdw10 = ((data.len() / PAGE) as u32 - 1).into();
        Some((entry, HostMem::from_bytes(&data)))
    }

    /// Flushes the buffer to its drive: its pieces are durable then, and the buffer is empty. An empty buffer needs
    /// no command.
    ///
    /// # Errors
    /// Why it was not flushed, or is not known to be. The buffer is unchanged. After a power cut it may be flushed
    /// again if it has no deltas; otherwise it may be stored already, which a read shows.
    pub async fn flush(&mut self, issuer: &Issuer, drive: &dyn Drive) -> Result<(), Error> {
        let Some((entry, mem)) = self.command() else { return Ok(()) };
        Error::of(issuer.execute(drive, entry, mem).await.status)?;
        self.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer() -> PieceBuffer {
        let limits = PieceLimits {
            lpids: 100,
            pieces: 3,
            page_bytes: 5_000,
            capacity: 1 << 20,
            pages: 0,
            expected: 4_096,
            buffer: 8_000,
            entry: 16,
            moved: 8_192,
        };
        PieceBuffer { nsid: 1, limits, pages: BTreeMap::new(), pieces: 0, bytes: 0 }
    }

    #[test]
    fn heads_come_first_and_then_the_pieces_without_gaps() {
        let mut buffer = buffer();
        assert!(buffer.command().is_none());
        buffer.put(9, b"old").unwrap();
        buffer.append(9, b"gone with it").unwrap();
        buffer.put(9, b"new").unwrap();
        buffer.append(9, b"delta").unwrap();
        buffer.drop_page(4).unwrap();
        assert_eq!((buffer.len(), buffer.bytes()), (3, 8));
        let (entry, mem) = buffer.command().unwrap();
        assert_eq!((entry.opcode, entry.cdw10.get()), (0x85, 0));
        let bytes = mem.to_vec();
        assert_eq!(&bytes[..16], b"LSSB\x02\0\0\0\x03\0\0\0\0\0\0\0");
        assert_eq!(&bytes[16..32], b"\x04\0\0\0\0\0\0\0\x40\0\0\0\0\0\0\0");
        assert_eq!(&bytes[48..72], b"\x09\0\0\0\0\0\0\0\x43\0\0\0\x05\0\0\x80newdelta");
    }

    #[test]
    fn what_does_not_fit_is_refused_and_leaves_the_buffer_as_it_was() {
        let mut buffer = buffer();
        let long = vec![1; 5_001];
        assert_eq!(buffer.put(1, &long), Err(PieceMisfit::Length { lpid: 1, bytes: 5_001, most: 5_000 }));
        assert_eq!(buffer.put(1, &[]), Err(PieceMisfit::Length { lpid: 1, bytes: 0, most: 5_000 }));
        assert_eq!(buffer.put(100, b"x"), Err(PieceMisfit::Beyond { lpid: 100, lpids: 100 }));
        buffer.put(1, &long[..4_000]).unwrap();
        assert_eq!(buffer.append(1, &long[..1_001]), Err(PieceMisfit::Length { lpid: 1, bytes: 5_001, most: 5_000 }));
        buffer.append(1, b"a").unwrap();
        buffer.append(1, b"b").unwrap();
        assert_eq!(buffer.append(1, b"c"), Err(PieceMisfit::Pieces { lpid: 1, most: 3 }));
        assert_eq!(buffer.put(2, &long[..4_000]), Err(PieceMisfit::Full { pieces: 3, bytes: 4_002 }));
        assert!(buffer.put(1, &long[..5_000]).is_ok(), "it takes the place of three pieces");
        buffer.drop_page(1).unwrap();
        assert_eq!(buffer.append(1, b"c"), Err(PieceMisfit::Dropped { lpid: 1 }));
        assert_eq!((buffer.len(), buffer.bytes()), (1, 0));
    }
}
