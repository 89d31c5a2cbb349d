//! One connection after Connect: a queue of a controller. Capsules from its socket become commands, and their results
//! are sent back.
//!
//! A turn of the loop does a bounded amount of work for a client, in PDUs and in bytes, because all other clients wait
//! meanwhile.
//!
//! A host that violates the protocol is notified by C2HTermReq. The connection is closed when the host has closed it,
//! or after [`FAREWELL`].

use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};

use crc_fast::Digest;
use nandscape_drive::DriveInfo;
use nandscape_sim::{Span, Time};
use nandscape_transport_reactor::client::{Client, Deadline, Gone, Intake, Interest};
use nandscape_transport_reactor::listening::ClientSlot;
use nandscape_transport_reactor::socket::Stream;
use nandscape_transport_reactor::{Released, Share};
use nandscape_wire_nvme::fabrics::FABRICS;
use nandscape_wire_nvme::opcode::Transfer;
use nandscape_wire_nvme::tcp::{Fatal, PduType, Shape, Terminate};
use nandscape_wire_nvme::{AdminOpcode, Status, SubmissionEntry, feature, identify, register};

use crate::capsule::{Move, data_of};
use crate::handshake::Terms;
use crate::patience::{Enabling, Signs};
use crate::receive::{Ends, Inbox, Incoming, Phase, Stop, data_of_capsule, digest, discard, receive};
use crate::work::Work;

/// PDUs taken in a turn.
const PDUS_A_TURN: usize = 256;
/// Bytes received in a turn, bytes of data with which commands begin in a turn, and bytes sent at a time.
const BYTES_A_TURN: usize = 256 << 10;
/// How long a host has to close a connection that was terminated.
const FAREWELL: Span = Span::from_s(5);
/// The largest command in bytes: more than any drive's limit.
const MAX_COMMAND: u32 = 32 << 20;

/// See the module.
pub(crate) struct Session {
    /// Released before the socket is closed, so that a client that sees the close finds the slot free.
    _slot: ClientSlot,
    pub(crate) stream: Stream,
    pub(crate) terms: Terms,
    pub(crate) inbox: Inbox,
    pub(crate) phase: Phase,
    /// Of the data that is coming.
    pub(crate) digest: Digest,
    pub(crate) work: Work,
    pub(crate) turn: Turn,
    /// Parsing stopped before the end of the inbox.
    pub(crate) stalled: bool,
    /// The socket's send buffer is full.
    blocked: bool,
    ending: Ending,
    keep_alive: Option<Span>,
    /// The value that the host has written to CC, if this is its admin queue. Other queues have no separate time limit.
    pub(crate) enabling: Enabling,
    /// The host has closed its side.
    hung_up: bool,
    signs: Signs,
}

/// Whether a session continues.
enum Ending {
    Open,
    /// The host has disconnected: it gets its last response.
    Leaving,
    /// The host is to be notified of its violation.
    Terminating(String),
    /// It was notified, and is to close the connection.
    Terminated(String),
}

/// The rest of a client's share of a turn.
pub(crate) struct Turn {
    pub(crate) pdus: usize,
    bytes: usize,
}

impl Turn {
    const WHOLE: Turn = Turn { pdus: PDUS_A_TURN, bytes: BYTES_A_TURN };
}

impl Session {
    pub(crate) fn new(stream: Stream, terms: Terms, info: DriveInfo, slot: ClientSlot, memory: Share) -> Session {
        memory.guarantee(longest_command(&info));
        let mut work = Work::new(&terms, memory, info.keeps_data);
        work.took_one();
        work.connected(terms.connect_cid, terms.controller);
        let keep_alive = keep_alive_timeout(terms.keep_alive_ms);
        Session {
            _slot: slot,
            stream,
            work,
            inbox: Inbox::new(),
            phase: Phase::Header,
            digest: digest(),
            turn: Turn::WHOLE,
            stalled: false,
            blocked: false,
            ending: Ending::Open,
            keep_alive: keep_alive.filter(|_| terms.queue == 0),
            enabling: if terms.queue == 0 { Enabling::Disabled } else { Enabling::Enabled },
            hung_up: false,
            signs: Signs { heard: Time::ZERO, alive: Time::ZERO },
            terms,
        }
    }

