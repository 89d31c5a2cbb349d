//! The states of an initiator: connected, broken, reconnected, and the commands that wait meanwhile.
//!
//! ```text
//!       broken or silent: outstanding commands wait      target.patience is over: all commands fail
//! connected ------------------------------> connecting ----------------------------------------> given up
//!     ^                                       |    ^ pause, which grows                               |
//!     +---------------------------------------+----+--------------------------------------------------+
//!                    connected: they are submitted again
//! ```
//!
//! Its user may close it in each of these states. Then all commands fail, and no attempt to connect follows.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};

use nandscape_drive::{Completion, DriveInfo, HostMem};
use nandscape_sim::{Span, Time};
use nandscape_wire_nvme::command::FLAGS_FUSED;
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry, vendor};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::time::{Itimerspec, TimerfdTimerFlags, Timespec, timerfd_settime};

use super::association::Association;
use super::establish::{ConnectError, Established, establish, keep_alive};
use super::identity::Identity;
use super::look::{self, Look};
use super::queue::{Done, Request};
use super::target::Target;

/// How often a command is submitted again.
pub const REPLAYS: u8 = 5;
/// The first pause between two attempts to connect, and the longest.
pub(super) const FIRST_PAUSE: Span = Span::from_ms(100);
const LONGEST_PAUSE: Span = Span::from_s(10);

/// See the file.
pub(super) struct State {
    pub(super) target: Target,
    pub(super) info: DriveInfo,
    pub(super) identity: Identity,
    /// The check after reconnection.
    pub(super) look: Option<Look>,
    pub(super) association: Option<Association>,
    /// An attempt to connect on a side thread.
    pub(super) attempt: Option<Receiver<Result<Established, ConnectError>>>,
    /// When the next attempt begins, and the pause after it.
    pub(super) retry_at: Time,
    pub(super) pause: Span,
    /// When the connection broke, or since when it was silent, and why.
    pub(super) broken: Option<(Time, String)>,
    pub(super) given_up: bool,
    /// Why the last check rejected the drive for good.
    pub(super) refusal: Option<String>,
    /// Its user has disconnected it for good.
    pub(super) is_closed: bool,
    /// Commands that wait for a place in a queue, or for a connection.
    pub(super) backlog: VecDeque<Request>,
    pub(super) serial: u64,
    pub(super) done: Vec<Done>,
    pub(super) now: Time,
    /// For when the timer is set.
    pub(super) timer_at: Option<Time>,
}

/// Whether a command may be executed twice: the second execution changes nothing.
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
        vendor::RUN_REPORT,
        // Excluded: a flush of a buffer, since a delta would be added twice; a batched read, whose data may have
        // replaced its list; open and commit of runs. The stores ask which runs exist.
    ];
    known.contains(&IoOpcode(entry.opcode)) && entry.flags & FLAGS_FUSED == 0
}

impl State {
    /// Gives a command to a queue, or has it wait.
    pub(super) fn give(&mut self, request: Request) {
        let queue = if self.backlog.is_empty() { self.association.as_mut().and_then(Association::queue) } else { None };
        match queue {
            Some(queue) => queue.send(request),
            None => self.backlog.push_back(request),
        }
    }

    /// Gives commands that wait to queues that have room.
    pub(super) fn fill(&mut self) {
        let Some(association) = &mut self.association else { return };
        while !self.backlog.is_empty()
            && let Some(queue) = association.queue()
            && let Some(request) = self.backlog.pop_front()
        {
            queue.send(request);
        }
    }

    /// Receives; returns whether any data arrived.
    pub(super) fn receive(&mut self, events: &OwnedFd) -> bool {
        let Some(association) = &mut self.association else { return false };
        let before = self.done.len();
        let (came, problem) = association.receive(&mut self.done, self.now);
        self.retry_damaged(before);
        if let Some(reason) = problem {
            self.break_off(reason, None, events);
            return true;
        }
        came
    }

