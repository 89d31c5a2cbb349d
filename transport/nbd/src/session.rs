//! One client after negotiation: bytes from its socket become requests, and replies go back.
//!
//! What a client may do in one turn of the loop is bounded, in requests and in bytes: copies for one client are time that
//! all the others wait.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};

use nandscape_drive::DriveInfo;
use nandscape_sim::slots::Key;
use nandscape_transport_reactor::client::{Client, Gone, Intake, Interest};
use nandscape_transport_reactor::socket::Stream;
use nandscape_transport_reactor::{Released, Share};
use nandscape_wire_nbd::{REQUEST_MAGIC, Request, command};
use zerocopy::FromBytes;

use crate::handshake::MAX_REQUEST;
use crate::listener::Seat;
use crate::translate::check;
use crate::work::{Filling, Next, Work};

/// Bytes read from a socket at a time, but for data that goes straight to its buffer.
const READ_SIZE: usize = 64 << 10;
/// The most that is read of what a client sent before it hung up: more than a socket holds.
const MAX_REST: usize = 16 << 20;
/// Requests understood in a turn: those that are refused cost nothing but the time of the loop.
const REQUESTS_A_TURN: usize = 256;
/// Bytes received in a turn, bytes that the drive is asked for, and bytes sent at a time: one part of a request.
const BYTES_A_TURN: usize = 256 << 10;

/// See the module.
pub(crate) struct Session {
    /// Given up before the socket is closed: who sees that finds the seat free.
    _seat: Seat,
    stream: Stream,
    work: Work,
    /// What was read and not yet understood, from `start` to `end`.
    inbox: Vec<u8>,
    start: usize,
    end: usize,
    /// A write whose data is still coming.
    coming: Option<Coming>,
    /// What it may still do in this turn.
    turn: Turn,
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

/// What a client may do in a turn.
struct Turn {
    requests: usize,
    /// Bytes received.
    bytes: usize,
}

impl Turn {
    const WHOLE: Turn = Turn { requests: REQUESTS_A_TURN, bytes: BYTES_A_TURN };

