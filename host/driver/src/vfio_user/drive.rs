//! Queue pairs of a function as drives. Each command has a slot of shared memory for its data and for the address
//! lists of a vector command.
//!
//! Its user polls, or waits for the function's event descriptor if the queue pairs interrupt ([`Signals`]). Left out: data beyond
//! [`MOST_BYTES`] of a command; metadata.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::rc::Rc;

use nandscape_drive::{Completion, Drive, DriveInfo, HostMem, Io, Token};
use nandscape_wire_nvme::command::FLAGS_PSDT;
use nandscape_wire_nvme::lss::LIST;
use nandscape_wire_nvme::opcode::Transfer;
use nandscape_wire_nvme::open_channel::{VECTOR_READ, VECTOR_WRITE};
use nandscape_wire_nvme::vendor::BATCHED_READ;
use nandscape_wire_nvme::{CompletionEntry, IoOpcode, Status, SubmissionEntry};

use super::FunctionError;
use super::announced::Announced;
use super::function::Function;
use super::memory::{PAGE, SharedMemory};
use super::queue_pair::{COMPLETION, QueuePair, SUBMISSION};
use super::slot::{self, MOST_BYTES, Slot};
use crate::remote::{Lost, Pending};

/// Admin commands at a time of a drive over the admin queue; more wait in the host.
const ADMIN_DEPTH: u16 = 4;
/// Fruitless polls in a row, while commands are outstanding, before the controller's status is read: shared memory
/// does not show that a server has exited.
const POLLS_BEFORE_CHECK: u32 = 1 << 14;

/// How users of queue pairs learn that there is something to poll for.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Signals {
    /// Completions signal the event descriptor ([`FunctionDrive::signal`]).
    pub interrupts: bool,
    /// The drive announces the ends of reads that ask for it, this long ahead in nanoseconds; zero is its own window. Notices signal
    /// the event descriptor as well.
    pub notices: Option<u32>,
}

/// A queue pair as a drive. See the module.
pub struct FunctionDrive {
    function: Rc<Function>,
    announced: Option<Rc<Announced>>,
    interrupts: bool,
    memory: Rc<SharedMemory>,
    endpoint: String,
    info: DriveInfo,
    /// Commands are admin commands.
    is_admin: bool,
    state: RefCell<State>,
}

struct State {
    pair: QueuePair,
    slots: Vec<Slot>,
    /// Slots that no command has.
    free: Vec<u16>,
    /// Commands without a free slot.
    waiting: VecDeque<Io>,
    /// Completions that are passed on when the state is free.
    ended: Vec<(Token, Completion)>,
    fruitless: u32,
    /// Commands that the controller has completed.
    answers: u64,
    lost: Option<Lost>,
}

impl FunctionDrive {
    /// Connects to the function at `path`, and creates a queue pair for each of `pairs`: the commands at a time,
    /// limited by the controller's maximum, and the namespace, where `None` is the first. All pairs belong to one
    /// controller, because a function has one client at a time.
    ///
    /// `keeps_data` becomes [`DriveInfo::keeps_data`].
    ///
    /// # Errors
    /// When there is no server, the server refuses, or a namespace cannot be used.
    pub fn connect(
        path: &Path,
        pairs: &[(u16, Option<u32>)],
        keeps_data: bool,
    ) -> Result<Vec<FunctionDrive>, FunctionError> {
        FunctionDrive::connect_signalled(path, pairs, keeps_data, false, Signals::default()).map(|(_, drives)| drives)
    }

    /// Connects as [`FunctionDrive::connect`] does, and returns the admin queue as a drive as well. It is the first
    /// drive; its commands are admin commands, and its namespace is that of the first queue pair.
    ///
    /// # Errors
    /// Those of [`FunctionDrive::connect`].
    ///
    /// # Panics
    /// Without any queue pair.
    pub fn connect_with_admin(
        path: &Path,
        pairs: &[(u16, Option<u32>)],
        keeps_data: bool,
    ) -> Result<(FunctionDrive, Vec<FunctionDrive>), FunctionError> {
        let connected = FunctionDrive::connect_signalled(path, pairs, keeps_data, true, Signals::default());
        connected.map(|(admin, drives)| (admin.expect("it was asked for"), drives))
    }

