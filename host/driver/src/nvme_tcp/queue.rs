//! One connection of an initiator: commands become capsules, and received PDUs become data and completions.
//!
//! Commands of the usual size allocate no memory: capsules with their data are gathered in one buffer, and received
//! data is copied from another.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use crc_fast::{CrcAlgorithm, Digest};
use nandscape_drive::{Completion, HostMem, Token};
use nandscape_sim::{Span, Time};
use nandscape_wire_nvme::opcode::Transfer;
use nandscape_wire_nvme::sgl::SglDescriptor;
use nandscape_wire_nvme::tcp::{
    CapsuleCommand, CapsuleResponse, Common, DIGEST, Data, FatalStatus, LAST, PduType, Receiver, SUCCESS, Shape,
    Terminate,
};
use nandscape_wire_nvme::{CompletionEntry, Status, SubmissionEntry};
use zerocopy::{FromBytes, IntoBytes};

use super::crc;
use super::establish::Link;

/// Bytes read from the socket at a time.
const READ_SIZE: usize = 256 << 10;
/// Reads of one call, for fairness to other work. The next call reads the rest.
const READS: u32 = 8;
/// Unsent bytes up to which the target's requests for data are answered.
const MAX_UNSENT: usize = 512 << 10;
/// The most data of one PDU: no command has more.
const MAX_DATA: u32 = 64 << 20;

/// A command.
pub(super) struct Request {
    pub(super) entry: SubmissionEntry,
    pub(super) mem: HostMem,
    /// None for commands of the initiator's own.
    pub(super) token: Option<Token>,
    /// Bytes of its data, and their direction.
    pub(super) len: u32,
    transfer: Transfer,
    /// Commands submitted before it.
    pub(super) serial: u64,
    /// How often it was submitted again.
    pub(super) replays: u8,
    /// Its user has cancelled it.
    pub(super) cancelled: bool,
    /// Since when it waits for a connection that answers, once one has broken under it.
    pub(super) waits_since: Option<Time>,
    /// Bytes received, and bytes requested by the target.
    came: u32,
    asked: u32,
    /// A digest of its data was wrong.
    damaged: bool,
}

impl Request {
    pub(super) fn new(entry: SubmissionEntry, mem: HostMem, token: Option<Token>, len: u32) -> Request {
        let transfer = Transfer::of(entry.opcode);
        Request {
            entry,
            mem,
            token,
            len,
            transfer,
            serial: 0,
            replays: 0,
            cancelled: false,
            waits_since: None,
            came: 0,
            asked: 0,
            damaged: false,
        }
    }

    /// As it was before it was sent.
    pub(super) fn again(mut self) -> Request {
        (self.came, self.asked, self.damaged) = (0, 0, false);
        self
    }
}

/// A command that the target has completed.
pub(super) struct Done {
    pub(super) request: Request,
    pub(super) completion: Completion,
}

/// A request of the target for data.
struct Asked {
    number: u16,
    tag: u16,
    offset: u32,
    len: u32,
}

/// The next part of the input.
enum Phase {
    Header,
    /// Data of a command: `left` bytes for offset `at`, and whether the command has then succeeded.
    Data {
        number: u16,
        at: usize,
        left: usize,
        digest: bool,
        success: bool,
    },
}

/// See the module.
pub(super) struct Queue {
    link: Link,
    inbox: Box<[u8]>,
    start: usize,
    end: usize,
    phase: Phase,
    digest: Digest,
    out: Vec<u8>,
    sent: usize,
    /// The socket takes no more bytes for now.
    pub(super) blocked: bool,
    slots: Vec<Option<Request>>,
    free: Vec<u16>,
    asked: VecDeque<Asked>,
    /// Commands of the initiator's own that have not completed.
    own: usize,
    /// Changes with every answer to a user's command, or part of one.
    pub(super) answers: u64,
    /// The time of the last input, or of the first command sent on the idle connection.
    heard_at: Time,
    /// A user's command was added to the idle connection since the last flush.
    is_woken: bool,
    /// When a probe was sent, if nothing was received since.
    probed_at: Option<Time>,
}

/// The action for a connection that may be silent.
pub(super) enum Quiet {
    /// None: no command of a user waits for an answer.
    Idle,
    /// None before this time.
    Until(Time),
    /// It is to be probed.
    Probe,
    /// It is silent, since this time.
    Silent(Time),
}

