//! A connection that never blocks, with buffers of unsent and received bytes. Both buffers keep their memory.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

/// A socket of either kind.
pub(crate) enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

/// Connects to a unix socket within a time: a server that does not accept and whose queue is full would block it for
/// ever.
pub(crate) fn connect_unix(path: &Path, patience: Duration) -> io::Result<UnixStream> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    set_socket_timeout(&socket, Timeout::Send, Some(patience))?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(UnixStream::from(socket))
}

/// Connects to the first address of `HOST:PORT` that answers within a time.
pub(crate) fn connect_tcp(address: &str, patience: Duration) -> io::Result<TcpStream> {
    let mut failure = io::Error::new(ErrorKind::NotFound, "the host has no address");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, patience) {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// The time limit for a whole answer: a peer that sends a byte now and then does not prolong it.
pub(crate) struct Limit {
    begun: Instant,
    patience: Duration,
}

impl Limit {
    /// It begins now.
    #[expect(clippy::disallowed_methods, reason = "the other end of a socket is in real time")]
    pub(crate) fn new(patience: Duration) -> Limit {
        Limit { begun: Instant::now(), patience }
    }

    /// Limits the next read of a socket to the remaining time.
    ///
    /// # Errors
    /// When no time remains.
    #[expect(clippy::disallowed_methods, reason = "the other end of a socket is in real time")]
    pub(crate) fn set(&self, socket: impl AsFd) -> io::Result<()> {
        let left = self.patience.checked_sub(self.begun.elapsed()).filter(|left| !left.is_zero());
        let left = left.ok_or(ErrorKind::TimedOut)?;
        // The system counts in microseconds, and takes zero for no limit.
        Ok(set_socket_timeout(socket, Timeout::Recv, Some(left.max(Duration::from_millis(1))))?)
    }
}

/// A socket with one time limit for all reads.
pub(crate) struct Limited<'a, S> {
    pub(crate) socket: S,
    pub(crate) limit: &'a Limit,
}

impl<S: Read + AsFd> Read for Limited<'_, S> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.limit.set(&self.socket)?;
        self.socket.read(into)
    }
}

impl<S: Write> Write for Limited<'_, S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

/// A failure of a socket with a time limit, in words: the system calls a limit that has passed a lack of resources.
pub(crate) fn in_words(error: io::Error, patience: Duration) -> io::Error {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            io::Error::new(ErrorKind::TimedOut, format!("no answer within {} s", patience.as_secs_f64()))
        }
        _ => error,
    }
}

