//! The commands of one queue under way. They wait for memory, for the data requested from the host, or for the drive.
//! The drive's results become data and responses.
//!
//! The controller requests data from a host only when memory for all of it is free, and few bytes at a time: a host
//! that sends none holds little.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use nandscape_drive::HostMem;
use nandscape_drive::mem::Buffer;
use nandscape_transport_reactor::{Intake, MAX_WINDOW, Released, Share, Window};
use nandscape_wire_nvme::command::FLAGS_PSDT;
use nandscape_wire_nvme::opcode::Transfer;
use nandscape_wire_nvme::tcp::{LAST, SUCCESS};
use nandscape_wire_nvme::{AdminOpcode, CompletionEntry, Status, SubmissionEntry};

use crate::commands::{Command, Commands, TRANSFER, Transfers};
use crate::data::{Buffers, Data};
use crate::fused::{Fused, Outcome, is_half};
use crate::handshake::Terms;
use crate::outgoing::Outgoing;

/// Bytes of data that are requested from a host at a time, unless they belong to one command.
const MAX_ASKED: usize = 4 << 20;

/// See the module.
pub(crate) struct Work {
    pub(crate) commands: Commands,
    pub(crate) transfers: Transfers,
    pub(crate) outgoing: Outgoing,
    buffers: Buffers,
    /// The limit on the bytes of reads and their responses, and of reads in the drive.
    window: Window,
    reading: usize,
    /// Commands that wait for memory or for another turn, in order.
    waiting: VecDeque<u16>,
    /// Commands whose data has arrived and that wait for turns, because they change or read much, with their cost.
    costly: VecDeque<(u16, u64)>,
    /// Bytes of data with which commands may still begin in this turn.
    left: usize,
    /// Bytes of commands whose data is still to arrive in transfers.
    asked: usize,
    /// R2Ts of one command at a time.
    transfers_each: u32,
    /// The memory of commands that name data of no length.
    empty: Buffer,
    /// SQ Head Pointer: commands taken, modulo the entries of the queue; `None` without flow control.
    head: Option<u16>,
    entries: u16,
    fused: Fused,
    /// Whether the queue is the admin queue, where no commands are fused.
    is_admin: bool,
}

impl Work {
    pub(crate) fn new(terms: &Terms, share: Share, keeps_data: bool) -> Work {
        Work {
            commands: Commands::default(),
            transfers: Transfers::default(),
            outgoing: Outgoing::new(terms.digests, terms.align),
            buffers: Buffers::new(share, keeps_data),
            window: Window::default(),
            reading: 0,
            waiting: VecDeque::new(),
            costly: VecDeque::new(),
            left: 0,
            asked: 0,
            transfers_each: terms.transfers_each,
            empty: Rc::new(RefCell::new(Vec::new())),
            head: (!terms.without_flow_control).then_some(0),
            entries: terms.entries,
            fused: Fused::default(),
            is_admin: terms.queue == 0,
        }
    }

    /// A turn begins, in which commands may begin with about `most` bytes of data.
    pub(crate) fn begin_turn(&mut self, most: usize) {
        self.left = most;
    }

    /// A capsule was taken from the host's queue.
    pub(crate) fn took_one(&mut self) {
        self.head = self.head.map(|head| if head + 1 == self.entries { 0 } else { head + 1 });
    }

    /// Answers a command that has no data.
    pub(crate) fn respond(&mut self, cid: u16, status: Status, value: u64) {
        let entry = self.completion(cid, status, value as u32, (value >> 32) as u32);
        self.outgoing.response(entry);
    }

    fn completion(&self, cid: u16, status: Status, dw0: u32, dw1: u32) -> CompletionEntry {
        let head = self.head.unwrap_or(0).into();
        let mut entry = CompletionEntry { dw0: dw0.into(), dw1: dw1.into(), sq_head: head, ..Default::default() };
        entry.cid = cid.into();
        entry.set_status(status, false);
        entry
    }

