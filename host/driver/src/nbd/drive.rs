//! The drive: commands become requests, and replies complete them in any order.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::Duration;

use nandscape_drive::{Completion, Drive, DriveInfo, HostMem, Io, Token};
use nandscape_sim::slots::{Key, Slots};
use nandscape_wire_nbd::{REQUEST_MAGIC, Request, SIMPLE_REPLY_MAGIC, SimpleReply, command};
use nandscape_wire_nvme::Status;
use zerocopy::{FromBytes, IntoBytes};

use super::address::{NbdAddress, Place};
use super::handshake::{ConnectError, Failure, Offer, negotiate};
use super::requests::{Wanted, requests, status_of, transfer};
use crate::remote::{Lost, Pending, Remote};
use crate::stream::{Incoming, Limit, Limited, Outgoing, Socket, connect_tcp, connect_unix, in_words};

/// The data of writes without data: not zeros, which servers treat as holes.
const FILLER: u8 = 0xa5;

/// See the module.
pub struct NbdDrive {
    address: NbdAddress,
    offer: Offer,
    /// A second descriptor of the socket, to be lent while the state is borrowed.
    descriptor: OwnedFd,
    state: RefCell<State>,
}

struct State {
    socket: Socket,
    outgoing: Outgoing,
    incoming: Incoming,
    commands: Slots<Outstanding>,
    requests: Slots<Part>,
    /// The read whose data arrives next, and the number of its bytes received.
    reading: Option<(Key, usize)>,
    lost: Option<Lost>,
    /// Commands that have ended, to be completed when the state is free.
    ended: VecDeque<(Token, Status)>,
    /// How often something was received.
    answers: u64,
}

/// A command with requests outstanding.
struct Outstanding {
    token: Token,
    left: usize,
    /// The first failure.
    status: Status,
}

/// A request.
struct Part {
    command: Key,
    kind: u16,
    len: u32,
    /// The memory for a read's data.
    mem: HostMem,
}

impl NbdDrive {
    /// The usual longest wait for a server that negotiates.
    pub const PATIENCE: Duration = Duration::from_secs(10);

    /// Connects to a server and chooses an export. Blocks until then, but for `patience` at most once it has reached
    /// the server.
    ///
    /// `keeps_data` becomes [`DriveInfo::keeps_data`]: load generators that ignore data need no memory for it.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub fn connect(address: &NbdAddress, keeps_data: bool, patience: Duration) -> Result<NbdDrive, ConnectError> {
        let negotiated = || -> Result<(Socket, Offer), Failure> {
            let mut socket = match &address.place {
                Place::Unix(path) => Socket::Unix(connect_unix(path, patience)?),
                Place::Tcp(address) => Socket::Tcp(connect_tcp(address, patience)?),
            };
            socket.patience(Some(patience))?;
            let limit = Limit::new(patience);
            let offer = negotiate(&mut Limited { socket: &mut socket, limit: &limit }, &address.export)?;
            socket.patience(None)?;
            Ok((socket, offer))
        };
        let endpoint = address.to_string();
        let named = |failure| match failure {
            Failure::Io(error) => ConnectError::Io { endpoint: endpoint.clone(), error: in_words(error, patience) },
            Failure::Protocol(problem) => ConnectError::Protocol { endpoint: endpoint.clone(), problem },
        };
        let (socket, mut offer) = negotiated().map_err(named)?;
        let descriptor = socket.descriptor().try_clone_to_owned().map_err(|error| named(Failure::Io(error)))?;
        offer.info.keeps_data = keeps_data;
        let state = State {
            socket,
            outgoing: Outgoing::new(),
            incoming: Incoming::new(),
            commands: Slots::new(),
            requests: Slots::new(),
            reading: None,
            lost: None,
            ended: VecDeque::new(),
            answers: 0,
        };
        Ok(NbdDrive { address: address.clone(), offer, descriptor, state: RefCell::new(state) })
    }

    /// The server and the export.
    pub fn address(&self) -> &NbdAddress {
        &self.address
    }

    /// Completes ended commands. Users may submit meanwhile.
    fn complete_ended(&self) {
        loop {
            let Some((token, status)) = self.state.borrow_mut().ended.pop_front() else { return };
            token.complete(Completion::of(status));
        }
    }
}

impl Drive for NbdDrive {
    fn info(&self) -> DriveInfo {
        self.offer.info
    }

    fn submit(&self, io: Io) {
        let Io { command, mem, token } = io;
        let mut state = self.state.borrow_mut();
        if state.lost.is_some() {
            drop(state);
            return token.complete(Completion::of(Status::ABORTED_SQ_DELETION));
        }
        let refused = match transfer(&command, &mem, &self.offer) {
            Ok(Some(wanted)) => {
                let command = state.commands.insert(Outstanding { token, left: 1, status: Status::SUCCESS });
                return state.request(command, wanted, mem);
            }
            Ok(None) => match requests(&command, &mem, &self.offer) {
                Ok(parts) if parts.is_empty() => Status::SUCCESS,
                Ok(parts) => {
                    let command = Outstanding { token, left: parts.len(), status: Status::SUCCESS };
                    let command = state.commands.insert(command);
                    return parts.into_iter().for_each(|part| state.request(command, part, HostMem::none()));
                }
                Err(status) => status,
            },
            Err(status) => status,
        };
        drop(state);
        token.complete(Completion::of(refused));
    }
}

