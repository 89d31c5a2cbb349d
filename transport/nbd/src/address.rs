//! Where a server listens: `unix:PATH` or `HOST:PORT`.

use std::fmt;
use std::io;
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

/// A place to listen at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    /// A unix socket.
    Unix(PathBuf),
    /// A TCP port.
    Tcp(String),
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Address, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            return match path {
                "" => Err("unix: needs a path, as in unix:/run/nbd.sock".to_owned()),
                path => Ok(Address::Unix(PathBuf::from(path))),
            };
        }
        match text.rsplit_once(':') {
            Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => Ok(Address::Tcp(text.to_owned())),
            _ => Err(format!("{text:?} is not an address: give unix:PATH, or HOST:PORT as in 127.0.0.1:10809")),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
            Address::Tcp(address) => f.write_str(address),
        }
    }
}

/// A socket that listens.
pub(crate) enum Listening {
    Unix(UnixListener, PathBuf),
    Tcp(TcpListener),
}

/// A connected socket.
pub(crate) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Address {
    /// Listens. A unix socket has mode 0600 from the moment it can be seen; one that a dead server left is replaced.
    pub(crate) fn listen(&self, allow_remote: bool) -> io::Result<Listening> {
        match self {
            Address::Unix(path) => listen_unix(path),
            Address::Tcp(address) => {
                let addresses: Vec<_> = address.to_socket_addrs()?.collect();
                if !allow_remote && addresses.iter().any(|address| !address.ip().is_loopback()) {
                    let problem = "not an address of this machine alone; anyone who reaches it could read and write the \
                                   drive. Allow it with --allow-remote";
                    return Err(io::Error::new(io::ErrorKind::PermissionDenied, problem));
                }
                Ok(Listening::Tcp(TcpListener::bind(&addresses[..])?))
            }
        }
    }
}

fn listen_unix(path: &Path) -> io::Result<Listening> {
    if UnixStream::connect(path).is_ok() {
        return Err(io::Error::new(io::ErrorKind::AddrInUse, "another server listens there"));
    }
    if path.symlink_metadata().is_ok_and(|found| !std::os::unix::fs::FileTypeExt::is_socket(&found.file_type())) {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "something that is not a socket is there"));
    }
    let mut hidden = path.as_os_str().to_owned();
    hidden.push(format!(".{}", std::process::id()));
    let hidden = PathBuf::from(hidden);
    let listener = UnixListener::bind(&hidden)?;
    std::fs::set_permissions(&hidden, std::fs::Permissions::from_mode(0o600))?;
    std::fs::rename(&hidden, path)?;
    Ok(Listening::Unix(listener, path.to_owned()))
}

impl Listening {
    pub(crate) fn accept(&self) -> io::Result<Stream> {
        match self {
            Listening::Unix(listener, _) => Ok(Stream::Unix(listener.accept()?.0)),
            Listening::Tcp(listener) => {
                let stream = listener.accept()?.0;
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }
        }
    }

    /// The address that clients connect to.
    pub(crate) fn local(&self) -> io::Result<Address> {
        match self {
            Listening::Unix(_, path) => Ok(Address::Unix(path.clone())),
            Listening::Tcp(listener) => Ok(Address::Tcp(listener.local_addr()?.to_string())),
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        if let Listening::Unix(_, path) = self {
            // Somebody may have removed it already.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Stream {
    pub(crate) fn connect(address: &Address) -> io::Result<Stream> {
        match address {
            Address::Unix(path) => Ok(Stream::Unix(UnixStream::connect(path)?)),
            Address::Tcp(address) => Ok(Stream::Tcp(TcpStream::connect(address)?)),
        }
    }

    /// The longest wait for the other side; `None` is for ever.
    pub(crate) fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => stream.set_read_timeout(timeout).and_then(|()| stream.set_write_timeout(timeout)),
            Stream::Tcp(stream) => stream.set_read_timeout(timeout).and_then(|()| stream.set_write_timeout(timeout)),
        }
    }

    pub(crate) fn set_nonblocking(&self) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => stream.set_nonblocking(true),
            Stream::Tcp(stream) => stream.set_nonblocking(true),
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Stream::Unix(stream) => stream.as_fd(),
            Stream::Tcp(stream) => stream.as_fd(),
        }
    }
}

impl io::Read for Stream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.read(bytes),
            Stream::Tcp(stream) => stream.read(bytes),
        }
    }
}

impl io::Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.write(bytes),
            Stream::Tcp(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