    /// The response to Connect. Without flow control the head pointer indicates this (Base 6.3).
    pub(crate) fn connected(&mut self, cid: u16, controller: u16) {
        let mut entry = self.completion(cid, Status::SUCCESS, controller.into(), 0);
        if self.head.is_none() {
            entry.sq_head = u16::MAX.into();
        }
        self.outgoing.response(entry);
    }

    /// Takes a command whose data has arrived, or which has none.
    pub(crate) fn start(&mut self, entry: SubmissionEntry, intake: &mut Intake<'_>) {
        let number = self.insert(entry, 0, Transfer::None, intake);
        self.submit(number, intake);
    }

    /// Takes a command with in-capsule data.
    pub(crate) fn start_in_capsule(&mut self, entry: SubmissionEntry, len: u32, intake: &mut Intake<'_>) -> u16 {
        self.insert(entry, len, Transfer::ToController, intake)
    }

    /// Takes a command whose data is to be transferred.
    pub(crate) fn start_transfer(
        &mut self,
        entry: SubmissionEntry,
        len: u32,
        transfer: Transfer,
        intake: &mut Intake<'_>,
    ) {
        let number = self.insert(entry, len, transfer, intake);
        if len == 0 {
            return self.submit(number, intake);
        }
        if !self.waiting.is_empty() || self.left == 0 || !self.begin(number, intake) {
            self.waiting.push_back(number);
        }
    }

    fn insert(&mut self, entry: SubmissionEntry, len: u32, transfer: Transfer, intake: &mut Intake<'_>) -> u16 {
        let number = self.commands.insert(Command {
            entry,
            data: Data::None,
            len,
            transfer,
            requested: 0,
            came: 0,
            transfers: 0,
            damaged: false,
        });
        if !self.is_admin && is_half(&entry) {
            let outcome = self.fused.came(&entry, Some(number));
            self.end_fused(outcome, intake);
        }
        number
    }

    /// A command was taken from the host's queue: checks its effect on a first half of a fused operation before it.
    pub(crate) fn follows(&mut self, entry: &SubmissionEntry, intake: &mut Intake<'_>) {
        if self.fused.is_open() {
            let outcome = self.fused.capsule(entry);
            self.end_fused(outcome, intake);
        }
    }

    /// Answers a command that does not reach the drive.
    pub(crate) fn refuse(&mut self, entry: &SubmissionEntry, status: Status, intake: &mut Intake<'_>) {
        let status = intake.refuse(entry, status);
        self.respond(entry.cid.get(), status, 0);
    }

    /// The capsule of a command is invalid.
    pub(crate) fn refuse_capsule(&mut self, entry: &SubmissionEntry, status: Status, intake: &mut Intake<'_>) {
        self.refuse(entry, status, intake);
        if !self.is_admin && is_half(entry) {
            let outcome = self.fused.came(entry, None);
            self.end_fused(outcome, intake);
        }
    }

    /// The outcome of a fused operation is known.
    fn end_fused(&mut self, outcome: Option<Outcome>, intake: &mut Intake<'_>) {
        match outcome {
            Some(Outcome::Submit(pair)) => pair.into_iter().for_each(|number| self.submit_one(number, intake)),
            Some(Outcome::Refuse(number, status)) => self.drop_command(number, status, intake),
            None => {}
        }
    }

    fn drop_command(&mut self, number: u16, status: Status, intake: &mut Intake<'_>) {
        let Some(command) = self.commands.remove(number) else { return };
        self.refuse(&command.entry, status, intake);
        self.reading -= command.reads();
        self.buffers.put_back_all(command.data);
    }

    /// Takes memory for the in-capsule data of a command; returns whether there was any.
    pub(crate) fn has_memory(&mut self, number: u16) -> bool {
        let Some(command) = self.commands.get_mut(number) else { return true };
        if !matches!(command.data, Data::None) {
            return true;
        }
        let len = command.len as usize;
        // The data requested from the host follows this data.
        let taken = match self.buffers.take(len, true) {
            None if !self.transfers.is_empty() => self.buffers.overdraw(len),
            taken => taken,
        };
        taken.map(|data| command.data = data).is_some()
    }