    fn is_open(&self) -> bool {
        matches!(self.ending, Ending::Open)
    }

    /// Whether more PDUs can be taken: a host that takes no responses is not listened to.
    fn has_room(&self) -> bool {
        self.work.outgoing.len() < 2 * usize::from(self.terms.entries) + 16
    }

    /// Parses the inbox as far as limits and memory allow. Returns whether any of it was parsed.
    fn parse(&mut self, intake: &mut Intake<'_>) -> Result<bool, Gone> {
        let mut came = false;
        self.stalled = false;
        while self.is_open() {
            if self.turn.pdus == 0 || !self.has_room() {
                self.stalled = true;
                break;
            }
            match self.parse_step(intake) {
                Ok(true) => came = true,
                Ok(false) => break,
                Err(Stop::Gone(gone)) => return Err(gone),
                Err(Stop::Fatal(fatal, header)) => self.terminate(fatal, &header),
            }
        }
        Ok(came)
    }

    /// Takes a command; returns what follows its header.
    pub(crate) fn command(
        &mut self,
        entry: SubmissionEntry,
        shape: &Shape,
        intake: &mut Intake<'_>,
    ) -> Result<Phase, Stop> {
        self.work.took_one();
        if self.work.commands.len() >= usize::from(self.terms.entries) {
            let entries = self.terms.entries;
            return Err(Gone::because(format!("more commands than its queue of {entries} entries holds")).into());
        }
        self.work.follows(&entry, intake);
        let came = shape.data as u32;
        if entry.opcode == FABRICS {
            self.fabrics(&entry, intake);
            return Ok(after_capsule(shape));
        }
        if self.terms.queue == 0 && intake.register(register::CSTS) & register::CSTS_RDY == 0 {
            // Before the controller is ready it takes Fabrics commands only (Base, message-based initialisation).
            self.work.refuse(&entry, Status::COMMAND_SEQUENCE_ERROR.final_(), intake);
            return Ok(after_capsule(shape));
        }
        match data_of(&entry, Transfer::of(entry.opcode), came, MAX_COMMAND) {
            Err(status) => self.work.refuse_capsule(&entry, status, intake),
            Ok(Move::None) => self.work.start(entry, intake),
            Ok(Move::ToHost(len)) => self.work.start_transfer(entry, len, Transfer::ToHost, intake),
            Ok(Move::FromHost(len)) => self.work.start_transfer(entry, len, Transfer::ToController, intake),
            Ok(Move::Both(len)) => self.work.start_transfer(entry, len, Transfer::Both, intake),
            Ok(Move::InCapsule { len: 0, .. }) => self.work.start_transfer(entry, 0, Transfer::ToController, intake),
            Ok(Move::InCapsule { start, len }) => {
                let number = self.work.start_in_capsule(entry, len, intake);
                return Ok(Phase::Data(data_of_capsule(shape, number, start as usize, len as usize)));
            }
        }
        Ok(after_capsule(shape))
    }

    /// The data of a PDU has arrived, and its digest was right or wrong.
    pub(crate) fn data_has_come(
        &mut self,
        incoming: &Incoming,
        intact: bool,
        intake: &mut Intake<'_>,
    ) -> Result<(), Stop> {
        match (incoming.ends, incoming.to) {
            (Ends::Capsule, Some((number, _))) => self.work.give(number, intact, intake),
            (Ends::Transfer { len, last }, Some((number, _))) => {
                self.work.data_came(number, len, last, intact, intake);
            }
            (Ends::Termination(fatal), _) => {
                return Err(Gone::because(format!("the host has terminated the connection: {fatal}")).into());
            }
            _ => {}
        }
        Ok(())
    }

