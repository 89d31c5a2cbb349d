//! Connections that never block, as a network of servers and clients. All of them are behind one descriptor, so any
//! loop can wait for them.
//!
//! A peer that does not read, or violates the protocol, hurts only itself: its unsent data is bounded, and at the
//! bound it is disconnected. Idle clients do not keep others out: the client that was silent longest is disconnected.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use nandscape_host_network::{Accepts, Inlet, Outlet};
use nandscape_transport_reactor::socket::Stream;
use nandscape_wire_kv::{MAX_FRAME, Refusal, Reply, split};
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};

/// Bytes read at a time; a connection with more is read again in the next turn.
const READ: usize = 256 << 10;
/// The same of short frames from a client: a few dozen of the shortest. So one that sends many takes little of a turn.
const READ_SHORT: usize = 1 << 10;
/// Bytes that may wait for a peer: some hundred of the longest frames.
const MOST_UNSENT: usize = 32 << 20;
/// Events taken at a time.
const EVENTS: usize = 64;
/// The event number of new clients.
const CAME: u64 = u64::MAX;
/// Clients of a server at a time.
pub(super) const MOST_CLIENTS: usize = 1_024;

/// See the module.
pub(super) struct Sockets {
    epoll: OwnedFd,
    connections: RefCell<BTreeMap<u64, Rc<Connection>>>,
    next: Cell<u64>,
    /// Clients of a server at a time.
    most: usize,
    /// Counts receptions from clients.
    heard: Cell<u64>,
    /// Something waits to be sent, or to be closed.
    is_dirty: Cell<bool>,
    came: Arc<OwnedFd>,
    inbox: Receiver<Stream>,
    entry: Sender<Stream>,
    server: RefCell<Option<Rc<dyn Accepts>>>,
}

/// Passes on clients that were accepted on another thread.
#[derive(Clone)]
pub(super) struct Door {
    came: Arc<OwnedFd>,
    entry: Sender<Stream>,
}

impl Door {
    /// A client connects.
    pub(super) fn enter(&self, stream: Stream) {
        // The receiver no longer exists once the server has ended.
        if self.entry.send(stream).is_ok() {
            // It can only fail when the counter is full.
            let _ = rustix::io::write(&*self.came, &1u64.to_ne_bytes());
        }
    }
}

pub(super) struct Connection {
    pub(super) stream: Stream,
    pub(super) inlet: RefCell<Option<Rc<dyn Inlet>>>,
    received: RefCell<Vec<u8>>,
    unsent: RefCell<Vec<u8>>,
    /// Why it is to be closed.
    over: RefCell<Option<String>>,
    /// The value of the [`Sockets`] counter at its last reception.
    heard: Cell<u64>,
    waits_for_room: Cell<bool>,
    /// The least that is read at a time.
    least_read: Cell<usize>,
    /// Not connected, and the system does not continue the attempt by itself.
    is_apart: Cell<bool>,
}

/// One end's way to the other.
struct End {
    sockets: Weak<Sockets>,
    connection: Rc<Connection>,
}

impl Connection {
    pub(super) fn end(&self, reason: impl Into<String>) {
        self.over.borrow_mut().get_or_insert_with(|| reason.into());
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.borrow().is_some()
    }

    /// Reads a share of the available bytes, and passes on whole frames.
    fn receive(&self) {
        let mut bytes = std::mem::take(&mut *self.received.borrow_mut());
        let before = bytes.len();
        let rest = expected(&bytes).saturating_sub(before);
        bytes.resize(before + rest.clamp(self.least_read.get(), READ), 0);
        let read = (&self.stream).read(&mut bytes[before..]);
        let count = match read {
            Ok(0) => {
                self.end("the other side has closed the connection");
                0
            }
            Ok(count) => count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => 0,
            Err(error) => {
                self.end(error.to_string());
                0
            }
        };
        bytes.truncate(before + count);
        let mut used = 0;
        let inlet = self.inlet.borrow().clone();
        while !self.is_over() {
            match split(&bytes[used..]) {
                Ok(Some(len)) => {
                    inlet.iter().for_each(|inlet| inlet.received(&bytes[used..used + len]));
                    used += len;
                }
                Ok(None) => break,
                Err(malformed) => self.end(malformed.to_string()),
            }
        }
        bytes.drain(..used);
        debug_assert!(self.is_over() || bytes.len() < MAX_FRAME + 4, "less than a frame is left");
        self.received.replace(bytes);
    }

