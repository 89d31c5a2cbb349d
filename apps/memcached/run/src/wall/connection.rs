//! A connection to a server, with a command at a time. Whatever the server does, each call ends within about twice its patience.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use nandscape_sim::{Span, Time};
use nandscape_transport_reactor::WallClock;
use nandscape_transport_reactor::connecting::Target;
use nandscape_transport_reactor::socket::{Address, Stream};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout, set_tcp_nodelay};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use super::WallError;
use super::statistics::Statistics;
use crate::text::{self, Answer};

/// Bytes that are received at a time.
const RECEIVED: usize = 64 << 10;
/// Bytes of a failure's words that are kept.
const WORDS: usize = 200;

/// What a server answers to a client's command.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Reply {
    /// A get has found the item, or a change was made.
    Done,
    /// A get has found no item.
    Missing,
    /// A change was not made, because the key has an item, or has none.
    NotDone,
    /// The server reports a failure in these words.
    Failed(String),
}

/// See the file.
pub(super) struct Connection {
    stream: Arc<Stream>,
    server: String,
    patience: Span,
    clock: WallClock,
    received: Vec<u8>,
    chunk: Box<[u8]>,
}

impl Connection {
    /// Connects.
    pub(super) fn open(server: &Address, patience: Span, clock: WallClock) -> Result<Connection, WallError> {
        let name = server.to_string();
        let failed = |error: &io::Error| WallError::NoServer { server: name.clone(), problem: problem(error) };
        let limit = Duration::from_nanos(patience.ns()).max(Duration::from_micros(1));
        let targets = server.targets().map_err(|error| failed(&error))?;
        let mut outcome =
            Err(WallError::NoServer { server: name.clone(), problem: "the name has no address".to_owned() });
        for target in &targets {
            outcome = connect(target, limit).map_err(|error| match error {
                Errno::AGAIN | Errno::INPROGRESS => WallError::Silent { server: name.clone(), patience },
                error => failed(&error.into()),
            });
            if outcome.is_ok() {
                break;
            }
        }
        let stream = Arc::new(outcome?);
        let chunk = vec![0; RECEIVED].into_boxed_slice();
        Ok(Connection { stream, server: name, patience, clock, received: Vec::new(), chunk })
    }

    /// Its socket, which another thread may shut down.
    pub(super) fn stream(&self) -> Arc<Stream> {
        self.stream.clone()
    }

    /// Its clock.
    pub(super) fn clock(&self) -> WallClock {
        self.clock
    }

    /// The time.
    pub(super) fn now(&self) -> Time {
        self.clock.now()
    }

