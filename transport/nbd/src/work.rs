//! The requests of one client under way: their parts are sent to the drive, and its completions become replies.
//!
//! A buffer is taken for a part only when the part is sent to the drive, or when data of a write arrives. It is freed
//! when the part was written or sent. Any client can therefore continue with its few guaranteed buffers. Long reads
//! that must be answered in one piece take all of their memory if it is free, and are [`Streamed`] otherwise.

use std::collections::VecDeque;
use std::rc::Rc;

use nandscape_drive::{DriveInfo, HostMem};
use nandscape_sim::slots::{Key, Slots};
use nandscape_transport_reactor::{Grant, Intake, Loan, MAX_WINDOW, Released, Share, Window};
use nandscape_wire_nbd::{Request, command, error, flag};
use nandscape_wire_nvme::Status;

use crate::parts::{DATA_PART, PART, next_part};
use crate::replies::Replies;
use crate::streamed::Streamed;
use crate::translate::{Refusal, commands, error_of};

/// The most requests under way of a client.
const MAX_REQUESTS: usize = 1_024;
/// Pieces of replies that may wait to be sent before more requests are heard.
const MAX_REPLIES: usize = 4_096;
/// Bytes that a client's commands without data in the drive may affect.
const MAX_AFFECTED: u64 = 32 << 20;

/// See the module.
pub(crate) struct Work {
    info: DriveInfo,
    structured: bool,
    /// The client's part of the memory of all clients.
    share: Share,
    /// The limit on the bytes of reads and their replies.
    window: Window,
    requests: Slots<Pending>,
    parts: Slots<Part>,
    /// Reads with parts that have not been sent to the drive yet.
    reads: VecDeque<Key>,
    /// The same for requests that change much without data.
    changes: VecDeque<Key>,
    /// Bytes that parts of such requests in the drive affect.
    affected: u64,
    /// Parts of reads in the drive.
    reading: u32,
    /// Their bytes.
    reading_bytes: usize,
    /// Why the connection has to end: a reply that was begun cannot be completed.
    broken: Option<String>,
    /// Replies to be sent.
    pub(crate) replies: Replies,
}

/// A request that was not answered.
struct Pending {
    request: Request,
    /// Bytes of it that were sent to the drive, or discarded.
    given: u32,
    /// Parts in the drive.
    parts: u32,
    /// The first failure.
    failure: Option<Failure>,
    /// Where all of a read is kept that is answered in one piece.
    whole: Option<Whole>,
    /// The same for a read without memory for all of its data.
    streamed: Option<Streamed>,
}

/// The memory of a long read that is answered in one piece.
struct Whole {
    grant: Grant,
    /// Buffers of completed parts, in order.
    read: Vec<Option<Rc<Loan>>>,
}

/// A part of a request in the drive.
struct Part {
    request: Key,
    offset: u64,
    len: u32,
    buffer: Option<Rc<Loan>>,
    /// Commands that have not completed.
    commands: u32,
    failure: Option<Status>,
}

/// A part of a write of which the data is coming.
pub(crate) struct Filling {
    offset: u64,
    len: u32,
    pub(crate) filled: usize,
    pub(crate) buffer: Rc<Loan>,
}

/// The destination of a write's next data.
pub(crate) enum Next {
    /// Its data is read into this buffer.
    Fill(Filling),
    /// This many bytes are discarded.
    Discard(u32),
    /// It has to wait for memory.
    Wait,
}

enum Failure {
    Refused(Refusal),
    Drive(Status),
}

const OUT_OF_MEMORY: Failure =
    Failure::Refused(Refusal { error: error::ENOMEM, reason: "the server is out of memory" });

impl Failure {
    fn error(&self) -> u32 {
        match self {
            Failure::Refused(refusal) => refusal.error,
            Failure::Drive(status) => error_of(*status),
        }
    }

    fn reason(&self) -> String {
        match self {
            Failure::Refused(refusal) => refusal.reason.to_owned(),
            Failure::Drive(status) => status.to_string(),
        }
    }
}

impl Filling {
    /// Whether all of its data has arrived.
    pub(crate) fn is_full(&self) -> bool {
        self.filled == self.len as usize
    }
}

impl Pending {
    /// Bytes that were not sent to the drive.
    fn rest(&self) -> u32 {
        self.request.len.get() - self.given
    }

    fn is_done(&self) -> bool {
        self.rest() == 0 && self.parts == 0
    }

    /// Whether it is a read whose parts must be sent together. Without structured replies, no error can be reported
    /// after the first data.
    fn is_whole(&self, structured: bool) -> bool {
        let in_parts = structured && self.request.flags.get() & flag::DF == 0;
        !in_parts && self.request.len.get() > DATA_PART
    }