    /// Whether a command that waits could begin.
    pub(crate) fn can_feed(&self) -> bool {
        // Each turn pays for some of it.
        if !self.costly.is_empty() {
            return true;
        }
        let Some(&number) = self.waiting.front() else { return false };
        self.may_begin(number).is_some_and(|len| self.buffers.has_room(len))
    }

    /// Whether there would be memory for the in-capsule data of a command.
    pub(crate) fn can_take(&self, number: u16) -> bool {
        let Some(command) = self.commands.get(number) else { return true };
        !matches!(command.data, Data::None) || self.buffers.has_room(command.len as usize)
    }

    /// Whether the host may leave without Disconnect: no command under way whose completion it expects.
    pub(crate) fn is_idle(&self, admin: bool) -> bool {
        let waits_for_event = |entry: &SubmissionEntry| admin && is_event_request(entry);
        self.outgoing.is_empty() && self.commands.iter().all(|command| waits_for_event(&command.entry))
    }

    /// Begins waiting commands, as far as the turn allows. Returns whether there were any.
    pub(crate) fn feed(&mut self, intake: &mut Intake<'_>) -> bool {
        let before = self.waiting.len() + self.costly.len();
        while let Some(&(number, cost)) = self.costly.front()
            && self.buffers.begin(cost)
        {
            self.costly.pop_front();
            self.submit_one(number, intake);
        }
        while self.left > 0
            && let Some(&number) = self.waiting.front()
            && self.begin(number, intake)
        {
            self.waiting.pop_front();
        }
        self.waiting.len() + self.costly.len() < before
    }

    /// The length of a command's data, if the client's other commands leave room for it.
    fn may_begin(&self, number: u16) -> Option<usize> {
        let command = self.commands.get(number)?;
        let (len, brings, in_use) = (command.len as usize, command.brings() as usize, self.buffers.in_use());
        let held = in_use == 0 || in_use + len <= MAX_WINDOW;
        let receives = brings > 0 || self.window.admits(self.reading + self.outgoing.data_bytes(), len);
        let asked = brings == 0 || self.asked == 0 || self.asked + brings <= MAX_ASKED;
        (held && receives && asked && self.transfers.has_tag()).then_some(len)
    }

    /// Begins a command whose data is to be transferred, if there is memory for it.
    fn begin(&mut self, number: u16, intake: &mut Intake<'_>) -> bool {
        let Some(len) = self.may_begin(number) else { return false };
        let Some(command) = self.commands.get_mut(number) else { return true };
        let Some(data) = self.buffers.take(len, command.brings() == command.len) else { return false };
        self.left = self.left.saturating_sub(len);
        command.data = data;
        if command.brings() > 0 {
            self.asked += command.brings() as usize;
            self.ask(number);
        } else {
            self.reading += len;
            self.submit(number, intake);
        }
        true
    }

    /// Requests more data of a command from the host, as much at a time as it allows.
    fn ask(&mut self, number: u16) {
        while let Some(command) = self.commands.get_mut(number)
            && command.requested < command.brings()
            && command.transfers < self.transfers_each
            && self.transfers.has_tag()
        {
            let (offset, len) = (command.requested, TRANSFER.min(command.brings() - command.requested));
            let cid = command.entry.cid.get();
            command.requested += len;
            command.transfers += 1;
            let tag = self.transfers.begin(number, cid, offset, len);
            self.outgoing.ready(cid, tag, offset, len);
        }
    }

