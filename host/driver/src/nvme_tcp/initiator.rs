//! The queues of one association as a drive, and what happens when it breaks.
//!
//! ```text
//!             broken: outstanding commands wait          target.patience is over: all commands fail
//! connected ------------------------------> connecting ----------------------------------------> given up
//!     ^                                       |    ^ pause, which grows                               |
//!     +---------------------------------------+----+--------------------------------------------------+
//!                    connected: they are submitted again
//! ```

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};

use nandscape_drive::{CommandRef, Completion, Drive, DriveInfo, HostMem, Io, Token};
use nandscape_sim::{Span, Time};
use nandscape_wire_nvme::command::{FLAGS_FUSED, FLAGS_FUSED_FIRST, FLAGS_FUSED_SECOND, FLAGS_PSDT};
use nandscape_wire_nvme::io::Cdw12;
use nandscape_wire_nvme::opcode::Transfer;
use nandscape_wire_nvme::{AdminOpcode, IoOpcode, Status, SubmissionEntry, vendor};
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

use super::establish::{ConnectError, Established, establish, keep_alive};
use super::identity::Identity;
use super::queue::{Done, Queue, Request};
use super::target::Target;
use crate::remote::{Lost, Remote};

/// How often a command is submitted again.
pub const REPLAYS: u8 = 5;
/// The first pause between two attempts to connect, and the longest.
const FIRST_PAUSE: Span = Span::from_ms(100);
const LONGEST_PAUSE: Span = Span::from_s(10);

/// A remote namespace as a drive. See the module `nvme_tcp`.
pub struct NvmeTcp {
    state: RefCell<State>,
    /// All sockets, and what wakes.
    events: OwnedFd,
    /// Written when an attempt to connect has ended.
    wake: Arc<OwnedFd>,
    /// Makes `events` readable when something is due.
    timer: OwnedFd,
    info: DriveInfo,
    identity: Identity,
    clock: Clock,
}

/// The time, which never goes back.
pub type Clock = Box<dyn Fn() -> Time>;

struct State {
    target: Target,
    info: DriveInfo,
    identity: Identity,
    association: Option<Association>,
    /// An attempt to connect on a side thread.
    attempt: Option<Receiver<Result<Established, ConnectError>>>,
    /// When the next attempt begins, and the pause after it.
    retry_at: Time,
    pause: Span,
    /// When the connection broke, and why.
    broken: Option<(Time, String)>,
    given_up: bool,
    /// Commands that wait for a place in a queue, or for a connection.
    backlog: VecDeque<Request>,
    serial: u64,
    done: Vec<Done>,
    now: Time,
    /// For when the timer is set.
    timer_at: Option<Time>,
}

struct Association {
    admin: Queue,
    queues: Vec<Queue>,
    /// The queue that gets the next command.
    next: usize,
    /// When Keep Alive is due, and whether one is unanswered.
    keep_alive_at: Time,
    keep_alive_sent: Option<Time>,
}