    /// Whether it is such a read, and no part of it was sent to the drive.
    fn is_unbegun_whole(&self, structured: bool) -> bool {
        self.is_whole(structured) && self.whole.is_none() && self.streamed.is_none()
    }
}

impl Work {
    pub(crate) fn new(info: DriveInfo, structured: bool, share: Share) -> Work {
        Work {
            info,
            structured,
            share,
            window: Window::default(),
            requests: Slots::new(),
            parts: Slots::new(),
            reads: VecDeque::new(),
            changes: VecDeque::new(),
            affected: 0,
            reading: 0,
            reading_bytes: 0,
            broken: None,
            replies: Replies::default(),
        }
    }

    /// The drive's description.
    pub(crate) fn info(&self) -> &DriveInfo {
        &self.info
    }

    /// Whether the client uses structured replies.
    pub(crate) fn is_structured(&self) -> bool {
        self.structured
    }

    /// Why the connection has to end, if it has to.
    pub(crate) fn broken(&self) -> Option<&str> {
        self.broken.as_deref()
    }

    /// Whether no request is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.requests.is_empty()
    }

    /// Whether the client has its maximum of requests under way.
    pub(crate) fn is_full(&self) -> bool {
        self.requests.len() >= MAX_REQUESTS || self.replies.len() >= MAX_REPLIES
    }

    /// Takes a sound request that brings no data.
    pub(crate) fn start(&mut self, request: Request, intake: &mut Intake<'_>) {
        let key = self.insert(request, None);
        match request.kind.get() {
            command::READ => self.reads.push_back(key),
            command::TRIM | command::WRITE_ZEROES => self.changes.push_back(key),
            _ => self.submit(key, (request.offset.get(), request.len.get()), None, intake),
        }
    }

    /// Answers a request that is not sound and brings no data.
    pub(crate) fn refuse(&mut self, request: Request, refusal: Refusal) {
        let key = self.insert(request, Some(refusal));
        self.skip(key, request.len.get());
    }

    /// Takes a write whose data is still to arrive.
    pub(crate) fn start_write(&mut self, request: Request, refusal: Option<Refusal>) -> Key {
        self.insert(request, refusal)
    }

    fn insert(&mut self, request: Request, refusal: Option<Refusal>) -> Key {
        let failure = refusal.map(Failure::Refused);
        self.requests.insert(Pending { request, given: 0, parts: 0, failure, whole: None, streamed: None })
    }

    /// Bytes of a write that were neither submitted nor discarded.
    pub(crate) fn rest_of_write(&self, key: Key) -> u32 {
        self.requests.get(key).map_or(0, Pending::rest)
    }

    /// Whether the data of a write can be received now.
    pub(crate) fn can_receive(&self, key: Key) -> bool {
        let Some(pending) = self.requests.get(key) else { return false };
        pending.failure.is_some() || self.has_room(next_part(&pending.request, pending.given).1)
    }

    /// The memory for the next data of a write.
    pub(crate) fn receive(&mut self, key: Key) -> Next {
        let Some(pending) = self.requests.get_mut(key) else { return Next::Discard(0) };
        if pending.failure.is_some() {
            return Next::Discard(pending.rest());
        }
        let (offset, len) = next_part(&pending.request, pending.given);
        if self.share.held() + len as usize > MAX_WINDOW {
            return Next::Wait;
        }
        let Some(mut grant) = self.share.grant(len as usize) else { return Next::Wait };
        match grant.lend(len as usize) {
            Some(buffer) => Next::Fill(Filling { offset, len, filled: 0, buffer }),
            None => {
                pending.failure = Some(OUT_OF_MEMORY);
                Next::Discard(pending.rest())
            }
        }
    }

    /// Discards bytes of a request.
    pub(crate) fn skip(&mut self, key: Key, bytes: u32) {
        let Some(pending) = self.requests.get_mut(key) else { return };
        pending.given += bytes;
        self.answer_if_done(key);
    }

    /// All data of a part of a write has arrived.
    pub(crate) fn submit_write(&mut self, key: Key, part: Filling, intake: &mut Intake<'_>) {
        self.submit(key, (part.offset, part.len), Some(part.buffer), intake);
    }

    fn submit(&mut self, key: Key, (offset, len): (u64, u32), buffer: Option<Rc<Loan>>, intake: &mut Intake<'_>) {
        let Some(pending) = self.requests.get_mut(key) else { return };
        pending.given += len;
        pending.parts += 1;
        if pending.request.kind.get() == command::READ {
            self.reading += 1;
            self.reading_bytes += len as usize;
        }
        let request = Request { offset: offset.into(), len: len.into(), ..pending.request };
        let mem = buffer.clone().map_or_else(HostMem::none, |buffer| HostMem::over(buffer));
        let part = self.parts.insert(Part { request: key, offset, len, buffer, commands: 0, failure: None });
        let (mut count, mut cost) = (0, 0);
        commands(&request, &self.info, &mem, |entry, mem| {
            cost += intake.cost(&entry, || mem.clone());
            intake.submit(part.to_bits(), entry, mem);
            count += 1;
        });
        if cost > 0 {
            self.share.begin(cost);
        }
        self.parts.get_mut(part).expect("just inserted").commands = count;
    }

    /// Submits parts of waiting requests: about `most` bytes of reads, and changes up to [`MAX_AFFECTED`] as far as the
    /// turn allows. Returns whether there were any.
    pub(crate) fn feed(&mut self, most: usize, intake: &mut Intake<'_>) -> bool {
        let mut fed = false;
        let mut left = most;
        while left > 0
            && let Some(&key) = self.reads.front()
        {
            let Some(pending) = self.requests.get(key).filter(|pending| pending.rest() > 0) else {
                self.reads.pop_front();
                continue;
            };
            let part = next_part(&pending.request, pending.given);
            match self.read_buffer(key, part.1) {
                Ok(Some(buffer)) => self.submit(key, part, Some(buffer), intake),
                Ok(None) => break,
                Err(failure) => self.fail_read(key, failure),
            }
            fed = true;
            left = left.saturating_sub(part.1 as usize);
        }
        while self.can_change()
            && self.share.may_begin()
            && let Some(&key) = self.changes.front()
        {
            let pending = self.requests.get(key).expect("it has parts to come");
            let part = next_part(&pending.request, pending.given);
            if part.1 == pending.rest() {
                self.changes.pop_front();
            }
            self.affected += u64::from(part.1);
            self.submit(key, part, None, intake);
            fed = true;
        }
        fed
    }

    /// Whether [`Work::feed`] would give the drive something.
    pub(crate) fn can_feed(&self) -> bool {
        let can_read = self.reads.front().is_some_and(|key| match self.requests.get(*key) {
            Some(pending) if pending.whole.is_some() => true,
            Some(pending) if pending.is_unbegun_whole(self.structured) => {
                let (whole, part) = (pending.request.len.get(), next_part(&pending.request, 0).1);
                self.can_read(whole) || self.can_stream(whole) && self.can_read(part)
            }
            Some(pending) if pending.rest() > 0 => self.can_read(next_part(&pending.request, pending.given).1),
            _ => true,
        });
        can_read || self.can_change()
    }

    fn can_change(&self) -> bool {
        !self.changes.is_empty() && self.affected + u64::from(PART) <= MAX_AFFECTED
    }

    /// Whether a long read may begin to be streamed: it must be the only one.
    fn can_stream(&self, whole: u32) -> bool {
        self.reading == 0 && self.share.held() + whole as usize <= MAX_WINDOW
    }

    fn has_room(&self, bytes: u32) -> bool {
        self.share.held() + bytes as usize <= MAX_WINDOW && self.share.has_room(bytes as usize)
    }

    /// Bytes of reads that the client's socket has not taken.
    fn unreceived(&self) -> usize {
        self.reading_bytes + self.replies.data_bytes()
    }

    fn can_read(&self, bytes: u32) -> bool {
        self.window.admits(self.unreceived(), bytes as usize) && self.has_room(bytes)
    }

    /// Sends about `most` bytes of replies; how many bytes that were.
    ///
    /// # Errors
    /// That of the system call.
    pub(crate) fn send(&mut self, stream: &mut impl std::io::Write, most: usize) -> std::io::Result<usize> {
        let sent = self.replies.send(stream, most);
        match &sent {
            Ok(sent) => self.window.took(*sent),
            Err(_) => self.window.waits(self.replies.data_bytes()),
        }
        sent
    }

    /// A buffer for a part of a read; `None` while there is no memory for it.
    fn read_buffer(&mut self, key: Key, len: u32) -> Result<Option<Rc<Loan>>, Failure> {
        let Some(pending) = self.requests.get(key) else { return Ok(None) };
        let (offset, all) = (pending.request.offset.get(), pending.request.len.get());
        let mut streamed = None;
        if pending.is_unbegun_whole(self.structured) && !self.can_read(all) {
            if !self.can_stream(all) {
                return Ok(None);
            }
            streamed = Some(Streamed::new(offset, all));
        }
        let unreceived = self.unreceived();
        let Some(pending) = self.requests.get_mut(key) else { return Ok(None) };
        let whole = pending.is_whole(self.structured) && pending.streamed.is_none() && streamed.is_none();
        let mut granted = None;
        let grant = match &mut pending.whole {
            Some(whole) => &mut whole.grant,
            None => {
                let bytes = if whole { pending.request.len.get() } else { len } as usize;
                if !self.window.admits(unreceived, bytes) || self.share.held() + bytes > MAX_WINDOW {
                    return Ok(None);
                }
                let Some(grant) = self.share.grant(bytes) else { return Ok(None) };
                match whole {
                    true => &mut pending.whole.insert(Whole { grant, read: Vec::new() }).grant,
                    false => granted.insert(grant),
                }
            }
        };
        let buffer = grant.lend(len as usize).ok_or(OUT_OF_MEMORY)?;
        pending.streamed = pending.streamed.take().or(streamed);
        if !self.info.keeps_data {
            // Such a drive does not write to the memory of a read.
            buffer.bytes_mut().fill(0);
        }
        Ok(Some(buffer))
    }

    fn fail_read(&mut self, key: Key, failure: Failure) {
        let Some(pending) = self.requests.get_mut(key) else { return };
        pending.failure.get_or_insert(failure);
        // The rest need not be read.
        let rest = pending.rest();
        self.skip(key, rest);
    }

    /// A command has completed.
    pub(crate) fn complete(&mut self, released: &Released) {
        let key = Key::from_bits(released.tag);
        let Some(part) = self.parts.get_mut(key) else { return };
        if !released.completion.status.is_success() {
            part.failure = part.failure.or(Some(released.completion.status));
        }
        part.commands -= 1;
        if part.commands == 0
            && let Some(part) = self.parts.remove(key)
        {
            self.part_done(part);
        }
    }

    fn part_done(&mut self, part: Part) {
        let Part { request: key, offset, len, buffer, failure, .. } = part;
        let Some(pending) = self.requests.get_mut(key) else { return };
        pending.parts -= 1;
        if pending.request.kind.get() == command::READ {
            self.reading -= 1;
            self.reading_bytes -= len as usize;
        }
        let (kind, cookie) = (pending.request.kind.get(), pending.request.cookie.get());
        if let command::TRIM | command::WRITE_ZEROES = kind {
            self.affected -= u64::from(len);
        }
        match (kind, failure, buffer) {
            (command::READ, Some(status), _) => return self.fail_read(key, Failure::Drive(status)),
            (command::READ, None, Some(buffer)) if pending.failure.is_none() => {
                if let Some(whole) = &mut pending.whole {
                    let index = ((offset - pending.request.offset.get()) / u64::from(DATA_PART)) as usize;
                    whole.read.resize_with(whole.read.len().max(index + 1), || None);
                    whole.read[index] = Some(buffer);
                } else if let Some(streamed) = &mut pending.streamed {
                    streamed.add(offset, buffer);
                    return self.stream(key);
                } else {
                    let done = pending.is_done();
                    match self.structured {
                        true => self.replies.chunk_of_data((cookie, done), (offset, len), [buffer]),
                        false => self.replies.simple_data(cookie, [buffer]),
                    }
                    if done {
                        self.requests.remove(key);
                    }
                    return;
                }
            }
            (_, Some(status), _) => drop(pending.failure.get_or_insert(Failure::Drive(status))),
            _ => {}
        }
        self.answer_if_done(key);
    }

    /// Sends the available data of a read that is streamed.
    fn stream(&mut self, key: Key) {
        let Some(pending) = self.requests.get_mut(key) else { return };
        let Some(streamed) = &mut pending.streamed else { return };
        let (request, mut ended) = (&pending.request, false);
        while let Some((data, is_last)) = streamed.next() {
            if !self.replies.is_streaming() {
                let extent = (request.offset.get(), request.len.get());
                self.replies.begin_stream(request.cookie.get(), extent, self.structured);
            }
            self.replies.stream(data);
            ended = is_last;
        }
        if ended {
            self.replies.end_stream();
            self.requests.remove(key);
        }
    }

    fn answer_if_done(&mut self, key: Key) {
        if !self.requests.get(key).is_some_and(Pending::is_done) {
            return;
        }
        let Some(Pending { request, failure, whole, streamed, .. }) = self.requests.remove(key) else { return };
        let cookie = request.cookie.get();
        if let Some(failure) = failure.as_ref().filter(|_| streamed.is_some() && self.replies.is_streaming()) {
            let (len, reason) = (request.len.get(), failure.reason());
            self.broken = Some(format!("a read of {len} bytes has failed after a part of it was sent: {reason}"));
            return;
        }
        match (request.kind.get(), failure) {
            (command::READ, Some(failure)) => {
                self.replies.failed_read(cookie, failure.error(), failure.reason(), self.structured);
            }
            (command::READ, None) => {
                let data = whole.into_iter().flat_map(|whole| whole.read).flatten();
                match self.structured {
                    true => {
                        self.replies.chunk_of_data((cookie, true), (request.offset.get(), request.len.get()), data);
                    }
                    false => self.replies.simple_data(cookie, data),
                }
            }
            (_, failure) => self.replies.simple(cookie, failure.map_or(0, |failure| failure.error())),
        }
    }
}