    /// Data of a command's transfer has arrived: all that the transfer requested, if it is the `last`.
    pub(crate) fn data_came(&mut self, number: u16, len: u32, last: bool, intact: bool, intake: &mut Intake<'_>) {
        let Some(command) = self.commands.get_mut(number) else { return };
        command.came += len;
        command.transfers -= u32::from(last);
        command.damaged |= !intact;
        if command.came < command.brings() {
            return self.ask(number);
        }
        let (whole, damaged) = (command.brings() as usize, command.damaged);
        self.asked -= whole;
        self.give(number, !damaged, intake);
    }

    /// All data of a command that brings some has arrived.
    pub(crate) fn give(&mut self, number: u16, intact: bool, intake: &mut Intake<'_>) {
        if intact {
            return self.submit(number, intake);
        }
        // A data digest error fails the command, not the connection (3.3.1.1).
        self.drop_command(number, Status::TRANSIENT_TRANSPORT_ERROR, intake);
        let outcome = self.fused.has_data(number, false);
        self.end_fused(outcome, intake);
    }

    fn submit(&mut self, number: u16, intake: &mut Intake<'_>) {
        let Some(command) = self.commands.get_mut(number) else { return };
        if self.is_admin {
            return self.submit_one(number, intake);
        }
        if is_half(&command.entry) {
            let outcome = self.fused.has_data(number, true);
            return self.end_fused(outcome, intake);
        }
        let cost = intake.cost(&command.entry, || command.data.memory());
        if cost > 0 && (!self.costly.is_empty() || !self.buffers.begin(cost)) {
            return self.costly.push_back((number, cost));
        }
        self.submit_one(number, intake);
    }

    fn submit_one(&mut self, number: u16, intake: &mut Intake<'_>) {
        let Some(command) = self.commands.get_mut(number) else { return };
        let mut entry = command.entry;
        entry.flags &= !FLAGS_PSDT;
        let mem = match &command.data {
            // A replay of a recording makes the same difference.
            Data::None if Transfer::of(entry.opcode) != Transfer::None => HostMem::whole(&self.empty),
            data => data.memory(),
        };
        intake.submit(number.into(), entry, mem);
    }

    /// The drive has completed a command; it is returned.
    pub(crate) fn complete(&mut self, released: &Released) -> Option<SubmissionEntry> {
        let number = released.tag as u16;
        let command = self.commands.remove(number)?;
        let (cid, completion) = (command.entry.cid.get(), &released.completion);
        let (status, dw0, dw1) = (completion.status, completion.dw0, completion.dw1);
        self.reading -= command.reads();
        let entry = self.completion(cid, status, dw0, dw1);
        if !command.transfer.returns() || command.len == 0 || !status.is_success() {
            self.outgoing.response(entry);
            self.buffers.put_back_all(command.data);
            return Some(command.entry);
        }
        // A head pointer or a value has to be returned in a response.
        let implied = self.head.is_none() && (dw0, dw1, status.bits()) == (0, 0, 0);
        let parts = command.data.parts();
        let mut offset = 0;
        for (index, loan) in parts.iter().enumerate() {
            let last = index + 1 == parts.len();
            let flags = match (last, implied) {
                (false, _) => 0,
                (true, false) => LAST,
                (true, true) => LAST | SUCCESS,
            };
            let len = loan.bytes().len() as u32;
            self.outgoing.data((cid, offset, flags), loan.clone(), (last && !implied).then_some(entry));
            offset += len;
        }
        Some(command.entry)
    }

    /// Sends about `most` bytes.
    pub(crate) fn send(&mut self, stream: &mut impl std::io::Write, most: usize) -> std::io::Result<usize> {
        let sent = self.outgoing.send(stream, most, &mut self.buffers);
        match &sent {
            Ok(sent) => self.window.took(*sent),
            Err(_) => self.window.waits(self.outgoing.data_bytes()),
        }
        sent
    }
}

/// A request for an event stays outstanding.
fn is_event_request(entry: &SubmissionEntry) -> bool {
    entry.opcode == AdminOpcode::ASYNCHRONOUS_EVENT_REQUEST.0
}