impl Remote for NbdDrive {
    fn pending(&self) -> Pending {
        let state = self.state.borrow();
        Pending { commands: state.commands.len(), answers: state.answers }
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    fn wants_to_write(&self) -> bool {
        !self.state.borrow().outgoing.is_empty()
    }

    fn poll(&self) -> Result<bool, Lost> {
        let mut state = self.state.borrow_mut();
        if let Some(lost) = &state.lost {
            return Err(lost.clone());
        }
        let result = state.send().and_then(|sent| Ok(state.receive()? | sent));
        if let Err(reason) = &result {
            state.lose(Lost { endpoint: self.address.to_string(), reason: reason.clone() });
        }
        drop(state);
        self.complete_ended();
        // Their completions may have brought new commands.
        let mut state = self.state.borrow_mut();
        match (result, &state.lost) {
            (Ok(moved), None) => {
                // A failure is found again at the next call.
                let _ = state.send();
                Ok(moved)
            }
            (_, lost) => Err(lost.clone().expect("it was lost for this reason")),
        }
    }
}

impl State {
    fn request(&mut self, command: Key, wanted: Wanted, mem: HostMem) {
        let Wanted { kind, flags, offset, len } = wanted;
        // Write data is copied here, so its memory is released.
        let (written, read) = if kind == command::WRITE { (Some(mem), HostMem::none()) } else { (None, mem) };
        let cookie = self.requests.insert(Part { command, kind, len, mem: read });
        self.head(kind, flags, cookie, offset, len);
        if let Some(mem) = written {
            let room = self.outgoing.room(len as usize);
            if mem.is_none() { room.fill(FILLER) } else { mem.read(0, room) }
        }
    }

    fn head(&mut self, kind: u16, flags: u16, cookie: Key, offset: u64, len: u32) {
        let (magic, cookie) = (REQUEST_MAGIC.into(), cookie.to_bits().into());
        let head =
            Request { magic, flags: flags.into(), kind: kind.into(), cookie, offset: offset.into(), len: len.into() };
        self.outgoing.put(head.as_bytes());
    }

    fn send(&mut self) -> Result<bool, String> {
        self.outgoing.send(&mut self.socket).map_err(|error| error.to_string())
    }

    /// Receives until the socket is empty.
    fn receive(&mut self) -> Result<bool, String> {
        let mut moved = false;
        loop {
            while self.take_reply()? {}
            match self.incoming.receive(&mut self.socket) {
                Ok(true) => {
                    moved = true;
                    self.answers += 1;
                }
                Ok(false) => return Ok(moved),
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    /// Takes a reply, or data of one; returns whether there was any.
    fn take_reply(&mut self) -> Result<bool, String> {
        if let Some((cookie, done)) = self.reading {
            return Ok(self.take_data(cookie, done));
        }
        let Some(bytes) = self.incoming.take::<{ size_of::<SimpleReply>() }>() else { return Ok(false) };
        let reply = SimpleReply::read_from_bytes(&bytes).expect("as many bytes as it has");
        if reply.magic.get() != SIMPLE_REPLY_MAGIC {
            return Err(format!("the server sends no reply but {:#x}", reply.magic.get()));
        }
        let cookie = Key::from_bits(reply.cookie.get());
        let Some(part) = self.requests.get(cookie) else {
            return Err(format!("the server answers request {:#x}, which is not outstanding", reply.cookie.get()));
        };
        match (part.kind, reply.error.get()) {
            (command::READ, 0) => self.reading = Some((cookie, 0)),
            (kind, error) => self.request_ended(cookie, status_of(error, kind)),
        }
        Ok(true)
    }

    /// Takes data of a read, `done` bytes of which have arrived; returns whether there was any.
    fn take_data(&mut self, cookie: Key, done: usize) -> bool {
        let part = self.requests.get(cookie).expect("the request that is being answered");
        let len = part.len as usize;
        let bytes = self.incoming.rest();
        let bytes = &bytes[..bytes.len().min(len - done)];
        if bytes.is_empty() {
            return false;
        }
        part.mem.write(done, bytes);
        let done = done + bytes.len();
        self.incoming.consume(bytes.len());
        self.reading = (done < len).then_some((cookie, done));
        if done == len {
            let failed = part.mem.has_failed();
            self.request_ended(cookie, if failed { Status::DATA_TRANSFER_ERROR } else { Status::SUCCESS });
        }
        true
    }

    fn request_ended(&mut self, cookie: Key, status: Status) {
        let part = self.requests.remove(cookie).expect("a request ends once");
        let command = self.commands.get_mut(part.command).expect("a command with a request outstanding");
        command.left -= 1;
        if command.status.is_success() {
            command.status = status;
        }
        if command.left == 0 {
            let Outstanding { token, status, .. } = self.commands.remove(part.command).expect("it was there");
            self.ended.push_back((token, status));
        }
    }

    /// The connection is lost: outstanding and later commands fail.
    fn lose(&mut self, lost: Lost) {
        self.lost = Some(lost);
        self.reading = None;
        self.requests = Slots::new();
        while let Some(command) = self.commands.find(|_| true).and_then(|key| self.commands.remove(key)) {
            self.ended.push_back((command.token, Status::ABORTED_SQ_DELETION));
        }
    }
}

impl Drop for NbdDrive {
    /// Leaves in order, as far as the socket takes it at once. Outstanding commands end with Internal Error.
    fn drop(&mut self) {
        let state = self.state.get_mut();
        if state.lost.is_none() && state.outgoing.is_empty() {
            let cookie = Key::from_bits(0);
            state.head(command::DISC, 0, cookie, 0, 0);
            let _: io::Result<bool> = state.outgoing.send(&mut state.socket);
        }
    }
}