    /// Whether its other end has no request under way.
    fn is_idle(&self) -> bool {
        self.unsent.borrow().is_empty() && !self.inlet.borrow().as_ref().is_some_and(|inlet| inlet.is_awaited())
    }

    /// Sends as much as the socket takes; returns whether anything moved.
    fn send(&self) -> bool {
        let mut unsent = self.unsent.borrow_mut();
        let (mut sent, mut is_full) = (0, self.is_apart.get());
        while sent < unsent.len() && !is_full {
            match (&self.stream).write(&unsent[sent..]) {
                Ok(0) => break,
                Ok(count) => sent += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => is_full = true,
                Err(error) => {
                    self.end(error.to_string());
                    break;
                }
            }
        }
        unsent.drain(..sent);
        if unsent.len() > MOST_UNSENT {
            self.end("it does not take its replies");
        }
        sent > 0
    }
}

/// Bytes of the frame of which `bytes` are the beginning, as far as that is known.
fn expected(bytes: &[u8]) -> usize {
    bytes.first_chunk().map_or(0, |length| u32::from_le_bytes(*length) as usize + 4)
}

/// Sends a client the reason for the disconnection, as far as its socket takes it.
fn turn_away(mut stream: &Stream, text: &str) {
    let _ = stream.write_all(&Reply::Refused { why: Refusal::Overloaded, text }.to_frame(0));
}

impl Outlet for End {
    fn send(&self, frame: Vec<u8>) {
        if let Some(sockets) = self.sockets.upgrade().filter(|_| !self.connection.is_over()) {
            self.connection.unsent.borrow_mut().extend_from_slice(&frame);
            sockets.is_dirty.set(true);
        }
    }

    fn is_up(&self) -> bool {
        !self.connection.is_over()
    }

    fn close(&self, reason: &str) {
        self.connection.end(reason);
        if let Some(sockets) = self.sockets.upgrade() {
            sockets.is_dirty.set(true);
        }
    }
}

