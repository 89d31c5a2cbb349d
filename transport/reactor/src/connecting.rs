//! Connecting without waiting, for loops that serve other sockets meanwhile.
//!
//! TCP connections are made by the system in the background. A unix socket is connected at once or not at all: while the server's backlog
//! is full, the caller tries again.
//!
//! Left out: resolving names without waiting, which the system's resolver cannot do. Callers resolve before they begin.

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::socket::{Address, Stream};

/// The target of a socket's connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// A unix socket.
    Unix(PathBuf),
    /// A TCP port.
    Tcp(SocketAddr),
}

/// How far a connection is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Progress {
    /// It is connected.
    Made,
    /// The system continues with it: the socket can be written once it is connected.
    UnderWay,
    /// The server's backlog is full, and [`Target::try_connect`] has to be called again.
    BacklogFull,
}

impl Address {
    /// Its targets: one, or as many as the name of its host has addresses. This may wait for the system's resolver.
    ///
    /// # Errors
    /// When the host is not known.
    pub fn targets(&self) -> io::Result<Vec<Target>> {
        Ok(match self {
            Address::Unix(path) => vec![Target::Unix(path.clone())],
            Address::Tcp(address) => address.to_socket_addrs()?.map(Target::Tcp).collect(),
        })
    }
}

impl Target {
    /// A socket of its kind that never blocks and is not connected.
    ///
    /// # Errors
    /// When the system has no more descriptors.
    pub fn socket(&self) -> io::Result<Stream> {
        let family = match self {
            Target::Unix(_) => AddressFamily::UNIX,
            Target::Tcp(SocketAddr::V4(_)) => AddressFamily::INET,
            Target::Tcp(SocketAddr::V6(_)) => AddressFamily::INET6,
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
        Ok(match self {
            Target::Unix(_) => Stream::Unix(UnixStream::from(socket)),
            Target::Tcp(_) => Stream::Tcp(TcpStream::from(socket)),
        })
    }

    /// Connects the socket, without waiting.
    ///
    /// # Errors
    /// When there is no server.
    pub fn try_connect(&self, stream: &Stream) -> io::Result<Progress> {
        let outcome = match self {
            Target::Unix(path) => rustix::net::connect(stream, &SocketAddrUnix::new(path.as_path())?),
            Target::Tcp(address) => rustix::net::connect(stream, address),
        };
        match outcome {
            Ok(()) => Ok(Progress::Made),
            Err(Errno::INPROGRESS | Errno::INTR) => Ok(Progress::UnderWay),
            Err(Errno::AGAIN) if matches!(self, Target::Unix(_)) => Ok(Progress::BacklogFull),
            Err(error) => Err(error.into()),
        }
    }
}

impl Stream {
    /// Whether the connection was made.
    pub fn is_connected(&self) -> bool {
        match self {
            Stream::Unix(stream) => stream.peer_addr().is_ok(),
            Stream::Tcp(stream) => stream.peer_addr().is_ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_full_backlog_is_told_and_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let socket =
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        rustix::net::bind(&socket, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        rustix::net::listen(&socket, 0).unwrap();
        let target = Address::Unix(path).targets().unwrap().remove(0);
        let streams: Vec<_> = (0..4).map(|_| target.socket().unwrap()).collect();
        let progress: Vec<_> = streams.iter().map(|stream| target.try_connect(stream).unwrap()).collect();
        assert_eq!((progress[0], progress[3]), (Progress::Made, Progress::BacklogFull), "{progress:?}");
        assert!(streams[0].is_connected() && !streams[3].is_connected());
    }

    #[test]
    fn a_port_without_a_server_is_an_error_or_a_connection_that_is_never_made() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::Tcp(listener.local_addr().unwrap().to_string());
        let target = address.targets().unwrap().remove(0);
        let stream = target.socket().unwrap();
        assert!(matches!(target.try_connect(&stream), Ok(Progress::Made | Progress::UnderWay)));
        listener.accept().unwrap();
        assert!(stream.is_connected());
        drop(listener);
        let stream = target.socket().unwrap();
        assert!(target.try_connect(&stream).is_err() || !stream.is_connected());
    }
}