impl Queue {
    pub(super) fn new(link: Link, now: Time) -> Queue {
        let depth = link.depth;
        Queue {
            link,
            inbox: vec![0; READ_SIZE].into(),
            start: 0,
            end: 0,
            phase: Phase::Header,
            digest: Digest::new(CrcAlgorithm::Crc32Iscsi),
            out: Vec::new(),
            sent: 0,
            blocked: false,
            slots: (0..depth).map(|_| None).collect(),
            free: (0..depth).rev().collect(),
            asked: VecDeque::new(),
            own: 0,
            answers: 0,
            heard_at: now,
            is_woken: false,
            probed_at: None,
        }
    }

    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.link.stream.as_fd()
    }

    /// Whether it takes another command of a user. One slot is kept for the initiator, unless it is the only one.
    pub(super) fn has_room(&self) -> bool {
        self.has_own_room() && self.outstanding() < (self.slots.len() - 1).max(1)
    }

    /// Whether it takes another command of the initiator's own.
    pub(super) fn has_own_room(&self) -> bool {
        !self.free.is_empty()
    }

    /// Commands of users that have not completed.
    pub(super) fn outstanding(&self) -> usize {
        self.slots.len() - self.free.len() - self.own
    }

    /// Whether the connection is silent: a user's command waits, nothing was received for `limit`, and a probe sent
    /// after half of it is unanswered as well.
    pub(super) fn quiet(&self, now: Time, limit: Span) -> Quiet {
        let half = limit / 2;
        // Commands added to an idle connection are sent in this turn.
        let since = if self.is_woken { now } else { self.heard_at };
        let due = match self.probed_at {
            _ if self.outstanding() == 0 => return Quiet::Idle,
            None => since + half,
            Some(sent) => (since + limit).max(sent + half),
        };
        match self.probed_at {
            _ if now < due => Quiet::Until(due),
            None => Quiet::Probe,
            Some(_) => Quiet::Silent(since),
        }
    }

    /// Sends a command that the target answers without its drive. Without a free slot, the waiting commands are the
    /// probe.
    pub(super) fn probe(&mut self, entry: SubmissionEntry, now: Time) {
        self.probed_at = Some(now);
        if self.has_own_room() {
            self.send(Request::new(entry, HostMem::none(), None, 0));
        }
    }

    /// The identifier of the command whose token `is_it` accepts.
    pub(super) fn find(&self, is_it: impl Fn(&Token) -> bool) -> Option<u16> {
        let holds =
            |slot: &Option<Request>| slot.as_ref().and_then(|request| request.token.as_ref()).is_some_and(&is_it);
        self.slots.iter().position(holds).map(|number| number as u16)
    }

    /// Marks the command whose token `is_it` accepts as cancelled.
    pub(super) fn cancel(&mut self, is_it: impl Fn(&Token) -> bool) {
        let requests = self.slots.iter_mut().flatten();
        let its = requests.filter(|request| request.token.as_ref().is_some_and(&is_it));
        its.for_each(|request| request.cancelled = true);
    }

    /// Takes all commands that have not completed.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = Request> {
        self.slots.iter_mut().filter_map(Option::take)
    }

    /// Gives it a command; it is sent by [`Queue::flush`].
    ///
    /// # Panics
    /// When it has no room.
    pub(super) fn send(&mut self, mut request: Request) {
        self.is_woken |= self.outstanding() == 0 && request.token.is_some();
        self.own += usize::from(request.token.is_none());
        let number = self.free.pop().expect("the caller has asked whether there is room");
        let mut entry = request.entry;
        entry.cid = number.into();
        let is_sent = request.transfer == Transfer::ToController && request.len > 0;
        let in_capsule = is_sent && request.len <= self.link.in_capsule;
        entry = match request.len {
            len if in_capsule => entry.with_sgl(SglDescriptor::in_capsule(len)),
            len => entry.with_sgl(SglDescriptor::transport(len)),
        };
        let data = if in_capsule { request.len as usize } else { 0 };
        // The target need not request data in the capsule.
        request.asked = data as u32;
        let digests = self.link.digests;
        let common = digests.common(PduType::CAPSULE_CMD, 0, size_of::<CapsuleCommand>(), data, self.link.align);
        self.put(CapsuleCommand { common, entry }.as_bytes(), &common, &request.mem, 0, data);
        self.slots[usize::from(number)] = Some(request);
    }

    /// Puts a PDU into the buffer, with `len` bytes of `mem` from `start` on.
    fn put(&mut self, header: &[u8], common: &Common, mem: &HostMem, start: usize, len: usize) {
        let begin = self.out.len();
        self.out.extend_from_slice(header);
        if self.link.digests.header {
            self.out.extend_from_slice(&crc(header).to_le_bytes());
        }
        if len == 0 {
            return;
        }
        let data = begin + usize::from(common.data_offset);
        self.out.resize(data + len, 0);
        mem.read(start, &mut self.out[data..]);
        if self.link.digests.data {
            let digest = crc(&self.out[data..]);
            self.out.extend_from_slice(&digest.to_le_bytes());
        }
    }

    /// Answers a part of the target's data requests.
    fn answer(&mut self) -> bool {
        let Some(asked) = self.asked.front_mut() else { return false };
        let (offset, now) = (asked.offset, asked.len.min(self.link.max_data));
        (asked.offset, asked.len) = (offset + now, asked.len - now);
        let (last, number, tag) = (asked.len == 0, asked.number, asked.tag);
        if last {
            self.asked.pop_front();
        }
        let Some(mem) = self.slots[usize::from(number)].as_ref().map(|request| request.mem.clone()) else {
            return true;
        };
        let (digests, flags) = (self.link.digests, if last { LAST } else { 0 });
        let common = digests.common(PduType::H2C_DATA, flags, size_of::<Data>(), now as usize, self.link.align);
        let (cid, tag, reserved_20) = (number.into(), tag.into(), [0; 4]);
        let header = Data { common, cid, tag, offset: offset.into(), len: now.into(), reserved_20 };
        self.put(header.as_bytes(), &common, &mem, offset as usize, now as usize);
        true
    }

    /// Sends as much as the socket takes.
    ///
    /// # Errors
    /// When the connection is broken.
    pub(super) fn flush(&mut self, now: Time) -> io::Result<()> {
        if std::mem::take(&mut self.is_woken) {
            self.heard_at = now;
        }
        let was_blocked = std::mem::take(&mut self.blocked);
        loop {
            while self.out.len() - self.sent < MAX_UNSENT && self.answer() {}
            if self.sent == self.out.len() {
                return Ok(());
            }
            match self.link.stream.write(&self.out[self.sent..]) {
                Ok(count) => {
                    self.sent += count;
                    // The target has received the contents of the system's full buffers.
                    if was_blocked {
                        self.heard_at = now;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.blocked = true;
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if self.sent == self.out.len() {
                self.out.clear();
                self.sent = 0;
            }
        }
    }

    /// Receives pending data; completed commands are added to `done`. Returns whether there was any data.
    ///
    /// # Errors
    /// When the connection is broken, or the target violates the protocol.
    pub(super) fn receive(&mut self, done: &mut Vec<Done>, now: Time) -> Result<bool, String> {
        let mut came = false;
        for _ in 0..READS {
            if self.start > 0 {
                self.inbox.copy_within(self.start..self.end, 0);
                (self.start, self.end) = (0, self.end - self.start);
            }
            let room = self.inbox.len() - self.end;
            let count = match self.link.stream.read(&mut self.inbox[self.end..]) {
                Ok(0) => return Err("the target has closed the connection".to_owned()),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(came),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
                Err(error) => return Err(error.to_string()),
            };
            self.end += count;
            if count > 0 {
                came = true;
                (self.heard_at, self.probed_at) = (now, None);
            }
            while self.step(done)? {}
            if count < room {
                return Ok(came);
            }
        }
        Ok(came)
    }

    /// Parses one step of the received data; returns whether there was one.
    fn step(&mut self, done: &mut Vec<Done>) -> Result<bool, String> {
        match self.phase {
            Phase::Header => self.take_header(done),
            Phase::Data { number, at, left, digest, success } => {
                let received = &self.inbox[self.start..self.end];
                let now = received.len().min(left);
                self.answers += 1;
                if let Some(request) = self.slots[usize::from(number)].as_ref() {
                    request.mem.write(at, &received[..now]);
                }
                if digest {
                    self.digest.update(&received[..now]);
                }
                self.start += now;
                if now < left {
                    self.phase = Phase::Data { number, at: at + now, left: left - now, digest, success };
                    return Ok(false);
                }
                let mut intact = true;
                if digest {
                    let Some(came) = self.inbox[self.start..self.end].first_chunk::<DIGEST>() else {
                        self.phase = Phase::Data { number, at: at + now, left: 0, digest, success };
                        return Ok(false);
                    };
                    intact = u32::from_le_bytes(*came) == self.digest.finalize_reset() as u32;
                    self.start += DIGEST;
                }
                self.phase = Phase::Header;
                if let Some(request) = &mut self.slots[usize::from(number)] {
                    request.damaged |= !intact;
                }
                if success {
                    self.complete(number, &CompletionEntry::default(), done)?;
                }
                Ok(true)
            }
        }
    }

    fn take_header(&mut self, done: &mut Vec<Done>) -> Result<bool, String> {
        let received = &self.inbox[self.start..self.end];
        let Ok((common, _)) = Common::ref_from_prefix(received) else { return Ok(false) };
        let shape = Shape::of(common, Receiver::Host, self.link.digests, MAX_DATA);
        let shape = shape.map_err(|fatal| format!("the target's PDU is not valid: {fatal}"))?;
        let lead = shape.lead();
        if received.len() < lead {
            return Ok(false);
        }
        let header = &received[..shape.header];
        if shape.header_digest && received[shape.header..][..DIGEST] != crc(header).to_le_bytes() {
            return Err("a header digest of the target is wrong".to_owned());
        }
        match shape.kind {
            PduType::CAPSULE_RESP => {
                let response = CapsuleResponse::read_from_bytes(header).expect("the shape has its length");
                self.start += lead;
                self.complete(response.entry.cid.get(), &response.entry, done)?;
            }
            PduType::C2H_DATA => {
                let data = Data::read_from_bytes(header).expect("the shape has its length");
                self.start += lead;
                self.begin_data(&data, &shape)?;
            }
            PduType::R2T => {
                let ready = Data::read_from_bytes(header).expect("the shape has its length");
                self.start += lead;
                self.is_asked(&ready)?;
            }
            PduType::C2H_TERM => {
                let request = Terminate::read_from_bytes(header).expect("the shape has its length");
                let name = FatalStatus(request.status.get()).name();
                return Err(format!("the target terminates the connection: {name}"));
            }
            _ => return Err("the target sends a PDU out of order".to_owned()),
        }
        Ok(true)
    }

    /// The command that the target names.
    fn request(&mut self, number: u16) -> Result<&mut Request, String> {
        let slot = self.slots.get_mut(usize::from(number)).and_then(Option::as_mut);
        slot.ok_or_else(|| format!("the target names command {number}, which is not outstanding"))
    }

    fn begin_data(&mut self, data: &Data, shape: &Shape) -> Result<(), String> {
        let (number, offset, len) = (data.cid.get(), data.offset.get(), data.len.get());
        let request = self.request(number)?;
        let fits = offset == request.came && len as usize == shape.data && request.len - request.came >= len;
        if !request.transfer.returns() || !fits {
            return Err("the target sends data that was not asked for".to_owned());
        }
        request.came += len;
        let (digest, success) = (shape.data_digest, data.common.flags & (LAST | SUCCESS) == LAST | SUCCESS);
        self.phase = Phase::Data { number, at: offset as usize, left: shape.data, digest, success };
        Ok(())
    }

    fn is_asked(&mut self, ready: &Data) -> Result<(), String> {
        let (number, offset, len) = (ready.cid.get(), ready.offset.get(), ready.len.get());
        self.answers += 1;
        let request = self.request(number)?;
        let end = offset.checked_add(len).filter(|end| *end <= request.transfer.brings(request.len) && len > 0);
        let end = end.ok_or("the target asks for data that a command does not have")?;
        if offset < request.asked {
            return Err("the target asks for the same data of a command twice".to_owned());
        }
        request.asked = end;
        // MAXR2T of the initialisation is one.
        if self.asked.iter().any(|asked| asked.number == number) {
            return Err("the target asks for more data of a command before it has what it asked for".to_owned());
        }
        self.asked.push_back(Asked { number, tag: ready.tag.get(), offset, len });
        Ok(())
    }

    fn complete(&mut self, number: u16, entry: &CompletionEntry, done: &mut Vec<Done>) -> Result<(), String> {
        self.request(number)?;
        let Some(request) = self.slots[usize::from(number)].take() else { return Ok(()) };
        self.free.push(number);
        match request.token {
            Some(_) => self.answers += 1,
            None => self.own -= 1,
        }
        self.asked.retain(|asked| asked.number != number);
        let status = match entry.status() {
            status if !status.is_success() => status,
            _ if request.damaged => Status::TRANSIENT_TRANSPORT_ERROR,
            // The target owes data.
            _ if request.transfer.returns() && request.came < request.len => Status::DATA_TRANSFER_ERROR,
            status => status,
        };
        let completion = Completion { dw0: entry.dw0.get(), dw1: entry.dw1.get(), ..Completion::of(status) };
        done.push(Done { request, completion });
        Ok(())
    }
}