impl NvmeTcp {
    /// Connects to a target. Blocks for some seconds at most for each of its answers. From now on its time is that of
    /// `clock`.
    ///
    /// # Errors
    /// When the target cannot be reached, refuses, or has no namespace that can be used.
    pub fn connect(target: Target, clock: Clock) -> Result<NvmeTcp, ConnectError> {
        let (established, now) = (establish(&target)?, clock());
        let events = epoll::create(CreateFlags::CLOEXEC).map_err(io::Error::from)?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(io::Error::from)?;
        epoll::add(&events, &wake, EventData::new_u64(0), EventFlags::IN).map_err(io::Error::from)?;
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK);
        let timer = timer.map_err(io::Error::from)?;
        epoll::add(&events, &timer, EventData::new_u64(0), EventFlags::IN).map_err(io::Error::from)?;
        let (info, identity) = (established.info, established.identity.clone());
        let association = Association::new(established, &events, &target, now)?;
        let state = State {
            target,
            info,
            identity: identity.clone(),
            association: Some(association),
            attempt: None,
            retry_at: now,
            pause: FIRST_PAUSE,
            broken: None,
            given_up: false,
            backlog: VecDeque::new(),
            serial: 0,
            done: Vec::new(),
            now,
            timer_at: None,
        };
        Ok(NvmeTcp { state: RefCell::new(state), events, wake: Arc::new(wake), timer, info, identity, clock })
    }

    /// Commands that have not completed.
    pub fn outstanding(&self) -> usize {
        let state = self.state.borrow();
        let queues = state.association.iter().flat_map(|association| &association.queues);
        queues.map(Queue::outstanding).sum::<usize>() + state.backlog.len()
    }

    /// Who the remote drive is.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Commands fail when the target stays away for `patience`, counted from when it went, unless they do earlier.
    pub fn limit_patience(&self, patience: Span) {
        let mut state = self.state.borrow_mut();
        state.target.patience = state.target.patience.min(patience);
    }

    /// Whether there is no connection.
    pub fn is_lost(&self) -> bool {
        self.state.borrow().broken.is_some()
    }

    /// Why there is no connection, while there is none.
    pub fn problem(&self) -> Option<String> {
        self.state.borrow().broken.as_ref().map(|(_, reason)| reason.clone())
    }

    fn turn(&self) -> bool {
        let mut state = self.state.borrow_mut();
        state.now = (self.clock)();
        let mut came = state.receive(&self.events);
        state.keep_alive(&self.events);
        came |= state.reconnect(&self.events, &self.wake);
        let mut done = std::mem::take(&mut state.done);
        drop(state);
        while !done.is_empty() {
            for Done { request, completion } in done.drain(..) {
                // It may submit the next command.
                if let Some(token) = request.token {
                    token.complete(completion);
                }
            }
            std::mem::swap(&mut done, &mut self.state.borrow_mut().done);
        }
        let mut state = self.state.borrow_mut();
        if done.capacity() > state.done.capacity() && state.done.is_empty() {
            // Its room is used again.
            state.done = done;
        }
        state.fill();
        state.flush(&self.events);
        state.set_timer(&self.timer);
        came
    }
}

impl Remote for NvmeTcp {
    /// Can be read when there is something to do, be it that something has come, or that something is due.
    fn socket(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }

    /// What waits for room to send is watched behind [`Remote::socket`].
    fn wants_to_write(&self) -> bool {
        false
    }

    /// Sends, receives, and completes commands. A connection that breaks is made again; it is lost when the target has stayed
    /// away for longer than [`Target::patience`], and even then it may come back.
    fn poll(&self) -> Result<bool, Lost> {
        let came = self.turn();
        let state = self.state.borrow();
        match &state.broken {
            Some((_, reason)) if state.given_up => {
                Err(Lost { endpoint: state.target.to_string(), reason: reason.clone() })
            }
            _ => Ok(came),
        }
    }
}

impl Drive for NvmeTcp {
    fn info(&self) -> DriveInfo {
        self.info
    }

    /// Takes a command; [`Remote::poll`] sends it.
    fn submit(&self, io: Io) {
        let Io { command, mem, token } = io;
        let mut state = self.state.borrow_mut();
        let refusal = match data_of(&command, &mem, &self.info) {
            _ if state.given_up => Status::HOST_PATHING_ERROR,
            // Commands go to any queue, one by one: the target would wait for the second half.
            _ if matches!(command.flags & FLAGS_FUSED, FLAGS_FUSED_FIRST | FLAGS_FUSED_SECOND) => Status::FUSED_MISSING,
            Err(status) => status,
            Ok(len) => {
                let mut request = Request::new(command, mem, Some(token), len);
                request.serial = state.serial;
                state.serial += 1;
                return state.give(request);
            }
        };
        drop(state);
        token.complete(Completion::of(refusal));
    }

    /// A command that waits in the host is taken out. The target is asked to abort one that it has, which may come too late:
    /// then it completes as it would have.
    fn cancel(&self, command: CommandRef) -> bool {
        let mut state = self.state.borrow_mut();
        let is_it = |token: &Token| token.is_of(command);
        let waits = |request: &Request| request.token.as_ref().is_some_and(is_it);
        if let Some(at) = state.backlog.iter().position(waits) {
            let request = state.backlog.remove(at);
            drop(state);
            if let Some(token) = request.and_then(|request| request.token) {
                token.complete(Completion::of(Status::ABORT_REQUESTED));
            }
            return true;
        }
        if let Some(association) = &mut state.association {
            association.abort(is_it);
        }
        // Nor is it submitted again should the connection break.
        false
    }
}

