//! The initiator as a drive: commands in, completions out, and the descriptor that wakes its owner.
//!
//! Left out: connections, which are in `state`.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use nandscape_drive::{CommandRef, Completion, Drive, DriveInfo, HostMem, Io, Token};
use nandscape_sim::{Span, Time};
use nandscape_wire_nvme::command::{FLAGS_FUSED, FLAGS_FUSED_FIRST, FLAGS_FUSED_SECOND, FLAGS_PSDT};
use nandscape_wire_nvme::io::Cdw12;
use nandscape_wire_nvme::opcode::Transfer;
use nandscape_wire_nvme::vendor::BATCHED_READ;
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};

use super::association::Association;
use super::establish::{ConnectError, Established, establish};
use super::identity::Identity;
use super::look::Look;
use super::queue::{Done, Queue, Request};
use super::state::{FIRST_PAUSE, State};
use super::target::Target;
use crate::remote::{Broken, Lost, Pending, Remote};

/// A remote namespace as a drive. See the module `nvme_tcp`.
pub struct NvmeTcp {
    pub(super) state: RefCell<State>,
    /// All sockets, and the wake descriptor.
    events: OwnedFd,
    /// Written when an attempt to connect has ended.
    wake: Arc<OwnedFd>,
    /// Makes `events` readable when something is due.
    timer: OwnedFd,
    info: DriveInfo,
    identity: Identity,
    clock: Clock,
}

/// A target that is connected to. Any thread may connect, and hand this over to the one that uses the drive.
pub struct Connected {
    target: Target,
    established: Established,
}

impl Connected {
    /// Connects to a target. Blocks for some seconds at most for each of its answers.
    ///
    /// # Errors
    /// When the target cannot be reached, refuses, or has no namespace that can be used.
    pub fn to(target: Target) -> Result<Connected, ConnectError> {
        Ok(Connected { established: establish(&target)?, target })
    }
}

/// The time, which never runs backwards.
pub type Clock = Box<dyn Fn() -> Time>;

impl NvmeTcp {
    /// Connects to a target. Blocks for some seconds at most for each of its answers. From now on its time is that of
    /// `clock`.
    ///
    /// # Errors
    /// When the target cannot be reached, refuses, or has no namespace that can be used.
    pub fn connect(target: Target, clock: Clock) -> Result<NvmeTcp, ConnectError> {
        NvmeTcp::over(Connected::to(target)?, clock)
    }

    /// The same without blocking: the target is connected to already.
    ///
    /// # Errors
    /// When the system has no descriptors for it.
    pub fn over(Connected { target, established }: Connected, clock: Clock) -> Result<NvmeTcp, ConnectError> {
        let now = clock();
        let events = epoll::create(CreateFlags::CLOEXEC).map_err(io::Error::from)?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(io::Error::from)?;
        epoll::add(&events, &wake, EventData::new_u64(0), EventFlags::IN).map_err(io::Error::from)?;
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK);
        let timer = timer.map_err(io::Error::from)?;
        epoll::add(&events, &timer, EventData::new_u64(0), EventFlags::IN).map_err(io::Error::from)?;
        let (info, identity) = (established.info, established.identity.clone());
        let association = Association::new(established, &events, &target, now)?;
        let mut state = State {
            target,
            info,
            identity: identity.clone(),
            look: None,
            association: Some(association),
            attempt: None,
            retry_at: now,
            pause: FIRST_PAUSE,
            broken: None,
            given_up: false,
            refusal: None,
            is_closed: false,
            backlog: VecDeque::new(),
            serial: 0,
            done: Vec::new(),
            now,
            timer_at: None,
        };
        // A host that only waits for the descriptor must also be woken for the first Keep Alive.
        state.set_timer(&timer);
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

    /// Commands fail when the target has been offline for `patience`, unless they fail earlier.
    pub fn limit_patience(&self, patience: Span) {
        let mut state = self.state.borrow_mut();
        state.target.patience = state.target.patience.min(patience);
        if let Some(association) = &mut state.association {
            association.look_at = Time::ZERO;
        }
    }

    /// Has a look taken at the drive each time that it is connected to again.
    pub fn look_again(&self, look: Look) {
        self.state.borrow_mut().look = Some(look);
    }

    /// Whether there is no connection.
    pub fn is_lost(&self) -> bool {
        self.state.borrow().broken.is_some()
    }

    /// The reason for the missing connection, while disconnected.
    pub fn problem(&self) -> Option<String> {
        self.state.borrow().broken.as_ref().map(|(_, reason)| reason.clone())
    }

    /// Whether the target has been offline for longer than [`Target::patience`]: commands fail until a connection
    /// exists.
    pub fn has_given_up(&self) -> bool {
        let state = self.state.borrow();
        state.broken.is_some() && state.given_up
    }

    /// Why the drive is rejected for good, while it differs from the previous one
    /// ([`Refusal::ForGood`](super::Refusal)).
    pub fn refusal(&self) -> Option<String> {
        self.state.borrow().refusal.clone()
    }

    /// Disconnects for good: all commands fail at once, and the reason is [`NvmeTcp::refusal`].
    pub fn close(&self, reason: &str) {
        let mut state = self.state.borrow_mut();
        state.now = (self.clock)();
        state.close(reason, &self.events);
        drop(state);
        self.turn();
    }

    fn turn(&self) -> bool {
        let mut state = self.state.borrow_mut();
        state.now = (self.clock)();
        let mut came = state.receive(&self.events);
        state.keep_alive(&self.events);
        state.find_silence(&self.events);
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
    /// Empty while disconnected: then [`Target::patience`] limits the wait of commands. Answers to probes do not
    /// count.
    fn pending(&self) -> Pending {
        match &self.state.borrow().association {
            Some(Association { queues, .. }) => Pending {
                commands: queues.iter().map(Queue::outstanding).sum(),
                answers: queues.iter().map(|queue| queue.answers).sum(),
            },
            None => Pending::default(),
        }
    }

    fn broken(&self) -> Option<Broken> {
        let state = self.state.borrow();
        let (_, reason) = state.broken.as_ref().filter(|_| !state.given_up)?;
        let (endpoint, patience) = (state.target.to_string(), state.target.patience);
        Some(Broken { endpoint, reason: reason.clone(), patience })
    }

    /// Readable when the driver has work: received data, or a timer that is due.
    fn socket(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }

    /// [`Remote::socket`] also covers waits for room to send.
    fn wants_to_write(&self) -> bool {
        false
    }

    /// Sends, receives, and completes commands. Reconnects a broken connection. After the target has been offline for
    /// longer than [`Target::patience`] it returns [`Lost`], but still tries to reconnect.
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
            // Commands are sent to any queue, one by one, so the target would wait for the second half.
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

    /// A command that waits in the host is removed. For a command at the target, an abort is sent, which may be too
    /// late: then it completes as usual.
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
        (BATCHED_READ, _) => mem.len() as u64,
        // No other command of this kind is known to a host.
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