    /// Gets the item of a key; its value has `most` bytes at most, and is the right one. A value that is not right ends the run.
    pub(super) fn get(&mut self, key: &str, most: usize, is_right: impl Fn(&[u8]) -> bool) -> Result<Reply, WallError> {
        let is_found = |answer: &Answer<'_>| match answer {
            Answer::Found { key: found, value } => *found == key.as_bytes() && is_right(value),
            _ => false,
        };
        self.command((key, true), &text::get(key), most, is_found)
    }

    /// Changes the item of a key.
    pub(super) fn change(&mut self, key: &str, request: &[u8]) -> Result<Reply, WallError> {
        self.command((key, false), request, 0, |answer| *answer == Answer::Done)
    }

    /// Gives a command about a key, a get or a change, and waits for the answer.
    pub(super) fn command(
        &mut self,
        (key, is_get): (&str, bool),
        request: &[u8],
        most: usize,
        is_right: impl Fn(&Answer<'_>) -> bool,
    ) -> Result<Reply, WallError> {
        let judged = self.ask(request, |bytes| {
            let reply = |answer: Answer<'_>| match answer {
                Answer::Failed(words) => Ok(Some(Reply::Failed(words.chars().take(WORDS).collect()))),
                answer if is_right(&answer) => Ok(Some(Reply::Done)),
                Answer::Missing if is_get => Ok(Some(Reply::Missing)),
                Answer::NotDone if !is_get => Ok(Some(Reply::NotDone)),
                // `None` is another value.
                Answer::Found { .. } if is_get => Ok(None),
                _ => Err(format!("the answer to the command for {key} is that of another command")),
            };
            text::answer(bytes, most)?.map(reply).transpose()
        })?;
        judged.ok_or_else(|| WallError::Wrong { server: self.server.clone(), key: key.to_owned() })
    }

    /// What the server counts.
    pub(super) fn statistics(&mut self) -> Result<Statistics, WallError> {
        self.ask(b"stats\r\n", text::statistics).map(Statistics)
    }

    /// The server's settings.
    pub(super) fn settings(&mut self) -> Result<Statistics, WallError> {
        self.ask(b"stats settings\r\n", text::statistics).map(Statistics)
    }

    /// Checks that the server has sent no more than the answers.
    pub(super) fn check_quiet(&self) -> Result<(), WallError> {
        match self.stream.has_input() {
            true => Err(self.garbled("more than the answers".to_owned())),
            false => Ok(()),
        }
    }

    /// Sends a request, and receives until `read` finds that the answer is whole.
    fn ask<T>(&mut self, request: &[u8], read: impl Fn(&[u8]) -> Result<Option<T>, String>) -> Result<T, WallError> {
        let begun = self.now();
        self.send(request, begun)?;
        self.received.clear();
        loop {
            let received = (&*self.stream).read(&mut self.chunk);
            let count = self.moved(received, begun)?;
            self.received.extend_from_slice(&self.chunk[..count]);
            if let Some(answer) = read(&self.received).map_err(|problem| self.garbled(problem))? {
                return Ok(answer);
            }
        }
    }

    fn send(&self, mut request: &[u8], begun: Time) -> Result<(), WallError> {
        while !request.is_empty() {
            let count = self.moved((&*self.stream).write(request), begun)?;
            request = &request[count..];
        }
        Ok(())
    }

    /// How many bytes have moved. Each call of the system ends within the patience; many that move little do not last longer together.
    fn moved(&self, moved: io::Result<usize>, begun: Time) -> Result<usize, WallError> {
        let silent = || WallError::Silent { server: self.server.clone(), patience: self.patience };
        let ended = |problem: String| WallError::Ended { server: self.server.clone(), problem };
        match moved {
            Ok(0) => Err(ended("the server has closed it".to_owned())),
            Ok(count) if self.now().since(begun) <= self.patience => Ok(count),
            Ok(_) => Err(silent()),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(0),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Err(silent()),
            Err(error) => Err(ended(problem(&error))),
        }
    }

    fn garbled(&self, problem: String) -> WallError {
        WallError::Garbled { server: self.server.clone(), problem }
    }
}

/// Connects. A server that takes no connection within the limit is `AGAIN` or `INPROGRESS`.
fn connect(target: &Target, limit: Duration) -> Result<Stream, Errno> {
    let family = match target {
        Target::Unix(_) => AddressFamily::UNIX,
        Target::Tcp(address) if address.is_ipv4() => AddressFamily::INET,
        Target::Tcp(_) => AddressFamily::INET6,
    };
    let socket = rustix::net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    set_socket_timeout(&socket, Timeout::Send, Some(limit))?;
    set_socket_timeout(&socket, Timeout::Recv, Some(limit))?;
    match target {
        Target::Unix(path) => {
            rustix::net::connect(&socket, &SocketAddrUnix::new(path.as_path())?)?;
            Ok(Stream::Unix(UnixStream::from(socket)))
        }
        Target::Tcp(address) => {
            rustix::net::connect(&socket, address)?;
            set_tcp_nodelay(&socket, true)?;
            Ok(Stream::Tcp(TcpStream::from(socket)))
        }
    }
}

/// The system's words, without the number of the error.
fn problem(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}