    /// Disconnect (Base 6.4): the response is the last that the host gets.
    pub(crate) fn leave(&mut self) {
        self.ending = Ending::Leaving;
    }

    /// Notifies the host of its violation.
    fn terminate(&mut self, fatal: Fatal, header: &[u8]) {
        self.ending = Ending::Terminating(format!("violated the protocol: {fatal}"));
        self.inbox.clear();
        self.work.outgoing.terminate(&Terminate::new(PduType::C2H_TERM, fatal, header.len()), header);
    }

    /// Reads and discards everything after a termination.
    fn drain(&mut self, reason: &str) -> Result<bool, Gone> {
        let mut bytes = [0; 4_096];
        let count = receive(&mut self.stream, &mut bytes).map_err(|_| Gone::because(reason))?;
        self.turn.bytes = self.turn.bytes.saturating_sub(count);
        Ok(count > 0)
    }

    fn receive(&mut self, intake: &mut Intake<'_>) -> Result<bool, Gone> {
        let mut came = self.stalled && self.parse(intake)?;
        while self.is_open() && self.turn.bytes > 0 && self.turn.pdus > 0 && !self.stalled {
            let (count, more) = self.read()?;
            if count > 0 {
                self.signs.heard = intake.now();
            }
            self.turn.bytes = self.turn.bytes.saturating_sub(count);
            came |= self.parse(intake)? || count > 0;
            if !more {
                break;
            }
        }
        Ok(self.work.feed(intake) || came)
    }

    /// A host that closes its connection with no command under way has left in order: few send Disconnect.
    fn excused(&self, gone: Gone) -> Gone {
        let between = matches!(self.phase, Phase::Header) && self.inbox.is_empty();
        if between && self.work.is_idle(self.terms.queue == 0) { Gone::quietly() } else { gone }
    }

    /// Sends some of the data that can be sent.
    fn send(&mut self) -> Result<(), Gone> {
        self.blocked = false;
        let mut left = BYTES_A_TURN;
        while !self.work.outgoing.is_empty() && left > 0 {
            match self.work.send(&mut self.stream, left) {
                Ok(count) => left = left.saturating_sub(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.blocked = true;
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Gone::because(error.to_string())),
            }
        }
        if !self.work.outgoing.is_empty() {
            return Ok(());
        }
        match std::mem::replace(&mut self.ending, Ending::Open) {
            Ending::Leaving => return Err(Gone::quietly()),
            Ending::Terminating(reason) => {
                self.stream.shutdown(Shutdown::Write);
                self.ending = Ending::Terminated(reason);
            }
            other => self.ending = other,
        }
        Ok(())
    }

    /// A command of the admin queue has succeeded: Keep Alive, and Set Features of its timeout (Base 5.1.25.1.11), restart the
    /// timer.
    fn watch_keep_alive(&mut self, entry: &SubmissionEntry, at: Time) {
        let set = entry.opcode == AdminOpcode::SET_FEATURES.0 && entry.cdw10.get() as u8 == feature::KEEP_ALIVE_TIMER;
        if set {
            self.keep_alive = keep_alive_timeout(entry.cdw11.get());
        }
        if set || entry.opcode == AdminOpcode::KEEP_ALIVE.0 {
            self.signs.alive = at;
        }
    }

    /// The host has written CC. The timer begins when that enables the controller.
    pub(crate) fn configured(&mut self, enabling: Enabling, now: Time) {
        if self.enabling == Enabling::Disabled {
            self.signs.alive = now;
        }
        self.enabling = enabling;
    }
}

/// Bytes of the longest command that the drive takes (MDTS). Metadata adds an eighth at most, in any format: 64 bytes to 512.
fn longest_command(info: &DriveInfo) -> usize {
    let data = info.max_blocks as usize * info.lba_bytes as usize;
    data + data / 8
}