/// Bytes of a command's data.
///
/// # Errors
/// When its memory is shorter, or is described by the command.
fn data_of(entry: &SubmissionEntry, mem: &HostMem, info: &DriveInfo) -> Result<u32, Status> {
    // The initiator makes the data pointer.
    if entry.flags & FLAGS_PSDT != 0 {
        return Err(Status::INVALID_FIELD.final_());
    }
    let len = match (IoOpcode(entry.opcode), Transfer::of(entry.opcode)) {
        (_, Transfer::None) => 0,
        // No command of this kind is known to a host.
        (_, Transfer::Both) => return Err(Status::INVALID_OPCODE.final_()),
        (IoOpcode::READ | IoOpcode::WRITE | IoOpcode::COMPARE, _) => {
            (u64::from(Cdw12::of(entry).nlb_z()) + 1) * u64::from(info.lba_bytes)
        }
        // Ranges of 16 bytes, counted from zero.
        (IoOpcode::DATASET_MANAGEMENT, _) => (u64::from(entry.cdw10.get() & 0xff) + 1) * 16,
        _ => mem.len() as u64,
    };
    if len > 0 && info.keeps_data {
        mem.must_cover(len as usize)?;
    } else {
        mem.cover(len as usize)?;
    }
    u32::try_from(len).map_err(|_| Status::DATA_SGL_LENGTH_INVALID.final_())
}

/// Whether a command may be executed twice: the second time changes nothing more.
fn is_idempotent(entry: &SubmissionEntry) -> bool {
    let known = [
        IoOpcode::READ,
        IoOpcode::WRITE,
        IoOpcode::COMPARE,
        IoOpcode::FLUSH,
        IoOpcode::WRITE_ZEROES,
        IoOpcode::DATASET_MANAGEMENT,
        IoOpcode::VERIFY,
        vendor::ATOMIC_WRITE,
    ];
    known.contains(&IoOpcode(entry.opcode)) && entry.flags & FLAGS_FUSED == 0
}

impl Association {
    fn new(
        Established { admin, queues, .. }: Established,
        events: &OwnedFd,
        target: &Target,
        now: Time,
    ) -> io::Result<Association> {
        let (admin, queues) = (Queue::new(admin), queues.into_iter().map(Queue::new).collect::<Vec<_>>());
        for queue in std::iter::once(&admin).chain(&queues) {
            epoll::add(events, queue.socket(), EventData::new_u64(1), EventFlags::IN | EventFlags::RDHUP)?;
        }
        let keep_alive_at = now + target.keep_alive / 2;
        Ok(Association { admin, queues, next: 0, keep_alive_at, keep_alive_sent: None })
    }

    /// The next queue that takes a command, in turn.
    fn queue(&mut self) -> Option<&mut Queue> {
        let count = self.queues.len();
        let index = (0..count).map(|step| (self.next + step) % count).find(|index| self.queues[*index].has_room())?;
        self.next = (index + 1) % count;
        Some(&mut self.queues[index])
    }

    /// Asks the target to abort a command, if it has it.
    fn abort(&mut self, is_it: impl Fn(&Token) -> bool) {
        self.queues.iter_mut().for_each(|queue| queue.cancel(&is_it));
        let found = (1u32..).zip(&self.queues).find_map(|(id, queue)| Some((id, queue.find(&is_it)?)));
        let Some((id, cid)) = found.filter(|_| self.admin.has_room()) else { return };
        let mut entry = SubmissionEntry::admin(AdminOpcode::ABORT);
        entry.cdw10 = (id | u32::from(cid) << 16).into();
        self.admin.send(Request::new(entry, HostMem::none(), None, 0));
    }
}