impl Socket {
    /// Sets limits for blocking reads and writes; `None` makes them never block.
    pub(crate) fn patience(&self, patience: Option<Duration>) -> io::Result<()> {
        match self {
            Socket::Unix(stream) => {
                stream.set_nonblocking(patience.is_none())?;
                stream.set_read_timeout(patience)?;
                stream.set_write_timeout(patience)
            }
            Socket::Tcp(stream) => {
                stream.set_nodelay(true)?;
                stream.set_nonblocking(patience.is_none())?;
                stream.set_read_timeout(patience)?;
                stream.set_write_timeout(patience)
            }
        }
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        match self {
            Socket::Unix(stream) => stream.as_fd(),
            Socket::Tcp(stream) => stream.as_fd(),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor()
    }
}

impl Read for Socket {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Unix(stream) => stream.read(into),
            Socket::Tcp(stream) => stream.read(into),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Unix(stream) => stream.write(bytes),
            Socket::Tcp(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Bytes received at a time.
const RECEIVE: usize = 256 << 10;

/// See the module.
pub(crate) struct Outgoing {
    bytes: Vec<u8>,
    sent: usize,
}

impl Outgoing {
    pub(crate) fn new() -> Outgoing {
        Outgoing { bytes: Vec::new(), sent: 0 }
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Room for `len` more bytes, to be filled at once.
    pub(crate) fn room(&mut self, len: usize) -> &mut [u8] {
        let start = self.bytes.len();
        self.bytes.resize(start + len, 0);
        &mut self.bytes[start..]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Sends as much as the socket takes; returns whether it took anything.
    pub(crate) fn send(&mut self, to: &mut impl Write) -> io::Result<bool> {
        let before = self.sent;
        while self.sent < self.bytes.len() {
            match to.write(&self.bytes[self.sent..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(sent) => self.sent += sent,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(self.sent > before),
                Err(error) => return Err(error),
            }
        }
        let any = self.sent > before;
        self.bytes.clear();
        self.sent = 0;
        Ok(any)
    }
}

/// Received bytes that are not used yet.
pub(crate) struct Incoming {
    bytes: Box<[u8]>,
    used: usize,
    filled: usize,
}

impl Incoming {
    pub(crate) fn new() -> Incoming {
        Incoming { bytes: vec![0; RECEIVE].into(), used: 0, filled: 0 }
    }

    /// Receives available bytes; returns whether there were any. The buffer must have room, so use its contents
    /// first.
    pub(crate) fn receive(&mut self, from: &mut impl Read) -> io::Result<bool> {
        if self.used > 0 {
            self.bytes.copy_within(self.used..self.filled, 0);
            self.filled -= self.used;
            self.used = 0;
        }
        loop {
            match from.read(&mut self.bytes[self.filled..]) {
                Ok(0) => return Err(io::Error::new(ErrorKind::UnexpectedEof, "the other end has closed it")),
                Ok(received) => {
                    self.filled += received;
                    return Ok(true);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
    }

    /// The next `N` bytes, if all were received.
    pub(crate) fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let bytes = self.rest().get(..N)?.try_into().ok()?;
        self.used += N;
        Some(bytes)
    }

    /// The received bytes.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.bytes[self.used..self.filled]
    }

    /// Removes the first `len` of them.
    pub(crate) fn consume(&mut self, len: usize) {
        self.used += len;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes a few bytes at a time, and is full after each.
    struct Narrow(Vec<u8>, bool);

    impl Write for Narrow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.1 = !self.1;
            if !self.1 {
                return Err(ErrorKind::WouldBlock.into());
            }
            let part = bytes.len().min(3);
            self.0.extend_from_slice(&bytes[..part]);
            Ok(part)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_the_socket_does_not_take_waits() {
        let (mut out, mut socket) = (Outgoing::new(), Narrow(Vec::new(), false));
        out.put(b"1234");
        out.room(3).copy_from_slice(b"567");
        assert!(out.send(&mut socket).unwrap());
        assert!(!out.is_empty() && socket.0 == b"123");
        out.put(b"8");
        while !out.is_empty() {
            out.send(&mut socket).unwrap();
        }
        assert_eq!(socket.0, b"12345678");
    }

    /// The other end sends a byte each time that one was read, for ever.
    #[test]
    fn an_answer_that_drips_does_not_prolong_its_time() {
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        let limit = Limit::new(Duration::from_millis(20));
        let mut limited = Limited { socket: &mut ours, limit: &limit };
        let failure = std::iter::repeat_with(|| {
            theirs.write_all(&[1]).unwrap();
            limited.read_exact(&mut [0])
        });
        let failure = failure.filter_map(Result::err).next().unwrap();
        assert_eq!(in_words(failure, limit.patience).to_string(), "no answer within 0.02 s");
    }

    #[test]
    fn what_was_received_is_used_in_parts() {
        let mut incoming = Incoming::new();
        let mut source: &[u8] = b"abcdefgh";
        assert!(incoming.receive(&mut source).unwrap());
        assert_eq!(incoming.take::<3>(), Some(*b"abc"));
        incoming.consume(1);
        assert_eq!((incoming.take::<5>(), incoming.rest()), (None, &b"efgh"[..]));
        assert_eq!(incoming.receive(&mut source).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    }
}