    /// Connects as [`FunctionDrive::connect`] does, and takes the admin queue as well if that is wanted.
    ///
    /// # Errors
    /// As of [`FunctionDrive::connect`], and when a drive is to announce the ends of reads and does not.
    ///
    /// # Panics
    /// With the admin queue, and without any queue pair.
    pub fn connect_signalled(
        path: &Path,
        pairs: &[(u16, Option<u32>)],
        keeps_data: bool,
        with_admin: bool,
        signals: Signals,
    ) -> Result<(Option<FunctionDrive>, Vec<FunctionDrive>), FunctionError> {
        let of_admin = if with_admin { bytes(ADMIN_DEPTH) } else { 0 };
        let entries = pairs.iter().fold(1, |sum: u16, (depth, _)| sum.saturating_add(*depth)).max(2);
        let of_notices = signals.notices.map_or(0, |_| (u64::from(entries) * COMPLETION).next_multiple_of(PAGE));
        let all = pairs.iter().map(|(depth, _)| bytes(*depth)).sum::<u64>() + of_admin + of_notices;
        let (mut function, states) = open(path, all, pairs, signals.interrupts.then_some(0))?;
        let notices = signals.notices.map(|window_ns| function.create_notices(entries, window_ns)).transpose()?;
        let announced = notices.map(|queue| Rc::new(Announced::new(queue, states.len())));
        let memory = function.memory().clone();
        let admin = with_admin.then(|| State::over(function.take_admin()?, &memory, ADMIN_DEPTH)).transpose()?;
        let (function, first) = (Rc::new(function), states.first().map(|(_, info)| *info));
        let drive = |(state, info)| FunctionDrive {
            announced: announced.clone(),
            interrupts: signals.interrupts,
            ..FunctionDrive::over(&function, &memory, path, info, keeps_data, state)
        };
        let admin = admin.map(|state| FunctionDrive {
            is_admin: true,
            announced: None,
            ..drive((state, first.expect("a function has a queue pair")))
        });
        Ok((admin, states.into_iter().map(drive).collect()))
    }

    fn over(
        function: &Rc<Function>,
        memory: &Rc<SharedMemory>,
        path: &Path,
        info: DriveInfo,
        keeps_data: bool,
        state: State,
    ) -> FunctionDrive {
        FunctionDrive {
            function: function.clone(),
            announced: None,
            interrupts: false,
            memory: memory.clone(),
            endpoint: path.display().to_string(),
            info: DriveInfo { keeps_data, max_blocks: info.max_blocks.min(MOST_BYTES / info.lba_bytes), ..info },
            is_admin: false,
            state: RefCell::new(state),
        }
    }

    /// Outstanding work for its user.
    pub fn pending(&self) -> Pending {
        let state = self.state.borrow();
        Pending { commands: state.pair.outstanding().into(), answers: state.answers }
    }

    /// The completion queue that the drive posts notices to, if it was asked for them.
    pub fn notice_queue(&self) -> Option<u16> {
        self.announced.as_ref().map(|announced| announced.id())
    }

    /// What is signalled when there is something to poll for, and what shows the end of the connection as a hang-up; `None` if its
    /// completions do not interrupt. All queue pairs of a function have the same.
    pub fn signal(&self) -> Option<(BorrowedFd<'_>, BorrowedFd<'_>)> {
        self.interrupts.then(|| (self.function.event(), self.function.connection()))
    }

