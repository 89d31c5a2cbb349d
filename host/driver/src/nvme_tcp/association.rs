//! The queues of one association with a controller: the choice of a queue for a command, and the polling of the admin
//! queue.
//!
//! Left out: a broken association, which `state` handles.

use std::io;
use std::os::fd::OwnedFd;

use nandscape_drive::{HostMem, Token};
use nandscape_sim::{Span, Time};
use nandscape_wire_nvme::{AdminOpcode, SubmissionEntry};
use rustix::event::epoll::{self, EventData, EventFlags};

use super::establish::{Established, keep_alive, probe};
use super::queue::{Done, Queue, Quiet, Request};
use super::target::Target;

/// While I/O commands are outstanding and no admin command of a user is, the admin queue is polled in one of this many polls:
/// reading its socket costs as much as reading that of an I/O queue, and it has data once in seconds.
const ADMIN_EVERY: u32 = 16;

/// See the file.
pub(super) struct Association {
    pub(super) admin: Queue,
    pub(super) queues: Vec<Queue>,
    /// The queue that gets the next command.
    next: usize,
    /// When Keep Alive is due, and whether one is unanswered.
    pub(super) keep_alive_at: Time,
    pub(super) keep_alive_sent: Option<Time>,
    turns: AdminTurns,
    /// When to check the connections for silence next.
    pub(super) look_at: Time,
}

impl Association {
    pub(super) fn new(
        Established { admin, queues, .. }: Established,
        events: &OwnedFd,
        target: &Target,
        now: Time,
    ) -> io::Result<Association> {
        let queues: Vec<Queue> = queues.into_iter().map(|link| Queue::new(link, now)).collect();
        let admin = Queue::new(admin, now);
        for queue in std::iter::once(&admin).chain(&queues) {
            epoll::add(events, queue.socket(), EventData::new_u64(1), EventFlags::IN | EventFlags::RDHUP)?;
        }
        let keep_alive_at = now + target.keep_alive / 2;
        Ok(Association {
            admin,
            queues,
            next: 0,
            keep_alive_at,
            keep_alive_sent: None,
            turns: AdminTurns(0),
            look_at: now,
        })
    }

    /// The next queue that takes a command, in turn.
    pub(super) fn queue(&mut self) -> Option<&mut Queue> {
        let count = self.queues.len();
        let index = (0..count).map(|step| (self.next + step) % count).find(|index| self.queues[*index].has_room())?;
        self.next = (index + 1) % count;
        Some(&mut self.queues[index])
    }

    /// Asks the target to abort a command, if it has it.
    pub(super) fn abort(&mut self, is_it: impl Fn(&Token) -> bool) {
        self.queues.iter_mut().for_each(|queue| queue.cancel(&is_it));
        let found = (1u32..).zip(&self.queues).find_map(|(id, queue)| Some((id, queue.find(&is_it)?)));
        let Some((id, cid)) = found.filter(|_| self.admin.has_room()) else { return };
        let mut entry = SubmissionEntry::admin(AdminOpcode::ABORT);
        entry.cdw10 = (id | u32::from(cid) << 16).into();
        self.admin.send(Request::new(entry, HostMem::none(), None, 0));
    }

    /// Receives on all queues, on the admin queue only now and then. Returns whether any data arrived, and the reason
    /// if the association breaks.
    pub(super) fn receive(&mut self, done: &mut Vec<Done>, now: Time) -> (bool, Option<String>) {
        let (mut came, mut problem) = (false, None);
        let is_busy = self.queues.iter().any(|queue| queue.outstanding() > 0);
        for queue in &mut self.queues {
            match queue.receive(done, now) {
                Ok(some) => came |= some,
                Err(reason) => problem = Some(reason),
            }
        }
        if self.turns.next(is_busy && self.admin.outstanding() == 0) {
            match self.receive_admin(done, now) {
                Ok(some) => came |= some,
                Err(reason) => problem = Some(reason),
            }
        }
        (came, problem)
    }

    /// Receives on the admin queue: answers to Keep Alive and Abort, and to commands of users.
    pub(super) fn receive_admin(&mut self, done: &mut Vec<Done>, now: Time) -> Result<bool, String> {
        let before = done.len();
        let came = self.admin.receive(done, now)?;
        if done[before..].iter().any(|answer| answer.request.token.is_none()) {
            self.keep_alive_sent = None;
        }
        let mut number = 0;
        done.retain(|answer| {
            number += 1;
            number <= before || answer.request.token.is_some()
        });
        Ok(came)
    }

    /// Probes connections that have been quiet for half of `limit` while commands wait. Returns since when one has
    /// been silent, if any is.
    ///
    /// Checks are at most half of the limit apart, so each probe is sent and judged when it is due.
    pub(super) fn find_silence(&mut self, now: Time, limit: Span) -> Option<Time> {
        self.look_at = now + limit / 2;
        let mut silent = None;
        let probes = self.queues.iter_mut().map(|queue| (queue, probe()));
        for (queue, probe) in probes.chain([(&mut self.admin, keep_alive())]) {
            match queue.quiet(now, limit) {
                Quiet::Idle => {}
                Quiet::Until(at) => self.look_at = self.look_at.min(at),
                Quiet::Probe => queue.probe(probe, now),
                Quiet::Silent(since) => silent = Some(silent.map_or(since, |earlier: Time| earlier.min(since))),
            }
        }
        silent
    }
}

/// Chooses the polls that include the admin queue.
struct AdminTurns(u32);

impl AdminTurns {
    /// Whether this poll includes the admin queue. Without outstanding I/O commands, polls are rare and follow a wake,
    /// perhaps by the admin queue.
    fn next(&mut self, is_busy: bool) -> bool {
        self.0 = (self.0 + 1) % ADMIN_EVERY;
        self.0 == 0 || !is_busy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_admin_queue_is_looked_at_rarely_under_load_and_always_without() {
        let mut turns = AdminTurns(0);
        let mut looks = |busy| (0..160).filter(|_| turns.next(busy)).count();
        assert_eq!((looks(true), looks(false)), (10, 160));
    }
}