    fn received(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

/// A write whose data is still coming.
struct Coming {
    request: Key,
    /// The buffer that is being filled.
    part: Option<Filling>,
}

/// How far the data of a write has come.
enum Data {
    All,
    /// Nothing is left in the inbox.
    More(Coming),
    /// There is no memory for it now.
    Waits(Coming),
}

impl Session {
    pub(crate) fn new(stream: Stream, info: DriveInfo, structured: bool, seat: Seat, memory: Share) -> Session {
        Session {
            _seat: seat,
            stream,
            work: Work::new(info, structured, memory),
            inbox: vec![0; READ_SIZE],
            start: 0,
            end: 0,
            coming: None,
            turn: Turn::WHOLE,
            stalled: false,
            blocked: false,
            leaving: false,
            deaf: false,
            hung_up: false,
            ended: false,
        }
    }

    /// Whether what comes next can be taken.
    fn has_room(&self) -> bool {
        match &self.coming {
            Some(Coming { part: Some(_), .. }) => true,
            Some(Coming { request, part: None }) => self.work.can_receive(*request),
            None => !self.work.is_full(),
        }
    }

    /// Whether the rest of what the client sent is to be read although it cannot be understood yet.
    fn looks_for_good_bye(&self) -> bool {
        self.hung_up && !self.ended && !self.leaving && !self.has_room()
    }

    /// Reads what the socket has, as much as there is room for. Whether there may be more.
    ///
    /// # Errors
    /// When it was closed.
    fn read(&mut self) -> Result<bool, Gone> {
        if self.start == self.end
            && let Some(coming) = self.coming.take()
        {
            return self.read_data(coming);
        }
        if self.start > 0 {
            self.inbox.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let room = self.inbox.len() - self.end;
        let count = receive(&mut self.stream, &mut self.inbox[self.end..])?;
        self.end += count;
        self.turn.received(count);
        Ok(count == room)
    }

    /// Reads data of a write straight to where it belongs.
    fn read_data(&mut self, mut coming: Coming) -> Result<bool, Gone> {
        if coming.part.is_none() {
            match self.work.receive(coming.request) {
                Next::Fill(part) => coming.part = Some(part),
                Next::Wait => {
                    self.coming = Some(coming);
                    return Ok(false);
                }
                Next::Discard(_) => {}
            }
        }
        let Some(part) = &mut coming.part else {
            let count = receive(&mut self.stream, &mut self.inbox)?;
            (self.start, self.end) = (0, count);
            self.turn.received(count);
            self.coming = Some(coming);
            return Ok(count == self.inbox.len());
        };
        let count = receive(&mut self.stream, &mut part.buffer.bytes_mut()[part.filled..])?;
        part.filled += count;
        self.turn.received(count);
        let full = part.is_full();
        if part.filled == 0 {
            // A buffer is held for data that has come, not for data that may.
            coming.part = None;
        }
        self.coming = Some(coming);
        Ok(full)
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
                let data = self.coming.as_ref().map_or(0, |Coming { request, part }| {
                    self.work.rest_of_write(*request) as usize - part.as_ref().map_or(0, |part| part.filled)
                });
                match says_good_bye(&self.inbox[self.start..self.end], data) {
                    true => Ok(false),
                    false => Err(Gone::because("hung up")),
                }
            }
            Ok(count) => {
                self.end += count;
                self.turn.received(count);
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

    /// Understands what was read, as far as the client may go on. Whether anything was.
    fn parse(&mut self, intake: &mut Intake<'_>) -> Result<bool, Gone> {
        let (start, before) = (self.start, self.turn.requests);
        self.stalled = false;
        while !self.leaving {
            if let Some(coming) = self.coming.take() {
                match self.take_data(coming, intake) {
                    Data::All => continue,
                    Data::More(coming) => {
                        self.coming = Some(coming);
                        break;
                    }
                    Data::Waits(coming) => {
                        self.coming = Some(coming);
                        self.stalled = true;
                        break;
                    }
                }
            }
            let Ok((request, _)) = Request::read_from_prefix(&self.inbox[self.start..self.end]) else { break };
            if self.work.is_full() || self.turn.requests == 0 {
                self.stalled = true;
                break;
            }
            self.start += size_of::<Request>();
            self.turn.requests -= 1;
            self.begin(request, intake)?;
        }
        Ok(self.start != start || self.turn.requests != before)
    }

    /// Moves data that was read to the write that it belongs to, and parts of which all has come to the drive.
    fn take_data(&mut self, mut coming: Coming, intake: &mut Intake<'_>) -> Data {
        loop {
            let came = self.end - self.start;
            let mut part = match coming.part.take() {
                Some(part) => part,
                None if came == 0 && self.work.rest_of_write(coming.request) > 0 => return Data::More(coming),
                None => match self.work.receive(coming.request) {
                    Next::Fill(part) => part,
                    Next::Wait => return Data::Waits(coming),
                    Next::Discard(rest) => {
                        let now = came.min(rest as usize);
                        self.start += now;
                        self.work.skip(coming.request, now as u32);
                        return if now == rest as usize { Data::All } else { Data::More(coming) };
                    }
                },
            };
            let mut buffer = part.buffer.bytes_mut();
            let now = came.min(buffer.len() - part.filled);
            buffer[part.filled..part.filled + now].copy_from_slice(&self.inbox[self.start..self.start + now]);
            drop(buffer);
            part.filled += now;
            self.start += now;
            if !part.is_full() {
                coming.part = Some(part);
                return Data::More(coming);
            }
            self.work.submit_write(coming.request, part, intake);
            if self.work.rest_of_write(coming.request) == 0 {
                return Data::All;
            }
        }
    }

    fn begin(&mut self, request: Request, intake: &mut Intake<'_>) -> Result<(), Gone> {
        if request.magic.get() != REQUEST_MAGIC {
            return Err(Gone::because(format!("a request begins with {:#010x}", request.magic.get())));
        }
        let (kind, len) = (request.kind.get(), request.len.get());
        let refusal = check(&request, self.work.info(), self.work.is_structured()).err();
        match (kind, refusal) {
            (command::DISC, _) => self.leaving = true,
            (command::WRITE, _) if len > MAX_REQUEST => {
                return Err(Gone::because(format!("a write of {len} bytes, and at most {MAX_REQUEST} are taken")));
            }
            (command::WRITE, refusal) => {
                let request = self.work.start_write(request, refusal);
                self.coming = Some(Coming { request, part: None });
            }
            (_, Some(refusal)) => self.work.refuse(request, refusal),
            (_, None) => self.work.start(request, intake),
        }
        Ok(())
    }

    /// Who hangs up between two requests with nothing in work has left in order: many clients never say good-bye.
    fn excused(&self, gone: Gone) -> Gone {
        let between = self.coming.is_none() && self.start == self.end;
        match between && self.work.is_idle() && self.work.replies.is_empty() {
            true => Gone::quietly(),
            false => gone,
        }
    }

    /// Sends some of what can be sent.
    fn send(&mut self) -> Result<(), Gone> {
        self.blocked = false;
        let mut left = BYTES_A_TURN;
        while !self.work.replies.is_empty() && !self.deaf && left > 0 {
            match self.work.replies.send(&mut self.stream, left) {
                Ok(count) => left = left.saturating_sub(count),
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
            self.work.replies.clear();
        }
        match self.leaving && self.work.is_idle() && self.work.replies.is_empty() {
            true => Err(Gone::quietly()),
            false => Ok(()),
        }
    }
}

/// Bytes read: 0 when there are none for now.
fn receive(stream: &mut Stream, into: &mut [u8]) -> Result<usize, Gone> {
    match stream.read(into) {
        Ok(0) if !into.is_empty() => Err(Gone::because("hung up")),
        Ok(count) => Ok(count),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(0),
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
        Interest { read: !self.leaving && !self.ended && self.has_room(), write: self.blocked }
    }

    fn hung_up(&mut self) {
        self.hung_up = true;
    }

    fn take_in(&mut self, intake: &mut Intake<'_>) -> Result<bool, Gone> {
        self.turn = Turn::WHOLE;
        let mut came = self.stalled && self.parse(intake)?;
        while !self.leaving && !self.ended && self.turn.bytes > 0 && self.turn.requests > 0 {
            let left = self.turn.bytes;
            let more = match self.has_room() {
                true => self.read().map_err(|gone| self.excused(gone))?,
                false if self.hung_up => self.read_rest()?,
                false => break,
            };
            came |= self.turn.bytes != left;
            came |= self.parse(intake)?;
            if !more {
                break;
            }
        }
        came |= self.work.feed(BYTES_A_TURN, intake);
        Ok(came)
    }

    fn complete(&mut self, released: Released) {
        self.work.complete(&released);
    }

    fn flush(&mut self) -> Result<(), Gone> {
        self.send()
    }

    fn has_more(&self) -> bool {
        let can_parse = self.stalled && !self.leaving && self.has_room();
        let can_send = !self.blocked && !self.work.replies.is_empty();
        self.work.can_feed() || can_parse || self.looks_for_good_bye() || can_send
    }

    fn is_flushed(&self) -> bool {
        self.work.replies.is_empty()
    }
}
