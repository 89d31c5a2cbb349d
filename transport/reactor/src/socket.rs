//! Addresses of the servers of a reactor, `unix:PATH` or `HOST:PORT`, and their sockets.
//!
//! Left out: serving accepted clients, which each server does in its own way.

use std::fmt;
use std::fs::{self, File, Permissions};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::net::{AddressFamily, Shutdown, SocketAddrUnix, SocketFlags, SocketType};

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

/// A socket that listens. Dropping a unix socket removes its file.
pub struct Listening {
    socket: Socket,
    /// The address for clients, with the port that the system has chosen if the given one is 0.
    address: Address,
}

enum Socket {
    Unix(UnixListener, SocketFile),
    Tcp(TcpListener),
}

/// A connected socket.
pub enum Stream {
    /// A unix socket.
    Unix(UnixStream),
    /// A TCP connection.
    Tcp(TcpStream),
}

impl Address {
    /// Checks whether it is possible to listen here, without listening.
    ///
    /// # Errors
    /// When another server listens there, something else occupies the path, or it is not allowed.
    pub fn check(&self, allow_remote: bool) -> io::Result<()> {
        match self {
            Address::Unix(path) => check_unix(path),
            Address::Tcp(address) => check_tcp(&resolve(address, allow_remote)?),
        }
    }

    /// Listens. A unix socket has mode 0600 from the moment it exists; one that a dead server left is replaced. TCP
    /// addresses other than loopback are refused unless `allow_remote`.
    ///
    /// # Errors
    /// When the address is taken, unavailable, or not allowed.
    pub fn listen(&self, allow_remote: bool) -> io::Result<Listening> {
        match self {
            Address::Unix(path) => listen_unix(path),
            Address::Tcp(address) => {
                let listener = TcpListener::bind(&resolve(address, allow_remote)?[..])?;
                let address = Address::Tcp(listener.local_addr()?.to_string());
                Ok(Listening { socket: Socket::Tcp(listener), address })
            }
        }
    }
}

fn resolve(address: &str, allow_remote: bool) -> io::Result<Vec<SocketAddr>> {
    let addresses: Vec<_> = address.to_socket_addrs()?.collect();
    if !allow_remote && addresses.iter().any(|address| !address.ip().is_loopback()) {
        let problem = "not a loopback address, and clients are not authenticated. Allow it \
                       with --allow-remote";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, problem));
    }
    Ok(addresses)
}

/// Binds without listening, so that clients are refused meanwhile.
fn check_tcp(addresses: &[SocketAddr]) -> io::Result<()> {
    let bind = |address: &SocketAddr| {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let socket = rustix::net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        rustix::net::sockopt::set_socket_reuseaddr(&socket, true)?;
        Ok(rustix::net::bind(&socket, address)?)
    };
    let mut outcome = Ok(());
    for address in addresses {
        outcome = bind(address);
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

/// The longest path of a unix socket in bytes: see unix(7), "Address format".
const MAX_PATH: usize = 107;

/// Checks that the path is free, or holds a dead server's socket: a stream socket without a listener.
fn check_unix(path: &Path) -> io::Result<()> {
    let len = path.as_os_str().len();
    if len > MAX_PATH {
        let problem = format!("the path has {len} bytes, and that of a unix socket has at most {MAX_PATH}");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
    }
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        folder.metadata()?;
    }
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    match rustix::net::connect(&socket, &SocketAddrUnix::new(path)?) {
        // The backlog of a live server may be full.
        Ok(()) | Err(Errno::AGAIN) => {
            return Err(io::Error::new(io::ErrorKind::AddrInUse, "another server listens there"));
        }
        Err(Errno::PROTOTYPE) => {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "a socket of another kind is there"));
        }
        Err(Errno::NOENT | Errno::CONNREFUSED) => {}
        Err(error) => return Err(error.into()),
    }
    if path.symlink_metadata().is_ok_and(|found| !found.file_type().is_socket()) {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "the path is not a socket"));
    }
    Ok(())
}

/// The socket is created under another name and renamed. Of several servers that start together one gets the name.
/// The others wait for the folder's lock, and then find the name taken.
fn listen_unix(path: &Path) -> io::Result<Listening> {
    let folder_path = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = File::open(folder_path)?;
    lock(&folder)?;
    check_unix(path)?;
    // Through the folder's descriptor, a name fits even if the folder's path is long.
    let by_descriptor = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()));
    let within = if by_descriptor.exists() { &by_descriptor } else { folder_path };
    let hidden = within.join(unique_name());
    let listener = bind_unix(&hidden)?;
    let file = hidden.symlink_metadata()?;
    let file = SocketFile { path: path.to_owned(), device: file.dev(), inode: file.ino() };
    // It replaces the socket of a dead server.
    if let Err(error) = fs::rename(&hidden, path) {
        let _ = fs::remove_file(&hidden);
        return Err(error);
    }
    sockets().push(file.clone());
    Ok(Listening { socket: Socket::Unix(listener, file), address: Address::Unix(path.to_owned()) })
}

/// A unique temporary name.
fn unique_name() -> String {
    static MADE: AtomicU64 = AtomicU64::new(0);
    format!(".nandscape-{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed))
}

/// Tries to lock a folder, and the time between them: the lock is held for some system calls only.
const TRIES: u32 = 200;
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

/// Locks a folder until its descriptor is closed.
#[expect(
    clippy::disallowed_methods,
    reason = "a blocking lock call has no time limit, and any process may hold the lock"
)]
fn lock(folder: &File) -> io::Result<()> {
    for _ in 0..TRIES {
        match flock(folder, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => std::thread::sleep(BETWEEN_TRIES),
            done => return Ok(done?),
        }
    }
    Err(io::Error::new(io::ErrorKind::WouldBlock, "another program keeps the folder locked"))
}

