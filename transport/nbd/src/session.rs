//! One client after negotiation: its requests become commands, their completions become replies.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;

use nandscape_drive::mem::Buffer;
use nandscape_drive::{DriveInfo, HostMem};
use nandscape_sim::slots::{Key, Slots};
use nandscape_transport_reactor::client::{Client, Gone, Intake, Interest};
use nandscape_transport_reactor::socket::Stream;
use nandscape_transport_reactor::{Released, Share};
use nandscape_wire_nbd::{REQUEST_MAGIC, Request, command};
use nandscape_wire_nvme::Status;
use zerocopy::FromBytes;

use crate::feed::{Feed, PART};
use crate::handshake::MAX_REQUEST;
use crate::listener::Seat;
use crate::replies::Replies;
use crate::translate::{Refusal, check, commands, error_of};

/// Requests that a client may have in work.
const MAX_PENDING: usize = 1_024;
/// Bytes that a client's requests in work may hold, and that may wait to be sent to it.
const MAX_BYTES: usize = 64 << 20;
/// Bytes read from a socket at a time.
const READ_SIZE: usize = 256 << 10;
/// Reads from a socket before others get a turn.
const READS_A_TURN: usize = 4;
/// The most that is read of what a client sent before it hung up: more than a socket holds.
const MAX_REST: usize = 16 << 20;
/// Requests understood before others get a turn: those that are refused cost nothing but the time of the loop.
const REQUESTS_A_TURN: usize = 256;

/// See the module.
pub(crate) struct Session {
    /// Given up before the socket is closed: who sees that finds the seat free.
    _seat: Seat,
    stream: Stream,
    info: DriveInfo,
    structured: bool,
    /// What was read and not yet understood, from `start` to `end`.
    inbox: Vec<u8>,
    start: usize,
    end: usize,
    /// A write whose data is still coming.
    coming: Option<Coming>,
    pending: Slots<Pending>,
    /// Requests that change much without data.
    feed: Feed,
    /// Requests that may be understood in this turn.
    share: usize,
    /// Bytes of the requests in work.
    held: usize,
    /// Its part of the memory of all clients: for those bytes and the replies.
    memory: Share,
    /// Bytes that the next request needs, where it had to wait for them.
    wanted: usize,
    replies: Replies,
    /// It had to stop before it had understood everything that was read.
    stalled: bool,
    /// The socket takes no more for now.
    blocked: bool,
    /// The client has said good-bye: what is in work is done, and that is all.
    leaving: bool,
    /// It has said good-bye and takes no more replies.
    deaf: bool,
    /// It has hung up, perhaps with something left in the socket.
    hung_up: bool,
    /// It has hung up, and nothing is left in the socket.
    ended: bool,
}

/// A write whose data is still coming.
struct Coming {
    request: Request,
    /// Where the data goes; `None` when the request was refused and its data is thrown away.
    buffer: Option<Buffer>,
    refusal: Option<Refusal>,
    filled: usize,
}

/// A request in work.
struct Pending {
    cookie: u64,
    kind: u16,
    offset: u64,
    mem: HostMem,
    /// Commands that have not completed, and one more as long as there are commands to come.
    left: u32,
    /// Bytes that its commands in the drive affect, where it is given to the drive a part at a time.
    affected: u64,
    /// The first failure.
    failure: Option<Status>,
}

impl Session {
    pub(crate) fn new(stream: Stream, info: DriveInfo, structured: bool, seat: Seat, memory: Share) -> Session {
        Session {
            _seat: seat,
            stream,
            info,
            structured,
            inbox: vec![0; READ_SIZE],
            start: 0,
            end: 0,
            coming: None,
            pending: Slots::new(),
            feed: Feed::default(),
            share: 0,
            held: 0,
            memory,
            wanted: 0,
            replies: Replies::default(),
            stalled: false,
            blocked: false,
            leaving: false,
            deaf: false,
            hung_up: false,
            ended: false,
        }
    }

    /// Whether the client has as much in work as it may.
    fn is_full(&self) -> bool {
        self.pending.len() >= MAX_PENDING || !self.may_hold(self.wanted) || !self.memory.has_room(self.wanted)
    }

    /// Whether so many bytes more are within its own limit.
    fn may_hold(&self, more: usize) -> bool {
        self.held + self.replies.len() + more <= MAX_BYTES
    }