impl State {
    /// Gives a command to a queue, or has it wait.
    fn give(&mut self, request: Request) {
        let queue = if self.backlog.is_empty() { self.association.as_mut().and_then(Association::queue) } else { None };
        match queue {
            Some(queue) => queue.send(request),
            None => self.backlog.push_back(request),
        }
    }

    /// Gives commands that wait to queues that have room.
    fn fill(&mut self) {
        let Some(association) = &mut self.association else { return };
        while !self.backlog.is_empty()
            && let Some(queue) = association.queue()
            && let Some(request) = self.backlog.pop_front()
        {
            queue.send(request);
        }
    }

    /// Receives on all queues; whether anything came.
    fn receive(&mut self, events: &OwnedFd) -> bool {
        let Some(association) = &mut self.association else { return false };
        let (mut came, before, mut problem) = (false, self.done.len(), None);
        for queue in &mut association.queues {
            match queue.receive(&mut self.done) {
                Ok(some) => came |= some,
                Err(reason) => problem = Some(reason),
            }
        }
        let of_queues = self.done.len();
        match association.admin.receive(&mut self.done) {
            Ok(some) => came |= some,
            Err(reason) => problem = Some(reason),
        }
        if self.done.len() > of_queues {
            // Answers to Keep Alive and Abort.
            self.done.truncate(of_queues);
            association.keep_alive_sent = None;
        }
        self.retry_damaged(before);
        if let Some(reason) = problem {
            self.break_off(reason, events);
            return true;
        }
        came
    }

    /// Commands whose data was damaged on the way are submitted again.
    fn retry_damaged(&mut self, from: usize) {
        let may_retry = |done: &Done| {
            let transient = done.completion.status.meaning() == Status::TRANSIENT_TRANSPORT_ERROR;
            transient && !done.request.cancelled && done.request.replays < REPLAYS && is_idempotent(&done.request.entry)
        };
        let mut at = from;
        while at < self.done.len() {
            if may_retry(&self.done[at]) {
                let mut request = self.done.remove(at).request.again();
                request.replays += 1;
                self.backlog.push_back(request);
            } else {
                at += 1;
            }
        }
    }

    /// Sends on all queues.
    fn flush(&mut self, events: &OwnedFd) {
        let Some(association) = &mut self.association else { return };
        let mut problem = None;
        for queue in association.queues.iter_mut().chain([&mut association.admin]) {
            let blocked = queue.blocked;
            if let Err(error) = queue.flush() {
                problem = Some(error.to_string());
            }
            if queue.blocked != blocked {
                let mut flags = EventFlags::IN | EventFlags::RDHUP;
                flags.set(EventFlags::OUT, queue.blocked);
                // A descriptor that is watched can be changed.
                let _ = epoll::modify(events, queue.socket(), EventData::new_u64(1), flags);
            }
        }
        if let Some(reason) = problem {
            self.break_off(reason, events);
        }
    }

    /// Sends Keep Alive when it is due. A target that has not answered the last one is gone.
    fn keep_alive(&mut self, events: &OwnedFd) {
        let (now, timeout) = (self.now, self.target.keep_alive);
        let Some(association) = self.association.as_mut().filter(|association| association.keep_alive_at <= now) else {
            return;
        };
        association.keep_alive_at = now + timeout / 2;
        match association.keep_alive_sent {
            Some(sent) if now.since(sent) >= timeout => self.break_off("no answer to Keep Alive".to_owned(), events),
            Some(_) => {}
            None if association.admin.has_room() => {
                association.keep_alive_sent = Some(now);
                association.admin.send(Request::new(keep_alive(), HostMem::none(), None, 0));
            }
            None => {}
        }
    }

