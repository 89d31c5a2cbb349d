//! Queue pairs of a function as drives: each command has a slot of shared memory for its data.
//!
//! Left out: interrupts, so its user polls; data beyond [`MOST_BYTES`] of a command; metadata.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::rc::Rc;

use nandscape_drive::{Completion, Drive, DriveInfo, HostMem, Io, Token};
use nandscape_wire_nvme::command::FLAGS_PSDT;
use nandscape_wire_nvme::{CompletionEntry, IoOpcode, Status, SubmissionEntry};

use super::FunctionError;
use super::function::Function;
use super::memory::{PAGE, SharedMemory};
use super::queue_pair::{COMPLETION, QueuePair, SUBMISSION};
use crate::remote::{Lost, Pending};

/// Bytes of data of a command at most. Its list of pages then fits a page.
const MOST_BYTES: u32 = 128 << 10;
/// Fruitless polls in a row, while commands are outstanding, after which the controller's status is read: shared memory does
/// not tell that a server has gone.
const POLLS_BEFORE_CHECK: u32 = 1 << 16;

/// A queue pair as a drive. See the module.
pub struct FunctionDrive {
    function: Rc<Function>,
    memory: Rc<SharedMemory>,
    endpoint: String,
    info: DriveInfo,
    state: RefCell<State>,
}

struct State {
    pair: QueuePair,
    slots: Vec<Slot>,
    /// Slots that no command has.
    free: Vec<u16>,
    /// Commands for which there is no slot.
    waiting: VecDeque<Io>,
    /// Completions that are passed on when the state is free.
    ended: Vec<(Token, Completion)>,
    fruitless: u32,
    /// Commands that the controller has completed.
    answers: u64,
    lost: Option<Lost>,
}

/// Memory for the data of a command, and the command that has it.
struct Slot {
    data: u64,
    /// A page with the addresses of all pages of the data but the first.
    list: u64,
    command: Option<(Token, HostMem, usize)>,
}

impl FunctionDrive {
    /// Connects to the function at `path`, and creates a queue pair for each of `pairs`: commands at a time, fewer where the
    /// controller allows only fewer, and the namespace, of which `None` is the first. They are pairs of one controller, because a
    /// function has one client at a time.
    ///
    /// `keeps_data` is what users of the drives see as [`DriveInfo::keeps_data`].
    ///
    /// # Errors
    /// When there is no server, it refuses, or a namespace cannot be used.
    pub fn connect(
        path: &Path,
        pairs: &[(u16, Option<u32>)],
        keeps_data: bool,
    ) -> Result<Vec<FunctionDrive>, FunctionError> {
        let mut function = Function::connect(path, pairs.iter().map(|(depth, _)| bytes(*depth)).sum())?;
        let infos = pairs.iter().map(|(_, nsid)| function.drive_info(*nsid));
        let infos = infos.collect::<Result<Vec<DriveInfo>, FunctionError>>()?;
        if !function.maps_doorbells() && function.has_doorbell_buffers()? {
            function.use_doorbell_buffers()?;
        }
        let (memory, most) = (function.memory().clone(), function.max_depth()?);
        let states = pairs.iter().map(|(depth, _)| State::new(&mut function, &memory, (*depth).clamp(1, most)));
        let states = states.collect::<Result<Vec<State>, FunctionError>>()?;
        let function = Rc::new(function);
        let drive = |(state, info): (State, DriveInfo)| FunctionDrive {
            function: function.clone(),
            memory: memory.clone(),
            endpoint: path.display().to_string(),
            info: DriveInfo { keeps_data, max_blocks: info.max_blocks.min(MOST_BYTES / info.lba_bytes), ..info },
            state: RefCell::new(state),
        };
        Ok(states.into_iter().zip(infos).map(drive).collect())
    }

    /// What it owes its user now.
    pub fn pending(&self) -> Pending {
        let state = self.state.borrow();
        Pending { commands: state.pair.outstanding().into(), answers: state.answers }
    }