    /// Submits commands again whose data was damaged on the way.
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
    pub(super) fn flush(&mut self, events: &OwnedFd) {
        let Some(association) = &mut self.association else { return };
        let mut problem = None;
        for queue in association.queues.iter_mut().chain([&mut association.admin]) {
            let blocked = queue.blocked;
            if let Err(error) = queue.flush(self.now) {
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
            self.break_off(reason, None, events);
        }
    }

    /// Sends Keep Alive when it is due. A target without an answer to the previous one is lost.
    pub(super) fn keep_alive(&mut self, events: &OwnedFd) {
        let (now, timeout) = (self.now, self.target.keep_alive);
        let Some(association) = self.association.as_mut().filter(|association| association.keep_alive_at <= now) else {
            return;
        };
        association.keep_alive_at = now + timeout / 2;
        // The answer to the previous one may have arrived.
        if let Err(reason) = association.receive_admin(&mut self.done, now) {
            return self.break_off(reason, None, events);
        }
        match association.keep_alive_sent {
            Some(sent) if now.since(sent) >= timeout => {
                self.break_off("no answer to Keep Alive".to_owned(), None, events);
            }
            Some(_) => {}
            None if association.admin.has_own_room() => {
                association.keep_alive_sent = Some(now);
                association.admin.send(Request::new(keep_alive(), HostMem::none(), None, 0));
            }
            None => {}
        }
    }

    /// Breaks off if a connection has been silent for too long while commands wait, when a check is due.
    pub(super) fn find_silence(&mut self, events: &OwnedFd) {
        let (now, limit) = (self.now, self.target.silence());
        let Some(association) = self.association.as_mut().filter(|association| association.look_at <= now) else {
            return;
        };
        // Under load, not every poll includes the admin queue.
        if let Err(reason) = association.receive_admin(&mut self.done, now) {
            return self.break_off(reason, None, events);
        }
        if let Some(since) = association.find_silence(now, limit) {
            let reason = format!("no answer for {:.1} s, while commands wait", now.since(since).as_s());
            self.break_off(reason, Some(since), events);
        }
    }

    /// The association is broken: its commands wait for the next one, or fail. A silent one has been out of reach `silent_since`.
    fn break_off(&mut self, reason: String, silent_since: Option<Time>, events: &OwnedFd) {
        let Some(mut association) = self.association.take() else { return };
        let mut requests: Vec<Request> = Vec::new();
        for queue in association.queues.iter_mut().chain([&mut association.admin]) {
            // Closing it would remove it as well.
            let _ = epoll::delete(events, queue.socket());
            requests.extend(queue.take_all().filter(|request| request.token.is_some()));
        }
        requests.sort_by_key(|request| request.serial);
        let (since, patience) = (silent_since.unwrap_or(self.now), self.target.patience);
        for mut request in requests.into_iter().rev() {
            let waits_since = *request.waits_since.get_or_insert(since);
            // Each connection to the target is made, and then falls silent.
            let has_waited = silent_since.is_some() && waits_since + patience <= self.now;
            if request.cancelled {
                self.done.push(Done { request, completion: Completion::of(Status::ABORT_REQUESTED) });
            } else if !has_waited && request.replays < REPLAYS && is_idempotent(&request.entry) {
                let mut request = request.again();
                request.replays += 1;
                self.backlog.push_front(request);
            } else {
                self.done.push(Done { request, completion: Completion::of(Status::HOST_PATHING_ERROR) });
            }
        }
        self.broken = Some((since, reason));
        (self.retry_at, self.pause) = (self.now, FIRST_PAUSE);
    }

    /// There is no further attempt to connect, and all commands fail.
    pub(super) fn close(&mut self, reason: &str, events: &OwnedFd) {
        self.break_off(reason.to_owned(), None, events);
        self.broken.get_or_insert((self.now, reason.to_owned()));
        (self.attempt, self.refusal, self.is_closed) = (None, Some(reason.to_owned()), true);
        self.give_up();
    }

    /// When work is due without input.
    fn next_due(&self) -> Option<Time> {
        match &self.association {
            _ if self.is_closed => None,
            Some(association) => Some(association.keep_alive_at.min(association.look_at)),
            None if self.attempt.is_some() => self.gives_up_at(),
            None => Some(self.gives_up_at().map_or(self.retry_at, |at| at.min(self.retry_at))),
        }
    }

    pub(super) fn set_timer(&mut self, timer: &OwnedFd) {
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

    /// Waiting commands fail, and so do new ones until a connection exists.
    fn give_up(&mut self) {
        self.given_up = true;
        let failed = |request| Done { request, completion: Completion::of(Status::HOST_PATHING_ERROR) };
        self.done.extend(self.backlog.drain(..).map(failed));
    }

    /// Takes the outcome of an attempt to connect, or begins the next one. Whether it has connected.
    pub(super) fn reconnect(&mut self, events: &OwnedFd, wake: &Arc<OwnedFd>) -> bool {
        if self.association.is_some() || self.is_closed {
            return false;
        }
        if self.gives_up_at().is_some_and(|at| at <= self.now) {
            self.give_up();
        }
        let outcome = match self.attempt.as_ref().map(Receiver::try_recv) {
            None if self.retry_at <= self.now => {
                self.attempt = Some(begin_attempt(&self.target, self.look.clone(), wake));
                return false;
            }
            None | Some(Err(TryRecvError::Empty)) => return false,
            Some(Err(TryRecvError::Disconnected)) => Err(ConnectError::Unusable("no thread could be had".to_owned())),
            Some(Ok(outcome)) => outcome,
        };
        self.attempt = None;
        // An empty read is harmless.
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
                (self.broken, self.given_up, self.refusal) = (None, false, None);
                true
            }
            Err(error) => {
                if let ConnectError::NotItself(refusal) = &error {
                    self.refusal = Some(refusal.clone());
                    self.give_up();
                }
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
fn begin_attempt(
    target: &Target,
    look: Option<Look>,
    wake: &Arc<OwnedFd>,
) -> Receiver<Result<Established, ConnectError>> {
    let (tell, told) = channel();
    let (target, wake) = (target.clone(), wake.clone());
    // If no thread can be started, the channel is closed, and the next attempt follows.
    let _ = std::thread::Builder::new().name("nvme-tcp connect".to_owned()).spawn(move || {
        // The initiator may have been dropped.
        let _ = tell.send(establish(&target).and_then(|mut established| {
            if let (Some(look), Some(link)) = (&look, established.queues.first_mut()) {
                look::take(link, look)?;
            }
            Ok(established)
        }));
        let _ = rustix::io::write(&*wake, &1u64.to_ne_bytes());
    });
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_something_the_second_time_is_not_repeated() {
        let is_repeated = |opcode| is_idempotent(&SubmissionEntry::io(opcode, 1));
        let once = [vendor::LSS_FLUSH, vendor::BATCHED_READ, vendor::RUN_OPEN, vendor::RUN_COMMIT];
        assert!(once.into_iter().all(|opcode| !is_repeated(opcode)));
        assert!([IoOpcode::READ, IoOpcode::WRITE, vendor::ATOMIC_WRITE].into_iter().all(is_repeated));
    }
}
