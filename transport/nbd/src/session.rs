//! One client after negotiation: bytes from its socket become requests, and replies are sent back.
//!
//! A turn of the loop does a bounded amount of work for a client, in requests and in bytes, because all other clients wait
//! meanwhile.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};

use nandscape_drive::DriveInfo;
use nandscape_sim::slots::Key;
use nandscape_transport_reactor::client::{Client, Gone, Intake, Interest};
use nandscape_transport_reactor::listening::ClientSlot;
use nandscape_transport_reactor::socket::Stream;
use nandscape_transport_reactor::{Released, Share};
use nandscape_wire_nbd::{REQUEST_MAGIC, Request, command};
use zerocopy::FromBytes;

use crate::handshake::MAX_REQUEST;
use crate::translate::check;
use crate::work::{Filling, Next, Work};

/// Bytes read from a socket at a time, except data that is read straight into its buffer.
const READ_SIZE: usize = 64 << 10;
/// The most bytes read ahead from a client that has hung up: more than a socket holds.
const MAX_REST: usize = 16 << 20;
/// Requests parsed in a turn. This bounds refused requests, which move no data.
const REQUESTS_A_TURN: usize = 256;
/// Bytes received in a turn, bytes requested of the drive, and bytes sent at a time: one part of a request.
const BYTES_A_TURN: usize = 256 << 10;

/// See the module.
pub(crate) struct Session {
    /// Released before the socket is closed, so that a client that sees the close finds the slot free.
    _slot: ClientSlot,
    stream: Stream,
    work: Work,
    /// Bytes received and not yet parsed, from `start` to `end`.
    inbox: Vec<u8>,
    start: usize,
    end: usize,
    /// A write whose data is still arriving.
    coming: Option<Coming>,
    /// The rest of its share of this turn.
    turn: Turn,
    /// Parsing stopped before the end of the inbox.
    stalled: bool,
    /// The socket's send buffer is full.
    blocked: bool,
    /// The client has sent DISC: its requests under way are finished, and nothing more is read.
    leaving: bool,
    /// It has sent DISC and receives no more replies.
    discards_replies: bool,
    /// It has hung up; its socket may still hold requests.
    hung_up: bool,
    /// It has hung up, and its socket is empty.
    ended: bool,
}

/// The rest of a client's share of a turn.
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

/// A write whose data is still arriving.
struct Coming {
    request: Key,
    /// The buffer that is being filled.
    part: Option<Filling>,
}

/// The progress of a write's data.
enum Data {
    All,
    /// Nothing is left in the inbox.
    More(Coming),
    /// It has to wait for memory.
    Waits(Coming),
}

impl Session {
    pub(crate) fn new(stream: Stream, info: DriveInfo, structured: bool, slot: ClientSlot, memory: Share) -> Session {
        Session {
            _slot: slot,
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
            discards_replies: false,
            hung_up: false,
            ended: false,
        }
    }

    /// Whether the next request, or the next data of a write, can be received.
    fn has_room(&self) -> bool {
        match &self.coming {
            Some(Coming { part: Some(_), .. }) => true,
            Some(Coming { request, part: None }) => self.work.can_receive(*request),
            None => !self.work.is_full(),
        }
    }

    /// Whether to read the rest of the socket ahead of time, to see whether it ends with DISC.
    fn reads_ahead(&self) -> bool {
        self.hung_up && !self.ended && !self.leaving && !self.has_room()
    }

    /// Reads from the socket as many bytes as fit. Returns whether there may be more.
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