    /// Takes completions and submits what waits for them. Whether anything moved.
    ///
    /// # Errors
    /// [`Lost`] when the server has gone, or the controller has failed or was reset. Its commands have failed then, and later
    /// ones fail.
    pub fn poll(&self) -> Result<bool, Lost> {
        let mut state = self.state.borrow_mut();
        if state.lost.is_none()
            && let Err(problem) = state.reap(&self.memory).and_then(|()| self.check(&mut state))
        {
            state.lose(Lost { endpoint: self.endpoint.clone(), reason: problem.to_string() });
        }
        let mut ended = std::mem::take(&mut state.ended);
        let lost = state.lost.clone();
        drop(state);
        let moved = !ended.is_empty();
        // They may bring new commands.
        ended.drain(..).for_each(|(token, completion)| token.complete(completion));
        let mut state = self.state.borrow_mut();
        if state.ended.is_empty() {
            // Its memory is used again.
            state.ended = ended;
        }
        match lost {
            Some(lost) => Err(lost),
            None => {
                self.submit_waiting(&mut state);
                Ok(moved)
            }
        }
    }

    /// After many fruitless polls, asks whether the controller still works.
    fn check(&self, state: &mut State) -> Result<(), FunctionError> {
        let is_idle = state.pair.outstanding() == 0;
        state.fruitless = if is_idle || !state.ended.is_empty() { 0 } else { state.fruitless + 1 };
        if state.fruitless < POLLS_BEFORE_CHECK {
            return Ok(());
        }
        state.fruitless = 0;
        self.function.check()
    }

    fn submit_waiting(&self, state: &mut State) {
        while !state.free.is_empty()
            && let Some(io) = state.waiting.pop_front()
        {
            self.put(state, io);
        }
    }

    /// Submits a command; there is a free slot.
    fn put(&self, state: &mut State, io: Io) {
        let Io { command, mem, token } = io;
        let bytes = self.data_bytes(&command, &mem);
        let checked = if bytes > MOST_BYTES as usize { Err(Status::INVALID_FIELD) } else { mem.fits(bytes) };
        if let Err(status) = checked {
            return state.ended.push((token, Completion::of(status)));
        }
        let number = state.free.pop().expect("the caller has seen a free slot");
        let slot = &mut state.slots[usize::from(number)];
        let list = if bytes as u64 > 2 * PAGE { slot.list } else { slot.data + PAGE };
        let flags = command.flags & !FLAGS_PSDT;
        let command =
            SubmissionEntry { flags, cid: number.into(), prp1: slot.data.into(), prp2: list.into(), ..command };
        let copied = match is_to_controller(&command) {
            true => copy_in(&self.memory, slot.data, &mem, bytes),
            false => Ok(()),
        };
        // Only what a read brings is copied back.
        let mem = if is_to_host(&command) { mem } else { HostMem::none() };
        slot.command = Some((token, mem, bytes));
        if let Err(error) = copied.and_then(|()| state.pair.submit(&command)) {
            state.lose(Lost { endpoint: self.endpoint.clone(), reason: error.to_string() });
        }
    }

    /// Bytes that a command transfers.
    fn data_bytes(&self, command: &SubmissionEntry, mem: &HostMem) -> usize {
        match IoOpcode(command.opcode) {
            IoOpcode::READ | IoOpcode::WRITE | IoOpcode::COMPARE => {
                (usize::from(command.cdw12.get() as u16) + 1) * self.info.lba_bytes as usize
            }
            _ if is_to_controller(command) || is_to_host(command) => mem.len(),
            _ => 0,
        }
    }
}

impl Drive for FunctionDrive {
    fn info(&self) -> DriveInfo {
        self.info
    }

    fn submit(&self, io: Io) {
        let mut state = self.state.borrow_mut();
        if state.lost.is_some() {
            drop(state);
            return io.token.complete(Completion::of(Status::ABORTED_SQ_DELETION));
        }
        if state.free.is_empty() || !state.waiting.is_empty() {
            return state.waiting.push_back(io);
        }
        self.put(&mut state, io);
    }
}