/// How long a host that has set a timeout of `ms` may be silent; `None` when it wants none.
fn keep_alive_timeout(ms: u32) -> Option<Span> {
    let ms = identify::keep_alive_timeout_ms(ms, identify::KEEP_ALIVE_GRANULARITY);
    (ms > 0).then(|| Span::from_ms(ms.into()))
}

/// The part after a capsule whose data is not used.
fn after_capsule(shape: &Shape) -> Phase {
    if shape.data == 0 { Phase::Header } else { Phase::Data(discard(shape, Ends::Nothing)) }
}

impl Client for Session {
    fn socket(&self) -> Option<BorrowedFd<'_>> {
        Some(self.stream.as_fd())
    }

    fn interest(&self) -> Interest {
        let read = match self.ending {
            Ending::Open => !self.stalled && self.has_room(),
            Ending::Terminated(_) => true,
            Ending::Leaving | Ending::Terminating(_) => false,
        };
        Interest { read, write: self.blocked }
    }

    /// The end of a connection ends its commands.
    fn is_deserted(&mut self) -> bool {
        self.hung_up
    }

    fn receive_arrivals(&mut self, intake: &mut Intake<'_>) -> Result<bool, Gone> {
        self.turn = Turn::WHOLE;
        self.work.begin_turn(BYTES_A_TURN);
        if self.signs.heard == Time::ZERO {
            self.signs.heard = intake.now();
        }
        match &self.ending {
            // It takes no more responses, so its earlier commands need not be served.
            _ if self.hung_up && (self.stalled || !self.has_room()) => Err(Gone::because("hung up")),
            Ending::Open => self.receive(intake).map_err(|gone| self.excused(gone)),
            Ending::Terminated(reason) => {
                let reason = reason.clone();
                self.drain(&reason)
            }
            Ending::Leaving | Ending::Terminating(_) => Ok(false),
        }
    }

    fn hung_up(&mut self) {
        self.hung_up = true;
    }

    fn complete(&mut self, released: Released) {
        let Some(entry) = self.work.complete(&released) else { return };
        if self.terms.queue == 0 && released.completion.status == Status::SUCCESS {
            self.watch_keep_alive(&entry, released.at);
        }
    }

    fn flush(&mut self) -> Result<(), Gone> {
        self.send()
    }

    fn has_more(&self) -> bool {
        let can_send = !self.blocked && !self.work.outgoing.is_empty();
        let can_parse = match &self.phase {
            _ if !self.stalled || !self.is_open() || !self.has_room() => false,
            Phase::Data(Incoming { to: Some((number, _)), .. }) => self.work.can_take(*number),
            Phase::Data(_) | Phase::Header => true,
        };
        can_send || can_parse || self.work.can_feed()
    }

    fn is_flushed(&self) -> bool {
        self.work.outgoing.is_empty()
    }

    fn deadline(&self) -> Option<Deadline> {
        if self.signs.heard == Time::ZERO {
            // Its first turn is still to come, and records when it connected.
            return Some(Deadline { at: Time::MAX, reason: "has not begun" });
        }
        let deadline = match self.ending {
            Ending::Open => self.enabling.deadline(self.signs, self.keep_alive, !self.work.transfers.is_empty()),
            Ending::Leaving | Ending::Terminating(_) | Ending::Terminated(_) => {
                Some((self.signs.heard + FAREWELL, "did not close its connection"))
            }
        };
        deadline.map(|(at, reason)| Deadline { at, reason })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_keep_alive_timeout_is_whole_seconds() {
        let seconds = |ms| keep_alive_timeout(ms).map(|time| time.ns() / 1_000_000_000);
        assert_eq!([0, 1, 1_000, 1_001].map(seconds), [None, Some(1), Some(1), Some(2)]);
        assert_eq!(keep_alive_timeout(u32::MAX), Some(Span::from_ms(u32::MAX.into())));
    }
}