    /// Reads data of a write straight to its destination.
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
            // Only data that has arrived holds a buffer.
            coming.part = None;
        }
        self.coming = Some(coming);
        Ok(full)
    }

    /// Reads the rest of the socket of a client that has hung up, ahead of parsing it. A closed socket holds little.
    /// Returns whether there may be more.
    ///
    /// # Errors
    /// When the rest does not end with DISC: the client has broken off, and its requests are aborted.
    fn read_ahead(&mut self) -> Result<bool, Gone> {
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
                match ends_with_disc(&self.inbox[self.start..self.end], data) {
                    true => Ok(false),
                    false => Err(Gone::because("hung up")),
                }
            }
            Ok(count) => {
                self.end += count;
                self.turn.received(count);
                Ok(true)
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::ConnectionReset) => {
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                // The reported error is over.
                self.hung_up = false;
                Ok(false)
            }
            Err(error) => Err(Gone::because(error.to_string())),
        }
    }

    /// Whether a client that takes no replies any more has closed its socket with DISC at its end.
    ///
    /// # Errors
    /// When it has closed its socket without.
    fn has_ended_with_disc(&mut self) -> Result<bool, Gone> {
        while !self.ended && self.read_ahead()? {}
        Ok(self.ended)
    }

    /// Parses the inbox as far as limits and memory allow. Returns whether any of it was parsed.
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

    /// Moves read data to its write, and parts with all of their data to the drive.
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

    /// A client that hangs up with no request under way has left in order: many clients never send DISC.
    fn excused(&self, gone: Gone) -> Gone {
        let between = self.coming.is_none() && self.start == self.end;
        match between && self.work.is_idle() && self.work.replies.is_empty() {
            true => Gone::quietly(),
            false => gone,
        }
    }

    /// Sends some of the data that can be sent.
    fn send(&mut self) -> Result<(), Gone> {
        self.blocked = false;
        match self.work.broken() {
            // Requests before DISC are done.
            Some(_) if self.leaving => self.discards_replies = true,
            Some(reason) => return Err(Gone::because(reason)),
            None => {}
        }
        let mut left = BYTES_A_TURN;
        while !self.work.replies.is_empty() && !self.discards_replies && left > 0 {
            match self.work.send(&mut self.stream, left) {
                Ok(count) => left = left.saturating_sub(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.blocked = true;
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Requests before DISC are done whether or not the client waits for the replies.
                Err(_) if self.leaving || self.has_ended_with_disc()? => self.discards_replies = true,
                Err(error) => return Err(Gone::because(error.to_string())),
            }
        }
        if self.discards_replies {
            self.work.replies.clear();
        }
        match self.leaving && self.work.is_idle() && self.work.replies.is_empty() {
            true => Err(Gone::quietly()),
            false => Ok(()),
        }
    }
}

/// Bytes read: 0 when there are none for now. A reset is reported once, when the client has closed its socket with replies
/// in it; the data that it sent before can still be read from a unix socket.
fn receive(stream: &mut Stream, into: &mut [u8]) -> Result<usize, Gone> {
    match stream.read(into) {
        Ok(0) if !into.is_empty() => Err(Gone::because("hung up")),
        Ok(count) => Ok(count),
        Err(error) => match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted | io::ErrorKind::ConnectionReset => Ok(0),
            _ => Err(Gone::because(error.to_string())),
        },
    }
}

/// Whether requests end with DISC. The first `data` bytes are data of a write.
fn ends_with_disc(mut bytes: &[u8], mut data: usize) -> bool {
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

    fn is_deserted(&mut self) -> bool {
        self.hung_up && !self.leaving && self.has_ended_with_disc().is_err()
    }

    fn receive_arrivals(&mut self, intake: &mut Intake<'_>) -> Result<bool, Gone> {
        self.turn = Turn::WHOLE;
        let mut came = self.stalled && self.parse(intake)?;
        while !self.leaving && !self.ended && self.turn.bytes > 0 && self.turn.requests > 0 {
            let left = self.turn.bytes;
            let more = match self.has_room() {
                true => self.read().map_err(|gone| self.excused(gone))?,
                false if self.hung_up => self.read_ahead()?,
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
        self.work.can_feed() || can_parse || self.reads_ahead() || can_send
    }

    fn is_flushed(&self) -> bool {
        self.work.replies.is_empty()
    }
}