impl State {
    fn new(function: &mut Function, memory: &SharedMemory, depth: u16) -> Result<State, FunctionError> {
        let pair = function.create_pair(depth)?;
        let slots = (0..depth).map(|_| Slot::new(memory)).collect::<io::Result<Vec<Slot>>>()?;
        Ok(State {
            pair,
            slots,
            free: (0..depth).rev().collect(),
            waiting: VecDeque::new(),
            ended: Vec::new(),
            fruitless: 0,
            answers: 0,
            lost: None,
        })
    }

    /// Takes all completions that are there.
    fn reap(&mut self, memory: &SharedMemory) -> Result<(), FunctionError> {
        while let Some(entry) = self.pair.reap()? {
            self.end(memory, &entry)?;
        }
        Ok(self.pair.tell_head()?)
    }

    fn end(&mut self, memory: &SharedMemory, entry: &CompletionEntry) -> Result<(), FunctionError> {
        let number = entry.cid.get();
        let ended = self.slots.get_mut(usize::from(number)).and_then(|slot| Some((slot.data, slot.command.take()?)));
        let Some((data, (token, mem, bytes))) = ended else {
            let problem = format!("the controller completes command {number}, which is not outstanding");
            return Err(FunctionError::unusable(problem));
        };
        self.free.push(number);
        self.answers += 1;
        let mut status = entry.status();
        if status.is_success() && !mem.is_none() {
            copy_out(memory, data, &mem, bytes)?;
            if mem.has_failed() {
                status = Status::DATA_TRANSFER_ERROR;
            }
        }
        let completion = Completion { dw0: entry.dw0.get(), dw1: entry.dw1.get(), ..Completion::of(status) };
        self.ended.push((token, completion));
        Ok(())
    }

    /// From now on nothing can be asked; what was asked has failed.
    fn lose(&mut self, lost: Lost) {
        self.lost = Some(lost);
        let outstanding = self.slots.iter_mut().filter_map(|slot| slot.command.take()).map(|(token, ..)| token);
        let waiting = self.waiting.drain(..).map(|io| io.token);
        let failed = |token| (token, Completion::of(Status::ABORTED_SQ_DELETION));
        self.ended.extend(outstanding.chain(waiting).map(failed));
    }
}

impl Slot {
    fn new(memory: &SharedMemory) -> io::Result<Slot> {
        let (data, list) = (memory.take(MOST_BYTES.into())?, memory.take(PAGE)?);
        for page in 1..u64::from(MOST_BYTES) / PAGE {
            memory.write(list + (page - 1) * 8, &(data + page * PAGE).to_le_bytes())?;
        }
        Ok(Slot { data, list, command: None })
    }
}

/// Bytes of shared memory for a queue pair.
fn bytes(depth: u16) -> u64 {
    let (slots, entries) = (u64::from(depth.max(1)), u64::from(depth.max(1)) + 1);
    let queues = (entries * SUBMISSION).next_multiple_of(PAGE) + (entries * COMPLETION).next_multiple_of(PAGE);
    queues + slots * (u64::from(MOST_BYTES) + PAGE)
}

/// Bits 1:0 of an opcode are the direction of its data (Base 3.3.3.1).
fn is_to_controller(command: &SubmissionEntry) -> bool {
    command.opcode & 0b11 == 0b01
}

fn is_to_host(command: &SubmissionEntry) -> bool {
    command.opcode & 0b11 == 0b10
}

/// Copies the data of a command into shared memory; what was there before stays where it has none.
fn copy_in(memory: &SharedMemory, to: u64, mem: &HostMem, bytes: usize) -> io::Result<()> {
    if mem.is_none() {
        return Ok(());
    }
    let mut page = [0; PAGE as usize];
    for start in (0..bytes).step_by(page.len()) {
        let part = &mut page[..(bytes - start).min(PAGE as usize)];
        mem.read(start, part);
        memory.write(to + start as u64, part)?;
    }
    Ok(())
}

fn copy_out(memory: &SharedMemory, from: u64, mem: &HostMem, bytes: usize) -> io::Result<()> {
    let mut page = [0; PAGE as usize];
    for start in (0..bytes).step_by(page.len()) {
        let part = &mut page[..(bytes - start).min(PAGE as usize)];
        memory.read(from + start as u64, part)?;
        mem.write(start, part);
    }
    Ok(())
}