    /// Tells how much memory it holds.
    fn settle(&mut self) {
        self.memory.hold(self.held + self.replies.len());
    }

    /// Reads what the socket has, as much as there is room for. Whether there may be more; an error when it was closed.
    fn read(&mut self) -> Result<bool, Gone> {
        // A large write's data goes straight to where it belongs.
        if self.start == self.end
            && let Some(Coming { buffer: Some(buffer), filled, .. }) = &mut self.coming
        {
            let mut buffer = buffer.borrow_mut();
            let wanted = buffer.len() - *filled;
            let count = receive(&mut self.stream, &mut buffer[*filled..])?;
            *filled += count.unwrap_or(0);
            return Ok(count == Some(wanted));
        }
        if self.start > 0 {
            self.inbox.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let room = self.inbox.len() - self.end;
        let count = receive(&mut self.stream, &mut self.inbox[self.end..])?;
        self.end += count.unwrap_or(0);
        Ok(count == Some(room))
    }

    /// Reads what a client that has hung up left in its socket, although none of it can be understood yet. A socket that
    /// nobody writes to holds little. Whether there may be more.
    ///
    /// # Errors
    /// When it left without a good-bye: nobody waits for the replies.
    fn read_rest(&mut self) -> Result<bool, Gone> {
        if self.end == self.inbox.len() {
            if self.end >= MAX_REST {
                return Err(Gone::because("hung up"));
            }
            self.inbox.resize(self.end + READ_SIZE, 0);
        }
        match self.stream.read(&mut self.inbox[self.end..]) {
            Ok(0) => {
                (self.ended, self.stalled) = (true, true);
                let data = self.coming.as_ref().map_or(0, |coming| coming.request.len.get() as usize - coming.filled);
                match says_good_bye(&self.inbox[self.start..self.end], data) {
                    true => Ok(false),
                    false => Err(Gone::because("hung up")),
                }
            }
            Ok(count) => {
                self.end += count;
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                // What was reported has passed.
                self.hung_up = false;
                Ok(false)
            }
            Err(error) => Err(Gone::because(error.to_string())),
        }
    }

    /// Understands what was read, as far as the client may go on.
    fn parse(&mut self, intake: &mut Intake<'_>) -> Result<(), Gone> {
        self.stalled = false;
        while !self.leaving && !self.is_full() && self.share > 0 {
            if let Some(coming) = self.coming.take() {
                match self.fill(coming) {
                    Ok(whole) => self.data_has_come(whole, intake),
                    Err(partial) => {
                        self.coming = Some(partial);
                        return Ok(());
                    }
                }
                continue;
            }
            let Ok((request, _)) = Request::read_from_prefix(&self.inbox[self.start..self.end]) else {
                return Ok(());
            };
            self.wanted = needs(&request, &self.info);
            if self.is_full() {
                break;
            }
            self.wanted = 0;
            self.start += size_of::<Request>();
            self.share -= 1;
            self.begin(request, intake)?;
        }
        self.stalled = true;
        Ok(())
    }

    /// Moves data that was read to the write that it belongs to; whether that is whole now.
    fn fill(&mut self, mut coming: Coming) -> Result<Coming, Coming> {
        let wanted = coming.request.len.get() as usize - coming.filled;
        let now = wanted.min(self.end - self.start);
        if let Some(buffer) = &coming.buffer {
            let target = &mut buffer.borrow_mut()[coming.filled..coming.filled + now];
            target.copy_from_slice(&self.inbox[self.start..self.start + now]);
        }
        self.start += now;
        coming.filled += now;
        if now == wanted { Ok(coming) } else { Err(coming) }
    }

    fn begin(&mut self, request: Request, intake: &mut Intake<'_>) -> Result<(), Gone> {
        if request.magic.get() != REQUEST_MAGIC {
            return Err(Gone::because(format!("a request begins with {:#010x}", request.magic.get())));
        }
        let (kind, len) = (request.kind.get(), request.len.get());
        let refusal = check(&request, &self.info).err();
        match kind {
            command::DISC => self.leaving = true,
            command::WRITE if len > MAX_REQUEST => {
                return Err(Gone::because(format!("a write of {len} bytes, and at most {MAX_REQUEST} are taken")));
            }
            command::WRITE => {
                let buffer = refusal.is_none().then(|| new_buffer(len as usize));
                self.held += buffer.as_ref().map_or(0, |_| len as usize);
                self.settle();
                self.coming = Some(Coming { request, buffer, refusal, filled: 0 });
            }
            _ if refusal.is_some() => self.refuse(&request, refusal),
            command::READ => {
                self.held += len as usize;
                self.settle();
                self.submit(&request, HostMem::whole(&new_buffer(len as usize)), intake);
            }
            command::TRIM | command::WRITE_ZEROES => {
                let key = self.pending.insert(Pending::of(&request, HostMem::none()));
                self.feed.push(key, request);
                self.feed_drive(intake);
            }
            _ => self.submit(&request, HostMem::none(), intake),
        }
        Ok(())
    }

    fn data_has_come(&mut self, coming: Coming, intake: &mut Intake<'_>) {
        match &coming.buffer {
            Some(buffer) => self.submit(&coming.request, HostMem::whole(buffer), intake),
            None => self.refuse(&coming.request, coming.refusal),
        }
    }

    fn refuse(&mut self, request: &Request, refusal: Option<Refusal>) {
        let Some(Refusal { error, reason }) = refusal else { return };
        match request.kind.get() {
            command::READ => self.replies.failed_read(request.cookie.get(), error, reason, self.structured),
            _ => self.replies.simple(request.cookie.get(), error),
        }
    }

    fn submit(&mut self, request: &Request, mem: HostMem, intake: &mut Intake<'_>) {
        let key = self.pending.insert(Pending::of(request, mem.clone()));
        let count = submit_as(key, request, &self.info, &mem, intake);
        self.pending.get_mut(key).expect("just inserted").left = count;
    }

    /// Gives the drive as much of the requests without data as it may have.
    fn feed_drive(&mut self, intake: &mut Intake<'_>) {
        while let Some((key, part, last)) = self.feed.next() {
            let count = submit_as(key, &part, &self.info, &HostMem::none(), intake);
            let pending = self.pending.get_mut(key).expect("it has parts to come");
            pending.left += count - u32::from(last);
            pending.affected += u64::from(part.len.get());
        }
    }

    /// Who hangs up between two requests with nothing in work has left in order: many clients never say good-bye.
    fn excused(&self, gone: Gone) -> Gone {
        match self.pending.is_empty() && self.coming.is_none() && self.start == self.end && self.replies.len() == 0 {
            true => Gone::quietly(),
            false => gone,
        }
    }

    /// Sends what can be sent.
    fn send(&mut self) -> Result<(), Gone> {
        self.blocked = false;
        while self.replies.len() > 0 && !self.deaf {
            match self.stream.write(self.replies.waiting()) {
                Ok(count) => self.replies.advance(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.blocked = true;
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // What it asked for before it said good-bye is done whether it waits for the replies or not.
                Err(_) if self.leaving => self.deaf = true,
                Err(error) => return Err(Gone::because(error.to_string())),
            }
        }
        if self.deaf {
            self.replies.advance(self.replies.len());
        }
        match self.leaving && self.pending.is_empty() {
            true => Err(Gone::quietly()),
            false => Ok(()),
        }
    }

    fn finish(&mut self, pending: &Pending) {
        self.held -= pending.mem.len();
        let Pending { cookie, kind, offset, mem, failure, .. } = pending;
        match (*kind, failure) {
            (command::READ, None) => self.replies.data(*cookie, *offset, mem, self.structured),
            (command::READ, Some(status)) => {
                self.replies.failed_read(*cookie, error_of(*status), &status.to_string(), self.structured);
            }
            (_, failure) => self.replies.simple(*cookie, failure.map_or(0, error_of)),
        }
    }
}

impl Pending {
    /// A request of which commands are to come.
    fn of(request: &Request, mem: HostMem) -> Pending {
        let (cookie, kind, offset) = (request.cookie.get(), request.kind.get(), request.offset.get());
        Pending { cookie, kind, offset, mem, left: 1, affected: 0, failure: None }
    }

    /// A command is done; the bytes that it affected. All parts but the last are of one length, so that the sum is right
    /// in whatever order they end.
    fn part_done(&mut self) -> u64 {
        let bytes = self.affected.min(PART.into());
        self.affected -= bytes;
        bytes
    }
}

/// Submits a request's commands as those of `key`; how many there are.
fn submit_as(key: Key, request: &Request, info: &DriveInfo, mem: &HostMem, intake: &mut Intake<'_>) -> u32 {
    let mut count = 0;
    commands(request, info, mem, |entry, part| {
        intake.submit(key.to_bits(), entry, part);
        count += 1;
    });
    count
}

/// Bytes of memory that a request takes.
fn needs(request: &Request, info: &DriveInfo) -> usize {
    let has_data = matches!(request.kind.get(), command::READ | command::WRITE);
    if has_data && check(request, info).is_ok() { request.len.get() as usize } else { 0 }
}

fn new_buffer(len: usize) -> Buffer {
    Rc::new(std::cell::RefCell::new(vec![0; len]))
}

/// Bytes read; `None` when there are none for now.
fn receive(stream: &mut Stream, into: &mut [u8]) -> Result<Option<usize>, Gone> {
    match stream.read(into) {
        Ok(0) if !into.is_empty() => Err(Gone::because("hung up")),
        Ok(count) => Ok(Some(count)),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(None),
        Err(error) => Err(Gone::because(error.to_string())),
    }
}

/// Whether requests end with a good-bye. First come `data` bytes of a write that has begun.
fn says_good_bye(mut bytes: &[u8], mut data: usize) -> bool {
    while let Some(after) = bytes.get(data..)
        && let Ok((request, rest)) = Request::read_from_prefix(after)
    {
        match request.kind.get() {
            command::DISC => return true,
            command::WRITE => data = request.len.get() as usize,
            _ => data = 0,
        }
        bytes = rest;
    }
    false
}

impl Client for Session {
    fn socket(&self) -> Option<BorrowedFd<'_>> {
        Some(self.stream.as_fd())
    }

    fn interest(&self) -> Interest {
        Interest { read: !self.leaving && !self.ended && !self.is_full(), write: self.blocked }
    }

    fn hung_up(&mut self) {
        self.hung_up = true;
    }

    fn take_in(&mut self, intake: &mut Intake<'_>) -> Result<bool, Gone> {
        let mut came = self.feed.has_next();
        self.feed_drive(intake);
        self.share = REQUESTS_A_TURN;
        if self.stalled {
            let pending = self.pending.len();
            self.parse(intake)?;
            came |= self.pending.len() != pending || self.share < REQUESTS_A_TURN;
        }
        for _ in 0..READS_A_TURN {
            if self.leaving || self.ended {
                break;
            }
            if self.is_full() && self.hung_up {
                came = true;
                if self.read_rest()? {
                    continue;
                }
                break;
            }
            if self.is_full() || self.share == 0 {
                break;
            }
            let before = (self.end - self.start, self.coming.as_ref().map_or(0, |coming| coming.filled));
            let more = self.read().map_err(|gone| self.excused(gone))?;
            came |= before != (self.end - self.start, self.coming.as_ref().map_or(0, |coming| coming.filled));
            self.parse(intake)?;
            if !more {
                break;
            }
        }
        Ok(came)
    }

    fn complete(&mut self, released: Released) {
        let key = Key::from_bits(released.tag);
        let Some(pending) = self.pending.get_mut(key) else { return };
        if !released.completion.status.is_success() {
            pending.failure = pending.failure.or(Some(released.completion.status));
        }
        pending.left -= 1;
        self.feed.done(pending.part_done());
        if pending.left == 0 {
            let pending = self.pending.remove(key).expect("just seen");
            self.finish(&pending);
            self.settle();
        }
    }

    fn flush(&mut self) -> Result<(), Gone> {
        let flushed = self.send();
        self.settle();
        flushed
    }

    fn is_starved(&self) -> bool {
        self.stalled && self.may_hold(self.wanted) && !self.memory.has_room(self.wanted)
    }

    fn has_more(&self) -> bool {
        let reads_rest = self.hung_up && !self.ended && !self.leaving && self.is_full();
        self.feed.has_next() || reads_rest || (self.stalled && !self.leaving && !self.is_full())
    }

    fn is_flushed(&self) -> bool {
        self.replies.len() == 0
    }
}