impl Sockets {
    /// For a server of `most` clients at a time, or for clients.
    pub(super) fn new(most: usize) -> io::Result<Rc<Sockets>> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let came = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        epoll::add(&epoll, &*came, EventData::new_u64(CAME), EventFlags::IN)?;
        let (entry, inbox) = channel();
        let (connections, server, next, heard) = (RefCell::default(), RefCell::default(), Cell::new(0), Cell::new(0));
        Ok(Rc::new(Sockets {
            epoll,
            connections,
            next,
            most,
            heard,
            is_dirty: Cell::new(false),
            came,
            inbox,
            entry,
            server,
        }))
    }

    /// From now on clients are taken in.
    pub(super) fn open(&self, server: Rc<dyn Accepts>) {
        self.server.replace(Some(server));
    }

    pub(super) fn door(&self) -> Door {
        Door { came: self.came.clone(), entry: self.entry.clone() }
    }

    /// Readable when there is work.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    pub(super) fn is_dirty(&self) -> bool {
        self.is_dirty.get()
    }

    /// Adds a connection; one that is apart is not waited for.
    pub(super) fn add(self: &Rc<Self>, stream: Stream, is_apart: bool) -> io::Result<Rc<Connection>> {
        stream.set_nonblocking()?;
        if let Stream::Tcp(stream) = &stream {
            stream.set_nodelay(true)?;
        }
        let connection = Rc::new(Connection {
            stream,
            inlet: RefCell::default(),
            received: RefCell::default(),
            unsent: RefCell::default(),
            over: RefCell::default(),
            heard: Cell::new(self.next_heard()),
            waits_for_room: Cell::new(false),
            least_read: Cell::new(READ),
            is_apart: Cell::new(is_apart),
        });
        let number = self.next.get();
        self.next.set(number + 1);
        if !is_apart {
            epoll::add(&self.epoll, &connection.stream, EventData::new_u64(number), EventFlags::IN)?;
        }
        self.connections.borrow_mut().insert(number, connection.clone());
        Ok(connection)
    }

    pub(super) fn end_of(self: &Rc<Self>, connection: &Rc<Connection>) -> Rc<dyn Outlet> {
        Rc::new(End { sockets: Rc::downgrade(self), connection: connection.clone() })
    }

    /// A pending connection is established.
    pub(super) fn joined(&self, connection: &Rc<Connection>) {
        connection.is_apart.set(false);
        let key = self.connections.borrow().iter().find(|(_, one)| Rc::ptr_eq(one, connection)).map(|(key, _)| *key);
        let Some(key) = key else { return };
        if let Err(error) = epoll::add(&self.epoll, &connection.stream, EventData::new_u64(key), EventFlags::IN) {
            connection.end(error.to_string());
        }
        self.is_dirty.set(true);
    }

    /// A connection is over, and its other end hears so in the next turn.
    pub(super) fn end(&self, connection: &Connection, reason: impl Into<String>) {
        connection.end(reason);
        self.is_dirty.set(true);
    }

    fn next_heard(&self) -> u64 {
        self.heard.set(self.heard.get() + 1);
        self.heard.get()
    }

    /// At the limit of clients, disconnects the idle one that was silent longest. Returns whether there is room.
    fn make_room(&self) -> bool {
        let connections = self.connections.borrow();
        // Ended connections are removed soon.
        let here = || connections.values().filter(|one| !one.is_over());
        if here().count() < self.most {
            return true;
        }
        let Some(idle) = here().filter(|one| one.is_idle()).min_by_key(|one| one.heard.get()) else { return false };
        let most = self.most;
        turn_away(&idle.stream, &format!("the server has {most} clients: the idle one that was silent longest left"));
        self.end(idle, "it has made room for another client");
        true
    }

    fn take_in(self: &Rc<Self>) {
        let _ = rustix::io::read(&*self.came, &mut [0; 8]);
        while let Ok(stream) = self.inbox.try_recv() {
            let server = self.server.borrow().clone();
            let Some(server) = server else { continue };
            if !self.make_room() {
                let _ = stream.set_nonblocking();
                turn_away(&stream, &format!("the server has {} clients, and all have requests in work", self.most));
                continue;
            }
            if let Ok(connection) = self.add(stream, false) {
                connection.least_read.set(READ_SHORT);
                let inlet = server.accept(self.end_of(&connection));
                connection.inlet.replace(Some(inlet));
            }
        }
    }

    /// Waits for events for at most `wait`, and receives and sends a share. Returns whether anything moved.
    pub(super) fn poll(self: &Rc<Self>, wait: Option<Timespec>) -> io::Result<bool> {
        let mut events = Vec::with_capacity(EVENTS);
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), wait.as_ref()) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        let mut moved = !events.is_empty();
        for event in &events {
            match event.data.u64() {
                CAME => self.take_in(),
                number => {
                    let connection = self.connections.borrow().get(&number).cloned();
                    if let Some(connection) = connection {
                        connection.heard.set(self.next_heard());
                        connection.receive();
                        self.is_dirty.set(true);
                    }
                }
            }
        }
        if self.is_dirty.take() {
            moved |= self.send_all();
        }
        Ok(moved)
    }

    /// Sends, and removes ended connections.
    fn send_all(&self) -> bool {
        let all: Vec<_> = self.connections.borrow().iter().map(|(key, one)| (*key, one.clone())).collect();
        let mut moved = false;
        for (key, connection) in all {
            if !connection.unsent.borrow().is_empty() {
                moved |= connection.send();
            }
            if let Some(reason) = connection.over.borrow().clone() {
                let _ = epoll::delete(&self.epoll, &connection.stream);
                self.connections.borrow_mut().remove(&key);
                let inlet = connection.inlet.take();
                connection.stream.shutdown(std::net::Shutdown::Both);
                inlet.iter().for_each(|inlet| inlet.lost(&reason));
                continue;
            }
            let waits = !connection.unsent.borrow().is_empty() && !connection.is_apart.get();
            if connection.waits_for_room.replace(waits) != waits {
                let interest = if waits { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
                let _ = epoll::modify(&self.epoll, &connection.stream, EventData::new_u64(key), interest);
            }
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use nandscape_wire_kv::{Frame, Request};

    use super::*;

    /// A server that records received frames, and returns which clients wait for it.
    #[derive(Default)]
    struct Hears {
        is_awaited: Rc<Cell<bool>>,
        /// Bytes of each received frame.
        came: Rc<RefCell<Vec<usize>>>,
    }

    impl Accepts for Hears {
        fn accept(&self, _: Rc<dyn Outlet>) -> Rc<dyn Inlet> {
            Rc::new(Hears { is_awaited: self.is_awaited.clone(), came: self.came.clone() })
        }
    }

    impl Inlet for Hears {
        fn received(&self, frame: &[u8]) {
            self.came.borrow_mut().push(frame.len());
        }

        fn is_awaited(&self) -> bool {
            self.is_awaited.get()
        }

        fn lost(&self, _: &str) {}
    }

    /// Until nothing moves.
    fn settle(sockets: &Rc<Sockets>) {
        while sockets.poll(Some(Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() {}
    }

    fn enters(sockets: &Rc<Sockets>) -> UnixStream {
        let (client, server) = UnixStream::pair().unwrap();
        sockets.door().enter(Stream::Unix(server));
        settle(sockets);
        client.set_nonblocking(true).unwrap();
        client
    }

    /// The reason for which a client was turned away; `None` while it is connected.
    fn reason(mut client: &UnixStream) -> Option<String> {
        let mut bytes = Vec::new();
        client.read_to_end(&mut bytes).ok()?;
        let refused = Frame::parse(&bytes).unwrap();
        match Reply::parse(&refused).unwrap() {
            Reply::Refused { why: Refusal::Overloaded, text } => Some(text.to_owned()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn idle_clients_make_room_and_busy_ones_do_not() {
        let (sockets, server) = (Sockets::new(2).unwrap(), Rc::new(Hears::default()));
        sockets.open(server.clone());
        let (mut first, second) = (enters(&sockets), enters(&sockets));
        let get = Request::Get { deadline_us: 0, tell_begun: false, key: b"k" };
        first.write_all(&get.to_frame(1).unwrap()).unwrap();
        settle(&sockets);
        let third = enters(&sockets);
        assert!(reason(&second).unwrap().contains("silent longest"), "it has sent nothing");
        assert_eq!((reason(&first), reason(&third)), (None, None));
        server.is_awaited.set(true);
        let fourth = enters(&sockets);
        assert!(reason(&fourth).unwrap().contains("all have requests in work"));
        assert_eq!((reason(&first), reason(&third)), (None, None));
    }

    #[test]
    fn a_client_that_sends_many_requests_takes_a_small_part_of_each_turn() {
        let (sockets, server) = (Sockets::new(2).unwrap(), Rc::new(Hears::default()));
        sockets.open(server.clone());
        let (mut many, mut one) = (enters(&sockets), enters(&sockets));
        let get = Request::Get { deadline_us: 0, tell_begun: false, key: b"k" }.to_frame(1).unwrap();
        let put = Request::Put { version: 1, key: b"k", value: &[7; 100 << 10] }.to_frame(2).unwrap();
        many.write_all(&get.repeat(1_000)).unwrap();
        one.write_all(&put[..50 << 10]).unwrap();
        let nothing = Some(Timespec { tv_sec: 0, tv_nsec: 0 });
        let mut turns = 0;
        while server.came.borrow().len() < 1_000 {
            let before = server.came.borrow().len();
            sockets.poll(nothing).unwrap();
            let came = server.came.borrow().len() - before;
            assert!(came <= READ_SHORT / get.len() + 1, "{came} requests of a client came in one turn");
            turns += 1;
        }
        assert!(turns >= 1_000 * get.len() / READ_SHORT);
        // A long frame is not read in such parts.
        settle(&sockets);
        one.write_all(&put[50 << 10..]).unwrap();
        sockets.poll(nothing).unwrap();
        assert_eq!(server.came.borrow().last(), Some(&put.len()));
    }
}