    /// The association is broken: its commands wait for the next one, or fail.
    fn break_off(&mut self, reason: String, events: &OwnedFd) {
        let Some(mut association) = self.association.take() else { return };
        let mut requests: Vec<Request> = Vec::new();
        for queue in association.queues.iter_mut().chain([&mut association.admin]) {
            // Closing it would remove it as well.
            let _ = epoll::delete(events, queue.socket());
            requests.extend(queue.take_all().filter(|request| request.token.is_some()));
        }
        requests.sort_by_key(|request| request.serial);
        for request in requests.into_iter().rev() {
            if request.cancelled {
                self.done.push(Done { request, completion: Completion::of(Status::ABORT_REQUESTED) });
            } else if request.replays < REPLAYS && is_idempotent(&request.entry) {
                let mut request = request.again();
                request.replays += 1;
                self.backlog.push_front(request);
            } else {
                self.done.push(Done { request, completion: Completion::of(Status::HOST_PATHING_ERROR) });
            }
        }
        self.broken = Some((self.now, reason));
        (self.retry_at, self.pause) = (self.now, FIRST_PAUSE);
    }

    /// When there is something to do although nothing has come.
    fn next_due(&self) -> Option<Time> {
        match &self.association {
            Some(association) => Some(association.keep_alive_at),
            None if self.attempt.is_some() => self.gives_up_at(),
            None => Some(self.gives_up_at().map_or(self.retry_at, |at| at.min(self.retry_at))),
        }
    }

    fn set_timer(&mut self, timer: &OwnedFd) {
        let due = self.next_due();
        if due == self.timer_at {
            return;
        }
        self.timer_at = due;
        // Zero would switch it off.
        let ns = due.map_or(0, |due| due.since(self.now).ns().max(1));
        let value = Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 };
        let interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        // Setting it also takes back that it was due. A valid time is accepted.
        let _ =
            timerfd_settime(timer, TimerfdTimerFlags::empty(), &Itimerspec { it_interval: interval, it_value: value });
    }

    fn gives_up_at(&self) -> Option<Time> {
        let since = self.broken.as_ref().map(|(since, _)| *since)?;
        (!self.given_up).then(|| since + self.target.patience)
    }

    /// Takes the outcome of an attempt to connect, or begins the next one. Whether it has connected.
    fn reconnect(&mut self, events: &OwnedFd, wake: &Arc<OwnedFd>) -> bool {
        if self.association.is_some() {
            return false;
        }
        if self.gives_up_at().is_some_and(|at| at <= self.now) {
            self.given_up = true;
            let failed = |request| Done { request, completion: Completion::of(Status::HOST_PATHING_ERROR) };
            self.done.extend(self.backlog.drain(..).map(failed));
        }
        let outcome = match self.attempt.as_ref().map(Receiver::try_recv) {
            None if self.retry_at <= self.now => {
                self.attempt = Some(begin_attempt(&self.target, wake));
                return false;
            }
            None | Some(Err(TryRecvError::Empty)) => return false,
            Some(Err(TryRecvError::Disconnected)) => Err(ConnectError::Unusable("no thread could be had".to_owned())),
            Some(Ok(outcome)) => outcome,
        };
        self.attempt = None;
        // Nothing to read is as good.
        let _ = rustix::io::read(wake, &mut [0; 8]);
        let usable = outcome.and_then(|established| {
            match established.info == self.info && established.identity.is_same_namespace(&self.identity) {
                true => Ok(Association::new(established, events, &self.target, self.now)?),
                false => Err(ConnectError::Unusable("the namespace is another one now".to_owned())),
            }
        });
        match usable {
            Ok(association) => {
                self.association = Some(association);
                (self.broken, self.given_up) = (None, false);
                true
            }
            Err(error) => {
                if let Some((_, reason)) = &mut self.broken {
                    *reason = error.to_string();
                }
                self.retry_at = self.now + self.pause;
                self.pause = (self.pause * 2).min(LONGEST_PAUSE);
                false
            }
        }
    }
}

/// Connects on a side thread, which wakes the initiator when it has ended.
fn begin_attempt(target: &Target, wake: &Arc<OwnedFd>) -> Receiver<Result<Established, ConnectError>> {
    let (tell, told) = channel();
    let (target, wake) = (target.clone(), wake.clone());
    // Where no thread can be had, the channel is closed, and the next attempt follows.
    let _ = std::thread::Builder::new().name("nvme-tcp connect".to_owned()).spawn(move || {
        // The initiator may have gone.
        let _ = tell.send(establish(&target));
        let _ = rustix::io::write(&*wake, &1u64.to_ne_bytes());
    });
    told
}
