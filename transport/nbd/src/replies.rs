//! Replies as bytes on their way to a client.

use nandscape_drive::HostMem;
use nandscape_wire_nbd::{ChunkHeader, SIMPLE_REPLY_MAGIC, STRUCTURED_REPLY_MAGIC, SimpleReply, chunk};
use zerocopy::IntoBytes;

/// What waits to be sent.
#[derive(Default)]
pub(crate) struct Replies {
    bytes: Vec<u8>,
    sent: usize,
}

/// A buffer larger than this is given back once it is empty.
const KEPT: usize = 1 << 20;

impl Replies {
    /// Bytes that wait.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() - self.sent
    }

    /// What waits.
    pub(crate) fn waiting(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// The first `count` bytes of it were sent.
    pub(crate) fn advance(&mut self, count: usize) {
        self.sent += count;
        if self.sent == self.bytes.len() {
            self.sent = 0;
            self.bytes.clear();
            self.bytes.shrink_to(KEPT);
        } else if self.sent > self.bytes.len() / 2 {
            // Who takes some but never all must not make it grow for ever.
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
    }

    /// A request without data was done, or failed.
    pub(crate) fn simple(&mut self, cookie: u64, error: u32) {
        let reply = SimpleReply { magic: SIMPLE_REPLY_MAGIC.into(), error: error.into(), cookie: cookie.into() };
        self.bytes.extend_from_slice(reply.as_bytes());
    }

    /// A read was done.
    pub(crate) fn data(&mut self, cookie: u64, offset: u64, mem: &HostMem, structured: bool) {
        match structured {
            true => {
                self.chunk(cookie, chunk::OFFSET_DATA, mem.len() + 8);
                self.bytes.extend_from_slice(&offset.to_be_bytes());
            }
            false => self.simple(cookie, 0),
        }
        let start = self.bytes.len();
        if start + mem.len() > self.bytes.capacity() {
            // Twice as much, as it would take by itself, is more than the client may hold.
            self.bytes.reserve_exact(mem.len().next_multiple_of(KEPT));
        }
        self.bytes.resize(start + mem.len(), 0);
        mem.read(0, &mut self.bytes[start..]);
    }

    /// A read failed; `reason` is for people.
    pub(crate) fn failed_read(&mut self, cookie: u64, error: u32, reason: &str, structured: bool) {
        if !structured {
            return self.simple(cookie, error);
        }
        self.chunk(cookie, chunk::ERROR, 6 + reason.len());
        self.bytes.extend_from_slice(&error.to_be_bytes());
        self.bytes.extend_from_slice(&(reason.len() as u16).to_be_bytes());
        self.bytes.extend_from_slice(reason.as_bytes());
    }

    fn chunk(&mut self, cookie: u64, kind: u16, len: usize) {
        let header = ChunkHeader {
            magic: STRUCTURED_REPLY_MAGIC.into(),
            flags: chunk::DONE.into(),
            kind: kind.into(),
            cookie: cookie.into(),
            len: (len as u32).into(),
        };
        self.bytes.extend_from_slice(header.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_never_takes_everything_does_not_make_it_grow() {
        let mut replies = Replies::default();
        let megabyte = HostMem::zeroed(1 << 20);
        for cookie in 0..200 {
            replies.data(cookie, 0, &megabyte, true);
            replies.advance(replies.len() - 100);
            assert_eq!((replies.len(), replies.waiting().len()), (100, 100));
            assert!(replies.bytes.capacity() <= 4 << 20, "{} bytes after {cookie} replies", replies.bytes.capacity());
        }
        replies.advance(100);
        assert!(replies.waiting().is_empty() && replies.bytes.capacity() <= KEPT);
    }
}