/// The file of a unix socket at which this process listens.
#[derive(Clone, PartialEq, Eq)]
struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl SocketFile {
    /// Removes it, unless another file has replaced it.
    fn remove(&self) {
        let found = self.path.symlink_metadata();
        if found.is_ok_and(|found| (found.dev(), found.ino()) == (self.device, self.inode)) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// All sockets.
fn sockets() -> MutexGuard<'static, Vec<SocketFile>> {
    static SOCKETS: Mutex<Vec<SocketFile>> = Mutex::new(Vec::new());
    SOCKETS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes the files of all unix sockets at which this process listens, before it ends without dropping them.
pub fn remove_socket_files() {
    sockets().drain(..).for_each(|file| file.remove());
}

/// Makes a socket of mode 0600. Linux gives the file the mode of the socket, less the umask: see unix(7), "Pathname
/// socket ownership and permissions". It is therefore never accessible to others.
fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    let socket = File::from(socket);
    socket.set_permissions(Permissions::from_mode(0o600))?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    rustix::net::listen(&socket, 128)?;
    Ok(UnixListener::from(std::os::fd::OwnedFd::from(socket)))
}

impl Listening {
    /// Waits for a client.
    ///
    /// # Errors
    /// When no client can be accepted: mostly because descriptors are exhausted, or because of
    /// [`Listening::interrupt`].
    pub fn accept(&self) -> io::Result<Stream> {
        match &self.socket {
            Socket::Unix(listener, _) => Ok(Stream::Unix(listener.accept()?.0)),
            Socket::Tcp(listener) => {
                let stream = listener.accept()?.0;
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }
        }
    }

    /// Accepts no more clients: [`Listening::accept`] fails from now on, also if it waits already.
    pub fn interrupt(&self) {
        // It fails on a socket that listens no more.
        let _ = match &self.socket {
            Socket::Unix(listener, _) => rustix::net::shutdown(listener, Shutdown::Both),
            Socket::Tcp(listener) => rustix::net::shutdown(listener, Shutdown::Both),
        };
    }

    /// The address that clients connect to.
    pub fn address(&self) -> &Address {
        &self.address
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let Socket::Unix(_, file) = &self.socket else { return };
        file.remove();
        sockets().retain(|other| other != file);
    }
}

impl Stream {
    /// Connects to a server.
    ///
    /// # Errors
    /// When there is none.
    pub fn connect(address: &Address) -> io::Result<Stream> {
        match address {
            Address::Unix(path) => Ok(Stream::Unix(UnixStream::connect(path)?)),
            Address::Tcp(address) => Ok(Stream::Tcp(TcpStream::connect(address)?)),
        }
    }

    /// The longest wait for the other side to send; `None` is no limit.
    ///
    /// # Errors
    /// When the socket does not take it.
    pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => stream.set_read_timeout(timeout),
            Stream::Tcp(stream) => stream.set_read_timeout(timeout),
        }
    }

    /// The longest wait for the other side to receive sent data; `None` is no limit.
    ///
    /// # Errors
    /// When the socket does not take it.
    pub fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => stream.set_write_timeout(timeout),
            Stream::Tcp(stream) => stream.set_write_timeout(timeout),
        }
    }

    /// This side's address of a TCP connection.
    ///
    /// # Errors
    /// When it is a unix socket, or the system returns an error.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        match self {
            Stream::Tcp(stream) => stream.local_addr(),
            Stream::Unix(_) => Err(io::Error::new(io::ErrorKind::InvalidInput, "a unix socket has no such address")),
        }
    }

    /// The address of the other side; `None` if it has none.
    pub fn peer(&self) -> Option<IpAddr> {
        match self {
            Stream::Tcp(stream) => stream.peer_addr().ok().map(|address| address.ip()),
            Stream::Unix(_) => None,
        }
    }

    /// Whether bytes have arrived that were not read.
    pub fn has_input(&self) -> bool {
        rustix::io::ioctl_fionread(self).is_ok_and(|bytes| bytes > 0)
    }

    /// Makes the system keep about so many bytes that the other side has not received.
    ///
    /// # Errors
    /// When the socket does not take it.
    pub fn limit_unsent(&self, bytes: usize) -> io::Result<()> {
        Ok(rustix::net::sockopt::set_socket_send_buffer_size(self, bytes)?)
    }

    /// Makes the socket non-blocking.
    ///
    /// # Errors
    /// When the socket does not take it.
    pub fn set_nonblocking(&self) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => stream.set_nonblocking(true),
            Stream::Tcp(stream) => stream.set_nonblocking(true),
        }
    }

    /// Shuts down sending, receiving, or both; calls that wait for it return.
    pub fn shutdown(&self, how: std::net::Shutdown) {
        // It fails when the other side has disconnected, and then there is nothing to end.
        let _ = match self {
            Stream::Unix(stream) => stream.shutdown(how),
            Stream::Tcp(stream) => stream.shutdown(how),
        };
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

impl io::Read for &Stream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => (&*stream).read(bytes),
            Stream::Tcp(stream) => (&*stream).read(bytes),
        }
    }
}

impl io::Write for &Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => (&*stream).write(bytes),
            Stream::Tcp(stream) => (&*stream).write(bytes),
        }
    }

    fn write_vectored(&mut self, slices: &[io::IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => (&*stream).write_vectored(slices),
            Stream::Tcp(stream) => (&*stream).write_vectored(slices),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl io::Read for Stream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        (&*self).read(bytes)
    }
}

impl io::Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self).write(bytes)
    }

    fn write_vectored(&mut self, slices: &[io::IoSlice<'_>]) -> io::Result<usize> {
        (&*self).write_vectored(slices)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
