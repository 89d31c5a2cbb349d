//! Replies on their way to a client. Data is sent straight from the buffers that the drive filled.

use std::cell::Ref;
use std::collections::VecDeque;
use std::io::{self, IoSlice, Write};
use std::rc::Rc;

use nandscape_transport_reactor::Loan;
use nandscape_wire_nbd::{ChunkHeader, SIMPLE_REPLY_MAGIC, STRUCTURED_REPLY_MAGIC, SimpleReply, chunk};
use zerocopy::IntoBytes;

/// Replies to be sent.
#[derive(Default)]
pub(crate) struct Replies {
    pieces: VecDeque<Piece>,
    /// A reply is being streamed.
    streaming: bool,
    /// Replies that follow it.
    later: VecDeque<Piece>,
    /// Bytes of the first piece that were sent.
    sent: usize,
    /// Bytes of data in the pieces.
    data_bytes: usize,
}

/// A header, what follows it, or both.
struct Piece {
    head: [u8; HEAD],
    head_len: usize,
    body: Body,
}

/// A piece while it is sent.
type Borrowed<'a> = (&'a Piece, Option<Ref<'a, Vec<u8>>>);

enum Body {
    None,
    Data(Rc<Loan>),
    Text(String),
}

/// The longest header: that of a chunk of data with its offset.
const HEAD: usize = 28;
/// Pieces sent in one system call where few wait, and where many do.
const FEW: usize = 2;
const MANY: usize = 64;

impl Piece {
    fn new(body: Body) -> Piece {
        Piece { head: [0; HEAD], head_len: 0, body }
    }

    /// With more bytes at the end of its header.
    fn with(mut self, bytes: &[u8]) -> Piece {
        self.head[self.head_len..self.head_len + bytes.len()].copy_from_slice(bytes);
        self.head_len += bytes.len();
        self
    }

    fn len(&self) -> usize {
        let body = match &self.body {
            Body::None => 0,
            Body::Data(loan) => loan.bytes().len(),
            Body::Text(text) => text.len(),
        };
        self.head_len + body
    }

    fn data_bytes(&self) -> usize {
        if let Body::Data(loan) = &self.body { loan.bytes().len() } else { 0 }
    }
}

impl Replies {
    /// Pieces that wait.
    pub(crate) fn len(&self) -> usize {
        self.pieces.len() + self.later.len()
    }

    /// Whether everything was sent that can be sent.
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Bytes of data that wait.
    pub(crate) fn data_bytes(&self) -> usize {
        self.data_bytes
    }

    /// Drops them all.
    pub(crate) fn clear(&mut self) {
        self.pieces.clear();
        self.later.clear();
        (self.sent, self.data_bytes) = (0, 0);
    }

    fn push(&mut self, piece: Piece) {
        self.data_bytes += piece.data_bytes();
        if self.streaming { self.later.push_back(piece) } else { self.pieces.push_back(piece) }
    }

    /// Whether a reply has outstanding data.
    pub(crate) fn is_streaming(&self) -> bool {
        self.streaming
    }

    /// Begins a reply of one piece to a read whose data follows. Other replies wait until it ends.
    pub(crate) fn begin_stream(&mut self, cookie: u64, (offset, len): (u64, u32), structured: bool) {
        let head = match structured {
            true => {
                let head = chunk((cookie, true), chunk::OFFSET_DATA, len as usize + 8, Body::None);
                head.with(&offset.to_be_bytes())
            }
            false => simple(Body::None, cookie, 0),
        };
        self.push(head);
        self.streaming = true;
    }

    /// Data of the reply that is being streamed.
    pub(crate) fn stream(&mut self, data: Rc<Loan>) {
        let piece = Piece::new(Body::Data(data));
        self.data_bytes += piece.data_bytes();
        self.pieces.push_back(piece);
    }

    /// All data of the streamed reply is queued.
    pub(crate) fn end_stream(&mut self) {
        self.streaming = false;
        self.pieces.append(&mut self.later);
    }

    /// Sends some, about `most` bytes, in one system call; how many bytes that were.
    ///
    /// # Errors
    /// That of the system call.
    pub(crate) fn send(&mut self, stream: &mut impl Write, most: usize) -> io::Result<usize> {
        if self.pieces.len() <= FEW {
            self.send_at_once::<FEW>(stream, most)
        } else {
            self.send_at_once::<MANY>(stream, most)
        }
    }