    /// Takes the signal back, before a poll: what comes later signals again.
    pub fn take_signal(&self) {
        // The server has the descriptor too, and could make it one that blocks: it is read only if there is something to read.
        let event = self.function.event();
        let mut waiting = [rustix::event::PollFd::from_borrowed_fd(event, rustix::event::PollFlags::IN)];
        if rustix::event::poll(&mut waiting, Some(&rustix::event::Timespec::default())).is_ok_and(|ready| ready > 0) {
            let _ = rustix::io::read(event, &mut [0; 8]);
        }
    }

    /// Takes completions and submits what waits for them. Whether anything moved.
    ///
    /// # Errors
    /// [`Lost`] when the server has exited, or the controller has failed or was reset. Its commands have failed then,
    /// and later ones fail.
    pub fn poll(&self) -> Result<bool, Lost> {
        let mut state = self.state.borrow_mut();
        let mut announced = Vec::new();
        if state.lost.is_none()
            && let Err(problem) = self.reap(&mut state, &mut announced).and_then(|()| self.check(&mut state))
        {
            state.lose(Lost { endpoint: self.endpoint.clone(), reason: problem.to_string() });
        }
        let mut ended = std::mem::take(&mut state.ended);
        let lost = state.lost.clone();
        drop(state);
        let moved = !ended.is_empty() || !announced.is_empty();
        announced.into_iter().for_each(|announce| announce());
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

    /// Takes notices and completions. Before and after: a notice is posted before its completion, so that after the completions were
    /// taken, those of commands that have ended are all there, and none is taken for one of a later command.
    fn reap(&self, state: &mut State, announced: &mut Vec<Box<dyn FnOnce()>>) -> Result<(), FunctionError> {
        self.take_notices(state, announced)?;
        state.reap(&self.memory)?;
        self.take_notices(state, announced)
    }

    fn take_notices(&self, state: &State, announced: &mut Vec<Box<dyn FnOnce()>>) -> Result<(), FunctionError> {
        let Some(notices) = &self.announced else { return Ok(()) };
        for (number, remaining) in notices.take(state.pair.id())? {
            let command = state.slots.get(usize::from(number)).and_then(|slot| slot.command.as_ref());
            if let Some((token, ..)) = command {
                let announce = token.announcer();
                announced.push(Box::new(move || announce(remaining)));
            }
        }
        Ok(())
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

    /// Submits a command; a free slot exists.
    fn put(&self, state: &mut State, io: Io) {
        let Io { command, mem, token } = io;
        let bytes = self.data_bytes(&command, &mem);
        let is_batch = !self.is_admin && command.opcode == BATCHED_READ.0;
        let is_unknown = Transfer::of(command.opcode) == Transfer::Both && !self.is_vector(&command) && !is_batch;
        let checked = match bytes > MOST_BYTES as usize || is_unknown {
            true => Err(Status::INVALID_FIELD),
            false => mem.fits(bytes),
        };
        if let Err(status) = checked {
            return state.ended.push((token, Completion::of(status)));
        }
        let number = state.free.pop().expect("the caller has seen a free slot");
        let slot = &mut state.slots[usize::from(number)];
        let listed = match self.is_vector(&command) {
            true => slot.list_addresses(&self.memory, &command, &mem),
            false => Ok(command),
        };
        let command = match listed {
            Ok(command) => command,
            Err(status) => {
                state.free.push(number);
                return state.ended.push((token, Completion::of(status)));
            }
        };
        let (prp1, prp2) = slot.pointers(bytes);
        let flags = command.flags & !FLAGS_PSDT;
        let to_send = SubmissionEntry { flags, cid: number.into(), prp1, prp2, ..command };
        let copied = match Transfer::of(command.opcode) {
            Transfer::ToController => slot::copy_in(&self.memory, slot.data, &mem, bytes),
            Transfer::Both if is_batch => slot::copy_in(&self.memory, slot.data, &mem, bytes.min(LIST)),
            _ => Ok(()),
        };
        // Only the data of a read is copied back.
        let returns = is_batch || Transfer::of(command.opcode) == Transfer::ToHost;
        let mem = if returns { mem } else { HostMem::none() };
        slot.command = Some((token, mem, bytes));
        if let Err(error) = copied.and_then(|()| state.pair.submit(&to_send)) {
            state.lose(Lost { endpoint: self.endpoint.clone(), reason: error.to_string() });
        }
    }

    /// Whether a command names its addresses in lists.
    fn is_vector(&self, command: &SubmissionEntry) -> bool {
        !self.is_admin && slot::is_vector(IoOpcode(command.opcode))
    }

    /// Bytes that a command transfers.
    fn data_bytes(&self, command: &SubmissionEntry, mem: &HostMem) -> usize {
        let lba_bytes = self.info.lba_bytes as usize;
        match IoOpcode(command.opcode) {
            _ if self.is_admin => {}
            IoOpcode::READ | IoOpcode::WRITE | IoOpcode::COMPARE => {
                return (usize::from(command.cdw12.get() as u16) + 1) * lba_bytes;
            }
            VECTOR_READ | VECTOR_WRITE => return (command.vector_z() as usize + 1) * lba_bytes,
            opcode if slot::is_vector(opcode) => return 0,
            _ => {}
        }
        match Transfer::of(command.opcode) {
            Transfer::None => 0,
            _ => mem.len(),
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
    fn new(
        function: &mut Function,
        memory: &SharedMemory,
        depth: u16,
        vector: Option<u16>,
    ) -> Result<State, FunctionError> {
        State::over(function.create_pair_with(depth, vector)?, memory, depth)
    }

    /// That of a queue pair, which has as many slots as commands at a time.
    fn over(pair: QueuePair, memory: &SharedMemory, depth: u16) -> Result<State, FunctionError> {
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

    /// Takes all available completions.
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
            slot::copy_out(memory, data, &mem, bytes)?;
            if mem.has_failed() {
                status = Status::DATA_TRANSFER_ERROR;
            }
        }
        let completion = Completion { dw0: entry.dw0.get(), dw1: entry.dw1.get(), ..Completion::of(status) };
        self.ended.push((token, completion));
        Ok(())
    }

    /// The connection is lost: outstanding and later commands fail.
    fn lose(&mut self, lost: Lost) {
        self.lost = Some(lost);
        let outstanding = self.slots.iter_mut().filter_map(|slot| slot.command.take()).map(|(token, ..)| token);
        let waiting = self.waiting.drain(..).map(|io| io.token);
        let failed = |token| (token, Completion::of(Status::ABORTED_SQ_DELETION));
        self.ended.extend(outstanding.chain(waiting).map(failed));
    }
}

/// Connects to a function, and creates a queue pair for each of `pairs`, with the drive properties of its namespace.
fn open(
    path: &Path,
    bytes: u64,
    pairs: &[(u16, Option<u32>)],
    vector: Option<u16>,
) -> Result<(Function, Vec<(State, DriveInfo)>), FunctionError> {
    let mut function = Function::connect(path, bytes)?;
    let infos = pairs.iter().map(|(_, nsid)| function.drive_info(*nsid));
    let infos = infos.collect::<Result<Vec<DriveInfo>, FunctionError>>()?;
    if !function.maps_doorbells() && function.has_doorbell_buffers()? {
        function.use_doorbell_buffers()?;
    }
    let (memory, most) = (function.memory().clone(), function.max_depth()?);
    let states = pairs.iter().map(|(depth, _)| State::new(&mut function, &memory, (*depth).clamp(1, most), vector));
    let states = states.collect::<Result<Vec<State>, FunctionError>>()?;
    Ok((function, states.into_iter().zip(infos).collect()))
}

/// Bytes of shared memory for a queue pair.
fn bytes(depth: u16) -> u64 {
    let (slots, entries) = (u64::from(depth.max(1)), u64::from(depth.max(1)) + 1);
    let queues = (entries * SUBMISSION).next_multiple_of(PAGE) + (entries * COMPLETION).next_multiple_of(PAGE);
    queues + slots * slot::BYTES
}