    fn send_at_once<const AT_ONCE: usize>(&mut self, stream: &mut impl Write, most: usize) -> io::Result<usize> {
        let mut room = most;
        let mut next = |index: usize| {
            let piece = self.pieces.get(index).filter(|_| room > 0)?;
            room = room.saturating_sub(piece.len());
            let data = if let Body::Data(loan) = &piece.body { Some(loan.bytes()) } else { None };
            Some((piece, data))
        };
        let pieces: [Option<Borrowed<'_>>; AT_ONCE] = std::array::from_fn(&mut next);
        let mut slices = [[IoSlice::new(&[]); 2]; AT_ONCE];
        let mut skip = self.sent;
        for ((piece, data), slices) in pieces.iter().flatten().zip(&mut slices) {
            let body = match (&piece.body, data) {
                (Body::Text(text), _) => text.as_bytes(),
                (_, Some(data)) => data,
                (_, None) => &[],
            };
            let of_head = skip.min(piece.head_len);
            *slices = [IoSlice::new(&piece.head[of_head..piece.head_len]), IoSlice::new(&body[skip - of_head..])];
            skip = 0;
        }
        let count = pieces.iter().flatten().count();
        let sent = stream.write_vectored(slices[..count].as_flattened())?;
        drop(pieces);
        self.advance(sent);
        Ok(sent)
    }

    /// `count` more bytes were sent.
    fn advance(&mut self, count: usize) {
        self.sent += count;
        while let Some(first) = self.pieces.front()
            && self.sent >= first.len()
        {
            self.sent -= first.len();
            self.data_bytes -= first.data_bytes();
            self.pieces.pop_front();
        }
    }

    /// A request without data was done, or failed.
    pub(crate) fn simple(&mut self, cookie: u64, error: u32) {
        self.push(simple(Body::None, cookie, error));
    }

    /// A read was done, and is answered in one simple reply.
    pub(crate) fn simple_data(&mut self, cookie: u64, data: impl IntoIterator<Item = Rc<Loan>>) {
        let mut data = data.into_iter().map(Body::Data);
        self.push(simple(data.next().unwrap_or(Body::None), cookie, 0));
        data.map(Piece::new).for_each(|piece| self.push(piece));
    }

    /// `len` bytes of a structured reply in one chunk, the last one if `done`.
    pub(crate) fn chunk_of_data(
        &mut self,
        (cookie, done): (u64, bool),
        (offset, len): (u64, u32),
        data: impl IntoIterator<Item = Rc<Loan>>,
    ) {
        let mut data = data.into_iter().map(Body::Data);
        let first = chunk((cookie, done), chunk::OFFSET_DATA, len as usize + 8, data.next().unwrap_or(Body::None));
        self.push(first.with(&offset.to_be_bytes()));
        data.map(Piece::new).for_each(|piece| self.push(piece));
    }

    /// A read failed; `reason` is for people.
    pub(crate) fn failed_read(&mut self, cookie: u64, error: u32, reason: String, structured: bool) {
        if !structured {
            return self.simple(cookie, error);
        }
        let len = reason.len();
        let piece = chunk((cookie, true), chunk::ERROR, 6 + len, Body::Text(reason));
        self.push(piece.with(&error.to_be_bytes()).with(&(len as u16).to_be_bytes()));
    }
}

fn simple(body: Body, cookie: u64, error: u32) -> Piece {
    let reply = SimpleReply { magic: SIMPLE_REPLY_MAGIC.into(), error: error.into(), cookie: cookie.into() };
    Piece::new(body).with(reply.as_bytes())
}

fn chunk((cookie, done): (u64, bool), kind: u16, len: usize, body: Body) -> Piece {
    let header = ChunkHeader {
        magic: STRUCTURED_REPLY_MAGIC.into(),
        flags: if done { chunk::DONE } else { 0 }.into(),
        kind: kind.into(),
        cookie: cookie.into(),
        len: (len as u32).into(),
    };
    Piece::new(body).with(header.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes a limited number of bytes at a time.
    struct Slow(Vec<u8>, usize);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let now = bytes.len().min(self.1);
            self.0.extend_from_slice(&bytes[..now]);
            Ok(now)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn replies_are_the_same_bytes_however_they_are_taken() {
        let sent = |at_a_time: usize| {
            let mut replies = Replies::default();
            for cookie in 0..40 {
                replies.failed_read(cookie, 5, "it is broken".to_owned(), true);
                replies.simple(cookie, 0);
            }
            let mut slow = Slow(Vec::new(), at_a_time);
            while !replies.is_empty() {
                assert!(replies.send(&mut slow, 100).unwrap() > 0);
            }
            slow.0
        };
        let whole = sent(usize::MAX);
        assert_eq!(whole.len(), 40 * (20 + 6 + 12 + 16));
        assert!([1, 7, 33].iter().all(|at_a_time| sent(*at_a_time) == whole));
    }
}
